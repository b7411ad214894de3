"""The conversations that a process remembers, and which of them a new body continues.

Most bodies begin with the bytes of a known one. Others say the same in other bytes, and clients say something else in
their task or a reminder at each turn: those are looked for by the answers of the model.

What belongs here: what is remembered, and looking for it. What does not: taking a body apart (``body``), and whether
what is known of a conversation still holds for it (``call``).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise
from typing import Any

from contextfold import formats
from contextfold.gateway.body import (
    Body,
    Plain,
    begins_like,
    canonical,
    continues,
    opening_of,
    session_of,
    take_apart,
)

MOST_REMEMBERED = 512
"""Conversations. Each costs its bytes and about as much again several times over as parsed objects."""
MOST_BYTES = 128 * 1024 * 1024
"""Bytes of all remembered conversations: the one that was not used for longest goes first."""


Said = Callable[[Any], bytes]
"""From a message to what it has in common with one that says the same."""


@dataclass(slots=True)
class KnownParts:
    """What is remembered of a conversation: the last body that it came in, and what was found out about it."""

    scope: bytes
    body: Body
    state: Any = None
    """The caller's: the record in force and what usage taught."""
    answers: Sequence[bytes] = ()
    """What it is found by where its client says or writes something otherwise."""

    @property
    def opening(self) -> bytes:
        """The bytes of the first two messages: enough to tell most conversations apart."""
        spans = self.body.spans
        return self.body.raw[self.body.start : spans[min(1, len(spans) - 1)][1]] if spans else b""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the messages of a new body begin, and the remembered conversation that begins with the same bytes."""

    start: int
    before: Mapping[str, Any]
    """The fields that stand before the messages."""
    known: KnownParts | None
    same: int = 0
    """How many messages of ``known`` the new body begins with, byte for byte."""

    def new_bytes(self, raw: bytes) -> bytes:
        """What of the new body is not, byte for byte, in the remembered one: all behind the messages that both begin
        with, and fields that differ.
        """
        if self.known is None:
            return raw
        old, same = self.known.body, self.same
        end = self.start + (old.spans[same - 1][1] - old.start if same else 0)
        head = b"" if raw.startswith(old.raw[: old.start]) and self.start == old.start else raw[: self.start]
        tail = old.raw[old.end :]
        rest = raw[end : len(raw) - len(tail)] if raw.endswith(tail) else raw[end:]
        return head + rest if head else rest

    def new_length(self, raw: bytes) -> int:
        """Bytes of the new body that have to be read."""
        old = self.known.body if self.known is not None else None
        return len(raw) - (old.spans[self.same - 1][1] - old.start if old is not None and self.same else 0)


@dataclass(frozen=True, slots=True)
class Parts:
    """A body taken apart, and what its conversation is known by."""

    body: Body
    known: KnownParts | None
    """The conversation that it continues byte for byte."""
    newest: Sequence[bytes]
    """Of its newest answer, as ``KnownParts.answers``."""
    earlier: Sequence[bytes] = ()
    """The same of the answers by which another one is looked for: of those that ``known`` does not have, where these
    are more than a next turn brings."""


def parts_of(raw: bytes, key: str, plainly: Plain, found: Beginning, said: Said = canonical) -> Parts:
    """All that takes longer with a longer body. It changes nothing that is remembered, so a thread may do it.

    Raises ``Unreadable``.
    """
    known = found.known
    if known is not None:
        body = take_apart(raw, key, found.start, found.before, known.body, plainly, found.same)
        if continues(body, known.body):
            are_answers = list(map(_is_answer, islice(body.messages, len(known.body.messages), None)))
            # What a model says, and the calls that it makes beside that, are several items of one answer.
            is_turn = sum(is_answer for is_answer, _ in groupby(are_answers)) < 2
            return Parts(body, known, _newest(body, said), () if is_turn else _earlier(body, sum(are_answers), said))
    body = take_apart(raw, key, found.start, found.before, None, plainly)
    return Parts(body, None, _newest(body, said), _earlier(body, _LATEST, said))


def _earlier(body: Body, most: int, said: Said) -> list[bytes]:
    # The very same answers first: conversations of one job are told apart by the ids of their calls.
    return [digest for one in (canonical, said) for digest in _answers(body, min(most, _LATEST), one)]


class Conversations:
    """The conversations that a process remembers, by scope (tenant, upstream and wire). Not for several threads."""

    def __init__(self, most: int = MOST_REMEMBERED, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[int, KnownParts] = OrderedDict()
        self._by_opening: dict[tuple[bytes, bytes], OrderedDict[int, KnownParts]] = {}
        self._openings: dict[bytes, dict[bytes, int]] = {}
        self._by_end: dict[tuple[bytes, bytes], int] = {}
        self._by_answers: dict[tuple[bytes, bytes], OrderedDict[int, KnownParts]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, scope: bytes, raw: bytes, key: str) -> Beginning:
        """What a body begins with. Nothing behind the beginning of its messages is parsed. Raises ``Unreadable``."""
        start, before = opening_of(raw, key)
        return Beginning(start, before, *self._nearest(scope, raw, start))

    def known_of(self, scope: bytes, parts: Parts) -> tuple[Body, KnownParts | None]:
        """A body that was taken apart, and the conversation that it continues; None where it is new, or leaves the way
        of a known one.
        """
        body, known = parts.body, parts.known
        # A next turn brings one answer. With more, another run of the same task, or a fork of the first turns, may
        # stand at the beginning of a longer conversation, whose client has changed what stands behind that.
        if known is not None and not parts.earlier:
            return body, known
        begun = len(known.body.messages) if known is not None else 0
        # Not the bytes of a known conversation. Its messages may still say the same, in a client that writes JSON in
        # another way.
        longest = self._ending(scope, body.chain)
        if longest is not None and longest.body.floor == body.floor and len(longest.body.messages) > begun:
            _leave(body, begun)
            # the very objects of last time, by which the engine recognizes the conversation, behind its instructions
            old = longest.body.messages
            start = formats.opening(old)
            body.messages[start : len(old)] = old[start:]
            body.places.update(longest.body.places)
            return body, longest
        answered = self._answered(scope, body, parts.earlier)
        if answered is None or answered is known:
            return body, known
        _leave(body, begun)
        return body, answered

    def _answered(self, scope: bytes, body: Body, digests: Sequence[bytes]) -> KnownParts | None:
        """The conversation of these answers of the model, if what left its view is there as it was: a client may say
        something else in its task or a reminder at each turn.
        """
        looked_at = set[int]()
        # Several answer alike where all that a model says is that it is done: the one that was used last first.
        places = ((scope, digest) for digest in digests)
        alike = (reversed(self._by_answers[place].values()) for place in places if place in self._by_answers)
        for known in chain.from_iterable(islice(found, _CANDIDATES) for found in alike):
            if known.body.floor != body.floor or id(known) in looked_at:
                continue
            if len(looked_at) == _LATEST:  # each may be read whole, and all others wait meanwhile
                break
            looked_at.add(id(known))
            if known.state is None or session_of(body.fields) != session_of(known.body.fields):
                continue
            if known.state.goes_on_in(known.body.open, body.open):
                return known
        return None

    def _nearest(self, scope: bytes, raw: bytes, start: int) -> tuple[KnownParts | None, int]:
        """A conversation that begins with the same bytes, rather one whose every byte is there, the longest of these;
        and how many of its messages the new body begins with.
        """
        for opening in self._openings.get(scope, ()):
            if raw.startswith(opening, start):
                # The one that was used last first: mostly the same conversation goes on.
                candidates = list(reversed(self._by_opening[scope, opening].values()))
                for known in sorted(candidates[:_CANDIDATES], key=lambda known: -len(known.body.spans)):
                    if begins_like(raw, start, known.body, len(known.body.spans)):
                        return known, len(known.body.spans)
                return candidates[0], _common(raw, start, candidates[0].body)
        return None, 0

    def _ending(self, scope: bytes, chain: Sequence[bytes]) -> KnownParts | None:
        """The conversation that is the longest beginning of this chain."""
        for digest in reversed(chain):
            key = self._by_end.get((scope, digest))
            if key is not None:
                return self._known[key]
        return None

    def used(self, known: KnownParts) -> None:
        """A conversation was met again, and is not to be the next that is forgotten."""
        if id(known) in self._known:
            self._known.move_to_end(id(known))

    def remember(self, known: KnownParts, replaces: KnownParts | None = None, said: Said = canonical) -> None:
        """Keep a conversation, in place of its earlier state, and forget the oldest if there are too many."""
        if replaces is not None:
            self._forget(id(replaces))
        # Without a message there is nothing to find it by.
        if not known.body.spans:
            return
        scope, opening = known.scope, known.opening
        self._known[id(known)] = known
        self._by_opening.setdefault((scope, opening), OrderedDict())[id(known)] = known
        counts = self._openings.setdefault(scope, {})
        counts[opening] = counts.get(opening, 0) + 1
        # Instructions alone may be those of any conversation.
        if known.body.chain and formats.opening(known.body.messages) < len(known.body.messages):
            self._by_end[scope, known.body.chain[-1]] = id(known)
        known.answers = known.answers or _newest(known.body, said)
        for key in known.answers:
            self._by_answers.setdefault((scope, key), OrderedDict())[id(known)] = known
        self._bytes += len(known.body.raw)
        while len(self._known) > self._most or (self._bytes > self._most_bytes and len(self._known) > 1):
            self._forget(next(iter(self._known)))

    def _forget(self, key: int) -> None:
        known = self._known.pop(key, None)
        if known is None:
            return
        scope, opening = known.scope, known.opening
        self._bytes -= len(known.body.raw)
        self._by_opening[scope, opening].pop(key, None)
        counts = self._openings[scope]
        counts[opening] -= 1
        if not counts[opening]:
            del counts[opening], self._by_opening[scope, opening]
            if not counts:
                del self._openings[scope]
        if known.body.chain and self._by_end.get((scope, known.body.chain[-1])) == key:
            del self._by_end[scope, known.body.chain[-1]]
        for answers in set(known.answers):
            alike = self._by_answers[scope, answers]
            del alike[key]
            if not alike:
                del self._by_answers[scope, answers]


_CANDIDATES = 8
"""Conversations of one opening, or of the same answers, that are compared whole."""


_LATEST = 16
"""Answers of a new body, from the newest back, by which its conversation is looked for; and conversations that are
looked at."""


def _answers(body: Body, most: int, said: Said) -> list[bytes]:
    """What stands for the newest answers of the model, each with the one before it. Where they stand does not count:
    clients drop their oldest messages.
    """
    newest = (n for n in range(len(body.messages) - 1, body.floor - 1, -1) if _is_answer(body.messages[n]))
    keys = []
    for place, before in pairwise(islice(newest, most + 1)):
        told = said(body.messages[place]) + said(body.messages[before])
        keys.append(hashlib.blake2b(told, digest_size=16).digest())
    return keys


def _newest(body: Body, said: Said) -> list[bytes]:
    return [*_answers(body, 1, canonical), *_answers(body, 1, said)]


def _leave(body: Body, count: int) -> None:
    """Give a body objects of its own for the first messages, which another conversation goes on with."""
    if count:
        body.messages[:count] = map(copy, body.messages[:count])
        body.places = {id(message): n for n, message in enumerate(body.messages)}


def _is_answer(message: Any) -> bool:
    return isinstance(message, dict) and (
        message.get("role") in ("assistant", "model") or message.get("type") in ("function_call", "custom_tool_call")
    )


def _common(raw: bytes, start: int, old: Body) -> int:
    """How many messages of the old body stand, byte for byte, at the beginning of the new list."""
    length = len(old.spans)

    def are_same(count: int) -> bool:
        return begins_like(raw, start, old, count)

    # Mostly all, or all but the last few, whose marks have moved: so the search begins at the end.
    low, high, step = 0, length, 1
    if are_same(length):
        return length
    while high - step > 0:
        if are_same(high - step):
            low = high - step
            break
        high -= step
        step *= 2
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if are_same(middle) else (low, middle)
    return low
