"""Anthropic's ``thinking`` beside a view: a request with a budget for it has rules that a smaller list may break.

What belongs here: which ``thinking``, and which fields with it, go out beside a view or a lowered answer limit. What
does not: thinking inside messages (``passes``), and what follows a refusal (``recovery``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from contextfold import formats
from contextfold.messages import Message, Reasoning, ToolCall, ToolResult

LEAST_THINKING = 1_024
"""Tokens. Anthropic takes no smaller budget."""
_OFF = {"type": "disabled"}
_CLAUDE = ("anthropic", "anthropic-request", "bedrock-converse", "langchain")
"""Formats in which no other models than those whose API has this rule get such a field. In others, the model's name
tells: Gemini takes the same field from LiteLLM, and thinks on in the middle of a chain.
"""
IS_CLAUDE = re.compile(r"claude|anthropic", re.IGNORECASE)
"""In a model's name."""


def shorter_thinking(thinking: Any, before: int | None, max_tokens: int) -> Any:
    """``thinking`` beside an answer limit lowered to ``max_tokens``, below which its budget has to stay.

    The same object where it does, or was not below the limit ``before`` either; disabled where no budget would fit.
    ``before`` is None where the request named none.
    """
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    if not isinstance(budget, int) or max_tokens > budget or (before is not None and budget >= before):
        return thinking
    if max_tokens <= LEAST_THINKING:
        return _OFF
    # a power of two, so that it seldom changes: with another budget the provider reads nothing from its cache
    return {**thinking, "budget_tokens": max(LEAST_THINKING, 1 << (max_tokens // 2).bit_length() - 1)}


def thinking_beside(
    thinking: Any, view: Sequence[Any], history: Sequence[Any], format_name: str, model: Any = None
) -> Any:
    """``thinking`` beside a view of ``history``: disabled where the newest calls open with an answer that has none.

    With a budget, the API refuses such a list. Only the first answer of a chain of calls has thinking (unless it is
    interleaved), and a pass may have summarized that one. An answer that has its thinking in the history is another
    case: the provider's refusal has it shown again, and the model goes on thinking. ``model``: its name, for formats
    that many providers speak.
    """
    is_claude = format_name in _CLAUDE or IS_CLAUDE.search(str(model)) is not None
    if not is_claude or not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return thinking
    decode = formats.get(format_name).decode
    opening = _opening(map(decode, reversed(view)))
    if opening is None or _thinks(opening):
        return thinking
    calls = _calls(opening)
    own = next((message for message in map(decode, reversed(history)) if calls & _calls(message)), opening)
    return thinking if _thinks(own) else _OFF


def with_thinking_set(fields: Mapping[str, Any], thinking: Any) -> dict[str, Any]:
    """The fields of a request to change for this ``thinking``; None: to leave out.

    Edits that clear thinking are refused where there is none.
    """
    if thinking is fields.get("thinking"):
        return {}
    management = fields.get("context_management")
    if thinking != _OFF or not isinstance(management, Mapping) or not isinstance(management.get("edits"), list | tuple):
        return {"thinking": thinking}
    rest = [edit for edit in management["edits"] if not clears_thinking(edit)]
    return {"thinking": thinking, "context_management": {**management, "edits": rest} if rest else None}


def clears_thinking(edit: Any) -> bool:
    """Whether an edit that the provider is asked for takes nothing but thinking out of a conversation."""
    return isinstance(edit, Mapping) and str(edit.get("type")).startswith("clear_thinking_")


def _opening(newest_first: Iterable[Message]) -> Message | None:
    """The first answer behind what the user said last, where the newest messages are results of calls."""
    opening = None
    speaking = (message for message in newest_first if message.role != "system")
    for is_answer, turn in groupby(speaking, key=lambda message: message.role == "assistant"):
        messages = list(turn)
        if is_answer:
            opening = messages[-1]
        elif not any(isinstance(part, ToolResult) for message in messages for part in message.parts):
            return opening
    return opening


def _thinks(message: Message) -> bool:
    return bool(message.parts) and isinstance(message.parts[0], Reasoning)


def _calls(message: Message) -> set[str]:
    return {part.id for part in message.parts if isinstance(part, ToolCall)}
