"""Conversations for the tests of batches: small, made up, and the same in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make_talk(turns: int, seed: int = 0, *, words: int = 60) -> list[dict[str, Any]]:
    """An agent that reads files for a user: a call, its result and an answer in each turn."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful engineer."}]
    for turn in range(turns):
        name = _name(seed, turn)
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
            {"role": "assistant", "content": f"I read {name}. It imports {_name(seed, turn // 2)}."},
        ]
    return messages


def _name(seed: int, turn: int) -> str:
    return f"src/module_{seed}_{turn}/handler_{turn:03d}.py"


def lines_of(path: Path) -> list[Any]:
    """The values of the lines of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """All rows of a result, without the time that each took."""
    found = [row for part in sorted(folder.glob("part-*.jsonl")) for row in lines_of(part)]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]
