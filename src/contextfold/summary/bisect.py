"""The flow of one summary: chunk, summarize side by side, bisect what overflows, merge until one remains.

Written once, as ``async def`` over ports.

- Everything goes in one request if it fits, or if the summarizer's window is unknown.
- A request that overflows all the same teaches the limit (its error names it, or it is half of what failed) to the
  whole run, and its span is cut again: between messages as long as there are ``min_messages`` of them, else by size.
- A previous summary is updated in exactly one request, at the end.
- Every step makes something strictly smaller or fewer, so the number of calls is bounded by a multiple of the chunks.

What does not belong here: sending a request and learning from it (``request``), making one summary of several
(``merge``), where a text may be cut (``chunks``), and what happens after a failure (``passes``): this raises, and
nothing has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby

from contextfold.errors import SummaryFailed
from contextfold.observe import Observer, SummaryStart
from contextfold.overflow import Overflow
from contextfold.ports import Patience, Ports
from contextfold.summary.chunks import SEPARATOR, Unit, joined, pack
from contextfold.summary.language import name as language_name
from contextfold.summary.merge import Merger
from contextfold.summary.models.asking import Asker
from contextfold.summary.models.cost import price
from contextfold.summary.options import SummaryOptions
from contextfold.summary.progress import Progress
from contextfold.summary.prompt_files import Kind, Wording
from contextfold.summary.request import (
    SMALLEST_MATERIAL,
    SUPPORTED_WINDOW,
    Requester,
    RequestLimits,
    RequestOutcome,
    SummaryRequest,
)
from contextfold.summary.summarizer import Summarizer, Summary, SummaryStats, as_summarizer

_LATER_WAVES = 4
"""The first requests go ``parallel`` at a time, so that a wrong window or key costs few calls (one at a time while the
window is being searched by halving); then this many times more, so that one slow answer holds up little."""

_MOST_CRUMBS = 64
"""Requests that may wait for a summarizer that was seen to have less than the supported window."""

_SURELY_SMALL = 0.75
"""Of the supported window, by our count, which may be a little off."""


async def summarize(
    units: Sequence[Unit],
    *,
    previous: str | None,
    summarizer: Summarizer,
    options: SummaryOptions,
    max_tokens: int,
    language: str,
    ports: Ports,
    count: Callable[[str], int],
    observer: Observer,
    on_spent: Callable[[SummaryStats], object] = lambda stats: None,
) -> Summary:
    """One summary of at most ``max_tokens`` of ``previous`` and ``units``, which are in order and came after it.

    ``count`` gives the tokens of a text; ``language`` is a code. With nothing to read, the summary is ``previous``.
    ``on_spent`` is told what it cost in the end, also when nothing came of it.
    Raises ``SummaryFailed`` when no acceptable answer could be had, and whatever else the summarizer raises.
    """
    if not any(unit.text.strip() for unit in units):
        return Summary(previous or "", frozenset(), SummaryStats())
    chain, started = as_summarizer(summarizer), ports.clock.now()
    # Cutting asks for the same texts again and again; the memory lives as long as this one summary.
    counted_once = lru_cache(maxsize=None)(count)
    asker = Asker(chain.models, options, ports, observer, patience_of(options, started))
    tokens = sum(counted_once(unit.text) for unit in units)
    run = _run(asker, Progress(ports, observer, tokens, started), chain.window, max_tokens, language, counted_once)
    messages = len({index for unit in units for index in unit.indices})
    await observer.tell(ports, SummaryStart(chain.name, messages, tokens))
    await run.requester.progress.tell()
    try:
        text = await run.whole(tuple(units), previous or "")
    except Exception:
        on_spent(await _spent(run, started, ports))
        raise
    finally:
        await asker.close()
    stats = await _spent(run, started, ports)
    on_spent(stats)
    # A message that was cut to fit was not read whole: it does not count as covered, so it cannot leave the view.
    return Summary(text, frozenset(run.read - run.lost), stats)


async def _spent(run: _Run, started: float, ports: Ports) -> SummaryStats:
    return replace(await ports.compute(run.stats), seconds=ports.clock.now() - started)


def patience_of(options: SummaryOptions, now: float) -> Patience:
    """The time limits of a summary that begins now."""
    total = options.total_seconds
    return Patience(options.idle_seconds, total, math.inf if total is None else now + total)


def _run(
    asker: Asker,
    progress: Progress,
    window: int | None,
    max_tokens: int,
    language: str,
    count: Callable[[str], int],
) -> _Run:
    options = asker.options
    wording = Wording(language_name(language), options.prompt, options.instructions)
    limits = RequestLimits.of_window(options.input_tokens or window, options.max_string_characters)
    requester = Requester(asker, progress, options, wording, max_tokens, asker.ports, count, asker.observer, limits)
    return _Run(requester, Merger(requester))


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive units of one request. ``depth``: how many overflows made it. ``clipped``: part of it was cut away."""

    units: tuple[Unit, ...]
    depth: int = 0
    clipped: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(unit.text for unit in self.units)

    @property
    def indices(self) -> frozenset[int]:
        return frozenset(index for unit in self.units for index in unit.indices)


_Node = str | _Span
"""What stands in the place of a stretch of the conversation: its summary, or the span that is still to be read."""


@dataclass(slots=True)
class _Run:
    """One summary in the making. ``read`` are the indices whose text was in a request that was answered, ``lost`` those
    of which some was cut away first.
    """

    requester: Requester
    merger: Merger
    read: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    chunk_count: int = 0

    def stats(self) -> SummaryStats:
        requester = self.requester
        answered = [outcome for outcome in requester.outcomes if outcome.calls]
        costs = [price(outcome.model, outcome.input_tokens, outcome.output_tokens) for outcome in answered]
        known = [cost for cost in costs if cost is not None]
        return SummaryStats(
            input_tokens=sum(outcome.input_tokens for outcome in requester.outcomes),
            output_tokens=sum(outcome.output_tokens for outcome in requester.outcomes),
            calls=sum(outcome.calls for outcome in requester.outcomes),
            chunk_count=self.chunk_count,
            max_depth=requester.max_depth,
            truncated=requester.truncated,
            learned_window=requester.limits.tokens if requester.limits.learned else None,
            model=", ".join(dict.fromkeys(outcome.model for outcome in answered)),
            cost=sum(known) if known and len(known) == len(costs) else None,
        )

    async def whole(self, units: tuple[Unit, ...], previous: str) -> str:
        """The summary of everything: in one request if that fits, else in chunks."""
        made = await self._in_one_request(_Span(units), previous)
        if isinstance(made, str):
            return await self.merger.capped(made)
        parts = await self._digest(made)
        if not previous:
            return await self.merger.capped(await self.merger.merged(parts, "merge"))
        room = self.requester.room("update", previous)
        if not room.holds(SEPARATOR.join(parts), self.requester.count):
            parts = [await self.merger.merged(parts, "merge")]
        updated = await self.merger.merged([previous, SEPARATOR.join(parts)], "update")
        return await self.merger.capped(updated)

    async def _in_one_request(self, span: _Span, previous: str) -> str | list[_Span]:
        """The answer, or the spans to read one by one because it does not fit, or was refused as too long."""
        kind: Kind = "update" if previous else "summarize"
        requester = self.requester
        if not requester.room(kind, previous).holds(SEPARATOR.join(span.texts), requester.count):
            return await requester.ports.compute(self._fitted, [span])
        material = requester.size(span.texts) + requester.count(previous)
        request = requester.compose(kind, span.texts, previous=previous, longest_answer=material)
        (outcome,) = await requester.send([request])
        if outcome.text is not None:
            self._note_read(span)
            return outcome.text
        if previous:  # perhaps it was the previous summary that did not fit: first without it
            return await requester.ports.compute(self._fitted, [_Span(span.units, 1)])
        return await requester.ports.compute(self._smaller, span, outcome, request)

    async def _digest(self, spans: Sequence[_Span]) -> list[str]:
        """A summary of each span, in order. Spans that overflow are cut and asked again until all are read."""
        nodes: list[_Node] = list(spans)
        parallel = self.requester.options.parallel
        wave = 1 if self.requester.is_searching else parallel
        while waiting := [place for place, node in enumerate(nodes) if isinstance(node, _Span)]:
            await self._announce(nodes)
            made, overflows = await self._read(nodes, waiting[:wave])
            nodes = [new for place, node in enumerate(nodes) for new in made.get(place, [node])]
            if overflows:
                nodes = await self.requester.ports.compute(self._refitted, nodes)
                self._refuse_crumbs(sum(isinstance(node, _Span) for node in nodes))
                # A limit that was named settles the size. A guess may be wrong again, and one request finds that out
                # as well as all.
                wave = parallel if all(found.limit for found in overflows) else 1
            else:
                wave = parallel * (1 if wave < parallel else _LATER_WAVES)
        return [node for node in nodes if isinstance(node, str)]

    async def _read(
        self, nodes: Sequence[_Node], places: Sequence[int]
    ) -> tuple[dict[int, Sequence[_Node]], list[Overflow]]:
        """What comes into each of ``places``, where spans wait: a summary, or smaller spans after an overflow."""
        spans = [node for place in places if isinstance(node := nodes[place], _Span)]
        requests = [self._chunk_request(span, len(nodes)) for span in spans]
        outcomes = await self.requester.send(requests)
        made: dict[int, Sequence[_Node]] = {}
        for place, span, request, outcome in zip(places, spans, requests, outcomes, strict=True):
            if outcome.text is not None:
                self._note_read(span)
                made[place] = [outcome.text]
            else:
                made[place] = await self.requester.ports.compute(self._smaller, span, outcome, request)
        return made, [outcome.overflow for outcome in outcomes if outcome.overflow is not None]

    def _chunk_request(self, span: _Span, chunks: int) -> SummaryRequest:
        requester = self.requester
        # The last chunk may be short, and its answer still be fine: all are judged as if their requests were full.
        full = max(requester.size(span.texts), requester.limits.tokens or 0, SUPPORTED_WINDOW // 2)
        return requester.compose(
            requester.chunk_kind,
            span.texts,
            longest_answer=full,
            answer_tokens=requester.answer_tokens(chunks),
            depth=span.depth,
        )

    def _fitted(self, spans: Sequence[_Span]) -> list[_Span]:
        room, count = self.requester.room(self.requester.chunk_kind), self.requester.count
        return [_Span(units, span.depth) for span in spans for units in pack(span.units, room, count)]

    def _refitted(self, nodes: Sequence[_Node]) -> list[_Node]:
        """The nodes with all that waits cut to what one request holds now."""
        refitted: list[_Node] = []
        # Neighbors are cut as one: the pieces of a span that was too long are rarely full, and a summarizer with a
        # small window would be asked about the crumbs of each, several times as often. A clipped span is as small as
        # can be.
        for waits, neighbors in groupby(nodes, lambda node: isinstance(node, _Span) and not node.clipped):
            if not waits:
                refitted += neighbors
                continue
            spans = [node for node in neighbors if isinstance(node, _Span)]
            units = tuple(unit for span in spans for unit in span.units)
            refitted += self._fitted([_Span(units, max(span.depth for span in spans))])
        return refitted

    def _refuse_crumbs(self, waiting: int) -> None:
        # A window below the supported one is served while that takes few requests, and no further: most of each of
        # hundreds would be instructions.
        refused = self.requester.limits.refused
        if refused is not None and refused <= _SURELY_SMALL * SUPPORTED_WINDOW and waiting > _MOST_CRUMBS:
            raise SummaryFailed(
                f"the summarizer refuses a prompt of {refused:,} tokens as too long, and {waiting} smaller ones would "
                f"be needed: take one with a window of at least {SUPPORTED_WINDOW:,} tokens",
                attempts=["prompt_too_long"],
            )

    def _smaller(self, span: _Span, outcome: RequestOutcome, request: SummaryRequest) -> list[_Span]:
        """The parts of a span whose request overflowed, each smaller than it, or clipped. Raises ``SummaryFailed``."""
        if span.clipped:
            raise SummaryFailed(
                f"the summarizer refuses even a prompt of {request.tokens:,} tokens as too long, of which "
                f"{request.tokens - request.material:,} are instructions: shorten the prompt, or take a summarizer "
                f"with a window of at least {SUPPORTED_WINDOW:,} tokens",
                attempts=[outcome.overflow.kind] if outcome.overflow else (),
            )
        depth, options = span.depth + 1, self.requester.options
        whole = joined(span.units)
        if self.requester.count(whole.text) <= SMALLEST_MATERIAL:
            return [self._clipped(whole, depth)]
        between_messages = len(span.indices) >= options.min_messages and depth <= options.max_depth
        return self._fitted([_Span(span.units if between_messages else (whole,), depth)])

    def _clipped(self, unit: Unit, depth: int) -> _Span:
        self.lost |= set(unit.indices)
        what = f"messages {', '.join(map(str, sorted(unit.indices)))} were cut to fit a request"
        text = self.requester.clipped(unit.text, SMALLEST_MATERIAL // 3, what)
        return _Span((Unit(text, unit.indices),), depth, clipped=True)

    def _note_read(self, span: _Span) -> None:
        self.read |= span.indices
        self.chunk_count += 1

    async def _announce(self, nodes: Sequence[_Node]) -> None:
        progress = self.requester.progress
        progress.chunks, progress.depth = len(nodes), self.requester.max_depth
        await progress.tell()
        if len(nodes) > 1:
            done = sum(1 for node in nodes if isinstance(node, str))
            self.requester.observer.emit(
                "summary_chunked", f"{done} of {len(nodes)} chunks done", done=done, chunks=len(nodes)
            )
