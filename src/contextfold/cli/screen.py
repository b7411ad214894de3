"""How a person sees a report: bars, tables and sentences, in colour on a terminal and plain elsewhere.

What belongs here: words, layout and colour. What does not: figures (``report``, ``inspection``) and the arithmetic of
bars (``charts``).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contextfold.cli import charts
from contextfold.observe import LEVELS

if TYPE_CHECKING:
    from contextfold.cli.inspection import Inspection
    from contextfold.compactor import CompactionResult
    from contextfold.transcripts import Conversation

BAR = 36
"""Cells of the longest bar."""
PLOT_WIDTH = 60
PLOT_HEIGHT = 6
SUMMARY_LINES = 14
"""Lines of a summary that are shown."""
REASONS = 4
"""Reasons that are named per fate."""

TIERS = {
    "tool_arguments": "old tool-call arguments",
    "tool_outputs": "old tool outputs",
    "media": "old images and documents",
    "reasoning": "old reasoning",
    "oversized": "oversized recent items",
}
WINDOW_SOURCES = {
    "default": "a cautious default, because neither --window nor --model says more",
    "registry": "as the registry says of this model",
}
FATES = {
    "kept": ("green", "word for word in the view"),
    "pinned": ("green", "word for word in every view"),
    "shortened": ("yellow", "in the view, with a mark where it was cut"),
    "summarised": ("cyan", "read by the summariser, no longer in the view"),
    "dropped": ("red", "no longer in the view"),
}


def console(*, stderr: bool = False) -> Console:
    """A console that says in plain text what it would say in colour."""
    return Console(stderr=stderr, highlight=False, soft_wrap=False, emoji=False, markup=False)


# ---- compact ----


@dataclass(frozen=True, slots=True)
class Done:
    """A compaction and what stands around it: the input's name, the file that the view went to, and who says how
    large the window is (a source of ``contextfold.window``).
    """

    result: CompactionResult
    name: str
    output: str | None
    window_source: str
    seconds: float


def show_compaction(out: Console, done: Done) -> None:
    """The report of ``contextfold compact``."""
    result = done.result
    _headline(out, done.name, result.format, len(result.ledger))
    if result.changed:
        _show_sizes(out, result, _window(done))
        _show_savings(out, result)
        _show_fates(out, result)
        _show_floor(out, result)
        _show_summary(out, result)
    else:
        says = f"Nothing to do: {result.tokens_before:,} tokens do not reach the trigger ({_window(done)})."
        _section(out, None, Text(f"{says} The view is the conversation as it stands."))
    _show_warnings(out, result)
    _show_whereabouts(out, done)


def _window(done: Done) -> str:
    source = WINDOW_SOURCES.get(done.window_source)
    return f"window {done.result.window:,}" + (f", {source}" if source else "")


def _headline(out: Console, name: str, format: str, messages: int) -> None:
    out.print(Text.assemble((name, "bold"), f"  {format}, {_count(messages, 'message')}"))


def _show_sizes(out: Console, result: CompactionResult, window: str) -> None:
    of = max(result.tokens_before, result.window)
    rows = [
        ("before", result.tokens_before, len(result.ledger), "red"),
        ("after", result.tokens_after, len(result.messages), "green"),
    ]
    table = _table("<<><><")
    for label, tokens, messages, colour in rows:
        bar = charts.bar(tokens, of, BAR, ascii_only=_ascii_only(out))
        table.add_row(label, Text(bar, colour), f"{tokens:,}", "tokens", f"{messages:,}", "messages")
    _section(out, None, table)
    less = 1 - result.tokens_after / result.tokens_before if result.tokens_before else 0
    limits = f"trigger {result.trigger}, target {result.target:,}, {window}"
    out.print(Text(f"  {less:.0%} less; {limits}", "dim"))


def _show_savings(out: Console, result: CompactionResult) -> None:
    """What each tier saved; what is left of the difference is the work of the summary."""
    saved = Counter[str]()
    for event in result.events:
        if event.name == "tier_applied":
            saved[TIERS.get(event.data["tier"], event.data["tier"].replace("_", " "))] += int(event.data["saved"])
    total = result.tokens_before - result.tokens_after
    evicted = total - sum(saved.values())
    if result.summary is not None and evicted > 0:
        saved["messages replaced by the summary"] = evicted
    rows = [(label, tokens) for label, tokens in saved.most_common() if tokens > 0]
    table = _table("<><")
    for label, tokens in rows:
        table.add_row(
            label, f"-{tokens:,}", Text(charts.bar(tokens, total, BAR // 2, ascii_only=_ascii_only(out)), "cyan")
        )
    if rows:
        _section(out, "What made room, in tokens", table)


def _show_fates(out: Console, result: CompactionResult) -> None:
    reasons: dict[str, Counter[str]] = {}
    for entry in result.ledger:
        reasons.setdefault(entry.fate, Counter())[entry.reason] += 1
    table = _table("<><", wrap=True)
    for fate, number in result.ledger.counts().items():
        if number:
            colour, meaning = FATES[fate]
            why = Text.assemble(meaning, (f" ({_reasons(reasons[fate])})", "dim"))
            table.add_row(Text(fate, colour), f"{number:,}", why)
    _section(out, "Where every message went", table)


def _reasons(counted: Counter[str]) -> str:
    if len(counted) == 1:
        return next(iter(counted))
    named = [f"{reason} {number:,}" for reason, number in counted.most_common(REASONS)]
    more = len(counted) - REASONS
    return ", ".join(named) + (f", {more} more" if more > 0 else "")


def _show_floor(out: Console, result: CompactionResult) -> None:
    if result.floor:
        items = ", ".join(f"{name} {size:,}" for name, size in result.floor.items())
        total = sum(result.floor.values())
        _section(out, f"What no compaction removes: {total:,} tokens", Text(items, "dim"))


def _show_summary(out: Console, result: CompactionResult) -> None:
    summary = result.summary
    if summary is None:
        return
    made = [f"{summary.output_tokens:,} tokens for {summary.input_tokens:,}", f"by {summary.algorithm}"]
    if summary.calls:
        made.append(
            f"{_count(summary.calls, 'call')}, {_count(summary.chunk_count, 'chunk')}, depth {summary.max_depth}"
        )
    if summary.truncated:
        made.append("truncated")
    _section(out, f"The summary ({', '.join(made)})", _excerpt(summary.text.splitlines(), "cyan"))
    evidence = getattr(summary, "evidence", "").splitlines()
    if evidence:
        _section(
            out,
            f"Word for word beside it ({_count(len(evidence), 'line')} of the originals)",
            _excerpt(evidence, "cyan", 5),
        )


def _excerpt(lines: Sequence[str], colour: str, limit: int = SUMMARY_LINES) -> Table:
    """The first lines behind a rule, one screen line each."""
    table = Table.grid(padding=(0, 1))
    table.add_column(min_width=1)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines[:limit]:
        table.add_row(Text("│", colour), Text(line.rstrip()))
    if len(lines) > limit:
        table.add_row(Text("│", colour), Text(f"… {_count(len(lines) - limit, 'more line')}", "dim"))
    return table


def _show_warnings(out: Console, result: CompactionResult) -> None:
    warnings = [event.message for event in result.events if LEVELS[event.name] >= logging.WARNING]
    if warnings:
        _section(out, "Worth knowing", Text("\n".join(warnings), "yellow"))


def _show_whereabouts(out: Console, done: Done) -> None:
    says = [f"Took {done.seconds:.2f} s."]
    if done.output is not None:
        says.append(f"The view is in {done.output}.")
    if done.result.changed and done.output != done.name:
        says.append(f"All originals are untouched in {done.name}; --report json gives the fate of each by its index.")
    _section(out, None, Text(" ".join(says), "dim"))


# ---- inspect ----


def show_inspection(out: Console, name: str, found: Inspection) -> None:
    """The report of ``contextfold inspect``."""
    _headline(out, name, found.format, found.messages)
    out.print(f"  {found.tokens:,} tokens in {_count(found.groups, 'group')} ({found.kind})")
    _show_plot(out, found)
    _show_shares(out, found)
    _show_largest(out, found)
    _show_groups(out, found)
    _show_faults(out, found)


def _show_plot(out: Console, found: Inspection) -> None:
    values = charts.columns(found.sizes, PLOT_WIDTH)
    if not values:
        return
    rows = charts.plot(values, PLOT_HEIGHT, ascii_only=_ascii_only(out))
    label = f"{max(values):,}"
    lines = [f"{label if number == 0 else '':>{len(label)}} {row}" for number, row in enumerate(rows)]
    last = str(found.messages - 1)
    lines.append(f"{'':>{len(label)}} 0{last:>{max(1, len(values) - 1)}}")
    _section(out, "Tokens along the conversation, by message index", Text("\n".join(lines), "cyan"))


def _show_shares(out: Console, found: Inspection) -> None:
    table = _table("<>>><")
    for share in found.roles:
        table.add_row(share.role, *_weights(out, share.messages, share.tokens, found.tokens))
    _section(out, "By role: messages, tokens, share", table)
    table = _table("<>>><")
    for tool in found.tools[:10]:
        table.add_row(tool.tool, *_weights(out, tool.calls, tool.tokens, found.tokens))
    if len(found.tools) > 10:
        rest = found.tools[10:]
        label = f"{len(rest)} more"
        table.add_row(label, *_weights(out, sum(t.calls for t in rest), sum(t.tokens for t in rest), found.tokens))
    if found.tools:
        _section(out, "By tool: calls, tokens of arguments and results, share", table)


def _weights(out: Console, count: int, tokens: int, of: int) -> tuple[str, str, str, Text]:
    share = tokens / of if of else 0
    bar = charts.bar(tokens, of, BAR // 2, ascii_only=_ascii_only(out))
    return f"{count:,}", f"{tokens:,}", f"{share:.1%}", Text(bar, "cyan")


def _show_largest(out: Console, found: Inspection) -> None:
    table = _table("><><")
    for large in found.largest[:5]:
        table.add_row(f"{large.index}", large.role, f"{large.tokens:,}", Text(large.preview, "dim"))
    if found.largest:
        _section(out, "Largest messages: index, role, tokens", table)


def _show_groups(out: Console, found: Inspection) -> None:
    table = _table("<>><")
    for large in found.largest_groups[:5]:
        pending = "waits for a result" if large.pending else ""
        table.add_row(f"{large.first} to {large.last}", f"{large.messages:,}", f"{large.tokens:,}", pending)
    if found.largest_groups:
        _section(out, "Largest groups, which stand or fall together: messages, tokens", table)


def _show_faults(out: Console, found: Inspection) -> None:
    if not found.faults:
        out.print()
        out.print(Text("  No broken pairs: every result has its call, and every call its result.", "green"))
        return
    shown = list(found.faults[:10])
    if len(found.faults) > len(shown):
        shown.append(f"… {len(found.faults) - len(shown)} more; --report json lists all")
    _section(out, f"Broken ({len(found.faults):,})", Text("\n".join(shown), "yellow"))


# ---- choosing ----


def show_conversations(out: Console, conversations: Sequence[Conversation]) -> None:
    """What a file holds, for choosing with ``--pick``."""
    from contextfold.cli.inspection import counter_for, decoded, first_words

    table = _table(">>><")
    table.add_row("N", "messages", "tokens", "begins with", style="bold")
    for number, conversation in enumerate(conversations, 1):
        messages = decoded(conversation)
        counter = counter_for(conversation)
        tokens = sum(counter.message(message) for message in messages)
        begins = first_words(messages) or conversation.name
        table.add_row(f"{number}", f"{len(messages):,}", f"{tokens:,}", Text(begins))
    _section(out, None, table)


# ---- shared ----


def _section(out: Console, title: str | None, body: Table | Text) -> None:
    out.print()
    if title:
        out.print(Text(f"  {title}", "bold"))
    out.print(Padding(body, (0, 0, 0, 4 if title else 2), expand=False))


def _table(columns: str, *, wrap: bool = False) -> Table:
    """A table without borders: each ``<`` and ``>`` is a column flush left or right; the last one may wrap."""
    table = Table.grid(padding=(0, 2))
    for number, side in enumerate(columns, 1):
        one_line = not (wrap and number == len(columns))
        table.add_column(
            justify="right" if side == ">" else "left", no_wrap=one_line, overflow="ellipsis" if one_line else "fold"
        )
    return table


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _ascii_only(out: Console) -> bool:
    return not out.encoding.startswith("utf")
