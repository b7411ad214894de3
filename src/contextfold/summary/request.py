"""One request to the summarizer: composed, asked, its answer accepted or its refusal learned from.

What belongs here: how long a prompt may be and how long an answer is asked for, sending requests side by side, and what
an overflow teaches. What does not: which text goes into which request (``bisect``, ``merge``), its words
(``prompt_files``), and whether an answer will do (``accept``).

Branches call the summarizer and nothing else; the trunk, when all have answered, learns, counts and reports, in the
order of the requests, so that neither the outcome nor the events depend on who answers first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from contextfold import overflow
from contextfold.errors import SummaryFailed, is_control_flow, reason
from contextfold.observe import Observer
from contextfold.overflow import Overflow
from contextfold.ports import Ports
from contextfold.summary.accept import clean, rejection
from contextfold.summary.chunks import Room, clip
from contextfold.summary.models.asking import Asker
from contextfold.summary.models.base import Model
from contextfold.summary.options import SMALLEST_REQUEST, SummaryOptions
from contextfold.summary.progress import Progress
from contextfold.summary.prompt_files import Kind, Wording, again
from contextfold.summary.summarizer import Answer

SUPPORTED_WINDOW = 2_000
"""Tokens. The window that any summarizer is promised to work with; tried when halving has gone ``max_depth`` deep."""

SMALLEST_MATERIAL = 96
"""Tokens. A request with less material than this that still overflows is clipped, then given up."""

BRIEF_BELOW = 4_096
"""Tokens. In shorter prompts the full instructions take more than two parts in a hundred."""

_TOLD, _LEARNED = 0.95, 0.88
"""How much of a window a prompt may take. Our count may be a little off; and a window learned from an error often
has to hold the answer too."""

_SHRUNK_TOLD, _SHRUNK = 0.75, 0.55
"""To what share of the material of a prompt that overflowed, without a limit named, the next are shortened: a little
more than half, so that two requests hold what one did. A window that we were told may be right, and only our count a
little off."""

_ASKED = 0.9
"""Writers overshoot: they are asked for this share of what they may take."""

_LEAST_ASKED = 48
"""Tokens. The shortest answer that is ever asked for."""

_READ = 0.6
"""A model that tells it has read less than this share of a prompt has not read all of it: more than our count may be
off. Some servers cut what does not fit without a word."""

_MORE_ROOM = 4
"""How many times the length that a prompt asks for an answer that replaces an unusable one may take."""

_BISECTABLE = ("prompt_too_long", "item_too_long", "output_budget")


@dataclass(slots=True)
class RequestLimits:
    """The longest prompt to send: ``tokens`` by our count (None: unknown) and ``characters``.

    ``refused``: the size of the smallest prompt that was too long.
    """

    tokens: int | None
    characters: int
    learned: bool = False
    refused: int | None = None

    @classmethod
    def of_window(cls, window: int | None, characters: int) -> RequestLimits:
        """The limits for a window in tokens (None: unknown) before anything has been sent."""
        return cls(None if window is None else int(window * _TOLD), characters)

    @property
    def room(self) -> Room:
        return Room(self.tokens, self.characters)

    def learn(self, found: Overflow, request: SummaryRequest, *, share: float, deep: bool) -> None:
        """Shrink, so that the prompt that overflowed would not be sent again.

        Where no limit is named, to ``share`` of that prompt's material, since the words around it stay as they are;
        when ``deep``, to the supported window at once.
        """
        if found.kind == "item_too_long":
            characters = len(request.prompt)
            named = int((found.limit or 0) * _TOLD)
            self.characters = min(self.characters, named if 0 < named < characters else characters // 2)
            return
        named = found.limit or 0
        if found.used is not None and found.used > named:
            named = request.tokens * named // found.used  # the provider's tokens in ours
        allowed = int(named * _LEARNED)
        if found.kind == "output_budget" or named < SMALLEST_REQUEST or allowed >= request.tokens:
            allowed = int(request.tokens - (1 - share) * request.material)
            if deep:
                allowed = min(allowed, int(SUPPORTED_WINDOW * _TOLD))
        self.tokens = allowed if self.tokens is None else min(self.tokens, allowed)
        self.learned = True
        self.refused = request.tokens if self.refused is None else min(self.refused, request.tokens)


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One prompt. ``tokens`` is the size of all of it, ``material`` that of what is in it to be summed up."""

    kind: Kind
    prompt: str
    tokens: int
    material: int
    longest_answer: int
    """An answer of more tokens is refused as longer than its input. 0: any length will do, because the answer takes the
    place of summaries, and the cap on the whole holds it."""
    answer_tokens: int
    """The length that the prompt asks for."""
    depth: int = 0
    """How many overflows led to it."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request: a ``text``, or an ``overflow``, or neither: every answer was refused.

    Tokens and calls are those of all its attempts.
    """

    text: str | None = None
    overflow: Overflow | None = None
    refusals: tuple[str, ...] = ()
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""


@dataclass(slots=True)
class Requester:
    """Composes and sends the requests of one run. Only the trunk writes to it.

    ``max_tokens`` is the cap on the finished summary. ``stuck``: even a request with hardly any material overflowed.
    ``truncated``: text was cut away to make something fit.
    """

    asker: Asker
    progress: Progress
    options: SummaryOptions
    wording: Wording
    max_tokens: int
    ports: Ports
    count: Callable[[str], int]
    observer: Observer
    limits: RequestLimits
    outcomes: list[RequestOutcome] = field(default_factory=list)
    max_depth: int = 0
    stuck: bool = False
    truncated: bool = False

    @property
    def is_searching(self) -> bool:
        """Whether a request overflowed without a word about the limit: the next size is a guess."""
        return any(outcome.overflow is not None and not outcome.overflow.limit for outcome in self.outcomes)

    # ---- sizes ----

    def size(self, texts: Sequence[str]) -> int:
        return sum(self.count(text) for text in texts)

    def room(self, kind: Kind, previous: str = "") -> Room:
        """What a request of this kind has for material beside its own words; nothing where ``previous`` fills it."""
        bare = self.wording.compose(kind, [""], max_tokens=self.max_tokens, previous=previous)
        smallest = 0 if previous else SMALLEST_MATERIAL
        characters = max(4 * smallest, self.limits.characters - len(bare))
        if self.limits.tokens is None:
            return Room(None, characters)
        return Room(max(smallest, self.limits.tokens - self.count(bare)), characters)

    @property
    def chunk_kind(self) -> Kind:
        """How one of several chunks is asked about: in few words where these weigh much."""
        return "chunk" if self.limits.tokens is not None and self.limits.tokens < BRIEF_BELOW else "summarize"

    def answer_tokens(self, results: int) -> int:
        """What each of ``count`` answers may take: a share of the cap, so small that two fit in one request."""
        usable = self.limits.tokens
        if results == 1:
            return self.max_tokens if usable is None else min(self.max_tokens, max(SMALLEST_MATERIAL, usable // 2))
        share = max(self.max_tokens // results, self.max_tokens // 8 if usable is None else usable // 20)
        third = share if usable is None else (self.room("merge").tokens or usable) // 3
        return min(self.max_tokens, max(SMALLEST_MATERIAL // 2, min(share, third)))

    def clipped(self, text: str, tokens: int, what: str) -> str:
        """The beginning of a text that is too long. ``what`` was done is told in a sentence."""
        self.truncated = True
        self.observer.emit("summary_truncated", what)
        return clip(text, tokens, self.count)

    # ---- one request ----

    def compose(
        self,
        kind: Kind,
        texts: Sequence[str],
        *,
        previous: str = "",
        longest_answer: int = 0,
        answer_tokens: int | None = None,
        depth: int = 0,
    ) -> SummaryRequest:
        """A request to sum up ``texts``. It asks for a little less than the ``answer_tokens`` that the answer may take
        (by default those of the only one) and than the longest that is not refused.
        """
        allowed = answer_tokens or self.answer_tokens(1)
        asked = max(_LEAST_ASKED, int(min(allowed, longest_answer or allowed) * _ASKED))
        prompt = self.wording.compose(kind, texts, max_tokens=asked, previous=previous)
        material = self.size(texts) + self.count(previous)
        return SummaryRequest(kind, prompt, self.count(prompt), material, longest_answer, asked, depth)

    async def send(self, requests: Sequence[SummaryRequest]) -> list[RequestOutcome]:
        """Ask side by side, then learn from all outcomes. Raises ``SummaryFailed`` where every answer was refused."""
        answered: list[RequestOutcome] = []
        try:
            # Each outcome is noted as it comes: when one branch raises, ``gather`` gives back none of the others.
            outcomes = await self.ports.gather([partial(self._noted, request, answered) for request in requests])
        except BaseException:
            self.outcomes += answered  # what the others cost is spent all the same
            raise
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

    async def _noted(self, request: SummaryRequest, answered: list[RequestOutcome]) -> RequestOutcome:
        outcome = await self._ask(request)
        answered.append(outcome)
        return outcome

    async def _ask(self, request: SummaryRequest) -> RequestOutcome:
        """The outcome of one request, by the first model that does not fail. Runs beside others: writes nothing."""
        *others, last = self.asker.models
        for model in others:
            try:
                outcome = await self._ask_model(model, request)
            except Exception as error:
                if is_control_flow(error):
                    raise
                self._announce_next(model, reason(error))
                continue
            if outcome.text is not None or outcome.overflow is not None:
                return outcome
            self._announce_next(model, outcome.refusals[-1])
        return await self._ask_model(last, request)

    async def _ask_model(self, model: Model, request: SummaryRequest) -> RequestOutcome:
        outcome = await self._until_usable(model, request)
        if outcome.text is not None and request.kind in ("summarize", "chunk", "update"):
            await self.progress.done(request.material)
        return outcome

    async def _until_usable(self, model: Model, request: SummaryRequest) -> RequestOutcome:
        """One request, asked again while its answers cannot be used."""
        prompt, refusals = request.prompt, list[str]()
        read = written = calls = 0
        answer_tokens = request.answer_tokens
        while True:
            calls += 1
            size = self.count(prompt)
            try:
                answer = await self.asker.answer(model, prompt, answer_tokens, request.kind)
            except Exception as error:
                found = overflow.classify(error, fill=size / self.limits.tokens if self.limits.tokens else None)
                if found is None or found.kind not in _BISECTABLE:
                    raise
                return RequestOutcome(None, found, tuple(refusals), calls, read, written, model.name)
            text = clean(answer.text)
            read += answer.input_tokens or size
            written += answer.output_tokens or self.count(text)
            if (unread := _unread(answer, size)) is not None:
                return RequestOutcome(None, unread, tuple(refusals), calls, read, written, model.name)
            # A merge or an update of short summaries may well come back word for word; a chunk of a conversation may
            # not.
            new = prompt if request.kind in ("summarize", "chunk") else ""
            refusal = rejection(answer, input_tokens=request.longest_answer, count=self.count, source=new)
            if refusal is None:
                return RequestOutcome(text, None, tuple(refusals), calls, read, written, model.name)
            refusals.append(refusal)
            if len(refusals) > self.options.retries_on_rejection:
                return RequestOutcome(None, None, tuple(refusals), calls, read, written, model.name)
            answer_tokens = _MORE_ROOM * request.answer_tokens  # where that sets a limit, hidden reasoning may fill it
            retry = again(request.prompt, refusal, max_tokens=request.answer_tokens)
            # the words about the refusal may be what no longer fits
            prompt = retry if self.limits.room.holds(retry, self.count) else request.prompt

    def _announce_next(self, model: Model, problem: str) -> None:
        self.observer.emit(
            "summary_model_failed", f"{model.name} failed ({problem}): the next model is asked", model=model.name
        )

    # ---- what is learned and reported ----

    def _learn(self, overflowed: Sequence[tuple[SummaryRequest, Overflow]]) -> None:
        was_told = self.limits.tokens is not None and not self.limits.learned
        for request, found in overflowed:
            deep = request.depth >= self.options.max_depth
            self.limits.learn(found, request, share=_SHRUNK_TOLD if was_told else _SHRUNK, deep=deep)
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
        if not self.options.bisect:
            raise SummaryFailed(
                f"a summary request of {request.tokens:,} tokens did not fit, and with bisection off it is not cut",
                attempts=[found.kind],
            )

    def _report(self, request: SummaryRequest, outcome: RequestOutcome) -> None:
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


def _unread(answer: Answer, size: int) -> Overflow | None:
    """The verdict on an answer to only a part of its prompt of ``size`` tokens; None if all was read."""
    if answer.input_tokens is None or answer.input_tokens >= _READ * size:
        return None
    return Overflow("truncated_silently", limit=answer.input_tokens, used=size)
