"""The pass of the drop-in: from the messages of a state to fewer messages that replace them.

    messages ──▶ question ──▶ plan: what ``keep`` names stays ──perform──▶ prose, evidence ──▶ messages

What belongs here: what stays and what leaves, and the engine's answer as messages. What does not: making the summary
(``passes.perform``), when to make one (``summarization``), the text of the summary message (``layout``).

An earlier summary is shown to the engine as what it is, a message of the history that says what is gone: its prose is
updated. Evidence is chosen from the messages that left before, which stand first in the history, where they are still
known (``evicted``); else what the summary quotes of them competes with the new lines for the same room.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable

from contextfold.calls.single_flight import SingleFlight
from contextfold.conversation import pins
from contextfold.conversation.groups import Group
from contextfold.conversation.history import History
from contextfold.conversation.ledger import Fate
from contextfold.errors import CannotFit, is_control_flow
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.rolling import RollingSummarizer, WrongSummary
from contextfold.limits import Limits
from contextfold.observe import Observer
from contextfold.passes.decide import Nothing, Plan, evicted_fate
from contextfold.passes.perform import Made, Means, perform
from contextfold.passes.question import Question
from contextfold.policy import Pins, Policy, Size
from contextfold.ports import Ports
from contextfold.record.compaction import SummaryRecord
from contextfold.record.view import build
from contextfold.summary.options import SMALLEST_REQUEST, SummaryOptions
from contextfold.summary.summarizer import as_summarizer
from contextfold.tokens import TokenCounter

PROSE = (0.1, 300, 2_000)
# Replayed with 80 % of the window as the trigger and 30 % kept, hard / far at 16,000, 32,000 and 64,000 are 66 / 33,
# 73 / 62 and 79 / 57 with a tenth of what triggers, and 70 / 43, 84 / 82 and 90 / 89 with a fifth, for .06 more cost.
EVIDENCE = (0.2, 500, 12_000)
"""What prose and evidence may take: a share of the tokens that triggered, but so many tokens at least and at most."""
LEAST_EVIDENCE = 40
"""Tokens. Fewer hold hardly a line, and its frame takes as much."""
LEAST_SUMMARY = 120
"""Tokens of prose for which what ``keep`` names is cut into at most, where the window is that small."""
QUOTED = 3
"""One evidence token per this many evicted tokens, besides what the last evidence had."""

STEP = 0.25
"""Share of what ``keep`` holds that has to come in addition before it is summarized, where the trigger lies below
``keep``: else each message would rewrite the thread and pay for a summary."""

LEAST_CHUNK = 256
"""Tokens. Of less material no summary is worth its call."""

_AROUND_PROMPT = 64
"""Tokens of the words that the engine puts around the user's prompt and the material."""

_WHOLE_PROMPT = 1 << 40
"""Characters. For a summarizer that reads messages, and whose prompt is not sent."""


@dataclass(frozen=True, slots=True)
class DueFold:
    """A summary is due. ``reason``: in words.

    ``tokens`` and ``messages`` are what triggered: a thread that reaches them all would trigger again. ``limit``:
    tokens that the thread must not exceed; only for its sake what ``keep`` names is cut into. None: no such bound.
    ``has_failed``: the summarizer was asked for this call of the model already, so it is not asked again.
    """

    reason: str
    tokens: int | None = None
    messages: int | None = None
    limit: int | None = None
    has_failed: bool = False

    def would_fire(self, tokens: int, messages: int) -> bool:
        """Whether a thread of this size triggers."""
        if self.tokens is None and self.messages is None:
            return False
        return (self.tokens is None or tokens >= self.tokens) and (self.messages is None or messages >= self.messages)


@dataclass(frozen=True, slots=True)
class FoldedThread:
    """The messages that replace a thread, and the history of all that has left it, where more may be chosen from it."""

    messages: list[AnyMessage]
    evicted: History


@dataclass(frozen=True, slots=True)
class SummarizerFailed:
    """The summarizer was asked, and gave nothing that can be used: the thread stays as it is."""


@dataclass(frozen=True)
class Folding:
    """How to fold. ``writer``: a chat model; or ``reader``: a runnable that gets messages. Sizes are tokens."""

    keep: Size
    writer: Any
    reader: Runnable[Any, Any] | None
    prompt: str
    chunk_tokens: int | None
    instructions: str
    has_evidence: bool
    counter: TokenCounter
    window: int
    summary: SummaryOptions
    """How summaries are asked for, but for what the fields above say."""
    pinned: frozenset[str] = frozenset()
    """Ids of messages that stay wherever they stand."""
    built: Callable[[str], Sequence[BaseMessage]] | None = None
    """Makes the messages that carry what a summary says; None: LangChain's one."""
    frame: int = 0
    """Tokens of the words around prose and evidence."""
    flights: SingleFlight = field(default_factory=SingleFlight)
    """Of two runs that fold the same messages at the same time, one asks for the summary."""
    is_news: Callable[[], bool] = lambda: True
    """Whether it is still to be said that the trigger lies below what ``keep`` holds."""

    async def summary_of(self, messages: Sequence[AnyMessage], observer: Observer, ports: Ports) -> str:
        """What a summary of all of these messages says: prose, and evidence below it.

        Earlier summaries among them are updated. Raises what the summarizer raises, and ``SummaryFailed``.
        """
        question = await ports.compute(self._question, messages, None, DueFold("manual"), 0, 0)
        parting = await ports.compute(self._whole, question, messages)
        made = _summary(await self._performed(question, parting, messages, observer, ports))
        return "" if made is None else layout.summary_body(made.text, made.evidence, language=made.language)

    async def fold(
        self,
        messages: Sequence[AnyMessage],
        evicted: History | None,
        due: DueFold,
        tokens: int,
        overhead: int,
        observer: Observer,
        ports: Ports,
    ) -> FoldedThread | SummarizerFailed | None:
        """The messages that replace these; None when nothing can leave, or not enough to be worth a summary yet;
        ``SummarizerFailed`` when none could be had, which the engine says in an event.

        ``evicted``: all that the summaries among them stand for; None where that is not known. ``tokens``: the present
        size with the ``overhead``, which is what is sent beside the messages. Raises what steers programs, and
        ``WrongSummary``; nothing has changed then.
        """
        question = await ports.compute(self._question, messages, evicted, due, tokens, overhead)
        parting = await ports.compute(self._parting, question, messages, due)
        if isinstance(parting, Nothing):
            observer.emit("skipped", parting.reason, tokens=tokens)
            return None
        if parting.fires_again and self.is_news():
            text = (
                f"keep {self.keep} holds more than the trigger {due.reason} allows: it stays word for word, and a "
                "summary is made only when a quarter of it has come in addition"
            )
            observer.emit("trigger_below_keep", text, trigger=due.reason, keep=str(self.keep))
        made, has_failed = None, due.has_failed
        try:
            if not has_failed:
                key = await ports.compute(_key, question, parting)
                making = partial(self._performed, question, parting, messages, observer, ports)
                found, _ = await self.flights.made(key, making, ports, self.summary.total_seconds)
                made = _summary(found)
        except CannotFit as error:
            observer.emit("skipped", str(error), tokens=tokens)
            return None
        except Exception as error:
            if is_control_flow(error) or isinstance(error, WrongSummary):
                raise
            has_failed = True
        if has_failed:
            # This class replaces messages for good, so no summary is better than a poor one as long as the thread can
            # be sent. One that cannot be sent would never be asked about again.
            if due.limit is None or tokens <= due.limit:
                return SummarizerFailed()
            made = await self._without_summarizer(question, parting, observer, ports)
        return None if made is None else await ports.compute(self._folded, question, parting, made, messages)

    async def _performed(
        self, question: Question, parting: _Parting, messages: Sequence[AnyMessage], observer: Observer, ports: Ports
    ) -> Made | Nothing:
        if not parting.evidence:  # else the engine quotes in whatever room the prose leaves
            question = replace(question, policy=question.policy.model_copy(update={"evidence": False}))
        plan = await ports.compute(_plan, question, parting)
        writer = self.writer if self.reader is None else self._rolling(question, parting, messages)
        return await perform(question, plan, Means(ports, observer, as_summarizer(writer)))

    async def _without_summarizer(
        self, question: Question, parting: _Parting, observer: Observer, ports: Ports
    ) -> SummaryRecord | None:
        observer.emit("fallback_used", "the built-in extractive summary stands in", fallback="extractive")
        plan = await ports.compute(_plan, question, parting)
        try:
            return _summary(await perform(question, plan, Means(ports, observer)))
        except CannotFit as error:
            observer.emit("skipped", str(error), tokens=question.view_tokens)
            return None

    def can_part(self, messages: Sequence[AnyMessage], due: DueFold, tokens: int, overhead: int) -> bool:
        """Whether ``fold`` would ask for a summary of any of these messages; sizes as for ``fold``."""
        question = self._question(messages, None, due, tokens, overhead)
        return not isinstance(self._parting(question, messages, due), Nothing)

    # ---- the question ----

    def _question(
        self, messages: Sequence[AnyMessage], evicted: History | None, due: DueFold, tokens: int, overhead: int
    ) -> Question:
        history = History(FORMAT, self.counter) if evicted is None else evicted
        if evicted is not None:  # what a summary quotes of them is chosen again from all of them
            messages = [layout.without_evidence(m) if layout.is_summary(m) else m for m in messages]
        history.extend([layout.as_history(message) for message in messages])
        policy = Policy(
            trigger=None,
            first_user=False,
            pins=Pins(ids=self.pinned),
            evidence=self.has_evidence,
            summary=self._options(),
            on_failure="raise",
            fallback=None,
        )
        return Question(
            history=history,
            record=None,
            view_tokens=tokens,
            view_messages=len(messages),
            overhead={"system prompt and tools": overhead} if overhead else {},
            limits=Limits.of(policy, self.window),
            policy=policy,
            summary_is_free=False,
            forced=due.reason,
        )

    def _options(self) -> SummaryOptions:
        own: dict[str, Any] = {"prompt": None, "instructions": "", "max_string_characters": _WHOLE_PROMPT}
        if self.reader is None:
            own = {
                "prompt": self.prompt,
                "instructions": self.instructions,
                "input_tokens": self._prompt_tokens(),
                "max_tokens": self._prose[2],
            }
        return self.summary.model_copy(update=own)

    @property
    def _prose(self) -> tuple[float, int, int]:
        share, least, most = PROSE
        longest = self.summary.max_tokens or most
        return share, min(least, longest), longest

    def _prompt_tokens(self) -> int | None:
        """The longest prompt whose material is one chunk: the words around it come on top."""
        if self.chunk_tokens is None:
            return None
        words = self.counter.text(self.prompt) + self.counter.text(self.instructions) + _AROUND_PROMPT
        return max(SMALLEST_REQUEST, int((max(LEAST_CHUNK, self.chunk_tokens) + words) / 0.95) + 1)

    # ---- what stays ----

    def _parting(self, question: Question, messages: Sequence[AnyMessage], due: DueFold) -> _Parting | Nothing:
        """What leaves: all but what ``keep`` names, what stays in any case, and the newest request of the user."""
        sizes, overhead = question.sizes, sum(question.overhead.values())
        here = range(_left(question), len(sizes))
        held = {n for n in question.held if n in here}
        tail = self._tail(question)
        prose = _room(due.tokens or due.limit or question.view_tokens, self._prose)
        # What is quoted already is quoted on: once it has left, nothing brings it back.
        quoted = min(self._quoted(messages), _room((due.tokens or question.view_tokens) - overhead, EVIDENCE))
        must = due.limit is not None and question.view_tokens > due.limit
        is_stuck = False
        while True:
            stays = held | {n for group in tail for n in group.indices if n in here}
            kept = overhead + self.frame + sum(sizes[n] for n in stays)
            leaving = frozenset(here) - stays
            fresh = [n for n in leaving if not pins.is_summary(question.messages[n])]
            # Over the limit, a summary of the earlier one alone would only throw away what that quotes, at each call.
            is_stuck = is_stuck or (must and not fresh)
            fits = due.limit is None or kept + LEAST_SUMMARY + quoted <= due.limit
            if (fits and (not is_stuck or self._is_a_step(question, fresh, tail))) or len(tail) <= 1:
                break  # the newest stays; none is there in a thread that is an earlier summary alone
            if not leaving and not must:
                break  # all of it is to stay, and it fits without the summary
            # the oldest of them: `_tail` has the newest first
            tail.pop()
        # What is too large whatever leaves is sent shortened: then what is known of the rest need not give way, as long
        # as it takes less than what leaves.
        limit = None if due.limit is None or kept + LEAST_SUMMARY > due.limit else due.limit
        most = question.view_tokens - 1 if must and limit is None else limit
        if most is not None:
            prose = max(LEAST_SUMMARY, min(prose, most - kept - quoted))
        # Where nothing but the earlier summary may leave, it can still quote less, if that helps.
        if not (fresh or (leaving and must and limit is not None)):
            return Nothing("nothing is left to summarize but what has to stay")
        evidence = self._evidence_room(
            question, messages, leaving, _room((due.tokens or question.view_tokens) - overhead, EVIDENCE)
        )
        if most is not None:
            evidence = max(0, min(evidence, most - kept - prose))
        fires_again = due.would_fire(kept + prose + evidence, len(stays) + 1)
        is_first = len(fresh) == len(leaving)
        if fires_again and not is_first and not must and not self._is_a_step(question, fresh, tail):
            return Nothing("the trigger lies below what keep holds, and too little came since the last summary")
        return _Parting(leaving, prose, evidence, fires_again)

    def _tail(self, question: Question) -> list[Group]:
        """The groups that ``keep`` names, newest first."""
        allowed = self.keep.tokens(self.window)
        tail: list[Group] = []
        count = tokens = 0
        for group in sorted(question.grouping.groups, key=lambda group: -group.last):
            if group.last < _left(question):
                break
            if pins.is_summary(question.messages[group.first]):
                continue
            # At least the newest, and whole, as LangChain's class has it. Where the results of a call fit in part, all
            # of it stays.
            is_full = count >= self.keep.value if allowed is None else tokens + question.sizes[group.last] > allowed
            if is_full and any(question.messages[n].role != "tool" for kept in tail for n in kept.indices):
                break  # results alone, whose call is missing, are no turn
            tail.append(group)
            count += len(group.indices)
            tokens += sum(question.sizes[n] for n in group.indices)
        return tail

    def _is_a_step(self, question: Question, fresh: Sequence[int], tail: Sequence[Group]) -> bool:
        kept = [n for group in tail for n in group.indices]
        if self.keep.unit == "messages":
            return len(fresh) >= max(2, STEP * len(kept))
        return sum(question.sizes[n] for n in fresh) >= STEP * sum(question.sizes[n] for n in kept)

    def _evidence_room(
        self, question: Question, messages: Sequence[AnyMessage], leaving: frozenset[int], most: int
    ) -> int:
        if not self.has_evidence:
            return 0
        room = min(most, self._quoted(messages) + sum(question.sizes[n] for n in leaving) // QUOTED)
        return room if room >= LEAST_EVIDENCE else 0

    def _quoted(self, messages: Sequence[AnyMessage]) -> int:
        """Tokens of what earlier summaries quote."""
        lines = map(layout.evidence_of, messages)
        return sum(self.counter.text(quoted) for quoted in lines if quoted) if self.has_evidence else 0

    def _whole(self, question: Question, messages: Sequence[AnyMessage]) -> _Parting:
        leaving = frozenset(range(len(question.messages)))
        return _Parting(leaving, self._prose[2], self._evidence_room(question, messages, leaving, EVIDENCE[2]))

    # ---- the summary ----

    def _rolling(self, question: Question, parting: _Parting, messages: Sequence[AnyMessage]) -> RollingSummarizer:
        """A summarizer that reads the messages that leave, a group at a time."""
        before = _left(question)
        found = [[n - before for n in group.indices if n in parting.leaving] for group in question.grouping.groups]
        found = [indices for indices in found if indices and not layout.is_summary(messages[indices[0]])]
        return RollingSummarizer(
            runnable=self.reader,  # type: ignore[arg-type]  # only called where there is one
            # without its evidence, which is quoted on by code and need not be read and paid for again
            earlier=next((layout.without_evidence(m) for m in messages if layout.is_summary(m)), None),
            groups=[tuple(messages[n] for n in indices) for indices in found],
            sizes=[sum(question.sizes[n + before] for n in indices) for indices in found],
            chunk_tokens=self.chunk_tokens,
        )

    # ---- the answer ----

    def _folded(
        self, question: Question, parting: _Parting, made: SummaryRecord, messages: Sequence[AnyMessage]
    ) -> FoldedThread:
        """The new list: leading instructions, the summary, and what stays, as the objects that came in."""
        before = _left(question)
        staying = History(FORMAT, self.counter)
        staying.extend([message for n, message in enumerate(messages, before) if n not in parting.leaving])
        # Built, not only filtered: a result whose call has left could not be sent in the thread that stays.
        kept = build(staying, None).wire
        newest = layout.newest_assistant(messages)
        body = layout.summary_body(made.text, made.evidence, language=made.language)
        summary = self._carriers(body, newest.id if newest else None)
        leading = next((n for n, message in enumerate(kept) if message.type != "system"), len(kept))
        # An earlier summary stands for what it quotes as long as the messages themselves are not known.
        gone = [n for n in sorted(parting.leaving) if not (before and layout.is_summary(messages[n - before]))]
        evicted = question.history.part([*range(before), *gone])
        return FoldedThread([*kept[:leading], *summary, *kept[leading:]], evicted)

    def _carriers(self, body: str, usage_until: str | None) -> list[Any]:
        """The messages that say what a summary says, marked so that the next pass knows them."""
        made = [HumanMessage(layout.PREFIX + body)] if self.built is None else self.built(body)
        return [layout.marked(message, usage_until) for message in made]


@dataclass(frozen=True, slots=True)
class _Parting:
    """Which messages leave, and what the summary of them may take, in tokens."""

    leaving: frozenset[int]
    prose: int
    evidence: int
    fires_again: bool = False
    """What stays is above the trigger already."""


def _summary(made: Made | Nothing) -> SummaryRecord | None:
    return made.compaction.summary if isinstance(made, Made) else None


def _left(question: Question) -> int:
    """How many of the history's messages have left the thread before, the first ones."""
    return len(question.messages) - question.view_messages


def _key(question: Question, parting: _Parting) -> Hashable:
    """Equal where the same messages leave, behind the same ones, into the same room."""
    return question.history.fingerprint(max(parting.leaving) + 1, whole=True), parting


def _plan(question: Question, parting: _Parting) -> Plan:
    leaving = parting.leaving
    gone = leaving.union(range(_left(question)))
    fates: list[tuple[Fate, str]] = [
        evicted_fate(message) if n in gone else ("kept", "recent") for n, message in enumerate(question.messages)
    ]
    overhead = sum(question.overhead.values())
    kept = overhead + sum(size for n, size in enumerate(question.sizes) if n not in gone)
    return Plan(
        trigger=question.forced or "",
        # No promise here: what is sent is another list, in another layout.
        target=kept + kept // 10 + parting.prose + parting.evidence + PROSE[1],
        floor=question.overhead,
        covers=1 + max(leaving),
        fates=tuple(fates[: 1 + max(leaving)]),
        edits=(),
        saved={},
        evicted=tuple(sorted(leaving)),
        gone=tuple(sorted(gone)),
        kept_tokens=kept,
        prose_tokens=parting.prose,
        evidence_tokens=parting.evidence,
        makes_summary=True,
    )


def _room(tokens: int, bounds: tuple[float, int, int]) -> int:
    share, least, most = bounds
    return max(least, min(most, int(share * tokens)))
