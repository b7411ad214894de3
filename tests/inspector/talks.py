"""Conversations for the tests of the inspector, and reading a document the way its page does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from typing import Any

from contextfold import Compactor
from contextfold.inspector.replayed import Setting, replayed
from contextfold.transcripts import Conversation

WINDOW = 3_000


def tool_loop(turns: int, *, lines: int = 24) -> list[dict[str, Any]]:
    """An agent that reads files, with names that come back much later."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work in a repository."},
        {"role": "user", "content": "Find out why invoice INV-20417 is wrong. Never touch config/production.yaml."},
    ]
    for turn in range(turns):
        path = f"app/module_{turn:03d}.py"
        arguments = json.dumps({"path": path, "reason": f"step {turn}"})
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        late = f" As handler_{turn - 9:03d}_total said before." if turn > 9 else ""
        messages.append({"role": "assistant", "content": f"I read {path} next.{late}", "tool_calls": [call]})
        body = "\n".join(
            f"def handler_{turn:03d}_{line}(value): return value * {turn * 100 + line}" for line in range(lines)
        )
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"handler_{turn:03d}_total = {turn}\n{body}"}
        )
    messages.append({"role": "assistant", "content": "INV-20417 is wrong because of handler_003_total."})
    messages.append({"role": "user", "content": "Thanks. Which file was it in?"})
    return messages


def conversation(messages: Sequence[Any], name: str = "made.json", format: str = "openai-chat") -> Conversation:
    return Conversation(name, format, list(messages), "messages")


def document(messages: Sequence[Any], *windows: int, **options: Any) -> dict[str, Any]:
    """The document of a replay in these windows (one or two)."""
    settings = [Setting(f"window={window}", Compactor(window=window)) for window in windows or (WINDOW,)]
    return replayed(conversation(messages), settings, **options)


def fates(run: dict[str, Any], request: int, length: int) -> list[str]:
    """The fate of every message at a request."""
    found = ["kept"] * length
    for start, stop, fate, _ in run["states"][run["requests"]["state"][request]]["fates"]:
        found[start:stop] = [fate] * len(found[start:stop])
    return found


def shown(run: dict[str, Any], request: int, length: int) -> list[int]:
    """Which messages stand in the view of a request."""
    until = run["requests"]["index"][request]
    return [n for n, fate in enumerate(fates(run, request, length)[:until]) if fate not in ("summarized", "dropped")]


def unpacked(page: bytes) -> dict[str, Any]:
    """The document in a report."""
    held = re.search(rb'<script id="document" type="application/gzip">([\w+/=]+)</script>', page)
    assert held is not None, "there is no document in this file"
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(held[1])))
    return found
