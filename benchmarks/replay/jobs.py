"""The work: which replays there are, those that are saved already, and the rest in as many processes as wanted.

A process takes one conversation at a time and runs all that is missing of it, because what is known of a conversation
before any strategy runs is computed once. Each result is saved as soon as it is there.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.replay import collect, sessions, strategies, tokens, versions
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measures import MEASURES
from benchmarks.replay.recording import SHORTEST, Recording
from benchmarks.replay.replay import replay
from benchmarks.replay.results import Result, Saved

T = TypeVar("T")

POLL_SECONDS = 0.2
LIMIT = 40
"""Conversations in each band of sizes: more tell little that is new, and a run should end within minutes."""
Progress = Callable[[str, int, int], object]
"""``progress(what, done, of)`` is called as work goes on."""


@dataclass(frozen=True)
class Plan:
    """What a run consists of, the same in every process."""

    data: Path | None
    """Folder (or file) of transcripts; None: the project's own example sessions."""
    windows: tuple[int, ...]
    strategies: tuple[str, ...]
    tokenizer: str
    saved: Path
    jobs: int = 1
    limit: int = LIMIT
    """The most conversations in each band of sizes; 0: all."""

    def without(self, names: Container[str]) -> Plan:
        """The same without strategies that cannot be run here."""
        return replace(self, strategies=tuple(name for name in self.strategies if name not in names))


@dataclass(frozen=True)
class Survey:
    """The conversations of a run, and the files that hold none."""

    conversations: tuple[collect.Found, ...]
    unread: tuple[str, ...]


def survey(plan: Plan, progress: Progress) -> Survey:
    """Find the conversations that are long enough for the smallest window, and choose among them."""
    if plan.data is None:
        return Survey(tuple(_long(sessions.found(), plan)), ())
    files = collect.files(plan.data)
    answers = spread(_surveyed, [(plan, file) for file in files], plan, progress, "reading")
    found = [entry for entries, _ in answers for entry in entries]
    return Survey(tuple(_long(found, plan)), tuple(problem for _, problem in answers if problem))


def _long(found: Sequence[collect.Found], plan: Plan) -> list[collect.Found]:
    """Those of a choice that are long enough for the smallest window."""
    return [entry for entry in collect.chosen(found, plan.limit) if entry.tokens > SHORTEST * min(plan.windows)]


def run(plan: Plan, conversations: Sequence[collect.Found], progress: Progress, *, fresh: bool = False) -> list[Result]:
    """Every result of the plan, saved or new, in the order of conversations, windows and strategies."""
    if fresh:
        for entry in conversations:
            Saved(plan.saved).forget(entry.digest)
    keys = Keys.of(plan)
    items = [(plan, entry, keys) for entry in conversations]
    found = spread(_replayed, items, plan, progress, "replaying", parts=len(plan.windows) * len(plan.strategies))
    return [result for results in found for result in results]


def load(plan: Plan, entry: collect.Found) -> Conversation:
    """The conversation itself."""
    if plan.data is None:
        return sessions.load(entry.place.number)
    return collect.read(plan.data, entry.place.file)[entry.place.number]


@dataclass(frozen=True)
class Keys:
    """Versions of everything that decides figures."""

    instrument: str
    strategies: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, plan: Plan) -> Keys:
        tokens.use(plan.tokenizer)
        versioned = tuple((name, versions.of_strategy(name)) for name in plan.strategies)
        return cls(versions.of_instrument(), versioned)

    def key(self, window: int, strategy: str, version: str) -> str:
        return f"{window} {strategy} {version} {self.instrument}"


def _surveyed(item: tuple[Plan, str]) -> tuple[list[collect.Found], str]:
    plan, file = item
    assert plan.data is not None
    return collect.survey(plan.data, file)


def _replayed(item: tuple[Plan, collect.Found, Keys]) -> list[Result]:
    """All windows and strategies on one conversation."""
    plan, entry, keys = item
    saved = Saved(plan.saved)
    known = saved.of(entry.digest)
    recording: Recording | None = None
    results = []
    for window in plan.windows:
        for name, version in keys.strategies:
            key = keys.key(window, name, version)
            if key not in known:
                recording = recording or Recording(load(plan, entry))
                known[key] = _result(key, entry, recording, window, name)
                saved.add(known[key])
            if known[key].totals:
                results.append(known[key])
            tick()
    gc.collect()  # what a long conversation took is not kept for the next one
    return results


def _result(key: str, entry: collect.Found, recording: Recording, window: int, name: str) -> Result:
    """Without totals where the conversation does not suit the window."""
    conversation = recording.conversation
    result = Result(
        key=key,
        conversation=str(entry.place),
        source=entry.source,
        digest=entry.digest,
        tokens=recording.total_tokens,
        is_chinese=conversation.is_chinese,
        has_tools=conversation.has_tools,
        window=window,
        strategy=name,
        totals={},
    )
    if not recording.suits(window):
        return result
    strategy = strategies.create(name, window)
    try:
        found = replay(recording, strategy, MEASURES)
    finally:
        strategy.close()
    return replace(result, totals=found.totals, times=found.times, first_error=found.first_error)


# ---- processes ----

_ticked: list[Any] = []
"""In a process of a pool: the number that all of them count up."""


def spread(
    function: Callable[[Any], T], items: Sequence[Any], plan: Plan, progress: Progress, what: str, parts: int = 1
) -> list[T]:
    """``function`` of every item, in ``plan.jobs`` processes; the answers stand in the order of the items.

    The function must be importable by its name. With ``parts`` above 1 it calls ``tick`` that often for an item, and
    progress is told in these. An error in one ends the run.
    """
    progress(what, 0, len(items) * parts)
    if plan.jobs == 1 or len(items) < 2:
        prepare(plan.tokenizer)
        return list(_one_by_one(function, items, progress, what, parts))
    counter = multiprocessing.get_context("spawn").Value("q", 0)
    with _pool(plan, counter) as pool:
        futures = [pool.submit(function, item) for item in items]
        waiting: set[Future[T]] = set(futures)
        while waiting:
            finished, waiting = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
            done = len(items) - len(waiting)
            progress(what, counter.value if parts > 1 else done, len(items) * parts)
        return [future.result() for future in futures]


def tick() -> None:
    """One part of an item is done."""
    if _ticked:
        with _ticked[0].get_lock():
            _ticked[0].value += 1


def _one_by_one(
    function: Callable[[Any], T], items: Sequence[Any], progress: Progress, what: str, parts: int
) -> Iterator[T]:
    for done, item in enumerate(items, 1):
        yield function(item)
        progress(what, done * parts, len(items) * parts)


@contextmanager
def _pool(plan: Plan, counter: Any) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(plan.jobs, context, initializer=_prepare_process, initargs=(plan.tokenizer, counter))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare_process(tokenizer: str, counter: Any) -> None:
    prepare(tokenizer)
    _ticked[:] = [counter]


def prepare(tokenizer: str) -> None:
    """What every process needs before it works: its tokenizer, and quiet libraries."""
    tokens.use(tokenizer)
    warnings.simplefilter("ignore")
    for name in ("contextfold", "langchain", "langchain_core", "deepagents", "langmem"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
