"""What users call a summarizer, as models that are asked in order.

What belongs here: recognizing what was given (a name, a ``SummaryModel``, a LangChain model, an object with
``complete``, a callable). What does not: asking (``asking``).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from contextfold.errors import PolicyError, held, plain_integer, shown
from contextfold.ports import Patience, SyncPorts, run
from contextfold.summary.models.base import FunctionModel, Model, OpenModel
from contextfold.summary.models.clients import sdk_of
from contextfold.summary.models.langchain import LangChainModel
from contextfold.summary.models.model import SummaryModel
from contextfold.summary.summarizer import Answer

ACCEPTED = (
    "a name such as 'openai:MODEL' or 'anthropic:MODEL', a SummaryModel, a callable from prompt to text (sync or "
    "async), an object with a method complete(prompt), or a LangChain chat model or runnable (an object with invoke)"
)


@dataclass(frozen=True, slots=True)
class ModelChain:
    """A summarizer: the models to ask, the first one first; the next where one fails."""

    models: tuple[Model, ...]

    @property
    def window(self) -> int | None:
        """The longest prompt of the first model, in tokens; None if it does not know."""
        return self.models[0].window

    @property
    def name(self) -> str:
        return self.models[0].name

    def complete(self, prompt: str) -> Answer:
        """The first model's answer to one prompt, in blocking code, without retries."""
        return run(_completed(self.models[0], prompt))


def chain_of(value: Any) -> ModelChain:
    """The models of anything that can be a summarizer. Raises ``PolicyError`` that says what is accepted."""
    return value if isinstance(value, ModelChain) else ModelChain(_models(value))


def _models(value: Any) -> tuple[Model, ...]:
    if isinstance(value, str) and ":" in value:
        value = SummaryModel(value)
    if isinstance(value, SummaryModel):
        return (value.resolved(), *(model for fallback in value.fallbacks for model in chain_of(fallback).models))
    if not isinstance(value, type):
        window = _whole(held(value, "window"))
        can_complete = callable(held(value, "complete"))
        if can_complete and _has(value, "complete"):
            return (FunctionModel.of(value.complete, window=window),)
        if callable(held(value, "invoke")):
            return (LangChainModel.of(value, window=window),)
        if can_complete or callable(value):
            return (FunctionModel.of(value.complete if can_complete else value, window=window),)
    raise PolicyError(_problem(value))


def _has(value: Any, name: str) -> bool:
    # Not ``getattr``: a test double answers to every name.
    return inspect.getattr_static(value, name, None) is not None


def _problem(value: Any) -> str:
    if (provider := sdk_of(value)) is not None:
        return (
            f"summarizer is a client of {provider}, and which model it is to ask is missing: "
            "pass SummaryModel('MODEL', client=client) of contextfold.summary.models"
        )
    kind = f"{shown(value)} ({type(value).__name__})"
    if isinstance(value, type):
        kind = f"the class {value.__name__} itself"
    return f"summarizer is {kind}: it must be {ACCEPTED}, or None for the built-in one"


async def _completed(model: Model, prompt: str) -> Answer:
    ports, opening = SyncPorts(), model.opening(stream=False)
    session: OpenModel = await ports.compute(opening)
    try:
        fold = session.fold()
        async for piece in ports.pieces(Patience(), session.request(prompt, 0, None)):
            fold.add(piece)
        return fold.answer()
    finally:
        if session.close is not None:
            await ports.release(session.close)


def _whole(value: Any) -> int | None:
    number = plain_integer(value)
    return number if number is not None and number > 0 else None
