"""Planted facts: forty invented ones of ten kinds, put into real conversations, asked for after 1, 3, 5 compactions.

The facts are in ``planted/facts.yaml``; ``planted.planting`` says where they go, ``planted.retention`` when they are
asked for and what counts as an answer. A voice that a conversation does not have gets no facts, so they are fewer than
forty for each conversation.

Every conversation speaks its own language. The public ones are English or Chinese, so a few are replayed once more with
Japanese and with German facts, in the smallest window: people do speak their language to tools that answer in English.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.replay import collect, jobs, strategies, tokens, versions
from benchmarks.replay.chat import Message, searchable
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.jobs import Keys, Plan, Progress
from benchmarks.replay.planted.facts import KINDS, LANGUAGES, Language
from benchmarks.replay.planted.planting import Planted, language_of, plant
from benchmarks.replay.planted.retention import AFTER, Follower, Retention
from benchmarks.replay.recording import Recording
from benchmarks.replay.replay import steps
from benchmarks.replay.results import Result, Saved
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.tables import NOTHING, table

TITLE = "Planted facts"

MOST = 12
"""Conversations: the longest of every source in turn."""
LONGEST = 120_000
"""Tokens: enough for five compactions. A longer conversation is cut, or it would take as long as all others."""
ABROAD: tuple[Language, ...] = ("ja", "de")
MOST_ABROAD = 3
"""Conversations that are replayed once more in each of these languages."""

VOICES = ("user", "assistant", "tool")

FACTS = Path(__file__).resolve().parents[1] / "planted"
"""The code that plants and asks."""


def run(plan: Plan, conversations: Sequence[collect.Found], progress: Progress) -> dict[str, Any]:
    """Counts by window and strategy (``Retention.to_json``), and how many facts and conversations there were."""
    keys = Keys.of(plan)
    chosen = choose(conversations)
    items: list[_Item] = [(plan, entry, keys, None) for entry in chosen]
    items += [(plan, entry, keys, language) for entry in chosen[:MOST_ABROAD] for language in ABROAD]
    answers = jobs.spread(_replayed, items, plan, progress, "planting facts")
    found: dict[str, Retention] = {}
    for results in answers:
        for result in results:
            name = f"{result.window}|{result.strategy}"
            found.setdefault(name, Retention()).merge(Retention.from_json(result.totals))
    return {
        "figures": {
            "conversations": len(chosen),
            "windows": list(plan.windows),
            "counts": {name: retention.to_json() for name, retention in sorted(found.items())},
        },
        "times": {},
    }


def choose(conversations: Sequence[collect.Found]) -> list[collect.Found]:
    """The longest of every source in turn."""
    queues: dict[str, list[collect.Found]] = {}
    for entry in sorted(conversations, key=lambda entry: (-entry.tokens, str(entry.place))):
        queues.setdefault(entry.source, []).append(entry)
    ranked = sorted((rank, source) for source, queue in queues.items() for rank in range(len(queue)))
    return [queues[source][rank] for rank, source in ranked[:MOST]]


def head(messages: Sequence[Message], limit: int) -> Sequence[Message]:
    """The messages up to a number of tokens; a call keeps all its results."""
    ends = accumulate(tokens.message_tokens(message) for message in messages)
    stop = sum(1 for end in ends if end <= limit)
    while stop < len(messages) and messages[stop]["role"] == "tool":
        stop += 1
    return messages[:stop]


_Item: TypeAlias = tuple[Plan, collect.Found, Keys, Language | None]


def _replayed(item: _Item) -> list[Result]:
    """All windows and strategies on one conversation with facts in it; abroad only the smallest window."""
    plan, entry, keys, language = item
    original = jobs.load(plan, entry)
    if language == language_of(original.messages):
        return []  # it is replayed in its own language anyway
    messages, planted = plant(head(original.messages, LONGEST), original.name, language)
    conversation = Conversation(original.name, original.source, tuple(messages))
    saved = Saved(plan.saved / "planted")
    known = saved.of(conversation.digest)
    recording = Recording(conversation)
    results = []
    for window in plan.windows[:1] if language else plan.windows:
        for name, version in keys.strategies:
            key = f"{keys.key(window, name, version)} {versions.of_folder(FACTS)}"
            if name == strategies.REFERENCE or not recording.suits(window):
                continue
            if key not in known:
                known[key] = _result(key, entry, recording, window, name, planted)
                saved.add(known[key])
            results.append(known[key])
    return results


def _result(
    key: str, entry: collect.Found, recording: Recording, window: int, name: str, planted: Sequence[Planted]
) -> Result:
    strategy = strategies.create(name, window)
    try:
        retention = follow(recording, strategy, planted)
    finally:
        strategy.close()
    conversation = recording.conversation
    return Result(
        key=key,
        conversation=str(entry.place),
        source=entry.source,
        digest=conversation.digest,
        tokens=recording.total_tokens,
        is_chinese=conversation.is_chinese,
        has_tools=conversation.has_tools,
        window=window,
        strategy=name,
        totals=retention.to_json(),
    )


def follow(recording: Recording, strategy: Strategy, planted: Iterable[Planted]) -> Retention:
    """The counts of one conversation, with facts planted in it, through one strategy."""
    follower = Follower(planted)
    for step in steps(recording, strategy):
        follower.observe(
            length=step.index,
            kept=step.present,
            numbers=recording.numbers,
            others=((number, searchable(recording.known.messages[number])) for number in step.foreign),
            compacted=step.rewritten,
            usable=step.usable,
        )
    return follower.retention


# ---- the section of the report ----


def markdown(found: Mapping[str, Any]) -> str:
    """Tables: all strategies by window; then contextfold by kind, voice and language."""
    figures = found["figures"]
    counts = {name: Retention.from_json(one) for name, one in figures["counts"].items()}
    parts = [_introduction(figures["conversations"])]
    for window in figures["windows"]:
        rows = {name.partition("|")[2]: one for name, one in counts.items() if name.startswith(f"{window}|")}
        if rows:
            parts += [f"**{window:,} tokens**", _strategies(rows)]
    ours = [one for name, one in counts.items() if name.endswith(f"|{strategies.OURS}")]
    if ours:
        parts += [f"What {strategies.OURS} keeps of which facts, all windows together:", _classes(ours)]
    return "\n\n".join(parts)


def _introduction(conversations: int) -> str:
    return (
        f"Forty invented facts of ten kinds are planted into each of {conversations} conversations, in the language "
        "that is spoken there, by the voice that would say them (some also in Japanese and German, in the smallest "
        "window). A fact is *told* when all its parts stand together in one message of the view; a view that a "
        "provider would refuse tells nothing. *Left* counts compactions from the one that took the fact's message out "
        "of the view, and asks memory alone. *Said* counts from when the fact was said, so one that still stands in "
        "the kept tail is known. In brackets: facts asked for."
    )


def _strategies(rows: Mapping[str, Retention]) -> str:
    heads = ["strategy", *(f"{clock}, after {after}" for clock in ("left", "said") for after in AFTER)]
    order = [name for name in strategies.REGISTRY if name in rows] + sorted(set(rows) - set(strategies.REGISTRY))
    lines = [[name, *(_share(rows[name], clock, n) for clock in ("left", "said") for n in AFTER)] for name in order]
    return table(heads, lines)


def _classes(ours: Sequence[Retention]) -> str:
    whole = Retention()
    for one in ours:
        whole.merge(one)
    heads = ["facts", *(f"left, after {after}" for after in AFTER), "word for word, after 1"]
    axes = (("kind", KINDS), ("voice", VOICES), ("language", LANGUAGES))
    lines = []
    for axis, values in axes:
        for value in values:
            shares = [_share(whole, "left", after, **{axis: value}) for after in AFTER]
            lines.append([f"{axis}: {value}", *shares, _share(whole, "left", 1, "exact", **{axis: value})])
    return table(heads, lines)


def _share(retention: Retention, clock: str, after: int, figure: str = "told", **only: str) -> str:
    asked, told = retention.total(clock, after, figure, **only)
    return f"{100 * told / asked:.0f} % ({asked})" if asked else NOTHING
