"""What a person reads: every figure in its place, on any width, in any encoding."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from contextfold.cli import screen
from contextfold.cli.inspection import inspect_conversation
from contextfold.conversation.ledger import Fate, Ledger, runs
from contextfold.messages import Message, Text
from contextfold.observe import Event
from contextfold.record.compaction import SummaryRecord
from contextfold.transcripts import Conversation


@dataclass
class Outcome:
    """What the screen reads of a ``CompactionResult``."""

    fates: list[tuple[Fate, str]]
    summary: SummaryRecord | None = None
    events: list[Event] = field(default_factory=list)
    floor: dict[str, int] = field(default_factory=dict)
    changed: bool = True
    tokens_before: int = 10_000
    tokens_after: int = 4_000
    window: int = 8_000
    target: int = 4_000
    trigger: str = "fraction:0.8"
    format: str = "anthropic"
    messages: list[Any] = field(default_factory=list)

    @property
    def ledger(self) -> Ledger:
        return Ledger(runs(self.fates), [Message("user", (Text("x"),))] * len(self.fates))


def shown(outcome: Outcome, width: int = 80) -> str:
    out = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    screen.show_compaction(out, screen.Done(outcome, "in.json", "view.json", "explicit", 1.5))  # type: ignore[arg-type]
    return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]


SUMMARY = SummaryRecord(
    text="\n".join(f"line {number} 没有空格的中文文本内容 without end" for number in range(40)),
    evidence="[user]\nport 55432",
    algorithm="bisect_v1",
    calls=3,
    chunk_count=2,
    max_depth=1,
    truncated=True,
    output_tokens=300,
    original_tokens=9_000,
)


def test_the_summary_is_shown_with_what_it_took() -> None:
    text = shown(Outcome([("summarized", "old")] * 3, SUMMARY))
    assert "300 tokens for 9,000, made by bisect_v1 in 3 calls, 2 chunks, depth 1," in text
    assert "truncated" in text
    assert "and 26 more lines" in text
    assert "Word for word beside it, in 2 lines" in text
    assert "port 55432" in text


def test_what_each_tier_saved_and_what_the_summary_saved_add_up() -> None:
    events = [
        Event("tier_applied", "", {"tier": "tool_outputs", "saved": 1_000}),
        Event("tier_applied", "", {"tier": "media", "saved": 500}),
        Event("compaction_started", "", {}),
    ]
    text = shown(Outcome([("summarized", "old")], SUMMARY, events))
    assert "old tool outputs" in text
    assert "-1,000" in text
    assert "-4,500" in text, "10,000 less 4,000 less 1,500"


def test_without_any_saving_or_floor_there_is_no_such_section() -> None:
    text = shown(Outcome([("kept", "recent")], tokens_after=10_000))
    assert "What made room" not in text
    assert "What no compaction removes" not in text
    assert "Where every message went" in text


def test_many_reasons_are_counted_and_the_rare_ones_left_out() -> None:
    fates: list[tuple[Fate, str]] = [("dropped", f"reason {number}") for number in range(6)]
    assert "2 more" in shown(Outcome(fates))


def test_an_empty_conversation_has_a_report() -> None:
    assert "0 messages" in shown(Outcome([], tokens_before=0, tokens_after=0))


def test_no_line_is_wider_than_the_screen_and_none_ends_in_blanks() -> None:
    events = [Event("history_repaired", "message 3: orphan result 'x' " * 9, {})]
    outcome = Outcome([("summarized", "old"), ("kept", "recent")], SUMMARY, events, {"system prompt": 9, "tools": 30})
    for width in (60, 80, 200):
        for line in shown(outcome, width).splitlines():
            assert cell_len(line) <= width
            assert line == line.rstrip()


def test_an_inspection_names_what_is_left_out() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": f"tool_{n}", "arguments": "{}"}} for n in range(12)
    ]
    wire = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    wire += [{"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Nothing."}]
    out = Console(file=io.StringIO(), width=80, highlight=False)
    found = inspect_conversation(Conversation("x", "openai-chat", wire, "messages"))
    screen.show_inspection(out, "in.json", found)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "2 more" in text, "twelve tools, ten shown"
    assert "Broken: 12 faults" in text
    assert "and 4 more; --report json lists all" in text


def test_an_empty_inspection_has_no_empty_tables() -> None:
    out = Console(file=io.StringIO(), width=80, highlight=False)
    screen.show_inspection(out, "in.json", inspect_conversation(Conversation("x", "openai-chat", [], "messages")))
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "0 tokens" in text
    assert "By role" not in text
    assert "Largest" not in text
