"""What the flow of a request needs to know of a model, whatever it is.

What belongs here: the protocols, and the model that is a plain function. What does not: how a provider writes requests
and answers (``openai``, ``anthropic``, ``langchain``), and when to ask, how long and how often (``asking``).

    Model ──opening (may import an SDK)──▶ OpenModel ──request──▶ pieces ──Fold──▶ text as it comes, then an Answer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from contextfold.ports import BothColors
from contextfold.summary.summarizer import Answer, to_answer


class Fold(Protocol):
    """Makes one answer of its pieces. A new one for each request."""

    def add(self, piece: Any) -> str:
        """Take the next piece; the text that it adds. Raises what a piece reports as an error."""
        ...

    def answer(self) -> Answer:
        """The answer, after the last piece. Raises ``ConnectionError`` if more should have come."""
        ...


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that is ready to be asked, from several branches at once.

    ``request(prompt, answer_tokens, seconds)`` is the call to make: it returns an answer or an iterator of its pieces,
    sync or async. ``answer_tokens`` is the length that the prompt asks for; ``seconds`` the longest silence, None: any.
    """

    request: Callable[[str, int, float | None], partial[Any]]
    fold: Callable[[], Fold]
    close: Callable[[], Any] | None = None
    """None: the client is the caller's."""
    keys: tuple[str, ...] = ()
    """What must not appear in anything that is told."""
    refused_field: Callable[[BaseException], str | None] = lambda error: None
    """The optional field that a request was refused for: the next request goes without it. None: another failure."""


class Model(Protocol):
    """Something that answers prompts: ``name`` for people and prices, ``window`` in tokens of prompt, if known."""

    @property
    def name(self) -> str: ...

    @property
    def window(self) -> int | None: ...

    @property
    def refused(self) -> set[str]:
        """Optional fields that requests go without, because the model said that it does not know them."""
        ...

    def opening(self, *, stream: bool) -> Callable[[], OpenModel] | BothColors:
        """What makes a session; run where it may take long. ``stream``: the caller wants to see text as it arrives."""
        ...


@dataclass(slots=True)
class PlainFold:
    """Text or messages as functions return them. Several are one answer: texts are joined, messages added up."""

    _pieces: list[Any] = field(default_factory=list)

    def add(self, piece: Any) -> str:
        self._pieces.append(piece)
        return to_answer(piece).text

    def answer(self) -> Answer:
        if not self._pieces:
            return Answer("")
        whole = self._pieces[0]
        for piece in self._pieces[1:]:
            whole = whole + piece
        return to_answer(whole)


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """A function from prompt to text, sync or async; or to an iterator of texts, for those who stream."""

    function: Callable[[str], Any]
    name: str
    window: int | None
    refused: set[str] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def of(cls, function: Callable[[str], Any], *, window: int | None) -> FunctionModel:
        name = getattr(function, "__qualname__", type(function).__name__)
        return cls(function, name, window)

    def opening(self, *, stream: bool) -> Callable[[], OpenModel]:
        return lambda: OpenModel(lambda prompt, answer_tokens, seconds: partial(self.function, prompt), PlainFold)
