"""What an upstream's answer says before the client gets any of it: accepted, refused for its size, or another error.

What belongs here: reading the beginning of an answer. What does not: what follows from it (``exchange``).
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import Any

from contextfold.calls.refused import refusal_in
from contextfold.calls.usage import Usage
from contextfold.errors import RefusedInStream, shown
from contextfold.gateway.decoding import Decoder
from contextfold.gateway.tap import EVENT_END, event_data
from contextfold.gateway.upstream import UpstreamAnswer, UpstreamFailed
from contextfold.integrations.streams import StreamProgress
from contextfold.overflow import Overflow, classify

HOLD_SECONDS = 3.0
"""How long an error, or what an answer begins with, is held back to see whether the request is refused for its size."""
MOST_ERROR = 1024 * 1024
"""Bytes of it that are looked at. A refusal is short; what is longer, or does not end, is relayed as it comes."""


class Refused(Exception):
    """The upstream said that the request does not fit. ``status_code`` and ``body`` are as SDKs have them."""

    def __init__(
        self, answer: UpstreamAnswer, body: Any, overflow: Overflow | None = None, *, is_sure: bool = True
    ) -> None:
        """``is_sure``: its words say so, whatever was sent."""
        self.is_sure = is_sure
        self.answer = answer
        self.overflow = overflow
        self.status_code = answer.status
        self.body = body
        super().__init__(f"HTTP {answer.status}: {shown(body, 2_000)}")

    @property
    def kind(self) -> str:
        return self.overflow.kind if self.overflow is not None else "in_stream"


class Relayed(Exception):
    """An answer that is no success and no matter of size: the client gets it as it is."""

    def __init__(self, answer: UpstreamAnswer) -> None:
        self.answer = answer
        super().__init__("an answer for the client")


class Accepted:
    """An upstream's success, as the engine sees it: it says nothing about its usage yet."""

    contextfold_usage = Usage()

    def __init__(self, answer: UpstreamAnswer) -> None:
        self.answer = answer

    async def close(self) -> None:
        self.answer.close()


async def check_answer(answer: UpstreamAnswer, *, opens: bool) -> None:
    """Raises ``Refused`` where the request is said not to fit, and ``Relayed`` for other errors.

    ``opens``: what began with success is read as far as some providers refuse in it: a stream up to its first content,
    JSON up to where it would say so.
    """
    if answer.status >= 400:
        await _check_error(answer)
        raise Relayed(answer)
    if opens and answer.is_stream:
        await _check_opening(answer)
    elif opens and "json" in answer.header(b"content-type"):
        await _check_plain(answer)


async def _check_error(answer: UpstreamAnswer) -> None:
    try:
        body = await answer.whole(MOST_ERROR, HOLD_SECONDS)
    except UpstreamFailed:  # its status was said: in place of a final one, clients would try a 502 again
        _end_here(answer)
        body = b"".join(answer.ahead)
    decoder = Decoder(answer.header(b"content-encoding"))
    if body is None or not decoder.is_known:
        return
    text = decoder.feed(body)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text.decode(errors="replace")
    overflow = classify(status=answer.status, body=said)
    if overflow is not None:
        raise Refused(answer, said, overflow)
    if (bare := classify(status=answer.status, body=said, fill=1.0)) is not None:
        # a refusal without a word is for the engine to judge, which knows how full the window is
        raise Refused(answer, said, bare, is_sure=False)


async def _check_opening(answer: UpstreamAnswer) -> None:
    decoder, progress = Decoder(answer.header(b"content-encoding")), StreamProgress()
    text, until, held = bytearray(), time.monotonic() + HOLD_SECONDS, 0
    begun, answer.ahead = b"".join(answer.ahead), []
    while decoder.is_known and held <= MOST_ERROR:
        left = until - time.monotonic()
        if left <= 0:
            return
        chunk, begun = begun or await answer.next_within(left), b""
        if chunk is None:
            return
        answer.ahead.append(chunk)
        held += len(chunk)
        searched = max(0, len(text) - 3)  # no event ends before: one may come in a million pieces
        text += decoder.feed(chunk)
        events: list[bytes] = []
        if EVENT_END.search(text, searched):
            events = EVENT_END.split(bytes(text))
            text = bytearray(events.pop())
        if not chunk:  # some leave out the empty line behind their last one
            events.append(bytes(text))
        for event in events:
            said = event_data(event)
            if said is None:
                continue
            try:
                progress.see(said)
            except RefusedInStream as error:
                await _to_the_end(answer)
                raise Refused(answer, error.body) from None
            # The first content has arrived: from here on the client has to get every event as it comes.
            if progress.has_content:
                return
        if not chunk or len(text) > MOST_ERROR:
            return


_BEGINNING = 1_024
"""Bytes of a plain answer in which it would say that it is an error."""
_NAMES_AN_ERROR = re.compile(rb'"error"\s*:\s*[{"]')
_GEMINIS_ANSWER = re.compile(rb'\[?\s*\{\s*"candidates"\s*:')
"""Without ``alt=sse`` a stream of Gemini's is a list, whose first pieces have some hundred bytes."""


async def _check_plain(answer: UpstreamAnswer) -> None:
    """Routers before several providers may answer with 200, and with what the provider refused the request for."""
    decoder, text, until = Decoder(answer.header(b"content-encoding")), b"", time.monotonic() + HOLD_SECONDS
    held = 0
    while len(text) < _BEGINNING and held <= MOST_ERROR:
        chunk = await answer.next_within(max(0.0, until - time.monotonic()))
        if chunk is None:
            return
        answer.ahead.append(chunk)
        held += len(chunk)
        text = (text + decoder.feed(chunk)).lstrip()  # some write blanks as long as they wait for their model
        if not decoder.is_known or _GEMINIS_ANSWER.match(text):
            return
        if not chunk:
            break
    # An answer's own words have their quotation marks escaped.
    if not _NAMES_AN_ERROR.search(text):
        return
    body = await answer.whole(MOST_ERROR, HOLD_SECONDS)
    if body is None:
        return
    try:
        said = json.loads(Decoder(answer.header(b"content-encoding")).feed(body))
    except (ValueError, RecursionError):
        return
    first = said[0] if isinstance(said, list) and said else said
    if (refusal := refusal_in(first)) is not None:
        raise Refused(answer, refusal, classify(refusal))


async def _to_the_end(answer: UpstreamAnswer) -> None:
    """The rest of a stream that is over in any case, so that the client can be given it whole. One that goes on all the
    same ends here: an agent would wait for another view as long as its provider keeps the connection alive. So does one
    that breaks off, as those of servers do whose error ends them: what counts was said.
    """
    with suppress(UpstreamFailed):
        if await answer.whole(MOST_ERROR, HOLD_SECONDS) is not None:
            return
    _end_here(answer)


def _end_here(answer: UpstreamAnswer) -> None:
    """What was read of an answer is all of it: as text, since clients refuse compressed bytes without their end."""
    answer.close()
    decoder, dropped = Decoder(answer.header(b"content-encoding")), [b"content-length"]
    text = decoder.feed(b"".join(answer.ahead))
    if decoder.is_known:
        answer.ahead = [text]
        dropped.append(b"content-encoding")
    answer.headers = [(name, value) for name, value in answer.headers if name.lower() not in dropped]
