"""The tool ``compact_conversation`` for deep agents: the model says when a piece of work is over.

What belongs here: the tool, when it may be used, and its answers. What does not: summarizing (``passes``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepagents.middleware import summarization as deepagents_summarization
from langchain.tools import ToolRuntime
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from contextfold.integrations.deepagents.files import Files
from contextfold.integrations.deepagents.state import SummarizationState
from contextfold.integrations.deepagents.summarization import SummarizationMiddleware, warn_of_ignored
from contextfold.integrations.langchain.folding import DueFold
from contextfold.integrations.langchain.overriding import is_overridden
from contextfold.integrations.langchain.tool import NAME
from contextfold.ports import run

DESCRIPTION = (
    "Fold the earlier conversation into a summary to make room. Call it when a piece of work is finished and its "
    "details are no longer needed, or before a new, unrelated task. The messages themselves are saved. "
    "It takes no arguments."
)
TOO_EARLY = "Nothing to compact yet: the conversation is within the token budget."
ALL_KEPT = "Nothing to compact yet: all of the conversation is recent enough to stay as it is."
NO_SUMMARY = "Compaction failed: no usable summary could be had. Nothing was summarized or removed."

GATE = ("_is_eligible_for_compaction", "_is_compaction_clause_met", "_compact_threshold")
ASKED = ("_run_compact", "_arun_compact", *GATE, "_create_compact_tool")
"""Private methods of deepagents' class that decide here as they do there, where a subclass overrides them."""

Gate = Callable[[list[AnyMessage]], bool]


class SummarizationToolMiddleware(deepagents_summarization.SummarizationToolMiddleware):
    """Gives the agent the tool ``compact_conversation``. It summarizes from half of the trigger on, when it is called.

    Args:
        summarization: one of our ``SummarizationMiddleware``; its model, backend, trigger and ``keep`` are used.
        system_prompt: added to the system prompt, to make the model think of the tool; None: nothing is added.

    Raises ``TypeError`` for arguments of other kinds.
    """

    state_schema = SummarizationState  # type: ignore[assignment]  # deepagents' keys with reducers, and one more

    def __init__(self, summarization: SummarizationMiddleware, *, system_prompt: str | None = None) -> None:
        if not isinstance(summarization, SummarizationMiddleware):
            raise TypeError(
                f"summarization is a {type(summarization).__module__}.{type(summarization).__name__}: give a "
                "SummarizationMiddleware of contextfold.integrations.deepagents"
            )
        super().__init__(summarization, system_prompt=system_prompt)
        warn_of_ignored(self, SummarizationToolMiddleware, deepagents_summarization.SummarizationToolMiddleware, ASKED)

    def _create_compact_tool(self) -> BaseTool:
        def compact(runtime: ToolRuntime) -> Command[Any]:
            return self._run_compact(runtime)

        async def acompact(runtime: ToolRuntime) -> Command[Any]:
            return await self._arun_compact(runtime)

        return StructuredTool.from_function(name=NAME, description=DESCRIPTION, func=compact, coroutine=acompact)

    def _run_compact(self, runtime: ToolRuntime) -> Command[Any]:
        summarization: SummarizationMiddleware = self._summarization  # type: ignore[assignment]  # see __init__
        return run(compacted(summarization, runtime, summarization.files_blocking(), self._gate()))

    async def _arun_compact(self, runtime: ToolRuntime) -> Command[Any]:
        summarization: SummarizationMiddleware = self._summarization  # type: ignore[assignment]  # see __init__
        return await compacted(summarization, runtime, summarization.files_suspending(), self._gate())

    def _gate(self) -> Gate | None:
        """What a subclass says about when the tool may be used; None if it says nothing."""
        is_said = is_overridden(self, SummarizationToolMiddleware, *GATE)
        return self._is_eligible_for_compaction if is_said else None


async def compacted(
    summarization: SummarizationMiddleware, runtime: ToolRuntime, files: Files, gate: Gate | None = None
) -> Command[Any]:
    """The update of the state that a call of the tool makes: a new summary, or only the answer.

    ``gate``: says of a view whether it may be summarized; None: from half of the trigger on.
    """
    passes, call = summarization.passes, runtime.tool_call_id or ""
    messages = runtime.state.get("messages") or []
    turn = await files.ports.compute(passes.begin, runtime.state, messages, None)
    if gate is not None:
        may = await files.ports.call(gate, turn.view.messages)
    else:
        may = passes.helper.is_half_due(turn.view.messages, turn.tokens, turn.sending)
    if not may:
        return _answer(call, TOO_EARLY)
    due = DueFold("manual")
    folded = await passes.folded(turn, due, files)
    if folded.start == turn.start:
        was_asked = await files.ports.compute(passes.can_part, turn, due)
        return _answer(call, NO_SUMMARY if was_asked else ALL_KEPT)
    count = folded.start - turn.start
    answer = f"Conversation compacted. Summarized {count} messages into a concise summary."
    return _answer(call, answer, folded.update())


def _answer(call: str, text: str, update: dict[str, Any] | None = None) -> Command[Any]:
    message = ToolMessage(text, tool_call_id=call, name=NAME)
    return Command(update={**(update or {}), "messages": [message]})
