"""The flow of one summary: chunk, summarise side by side, merge until one remains, bisect what overflows.

Written once, as ``async def`` over ports. Branches call the summariser and nothing else; the trunk, in between, learns,
counts and reports, so that neither the outcome nor the events depend on who answers first.

- Everything goes in one request if it fits, or if the summariser's window is unknown.
- A request that overflows all the same teaches the limit (its error names it, or it is half of what failed) to the
  whole run, and its span is cut again: between messages as long as there are ``min_messages`` of them, else by size.
- A previous summary is updated in exactly one request, at the end.
- Every step makes something strictly smaller or fewer, so the number of calls is bounded by a multiple of the chunks.

What does not belong here: the words of a request (``prompt_files``), whether an answer will do (``accept``), where
a text may be cut (``chunks``), and what happens after a failure (``engine``): this raises, and nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from contextfold import overflow
from contextfold.errors import SummaryFailed
from contextfold.observe import Observer
from contextfold.overflow import Overflow
from contextfold.ports import Ports
from contextfold.summary.accept import clean, rejection
from contextfold.summary.chunks import SEPARATOR, Room, Unit, clip, joined, pack, partition
from contextfold.summary.language import name as language_name
from contextfold.summary.options import SMALLEST_REQUEST, SummaryOptions
from contextfold.summary.prompt_files import Kind, Wording, again
from contextfold.summary.summarizer import Summarizer, to_answer

ALGORITHM = "bisect_v1"

SUPPORTED_WINDOW = 2_000
"""Tokens. The window that any summariser is promised to work with; tried when halving has gone ``max_depth`` deep."""

SMALLEST_MATERIAL = 96
"""Tokens. A request with less material than this that still overflows is clipped, then given up."""

_TOLD, _LEARNT = 0.95, 0.88
"""How much of a window a prompt may take. Our count may be a little off; and a window learnt from an error often
has to hold the answer too."""

_ASKED = 0.9
"""Writers overshoot: they are asked for this share of what they may take."""

_WRAPPING = 16
"""Tokens around each summary in a merge request."""

_LATER_WAVES = 4
"""The first requests go ``parallel`` at a time, so that a wrong window or key costs few calls (one at a time while the
window is being searched by halving); then this many times more, so that one slow answer holds up little."""

_BISECTABLE = ("prompt_too_long", "item_too_long", "output_budget")


@dataclass(frozen=True, slots=True)
class SummaryStats:
    """What a summary cost. Tokens are the summariser's own figures where it tells them. ``truncated``: text was lost to
    make it fit. ``learned_window``: the longest prompt, in tokens, that errors taught to send; None if none did.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    chunk_count: int = 0
    max_depth: int = 0
    truncated: bool = False
    algorithm: str = ALGORITHM
    learned_window: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and the history indices whose whole text was in requests that succeeded."""

    text: str
    covered: frozenset[int]
    stats: SummaryStats


async def summarise(
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
) -> Summary:
    """One summary of at most ``max_tokens`` of ``previous`` and ``units``, which are in order and came after it.

    ``count`` gives the tokens of a text; ``language`` is a code. With nothing to read, the summary is ``previous``.
    Raises ``SummaryFailed`` when no acceptable answer could be had, and whatever else the summariser raises.
    """
    if not any(unit.text.strip() for unit in units):
        return Summary(previous or "", frozenset(), SummaryStats())
    wording = Wording(language_name(language), options.prompt, options.instructions)
    window = options.input_tokens or summarizer.window
    limits = _Limits(None if window is None else int(window * _TOLD), options.max_string_characters)
    run = _Run(summarizer, options, wording, max_tokens, ports, lru_cache(maxsize=None)(count), observer, limits)
    text = await run.whole(tuple(units), previous or "")
    return Summary(text, frozenset(run.read - run.lost), run.stats())


@dataclass(slots=True)
class _Limits:
    """The longest prompt to send: ``tokens`` by our count (None: unknown) and ``characters``."""

    tokens: int | None
    characters: int
    learnt: bool = False

    def learn(self, found: Overflow, *, tokens: int, characters: int, share: float, deep: bool) -> None:
        """Shrink, so that the prompt that overflowed (its size is given) would not be sent again.

        Where no limit is named, to ``share`` of that size; when ``deep``, to the supported window at once.
        """
        if found.kind == "item_too_long":
            named = int((found.limit or 0) * _TOLD)
            self.characters = min(self.characters, named if 0 < named < characters else characters // 2)
            return
        named = found.limit or 0
        if found.used is not None and found.used > named:
            named = tokens * named // found.used  # the provider's tokens in ours
        allowed = int(named * _LEARNT)
        if found.kind == "output_budget" or named < SMALLEST_REQUEST or allowed >= tokens:
            allowed = min(int(tokens * share), int(SUPPORTED_WINDOW * _TOLD)) if deep else int(tokens * share)
        self.tokens = allowed if self.tokens is None else min(self.tokens, allowed)
        self.learnt = True


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


@dataclass(frozen=True, slots=True)
class _Request:
    """``tokens`` is the size of the prompt, ``material`` that of what is in it to be summed up."""

    kind: Kind
    prompt: str
    tokens: int
    material: int
    judged: int
    """An answer longer than this many tokens is refused as longer than its input. 0: any length will do, because the
    answer takes the place of summaries, and the cap on the whole holds it."""
    asked: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a request: a ``text``, or an ``overflow``, or neither: every answer was refused."""

    text: str | None = None
    overflow: Overflow | None = None
    refusals: tuple[str, ...] = ()
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class _Run:
    """One summary in the making. Only the trunk writes to it."""

    summarizer: Summarizer
    options: SummaryOptions
    wording: Wording
    max_tokens: int
    ports: Ports
    count: Callable[[str], int]
    observer: Observer
    limits: _Limits
    read: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    outcomes: list[_Outcome] = field(default_factory=list)
    chunk_count: int = 0
    max_depth: int = 0
    truncated: bool = False
    shortened: bool = False
    stuck: bool = False

    def stats(self) -> SummaryStats:
        return SummaryStats(
            input_tokens=sum(outcome.input_tokens for outcome in self.outcomes),
            output_tokens=sum(outcome.output_tokens for outcome in self.outcomes),
            calls=sum(outcome.calls for outcome in self.outcomes),
            chunk_count=self.chunk_count,
            max_depth=self.max_depth,
            truncated=self.truncated,
            learned_window=self.limits.tokens if self.limits.learnt else None,
        )

    # ---- the trunk ----

    async def whole(self, units: tuple[Unit, ...], previous: str) -> str:
        """Everything in one request if that fits, else in chunks."""
        kind: Kind = "update" if previous else "summarise"
        room = self._room(kind, previous)
        span = _Span(units)
        if room.holds(SEPARATOR.join(span.texts), self.count):
            material = self._size(span.texts) + self.count(previous)
            request = self._request(kind, span.texts, previous=previous, judged=material)
            (outcome,) = await self._send([request])
            if outcome.text is not None:
                self._note_read(span)
                return await self._capped(outcome.text)
            if previous:  # perhaps it was the previous summary that did not fit: first without it
                spans = await self.ports.compute(self._fitted, [_Span(units, 1)])
            else:
                spans = await self.ports.compute(self._smaller, span, outcome, request)
        else:
            spans = await self.ports.compute(self._fitted, [span])
        parts = await self._digest(spans)
        if not previous:
            return await self._capped(await self._merged(parts, "merge"))
        if not self._room("update", previous).holds(SEPARATOR.join(parts), self.count):
            parts = [await self._merged(parts, "merge")]
        return await self._capped(await self._merged([previous, SEPARATOR.join(parts)], "update"))

    async def _digest(self, spans: Sequence[_Span]) -> list[str]:
        """A summary of each span, in order. Spans that overflow are cut and asked again until all are read."""
        nodes: list[str | _Span] = list(spans)
        wave = self.options.parallel
        while places := [place for place, node in enumerate(nodes) if isinstance(node, _Span)][:wave]:
            self._announce(nodes)
            asked = [node for place in places if isinstance(node := nodes[place], _Span)]
            requests = [self._chunk_request(span, len(nodes)) for span in asked]
            outcomes = await self._send(requests)
            made: dict[int, list[str | _Span]] = {}
            for place, span, request, outcome in zip(places, asked, requests, outcomes, strict=True):
                if outcome.text is not None:
                    self._note_read(span)
                    made[place] = [outcome.text]
                else:
                    made[place] = [*await self.ports.compute(self._smaller, span, outcome, request)]
            overflows = [outcome.overflow for outcome in outcomes if outcome.overflow is not None]
            nodes = [new for place, node in enumerate(nodes) for new in made.get(place, [node])]
            if overflows:
                nodes = await self.ports.compute(self._refitted, nodes)
                wave = self.options.parallel if all(found.limit for found in overflows) else 1
            else:
                wave = self.options.parallel * (1 if wave < self.options.parallel else _LATER_WAVES)
        return [node for node in nodes if isinstance(node, str)]

    async def _merged(self, parts: list[str], kind: Kind) -> str:
        """Neighbours merged, as many as a request holds, until one text remains.

        Where not even two fit: joined if that is short enough, else shortened (once), else clipped.
        """
        while len(parts) > 1:
            batches = self._batches(parts, kind)
            if len(batches) < len(parts) and not self.stuck:
                parts = await self._merge_round(parts, batches, kind)
                continue
            together = SEPARATOR.join(parts)
            if self.count(together) <= self.max_tokens:
                return together
            if self.stuck:
                return self._clipped(together, self.max_tokens)
            parts = await self._squeezed(parts, kind)
        return parts[0]

    async def _merge_round(self, parts: list[str], batches: Sequence[range], kind: Kind) -> list[str]:
        several = [batch for batch in batches if len(batch) > 1]
        asked = self._answer_tokens(1 if kind == "update" else len(batches))
        requests = [self._merge_request([parts[place] for place in batch], kind, asked) for batch in several]
        outcomes = dict(zip(several, await self._send(requests), strict=True))
        merged: list[str] = []
        for batch in batches:
            text = outcomes[batch].text if batch in outcomes else None
            merged += [text] if text is not None else [parts[place] for place in batch]
        return merged

    async def _squeezed(self, parts: list[str], kind: Kind) -> list[str]:
        """Parts short enough that two fit into one request: by asking once, after that by clipping."""
        goal = max(SMALLEST_MATERIAL // 2, (self._room(kind).tokens or self.max_tokens * 2) // 2 - _WRAPPING)
        long = [place for place, part in enumerate(parts) if self.count(part) > goal]
        if self.shortened:
            return [self._clipped(part, goal) if place in long else part for place, part in enumerate(parts)]
        self.shortened = True
        return await self._shortened(parts, long, goal)

    async def _shortened(self, parts: list[str], long: Sequence[int], goal: int) -> list[str]:
        room = self._room("shorten")
        asked = [place for place in long if room.holds(parts[place], self.count)]
        outcomes = await self._send([self._request("shorten", [parts[place]], asked=goal) for place in asked])
        shorter = list(parts)
        for place, outcome in zip(asked, outcomes, strict=True):
            if outcome.text is not None:
                shorter[place] = min(parts[place], outcome.text, key=self.count)
        return shorter

    async def _capped(self, text: str) -> str:
        """The finished summary within its cap: asked once to be shorter, then clipped."""
        if self.count(text) > self.max_tokens:
            (text,) = await self._shortened([text], [0], self.max_tokens)
        return self._clipped(text, self.max_tokens)

    def _clipped(self, text: str, tokens: int) -> str:
        if self.count(text) <= tokens:
            return text
        self._note_truncated(f"a summary of {self.count(text):,} tokens was cut to {tokens:,}")
        return clip(text, tokens, self.count)

    # ---- sizes ----

    @property
    def _allowed(self) -> Room:
        return Room(self.limits.tokens, self.limits.characters)

    def _room(self, kind: Kind, previous: str = "") -> Room:
        """What a request of this kind has for material beside its own words; nothing where ``previous`` fills it."""
        bare = self.wording.compose(kind, [""], max_tokens=self.max_tokens, previous=previous)
        smallest = 0 if previous else SMALLEST_MATERIAL
        characters = max(4 * smallest, self.limits.characters - len(bare))
        if self.limits.tokens is None:
            return Room(None, characters)
        return Room(max(smallest, self.limits.tokens - self.count(bare)), characters)

    def _size(self, texts: Sequence[str]) -> int:
        return sum(self.count(text) for text in texts)

    def _answer_tokens(self, results: int) -> int:
        """What each of so many answers may take: a share of the cap, and little enough that two fit in one request."""
        usable = self.limits.tokens
        if results == 1:
            return self.max_tokens if usable is None else min(self.max_tokens, max(SMALLEST_MATERIAL, usable // 2))
        share = max(self.max_tokens // results, self.max_tokens // 8 if usable is None else usable // 20)
        third = share if usable is None else (self._room("merge").tokens or usable) // 3
        return min(self.max_tokens, max(SMALLEST_MATERIAL // 2, min(share, third)))

    def _batches(self, parts: Sequence[str], kind: Kind) -> list[range]:
        room = self._room(kind)
        tokens = [0.0 if room.tokens is None else (self.count(part) + _WRAPPING) / room.tokens for part in parts]
        characters = [len(part) / room.characters for part in parts]
        return partition([max(pair) for pair in zip(tokens, characters, strict=True)])

    # ---- spans ----

    def _fitted(self, spans: Sequence[_Span]) -> list[_Span]:
        """The spans, cut where they exceed what one request holds now."""
        room = self._room("summarise")
        return [_Span(units, span.depth) for span in spans for units in pack(span.units, room, self.count)]

    def _refitted(self, nodes: Sequence[str | _Span]) -> list[str | _Span]:
        return [
            new for node in nodes for new in ([node] if isinstance(node, str) or node.clipped else self._fitted([node]))
        ]

    def _smaller(self, span: _Span, outcome: _Outcome, request: _Request) -> list[_Span]:
        """The parts of a span whose request overflowed, each smaller than it, or clipped. Raises ``SummaryFailed``."""
        depth = span.depth + 1
        if span.clipped:
            raise SummaryFailed(
                f"the summariser refuses even a prompt of {request.tokens:,} tokens as too long, of which "
                f"{request.tokens - request.material:,} are instructions: shorten the prompt, or take a summariser "
                f"with a window of at least {SUPPORTED_WINDOW:,} tokens",
                attempts=[outcome.overflow.kind] if outcome.overflow else (),
            )
        whole = joined(span.units)
        if self.count(whole.text) <= SMALLEST_MATERIAL:
            self.lost |= span.indices
            self._note_truncated(f"messages {_listed(span.indices)} were cut to fit a request")
            return [_Span((Unit(clip(whole.text, SMALLEST_MATERIAL // 3, self.count), whole.indices),), depth, True)]
        between_messages = len(span.indices) >= self.options.min_messages and depth <= self.options.max_depth
        return self._fitted([_Span(span.units if between_messages else (whole,), depth)])

    # ---- requests ----

    def _request(
        self,
        kind: Kind,
        texts: Sequence[str],
        *,
        previous: str = "",
        judged: int = 0,
        asked: int | None = None,
        depth: int = 0,
    ) -> _Request:
        tokens = max(48, int((asked or self._answer_tokens(1)) * _ASKED))
        prompt = self.wording.compose(kind, texts, max_tokens=tokens, previous=previous)
        material = self._size(texts) + self.count(previous)
        return _Request(kind, prompt, self.count(prompt), material, judged, tokens, depth)

    def _chunk_request(self, span: _Span, chunks: int) -> _Request:
        return self._request(
            "summarise",
            span.texts,
            judged=self._full(self._size(span.texts)),
            asked=self._answer_tokens(chunks),
            depth=span.depth,
        )

    def _merge_request(self, texts: Sequence[str], kind: Kind, asked: int) -> _Request:
        if kind == "update":
            return self._request(kind, texts[1:], previous=texts[0], asked=asked)
        return self._request(kind, texts, asked=asked)

    def _full(self, material: int) -> int:
        """A chunk may be short, and its answer still be fine: it is judged as if its request had been full."""
        return max(material, self.limits.tokens or 0, SUPPORTED_WINDOW // 2)

    async def _send(self, requests: Sequence[_Request]) -> list[_Outcome]:
        """Ask side by side, then learn from all outcomes. Raises ``SummaryFailed`` where every answer was refused."""
        outcomes = await self.ports.gather([partial(self._ask, request) for request in requests])
        self.outcomes += outcomes
        for request, outcome in zip(requests, outcomes, strict=True):
            self._report(request, outcome)
        overflowed = [(r, o.overflow) for r, o in zip(requests, outcomes, strict=True) if o.overflow is not None]
        if overflowed:
            self._learn(overflowed)
        for request, outcome in zip(requests, outcomes, strict=True):
            if outcome.text is None and outcome.overflow is None:
                problem = f"no usable answer to a {request.kind} request of {request.tokens:,} tokens"
                raise SummaryFailed(f"{problem}: {outcome.refusals[-1]}", attempts=outcome.refusals)
        return outcomes

    async def _ask(self, request: _Request) -> _Outcome:
        """One request with its retries. Runs beside others: reads the run, writes nothing."""
        prompt, refusals = request.prompt, list[str]()
        read = written = calls = 0
        while True:
            calls += 1
            try:
                reply = await self.ports.call(self.summarizer.complete, prompt)
            except Exception as error:
                found = overflow.classify(error)
                if found is None or found.kind not in _BISECTABLE:
                    raise
                return _Outcome(None, found, tuple(refusals), calls, read, written)
            answer = to_answer(reply)
            text = clean(answer.text)
            read += answer.input_tokens or self.count(prompt)
            written += answer.output_tokens or self.count(text)
            refusal = rejection(answer, input_tokens=request.judged, count=self.count)
            if refusal is None:
                return _Outcome(text, None, tuple(refusals), calls, read, written)
            refusals.append(refusal)
            if len(refusals) > self.options.retries_on_rejection:
                return _Outcome(None, None, tuple(refusals), calls, read, written)
            retry = again(request.prompt, refusal, max_tokens=request.asked)
            prompt = retry if self._allowed.holds(retry, self.count) else request.prompt

    # ---- what is noted ----

    def _learn(self, overflowed: Sequence[tuple[_Request, Overflow]]) -> None:
        told = self.limits.tokens is not None and not self.limits.learnt
        share = 0.75 if told else 0.5  # a window that we were told may be right, and only our count a little off
        for request, found in overflowed:
            deep = request.depth >= self.options.max_depth
            self.limits.learn(found, tokens=request.tokens, characters=len(request.prompt), share=share, deep=deep)
            self.stuck = self.stuck or request.material <= SMALLEST_MATERIAL
        request, found = min(overflowed, key=lambda pair: pair[0].tokens)
        allowed = "any number of" if self.limits.tokens is None else f"{self.limits.tokens:,}"
        self.observer.emit(
            "summary_overflowed",
            f"{len(overflowed)} {request.kind} request(s) of {request.tokens:,} tokens and more did not fit; "
            f"prompts are at most {allowed} tokens and {self.limits.characters:,} characters from now on",
            requests=len(overflowed),
            kind=request.kind,
            tokens=request.tokens,
            overflow=found.kind,
            named_limit=found.limit,
            longest_prompt=self.limits.tokens,
            depth=request.depth,
        )

    def _report(self, request: _Request, outcome: _Outcome) -> None:
        self.max_depth = max(self.max_depth, request.depth)
        for refusal in outcome.refusals:
            self.observer.emit(
                "summary_rejected", f"the answer was not used: {refusal}", kind=request.kind, reason=refusal
            )
        if outcome.text is not None:
            self.observer.emit(
                "summary_request",
                f"{request.kind}: {outcome.input_tokens:,} tokens in, {outcome.output_tokens:,} out",
                kind=request.kind,
                input_tokens=outcome.input_tokens,
                output_tokens=outcome.output_tokens,
                calls=outcome.calls,
                depth=request.depth,
            )

    def _announce(self, nodes: Sequence[str | _Span]) -> None:
        if len(nodes) > 1:
            done = sum(1 for node in nodes if isinstance(node, str))
            self.observer.emit("summary_chunked", f"{done} of {len(nodes)} chunks done", done=done, chunks=len(nodes))

    def _note_read(self, span: _Span) -> None:
        self.read |= span.indices
        self.chunk_count += 1

    def _note_truncated(self, sentence: str) -> None:
        self.truncated = True
        self.observer.emit("summary_truncated", sentence)


def _listed(indices: frozenset[int]) -> str:
    return ", ".join(str(index) for index in sorted(indices))
