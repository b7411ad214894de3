"""The flow of one request to one model: a place, an answer within time, another try where that may help.

Written once, as ``async def`` over ports. What belongs here: opening sessions, waiting for a place, time limits,
retries, the breaker, and telling pieces as they arrive. What does not: whether an answer will do, and what is done
about an overflow (``summary.request``).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from contextfold.errors import SummaryFailed, TimedOut, is_control_flow
from contextfold.observe import Observer, SummaryPiece
from contextfold.ports import Patience, Ports
from contextfold.summary.models.base import Model, Session
from contextfold.summary.models.retry import may_pass, wait_seconds
from contextfold.summary.options import SummaryOptions
from contextfold.summary.summarizer import Answer

PLACE_SECONDS = 0.02
"""How often a request that found no place looks again."""

GRACE_SECONDS = 1.0
"""An SDK's own time limit is so much longer than ours, so that ours speaks first; it ends what nobody waits for."""


@dataclass(slots=True)
class Asker:
    """Asks the models of one summary. Branches share it.

    ``patience`` holds the time limits of the whole summary. Sessions are opened when they are first needed.
    """

    models: Sequence[Model]
    options: SummaryOptions
    ports: Ports
    observer: Observer
    patience: Patience
    _sessions: dict[int, Session] = field(default_factory=dict)
    _opened: list[Session] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def answer(self, model: Model, prompt: str, answer_tokens: int, kind: str) -> Answer:
        """The model's answer to one prompt. ``kind`` is told with its pieces.

        Raises what the model raised last, when another try is of no use or there is no time for it.
        """
        session = await self._session(model)
        attempt = 0
        while True:
            left_out = model.endpoint.refused_fields
            try:
                return await self._attempt(model, session, prompt, answer_tokens, kind)
            except Exception as error:
                field = session.refused_field(error)
                if field is not None and field not in left_out:
                    self._note_refused(model, field, error)
                    continue
                attempt += 1
                wait = self._wait(model, error, attempt)
                if wait is None:
                    raise
            await self.ports.sleep(wait)

    def check_allowed(self, model: Model) -> None:
        """Raises ``SummaryFailed`` for a model that is left alone because it failed again and again."""
        now = self.ports.clock.now()
        if not model.endpoint.allows(now):
            seconds = model.endpoint.open_seconds(now)
            raise SummaryFailed(
                f"{model.name} failed {self.options.breaker_failures} times in a row, "
                f"and is not asked for {seconds:.0f} s"
            )

    def note_failure(self, model: Model, problem: str) -> None:
        """A request to the model failed for good."""
        failures, seconds = self.options.breaker_failures, self.options.breaker_seconds
        if model.endpoint.failed(self.ports.clock.now(), failures=failures, seconds=seconds):
            self.observer.emit(
                "breaker_opened",
                f"{model.name} failed again ({problem}) and is left alone for {seconds:g} s",
                model=model.name,
                seconds=seconds,
                problem=problem,
            )

    async def close(self) -> None:
        """Close the clients that were opened."""
        for session in self._opened:
            if session.close is not None:
                await self.ports.release(session.close)

    # ---- steps ----

    async def _session(self, model: Model) -> Session:
        if id(model) not in self._sessions:
            opening = model.opening(stream=self.observer.hooks.on_stream is not None)
            session: Session = await self.ports.compute(opening)
            self._opened.append(session)  # another branch may have been as quick: both are closed
            self.observer.keys.update(session.keys)
            self._sessions.setdefault(id(model), session)
        return self._sessions[id(model)]

    async def _attempt(self, model: Model, session: Session, prompt: str, answer_tokens: int, kind: str) -> Answer:
        number, fold = next(self._numbers), session.fold()
        request = session.request(prompt, answer_tokens, self._sdk_seconds())
        async with self._place(model), aclosing(self.ports.pieces(self.patience, request)) as pieces:
            async for piece in pieces:
                text = fold.add(piece)
                if text:
                    await self.observer.tell(self.ports, SummaryPiece(text, kind, number))
        return fold.answer()

    @asynccontextmanager
    async def _place(self, model: Model) -> AsyncIterator[None]:
        """One of the places that all requests to a model in this process share."""
        while not model.endpoint.enter(self.options.parallel):
            self.patience.left(self.ports.clock.now())
            await self.ports.sleep(PLACE_SECONDS)
        try:
            yield
        finally:
            model.endpoint.leave()

    def _note_refused(self, model: Model, field: str, error: Exception) -> None:
        """Requests go without this field from now on. Branches side by side may learn it at once; one says so."""
        if model.endpoint.refuse_field(field):
            self.observer.emit(
                "summary_field_refused",
                f"{model.name} does not take {field}, and is asked without it from now on ({describe(error)})",
                model=model.name,
                field=field,
            )

    def _wait(self, model: Model, error: Exception, attempt: int) -> float | None:
        """Seconds before the next try; None if there is none."""
        if isinstance(error, TimedOut):
            self.observer.emit("summary_timed_out", f"{model.name}: {error}", model=model.name, seconds=error.seconds)
        if is_control_flow(error) or attempt > self.options.retries_on_failure or not may_pass(error):
            return None
        clock = self.ports.clock
        wait = wait_seconds(error, attempt, wall=clock.wall(), chance=clock.chance())
        if clock.now() + wait >= self.patience.deadline:
            return None
        self.observer.emit(
            "summary_retry",
            f"{model.name} failed ({describe(error)}) and is asked again in {wait:.1f} s",
            model=model.name,
            error=type(error).__name__,
            attempt=attempt,
            wait=round(wait, 3),
        )
        return wait

    def _sdk_seconds(self) -> float | None:
        limits = [limit for limit in (self.patience.idle, self.patience.total) if limit is not None]
        return min(limits) + GRACE_SECONDS if limits else None


def describe(error: BaseException) -> str:
    """A failure in a short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
