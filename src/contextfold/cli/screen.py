"""How a person sees a report: bars, tables and sentences, in color on a terminal and plain elsewhere.

What belongs here: words, layout and color. What does not: figures (``report``, ``inspection``) and the arithmetic of
bars (``charts``).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from contextfold.cli import charts
from contextfold.cli.terminal import visible
from contextfold.observe import LEVELS

if TYPE_CHECKING:
    from contextfold.cli.inspection import Inspection
    from contextfold.compactor import CompactionResult
    from contextfold.transcripts import Conversation

EDGE = "  "
"""Stands before every line, and between columns."""
BAR = 36
"""Cells of the longest bar."""
PLOT_WIDTH = 60
PLOT_HEIGHT = 6
SUMMARY_LINES = 14
EVIDENCE_LINES = 6
"""Lines that are shown."""
TOOLS = 10
LARGEST = 5
FAULTS = 8
"""How many of each are shown."""
REASONS = 4
"""Reasons that are named per fate."""

TIERS = {
    "tool_arguments": "old tool-call arguments",
    "tool_outputs": "old tool outputs",
    "media": "old images and documents",
    "reasoning": "old reasoning",
    "oversized": "oversized recent items",
    "joined": "what an earlier view joined to a message",
}
WINDOW_SOURCES = {
    "default": "a cautious default, because neither --window nor --model says more",
    "registry": "as the registry says of this model",
}
FATES = {
    "kept": ("green", "word for word in the view"),
    "pinned": ("green", "word for word in every view"),
    "shortened": ("yellow", "in the view, with a mark where it was cut"),
    "summarized": ("cyan", "read by the summarizer, no longer in the view"),
    "dropped": ("red", "no longer in the view"),
}


class VisibleConsole(Console):
    """A console whose colors are its own, and no one else's."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # segments with a control are rich's own, such as those that draw a bar anew
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """A console that says in plain text what it would say in color."""
    return VisibleConsole(stderr=stderr, highlight=False, soft_wrap=False, emoji=False, markup=False)


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
    model: str | None = None
    """The receiving model, as it was named."""
    is_kept: bool = True
    """Whether the originals still are where they were read: not where the view took their place, nor in a pipe."""


def show_compaction(out: Console, done: Done) -> None:
    """The report of ``contextfold compact``."""
    result = done.result
    window = window_said(result.window, done.window_source, done.model)
    _headline(out, done.name, result.format, len(result.ledger))
    if result.changed:
        _show_sizes(out, result, window)
        _show_savings(out, result)
        _show_fates(out, result)
        _show_floor(out, result)
        _show_summary(out, result)
    else:
        says = f"Nothing to do: {result.tokens_before:,} tokens do not reach the trigger ({window})."
        _section(out, None, _paragraph(out, f"{says} The view is the conversation as it stands."))
    _show_warnings(out, result)
    _show_whereabouts(out, done)


def window_said(tokens: int, source: str, model: str | None) -> str:
    """A window and who says it (a source of ``contextfold.window``), of a model as it was named."""
    because = WINDOW_SOURCES.get(source)
    if source == "default" and model is not None:
        because = f"a cautious default, because the window of {model} is not known: give --window"
    return f"window {tokens:,}" + (f", {because}" if because else "")


def _headline(out: Console, name: str, format: str, messages: int) -> None:
    out.print(Text.assemble((name, "bold"), f"{EDGE}{format}, {_count(messages, 'message')}"), soft_wrap=True)


def _show_sizes(out: Console, result: CompactionResult, window: str) -> None:
    of = max(result.tokens_before, result.window)
    sides = [
        ("before", result.tokens_before, len(result.ledger), "red"),
        ("after", result.tokens_after, len(result.messages), "green"),
    ]
    rows = []
    for label, tokens, messages, color in sides:
        bar = Text(_bar(out, tokens, of), color)
        rows.append((label, bar, f"{tokens:,}", "tokens", f"{messages:,}", "messages"))
    less = 1 - result.tokens_after / result.tokens_before if result.tokens_before else 0
    limits = f"{less:.0%} less; trigger {result.trigger}, target {result.target:,}, {window}"
    _section(out, None, [*_grid(out, "<<><><", rows), *_paragraph(out, limits, "dim")])


def _show_savings(out: Console, result: CompactionResult) -> None:
    """What each tier saved; what is left of the difference is the work of the summary."""
    saved = Counter[str]()
    for event in result.events:
        if event.name == "tier_applied":
            saved[TIERS.get(event.data["tier"], event.data["tier"])] += int(event.data["saved"])
    total = result.tokens_before - result.tokens_after
    evicted = total - sum(saved.values())
    if result.summary is not None and evicted > 0:
        saved["messages replaced by the summary"] = evicted
    rows = [
        (label, f"-{tokens:,}", Text(_bar(out, tokens, total, half=True), "cyan"))
        for label, tokens in saved.most_common()
        if tokens > 0
    ]
    if rows:
        _section(out, "What made room, in tokens", _grid(out, "<><", rows))


def _show_fates(out: Console, result: CompactionResult) -> None:
    reasons: dict[str, Counter[str]] = {}
    for entry in result.ledger:
        reasons.setdefault(entry.fate, Counter())[entry.reason] += 1
    rows = []
    for fate, number in result.ledger.counts().items():
        if number:
            color, meaning = FATES[fate]
            rows.append((Text(fate, color), f"{number:,}", f"{meaning}: {_reasons(reasons[fate])}"))
    if rows:
        _section(out, "Where every message went", _grid(out, "<><", rows, wrap=True))


def _reasons(counted: Counter[str]) -> str:
    labels = [(TIERS.get(reason, reason), number) for reason, number in counted.most_common(REASONS)]
    if len(counted) == 1:
        return labels[0][0]
    more = len(counted) - REASONS
    return ", ".join(f"{label} {number:,}" for label, number in labels) + (f", {more} more" if more > 0 else "")


def _show_floor(out: Console, result: CompactionResult) -> None:
    if result.floor:
        items = ", ".join(f"{name} {size:,}" for name, size in result.floor.items())
        total = sum(result.floor.values())
        _section(out, f"What no compaction removes: {total:,} tokens", _paragraph(out, items))


def _show_summary(out: Console, result: CompactionResult) -> None:
    summary = result.summary
    if summary is None:
        return
    made = f"{summary.output_tokens:,} tokens for {summary.original_tokens:,}, made by {summary.algorithm}"
    if summary.calls:
        chunks = _count(summary.chunk_count, "chunk")
        made += f" in {_count(summary.calls, 'call')}, {chunks}, depth {summary.max_depth}"
    if summary.truncated:
        made += ", truncated"
    excerpt = _excerpt(out, summary.text.splitlines(), SUMMARY_LINES)
    _section(out, "The summary", [*_paragraph(out, made, "dim"), *excerpt])
    lines = summary.evidence.splitlines()
    if lines:
        title = f"Word for word beside it, in {_count(len(lines), 'line')}"
        _section(out, title, _excerpt(out, lines, EVIDENCE_LINES))


def _excerpt(out: Console, lines: Sequence[str], limit: int) -> list[Text]:
    """The first lines behind a rule, one screen line each."""
    rule = Text("|" if _ascii_only(out) else "│", "cyan")
    rows: list[tuple[Text, Text]] = [(rule, Text(line)) for line in lines[:limit]]
    if len(lines) > limit:
        rows.append((rule, Text(f"and {_count(len(lines) - limit, 'more line')}", "dim")))
    return _grid(out, "<<", rows)


def _show_warnings(out: Console, result: CompactionResult) -> None:
    warnings = [event.message for event in result.events if LEVELS[event.name] >= logging.WARNING]
    if warnings:
        body = [line for warning in warnings for line in _paragraph(out, warning, "yellow")]
        _section(out, "Worth knowing", body)


def _show_whereabouts(out: Console, done: Done) -> None:
    says = [f"Took {done.seconds:.2f} s."]
    if done.output is not None:
        says.append(f"The view is in {done.output}.")
    if done.result.changed and done.is_kept:
        says.append(f"All originals are untouched in {done.name}; --report json gives the fate of each by its index.")
    _section(out, None, _paragraph(out, " ".join(says), "dim"))


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
    lines = [Text(f"{label if number == 0 else '':>{len(label)}} {row}", "cyan") for number, row in enumerate(rows)]
    last = str(found.messages - 1)
    lines.append(Text(f"{'':>{len(label)}} 0{last:>{max(1, len(values) - 1)}}", "dim"))
    _section(out, "Tokens along the conversation, by message index", lines)


def _show_shares(out: Console, found: Inspection) -> None:
    rows = [_weights(out, share.role, share.messages, share.tokens, found.tokens) for share in found.roles]
    if rows:
        _section(out, "By role: messages, tokens, share", _grid(out, "<>>><", rows))
    shown, rest = found.tools[:TOOLS], found.tools[TOOLS:]
    rows = [_weights(out, tool.tool, tool.calls, tool.tokens, found.tokens) for tool in shown]
    if rest:
        calls, tokens = sum(tool.calls for tool in rest), sum(tool.tokens for tool in rest)
        rows.append(_weights(out, f"{len(rest)} more", calls, tokens, found.tokens))
    if rows:
        _section(out, "By tool: calls, tokens of arguments and results, share", _grid(out, "<>>><", rows))


def _weights(out: Console, label: str, count: int, tokens: int, of: int) -> tuple[str | Text, ...]:
    share = tokens / of if of else 0
    bar = Text(_bar(out, tokens, of, half=True), "cyan")
    return label, f"{count:,}", f"{tokens:,}", f"{share:.1%}", bar


def _show_largest(out: Console, found: Inspection) -> None:
    rows = [
        (f"{large.index}", large.role, f"{large.tokens:,}", Text(large.preview, "dim"))
        for large in found.largest[:LARGEST]
    ]
    if rows:
        _section(out, "Largest messages: index, role, tokens", _grid(out, "><><", rows))


def _show_groups(out: Console, found: Inspection) -> None:
    rows = [
        (f"{large.first} to {large.last}", f"{large.messages}", f"{large.tokens:,}", "waiting" if large.pending else "")
        for large in found.largest_groups[:LARGEST]
    ]
    if rows:
        title = "Largest groups, which stand or fall together: indices, messages, tokens"
        _section(out, title, _grid(out, "<>><", rows))


def _show_faults(out: Console, found: Inspection) -> None:
    if not found.faults:
        _section(out, None, [Text("No broken pairs: every result has its call, and every call its result.", "green")])
        return
    lines = [line for fault in found.faults[:FAULTS] for line in _paragraph(out, fault, "yellow")]
    if len(found.faults) > FAULTS:
        lines.append(Text(f"and {len(found.faults) - FAULTS:,} more; --report json lists all", "dim"))
    _section(out, f"Broken: {_count(len(found.faults), 'fault')}", lines)


# ---- choosing ----


def show_conversations(out: Console, conversations: Sequence[Conversation]) -> None:
    """What a file holds, for choosing with ``--pick``."""
    from contextfold.cli.inspection import counter_for, decoded, first_words

    rows = [tuple(Text(title, "bold") for title in ("N", "messages", "tokens", "begins with"))]
    for number, conversation in enumerate(conversations, 1):
        messages = decoded(conversation)
        counter = counter_for(conversation)
        tokens = sum(counter.message(message) for message in messages)
        begins = first_words(messages) or conversation.name
        rows.append((Text(f"{number}"), Text(f"{len(messages):,}"), Text(f"{tokens:,}"), Text(begins)))
    _section(out, None, _grid(out, ">>><", rows))


# ---- shared ----


def _section(out: Console, title: str | None, body: Iterable[Text]) -> None:
    out.print()
    if title:
        out.print(Text(f"{EDGE}{title}", "bold"))
    for line in body:
        line.rstrip()
        out.print(Text.assemble(EDGE * 2 if title else EDGE, line), soft_wrap=True)


def _paragraph(out: Console, text: str, style: str = "") -> list[Text]:
    """A text in lines that fit beside the edge."""
    return list(Text(text, style).wrap(out, out.width - 2 * len(EDGE)))


def _grid(out: Console, columns: str, rows: Sequence[Sequence[str | Text]], *, wrap: bool = False) -> list[Text]:
    """Rows as lines: each ``<`` and ``>`` is a column flush left or right. The last one gets the room that the others
    leave, and goes on in the next line (``wrap``) or ends in an ellipsis.
    """
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max(row[number].cell_len for row in cells) for number in range(len(columns) - 1)]
    taken = sum(widths) + len(EDGE) * len(widths)
    room = max(10, out.width - 2 * len(EDGE) - taken)
    lines: list[Text] = []
    for row in cells:
        line = Text()
        for side, width, cell in zip(columns, widths, row, strict=False):
            pad = " " * (width - cell.cell_len)
            line.append_text(Text.assemble(pad, cell, EDGE) if side == ">" else Text.assemble(cell, pad, EDGE))
        first, *more = _last_cell(out, row[-1], room, wrap)
        lines.append(line.append_text(first))
        lines += [Text.assemble(" " * taken, rest) for rest in more]
    return lines


def _last_cell(out: Console, cell: Text, room: int, wrap: bool) -> list[Text]:
    if wrap:
        return list(cell.wrap(out, room)) or [cell]
    short = cell.copy()
    short.truncate(room, overflow="ellipsis")
    return [short]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _bar(out: Console, value: float, of: float, *, half: bool = False) -> str:
    """A bar that leaves room for figures beside it, also on a narrow screen."""
    cells = min(BAR, max(8, out.width - 44))
    return charts.bar(value, of, cells // 2 if half else cells, ascii_only=_ascii_only(out))


def _ascii_only(out: Console) -> bool:
    return not out.encoding.startswith("utf")
