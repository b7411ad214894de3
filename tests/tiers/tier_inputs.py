"""Texts, JSON, tables and logs to reduce: hypothesis strategies shared by the tests of all tiers."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

unhurried = settings(deadline=None)
"""For properties over long texts: how long one example takes says more about the machine than about the code."""

SCRIPTS = (
    "The gateway answered in 312 ms and wrote /var/log/app/gateway.log. ",
    "网关在三百毫秒内返回，日志写入 /var/log/app/网关.log。",
    "ゲートウェイは応答し、ログを保存しました。",
    "게이트웨이가 응답했고 로그를 저장했습니다. ",
    "Шлюз ответил за 312 мс и записал журнал. ",
    "def handler(event: Event) -> None:\n    raise ValueError(event.name)\n",
    "🚀🎉👩‍👩‍👧‍👦🇩🇪 ",
    "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJaAAAgAElEQVR4",
    "\n\n\n",
    "…[",
    "…[12 lines, 345 characters shortened]",
)
"""Words of several languages, code, emoji, encoded data, blank lines, and what looks like a marker or is one."""


@st.composite
def texts(draw: st.DrawFn, least: int = 0, most: int = 6_000) -> str:
    """A text of mixed scripts, on one line or many, up to ``most`` characters long."""
    seed = draw(st.integers(0, 10_000))
    source = random.Random(seed)
    length = draw(st.integers(least, most))
    chosen = draw(st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=4))
    ending = draw(st.sampled_from(("", "\n", " ")))
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(source.choice(chosen) + str(source.randrange(1_000)) * source.randrange(2) + ending)
    return draw(st.text(max_size=20)) + "".join(parts)[:length]


def values(longest: int = 400) -> st.SearchStrategy[Any]:
    """Any JSON value, with strings of up to ``longest`` characters."""
    strings = st.one_of(st.text(max_size=12), texts(0, longest))
    scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), strings)
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=30),
            st.dictionaries(st.sampled_from(("path", "status", "items", "…", "n", "错误", "content")), inner),
            st.dictionaries(st.text(max_size=8), inner, max_size=30),
        ),
        max_leaves=60,
    )


def containers(longest: int = 400) -> st.SearchStrategy[Any]:
    """JSON objects and arrays."""
    return values(longest).filter(lambda value: isinstance(value, dict | list))


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """JSON documents and JSON lines, in the spellings that tools use."""
    indent = draw(st.sampled_from((None, 2)))
    ascii_only = draw(st.booleans())
    if draw(st.booleans()):
        return json.dumps(draw(containers()), indent=indent, ensure_ascii=ascii_only)
    return "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in draw(st.lists(containers(80), min_size=2)))


def log(lines: int, seed: int = 0) -> list[str]:
    """Lines of a log without any error in it."""
    source = random.Random(seed)
    verbs = ("handled", "queued", "stored", "sent")
    return [
        f"2026-01-20 10:{index // 60 % 60:02}:{index % 60:02} INFO worker-{source.randrange(9)} "
        f"{source.choice(verbs)} /api/v1/orders/{source.randrange(100_000)} in {source.randrange(900)} ms"
        for index in range(lines)
    ]
