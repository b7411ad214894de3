"""The flow of one pass: plan, shorten, summarize, choose evidence, build the record, check it.

    History + Policy ──decide──▶ Plan ──summary──▶ prose ──evidence──▶ Compaction ──apply──▶ view, sized, checked

What belongs here: the order of the steps, what happens when one of them fails, and the record they leave. Written once,
as ``async def`` over ports (see ``ports``). What does not: any decision of its own (``decide``), any wire shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from contextfold.errors import (
    RECENT,
    ArchiveError,
    CannotFit,
    ContextfoldError,
    SummaryFailed,
    is_control_flow,
    reason,
    text_of,
)
from contextfold.messages import Message
from contextfold.observe import Observer, SummaryEnd
from contextfold.passes import material
from contextfold.passes.behind import summary_behind, together
from contextfold.passes.decide import Nothing, Plan, decide
from contextfold.passes.means import Archiver, Made, Means
from contextfold.passes.question import Question
from contextfold.record.compaction import Compaction, FateRun, SummaryRecord, summary_message
from contextfold.record.view import build
from contextfold.redaction import redact
from contextfold.summary.chunks import Unit
from contextfold.summary.message import without_headings
from contextfold.summary.summarizer import EXTRACTIVE, Summarizer, Summary, SummaryStats

__all__ = ["Archiver", "Made", "Means", "archived", "perform", "run_pass", "saved", "under_archive"]


async def run_pass(question: Question, means: Means) -> Made | Nothing:
    """``decide``, then ``perform``, both told in events. Raises what they raise."""
    try:
        means.ports.check()
        plan = await means.ports.compute(decide, question)
        if isinstance(plan, Plan):
            return await perform(question, plan, means)
    except CannotFit as error:
        if not means.retries:
            means.observer.emit("cannot_fit", str(error), limit=error.limit, floor=error.floor)
        raise
    means.observer.emit("skipped", plan.reason, tokens=question.view_tokens)
    return plan


async def perform(question: Question, plan: Plan, means: Means) -> Made | Nothing:
    """Carry out a plan: prose, evidence, the record. It may come into force once ``archived`` says so.

    ``Nothing`` where no summary could be had and the old view still fits the window. Raises ``CannotFit`` when the view
    would miss the target, ``SummaryFailed`` when there is no acceptable summary and policy allows neither the old view
    nor the fallback. Nothing has changed then.
    """
    _announce(question, plan, means.observer)
    means.ports.check()  # each step takes seconds where ten thousand messages leave the view
    summary = await _prose(question, plan, means) if plan.makes_summary else None
    if isinstance(summary, Nothing):
        return summary
    compaction, took = await _checked(question, plan, summary, means)
    _conclude(question, plan, compaction, took, means.observer)
    evicted = question.evicted(compaction)
    return Made(compaction, evicted, took.model or None, took.cost, took.seconds)


async def _checked(
    question: Question, plan: Plan, summary: Summary | None, means: Means
) -> tuple[Compaction, SummaryStats]:
    """The record, whose view meets the target, and what its summary took. The hooks around a summary hear its end."""
    took = summary.stats if summary is not None else SummaryStats()
    if not took.calls:  # a summary that is paid for is not thrown away
        means.ports.check()
    try:
        compaction = await means.ports.compute(_complete, question, plan, summary, _address(means))
    except CannotFit as error:
        if summary is not None and took.calls:  # it is paid for: the caller gets it, though no record holds it
            await means.observer.tell(means.ports, _end(took, text=summary.text, error=str(error)))
        raise
    if took.calls:
        record = compaction.summary
        ratio = record.compression_ratio if record else 0.0
        end = _end(took, text=record.text if record else "", compression_ratio=ratio)
        await means.observer.tell(means.ports, end)
    return compaction, took


async def archived(compaction: Compaction, question: Question, means: Means) -> bool:
    """Save the originals of what a record hides, before it comes into force. True without an archive.

    False where that failed and the old view can go on. Raises ``ArchiveError`` where the old view does not fit the
    window. Kept apart from ``perform`` so that a caller can hold on to a summary that is paid for.
    """
    if means.archive is None:
        return True
    return await saved(question.originals(compaction), question, means)


async def saved(found: Mapping[int, Message], question: Question, means: Means) -> bool:
    """Save these originals, as ``archived`` does. For those that a face alone can read, under numbers of its own."""
    if means.archive is None:
        return True
    originals = await means.ports.compute(material.for_archive, found, question)
    place, observer, window = means.archive.address, means.observer, question.limits.window
    try:
        await means.ports.call(means.archive.append, originals)
    except Exception as error:
        if is_control_flow(error):
            raise
        said = text_of(error)
        text = f"nothing leaves the view, because {place} did not take the originals: {said}"[:500]
        observer.emit("archive_failed", text, archive=place, error=type(error).__name__)
        if question.view_tokens <= window:
            return False
        raise ArchiveError(
            f"the originals could not be saved to {place} ({said}), and the conversation of {question.view_tokens:,} "
            f"tokens does not fit the window of {window:,} unless some of it leaves"
        ) from error
    observer.emit("archived", f"{len(originals)} originals are in {place}", archive=place, count=len(originals))
    return True


def under_archive(made: Compaction, question: Question, means: Means) -> Compaction:
    """A record that was made without a pass, whose summary names the archive of this request: the originals of all that
    the record hides go there, and the archive that the record before it was made with may have been another one.
    """
    address, summary = _address(means), made.summary
    if summary is None or summary.archive == address:
        return made
    renamed = summary.model_copy(update={"archive": address})
    renamed = renamed.model_copy(update={"tokens": question.counter.message(summary_message(renamed))})
    record = Compaction.model_validate(made.model_dump() | {"summary": renamed.model_dump()})
    tokens = build(question.history, record).tokens + sum(question.overhead.values())
    return record.model_copy(update={"tokens_after": tokens})


def _announce(question: Question, plan: Plan, observer: Observer) -> None:
    observer.emit(
        "compaction_started",
        f"{question.view_tokens:,} tokens reached {plan.trigger}; the target is {plan.target:,}",
        trigger=plan.trigger,
        tokens=question.view_tokens,
        target=plan.target,
        evicting=len(plan.evicted),
    )
    for tier, saved in plan.saved.items():
        observer.emit("tier_applied", f"{tier} saved {saved:,} tokens", tier=tier, saved=saved)
    before = question.record.tokens_after if question.record else 0
    if plan.above_trigger and before < (question.limits.trigger or 1):  # else the pass before has said so
        text = (
            f"what must be kept is above the trigger {plan.trigger}: it stays word for word, and a pass is made only "
            "when a quarter of it has come in addition"
        )
        observer.emit("trigger_below_keep", text, trigger=plan.trigger, keep=str(question.policy.keep))


def _conclude(question: Question, plan: Plan, compaction: Compaction, took: SummaryStats, observer: Observer) -> None:
    summary = compaction.summary
    observer.emit(
        "compaction_finished",
        f"{question.view_tokens:,} tokens became {compaction.tokens_after:,} (target {compaction.target:,})",
        tokens_before=question.view_tokens,
        tokens_after=compaction.tokens_after,
        target=compaction.target,
        trigger=compaction.trigger,
        summarized=len(plan.evicted),
        saved=dict(plan.saved),
        calls=summary.calls if summary else 0,
        max_depth=summary.max_depth if summary else 0,
        model=took.model,
        seconds=round(took.seconds, 3),
        cost=took.cost,
    )


# ---- prose ----


async def _prose(question: Question, plan: Plan, means: Means) -> Summary | Nothing:
    if means.summarizer is None:
        return await means.ports.compute(material.extract, question, plan)
    # What a failure cost is told as well: the hooks that add up money hear of every call.
    spent: list[SummaryStats] = []
    try:
        return await _ask(question, plan, means.summarizer, means, spent.append)
    except Exception as error:
        if is_control_flow(error):
            raise
        problem = means.observer.scrub(reason(error))
        took = spent[-1] if spent else SummaryStats()
        await means.observer.tell(means.ports, _end(took, text=None, error=problem))
        return await _without_summarizer(question, plan, error, means)


async def _ask(
    question: Question,
    plan: Plan,
    summarizer: Summarizer,
    means: Means,
    on_spent: Callable[[SummaryStats], object],
) -> Summary:
    from contextfold.summary.bisect import summarize  # only a summary by a model needs models, refusals and prompts

    previous, units = await means.ports.compute(material.material, question, plan)
    # Only earlier summaries leave: they are joined, and there is nothing to ask a model.
    if not units:
        return Summary(previous or "", frozenset(), SummaryStats())
    steps: list[SummaryStats] = []

    def spend(stats: SummaryStats) -> None:
        steps.append(stats)
        on_spent(together(steps))

    options = question.policy.summary
    learned = _learned_window(question)
    # What refusals taught is a guess; a window stated by the policy or the summarizer wins.
    if learned is not None and options.input_tokens is None and summarizer.window is None:
        options = options.model_copy(update={"input_tokens": learned})
    if question.instructions:
        joined = "\n".join(text for text in (options.instructions, question.instructions) if text)
        options = options.model_copy(update={"instructions": joined})

    async def from_text(units: Sequence[Unit], previous: str | None, max_tokens: int) -> Summary:
        return await summarize(
            units,
            previous=previous,
            summarizer=summarizer,
            options=options,
            max_tokens=max_tokens,
            language=question.language,
            ports=means.ports,
            count=question.counter.text,
            observer=means.observer,
            on_spent=spend,
        )

    summary = await summary_behind(question, plan, units, means, from_text, spend)
    if summary is None:
        summary = await from_text(units, previous, material.prose_room(question, plan))
    if steps:
        summary = replace(summary, stats=together(steps))
    missing = {index for unit in units for index in unit.indices} - summary.covered
    if missing:  # nothing may count as summarized whose text no successful request held
        raise SummaryFailed(f"{len(missing)} of the messages to summarize were in no successful request")
    return summary


def _learned_window(question: Question) -> int | None:
    """What refusals taught at any earlier pass about the prompts that the summarizer takes, in tokens."""
    return question.record.summary.learned_window if question.record and question.record.summary else None


async def _without_summarizer(question: Question, plan: Plan, error: Exception, means: Means) -> Summary | Nothing:
    policy, observer, window = question.policy, means.observer, question.limits.window
    fits = question.view_tokens <= window
    problem = observer.scrub(reason(error))
    observer.emit("summary_failed", problem[:500], error=type(error).__name__, view_fits=fits)
    if policy.on_failure == "raise":
        raise error
    # The old view still fits, so nothing has to happen now: the next message is a new state, and the summary is tried
    # again then.
    if fits:
        return Nothing(f"the summary failed: {problem}", "summary_failed")
    if policy.fallback is None:
        if isinstance(error, ContextfoldError):
            raise error
        raise SummaryFailed(
            f"the summarizer failed ({problem}), the conversation of {question.view_tokens:,} tokens "
            f"does not fit the window of {window:,} without a summary, and no fallback is allowed",
            attempts=[problem],
        ) from error
    observer.emit("fallback_used", "the built-in extractive summary stands in", fallback=policy.fallback)
    return await means.ports.compute(material.extract, question, plan)


def _end(
    stats: SummaryStats, *, text: str | None, error: str | None = None, compression_ratio: float = 0.0
) -> SummaryEnd:
    """What a hook is told of a summary by a model: what came of it, and what it cost in any case."""
    return SummaryEnd(
        text=text,
        error=error,
        model=stats.model,
        input_tokens=stats.input_tokens,
        output_tokens=stats.output_tokens,
        calls=stats.calls,
        chunk_count=stats.chunk_count,
        max_depth=stats.max_depth,
        compression_ratio=compression_ratio,
        seconds=stats.seconds,
        cost=stats.cost,
    )


# ---- the record ----


def _complete(question: Question, plan: Plan, summary: Summary | None, address: str | None) -> Compaction:
    """The record with evidence in the room that is left, and its real size. Raises ``CannotFit`` if it misses."""
    # Without a new summary the earlier prose stands, if there is any, beside new evidence.
    bare = (
        _new_summary(question, plan, summary, address) if summary is not None else _standing_summary(question, address)
    )
    size = question.counter.message(summary_message(bare))
    # Prose that came out shorter than planned leaves its room to evidence.
    room = min(plan.evidence_tokens + plan.prose_tokens, plan.target - plan.kept_tokens)
    # 24: the tags and the sentence around evidence, which take 18 to 20 tokens, and a little for how lines join.
    budget = room - size - 24 if question.policy.evidence else 0
    while budget > 0:
        lines = material.evidence(question, plan, bare.text, budget, with_rules=bare.algorithm != EXTRACTIVE)
        compaction = _record(question, plan, bare.model_copy(update={"evidence": lines}) if lines else _or_none(bare))
        excess = compaction.tokens_after - plan.target
        if excess <= 0:
            return compaction
        # Lines are weighed one by one and the message is counted as a whole, so the first try may miss. At least 16
        # fewer each time: the loop ends.
        budget -= excess + 16
    compaction = _record(question, plan, _or_none(bare))
    if bare.text and (excess := compaction.tokens_after - plan.target) > 0:  # an estimate of the plan was too low
        # What prose takes already, and not only what it may: the frame has more than words where there is an archive.
        room = min(material.most_prose(question, plan), question.counter.text(bare.text)) - excess
        shorter = _capped(question, bare.text, room)
        compaction = _record(question, plan, _or_none(bare.model_copy(update={"text": shorter, "truncated": True})))
    return _within(plan, compaction)


def _or_none(summary: SummaryRecord) -> SummaryRecord | None:
    return summary if summary.text or summary.evidence else None


def _standing_summary(question: Question, address: str | None) -> SummaryRecord:
    if question.record is not None and question.record.summary is not None:
        return question.record.summary.model_copy(update={"evidence": "", "archive": address})
    return SummaryRecord(
        text="",
        role=question.policy.summary_role,
        language=question.language,
        algorithm="evidence",
        archive=address,
    )


def _address(means: Means) -> str | None:
    # Named before it is written: the originals are saved before the record comes into force, or it never does.
    return redact(means.archive.address) if means.archive is not None else None


def _new_summary(question: Question, plan: Plan, summary: Summary, address: str | None) -> SummaryRecord:
    text = redact(summary.text) if question.policy.redact else summary.text
    stats = summary.stats
    if stats.algorithm != EXTRACTIVE:
        # Here and not where views are made: those of records that others made before stay as they are.
        text = without_headings(text)
    prose = _capped(question, text, material.most_prose(question, plan))
    return SummaryRecord(
        text=prose,
        role=question.policy.summary_role,
        language=question.language,
        algorithm=stats.algorithm,
        input_tokens=stats.input_tokens,
        output_tokens=question.counter.text(prose),
        calls=stats.calls,
        chunk_count=stats.chunk_count,
        max_depth=stats.max_depth,
        truncated=stats.truncated or prose != text,
        learned_window=stats.learned_window or _learned_window(question),
        message_count=len(plan.gone),
        original_tokens=sum(question.history.sizes[n] for n in plan.gone),
        archive=address,
    )


def _within(plan: Plan, compaction: Compaction) -> Compaction:
    if compaction.tokens_after <= plan.target:
        return compaction
    rest = compaction.tokens_after - sum(plan.floor.values())
    raise CannotFit(limit=plan.target, floor={**plan.floor, RECENT: rest})


def _capped(question: Question, prose: str, room: int) -> str:
    """Prose that a summarizer made longer than ``room`` tokens, clipped; the rest is the evidence's task."""
    count = question.counter.text
    while prose and count(prose) > max(room, 1):
        # Tokens are not spread evenly over characters: 3 % below the proportion, so that one or two rounds do.
        keep = max(1, int(len(prose) * room / count(prose) * 0.97)) if room > 0 else 1
        prose = prose[: min(keep, len(prose) - 1)].rstrip()
        if len(prose) <= 1:
            break
    return prose


def _record(question: Question, plan: Plan, summary: SummaryRecord | None) -> Compaction:
    """The record of a plan, with the size of the view that it gives."""
    if summary is not None:
        message = summary_message(summary)
        question.history.line_sizes.whole(message.text)  # most of it are lines of evidence, which have their sizes
        summary = summary.model_copy(update={"tokens": question.counter.message(message)})
    compaction = Compaction(
        parent=question.record.known_as if question.record else None,
        format=question.history.format.name,
        lacks=question.record.lacks if question.record else 0,
        covers=plan.covers,
        fingerprint="",
        fates=FateRun.all_of(plan.fates),
        edits=plan.edits,
        summary=summary,
        summary_after=plan.summary_after,
        thinking_from=question.thinking_from,
        alternate=question.alternates,
        trigger=plan.trigger,
        window=question.limits.window,
        target=plan.target,
        tokens_before=question.view_tokens,
    ).fitted(question.history)
    tokens = build(question.history, compaction).tokens + sum(question.overhead.values())
    return compaction.model_copy(update={"tokens_after": tokens})
