"""The marks by which the wire formats are told apart: a block type, a key or a role that one format alone has.

What belongs here: looking at one entry, cheaply. What does not: reading it (the format's own module, which is loaded
when its first conversation comes: of ten formats, a program uses one or two).

Where an entry carries the marks of two formats, the order of ``MARKED`` decides: a chat message with ``tool_calls`` may
hold blocks of Anthropic's, which proxies leave there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from contextfold.formats import values
from contextfold.formats.langchain_shapes import shape_of

CHAT_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SPEAKERS = ("system", "user", "assistant")

_CHAT_KEYS = ("tool_calls", "tool_call_id", "function_call", "tool_call_ids")
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file"})
_ITEMS = frozenset(
    {"reasoning", "compaction", "compaction_trigger", "item_reference", "configuration_update", "additional_tools"}
    | {"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_output", "program_output"}
)
_LOGGED = frozenset({"tool_call", "tool_call_output", "llm_call", "model_call", "api_call"})
_ITEM_KEYS = frozenset({"id", "call_id", "status"})
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
# Not ``text``: every format that has blocks has those.
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "server_tool_use", "compaction", "mcp_tool_use", "thinking", "redacted_thinking"}
)
_ANTHROPIC_MEDIA = frozenset({"image", "document"})
_CONVERSE_KEYS = frozenset(
    {"text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent"}
    | {"searchResult", "image", "document", "video", "audio"}
)
_GEMINI_ROLES = (None, "user", "model", "function", "tool", "system")
_NOT_GEMINI = frozenset({"type", "kind", "part_kind", "content"})


def is_marked(name: str, entry: Any) -> bool:
    """Whether an entry carries a mark of the format of this name. Never raises: objects of strangers may, when they
    are compared; those carry no mark, and decoding says what is wrong.
    """
    try:
        return MARKED[name](entry)
    except Exception:  # noqa: BLE001 - whatever their code raises
        return False


def _is_chat(entry: Any) -> bool:
    if not isinstance(entry, dict) or "role" not in entry:
        return False
    if entry["role"] in ("tool", "function") or any(entry.get(key) for key in _CHAT_KEYS):
        return True
    types = ((values.block_type(block), block) for block in _blocks(entry))
    return any(kind in _CHAT_BLOCKS and kind in block for kind, block in types)


def _is_responses(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    if "role" not in entry or entry.get("type") == "additional_tools":
        return _is_item(entry)
    if entry.get("type") == "message":
        # Anthropic's answers are of this type too, but never hold a string, and name their model
        content = entry.get("content")
        if isinstance(content, str) or (content == [] and "model" not in entry):
            return True
    return any(values.block_type(block) in _RESPONSES_BLOCKS for block in _blocks(entry))


def _is_item(entry: dict[str, Any]) -> bool:
    kind = entry.get("type")
    if not isinstance(kind, str):
        return False
    if kind in _ITEMS:
        return True
    # New built-in tools come with types of their own; but logs of all kinds have events that end so.
    is_call = kind.endswith(("_call", "_call_output")) and kind not in _LOGGED
    is_call = is_call or (kind == "program" and "fingerprint" in entry)
    if kind == "function_call_output" and "output" in entry and "name" in entry:
        return True  # of a tool that no one called
    return is_call and not _ITEM_KEYS.isdisjoint(entry)


def _is_anthropic(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("role") not in _SPEAKERS:
        return False
    return any(
        values.block_type(block) in _ANTHROPIC_BLOCKS
        or (values.block_type(block) in _ANTHROPIC_MEDIA and isinstance(block.get("source"), dict))
        for block in _blocks(entry)
    )


def _is_langchain(entry: Any) -> bool:
    return shape_of(entry) is not None


def _is_gemini(entry: Any) -> bool:
    """Parts that have a key of Gemini's and no type, as those of others have; or an object of the SDK."""
    if not isinstance(entry, dict):
        return values.is_instance(entry, "google.genai.types", "Content")
    if "content" in entry or "type" in entry or "kind" in entry:
        return False
    role, parts = entry.get("role"), entry.get("parts")
    if role not in _GEMINI_ROLES or not isinstance(parts, list):
        return False
    return bool(parts or role == "model") and all(_is_gemini_part(part) for part in parts)


def _is_gemini_part(part: Any) -> bool:
    if isinstance(part, dict):
        return bool(part) and _NOT_GEMINI.isdisjoint(part)
    return any(base.__module__ == "google.genai.types" for base in type(part).__mro__)


def _is_converse(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("role") not in _SPEAKERS:
        return False
    return any("type" not in block and not _CONVERSE_KEYS.isdisjoint(block) for block in _blocks(entry))


def _is_haystack(entry: Any) -> bool:
    return values.is_instance(entry, "haystack.dataclasses.chat_message", "ChatMessage")


def _is_pydantic_ai(entry: Any) -> bool:
    return values.is_instance(entry, "pydantic_ai.messages", "ModelRequest", "ModelResponse")


def _blocks(entry: dict[str, Any]) -> list[dict[str, Any]]:
    content = entry.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


MARKED: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "openai-chat": _is_chat,
        "openai-responses": _is_responses,
        "anthropic": _is_anthropic,
        "langchain": _is_langchain,
        "gemini": _is_gemini,
        "bedrock-converse": _is_converse,
        "haystack": _is_haystack,
        "pydantic-ai": _is_pydantic_ai,
    }
)
"""Whether an entry is of a format, by the format's name, in the order in which they are asked."""
