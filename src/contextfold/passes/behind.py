"""The summary by the model of the request itself, asked behind the view that its provider has in the cache.

What belongs here: composing that request, and what its answer is worth. What does not: sending it and reading answers
(``calls.same``), and the usual way, from the text of what leaves, which follows where this one brings no summary
(``perform``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from contextfold.conversation.repair.rules import may_stand_between
from contextfold.errors import TimedOut, is_control_flow, reason
from contextfold.formats import cache_marks
from contextfold.formats.base import Format
from contextfold.observe import SummaryStart
from contextfold.passes import material
from contextfold.passes.decide import Plan
from contextfold.passes.means import Means, RequestModel
from contextfold.passes.question import Question
from contextfold.record.view import alternating, build
from contextfold.summary.chunks import Unit
from contextfold.summary.summarizer import Summary, SummaryStats

BEHIND_VIEW = "behind_view_v1"
"""How a summary was made by the model of the request itself."""

LEAST_APART = 100
"""Tokens that a summary of what stands shortened in the view must have to be worth a request of its own."""

FromText = Callable[[Sequence[Unit], str | None, int], Awaitable[Summary]]
"""The usual way: the summary of these units, behind an earlier summary, in so many tokens."""


@dataclass(frozen=True, slots=True)
class _Request:
    """``view`` with ``instruction`` behind it, about ``material`` tokens of messages. ``apart``: what stands shortened
    in the view, and in full does not fit behind it; its summary of at most ``apart_tokens`` does. ``answer_tokens``: at
    most. ``mark``: of the provider's cache, which stood in what is left out.
    """

    view: list[Any]
    instruction: str
    material: int
    answer_tokens: int
    mark: Mapping[str, Any] | None
    apart: tuple[Unit, ...] = ()
    apart_tokens: int = 0


async def summary_behind(
    question: Question,
    plan: Plan,
    units: Sequence[Unit],
    means: Means,
    from_text: FromText,
    on_spent: Callable[[SummaryStats], object],
) -> Summary | None:
    """None where that cannot be, or the answer is no summary. ``on_spent`` is told what the answer cost.

    Raises ``TimedOut`` where the model is silent.
    """
    same, ports = means.same, means.ports
    # The provider has just refused this view; with an instruction behind it, it would refuse it again.
    if same is None or (question.forced or "").startswith("overflow"):
        return None
    request = await ports.compute(_composed, question, plan, units, same.answer_limit or 0)
    if request is None:
        return None
    if request.apart:
        part = await from_text(request.apart, None, request.apart_tokens)
        if not part.covered.issuperset(_indices(request.apart)):  # cut to fit, so not read whole
            return None
        told = _beside("Summed up from its full text, what stands shortened above", [part.text])
        request = replace(request, instruction=request.instruction + told)
    return await _asked(question, means, same, request, _indices(units), on_spent)


async def _asked(
    question: Question,
    means: Means,
    same: RequestModel,
    request: _Request,
    covered: frozenset[int],
    on_spent: Callable[[SummaryStats], object],
) -> Summary | None:
    from contextfold.summary.accept import clean, rejection
    from contextfold.summary.bisect import patience_of

    ports, count = means.ports, question.counter.text
    await means.observer.tell(ports, SummaryStart("same", len(covered), request.material))
    messages = await ports.compute(_joined, question, same, request)
    started = ports.clock.now()
    try:
        patience = patience_of(question.policy.summary, started)
        async with aclosing(ports.pieces(patience, same.ask, messages, True, request.answer_tokens)) as pieces:
            response = await anext(pieces, None)
        if response is None:  # not asked, because no answer to such a request could be a summary
            return None
        answer = same.read(response)
    except TimedOut as error:  # the usual way asks the same model, and would wait as long once more
        means.observer.emit("summary_timed_out", f"same: {error}", model="same", seconds=error.seconds)
        raise
    except Exception as error:
        if is_control_flow(error):
            raise
        text = f"the request behind the view failed: {reason(error)}"
        means.observer.emit("summary_model_failed", text[:500], model="same", error=type(error).__name__)
        return None
    # A provider that reports no usage has still been paid: the estimate stands in.
    stats = SummaryStats(
        input_tokens=answer.input_tokens or question.view_tokens,
        output_tokens=answer.output_tokens or count(answer.text),
        calls=1,
        chunk_count=1,
        algorithm=BEHIND_VIEW,
        model="same",
        seconds=ports.clock.now() - started,
    )
    on_spent(stats)
    if why := rejection(answer, input_tokens=request.material, count=count):
        text = f"the answer behind the view cannot be used: {why}"
        means.observer.emit("summary_rejected", text, reason=why, kind="same")
        return None
    return Summary(clean(answer.text), covered, stats)


def together(steps: Sequence[SummaryStats]) -> SummaryStats:
    """What the steps to one summary took. The last one tells how it was made."""
    *before, last = steps
    if not before:
        return last
    return replace(
        last,
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        calls=sum(step.calls for step in steps),
        seconds=sum(step.seconds for step in steps),
        cost=None,  # a price is known of the usual way alone
    )


# ---- the request ----


def _composed(question: Question, plan: Plan, units: Sequence[Unit], answer_limit: int) -> _Request | None:
    """None if it does not fit the window.

    ``answer_limit``: the request's own. A model that thinks may need it, so the summary gets as much, of what is left:
    prompt and answer limit together above the window are refused by some providers, at each pass.
    """
    from contextfold.overflow.next_size import room_beside
    from contextfold.summary.language import name as language_name
    from contextfold.summary.prompt_files import Wording

    options, count = question.policy.summary, question.counter.text
    stop = _sent(question, plan)
    view = build(question.history, question.record, sending=True, stop=stop)
    mark = cache_marks.newest(question.history.wire[stop:])
    told = "\n".join(text for text in (options.instructions, question.instructions) if text)
    wording = Wording(language_name(question.language), options.prompt, told)
    room = material.prose_room(question, plan)
    instruction = wording.compose("same", [], max_tokens=int(0.9 * room))
    prompt = view.tokens + sum(question.overhead.values()) + count(instruction)
    left = room_beside(prompt, question.limits.window)
    answer_tokens = max(2 * room + 256, answer_limit)
    request = _Request(view.wire, instruction, sum(count(unit.text) for unit in units), answer_tokens, mark)
    # No text counts as summarized that was not read: what leaves and stands shortened in the view is added.
    edited = {edit.index for edit in question.record.edits} if question.record else set()
    shortened = tuple(unit for unit in units if edited.intersection(unit.indices))
    in_full = _beside("In full, what stands shortened above", [unit.text for unit in shortened]) if shortened else ""
    if (rest := left - count(in_full)) >= room:
        return replace(request, instruction=instruction + in_full, answer_tokens=min(rest, request.answer_tokens))
    apart_tokens = min(room, left - room) // 2
    if not shortened or apart_tokens < LEAST_APART:
        return None
    most = min(left - 2 * apart_tokens, request.answer_tokens)
    return replace(request, answer_tokens=most, apart=shortened, apart_tokens=apart_tokens)


def _indices(units: Sequence[Unit]) -> frozenset[int]:
    return frozenset(index for unit in units for index in unit.indices)


def _beside(what: str, texts: Sequence[str]) -> str:
    from contextfold.quoting import broken

    # Neutralized, because it stands inside our instruction: what a tool wrote must not pass for a part of that.
    text = "\n\n".join(map(broken, texts))
    return f"\n\n{what}:\n<conversation>\n{text}\n</conversation>"


def _joined(question: Question, same: RequestModel, request: _Request) -> list[Any]:
    said = same.said(request.instruction)
    if request.mark is not None:
        said = cache_marks.marked(said, request.mark)
    format = question.history.format
    messages = [*_before_reminders(request.view, format), said]
    return alternating(messages, format) if format.rules.takes_turns else messages


def _before_reminders(view: Sequence[Any], format: Format) -> Sequence[Any]:
    """The view without instructions at its end, where these have to stand before the assistant's words. They are not
    summarized, and what stands before them comes from the cache.
    """
    stop = len(view)
    while stop and may_stand_between(format.decode(view[stop - 1]), format):
        stop -= 1
    return view[:stop] or view


def _sent(question: Question, plan: Plan) -> int:
    """How many messages stand before the newest calls, if these and their results stay in the view. The request that
    the calls answered had just these messages, so its provider has them in the cache, and nothing is read at full price
    that the summary is not about.
    """
    messages, grouping = question.messages, question.history.grouping
    newest = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "assistant"), 0)
    stop = grouping.groups[grouping.group_of[newest]].first if messages else 0
    stays = all(n < stop for n in plan.evicted) and stop in grouping.cuts()
    wire = question.history.wire[stop:]
    # A mark of the cache moves to the instruction, and only mappings take one.
    movable = all(isinstance(entry, Mapping) for entry in wire) or cache_marks.newest(wire) is None
    return stop if stays and movable and messages[newest].tool_calls else len(messages)
