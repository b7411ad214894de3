"""File names for threads and media, made by us: no thread id becomes a path.

What belongs here: names. What does not: what is in the files.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re

READABLE = 40
"""Characters of a thread id that are kept for people to recognize it."""


def thread_name(namespace: str, thread: str) -> str:
    """A name of ASCII letters, digits and hyphens, of at most 73 characters; different threads never share one.

    The readable beginning is only for people; the hash of the whole (namespace, thread) makes it unique.
    """
    # With the length, or ("ab", "c") and ("a", "bc") would share a file.
    identity = f"{len(namespace)}:{namespace}{thread}".encode("utf-8", "surrogatepass")
    readable = re.sub(r"[^A-Za-z0-9]+", "-", thread[: 4 * READABLE]).strip("-")[:READABLE].strip("-") or "thread"
    return f"{readable.lower()}-{hashlib.blake2b(identity, digest_size=16).hexdigest()}"


def media_name(data: bytes, media_type: str | None) -> str:
    """A name by content: the same data has the same name, and is stored once."""
    ending = mimetypes.guess_extension(media_type.partition(";")[0].strip()) if media_type else None
    safe = ending if ending and re.fullmatch(r"\.[a-z0-9]{1,10}", ending) else ".bin"
    return hashlib.sha256(data).hexdigest()[:32] + safe
