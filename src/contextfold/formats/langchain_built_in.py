"""Tools that OpenAI has built in and the caller runs, as ``langchain-openai`` has them in messages.

A call to one is a block of an AI message, and in none of its lists. What a computer shows is a ``ToolMessage`` of a
kind of its own, which says so in ``additional_kwargs``; the output of all others is a block of a human message. With
``output_version="v1"``, such a block is the ``value`` of one without a type (``non_standard``).

What belongs here: telling these blocks, reading and rebuilding them. What does not: the types themselves and what each
of them takes (``local_tools``), and what LangChain has types for (``langchain``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextfold.formats import crossing, local_tools, values
from contextfold.formats.openai_responses import OpenAIResponses
from contextfold.messages import Media, Opaque, Part, ToolCall, ToolResult

RUN_BY_CALLERS = frozenset({local_tools.COMPUTER, "apply_patch_call", local_tools.SEARCH})
"""Those whose calls ``langchain-openai`` sends again."""
SCREENSHOT = "computer_call_output"
_RESPONSES = OpenAIResponses()


def held(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """The block of the provider's that a block is, or holds."""
    value = block.get("value")
    return value if values.block_type(block) == "non_standard" and isinstance(value, dict) else block


def changed(block: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with other values in the provider's block."""
    inner = held(block)
    return {**block, **changes} if inner is block else {**block, "value": {**inner, **changes}}


def answered_in(content: Any) -> frozenset[Any]:
    """The ids of calls that are answered in the same message: the provider ran these."""
    blocks = [held(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return frozenset(block.get("call_id") for block in blocks if values.block_type(block) in local_tools.CALL_OF)


def call(block: Mapping[str, Any], index: int | None) -> ToolCall | None:
    """The call that a block of an AI message is, if it is one that the caller runs."""
    item = held(block)
    if values.block_type(item) not in RUN_BY_CALLERS or not _names_call(item):
        return None
    (part,) = _RESPONSES.decode(item, index).parts
    return part if isinstance(part, ToolCall) else None


def output(block: Mapping[str, Any], index: int | None) -> ToolResult | None:
    """The output of such a call that a block of a human message is."""
    item = held(block)
    answered = local_tools.CALL_OF.get(values.block_type(item))
    if answered not in RUN_BY_CALLERS or not _names_call(item):
        return None
    (part,) = _RESPONSES.decode(item, index).parts
    return replace(part, source=block) if isinstance(part, ToolResult) else None


def _names_call(item: Mapping[str, Any]) -> bool:
    return bool(values.optional_text(item, "call_id"))


def rebuilt(result: ToolResult) -> dict[str, Any]:
    """The block of an output that was edited."""
    item = local_tools.rebuilt(held(result.source), result, crossing.joined_text(result.content))
    return changed(result.source, item)


def is_screenshot(keywords: Mapping[str, Any], content: Any) -> bool:
    """Whether a tool message is what a computer shows."""
    blocks = content if isinstance(content, list) else ()
    return keywords.get("type") == SCREENSHOT or any(
        isinstance(block, dict) and block is not held(block) and values.block_type(held(block)) == SCREENSHOT
        for block in blocks
    )


def shown(content: str) -> tuple[Media]:
    """The picture of a screenshot that is a text: where it is, or all of it."""
    return (values.media_from_url("image", content, source=content),)


def rebuilt_screenshot(content: Any, left: Sequence[Part]) -> Any:
    """The content of a screenshot: as it was, or a white picture where it has left, since nothing else is taken."""
    if all(isinstance(part, Media | Opaque) for part in left):
        return content
    url = local_tools.BLANK_SCREENSHOT["image_url"]
    return url if isinstance(content, str) else [{"type": "input_image", "image_url": url}]
