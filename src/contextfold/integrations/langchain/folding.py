"""The pass of the drop-in: from the messages of a state to fewer messages that replace them.

What belongs here: putting the engine's question in the terms of LangChain's class (what ``keep`` means in tokens, where
a pass must end, the summary that stands in the state already) and its answer into messages. What does not: the pass
itself (``engine``), when to make one (``summarization``), the text of the summary message (``layout``).

Originals leave the state for good, so what the engine rebuilds elsewhere is merged here: the prose of the earlier
summary is updated, and its evidence competes with the new lines for the same room (L8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable

from contextfold import evidence
from contextfold.conversation.groups import Group
from contextfold.conversation.history import History
from contextfold.errors import CannotFit
from contextfold.integrations.langchain import layout
from contextfold.integrations.langchain.counting import FORMAT
from contextfold.integrations.langchain.rolling import RollingSummarizer
from contextfold.messages import Message, Text
from contextfold.observe import Observer
from contextfold.passes.decide import Nothing, Plan, decide
from contextfold.passes.perform import Means, perform
from contextfold.passes.question import Question
from contextfold.policy import Budgets, Limits, Oversized, Pins, Policy, Size, Toggle, ToolArguments, ToolOutputs
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction, SummaryRecord
from contextfold.record.view import build
from contextfold.summary.bisect import summarize
from contextfold.summary.chunks import Unit
from contextfold.summary.options import SMALLEST_REQUEST, SummaryOptions
from contextfold.summary.prompt_files import Wording
from contextfold.summary.render import render_group
from contextfold.summary.summarizer import as_summarizer
from contextfold.tokens import TokenCounter

BELOW_TRIGGER = 0.85
"""The share of a trigger in tokens at which a pass ends at the latest: the next one must not follow at once."""

SHARE = 0.1
"""Of the tokens that triggered: what prose may take, and what evidence may take, within the bounds below."""
PROSE = (300, 2_000)
EVIDENCE = (500, 4_000)
QUOTED = 3
"""One token of evidence for so many that leave, besides what the last evidence had."""

LEAST_CHUNK = 256
"""Tokens. Of less material no summary is worth its call."""

_WHOLE_PROMPT = 1 << 40
"""Characters. For a summarizer that reads messages, and whose prompt is not sent."""


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

    async def summary_of(self, messages: Sequence[AnyMessage], observer: Observer, ports: Ports) -> str:
        """What a summary of all of these messages says: prose, and evidence below it.

        Earlier summaries among them are updated. Raises what the summarizer raises, and ``SummaryFailed``.
        """
        question = await ports.compute(self._question, messages, "manual", 0, 0, observer)
        history, earlier = question.history, layout.read(messages)
        groups = [list(group.indices) for group in history.grouping.groups]
        writer: Any = self.writer if self.reader is None else self._rolling(history, groups, messages)
        summary = await summarize(
            [Unit(render_group([history.messages[n] for n in indices]), tuple(indices)) for indices in groups],
            previous=earlier.prose or None,
            summarizer=as_summarizer(writer),
            options=self._options(),
            max_tokens=self._prose[1],
            language=question.language,
            ports=ports,
            count=self.counter.text,
            observer=observer,
        )
        gone = set(range(len(history.messages)))
        lines = self._evidence(history, gone, summary.text, earlier.evidence, EVIDENCE[1]) if self.has_evidence else ""
        return layout.summary_body(summary.text, lines, language=question.language)

    async def fold(
        self,
        messages: Sequence[AnyMessage],
        *,
        trigger: str,
        threshold: int | None,
        tokens: int,
        overhead: int,
        observer: Observer,
        ports: Ports,
    ) -> list[AnyMessage] | None:
        """The messages that replace these, or None when nothing can leave.

        ``trigger`` is what fired, in words; ``threshold`` its tokens, None for one in messages; ``tokens`` the present
        size with the ``overhead``, which is what is sent beside the messages. Raises what the summarizer raises, and
        nothing has changed then.
        """
        question = await ports.compute(self._question, messages, trigger, tokens, overhead)
        planned = await ports.compute(self._planned, question, threshold, tokens, observer)
        if planned is None:
            return None
        question, plan = planned
        summarizer = as_summarizer(self.writer)
        if self.reader is not None:
            evicted = set(plan.evicted)
            leaving = [[n for n in group.indices if n in evicted] for group in question.history.grouping.groups]
            rolling = self._rolling(question.history, [indices for indices in leaving if indices], messages)
            summarizer = as_summarizer(rolling)
        made = await perform(question, plan, Means(ports, observer, summarizer))
        if isinstance(made, Nothing) or made.compaction.summary is None:
            return None
        return await ports.compute(
            self._replaced, question, made.compaction, messages, _room(tokens, threshold, EVIDENCE)
        )

    # ---- the question ----

    def _question(self, messages: Sequence[AnyMessage], trigger: str, tokens: int, overhead: int) -> Question:
        """The question without its limits. Earlier summaries stand as the previous record, not as messages."""
        history = History(FORMAT, self.counter)
        history.extend([message for message in messages if not layout.is_summary(message)])
        earlier = layout.read(messages)
        question = Question(
            history=history,
            record=None,
            view_tokens=tokens,
            view_messages=len(messages),
            overhead={"system prompt and tools": overhead} if overhead else {},
            limits=Limits(self.window, None, self.window, self.window, self.keep, 0, 0),
            policy=self._policy(),
            summary_is_free=False,
            forced=trigger,
        )
        if not earlier.prose:
            return question
        summary = SummaryRecord(text=earlier.prose, language=question.language)
        nothing = Compaction(
            format=FORMAT.name, covers=0, fingerprint=history.fingerprint(0), fates=(), summary=summary
        )
        return replace(question, record=nothing)

    def _policy(self) -> Policy:
        return Policy(
            trigger=None,
            keep=self.keep,
            pins=Pins(ids=self.pinned),
            budgets=Budgets(summary=1, recent=0, shortened=0, prose=1),
            first_user=False,
            recent_users=0,
            tool_arguments=ToolArguments(enabled=False),
            tool_outputs=ToolOutputs(enabled=False),
            media=Toggle(enabled=False),
            reasoning=Toggle(enabled=False),
            oversized=Oversized(enabled=False),
            minimum_gain=0,
            evidence=False,
            summary=self._options(),
            on_failure="raise",
            fallback=None,
        )

    def _options(self) -> SummaryOptions:
        own: dict[str, Any] = {"prompt": None, "instructions": "", "max_string_characters": _WHOLE_PROMPT}
        if self.reader is None:
            own = {
                "prompt": self.prompt,
                "instructions": self.instructions,
                "input_tokens": self._prompt_tokens(),
                "max_tokens": self._prose[1],
            }
        return self.summary.model_copy(update=own)

    @property
    def _prose(self) -> tuple[int, int]:
        """The bounds of what prose may take."""
        longest = self.summary.max_tokens or PROSE[1]
        return min(PROSE[0], longest), longest

    def _prompt_tokens(self) -> int | None:
        """The longest prompt whose material is one chunk: the words around it come on top."""
        if self.chunk_tokens is None:
            return None
        words = Wording("English", self.prompt, self.instructions).compose("summarize", [""], max_tokens=self._prose[1])
        material = max(LEAST_CHUNK, self.chunk_tokens)
        return max(SMALLEST_REQUEST, int((material + self.counter.text(words)) / 0.95) + 1)

    def _planned(
        self, question: Question, threshold: int | None, tokens: int, observer: Observer
    ) -> tuple[Question, Plan] | None:
        """The question with limits under which it has an answer, and the plan: below the trigger if that is possible,
        else what ``keep`` says; None when nothing can leave.
        """
        room = _room(tokens, threshold, self._prose)
        wanted = self._kept(question) + sum(question.overhead.values()) + room
        quoted = _room(tokens, threshold, EVIDENCE) if self.has_evidence else 0
        ceilings = [] if threshold is None else [int(BELOW_TRIGGER * threshold) - quoted]
        skipped = "what must stay leaves no room for a summary"
        for ceiling in [*ceilings, None]:
            target = wanted if ceiling is None else min(wanted, ceiling)
            limits = Limits(max(self.window, target + 1), target + 1, target, target, self.keep, 0, 0)
            asked = replace(question, limits=limits)
            try:
                plan = decide(asked)
            except CannotFit:
                continue
            if isinstance(plan, Plan) and plan.evicted:
                return asked, plan
            skipped = plan.reason if isinstance(plan, Nothing) else skipped
        observer.emit("skipped", skipped, tokens=tokens)
        return None

    def _kept(self, question: Question) -> int:
        """Tokens of what ``keep`` says, in whole groups, and of what stays in any case."""
        sizes, groups = question.history.sizes, sorted(question.history.grouping.groups, key=lambda group: -group.last)
        floor = sum(
            size for size, message in zip(sizes, question.history.messages, strict=True) if message.is_instruction
        )
        newest = max(
            (size for size, m in zip(sizes, question.history.messages, strict=True) if m.is_user_turn), default=0
        )
        floor += sum(sum(sizes[n] for n in group.indices) for group in groups if self._is_pinned(question, group))
        allowed = self.keep.tokens(self.window)
        if allowed is not None:
            return floor + newest + allowed
        kept = count = 0
        for group in groups:
            if count >= self.keep.value:
                break
            count += len(group.indices)
            kept += sum(sizes[n] for n in group.indices)
        return floor + newest + kept

    def _is_pinned(self, question: Question, group: Group) -> bool:
        return any(question.history.messages[n].id in self.pinned for n in group.indices)

    def _rolling(
        self, history: History, groups: Sequence[Sequence[int]], messages: Sequence[AnyMessage]
    ) -> RollingSummarizer:
        return RollingSummarizer(
            runnable=self.reader,  # type: ignore[arg-type]  # only called where there is one
            earlier=next((message for message in messages if layout.is_summary(message)), None),
            groups=[tuple(history.wire[n] for n in found) for found in groups],
            sizes=[sum(history.sizes[n] for n in found) for found in groups],
            chunk_tokens=self.chunk_tokens,
        )

    # ---- the answer ----

    def _replaced(
        self, question: Question, record: Compaction, messages: Sequence[AnyMessage], budget: int
    ) -> list[AnyMessage]:
        """The new list: leading instructions, the summary, and what stays, as the objects that came in."""
        assert record.summary is not None
        kept = build(question.history, record.model_copy(update={"summary": None})).wire
        prose, earlier, lines = record.summary.text, layout.read(messages), ""
        if self.has_evidence:
            lines = self._evidence(question.history, record.gone(), prose, earlier.evidence, budget)
        body = layout.summary_body(prose, lines, language=question.language)
        newest = layout.newest_assistant(messages)
        summary = self._carriers(body, newest.id if newest else None)
        leading = next((n for n, message in enumerate(kept) if message.type != "system"), len(kept))
        return [*kept[:leading], *summary, *kept[leading:]]

    def _carriers(self, body: str, usage_until: str | None) -> list[Any]:
        """The messages that say what a summary says, marked so that the next pass knows them."""
        made = [HumanMessage(layout.PREFIX + body)] if self.built is None else self.built(body)
        return [layout.marked(message, usage_until) for message in made]

    def _evidence(self, history: History, gone: set[int], prose: str, earlier: str, budget: int) -> str:
        """Lines of what leaves now and of the last evidence, for names that stand nowhere else."""
        ends = list(accumulate(history.sizes))
        leaving = sum(history.sizes[index] for index in gone)
        budget = min(budget, history.counter.text(earlier) + leaving // QUOTED)
        candidates: list[tuple[int, Sequence[evidence.Line] | evidence.Block]] = [(0, evidence.read(earlier))]
        candidates += [(ends[n], history.block(n)) for n in sorted(gone)]
        visible = {name for line in evidence.lines_of(Message("assistant", (Text(prose),))) for name in line.names}
        return evidence.select(
            candidates,
            budget=budget,
            already=visible,
            count=history.counter.text,
            now=ends[-1] if ends else 0,
            beside=[history.block(index) for index in range(len(history.messages)) if index not in gone],
            sizes=history.line_sizes,
            words=history.words,
        )


def _room(tokens: int, threshold: int | None, bounds: tuple[int, int]) -> int:
    least, most = bounds
    return max(least, min(most, int(SHARE * (tokens if threshold is None else threshold))))
