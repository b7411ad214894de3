"""The one summarizer that every strategy is given: deterministic, extractive, no model.

What it saw and what it said is recorded, because the interesting question is how much of the evicted text a strategy
lets a summarizer see at all. What belongs here: the stub, and reading whatever a strategy hands it. What does not:
which lines it picks (``extract``).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.replay import tokens
from benchmarks.replay.chat import Message, calls, content_text, with_calls
from benchmarks.replay.extract import Turn, extract

OUTPUT_TOKENS = 1_000
"""The most that it ever says."""
_ROLES = {"human": "user", "ai": "assistant"}
_ASKED = re.compile(r"at most (\d+) tokens")
_HOLDERS = ("messages", "prompt", "text", "content")
"""Where objects and mappings that wrap a prompt have it."""


class Summarizer:
    """Call it with a prompt, chat dictionaries, LangChain messages, or something that holds one of them."""

    def __init__(self) -> None:
        self.inputs: list[str] = []
        """Every text that it was shown."""
        self.sizes: list[int] = []
        """Tokens of each of them."""
        self.cached: list[int] = []
        """Of these, what the provider read from its cache."""
        self.output_tokens = 0
        self.seconds = 0.0

    @property
    def input_tokens(self) -> int:
        return sum(self.sizes)

    def __call__(self, material: Any, *_: Any, longest: int = OUTPUT_TOKENS, **__: Any) -> str:
        started = time.perf_counter()
        turns = turns_of(material)
        text = "\n".join(said for _, said in turns)
        self._spent(text, tokens.count(text), 0)
        return self._said(turns, longest, started)

    def behind(self, view: Sequence[Message], instruction: Message, sent: Sequence[Message], longest: int) -> str:
        """The summary by the agent's own model: asked with a view and an instruction behind it.

        Args:
            sent: the view of the last request. What both begin with is in the provider's cache.
            longest: tokens of the answer.
        """
        started = time.perf_counter()
        sizes = [tokens.message_tokens(message) for message in view]
        same = next((n for n, (now, then) in enumerate(zip(view, sent, strict=False)) if now != then), None)
        same = min(len(view), len(sent)) if same is None else same
        turns = turns_of(view)
        self._spent(
            "\n".join([*(said for _, said in turns), content_text(instruction.get("content"))]),
            sum(sizes) + tokens.message_tokens(instruction),
            sum(sizes[:same]),
        )
        return self._said(turns, longest, started)

    def _spent(self, text: str, size: int, cached: int) -> None:
        self.inputs.append(text)
        self.sizes.append(size)
        self.cached.append(cached)

    def _said(self, turns: list[Turn], limit: int, started: float) -> str:
        summary = extract(turns, limit)
        self.output_tokens += tokens.count(summary)
        self.seconds += time.perf_counter() - started
        return summary


def asked_for(prompt: str) -> int:
    """How many tokens a model writes that does what it is asked."""
    found = _ASKED.search(prompt)
    return min(OUTPUT_TOKENS, int(found[1])) if found else OUTPUT_TOKENS


def turns_of(material: Any) -> list[Turn]:
    """(role, text) pairs of whatever a strategy hands over."""
    if isinstance(material, str):
        return [("prompt", material)]
    if isinstance(material, list | tuple):
        return [turn for part in material for turn in turns_of(part)]
    if isinstance(material, dict) and "role" in material:
        return [(material["role"], with_calls(content_text(material.get("content")), calls(material)))]
    if hasattr(material, "content") and hasattr(material, "type"):
        return [_of_langchain(material)]
    for name in _HOLDERS:
        held = material.get(name) if isinstance(material, dict) else getattr(material, name, None)
        if held:
            return turns_of(held)
    return [("prompt", str(material))]


def _of_langchain(message: Any) -> Turn:
    made = getattr(message, "tool_calls", None) or ()
    used = [(call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in made]
    return _ROLES.get(message.type, message.type), with_calls(content_text(message.content), used)
