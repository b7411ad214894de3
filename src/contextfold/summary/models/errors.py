"""What goes wrong with an answer after a request was accepted, where no SDK has an error for it.

What belongs here: the two exceptions. What does not: what is done about them (``retry``).
"""

from __future__ import annotations


class AnswerFailed(Exception):
    """The provider reports a failure in the place of an answer. ``code`` is its own word for it."""

    def __init__(self, message: str, *, code: str | None) -> None:
        self.code = code
        super().__init__(f"{code}: {message}" if code else message)


class StreamCut(ConnectionError):
    """The stream ended, and the answer had not."""

    def __init__(self) -> None:
        super().__init__("the stream ended before the answer was complete")
