"""Conversations for the tests of batches: small, made up, and the same in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make_talk(turns: int, seed: int = 0, *, words: int = 60) -> list[dict[str, Any]]:
    """An agent that reads files for a user: a call, its result and an answer in each turn."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful engineer."}]
    for turn in range(turns):
        name = f"src/module_{seed}_{turn}/handler_{turn:03d}.py"
        call = {"name": "read_file", "arguments": json.dumps({"path": name})}
        said = " ".join(f"line {seed}-{turn}-{n} raises E{seed:02d}{turn:03d}{n:02d}" for n in range(words // 6))
        messages += [
            {"role": "user", "content": f"Please look at {name}. You must never touch table_{seed}_{turn}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{seed}_{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{seed}_{turn}", "content": said},
            {"role": "assistant", "content": f"I read {name}; after src/module_{seed}_0/handler_000.py it is the next."},
        ]
    return messages


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """All rows of a result, without the time that each took."""
    found = [json.loads(line) for part in sorted(folder.glob("part-*.jsonl")) for line in part.open(encoding="utf-8")]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]
