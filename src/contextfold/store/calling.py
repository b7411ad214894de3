"""``Session.call``: a request with a session around it.

    session ──settled──▶ view ──send──▶ answer
       ▲                   │ refused
       └── recorded ◀── the remedy for this kind of refusal (``calls.recovery``): a pass, or the last resort

What belongs here: the session's views in the terms of ``calls.recovery``, which knows what follows a refusal. What does
not: any remedy of its own. Every record that is made on the way is in force in the store before its view is sent, so a
process that dies while it waits for an answer has lost nothing that was paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from contextfold.calls import counted, views
from contextfold.calls.recovery import Exchange
from contextfold.calls.request import CompactionResult
from contextfold.calls.request import Request as Turn
from contextfold.conversation.ledger import Ledger
from contextfold.errors import CannotFit
from contextfold.integrations.streams import aopened, opened
from contextfold.integrations.wrapping import is_async
from contextfold.observe import Observer
from contextfold.passes.question import floor_of
from contextfold.passes.without_pass import Revise
from contextfold.ports import AsyncPorts, Ports, is_awaitable
from contextfold.store.flow import Flow
from contextfold.store.request import SessionRequest, Settled


class SessionCall:
    """One call on one session, in one color. Used once."""

    def __init__(self, flow: Flow, request: SessionRequest, ports: Ports, observer: Observer) -> None:
        self._flow = flow
        self._request = replace(request, sending=True)
        self._ports = ports
        self._observer = observer

    async def answer(self, send: Callable[..., Any], max_tokens: Any) -> tuple[Any, CompactionResult]:
        """The response, and the result whose view was answered. Raises what ``Compactor.call`` raises."""
        policy = self._flow.policy
        if not self._flow.options.enable_context_optimization:  # off means off: a refusal is the caller's as well
            policy = policy.model_copy(update={"resend_after_overflow": False})

        turn = Turn((), system=self._request.system, tools=self._request.tools, sending=True)
        windows = self._flow.means.windows
        # A stream is opened here, inside of the exchange: a refusal in its first events is mended like any other.
        opening = _suspending(send, self._ports) if isinstance(self._ports, AsyncPorts) else _blocking(send)
        exchange = Exchange(opening, turn, self._compact, windows, policy, self._observer, self._ports, max_tokens)
        return await exchange.answer()

    async def _compact(
        self, turn: Turn, *, window: int | None = None, revise: Revise | None = None, strict: bool = False
    ) -> CompactionResult:
        """The next view: of the session as it is, or smaller after a refusal. What is made for it is in force then."""
        is_retry = turn.forced is not None or revise is not None
        request = replace(
            self._request,
            forced="overflow_retry" if is_retry else self._request.forced,
            limit=window,
            revise=revise,
            strict=strict,
            retries=window is not None,
        )
        windows = self._flow.means.windows
        found = await windows.find("", None, self._ports, self._observer)
        if turn.calibration.ratio > 1:  # what a session has is sized by the estimate
            fitting = int(found.tokens / turn.calibration.ratio)
            request = replace(request, window=replace(found, tokens=fitting, source="learned"))
        try:
            settled = await self._flow.settle(request, self._ports, self._observer)
        # A window that is only assumed gives way once, as in ``Compactor.call``; a given one, or a second failure,
        # stands.
        except CannotFit as error:
            if window is not None or not views.gives_way(found, turn):
                raise
            found = views.widened(found, error, self._observer)
            settled = await self._flow.settle(replace(request, window=found), self._ports, self._observer)
        return self._result(settled, found.source)

    def _result(self, settled: Settled, source: str) -> CompactionResult:
        conversation = settled.loaded.conversation
        history, record = conversation.history, settled.loaded.summary.record if settled.loaded.summary else None
        counter, target = history.counter, history.format
        overhead = settled.size.overhead
        # Of what is gone only a place is left, so what stays is counted by places of its own.
        places = {n: place for place, n in enumerate(n for n, wire in enumerate(history.wire) if wire is not None)}
        kept = [history.messages[n] for n in places]
        removed = {(places[n], part) for n, part in record.removed() if n in places} if record else ()
        policy = settled.rules.policy
        turn = Turn((), system=self._request.system, tools=self._request.tools)
        return CompactionResult(
            messages=settled.copies(),
            compaction=record,
            changed=settled.changed,
            ledger=Ledger(record.runs if record else (), history.messages, conversation.view.mended),
            tokens_before=settled.before,
            tokens_after=settled.size.tokens,
            trigger=record.trigger if record and settled.changed else None,
            events=tuple(self._observer.events),
            window=settled.rules.limits.window,
            target=settled.rules.limits.target,
            format=target.name,
            window_source=source,
            calibration=Turn(()).calibration,
            estimated_tokens=conversation.view.tokens + overhead,
            _floor=lambda: floor_of(kept, counter, policy, views.overhead_of(counter, turn), removed=removed),
            _text_tokens=partial(counted.text_tokens, settled.wire, target, counter),
            _passed_over=partial(counted.passed_over, history, record, len(history.messages)),
        )


def _blocking(send: Callable[..., Any]) -> Callable[..., Any]:
    """``send``, whose stream is read up to its first content: a provider may refuse a request inside of it."""

    def sent(*arguments: Any) -> Any:
        response = send(*arguments)
        return response if is_awaitable(response) else opened(response)

    return sent


def _suspending(send: Callable[..., Any], ports: AsyncPorts) -> Callable[..., Any]:
    async def sent(*arguments: Any) -> Any:
        response = send(*arguments) if is_async(send) else await ports.threaded(send, *arguments)
        return await aopened(await response if is_awaitable(response) else response)

    return sent
