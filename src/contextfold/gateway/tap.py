"""Reading along in an answer for the usage it tells and the items that its provider keeps, and telling another usage
where that is wanted.

What belongs here: server-sent events and usage objects. What does not: where in an answer a wire has them (``wires``).
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from contextfold.calls.usage import read_usage
from contextfold.gateway.decoding import Decoder
from contextfold.gateway.upstream import UpstreamAnswer
from contextfold.gateway.wires import items_kept, usage_holders, usage_places, with_input

MOST_USAGE = 8 * 1024 * 1024
"""Bytes of a plain answer that are read along for its usage."""


class AnswerTap:
    """Reads along for the usage and the kept items in an answer, and tells another usage where it should."""

    def __init__(self, answer: UpstreamAnswer, told: int | None, *, is_list: bool = False) -> None:
        """``is_list``: the answer is a list of JSON, whose elements are told one by one."""
        self.input_tokens: int | None = None
        self.items: list[dict[str, Any]] = []
        """What the provider keeps of the answer."""
        self._told = told
        self._is_stream = answer.is_stream
        self._decoder = Decoder(answer.header(b"content-encoding"))
        self._is_plain = answer.is_plain
        self._elements = _Elements() if is_list else None
        self._left = bytearray()
        self._is_off = answer.status != 200 or not self._decoder.is_known

    def feed(self, chunk: bytes) -> bytes:
        """What of this goes to the client now: the chunk itself, unless usage is to be told otherwise."""
        if self._is_off:
            return chunk
        if self._elements is not None:
            return self._listed(chunk, self._elements)
        if not self._is_stream:
            # The chunk goes on at once; what is kept of it only serves to read the usage at the end.
            if len(self._left) < MOST_USAGE:
                self._left += chunk
            return chunk
        rewrites = self._told is not None and self._is_plain
        searched = max(0, len(self._left) - 3)  # no event ends before: an event may come in a million pieces
        self._left += self._decoder.feed(chunk)
        end = max((found.end() for found in EVENT_END.finditer(self._left, searched)), default=0)
        if not end:
            if len(self._left) > MOST_USAGE:
                # An event without an end: nothing more is read along, and what was held back goes out as it came.
                self._is_off, held = True, self._taken(len(self._left))
                return held if rewrites else chunk
            return b"" if rewrites else chunk
        complete = self._taken(end)
        # Most events have none: looking for the word costs less than reading them.
        if b'"usage' in complete:
            complete = self._seen(complete)
        return complete if rewrites else chunk

    def _listed(self, chunk: bytes, elements: _Elements) -> bytes:
        """The elements of a list that end with this."""
        begun = len(self._left)
        self._left += chunk
        ends = [begun + end for end in elements.ends(chunk)]
        if not ends and len(self._left) > MOST_USAGE:  # as of an event without an end
            self._is_off, ends = True, [len(self._left)]
        found = [bytes(self._left[start:end]) for start, end in pairwise([0, *ends])]
        del self._left[: ends[-1] if ends else 0]
        return b"".join(map(self._element, found))

    def _element(self, written: bytes) -> bytes:
        """An element, and what parts it from the one before it, with the usage that is to be told."""
        if b'"usage' not in written:
            return written
        start = written.find(b"{")
        said = _loaded(written[start:])
        self._look(said)
        if not usage_holders(said):
            return written
        self._retell(said)
        return written[:start] + told if (told := _dumped(said)) else written

    def rest(self) -> bytes:
        """What is left at the end of the answer."""
        left = self._taken(len(self._left))
        if self._is_off:
            return b""
        if self._elements is not None:
            return left
        if self._is_stream:
            return left if self._told is not None and self._is_plain else b""
        self._look(_loaded(self._decoder.feed(left)))
        return b""

    def _taken(self, end: int) -> bytes:
        """The beginning of what was kept, which is kept no more."""
        taken = bytes(self._left[:end])
        del self._left[:end]
        return taken

    def rewritten(self, body: bytes) -> bytes:
        """A whole plain answer with its usage told otherwise."""
        if self._is_off or not self._is_plain:
            return body
        said = _loaded(body)
        self._look(said)
        if not usage_holders(said):
            return body
        self._retell(said)
        return _dumped(said) or body

    def _seen(self, events: bytes) -> bytes:
        """The usage of these events is noted; they are returned with the one that is to be told."""
        parts = []
        for event in _split_events(events):
            said = event_data(event) if b'"usage' in event else None
            if said is not None and usage_holders(said):
                self._look(said)
                if self._told is not None:
                    self._retell(said)
                    event = _with_data(event, said) or event
            parts.append(event)
        return b"".join(parts)

    def _look(self, said: Any) -> None:
        self.items += items_kept(said)
        for place in usage_places(said):
            found = read_usage(place).input_tokens
            if found:
                self.input_tokens = max(found, self.input_tokens or 0)

    def _retell(self, said: Any) -> None:
        if self._told is not None:
            for usage in usage_holders(said):
                with_input(usage, self._told)


class _Elements:
    """Where the elements of a list of JSON end that comes in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = self._is_escaped = False

    def ends(self, piece: bytes) -> list[int]:
        """Behind which bytes of the next piece one ends."""
        found: list[int] = []
        at = int(self._is_escaped and bool(piece))
        self._is_escaped = self._is_escaped and not piece
        while (token := (_IN_TEXT if self._is_text else _OUTSIDE).search(piece, at)) is not None:
            at, first = token.end(), token[0]
            if first == b'"':
                self._is_text = not self._is_text
            elif first == b"\\":
                self._is_escaped = at == len(piece)
                at += 1
            elif first in b"[{":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 1:
                    found.append(at)
        return found


_IN_TEXT, _OUTSIDE = re.compile(rb'["\\]'), re.compile(rb'["\[\]{}]')


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _dumped(said: Any) -> bytes | None:
    """Compact JSON; None for what cannot be written as it was read: half a character, a number beyond all floats, more
    levels than are written.
    """
    try:
        return json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None


EVENT_END = re.compile(rb"\n\r?\n|\r(?:\n\r?\n|\r)")
"""The end of a line may be any of three, and a proxy may have written some of them in another way. Each way begins with
one of two bytes: so an event of megabytes, as one with an image, is searched in a sixth of the time."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


def _split_events(events: bytes) -> list[bytes]:
    """Events with what ends them."""
    ends = [0, *(found.end() for found in EVENT_END.finditer(events)), len(events)]
    return [events[start:end] for start, end in pairwise(ends) if end > start]


def _with_data(event: bytes, said: Any) -> bytes | None:
    """The event with other data; its other lines stay. None where the data cannot be written."""
    if (written := _dumped(said)) is None:
        return None
    found = _LINE_END.search(event)
    ending = found[0] if found else b"\n"
    data = b"data: " + written
    # The name of the event and its id are the provider's, and stay.
    lines = [line for line in _LINE_END.split(event) if line and not line.startswith(b"data:")]
    return ending.join([*lines, data]) + ending * 2


def event_data(event: bytes) -> dict[str, Any] | None:
    """The JSON object of one server-sent event; None for comments, ``[DONE]`` and anything else."""
    lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    if not lines:
        return None
    try:
        said = json.loads(b"\n".join(lines))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def response_of(events: bytes) -> dict[str, Any] | None:
    """The whole response that a stream of the Responses API tells; None where it tells none."""
    items: list[Any] = []
    found: Any = None
    for said in filter(None, map(event_data, _split_events(events))):
        if said.get("type") == "response.output_item.done":
            items.append(said.get("item"))
        elif said.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            found = said.get("response")
    # ChatGPT's last event has none of the items that came before it
    return {**found, "output": found.get("output") or items} if isinstance(found, dict) else None
