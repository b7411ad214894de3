"""The one summarizer that every strategy is given: deterministic, extractive, no model.

What it saw and what it said is recorded, because the interesting question is how much of the evicted text a strategy
lets a summarizer see at all. What belongs here: the stub, and reading whatever a strategy hands it. What does not:
which lines it picks (``extract``).
"""

from __future__ import annotations

import json
import time
from typing import Any

from benchmarks.replay import tokens
from benchmarks.replay.chat import calls, content_text, with_calls
from benchmarks.replay.extract import Turn, extract

OUTPUT_TOKENS = 1_000
"""The most that it ever says."""
_ROLES = {"human": "user", "ai": "assistant"}
_HOLDERS = ("messages", "prompt", "text", "content")
"""Where objects and mappings that wrap a prompt have it."""


class Summarizer:
    """Call it with a prompt, chat dictionaries, LangChain messages, or something that holds one of them."""

    def __init__(self) -> None:
        self.inputs: list[str] = []
        """Every text that it was shown."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.seconds = 0.0

    def __call__(self, material: Any, *_: Any, **__: Any) -> str:
        started = time.perf_counter()
        turns = turns_of(material)
        text = "\n".join(said for _, said in turns)
        summary = extract(turns, OUTPUT_TOKENS)
        self.inputs.append(text)
        self.input_tokens += tokens.count(text)
        self.output_tokens += tokens.count(summary)
        self.seconds += time.perf_counter() - started
        return summary


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
