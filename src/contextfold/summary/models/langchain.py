"""How a LangChain chat model or runnable is asked for a summary.

What belongs here: which of its methods to call, and with which configuration. What does not: reading its messages
(``summarizer.to_answer``). Nothing here imports LangChain, and the model object is never changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from contextfold.ports import BothColors
from contextfold.summary.models.base import OpenModel, PlainFold
from contextfold.summary.summarizer import to_answer

CONFIG: dict[str, Any] = {
    "run_name": "contextfold_summary",
    "tags": ["nostream", "langsmith:nostream"],
    "metadata": {"lc_source": "summarization"},
}
"""Keeps the summary's tokens out of a graph's message stream, and says in traces what the call was for."""


@dataclass(frozen=True, slots=True)
class LangChainModel:
    """An object with ``invoke``; a real runnable is asked through ``stream`` to see text arrive."""

    runnable: Any
    name: str
    window: int | None
    refused: set[str] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def of(cls, runnable: Any, *, window: int | None) -> LangChainModel:
        told = (getattr(runnable, name, None) for name in ("model_name", "model"))
        name = next((name for name in told if isinstance(name, str) and name), type(runnable).__name__)
        package = type(runnable).__module__.partition(".")[0]
        # The package of an integration names its provider.
        if package.startswith("langchain_") and package != "langchain_core":
            name = f"{package.removeprefix('langchain_')}:{name}"
        return cls(runnable, name, window or profiled_window(runnable))

    def opening(self, *, stream: bool) -> BothColors:
        if not _is_runnable(self.runnable):
            methods = self.runnable.invoke, getattr(self.runnable, "ainvoke", None) or self.runnable.invoke
            blocking, suspending = (partial(_read, method) for method in methods)
            return BothColors(partial(self._session, blocking), partial(self._session, suspending))
        names = ("stream", "astream") if stream else ("invoke", "ainvoke")
        blocking, suspending = (partial(getattr(self.runnable, name), config=_config()) for name in names)
        return BothColors(partial(self._session, blocking), partial(self._session, suspending))

    def _session(self, method: Any) -> OpenModel:
        return OpenModel(lambda prompt, answer_tokens, seconds: partial(method, prompt), PlainFold)


def _read(method: Any, prompt: str) -> Any:
    """What an object that is no runnable returns."""
    reply = method(prompt)
    if inspect.isawaitable(reply):
        return _awaited(reply)
    # A message is read at once: a test double passes for an iterator.
    return to_answer(reply) if hasattr(reply, "content") else reply


async def _awaited(reply: Awaitable[Any]) -> Any:
    answer = await reply
    return to_answer(answer) if hasattr(answer, "content") else answer


LEAST_PROFILED = 2_000
"""Tokens. A profile with a smaller window is a test double's: believed, it would cost dozens of requests where one
does. A model that really takes less refuses, and is given less then."""


def profiled_window(model: Any) -> int | None:
    """The window that a LangChain model's profile names, through the bindings that may wrap the model."""
    # Not for ever: a test double that answers to every name has a ``bound`` in each ``bound``.
    for _ in range(4):
        profile = getattr(model, "profile", None)
        if isinstance(profile, Mapping):
            size = profile.get("max_input_tokens")
            return size if isinstance(size, int) and size >= LEAST_PROFILED else None
        model = getattr(model, "bound", None)
    return None


def _config() -> dict[str, Any]:
    """``CONFIG`` with the mark that newer releases of LangChain want on a middleware's own calls."""
    marks = sys.modules.get("langchain.agents.middleware.internal_call_transformer")
    mark = marks.internal_call_metadata() if marks is not None else {}
    return {**CONFIG, "metadata": {**CONFIG["metadata"], **mark}}


def _is_runnable(value: Any) -> bool:
    # By name, since LangChain is not imported here, and may not be installed.
    return any(cls.__name__ == "Runnable" for cls in type(value).__mro__)
