"""The flow of one pass: plan, shorten, summarize, choose evidence, build the record, check it.

    History + Policy ──decide──▶ Plan ──summary──▶ prose ──evidence──▶ Compaction ──apply──▶ view, sized, checked

What belongs here: the order of the steps, what happens when one of them fails, and the record they leave. Written once,
as ``async def`` over ports (see ``ports``). What does not: any decision of its own (``plan``), any wire shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contextfold.conversation.ledger import runs
from contextfold.errors import RECENT, ArchiveError, CannotFit, ContextfoldError, SummaryFailed, is_control_flow
from contextfold.messages import Message
from contextfold.observe import SummaryEnd
from contextfold.passes import material
from contextfold.passes.decide import Plan, Skip, decide
from contextfold.passes.question import Job
from contextfold.ports import Ports
from contextfold.record.compaction import Compaction, FateRun, SummaryRecord, summary_message
from contextfold.record.view import build
from contextfold.summary.bisect import Summary, SummaryStats, summarize
from contextfold.summary.message import summary_text
from contextfold.summary.summarizer import Summarizer


async def run_pass(job: Job, ports: Ports) -> Compaction | None:
    """The new compaction, or None when nothing changes and the previous one stays in force.

    Raises ``CannotFit`` when no compaction can reach the target, and ``SummaryFailed`` when no acceptable summary could
    be had and policy allows neither the old view nor the fallback. Nothing has changed then.
    """
    try:
        plan = await ports.compute(_decide, job)
        if isinstance(plan, Skip):
            job.observer.emit("skipped", plan.reason, tokens=job.view_tokens)
            return None
        return await _performed(job, plan, ports)
    except CannotFit as error:
        if not job.is_trial:
            job.observer.emit("cannot_fit", str(error), limit=error.limit, floor=error.floor)
        raise


async def _performed(job: Job, plan: Plan, ports: Ports) -> Compaction | None:
    """The record of a plan, or None when there is no summary and the old view goes on."""
    _announce(job, plan)
    try:
        summary = await _prose(job, plan, ports) if plan.makes_summary else None
    except _KeepOld:
        return None
    took = summary.stats if summary is not None else SummaryStats()
    try:
        compaction = await ports.compute(_complete, job, plan, summary)
    except CannotFit as error:
        if summary is not None and took.calls:  # it is paid for: who listens gets it, though no record holds it
            await job.observer.tell(ports, _end(took, text=summary.text, error=str(error)))
        raise
    if took.calls:
        record = compaction.summary
        ratio = record.compression_ratio if record else 0.0
        await job.observer.tell(ports, _end(took, text=record.text if record else "", compression_ratio=ratio))
    _conclude(job, plan, compaction, took)
    return compaction


async def archived(job: Job, originals: Mapping[int, Message], ports: Ports) -> bool:
    """Save the originals of what is about to leave the view. False where that failed and the old view can go on.

    ``originals``: by the index under which they are to be saved. Raises ``ArchiveError`` where saving failed and the
    old view does not fit the window.
    """
    if job.archive is None:
        return True
    place = job.archive.address
    try:
        await ports.call(job.archive.append, originals)
    except Exception as error:
        if is_control_flow(error):
            raise
        text = f"nothing leaves the view, because {place} did not take the originals: {error}"[:500]
        job.observer.emit("archive_failed", text, archive=place, error=type(error).__name__)
        if job.view_tokens <= job.limits.window:
            return False
        raise ArchiveError(
            f"the originals could not be saved to {place} ({error}), and the conversation of {job.view_tokens:,} "
            f"tokens does not fit the window of {job.limits.window:,} unless some of it leaves"
        ) from error
    job.observer.emit("archived", f"{len(originals)} originals are in {place}", archive=place, count=len(originals))
    return True


class _KeepOld(Exception):
    """The summary failed and the old view goes on."""


def _decide(job: Job) -> Plan | Skip:
    return decide(job.situation())


def _announce(job: Job, plan: Plan) -> None:
    job.observer.emit(
        "compaction_started",
        f"{job.view_tokens:,} tokens reached {plan.trigger}; the target is {plan.target:,}",
        trigger=plan.trigger,
        tokens=job.view_tokens,
        target=plan.target,
        evicting=len(plan.evicted),
    )
    for tier, saved in plan.saved.items():
        job.observer.emit("tier_applied", f"{tier} saved {saved:,} tokens", tier=tier, saved=saved)


def _conclude(job: Job, plan: Plan, compaction: Compaction, took: SummaryStats) -> None:
    summary = compaction.summary
    job.observer.emit(
        "compaction_finished",
        f"{job.view_tokens:,} tokens became {compaction.tokens_after:,} (target {compaction.target:,})",
        tokens_before=job.view_tokens,
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


async def _prose(job: Job, plan: Plan, ports: Ports) -> Summary:
    """The summary's prose, by the summarizer, or by the fallback where policy allows it."""
    if job.summarizer is None:
        return await ports.compute(material.extract, job, plan)
    spent: list[SummaryStats] = []
    try:
        return await _ask(job, plan, job.summarizer, ports, spent.append)
    except Exception as error:
        if is_control_flow(error):
            raise
        problem = job.observer.scrub(f"{type(error).__name__}: {error}")
        took = spent[-1] if spent else SummaryStats()
        await job.observer.tell(ports, _end(took, text=None, error=problem))
        return await _without_summarizer(job, plan, error, ports)


async def _ask(
    job: Job, plan: Plan, summarizer: Summarizer, ports: Ports, on_spent: Callable[[SummaryStats], object]
) -> Summary:
    previous, units = await ports.compute(material.material, job, plan)
    if not units:
        return Summary(previous or "", frozenset(), SummaryStats())
    options = job.policy.summary
    learned = _learned_window(job)
    if learned is not None and options.input_tokens is None and summarizer.window is None:
        options = options.model_copy(update={"input_tokens": learned})
    if job.instructions:
        joined = "\n".join(text for text in (options.instructions, job.instructions) if text)
        options = options.model_copy(update={"instructions": joined})
    summary = await summarize(
        units,
        previous=previous,
        summarizer=summarizer,
        options=options,
        max_tokens=material.prose_room(job, plan),
        language=job.language,
        ports=ports,
        count=job.history.counter.text,
        observer=job.observer,
        on_spent=on_spent,
    )
    missing = {index for unit in units for index in unit.indices} - summary.covered
    if missing:  # nothing may count as summarized whose text no successful request held
        raise SummaryFailed(f"{len(missing)} of the messages to summarize were in no successful request")
    return summary


def _learned_window(job: Job) -> int | None:
    """What refusals taught at any earlier pass about the prompts that the summarizer takes, in tokens."""
    return job.previous.summary.learned_window if job.previous and job.previous.summary else None


async def _without_summarizer(job: Job, plan: Plan, error: Exception, ports: Ports) -> Summary:
    fits = job.view_tokens <= job.limits.window
    job.observer.emit(
        "summary_failed",
        job.observer.scrub(f"{type(error).__name__}: {error}")[:500],
        error=type(error).__name__,
        view_fits=fits,
    )
    if job.policy.on_failure == "raise":
        raise error
    if fits:
        raise _KeepOld from error
    if job.policy.fallback is None:
        if isinstance(error, ContextfoldError):
            raise error
        problem = job.observer.scrub(f"{type(error).__name__}: {error}")
        raise SummaryFailed(
            f"the summarizer failed ({problem}), the conversation of {job.view_tokens:,} tokens "
            f"does not fit the window of {job.limits.window:,} without a summary, and no fallback is allowed",
            attempts=[problem],
        ) from error
    job.observer.emit("fallback_used", "the built-in extractive summary stands in", fallback=job.policy.fallback)
    return await ports.compute(material.extract, job, plan)


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


def _complete(job: Job, plan: Plan, summary: Summary | None) -> Compaction:
    """The record with evidence in the room that is left, and its real size. Raises ``CannotFit`` if it misses.

    Without a new summary the earlier prose stands, if there is any, beside new evidence.
    """
    bare = _new_summary(job, plan, summary) if summary is not None else _standing_summary(job)
    size = job.history.counter.message(summary_message(bare))
    room = min(plan.evidence_tokens + plan.prose_tokens, plan.target - plan.kept_tokens)
    budget = room - size - 24 if job.policy.evidence else 0
    while budget > 0:
        lines = material.evidence(job, plan, bare.text, budget)
        compaction = _record(job, plan, bare.model_copy(update={"evidence": lines}) if lines else _or_none(bare))
        excess = compaction.tokens_after - plan.target
        if excess <= 0:
            return compaction
        budget -= excess + 16
    compaction = _record(job, plan, _or_none(bare))
    if bare.text and (excess := compaction.tokens_after - plan.target) > 0:  # an estimate of the plan was too low
        shorter = _capped(job, bare.text, plan.target - plan.kept_tokens - excess)
        compaction = _record(job, plan, _or_none(bare.model_copy(update={"text": shorter, "truncated": True})))
    return _within(plan, compaction)


def _or_none(summary: SummaryRecord) -> SummaryRecord | None:
    return summary if summary.text or summary.evidence else None


def _standing_summary(job: Job) -> SummaryRecord:
    if job.previous is not None and job.previous.summary is not None:
        return job.previous.summary.model_copy(update={"evidence": "", "archive": _address(job)})
    return SummaryRecord(
        text="",
        role=job.policy.summary_role,
        language=job.language,
        algorithm="evidence",
        archive=_address(job),
    )


def _address(job: Job) -> str | None:
    """Where the originals will be: they are saved before the record comes into force, or it never does."""
    return job.archive.address if job.archive is not None else None


def _new_summary(job: Job, plan: Plan, summary: Summary) -> SummaryRecord:
    prose = _capped(job, summary.text, plan.target - plan.kept_tokens)
    stats = summary.stats
    return SummaryRecord(
        text=prose,
        role=job.policy.summary_role,
        language=job.language,
        algorithm=stats.algorithm,
        input_tokens=stats.input_tokens,
        output_tokens=job.history.counter.text(prose),
        calls=stats.calls,
        chunk_count=stats.chunk_count,
        max_depth=stats.max_depth,
        truncated=stats.truncated or prose != summary.text,
        learned_window=stats.learned_window or _learned_window(job),
        message_count=len(plan.gone),
        original_tokens=sum(job.history.sizes[n] for n in plan.gone),
        archive=_address(job),
    )


def _within(plan: Plan, compaction: Compaction) -> Compaction:
    """The record, if its view meets the target. Raises ``CannotFit`` otherwise."""
    if compaction.tokens_after <= plan.target:
        return compaction
    rest = compaction.tokens_after - sum(plan.floor.values())
    raise CannotFit(limit=plan.target, floor={**plan.floor, RECENT: rest})


def _capped(job: Job, prose: str, room: int) -> str:
    """Prose that a summarizer made longer than the room, clipped to it; the rest is the evidence's task."""
    count = job.history.counter.text
    frame = count(summary_text("", "-", language=job.language)) + 8
    while prose and count(prose) > max(room - frame, 1):
        keep = max(1, int(len(prose) * (room - frame) / count(prose) * 0.97)) if room > frame else 1
        prose = prose[: min(keep, len(prose) - 1)].rstrip()
        if len(prose) <= 1:
            break
    return prose


def _record(job: Job, plan: Plan, summary: SummaryRecord | None) -> Compaction:
    """The record of a plan, with the size of the view that it gives."""
    alternate = job.policy.alternate
    if summary is not None:
        summary = summary.model_copy(update={"tokens": job.history.counter.message(summary_message(summary))})
    compaction = Compaction(
        parent=job.previous.id if job.previous else None,
        format=job.history.format.name,
        covers=plan.covers,
        fingerprint=job.history.fingerprint(plan.covers),
        fates=tuple(
            FateRun(start=run.start, stop=run.stop, fate=run.fate, reason=run.reason) for run in runs(plan.fates)
        ),
        edits=plan.edits,
        summary=summary,
        summary_after=plan.summary_after,
        alternate=job.history.format.alternates if alternate is None else alternate,
        trigger=plan.trigger,
        window=job.limits.window,
        target=plan.target,
        tokens_before=job.view_tokens,
    )
    tokens = build(job.history, compaction).tokens + sum(job.overhead.values())
    return compaction.model_copy(update={"tokens_after": tokens})
