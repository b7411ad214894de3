"""A request with a compaction around it: view, send, and what to do when the provider says that it does not fit.

    view ──send──▶ answer ──┬──▶ done
                            └──▶ refused, or read in part ──remedy for this kind──▶ a smaller or mended view ──▶ send

Each kind of refusal has one remedy, which is tried once and only if the view gets strictly smaller (or, for a broken
history, other than it was). After the remedy for size the last resort, where policy allows it, drops half by half.

What belongs here: the order of these steps. What does not: compacting (``passes``), which size follows
a refusal (``overflow``), making the records of the last resort (``passes.without_pass``), and any wire shape.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from contextfold.calls.refused import refusal_in
from contextfold.calls.request import UNLIMITED, CompactionResult, Request
from contextfold.calls.usage import Usage, read_usage, said_in
from contextfold.errors import (
    RECENT,
    CannotFit,
    StillTooLong,
    SummaryFailed,
    check_send,
    is_control_flow,
)
from contextfold.observe import Observer
from contextfold.overflow import Kind, Overflow, classify, next_size
from contextfold.overflow.next_size import assumed_limit, room_beside
from contextfold.passes.without_pass import Revise, clipped, halved, with_thinking, without_thinking
from contextfold.policy import Policy
from contextfold.ports import Ports
from contextfold.tokens import Calibration
from contextfold.window import Windows

UNREAD = 0.7
"""Below this share of the estimated texts, a provider that reports fewer input tokens did not read all of them. The
estimate is within a quarter of every tokenizer tried."""
UNREAD_CALIBRATED = 0.85
"""The same once the estimate is corrected by what this conversation's provider reported before."""
CALIBRATED = 2
"""Observations after which it counts as corrected."""
NOTICEABLE = 1_000
"""Tokens. In shorter views frames and names weigh too much to compare counts."""

CUT_OFF_BY_WINDOW = ("model_context_window_exceeded", "context_window_exceeded", "model_length")
"""Finish reasons of an answer that ended because prompt and answer filled the window."""

LEAST_ANSWER = 256
"""Tokens. Where a prompt that fits leaves less for the answer, it is compacted: the answer would be cut off."""

CAUTIOUS = 1.25
"""The provider's tokens for one of the estimate, where an answer that is too long would be refused for good: the
estimate is within a quarter of every tokenizer tried."""

MOST_CUT_SHORT = 3
"""Refusals of a request that leave open how long its prompt is: from the third on it would be twice the estimate."""


class Compact(Protocol):
    """Makes the next view. ``window``: compact for this many tokens; ``revise``: make the record without a pass."""

    def __call__(
        self, request: Request, /, *, window: int | None = None, revise: Revise | None = None, strict: bool = False
    ) -> Awaitable[CompactionResult]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of sending a view: a response or an error, and what it says about sizes."""

    response: Any = None
    usage: Usage = field(default_factory=Usage)
    error: Exception | None = None
    overflow: Overflow | None = None


@dataclass
class Exchange:
    """One request until it is answered. Used once."""

    send: Callable[..., Any]
    request: Request
    compact: Compact
    windows: Windows
    policy: Policy
    observer: Observer
    ports: Ports
    max_tokens: Any = UNLIMITED
    _tried: set[str] = field(default_factory=set)
    _refused: list[int] = field(default_factory=list)
    _cut_short: int = 0
    """Refusals that only say where the counting of the prompt ended."""
    _halvings: int = 0

    async def answer(self) -> tuple[Any, CompactionResult]:
        """The response, and the result whose view was answered, with its usage learned.

        Raises ``StillTooLong`` when every view was refused for its size, and what ``send`` raised otherwise.
        """
        check_send(self.send)
        response, result = await self._answer()
        return response, replace(result, events=tuple(self.observer.events))

    async def _answer(self) -> tuple[Any, CompactionResult]:
        if not self.request.calibration.observations:  # nothing is known of this conversation: what is of others
            self.request = replace(self.request, calibration=self._assumed_calibration())
        result = await self.compact(self.request)
        while True:
            outcome = await self._attempt(result)
            if outcome.overflow is None:
                return outcome.response, self._learn_usage(outcome.usage, result)
            self._announce(outcome.overflow, result)
            better = await self._remedy(outcome, outcome.overflow, result)
            if better is not None:
                await self._discard(outcome.response)
                result = better
            elif outcome.error is None:  # an answer, and nothing to be done about what it tells
                if outcome.overflow.kind == "truncated_silently":
                    # Nor will be: the figure is not compared with what is sent again.
                    self.windows.distrust(self.request.endpoint, self.request.model)
                return outcome.response, result
            else:
                raise self._noted(outcome.error, outcome.overflow, result)

    async def _attempt(self, result: CompactionResult) -> Outcome:
        # A ``send`` that knows of no answer limit must not be called with a second argument.
        limit = () if self.max_tokens is UNLIMITED else (self._limit_beside(result),)
        try:
            response = await self.ports.call(self.send, result.messages, *limit)
        except Exception as error:
            if (
                is_control_flow(error)
                or (overflow := classify(error, fill=result.tokens_after / result.window)) is None
            ):
                raise
            return Outcome(error=error, overflow=overflow)
        said = said_in(response)
        usage, refusal = read_usage(said), refusal_in(said)
        overflow = classify(refusal) if refusal is not None else self._unread(usage, result)
        return Outcome(response, usage, overflow=overflow)

    def _unread(self, usage: Usage, result: CompactionResult) -> Overflow | None:
        """Whether an answer that came as a success was given without reading the whole prompt."""
        if usage.finish in CUT_OFF_BY_WINDOW:
            # An answer's tokens alone are no limit.
            both = usage.input_tokens + (usage.output_tokens or 0) if usage.input_tokens else None
            return Overflow("truncated_silently", both, usage.input_tokens)
        read, endpoint, model = usage.input_tokens, self.request.endpoint, self.request.model
        if read is None or not self.windows.trusts(endpoint, model) or not is_partly_read(read, result):
            return None
        if "truncated_silently" not in self._tried:
            return Overflow("truncated_silently", read, result.tokens_after)
        self.windows.distrust(endpoint, model)  # a smaller prompt is reported short as well: it counts something else
        self.observer.emit(
            "usage_distrusted",
            "the reported input tokens do not count what is sent, and are no longer compared with it",
            endpoint=endpoint,
            reported=read,
            sent=result.tokens_after,
        )
        return None

    # ---- remedies ----

    async def _remedy(self, outcome: Outcome, overflow: Overflow, result: CompactionResult) -> CompactionResult | None:
        if not self.policy.resend_after_overflow:
            return None
        first = (overflow.about or overflow.kind) not in self._tried
        self._tried.add(overflow.about or overflow.kind)
        if overflow.kind == "prompt_too_long":
            return await self._shrink_or_raise(outcome, overflow, result, first)
        self._cut_short += overflow.is_cut_short
        if not first and not (overflow.is_cut_short and self._cut_short <= MOST_CUT_SHORT):
            return None
        if overflow.kind == "output_budget":
            return await self._with_a_shorter_answer(overflow, result)
        if overflow.about is not None:
            revise = without_thinking if overflow.about == "thinking" else with_thinking
            other = await self.compact(self.request.again(result, None), revise=revise)
            return self._resending(overflow, other) if other.messages != result.messages else None
        if overflow.kind == "malformed_history":
            mended = await self.compact(self.request.again(result, None), strict=True)
            return self._resending(overflow, mended) if mended.messages != result.messages else None
        if overflow.kind == "item_too_long":
            return await self._revised(partial(clipped, characters=overflow.limit), overflow, result)
        return await self._smaller(overflow, result)

    async def _shrink_or_raise(
        self, outcome: Outcome, overflow: Overflow, result: CompactionResult, first: bool
    ) -> CompactionResult:
        self._refused.append(result.tokens_after)
        await self._learn_window(overflow, result)
        # A second refusal is about the view that the first remedy made: the same remedy would make the same view.
        smaller = await self._smaller(overflow, result) if first else None
        if smaller is None and self.policy.on_overflow == "drop_oldest":
            smaller = await self._halve(overflow, result)
        if smaller is not None:
            return smaller
        rest = result.tokens_after - sum(result.floor.values())
        floor = {**result.floor, **({RECENT: rest} if rest > 0 else {})}
        error = StillTooLong(sent=self._refused, limit=overflow.limit or result.window, floor=floor)
        self.observer.emit("cannot_fit", str(error), limit=error.limit, floor=error.floor)
        raise error from outcome.error

    async def _smaller(self, overflow: Overflow, result: CompactionResult) -> CompactionResult | None:
        """The view compacted for what the refusal taught, if that makes it strictly smaller."""
        # What was taken is as the provider counts, and the view as it is counted here.
        accepted = int(self._accepted() / self._rate(result))
        window = next_size(overflow, result.tokens_after, result.window, accepted)
        again = self.request.again(result, f"overflow: {overflow.kind}")
        try:
            smaller = await self.compact(again, window=window)
        except SummaryFailed:  # said in an event
            return None
        except CannotFit:
            # The provider named the limit, and what must stay is above it: anything that could be sent would be
            # refused.
            if overflow.limit is not None:
                return None
            return await self._as_small_as_can_be(overflow, again, result)
        return self._resending(overflow, smaller) if smaller.tokens_after < result.tokens_after else None

    async def _as_small_as_can_be(
        self, overflow: Overflow, again: Request, result: CompactionResult
    ) -> CompactionResult | None:
        """No limit was named, and what was assumed in its place cannot be met: a smaller view is worth a try."""
        try:
            smaller = await self.compact(again, window=result.tokens_after - 1)
        except (CannotFit, SummaryFailed):
            return None
        return self._resending(overflow, smaller) if smaller.tokens_after < result.tokens_after else None

    async def _halve(self, overflow: Overflow, result: CompactionResult) -> CompactionResult | None:
        smaller = await self._revised(halved, overflow, result)
        if smaller is not None:
            self._halvings += 1
            self.observer.emit(
                "history_halved",
                f"the older half was dropped: {result.tokens_after:,} tokens became {smaller.tokens_after:,}",
                step=self._halvings,
                tokens_before=result.tokens_after,
                tokens_after=smaller.tokens_after,
                dropped=smaller.ledger.counts()["dropped"] - result.ledger.counts()["dropped"],
            )
        return smaller

    async def _revised(self, revise: Revise, overflow: Overflow, result: CompactionResult) -> CompactionResult | None:
        smaller = await self.compact(self.request.again(result, None), revise=revise)
        return self._resending(overflow, smaller) if smaller.tokens_after < result.tokens_after else None

    async def _with_a_shorter_answer(self, overflow: Overflow, result: CompactionResult) -> CompactionResult | None:
        """The same view with a lower answer limit: the prompt fits, so nothing is to be compacted, unless it leaves so
        little that no answer would be worth having. A smaller view where the limit is out of reach; the refusal where
        there is none, and the provider has counted so: many a client makes its own room then.
        """
        await self._learn_window(overflow, result)
        if self.max_tokens is not UNLIMITED:
            self._learn_together(overflow, result)
        if overflow.is_cut_short:  # the prompt may even be above the limit by itself
            overflow = replace(overflow, used=max(overflow.used or 0, self._beyond_count(result)))
        if self.max_tokens is UNLIMITED:
            room = (overflow.limit or 0) - (overflow.answer or 0)
            if room <= 0 or not overflow.answer:
                return await self._smaller(overflow, result)
            # Later requests ask for as long an answer. A guess, since another ``send`` may ask for a shorter one.
            model, endpoint, sent = self.request.model, self.request.endpoint, overflow.used or result.tokens_after
            await self.windows.learn(endpoint, model, room, self.ports, self.observer, refused=sent)
            return await self._smaller(replace(overflow, limit=room), result)
        used, limit = overflow.used or 0, overflow.limit
        lowered = shorter_answer(overflow, self.max_tokens)
        if (limit is not None and used >= limit) or (lowered is not None and lowered < LEAST_ANSWER):
            smaller = await self._smaller(overflow, result)
            if smaller is not None:
                # the provider's count of the old prompt, in proportion to the new one
                left = replace(overflow, used=used * smaller.tokens_after // result.tokens_after)
                self._lower(shorter_answer(left, self.max_tokens), overflow)
                return smaller
            if overflow.used and not overflow.is_cut_short and (self.max_tokens or LEAST_ANSWER) >= LEAST_ANSWER:
                return None
        if lowered is None:
            return None
        self._lower(lowered, overflow)
        return self._resending(overflow, result)

    def _lower(self, lowered: int | None, overflow: Overflow) -> None:
        if lowered is None:
            return
        self._tell_lowered(lowered, overflow)
        self.max_tokens = lowered

    def _limit_beside(self, result: CompactionResult) -> int | None:
        """The answer limit to send beside a view: the caller's, or a lower one where this endpoint has refused both
        together for this model. An agent that always asks for more than is left would be refused in every turn.
        """
        known = self.windows.together(self.request.endpoint, self.request.model)
        # What a refusal of this very request has led to stays: it named what the provider counts.
        if known is None or "output_budget" in self._tried:
            return self.max_tokens  # type: ignore[no-any-return]
        asked = self.max_tokens or known.usual
        both = Overflow("output_budget", known.limit, self._counted(result, known.rate))
        lowered = shorter_answer(both, asked) if asked else None
        # Where as good as nothing is left, a refusal decides what becomes of the view.
        if lowered is None or lowered < LEAST_ANSWER:
            return self.max_tokens  # type: ignore[no-any-return]
        self._tell_lowered(lowered, both)
        return lowered

    def _tell_lowered(self, lowered: int, overflow: Overflow) -> None:
        self.observer.emit(
            "answer_limit_lowered",
            f"prompt and answer together do not fit: the answer may take {lowered:,} tokens",
            max_tokens=lowered,
            limit=overflow.limit,
            used=overflow.used,
        )

    def _counted(self, result: CompactionResult, rate: float) -> int:
        """A view's tokens as the provider would count them; ``rate``: of its own for each of the estimate, where it has
        said nothing of this conversation."""
        if result.calibration.observations:
            return result.tokens_after
        known = self.windows.counted(self.request.endpoint, self.request.model)
        return int(result.estimated_tokens * (known.ratio if known is not None else rate))

    def _beyond_count(self, result: CompactionResult) -> int:
        """The tokens to assume of a prompt that was not counted to its end: more where as many were assumed before."""
        estimated, endpoint, model = result.estimated_tokens, self.request.endpoint, self.request.model
        assumed, known = self._counted(result, CAUTIOUS), self.windows.counted(endpoint, model)
        if self._cut_short > 1 or (known is not None and not result.calibration.observations):
            assumed = int(assumed * CAUTIOUS)
            self.windows.learn_counted(endpoint, model, estimated, assumed, is_refusal=True)
        return assumed

    def _assumed_calibration(self) -> Calibration:
        """Without observations: the first one of this conversation takes its place. Never fewer tokens than estimated,
        as those of other conversations may be lighter."""
        known = self.windows.counted(self.request.endpoint, self.request.model)
        return self.request.calibration if known is None else Calibration(max(1.0, known.ratio))

    # ---- what is learned, and what is said ----

    def _accepted(self) -> int:
        return self.windows.accepted(self.request.endpoint, self.request.model)

    def _rate(self, result: CompactionResult) -> float:
        """The provider's tokens for one as a view is counted here, where it counted nothing of this conversation."""
        if result.calibration.observations:
            return 1.0
        return self.windows.rate(self.request.endpoint, self.request.model) / result.calibration.ratio

    async def _learn_window(self, overflow: Overflow, result: CompactionResult) -> None:
        if overflow.of_bytes and overflow.limit is None:
            return
        # Compared with what was taken, which is as the provider counts.
        sent = int(result.tokens_after * self._rate(result))
        refused = None if overflow.limit is not None else sent
        tokens = overflow.limit if overflow.limit is not None else assumed_limit(sent, self._accepted())
        model, endpoint = self.request.model, self.request.endpoint
        if not overflow.is_cut_short:
            self.windows.learn_counted(endpoint, model, result.estimated_tokens, overflow.used, is_refusal=True)
        await self.windows.learn(endpoint, model, tokens, self.ports, self.observer, refused=refused)

    def _learn_together(self, overflow: Overflow, result: CompactionResult) -> None:
        """What a refusal says of prompt and answer together holds for later requests."""
        endpoint, model = self.request.endpoint, self.request.model
        if overflow.limit is None or overflow.used is None:
            return
        rate = CAUTIOUS if overflow.is_cut_short else overflow.used / max(1, result.estimated_tokens)
        usual = overflow.answer if self.max_tokens is None else None
        self.windows.learn_together(endpoint, model, overflow.limit, rate=rate, usual=usual)

    def _learn_usage(self, usage: Usage, result: CompactionResult) -> CompactionResult:
        if not self.windows.trusts(self.request.endpoint, self.request.model):
            return result
        endpoint, model = self.request.endpoint, self.request.model
        if not result.is_counted_whole:  # and what fits of what is not counted is not known either
            return result
        # Without usage our own count has to do: what was sent did fit.
        self.windows.accept(endpoint, model, usage.input_tokens or result.tokens_after)
        self.windows.learn_counted(endpoint, model, result.estimated_tokens, usage.input_tokens)
        known = self.windows.together(endpoint, model)
        # what was assumed of a prompt that no refusal counted whole
        if known is not None and usage.input_tokens and result.estimated_tokens >= NOTICEABLE:
            rate = usage.input_tokens / result.estimated_tokens
            self.windows.learn_together(endpoint, model, known.limit, rate=rate)
        return result.after_usage(usage.input_tokens)

    def _announce(self, overflow: Overflow, result: CompactionResult) -> None:
        self.observer.emit(
            "request_overflowed",
            f"the provider says {overflow.kind} about {result.tokens_after:,} tokens",
            kind=overflow.kind,
            limit=overflow.limit,
            used=overflow.used,
            tokens=result.tokens_after,
        )

    def _resending(self, overflow: Overflow, result: CompactionResult) -> CompactionResult:
        self.observer.emit(
            "request_resent",
            f"sent again with {result.tokens_after:,} tokens",
            kind=overflow.kind,
            tokens=result.tokens_after,
            messages=len(result.messages),
        )
        return result

    def _noted(self, error: Exception, overflow: Overflow, result: CompactionResult) -> Exception:
        """The provider's own error, with what was found out about it and the way out as a note (PEP 678)."""
        note = advice(
            overflow,
            result,
            kept_by=None if self.policy.resend_after_overflow else self._switched_off_by(),
            takes_limit=self.max_tokens is not UNLIMITED,
        )
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error

    def _switched_off_by(self) -> str:
        return "resend_after_overflow=False" if self.policy.enabled else "enabled=False"

    async def _discard(self, response: Any) -> None:
        close = getattr(response, "close", None)
        if callable(close):
            await self.ports.release(close)


def is_partly_read(read: int, result: CompactionResult) -> bool:
    """Whether a provider that reports ``read`` input tokens cannot have read the whole view."""
    calibration: Calibration = result.calibration
    least = UNREAD_CALIBRATED if calibration.observations >= CALIBRATED else UNREAD
    # The whole estimate first: `text_tokens` decodes the view again. It leaves out media and reasoning, which each
    # provider counts in its own way, and what stands before its own compaction.
    if result.estimated_tokens < NOTICEABLE or read >= least * result.estimated_tokens:
        return False
    # the lower of the two: a correction upwards must not make an honest count look short
    expected = min(result.text_tokens, calibration.apply(result.text_tokens))
    return expected >= NOTICEABLE and read < least * expected


def advice(overflow: Overflow, result: CompactionResult, *, kept_by: str | None, takes_limit: bool) -> str:
    """What to tell a caller whose request was refused for good, below the provider's own words.

    ``kept_by``: the setting of the policy that keeps it from being sent again. ``takes_limit``: the caller's ``send``
    takes an answer limit.
    """
    found = ", ".join(
        f"{name} {size:,}" for name, size in (("limit", overflow.limit), ("used", overflow.used)) if size is not None
    )
    sent = f"contextfold: {overflow.kind}{f' ({found})' if found else ''}, sent {result.tokens_after:,} tokens. "
    if kept_by is not None:
        return f"{sent}Policy({kept_by}) keeps it from mending this."
    if overflow.kind == "output_budget" and not takes_limit:
        return f"{sent}{_ANSWER_LIMIT_UNKNOWN}"
    if overflow.kind == "rate_limit_too_small":
        items = ", ".join(f"{name} {size:,}" for name, size in result.floor.items())
        return f"{sent}{_ADVICE[overflow.kind].format(floor=items)}"
    return sent + _ADVICE[overflow.kind]


_ANSWER_LIMIT_UNKNOWN = (
    "Prompt and answer together do not fit, and the answer limit is not known here: ask for a shorter answer, or pass "
    "max_tokens= to Compactor.call and take it as the second argument of send, so that it can be lowered."
)
_ADVICE: Mapping[Kind, str] = {
    "prompt_too_long": "The prompt does not fit: use a model with a larger window, or shorten what must stay.",
    "output_budget": "Prompt and answer together do not fit, and no lower answer limit helped: use a model with a "
    "larger window, or a lower Policy(target=...), so that more of it is free.",
    "item_too_long": "One item is over the provider's cap, and it must stay word for word (an instruction, a pin, the "
    "first or newest user message) or cannot be clipped: split it, or shorten it before it gets into the history.",
    "rate_limit_too_small": "The request alone is above the tokens per minute, waiting does not help, and the view can "
    "be made no smaller: {floor}. Have the rate limit raised, ask for a shorter answer, or shorten these items.",
    "malformed_history": "The history was read again, and what the rules known here could mend was refused too, "
    "or there was nothing to mend: the provider's words name the place to look at.",
    "truncated_silently": "The provider read only a part of the prompt.",
}
"""By kind, for those that were not resolved. The way out is the last sentence."""


def shorter_answer(overflow: Overflow, max_tokens: int | None) -> int | None:
    """An answer limit that fits beside the prompt, below the one that was asked for; None where there is none."""
    if max_tokens is UNLIMITED:
        return None
    if overflow.limit is None or overflow.used is None:
        return max_tokens // 2 if max_tokens is not None and max_tokens > 1 else None
    lowered = room_beside(overflow.used, overflow.limit)
    return lowered if lowered >= 1 and (max_tokens is None or lowered < max_tokens) else None
