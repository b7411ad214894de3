"""A request body taken apart without being changed, and put together again from its own bytes.

A body is cut into what stands before the list of messages, each message as the bytes that came, and what stands
behind it. The engine sees parsed copies of the messages; a view of them is written with the original bytes of every
message that is in it unchanged, so that prompt caches hold. Nothing is serialized again unless the engine made it.

Reading costs what is new. Clients send the whole conversation every turn, so the bytes of a remembered conversation are
compared with the new body (one memory comparison), and only what differs is parsed. Where an element of the list ends
is found by writing the parsed element and comparing: most clients write JSON as compactly as we do. Where they do not,
a scanner looks for the end.

What belongs here: bytes, spans and hashes. What does not: which fields a wire has (``wires``), and which conversation a
body continues (``conversations``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from contextfold import formats
from contextfold.json_values import same as same_value

_BLANK = b" \t\r\n"
_TOKEN = re.compile(rb'"[^"]*"|[\[\]{}]')
"""In what ``_plainly`` gives."""
_SCALAR = re.compile(rb'"[^"]*"|[^\s,\]}]+')
_GAP = re.compile(rb"[ \t\r\n]*,?[ \t\r\n]*")


class Unreadable(ValueError):
    """The body is not what this wire sends; it is forwarded as it is."""


@dataclass(slots=True)
class Body:
    """One body, taken apart. ``raw[spans[n][0]:spans[n][1]]`` are the bytes of message ``n``."""

    raw: bytes
    start: int
    """Where the inside of the list of messages begins."""
    end: int
    """Where its closing bracket stands."""
    spans: list[tuple[int, int]]
    messages: list[Any]
    """Parsed, and without what clients change from turn to turn (see ``plain``). The same objects as last time."""
    chain: list[bytes]
    """``chain[n]`` stands for all messages from ``floor`` up to and with ``floor + n``, and for whom they are."""
    floor: int
    """Messages before this one are behind a compaction by the provider: they are left as they are."""
    fields: Mapping[str, Any]
    """The body without its messages."""
    behind: Mapping[str, Any]
    """Those that stand behind the messages."""
    places: dict[int, int]
    """Where a message stands, by its identity. Shared by the turns of a conversation, so only what ``messages`` has at
    that place counts."""

    @property
    def open(self) -> list[Any]:
        """The messages that the engine may decide about."""
        return self.messages[self.floor :] if self.floor else self.messages

    def message_bytes(self, index: int) -> bytes:
        begin, end = self.spans[index]
        return self.raw[begin:end]

    def as_it_came(self, index: int) -> Any:
        """A message with what ``messages`` have it without."""
        return _parsed(self.message_bytes(index))

    def with_view(
        self,
        view: Sequence[Any],
        key: str,
        changes: Mapping[str, Any] | None = None,
        finish: Callable[[Any], Any] | None = None,
    ) -> bytes:
        """The body with these messages in place of the open ones; ``raw`` itself where nothing is different.

        ``changes``: fields to set beside them, or with None to leave out. ``finish``: applied to a last message that
        is not the client's own.
        """
        indices = [self._place_of(message) for message in view]
        whole = range(self.floor, len(self.messages))
        if not changes and len(indices) == len(whole) and indices == list(whole):
            return self.raw
        pieces = [self.raw[self.spans[0][0] : self.spans[self.floor - 1][1]]] if self.floor else []
        at, last = 0, len(view) - 1
        while at <= last:
            first = indices[at]
            if first < 0:
                pieces.append(dumped(finish(view[at]) if finish is not None and at == last else view[at]))
                at += 1
                continue
            run = 1  # neighbors stay as they were, with what stands between them
            while at + run <= last and indices[at + run] == first + run:
                run += 1
            pieces.append(self.raw[self.spans[first][0] : self.spans[first + run - 1][1]])
            at += run
        inside = b",".join(pieces)
        if not changes:
            return b"".join((self.raw[: self.start], inside, self.raw[self.spans[-1][1] if self.spans else self.end :]))
        # Without the messages, which may be megabytes. orjson would read integers beyond 64 bits as floats.
        fields = json.loads(self.raw[: self.start] + self.raw[self.end :])
        del fields[key]
        told = {**fields, **changes}
        members = [dumped(name) + b":" + dumped(told[name]) for name in told if changes.get(name, 0) is not None]
        members.append(dumped(key) + b":[" + inside + b"]")
        return b"{" + b",".join(members) + b"}"

    def _place_of(self, message: Any) -> int:
        """By identity, since two messages may say the same; -1 where it is none of the client's."""
        index = self.places.get(id(message), -1)
        return index if 0 <= index < len(self.messages) and self.messages[index] is message else -1


def person_of(fields: Mapping[str, Any]) -> list[str]:
    """For whom a request is, as far as it says so: behind one key, agents may do the same for two people, and what one
    of them said, or the instructions say of one, may be in a summary that the agent's own model wrote.
    """
    named = (fields.get("user"), fields.get("safety_identifier"), _metadata(fields).get("user_id"))
    told = [name if isinstance(name, str) else "" for name in named]
    return [_SESSION.sub("", name) for name in told] if any(told) else []


def session_of(fields: Mapping[str, Any]) -> list[Any]:
    """The person, and what names the session: one that is forked has another name."""
    metadata = _metadata(fields)
    return [*person_of(fields), fields.get("prompt_cache_key"), metadata.get("user_id"), metadata.get("session_id")]


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


_SESSION = re.compile(r'_session_[\w-]+|"session_id"\s*:\s*"[^"]*"')
"""What Claude Code names in the id of a user besides the person."""


def opening_of(raw: bytes, key: str) -> tuple[int, dict[str, Any]]:
    """Where the inside of the list ``key`` begins, and the fields that stand before it.

    The name may stand in texts and tools as well: what stands before the right one is an object once it is closed.
    Raises ``Unreadable`` where there is no such list.
    """
    for number, found in enumerate(re.finditer(rb'"%s"\s*:\s*\[' % re.escape(key.encode()), raw)):
        if number == _TRIED:
            return _opening_by_depth(raw, key)
        try:
            before = orjson.loads(raw[: found.end()] + b"]}")
        except orjson.JSONDecodeError:
            continue
        if isinstance(before, dict) and before.get(key) == []:
            del before[key]
            return found.end(), before
    raise Unreadable(f"it has no list {key!r}")


_TRIED = 8
"""Places that are tried by reading all that stands before them. One is mostly enough; with very many it would take the
square of the body's length."""


def _opening_by_depth(raw: bytes, key: str) -> tuple[int, dict[str, Any]]:
    """``opening_of`` in one walk: the first list of this name that is a field of the body itself."""
    depth, wanted = 0, re.compile(rb'"%s"\s*:\s*\[' % re.escape(key.encode()))
    for token in _TOKEN.finditer(_plainly(raw)):
        first = raw[token.start()]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1 and (found := wanted.match(raw, token.start())):
            before = _parsed(raw[: found.end()] + b"]}")
            if isinstance(before, dict) and before.pop(key, None) == []:
                return found.end(), before
            break
    raise Unreadable(f"it has no list {key!r}")


Plain = Callable[[Any], tuple[Any, bool]]
"""From a parsed message to (the copy for the engine, whether it is a compaction by the provider)."""


def take_apart(
    raw: bytes, key: str, start: int, before: Mapping[str, Any], old: Body | None, plainly: Plain, same: int = 0
) -> Body:
    """The body, with everything that is as in ``old`` taken over from there.

    ``start`` and ``before`` are what ``opening_of`` found. ``plainly`` makes the copy of a message for the engine.
    ``same``: how many messages of ``old`` the body begins with, byte for byte.
    Raises ``Unreadable`` for what is no JSON object of this kind, or nested deeper than can be looked at.
    """
    try:
        return _apart(raw, key, start, before, old, plainly, same)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None


def _apart(
    raw: bytes, key: str, start: int, before: Mapping[str, Any], old: Body | None, plainly: Plain, same: int
) -> Body:
    if old is not None and old.floor > same:  # not this conversation, or one that lost its compaction
        old, same = None, 0
    spans: list[tuple[int, int]] = []
    position = start
    if old is not None and same:
        shift = start - old.start
        spans = [(begin + shift, end + shift) for begin, end in old.spans[:same]] if shift else old.spans[:same]
        position = spans[-1][1]
    new, behind = _rest(raw, key, position, same, before, old)
    person = person_of(fields := {**before, **behind})
    if old is not None and person != person_of(old.fields):  # another one's, who was told the same
        return _apart(raw, key, start, before, None, plainly, 0)
    position = _append_spans(raw, position, new, spans)
    end = _closing(raw, position)
    # Of two lists with one name the provider may read the other one.
    before_it = raw[: raw.rfind(b'"%s"' % key.encode(), 0, start)].rstrip(_BLANK + b",")
    for others in (before_it + b"}", b'{"":0' + raw[end + 1 :]):
        # A name may also be written in escapes.
        if re.search(rb'"%s"\s*:|\\u00' % re.escape(key.encode()), others) and key in _parsed(others):
            raise Unreadable(f"it has two lists {key!r}")
    messages, chain, floor = _linked(new, old, same, plainly, person)
    places = old.places if old is not None else {}
    if len(places) > 2 * len(messages) + _STALE:  # turns that were edited again and again left theirs behind
        places, same = {}, 0
    places.update((id(messages[index]), index) for index in range(same, len(messages)))
    return Body(raw, start, end, spans, messages, chain, floor, fields, behind, places)


_STALE = 1_000


def _linked(
    new: Sequence[Any], old: Body | None, same: int, plainly: Plain, person: Sequence[str]
) -> tuple[list[Any], list[bytes], int]:
    """The new messages behind the known ones: as the very objects of last time as long as they say the same."""
    messages: list[Any] = old.messages[:same] if old is not None else []
    floor = old.floor if old is not None else 0
    chain: list[bytes] = old.chain[: same - floor] if old is not None else []
    seed = chain[-1] if chain else _seed(messages, floor, person)
    goes_on = old is not None
    opens = not floor and formats.opening(messages) == len(messages)
    for entry in new:
        message, is_compaction = plainly(entry)
        index = len(messages)
        if goes_on and old is not None and index < len(old.messages):
            goes_on = same_value(old.messages[index], message)
            message = old.messages[index] if goes_on else message
        messages.append(message)
        # The digest before is the key of this one: it stands for the message with all that came before it.
        # Of the instructions at its beginning the place alone counts, as for the engine: they stand in every view.
        opens = opens and formats.opening([message]) == 1
        seed = hashlib.blake2b(b"" if opens else canonical(message), digest_size=16, key=seed).digest()
        if is_compaction:
            floor, chain, opens = index + 1, [], False
            seed = _seed(messages, floor, person)
        else:
            chain.append(seed)
    return messages, chain, floor


def continues(body: Body, old: Body) -> bool:
    """Whether a body is an earlier one, perhaps with more behind it."""
    last = len(old.messages) - 1
    return len(body.messages) > last >= 0 and body.messages[last] is old.messages[last]


def _seed(messages: Sequence[Any], floor: int, person: Sequence[str]) -> bytes:
    # The chain begins again behind a compaction by the provider: what stood before it is dead.
    told = (canonical(person) if person else b"") + (canonical(messages[floor - 1]) if floor else b"")
    return hashlib.blake2b(told, digest_size=16).digest() if told else b""


def begins_like(raw: bytes, start: int, old: Body, count: int) -> bool:
    """Whether the list that begins at ``start`` begins with the bytes of the first messages of another body."""
    # a view of the bytes, not a copy of what may be megabytes
    return not count or raw.startswith(memoryview(old.raw)[old.start : old.spans[count - 1][1]], start)


def _rest(
    raw: bytes, key: str, position: int, known: int, before: Mapping[str, Any], old: Body | None
) -> tuple[list[Any], Mapping[str, Any]]:
    """The messages from ``position`` on, parsed, and the fields behind the list."""
    if old is not None and known:
        tail = old.raw[old.end :]
        end = len(raw) - len(tail)
        if end >= position and raw.endswith(tail):
            gap = _GAP.match(raw, position)
            try:
                new = orjson.loads(b"[" + raw[gap.end() if gap else position : end] + b"]")
            except orjson.JSONDecodeError:
                pass
            else:
                return new, old.behind
    whole = _parsed(raw)
    if not isinstance(whole, dict) or not isinstance(messages := whole.pop(key, None), list):
        raise Unreadable(f"it is no object with a list {key!r}")
    behind = {name: value for name, value in whole.items() if name not in before or before[name] != value}
    return messages[known:], behind


def _parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:  # half an emoji (a lone surrogate) is valid for providers, and not for orjson
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {error}") from None


def _append_spans(raw: bytes, position: int, new: Sequence[Any], spans: list[tuple[int, int]]) -> int:
    """Append where each of the new elements stands; the position behind the last one."""
    plainly, shift = b"", 0
    for entry in new:
        gap = _GAP.match(raw, position)
        begin = gap.end() if gap else position
        if (length := _length_as_written(raw, begin, entry)) is None:
            if not plainly:
                plainly, shift = _plainly(raw[begin:]), begin
            position = scan(plainly, begin - shift) + shift
        else:
            position = begin + length
        spans.append((begin, position))
    return position


def _length_as_written(raw: bytes, begin: int, entry: Any) -> int | None:
    """Of an element of the list that stands there as we would write it; None where it is written otherwise."""
    try:
        written = orjson.dumps(entry)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return None
    return len(written) if isinstance(entry, dict) and raw.startswith(written, begin) else None


def _plainly(raw: bytes) -> bytes:
    """JSON, as long, in which each quotation mark begins or ends a string. To step over escapes takes a pattern a tenth
    of a second per megabyte of them, in one call that holds the interpreter.
    """
    return raw.replace(b"\\\\", b"..").replace(b'\\"', b"..")


def scan(plainly: bytes, begin: int) -> int:
    """Where the JSON value that begins at ``begin`` ends. The body is known to be valid; ``plainly``: without escapes
    before quotation marks.
    """
    if plainly[begin : begin + 1] not in (b"{", b"["):
        found = _SCALAR.match(plainly, begin)
        if found is None:
            raise Unreadable("an element of the list has no end")
        return found.end()
    depth = 0
    for token in _TOKEN.finditer(plainly, begin):
        first = plainly[token.start()]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
    raise Unreadable("an element of the list has no end")


def _closing(raw: bytes, position: int) -> int:
    while raw[position : position + 1] and raw[position] in _BLANK:
        position += 1
    if raw[position : position + 1] != b"]":
        raise Unreadable("the list of messages is not where it was looked for")
    return position


def canonical(message: Any) -> bytes:
    """One message as bytes that do not depend on blanks or the order of keys."""
    try:
        return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(message, sort_keys=True).encode()


def dumped(value: Any) -> bytes:
    """Compact JSON; the same bytes for the same value."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """A message, or a block of it, without ``cache_control``, which clients move from turn to turn.

    Itself where there is nothing to leave out.

    A content that is one block of text is the text itself: clients write messages and results as blocks while they are
    marked (Claude Code, and all that litellm translates).
    """
    if not isinstance(value, dict):
        return value
    content = cleaned = value.get("content")
    if isinstance(content, list):
        blocks = [plain(block) for block in content]
        if len(blocks) == 1 and _is_bare_text(blocks[0]) and ("role" in value or value.get("type") == "tool_result"):
            cleaned = blocks[0]["text"]
        elif any(new is not old for new, old in zip(blocks, content, strict=True)):
            cleaned = blocks
    if cleaned is content and "cache_control" not in value:
        return value
    copy = {name: inner for name, inner in value.items() if name != "cache_control"}
    if cleaned is not content:
        copy["content"] = cleaned
    return copy


def _is_bare_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text"


def marks_in(value: Any) -> int:
    """How many ``cache_control`` marks a system prompt, a list of tools or of messages carries."""
    if isinstance(value, list):
        return sum(marks_in(one) for one in value)
    if not isinstance(value, dict):
        return 0
    return ("cache_control" in value) + marks_in(value.get("content"))
