"""The tool ``compact_conversation``: the model says when a piece of work is over.

What belongs here: the tool and its words. It only leaves a request in the state; the next model call makes the
compaction, where the exact system prompt, tools and window are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from contextfold.integrations.langchain.state import remembered_in

NAME = "compact_conversation"

DESCRIPTION = (
    "Fold the earlier conversation into a summary to make room. Call it when a piece of work is finished and its "
    "details are no longer needed. Nothing is deleted. `instructions` says what the summary must keep."
)

ANSWER = "The conversation will be compacted before your next step."


def compact_tool(key: str) -> BaseTool:
    """The tool of the middleware whose state is under ``key``."""

    def compact_conversation(
        tool_call_id: Annotated[str, InjectedToolCallId],
        state: Annotated[Any, InjectedState],
        instructions: str = "",
    ) -> Command[Any]:
        remembered = replace(remembered_in(f"{key!r} of the state", state.get(key)), requested=instructions)
        answer = ToolMessage(ANSWER, tool_call_id=tool_call_id, name=NAME)
        return Command(update={key: remembered.to_text(), "messages": [answer]})

    return StructuredTool.from_function(compact_conversation, name=NAME, description=DESCRIPTION)
