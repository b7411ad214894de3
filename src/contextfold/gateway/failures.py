"""What is told of a failure of ours: its kind and its place, and no word of a conversation.

The text of an error may quote what it stumbled over: a message, or a provider's refusal, which in turn may quote the
credential. The log of a gateway holds neither, so only texts that are made of our own words and numbers stand there.
"""

from __future__ import annotations

import re
import traceback

from contextfold.errors import CannotFit
from contextfold.gateway.shared import StoreFailed
from contextfold.observe import Event, scrub

_STATUS = re.compile(r"\bHTTP (\d{3})\b|\bError code: (\d{3})\b")
"""As we and the SDKs begin the text of a refusal."""


class StrictRefusal(Exception):
    """Something of ours failed, and the operator wants requests refused then."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


class NoSummary(Exception):
    """A summary that could not be had, by the engine's event; by its type and the status of the refusal."""

    def __init__(self, event: Event) -> None:
        found = _STATUS.search(event.message)
        status = f", HTTP {found[1] or found[2]}" if found else ""
        super().__init__(f"{event.data.get('error') or event.name}{status}")


def told(error: BaseException) -> str:
    """What a line of the log says of an error."""
    if isinstance(error, CannotFit | StoreFailed | NoSummary):
        return scrub(str(error).partition("\n")[0][:500])  # a database's further lines quote the row
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    place = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__} in {place}" if place else type(error).__name__
