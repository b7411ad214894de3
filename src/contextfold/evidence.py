"""Verbatim lines worth carrying: chosen by code from everything that has left the view.

What belongs here: cutting messages into candidate lines, weighing the identifiers in them, and choosing lines under a
token budget. What does not: recognising identifiers (``identifiers``), prose (``summary``), and where the chosen lines
stand in the view (the engine).

How likely is an identifier to be needed again? In human environments the odds follow a power law of how long ago and
how often it was met (Anderson and Schooler, "Reflections of the Environment in Memory", 1991), and agent sessions obey
the same law: fitted to when identifiers of evicted messages came back in 22 real conversations, the exponent is 1.0
(0.8 to 1.3 over windows of 16k to 64k tokens), and one mention by the assistant is worth about three by a user and
ten in a tool's output. An identifier therefore weighs the sum over its mentions of ``MENTION[source] / age``.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from contextfold import identifiers
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult

Source = Literal["assistant", "call", "user", "result"]

WIDTH = 160
"""Characters. A longer source line is cut into windows of at most this size."""

MENTION = {"assistant": 1.0, "call": 1.0, "user": 0.4, "result": 0.1}
YOUNGEST = 500
OVERHEAD = 4


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    source: Source
    names: tuple[str, ...]
    bonus: float = 0.0


def lines_of(message: Message) -> tuple[Line, ...]:
    found: list[Line] = []
    for part in message.parts:
        if isinstance(part, Text | Opaque):
            found += _text_lines(part.text, "user" if message.role == "user" else "assistant")
        elif isinstance(part, ToolCall):
            found += _call_lines(part)
        elif isinstance(part, ToolResult):
            found += _text_lines(part.text, "result")
    return tuple(found)


_GUTTER = re.compile(r"^\s*\d+(?:→|\t|\s*\|\s)")
_ESCAPED = re.compile(r"(?:\\+[nrt])+")
_BREAK = re.compile(r"[\s,;|&。，、；！？]")


def _text_lines(text: str, source: Source) -> Iterator[Line]:
    for raw in text.splitlines():
        line = _GUTTER.sub("", raw).strip()
        for piece in _pieces(line):
            names = identifiers.names(piece)
            if names:
                yield Line(piece, source, names)


def _pieces(line: str) -> Iterator[str]:
    if len(line) <= WIDTH:
        yield line
        return
    parts = _ESCAPED.split(line) if line.count("\\") > 3 else [line]
    for part in parts:
        yield from _windows(part)


def _windows(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > WIDTH:
        end = start + WIDTH
        cut = max(line.rfind(". ", start + WIDTH // 2, end), line.rfind("。", start + WIDTH // 2, end))
        if cut < 0:
            cut = line.rfind(" ", start + WIDTH // 2, end)
        if cut < 0:
            hit = _BREAK.search(line, end, end + identifiers.LONGEST)
            cut = hit.start() if hit else end
        yield line[start : cut + 1].strip()
        start = cut + 1
    yield line[start:].strip()


def _call_lines(call: ToolCall) -> Iterator[Line]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    short, long = [], []
    for key, value in _leaves(arguments):
        (short if len(value) <= WIDTH and "\n" not in value else long).append((key, value))
    head, names = call.name, []
    for key, value in short:
        item = f"{key}: {value}" if key else value
        if len(head) + len(item) > WIDTH and names:
            yield Line(head, "call", tuple(dict.fromkeys(names)))
            head, names = "", []
        head = f"{head} {item}" if head else item
        names += identifiers.names(value)
    if names:
        yield Line(head, "call", tuple(dict.fromkeys(names)))
    for _, value in long:
        yield from _text_lines(value, "call")


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    elif value is not None and not isinstance(value, bool):
        yield key, str(value)


def select(
    candidates: Sequence[tuple[int, tuple[Line, ...]]],
    *,
    budget: int,
    already: Collection[str],
    count: Callable[[str], int],
    now: int,
) -> str:
    weights = _weights(candidates, now)
    for name in already:
        weights.pop(name, None)
    pool = [line for _, lines in candidates for line in lines]
    chosen = _greedy(pool, weights, budget, count)
    return _render([pool[n] for n in sorted(chosen)])


def _weights(candidates: Sequence[tuple[int, tuple[Line, ...]]], now: int) -> dict[str, float]:
    weights: dict[str, float] = {}
    for position, lines in candidates:
        age = (now - position + YOUNGEST) / 1000
        for name, source in {(name, line.source): None for line in lines for name in line.names}:
            weights[name] = weights.get(name, 0.0) + MENTION[source] / age
    return weights


def _greedy(pool: Sequence[Line], weights: dict[str, float], budget: int, count: Callable[[str], int]) -> list[int]:
    def gain(n: int) -> float:
        line = pool[n]
        return sum(weights.get(name, 0.0) for name in line.names) / (OVERHEAD + len(line.text) / 4)

    queue = [(-gain(n), n) for n in range(len(pool) - 1, -1, -1)]
    heapq.heapify(queue)
    chosen: list[int] = []
    spent = 0
    while queue and spent < budget - 10:
        value, n = heapq.heappop(queue)
        now = gain(n)
        if now <= 0:
            continue
        if now < -value - 1e-12:
            heapq.heappush(queue, (-now, n))
            continue
        cost = count(pool[n].text) + 1
        if spent + cost > budget:
            continue
        chosen.append(n)
        spent += cost
        for name in pool[n].names:
            weights.pop(name, None)
    return chosen


def _render(lines: Sequence[Line]) -> str:
    out: list[str] = []
    previous = ""
    for line in lines:
        if line.source != previous:
            out.append(f"[{line.source}]")
            previous = line.source
        out.append(line.text)
    return "\n".join(out)
