"""What may be told of a database URL, which often holds a password.

What belongs here: taking secrets out of URLs, and out of what databases say. What does not: connecting (``database``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"

_SECRET_NAME = re.compile(r"pass|secret|token|key(?!store)|credential|signature|^sig$", re.IGNORECASE)
"""The last ones are of addresses that are signed for anyone who has them, as object stores give them."""


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name is told to no one."""
    return _SECRET_NAME.search(name) is not None


def shown(url: str) -> str:
    """A database URL without its password, wherever that stands, also where the URL as a whole cannot be read.

    A user's name stays. A file of SQLite has no user, and ``@`` is a character of its path.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        name, colon, rest = url.partition(":")
        return f"{name}{colon}{HIDDEN}@{rest.rpartition('@')[2]}" if "@" in rest else url
    place, question, query = rest.partition("?")
    if "@" in query and "@" not in place:  # a question mark in a password that should have been encoded
        place, question, query = rest, "", ""
    if "@" in place and not scheme.startswith("sqlite"):
        user, _, host = place.rpartition("@")
        name, colon, _ = user.partition(":")
        place = f"{name}{colon}{HIDDEN if colon else ''}@{host}"
    fields = [_field(field) for field in query.split("&")] if question else []
    return f"{scheme}{mark}{place}{question}{'&'.join(fields)}"


def _field(field: str) -> str:
    name, equals, value = field.partition("=")
    return f"{name}{equals}{HIDDEN}" if value and is_secret(name) else field


def without(secrets: Iterable[str], text: str) -> str:
    """What a database said, without these secrets. One of less than three characters could be any word."""
    for secret in sorted({secret for secret in secrets if len(secret) > 2}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
