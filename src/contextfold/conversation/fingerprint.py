"""What identifies messages: a digest of each, and one hash for a run of them.

What belongs here: hashing what a message says. What does not: comparing a record with a history (``record``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from contextfold import json_values
from contextfold.at_once import encoded
from contextfold.conversation.cleared import is_cleared
from contextfold.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, is_mark


def digest(message: Message) -> bytes:
    """A hash of what a message says: role and parts, with the ids of calls; not its own id, cache marks or metadata."""
    return _digest(message, (field for part in message.parts for field in _content(part)))


SHORT_HASH, START_HASH = 8, 2
"""Characters. A record holds one for each of the newest calls, results and images that left the view: another one with
the same hash, once in 16 million edits that begin alike, would go unnoticed where all else is as it was."""
CUT = "00"
"""In place of how the words began, where they look as if a client had cleared some: another answer would, too."""
_START = 12
"""Characters."""
TRAIL_HASH = 6
"""Characters of the hash of a whole message: it counts only beside those of all that stand behind it."""


class Saying:
    """What a message says, in whatever form: blanks around texts and in arguments, the order of their keys, the ids of
    calls, and thinking, which clients drop and no summary tells, do not count. Hashes of it, made when they are asked
    for: where nothing was cleared, ``all`` is enough.
    """

    __slots__ = ("_all", "_message", "_parted")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._all: bytes | None = None
        self._parted: tuple[bytes, str, str, str] | None = None

    @property
    def all(self) -> bytes:
        """Of all that it says."""
        if self._all is None:
            self._all = _digest(self._message, (field for part in self._message.parts for field in _words(part)))
        return self._all

    def short(self, *beside: object) -> str:
        """A short hash of all that it says, and of what is told ``beside`` it."""
        return hashlib.blake2b(self.all + repr(beside).encode(), digest_size=TRAIL_HASH // 2).hexdigest()

    @property
    def beside(self) -> bytes:
        """Of all that clients do not clear to save room: not the words of tool results, arguments, and media."""
        return self._apart[0]

    @property
    def clearable(self) -> str:
        """A short hash, of ``SHORT_HASH`` characters, of the arguments of each call and the words of each result; its
        last ``START_HASH`` are of how the words begin, or of the names of the arguments, or ``CUT``."""
        return self._apart[1]

    @property
    def begins(self) -> str:
        """The same ``START_HASH`` characters of each, whether or not some was left out."""
        return self._apart[3]

    @property
    def media(self) -> str:
        """A short hash of each image or file in it."""
        return self._apart[2]

    @property
    def _apart(self) -> tuple[bytes, str, str, str]:
        if self._parted is None:
            self._parted = self._hashed()
        return self._parted

    def _hashed(self) -> tuple[bytes, str, str, str]:
        """All hashes at once: to read the arguments of calls takes more time than to hash them."""
        message = self._message
        said, bare, short, media, begins = list[str](), list[str](), list[str](), list[str](), list[str]()
        for part in message.parts:
            words = [(one, _words(one)) for one in (part.content if isinstance(part, ToolResult) else (part,))]
            fields = [field for _, own in words for field in own]
            media += [_short(message, own) + _begin(message, "") for one, own in words if isinstance(one, Media)]
            if isinstance(part, ToolResult):
                said.append("result")
                bare.append("result")
                left = [(one, own) for one, own in words if stays(one)]
                start = "\n".join(one.text for one, _ in left if isinstance(one, Text)).strip()[:_START]
                begins.append(_begin(message, start))
                short.append(_short(message, (field for _, own in left for field in own)))
            elif isinstance(part, ToolCall):
                begins.append(_begin(message, _names(part)))
                short.append(_short(message, fields))
                bare += ["call", part.name, ""]
            elif stays(part):
                bare += fields
            if isinstance(part, ToolCall | ToolResult):
                short.append(CUT if is_cleared(part, begins_as_before=True) else begins[-1])
            said += fields
        self._all = self._all or _digest(message, said)
        return _digest(message, bare), "".join(short), "".join(media), "".join(begins)


def _short(message: Message, fields: Iterable[str]) -> str:
    return _digest(message, fields, (SHORT_HASH - START_HASH) // 2).hex()


def _begin(message: Message, start: str) -> str:
    begin = _digest(message, [start], START_HASH // 2).hex()
    return begin if begin != CUT else "01"


def _names(call: ToolCall) -> str:
    try:
        return json_values.write(sorted(json_values.read(call.arguments)))
    except (ValueError, TypeError, RecursionError):
        return ""


def stays(part: Part) -> bool:
    """Whether it is no image or file, and none that a client has cleared."""
    if not isinstance(part, Text):
        return not isinstance(part, Media)
    told = part.text.strip()
    return len(told) > _LONGEST_MARK or _NO_MEDIA.fullmatch(told) is None


_LONGEST_MARK = 300
"""Characters."""
_NO_MEDIA = re.compile(
    r"[\[<(](?:(?:an?|the|older?|earlier|previous|referenced) ){0,2}(?:image|screenshot|picture|photo|media)s?"
    r"(?: (?:data|content|block|file|was|has been|in conversation|#?\d+)){0,3}"
    r"(?:[ :,_-]+(?:removed|omitted|cleared|dropped|stripped|elided|trimmed|pruned|discarded|hidden|no longer)\b"
    r"[^\d\])>]{0,80})?[\])>]",
    re.IGNORECASE,
)
"""What clients put in the place of an image to save room, "[image]" or "[Image removed to save context]", and nothing
that tells of more, as a list of images does."""


def shape(message: Message) -> bytes:
    """Which parts a message has: a record names them by their numbers. Marks behind the last one change none."""
    parts = list(message.parts)
    while parts and is_mark(parts[-1]):
        parts.pop()
    return " ".join(type(part).__name__ for part in parts).encode()


def order(messages: Iterable[Message]) -> bytes:
    """Which results answer which calls, where they do not follow in the order of these; whatever the ids are."""
    calls: dict[str, int] = {}
    answered: list[int] = []
    number = 0
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, ToolCall):
            calls[part.id] = number
        elif isinstance(part, ToolResult):
            answered.append(calls.get(part.call_id, -1))
        else:
            continue
        number += 1
    return b"" if answered == sorted(answered) else repr(answered).encode()


def linked(messages: Sequence[Message]) -> list[list[tuple[int, int]]]:
    """For each message, which calls its results answer: how far before it, and the place among the calls there. Nothing
    of those that answer the newest calls in their order, nor where the call or others of them are not there: a client
    may have dropped them.
    """
    calls: dict[str, tuple[int, int]] = {}
    waits = 0, 0
    links = list[list[tuple[int, int]]]()
    for n, message in enumerate(messages):
        links.append([])
        for result in message.tool_results:
            asked = calls.get(result.call_id)
            if asked is not None and asked >= waits:
                waits = asked[0], asked[1] + 1
            elif asked is not None:
                links[-1].append((n - asked[0], asked[1]))
        made = message.tool_calls
        calls.update({call.id: (n, place) for place, call in enumerate(made)})
        is_same_turn = n > 0 and _is_item(message) and _is_item(messages[n - 1])
        if (made or not message.tool_results) and not is_same_turn:
            waits = n, 0  # what was not answered yet never is
    return links


def _is_item(message: Message) -> bool:
    """Whether it is one of those in which a wire format spreads one answer of the model."""
    return message.split and message.role == "assistant"


def _digest(message: Message, fields: Iterable[str], size: int = 16) -> bytes:
    hasher = hashlib.blake2b(message.role.encode(), digest_size=size)
    for field in fields:
        pieces = list(encoded(field))
        # with lengths, or ("ab", "c") and ("a", "bc") would be the same message
        hasher.update(sum(map(len, pieces)).to_bytes(8, "little"))
        for piece in pieces:
            hasher.update(piece)
    return hasher.digest()


def fingerprint(digests: Sequence[bytes]) -> str:
    """One hash for a run of messages, from their digests."""
    hasher = hashlib.blake2b(digest_size=16)
    for one in digests:
        hasher.update(one)
    return hasher.hexdigest()


def opening(messages: Iterable[Message]) -> int:
    """How many messages these begin with that are instructions. They are in every view as they are, so a list
    that says something else there, as with the time of day, is the same conversation.
    """
    return sum(1 for _ in takewhile(lambda message: message.is_instruction, messages))


def _content(part: Part) -> list[str]:
    match part:
        case Text():
            return ["text", part.text]
        case ToolCall():
            return ["call", part.id, part.name, part.arguments]
        case ToolResult():
            return ["result", part.call_id, *(field for inner in part.content for field in _content(inner))]
        case Media():
            named = ["name", part.name] if part.name else []
            return ["media", part.kind, part.media_type or "", part.data or "", part.url or "", *named]
        case Reasoning():
            return ["reasoning", part.text, _plain(part.source)]
        case Opaque():
            if is_mark(part):  # moved at every request, as Anthropic's ``cache_control`` is
                return []
            return ["opaque", part.label, part.text, _plain(part.source)]


def _words(part: Part) -> list[str]:
    match part:
        case Text():
            return ["text", text] if (text := part.text.strip()) else []
        case ToolCall():
            return ["call", part.name, _same_json(part.arguments)]
        case ToolResult():
            return ["result", *(field for inner in part.content for field in _words(inner))]
        case Reasoning():
            return []
        case _:
            return _content(part)


def _same_json(text: str) -> str:
    try:
        return json_values.write(json_values.read(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text.strip()


def _plain(source: Any) -> str:
    if isinstance(source, dict) and "cache_control" in source:
        source = {key: value for key, value in source.items() if key != "cache_control"}
    return json_values.write(source, sort_keys=True, default=str)
