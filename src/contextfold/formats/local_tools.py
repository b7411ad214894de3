"""Tools that OpenAI Responses has built in and the caller runs: shell, patch, computer, its own tool search.

A call to one is an item of its own type, and so is its output; the API refuses any other type or shape there.

What belongs here: these types, which call an output answers, and outputs that are built or rebuilt. What does not: all
other items (``openai_responses``), and tools that the provider runs: their items are complete in themselves.

Reference: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextfold.messages import Media, Opaque, Text, ToolResult

SHELL, COMPUTER, SEARCH = "shell_call", "computer_call", "tool_search_call"
FIRST_SHELL_OUTPUT = "local_shell_call_output"

OUTPUT_OF: Mapping[str, str] = {
    "local_shell_call": FIRST_SHELL_OUTPUT,
    SHELL: "shell_call_output",
    COMPUTER: "computer_call_output",
    "apply_patch_call": "apply_patch_call_output",
    SEARCH: "tool_search_output",
}
"""Type of a call -> type of its output."""

CALL_OF: Mapping[str, str] = {output: call for call, output in OUTPUT_OF.items()}

BLANK_SCREENSHOT: Mapping[str, str] = {
    "type": "computer_screenshot",
    "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAAD0lEQVR42mP4DwQMg5cAANrpf4Em"
    "8vpjAAAAAElFTkSuQmCC",
}
"""A white image of 32 x 32 pixels, in the place of a screenshot that was removed: words are refused there."""

EXITED: Mapping[str, Any] = {"type": "exit", "exit_code": 1}


def is_call(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the caller answers. A search that the provider ran itself names no call."""
    kind = item.get("type")
    return kind in OUTPUT_OF and not (kind == SEARCH and item.get("call_id") is None)


def answered_id(item: Mapping[str, Any]) -> Any:
    """The id of the call that an output answers; None if it names none. Of the first shell tool, the SDK's type has no
    other field for it than ``id``.
    """
    answered = item.get("call_id")
    return item.get("id") if not answered and item.get("type") == FIRST_SHELL_OUTPUT else answered


def decoded_chunk(block: Mapping[str, Any]) -> Text | None:
    """What a command wrote, as text; None for a block that is no chunk of a shell's output."""
    written = [block.get(name) for name in ("stdout", "stderr")]
    if not all(isinstance(text, str) for text in written):
        return None
    return Text("\n".join(filter(None, written)), source=block)


def built(result: ToolResult, text: str) -> dict[str, Any] | None:
    """The output in words Placeholder output for an unanswered call; None if its type takes no text."""
    if result.local is None or result.local == COMPUTER:
        return None
    item: dict[str, Any] = {"type": OUTPUT_OF[result.local], "call_id": result.call_id}
    match result.local:
        case "shell_call":
            return {**item, "output": [_chunk(Text(text), EXITED)]}
        case "apply_patch_call":
            return {**item, "status": "failed", "output": text}
        case "tool_search_call":
            return {**item, "execution": "client", "tools": []}
    return {"type": item["type"], "id": result.call_id, "output": text}


def rebuilt(source: Mapping[str, Any], result: ToolResult, output: Any) -> dict[str, Any]:
    """An output whose result was edited. ``output`` is what its content is in items without a shape of their own."""
    id_name = "call_id" if source.get("call_id") else "id"
    item = {**source, id_name: result.call_id}
    match result.local:
        case "computer_call":
            kept = all(isinstance(part, Media) for part in result.content)
            return item if kept else {**item, "output": dict(BLANK_SCREENSHOT)}
        case "shell_call":
            return {**item, "output": _chunks(source.get("output"), result.content)}
        case "tool_search_call":
            return item
    return {**item, "output": output}


def _chunks(original: Any, content: Sequence[Text | Media | Opaque]) -> list[Any]:
    first = original[0] if isinstance(original, list) and original and isinstance(original[0], Mapping) else {}
    outcome = first.get("outcome", EXITED)
    return [_chunk(part, outcome) if isinstance(part, Text) else part.source for part in content]


def _chunk(text: Text, outcome: Any) -> dict[str, Any]:
    """A chunk with this text; the very one that it was decoded from where nothing changed."""
    if isinstance(text.source, dict) and not text.edited:
        return text.source
    source = text.source if isinstance(text.source, dict) else {"outcome": outcome}
    return {**source, "stdout": text.text, "stderr": ""}
