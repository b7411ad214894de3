"""The flow of one request to one model: an answer within time, another try where that may help.

Written once, as ``async def`` over ports. What belongs here: opening sessions, time limits, retries, and
telling pieces as they arrive. What does not: whether an answer will do, and what is done
about an overflow (``summary.request``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from contextfold.errors import TimedOut, is_control_flow, reason
from contextfold.observe import Observer, SummaryPiece
from contextfold.ports import Patience, Ports
from contextfold.summary.models.base import Model, OpenModel
from contextfold.summary.models.retry import may_pass, wait_seconds
from contextfold.summary.options import SummaryOptions
from contextfold.summary.summarizer import Answer

GRACE_SECONDS = 1.0
"""How much longer an SDK's own time limit is than ours, so that ours speaks first; it ends abandoned requests."""


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
    _sessions: dict[int, OpenModel] = field(default_factory=dict)
    _opened: list[OpenModel] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def answer(self, model: Model, prompt: str, answer_tokens: int, kind: str) -> Answer:
        """The model's answer to one prompt. ``kind`` is told with its pieces.

        Raises what the model raised last, when another try is of no use or there is no time for it.
        """
        session = await self._session(model)
        attempt = 0
        while True:
            left_out = set(model.refused)
            try:
                return await self._attempt(session, prompt, answer_tokens, kind)
            except Exception as error:
                field = session.refused_field(error)
                # No retry is counted: the next request goes without the field. One that was left out and is refused all
                # the same is a failure like others.
                if field is not None and field not in left_out:
                    self._note_refused(model, field, error)
                    continue
                attempt += 1
                wait = self._wait(model, error, attempt)
                if wait is None:
                    raise
            await self.ports.sleep(wait)

    async def close(self) -> None:
        """Close the clients that were opened."""
        for session in self._opened:
            if session.close is not None:
                await self.ports.release(session.close)

    # ---- steps ----

    async def _session(self, model: Model) -> OpenModel:
        if id(model) not in self._sessions:
            opening = model.opening(stream=self.observer.hooks.on_stream is not None)
            session: OpenModel = await self.ports.compute(opening)
            self._opened.append(session)  # another branch may have been as quick: both are closed
            self.observer.keys.update(session.keys)
            self._sessions.setdefault(id(model), session)
        return self._sessions[id(model)]

    async def _attempt(self, session: OpenModel, prompt: str, answer_tokens: int, kind: str) -> Answer:
        number, fold = next(self._numbers), session.fold()
        request = session.request(prompt, answer_tokens, self._sdk_seconds())
        async with aclosing(self.ports.pieces(self.patience, request)) as pieces:
            async for piece in pieces:
                text = fold.add(piece)
                if text:
                    await self.observer.tell(self.ports, SummaryPiece(text, kind, number))
        return fold.answer()

    def _note_refused(self, model: Model, field: str, error: Exception) -> None:
        # Branches side by side may learn it at once; one says so.
        if field not in model.refused:
            model.refused.add(field)
            self.observer.emit(
                "summary_field_refused",
                f"{model.name} does not take {field}, and is asked without it from now on ({reason(error)})",
                model=model.name,
                field=field,
            )

    def _wait(self, model: Model, error: Exception, attempt: int) -> float | None:
        """Seconds before the next try; None if there is none."""
        if isinstance(error, TimedOut):
            self.observer.emit("summary_timed_out", f"{model.name}: {error}", model=model.name, seconds=error.seconds)
            if attempt > 1:  # a lost connection is made again; a model that is silent once more stays so
                return None
        if is_control_flow(error) or attempt > self.options.retries_on_failure or not may_pass(error):
            return None
        clock = self.ports.clock
        wait = wait_seconds(error, attempt, wall=clock.wall(), chance=clock.chance())
        # waiting past the deadline would only hide the error that came first
        if clock.now() + wait >= self.patience.deadline:
            return None
        self.observer.emit(
            "summary_retry",
            f"{model.name} failed ({reason(error)}) and is asked again in {wait:.1f} s",
            model=model.name,
            error=type(error).__name__,
            attempt=attempt,
            wait=round(wait, 3),
        )
        return wait

    def _sdk_seconds(self) -> float | None:
        limits = [limit for limit in (self.patience.idle, self.patience.total) if limit is not None]
        return min(limits) + GRACE_SECONDS if limits else None
