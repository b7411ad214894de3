"""Writing the bytes of small transcript files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from contextfold.transcripts import Conversation, read


def rows(*values: Any) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()


def one(data: bytes | Any, **options: Any) -> Conversation:
    """The only conversation in bytes, or in a value as JSON."""
    (conversation,) = several(data, **options)
    return conversation


def several(data: bytes | Any, **options: Any) -> list[Conversation]:
    return read(data if isinstance(data, bytes) else json.dumps(data).encode(), name="talk", **options)


def roles(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]
