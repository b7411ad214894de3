"""Who writes summaries: the built-in summarizer, a model of the operator's, or the caller's own (``same``).

What belongs here: the request to the caller's model. What does not: what is asked, and whether an answer will do (the
engine's, ``calls.same``).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from contextfold.calls.same import begins_as_given
from contextfold.errors import TimedOut
from contextfold.gateway.body import Body, dumped
from contextfold.gateway.settings import EXTRACTIVE, SAME, GatewaySettings
from contextfold.gateway.tap import response_of
from contextfold.gateway.upstream import UpstreamAnswer, UpstreamFailed
from contextfold.gateway.wires import GatewayWire
from contextfold.summary.models import SummaryModel

Ask = Callable[[list[Any], bool, int], Awaitable[Any]]
"""As ``Compactor.acall`` takes it."""

MOST_SUMMARY = 8 * 1024 * 1024
"""Bytes of an answer that is a summary, with all that its provider writes beside it."""


class SummaryRefused(Exception):
    """The caller's model did not write the summary. ``status_code`` and ``body`` are as SDKs have them."""

    def __init__(self, status: int, body: Any) -> None:
        self.status_code = status
        self.body = body
        super().__init__(f"HTTP {status}: {json.dumps(body)[:500]}")


def summarizer_of(settings: GatewaySettings) -> Any:
    """As ``Compactor`` takes it. A rehearsal asks no model: it must cost nothing."""
    if settings.summarizer == EXTRACTIVE or settings.shadow:
        return None
    if settings.summarizer == SAME:
        return SAME
    return SummaryModel(settings.summarizer, base_url=settings.base_url)


def asking(
    post: Callable[[bytes], Awaitable[UpstreamAnswer]],
    wire: GatewayWire,
    body: Body,
    model: str,
    mark: Callable[[Any], Any] | None,
    room: Callable[[int | None, bytes], int | None],
    silence: float,
) -> Ask:
    """How the model of a request is asked for a summary of it.

    A whole view goes out as the request itself would, made of the client's bytes, so that the provider reads it from
    its cache; only what keeps the answer at the provider, or makes it a stream, is different; that of the Responses
    API comes as the request's own. ``mark``: puts the mark of the cache that the newest message has on another one,
    for a view that ends before it. ``room``: as
    ``Both.room``. ``silence``: seconds that an upstream may take, for what is said about it.
    """

    async def ask(messages: list[Any], whole: bool, answer_tokens: int) -> Any:
        if whole:
            changes = wire.for_a_summary(body.fields)
            if changes is None:
                return None
            limit = wire.limit(body.fields)[1]
            changes |= wire.limited({**body.fields, **changes}, answer_tokens) if limit is not None else {}
            if not begins_as_given(messages, body.open):
                changes |= wire.beside({**body.fields, **changes}, messages, body.open)
            # Marks are counted: one more is refused. So it moves, and never beside the message that has it.
            newest = body.open[-1]
            is_left_out = not any(message is newest for message in messages)
            data = body.with_view(messages, wire.key, changes, mark if is_left_out else None)
            if limit is not None and (lowered := room(answer_tokens, data)) is not None:
                changes |= wire.limited({**body.fields, **changes}, lowered)
                data = body.with_view(messages, wire.key, changes, mark if is_left_out else None)
        else:
            data = dumped(wire.alone(model, messages, body.fields))
        try:
            answer = await post(data)
            try:
                written = await answer.whole(MOST_SUMMARY) or b"null"
                said = response_of(written) if answer.is_stream else json.loads(written)
            finally:
                answer.close()  # no one waits for a summary that was canceled in the middle
        except UpstreamFailed as error:
            if error.kind != "timeout":
                raise
            raise TimedOut(str(error), seconds=silence, total=True) from None
        if answer.status != 200 or not isinstance(said, dict):
            raise SummaryRefused(answer.status, said)
        return said

    return ask
