"""Reasoning that Claude ties to what stood before it.

What belongs here: which blocks these are. A request in which what stood before them has become a summary may be refused
because of them, so they are sent as they are or not at all. Other providers' reasoning is free of that, and stays.
"""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage

NATIVE = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
"""Types of reasoning blocks in the formats of Anthropic and of Bedrock Converse."""
BEDROCK = frozenset({"bedrock", "bedrock_converse"})


def without_bound_reasoning(message: AnyMessage) -> AnyMessage | None:
    """The message without such blocks, the same object if it has none; None if nothing is left of it."""
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return message
    bound = _bound_types(message)
    content = [block for block in message.content if not (isinstance(block, dict) and block.get("type") in bound)]
    if len(content) == len(message.content):
        return message
    if not content and not message.tool_calls and not message.invalid_tool_calls:
        return None
    return message.model_copy(update={"content": content})


def _bound_types(message: AIMessage) -> frozenset[str]:
    """The types of blocks in this message that are tied. Unsigned messages are told by the native types alone."""
    provider = message.response_metadata.get("model_provider")
    model = str(message.response_metadata.get("model_name", "")).lower()
    if provider is None:
        return NATIVE
    is_claude = provider == "anthropic" or (provider in BEDROCK and ("claude" in model or "anthropic" in model))
    return NATIVE | {"reasoning"} if is_claude else frozenset()
