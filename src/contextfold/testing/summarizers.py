"""Summarizers for tests: plain callables from a prompt to text that remember what they were asked.

What belongs here: fakes that stand where a model would. What does not: the summarizer that works without a
model (``contextfold.summary``). All are deterministic and may be called from several threads at once.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from contextfold.errors import ContextOverflow

OverflowStyle = Literal["context_overflow", "openai", "anthropic"]
Answer = str | BaseException

EXTRACT_WORDS = 60
"""An extract has at most this many words, and at most one in ``EXTRACT_SHARE`` of those in its prompt."""

EXTRACT_SHARE = 8

LONGEST_WORD = 32
"""Characters. Longer words (base64, text without spaces) are cut, so that an extract is always short."""


class ProviderError(Exception):
    """What a provider's client raises: ``status_code``, ``code`` and ``body`` as the well-known ones carry them.

    It says that the request should not be sent again, so that tests of failures take no time.
    """

    headers: Mapping[str, str] = MappingProxyType({"x-should-retry": "false"})

    def __init__(self, message: str, *, status_code: int = 400, code: str | None = None) -> None:
        self.message = message
        self.status_code = status_code
        self.code = code
        self.body: Mapping[str, Any] = {"error": {"message": message, "code": code, "type": "invalid_request_error"}}
        super().__init__(message)


class _Recorder(ABC):
    """Remembers prompts in the order in which they arrived, and which of them were answered."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.accepted: list[str] = []
        self._numbers = itertools.count()  # next() and append() are atomic, so threads need no lock

    def __call__(self, prompt: str) -> str:
        number = next(self._numbers)
        self.prompts.append(prompt)
        answer = self._answer(prompt, number)
        self.accepted.append(prompt)
        return answer

    @abstractmethod
    def _answer(self, prompt: str, number: int) -> str:
        """The text for the prompt that came ``number``-th."""


class ScriptedSummarizer(_Recorder):
    """Answers from a script.

    ``answers`` is an iterable of texts, given out in the order of the requests (an exception in it is raised
    instead), or a callable from prompt to text. Chunks may be summarized side by side, and then arrive in any
    order: use a callable where it matters which request gets which answer.

    ``prompts`` holds every request, ``accepted`` those that were answered. Raises ``AssertionError`` when the
    script is at its end.
    """

    def __init__(self, answers: Iterable[Answer] | Callable[[str], str]) -> None:
        super().__init__()
        self._function = answers if callable(answers) else None
        self._answers: tuple[Answer, ...] = () if callable(answers) else tuple(answers)

    def _answer(self, prompt: str, number: int) -> str:
        if self._function is not None:
            return self._function(prompt)
        if number >= len(self._answers):
            raise AssertionError(f"the script has {len(self._answers)} answers, and this is request {number + 1}")
        answer = self._answers[number]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class LimitedSummarizer(_Recorder):
    """Rejects prompts of more than ``limit`` tokens, by the built-in estimate, and answers all others.

    ``error`` chooses how it rejects: ``context_overflow`` raises ``ContextOverflow``; ``openai`` and
    ``anthropic`` raise a ``ProviderError`` with that provider's text and code. ``inner`` answers what fits;
    without one the answer is a short extract of words of the prompt, the same for the same prompt.

    ``prompts`` holds every request, ``accepted`` those that were answered, ``rejected`` the others.
    """

    def __init__(
        self, limit: int, inner: Callable[[str], str] | None = None, *, error: OverflowStyle = "context_overflow"
    ) -> None:
        super().__init__()
        if error not in _ERRORS:
            raise ValueError(f"error={error!r} is not known: use one of {', '.join(_ERRORS)}")
        self.limit = limit
        self.rejected: list[str] = []
        self._inner = inner or extract
        self._error = _ERRORS[error]

    def _answer(self, prompt: str, number: int) -> str:
        used = _count(prompt)
        if used > self.limit:
            self.rejected.append(prompt)
            raise self._error(self.limit, used)
        return self._inner(prompt)


class FailingSummarizer(_Recorder):
    """Raises ``error`` at every request, or, with ``after``, answers that many first (with an extract).

    ``prompts`` holds every request, ``accepted`` those that were answered.
    """

    def __init__(self, error: BaseException | None = None, *, after: int = 0) -> None:
        super().__init__()
        self.error = error or ProviderError("the summarizer is down", status_code=503, code="unavailable")
        self._after = after

    def _answer(self, prompt: str, number: int) -> str:
        if number < self._after:
            return extract(prompt)
        raise self.error


def extract(text: str) -> str:
    """Words of ``text`` at even distances: never blank, and far shorter than any text of more than a few words."""
    words = re.findall(r"\w+", text) or ["nothing"]
    count = max(1, min(EXTRACT_WORDS, len(words) // EXTRACT_SHARE))
    return " ".join(words[number * len(words) // count][:LONGEST_WORD] for number in range(count))


def _count(prompt: str) -> int:
    from contextfold import count_tokens  # not at the top: tests of single modules need no counter

    return count_tokens([{"role": "user", "content": prompt}])


def _context_overflow(limit: int, used: int) -> Exception:
    return ContextOverflow(f"the prompt has {used} tokens and {limit} fit", limit=limit, used=used)


def _openai(limit: int, used: int) -> Exception:
    return ProviderError(
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
    )


def _anthropic(limit: int, used: int) -> Exception:
    return ProviderError(f"prompt is too long: {used} tokens > {limit} maximum", code="invalid_request_error")


_ERRORS: Mapping[str, Callable[[int, int], Exception]] = {
    "context_overflow": _context_overflow,
    "openai": _openai,
    "anthropic": _anthropic,
}
