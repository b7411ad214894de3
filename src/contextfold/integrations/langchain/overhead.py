"""What is sent beside the messages: the system prompt and the tools, as the engine counts them.

What belongs here: reading them out of a model request, cheaply enough for every call. What does not: counting
(``contextfold.tokens``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from contextfold.integrations.langchain.threads import Bounded

_declared: Bounded[tuple[BaseTool, dict[str, Any]]] = Bounded(512)
"""id of a tool -> the tool, kept so that its id stays its own, and its declaration, which takes a millisecond."""


def system_text(request: ModelRequest[Any]) -> str | None:
    """The text of the system prompt; None where there is none."""
    return None if request.system_message is None else str(request.system_message.text)


def declarations(tools: Sequence[BaseTool | dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools as they are declared to the model."""
    return [tool if isinstance(tool, dict) else _declaration(tool) for tool in tools]


def _declaration(tool: BaseTool) -> dict[str, Any]:
    known = _declared.get(id(tool))
    if known is not None and known[0] is tool:
        return known[1]
    declared = convert_to_openai_tool(tool)
    _declared.put(id(tool), (tool, declared))
    return declared
