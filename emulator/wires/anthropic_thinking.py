"""Thinking that is bound to what stood before it, as Anthropic's models from Fable 5.1 and 5.5 on sign it.

A signature holds a hash of the prefix (system, tools, and the messages before, without thinking in them) and the name
of the thinking block before it. A block is refused under another prefix, and behind another block than it was made
behind; the first one that is left may have lost those before it, so blocks can be removed from the start alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from emulator.problems import Problem
from emulator.wires.base import Body, listed

BETA = "thinking-binding-controls-2026-08-01"
_BINDING = re.compile(r"fable-5-[1-9]|-5-[5-9]\b")
_SIGNATURE = re.compile(r"bound-(?P<prefix>[0-9a-f]{24})-(?P<own>[0-9a-f]{12})-(?P<before>[0-9a-f]{12}|none)\Z")

REFUSAL = (
    "messages.{place}.content.{number}: Invalid signature in thinking block. The block is bound to a different "
    "conversation {what}: everything before a thinking block must be sent back unchanged. Remove the block and all "
    "that precede it, or set thinking.block_binding.prefix_mismatch_behavior."
)


def binds(model: str) -> bool:
    """Whether a model signs its thinking together with what stood before it."""
    return bool(_BINDING.search(model))


def thought(body: Body, model: str, number: int) -> dict[str, Any] | None:
    """The thinking block that opens an answer; None for a model or a request without such thinking."""
    asked = body.get("thinking")
    if not binds(model) or not isinstance(asked, Mapping) or asked.get("type") not in ("enabled", "adaptive"):
        return None
    messages = listed(body.get("messages"))
    prefix = _hash(body, messages)
    before = [found["own"] for *_, found in _signed(messages)]
    own = hashlib.sha256(f"{prefix} {number}".encode()).hexdigest()[:12]
    signature = f"bound-{prefix}-{own}-{before[-1] if before else 'none'}"
    return {"type": "thinking", "thinking": f"Thought number {number}, about what was asked.", "signature": signature}


def budget_problem(body: Body, headers: Mapping[str, str]) -> Problem | None:
    """A budget that is not below the answer's limit, unless thinking comes between calls of tools."""
    asked = body.get("thinking")
    budget = asked.get("budget_tokens") if isinstance(asked, Mapping) else None
    betas = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    if not isinstance(budget, int) or "interleaved-thinking" in betas:
        return None
    if budget < 1_024:
        return Problem("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= (body.get("max_tokens") or 0):
        return Problem("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation")
    return None


def binding_problem(body: Body, headers: Mapping[str, str]) -> Problem | None:
    """The first thinking block that is not bound to what stands before it now."""
    asked = body.get("thinking")
    binding = asked.get("block_binding") if isinstance(asked, Mapping) else None
    betas = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    if binding is not None and BETA not in betas:
        return Problem("thinking.block_binding: Extra inputs are not permitted")
    if isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block":
        return None
    messages = listed(body.get("messages"))
    known: str | None = None
    for place, number, found in _signed(messages):
        what = None
        if found["prefix"] != _hash(body, messages[:place]):
            what = "prefix"
        elif known is not None and found["before"] != known:
            what = "thinking block"
        if what is not None:
            return Problem(REFUSAL.format(place=place, number=number, what=what))
        known = found["own"]
    return None


def _signed(messages: list[Any]) -> Iterator[tuple[int, int, re.Match[str]]]:
    for place, message in enumerate(messages):
        content = message.get("content") if isinstance(message, Mapping) else None
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, Mapping) and (found := _SIGNATURE.match(str(block.get("signature", "")))):
                yield place, number, found


def _hash(body: Body, messages: list[Any]) -> str:
    plain = json.dumps([body.get("system"), body.get("tools"), _without_thinking(messages)], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:24]


def _without_thinking(value: Any) -> Any:
    """The value without thinking blocks, and without what says nothing: marks for the cache, and whether a content that
    is one text is written as a block.
    """
    if isinstance(value, Mapping):
        kept = {key: _without_thinking(inner) for key, inner in value.items() if key != "cache_control"}
        if isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    if isinstance(value, list):
        kept = [one for one in value if not (isinstance(one, Mapping) and "thinking" in str(one.get("type")))]
        return [_without_thinking(inner) for inner in kept]
    return value
