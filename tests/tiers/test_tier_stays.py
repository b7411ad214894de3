"""What a tier makes of a part stays what it is: records name a tier and a limit, and views are made from them again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b

import pytest

from contextfold.messages import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from contextfold.tiers import TIERS, reduce

PATHS = [f"src/app/module_{n * 37 % 101}/handler_{n * 53 % 89}.py" for n in range(120)]
TIMES = [f"2026-01-20 10:{n // 60:02}:{n % 60:02}" for n in range(90)]
LOG = [f"{time} INFO worker-{n * 7 % 9} stored {PATHS[n]} in {n * 31} ms" for n, time in enumerate(TIMES)]
FAILED = ["Traceback (most recent call last):", '  File "a.py", line 3', "ValueError: x"]
ROWS = [f"job-{n},{'failed' if n == 17 else 'done'},{n * 13}" for n in range(60)]
MARKED = "…[1,234 characters shortened]"
FIELDS = {
    **{f"field_{n}": f"value {n}" * (1 + n % 5) for n in range(30)},
    "items": [{"id": n, "path": PATHS[n], "note": "word " * (n % 40)} for n in range(40)],
    "Status": "failed",
    "exit_code": 2,
    "deep": {"a": {"b": {"c": {"d": {"e": list(range(50))}}}}},
}
TEXTS = {
    "a log": "\n".join([*LOG[:40], "ERROR: disk full", *LOG[40:70], "WARNING: retry 3", "exit code 1", *LOG[70:]]),
    "a long log": "\n".join([*LOG * 6, *FAILED, *LOG * 2]),
    "lines that repeat": "start\n" + "waiting for the lock\n" * 200 + "a\n" * 9 + "ERROR: 1\nERROR: 2\n" + "\n" * 40,
    "rows with commas": "name,state,ms\n" + "\n".join(ROWS),
    "five rows": "name,state,ms\n" + "\n".join(f"{'x' * 200} {row}" for row in ROWS[:4]),
    "two columns": "\n".join(f"{path},{n}" for n, path in enumerate(PATHS)),
    "tabs": "\n".join(f"{path}\t{n}" for n, path in enumerate(PATHS)),
    "numbers in columns": "\n".join(f"{n},{n * 3},{n * 7}" for n in range(150)),
    "a table": "| name | state |\n|---|---|\n" + "\n".join(f"| {path} | done |" for path in PATHS),
    "a wide table": "| name | state |\n|---|---|\n" + "\n".join(f"| {'wide ' * 90} | {n} |" for n in range(9)),
    "columns": "NAME   READY   STATUS\n" + "\n".join(f"pod-{n}   1/1   Running" for n in range(80)),
    "prose": " ".join(f"The order {n} was sent to {PATHS[n]} at noon. Nobody answered in time!" for n in range(80)),
    "no prose": " ".join(PATHS * 3),
    "one line": "x" * 5_000,
    "Chinese": "网关在三百毫秒内返回，日志写入 /var/log/app/网关.log。" * 60,
    "json": json.dumps(FIELDS),
    "json with blanks": json.dumps(FIELDS, indent=4, ensure_ascii=False),
    "a list": json.dumps([{"n": n, "name": PATHS[n]} for n in range(100)]),
    "json lines": "\n".join(json.dumps({"n": n, "path": PATHS[n], "log": LOG[n], "in": {"a": [n]}}) for n in range(80)),
    "two json lines": "\n".join(json.dumps({"log": "\n".join(LOG)}) for _ in range(2)),
    "small lists": json.dumps([[1, 2, 3, 4, 5, 6, 7, 8, 9]] * 60),
    "eight items": json.dumps([f"{n}" * 90 for n in range(8)]),
    "long names": json.dumps({"name " * 90: 1, "other " * 90: {"x" * 200: {"y" * 200: {"z" * 90: [1, 2]}}}}),
    "a json string": json.dumps("\n".join(LOG)),
    "shortened lines": "\n".join(
        [*LOG[:9], "…[3 rows, 96 lines shortened]", *LOG[9:60], *["…[3 lines shortened]"] * 9, MARKED]
    ),
    "a shortened line": "word " * 80 + MARKED + " word" * 300 + MARKED + "word " * 20,
    "shortened json": json.dumps(
        {"a": [1, 2, "…[60 items shortened]", 3, *PATHS[:40]], "b": MARKED, "…": "…[9 fields shortened]"}
    ),
    "shortened json lines": "\n".join([*(json.dumps({"path": path}) for path in PATHS), '"…[7 items shortened]"']),
}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJaAAAgAElEQVR4" * 40


def parts() -> Iterator[Part]:
    for text in TEXTS.values():
        yield Text(text)
        yield ToolResult("call_1", (Text(text),))
        yield ToolCall("call_1", "write", json.dumps({"path": "a.py", "content": text, "lines": text.splitlines()[:9]}))
        yield ToolCall("call_1", "write", json.dumps({"content": text}, separators=(",", ":")))
        yield ToolCall("call_1", "apply_patch", text, custom=True)
        yield ToolCall("call_1", "write", text)
    image, page = Media("image", "image/png", IMAGE), Opaque("search_result", "found " * 400)
    yield ToolResult("call_1", (Text(TEXTS["a log"]), image, Text("done"), page, Text(TEXTS["json"])))
    yield ToolResult("call_1", tuple(Text(line) for line in LOG))
    yield ToolResult("call_1", (image,) * 9)
    yield ToolResult("call_1", (image, Opaque("search_result", "found " * 20)))
    yield image
    yield Media("image", url="https://example.com/a.png", name="a\nb.png")
    yield Media("audio", "audio/wav", "A" * 1366)
    yield Reasoning("thought " * 50)


def shown(part: Part | None) -> str:
    """What a model reads of a part."""
    if isinstance(part, ToolResult):
        return "\n".join(map(shown, part.content))
    if isinstance(part, ToolCall):
        return part.arguments
    return part.text if isinstance(part, Text | Opaque) else type(part).__name__


KEPT = {
    "tool_arguments": "abd1c3c4775e7625",
    "tool_outputs": "bf0b219dac7c2c51",
    "media": "5e90dff0eb8cb27c",
    "reasoning": "7db05c96da3aae3a",
    "oversized": "9e2aede3c9942a8c",
    "joined": "a854f0549bfa9652",
}


@pytest.mark.parametrize("name", list(TIERS))
def test_what_a_tier_makes_of_a_part_only_changes_with_its_name(name: str) -> None:
    """Else the view of a stored record is another one than was sent. Where that is meant, the changelog says it."""
    made = "\n\n".join(shown(reduce(part, name, limit)) for part in parts() for limit in (0, 110, 300))
    found = blake2b(made.encode(), digest_size=8).hexdigest()
    assert found == KEPT.get(name)
