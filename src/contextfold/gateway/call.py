"""One request on its way through the gateway, and what is known of its conversation: values, and reading them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from contextfold import formats
from contextfold.calls.request import CompactionResult
from contextfold.conversation.fingerprint import Saying
from contextfold.conversation.pins import first_user
from contextfold.conversation.recognized import (
    LONGEST_TRAIL,
    brought_back,
    dropped,
    goes_on,
    has_own_id,
    ids_of,
    is_same_behind,
    is_same_left,
    is_telling,
    says_again,
)
from contextfold.gateway.body import Body
from contextfold.gateway.decoding import Decoder
from contextfold.gateway.headers import SWITCH, RawHeaders, value_of
from contextfold.gateway.settings import Upstream
from contextfold.gateway.upstream import UpstreamAnswer
from contextfold.gateway.wires import GatewayWire, model_in
from contextfold.json_values import same as same_value
from contextfold.messages import Message
from contextfold.record.compaction import Compaction
from contextfold.tokens import Calibration
from contextfold.window import by_window, registered

MOST_NAME = 200
"""Characters of a model's name."""

_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\\x00-\x1f\x7f]{1,%d})"' % MOST_NAME)
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


@dataclass
class GatewayCall:
    """One request on its way, and what is told about it."""

    method: str
    path: str
    query: str
    headers: RawHeaders
    raw: bytes
    upstream: Upstream
    wire: GatewayWire | None
    mounted: str = ""
    """What stands before all paths of the gateway, where another application has mounted it."""
    began: float = field(default_factory=time.perf_counter)
    """When the last byte of the request was here."""
    sent_at: float | None = None
    """When the first request for it went to the upstream."""
    model: str = ""
    action: str = "passed"
    reason: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    """Response headers, without ``x-contextfold-``."""
    result: CompactionResult | None = None
    state: State | None = None
    label: str = ""
    weighed: int = 0
    """``weight`` of the body that was answered, where an answer limit was refused in this conversation before."""
    is_changed: bool = False
    """Whether the bytes that were answered are not those that came."""
    answer: UpstreamAnswer | None = None
    """What the upstream answered to a view, or to the original in its place, that it took."""
    newest: UpstreamAnswer | None = None
    """The upstream's last answer, whatever it is. It may still be going on when the client leaves."""

    def header(self, name: bytes) -> str:
        return value_of(self.headers, name)

    def redirected(self, location: bytes) -> bytes:
        """A ``Location`` of the upstream's as the client has to read it. There a bare path would be the gateway's, and
        may be another upstream's; an address of this upstream would lead past the gateway.
        """
        try:
            to = location.decode("latin-1")
            url = urljoin(self.upstream.url(self.path, self.query), to)
            path = self.upstream.path_of(url)
            if path is None:
                return location if urlsplit(to).scheme else url.encode("latin-1")
            return f"{quote(self.mounted)}/{self.upstream.name}{path}".encode("latin-1")
        except ValueError:  # no address that could be followed
            return location

    @property
    def is_switched_off(self) -> bool:
        return self.header(SWITCH).strip().lower() == "off"

    @property
    def model_by_window(self) -> str:
        """The model's name as its window is known by."""
        asked = b",".join(value for name, value in self.headers if name.lower() == b"anthropic-beta")
        return by_window(self.model, asked.decode("latin-1"))

    @property
    def endpoint(self) -> str:
        """What windows that refusals taught are kept under: each of Azure's deployments has one of its own."""
        deployment = deployment_of(self.path)
        return f"{self.upstream.endpoint}/deployments/{deployment}" if deployment else self.upstream.endpoint

    def named(self, said: str) -> str:
        """The model's name. ``said``: by the body, which Azure does not read: its name counts where that of the
        deployment is one of the operator's own. Google's stands in the path alone.
        """
        if generating := model_in(self.path):
            return plain_name(generating)
        deployment = deployment_of(self.path)
        return deployment if not said or (deployment and _is_known(deployment)) else said

    def readable(self) -> bytes | None:
        """The body as text; None where its encoding is not known, or it gets too large."""
        encoding = self.header(b"content-encoding")
        if not encoding or encoding.lower() == "identity":
            return self.raw
        return Decoder(encoding).feed(self.raw) or None


@dataclass
class State:
    """What is known of a conversation besides its messages."""

    format: str
    """Of its messages."""
    record: Compaction | None = None
    digest: bytes = b""
    """The chain's hash at the end of what ``record`` covers."""
    says_all: bool = True
    """Whether its messages say all that ``record`` may tell: no one has found it elsewhere, and none of them said
    something else before."""
    was_cleared: bool = False
    """Whether its client has cleared something that ``record`` tells of."""
    set_aside: set[str] = field(default_factory=set)
    """Records that stand for a beginning of it, and that the engine could not use."""
    calibration: Calibration = field(default_factory=Calibration)
    under_way: asyncio.Event | None = None
    """Set when the pass that a request of it makes has ended."""
    sized: tuple[Body, int] | None = None
    """A body that was sent as it came, and the tokens of that request."""
    rate: float | None = None
    """Tokens per byte of a request, once the provider has said so in a refusal."""
    counted: float = 0.0
    """The same of the request that it answered last."""

    def adopt(self, record: Compaction, digest: bytes) -> None:
        """Put a record in force that was made elsewhere, from messages that are not known here."""
        self.record, self.digest, self.says_all = record, digest, False

    def goes_on_in(self, old: Sequence[Any], new: Sequence[Any]) -> bool:
        """Whether the new messages are the old ones, which this was known of, in which the client says something
        otherwise, or has dropped the oldest. Under a record only what is not in the view as it is counts.

        Called for the messages that come next: that they say something else is remembered.
        """
        is_repeated, is_again = self._is_repeated(old, new)
        goes_on = is_repeated or self._is_left(old, new)
        self.says_all = self.says_all and (is_again or not goes_on)
        return goes_on

    def _is_repeated(self, old: Sequence[Any], new: Sequence[Any]) -> tuple[bool, bool]:
        """Whether all that has to be is there again; and whether all is, in whatever form."""
        altered = self.record.altered if self.record is not None else ()
        if len(old) > len(new) or any(n >= len(old) for n in altered):
            return False, False
        decode = formats.get(self.format).decode

        def before(n: int) -> Message:
            return decode(old[n])

        def now(n: int) -> Message:
            return decode(new[n])

        def differing(places: Iterable[int]) -> Iterator[int]:
            return (n for n in places if not same_value(old[n], new[n]))

        # First what tells nearly all others apart, read only as far as it takes: all other requests wait meanwhile.
        if altered:
            again = all(says_again(now(n), Saying(before(n))) for n in differing(sorted(altered)))
        else:
            again = goes_on(before, now, len(old), differing(range(len(old))))
        changed = list(differing(range(len(old)))) if again else []
        told = [n for n in changed if n in altered]
        if not again or (altered and not is_same_behind(before, now, len(old), told, changed)):
            return False, False
        differ = {n for n in changed if Saying(before(n)).all != Saying(now(n)).all}
        # Agents that did the same for two people have ids of their own: another one's record tells nothing else only
        # where all is said again, and nothing said something else before, as what was cleared since.
        is_same = all(ids_of(before(n)) == ids_of(now(n)) for n in changed) or (not differ and self.says_all)
        if self.was_cleared and not self.is_told_by(old):
            # Then only what a tool has answered, and still stands there, tells these from another person's.
            is_same = is_same and any(is_telling(before(n)) and n not in differ for n in range(len(old) - 1, -1, -1))
        self.was_cleared = self.was_cleared or (is_same and not differ.isdisjoint(told))
        return is_same, not differ

    def _is_left(self, old: Sequence[Any], new: Sequence[Any]) -> bool:
        decode, start, count = formats.get(self.format).decode, formats.opening(old), len(old)
        if not old or formats.opening(new) != start:
            return False
        # As they are written: to read all of both would hold up all others, for each that answered the same.
        kept = takewhile(lambda pair: same_value(*pair), zip(old, new, strict=False))
        first = first_user(decode(one) for one, _ in kept)
        gone = dropped(old[-LONGEST_TRAIL:], new[:count], count, start, first)
        if gone is not None:
            return is_same_left(lambda n: decode(old[n]), lambda n: decode(new[n]), gone, count)
        # One that was moved is known as it was before. And the newest message tells nearly all others apart.
        if self.record is None or self.record.origin or not any(same_value(old[-1], one) for one in new[count:]):
            return False
        back = brought_back(old, new, start, first_user(map(decode, new)))
        return back is not None and is_same_left(
            lambda n: decode(new[n]), lambda n: decode(old[n]), back, count + len(back)
        )

    def is_told_by(self, messages: Sequence[Any]) -> bool:
        """Whether these messages, which a record covers, say which conversation it is. Where they do not say any more
        what the record tells, another person's may say the same: only the newest call has an id of its own then.
        """
        if not self.was_cleared:
            return True
        read = map(formats.get(self.format).decode, reversed(messages))
        newest = next((message for message in read if message.tool_calls), None)
        return newest is not None and has_own_id(newest)

    def can_use(self, record: Compaction, length: int) -> bool:
        """Whether a record found for a beginning of this conversation, which has so many messages, may serve it.

        A conversation that was rewound may end in what a later turn has put into the summary; its newest message has to
        stay. Asked again each time, the engine would make another record at each turn.
        """
        if record.id in self.set_aside:
            return False
        return record.covers < length or record.covers - 1 not in record.gone()


@dataclass(slots=True)
class Both:
    """What prompt and answer may have together at one endpoint, for one model, as a refusal has said."""

    limit: int
    least: float
    """The fewest tokens per byte of a request that was refused: for conversations of which nothing was said yet. One
    that needs more is refused once; one that needs less would have its answer cut short, and no one is told."""
    most: float
    """The most of them."""

    def learned(self, limit: int, rate: float) -> Both:
        """With what another refusal says."""
        return Both(limit, min(rate, self.least), max(rate, self.most))

    def room(self, limit: int | None, data: bytes, rate: float | None) -> int | None:
        """An answer limit that fits beside a request; None to leave the client's.

        Otherwise a client that always asks for more than the window has left would be refused once in every turn.
        """
        if limit is None:
            return None
        room = self.limit - int(weight(data) * (rate or self.least) * ROOM_FOR_ERROR)
        return room if LEAST_ANSWER <= room < limit else None

    def leaves(self, limit: int, raw: bytes) -> bool:
        """Whether an answer limit surely stays as it is beside this body. Its bytes are not weighed, since that takes
        longer than all else that is done with a request that passes.
        """
        return limit <= self.limit - int(len(raw) * self.most * ROOM_FOR_ERROR)


def weight(data: bytes) -> int:
    """Bytes of a request by which its tokens can be told: an image costs as many however large its file is."""
    long = (len(piece) for piece in data.split(b'"') if len(piece) > MEDIA_WEIGHT and _ENCODED.match(piece))
    return len(data) - sum(size - MEDIA_WEIGHT for size in long)


MEDIA_WEIGHT = 6_000
"""Bytes of words that cost about what an image does."""
_ENCODED = re.compile(rb"(?:data:[^,]{0,200},)?[A-Za-z0-9+/=\\_-]{1000}")

LEAST_ANSWER = 256
ROOM_FOR_ERROR = 1.1
"""Tokens per byte differ from message to message."""


def deployment_of(path: str) -> str:
    """The name in Azure's paths, which is a model's or one of the operator's own; else nothing."""
    found = _DEPLOYMENT.search(path)
    return plain_name(unquote(found[1])) if found else ""


@lru_cache(1_024)
def _is_known(model: str) -> bool:
    return registered(model) is not None


def model_of(raw: bytes) -> str:
    """The model's name, from where clients write it: near the beginning or the end."""
    # The whole body last: inputs of tools may have a field of that name too.
    found = _MODEL.search(raw, 0, 4_096) or _MODEL.search(raw, max(0, len(raw) - 16_384)) or _MODEL.search(raw)
    return plain_name(found[1].decode(errors="replace")) if found else ""


def plain_name(name: str) -> str:
    """A model's name as it may stand in a line of the log, and begins no other one there; without one, nothing."""
    return name if name.isprintable() and len(name) <= MOST_NAME else ""


def label_of(call: GatewayCall, fields: Mapping[str, Any]) -> str:
    """What a client calls its session: for display alone, since sub-agents share it."""
    told: Any = call.header(b"x-claude-code-session-id") or fields.get("prompt_cache_key")
    metadata = fields.get("metadata")
    if not told and isinstance(metadata, dict):
        told = metadata.get("session_id")
        user = metadata.get("user_id")
        if not told and isinstance(user, str) and user.startswith("{"):
            try:
                told = json.loads(user).get("session_id")
            except (ValueError, AttributeError, RecursionError):
                told = None
    return re.sub(r"[^\w.:-]", "", told[:1_000])[:64] if isinstance(told, str) else ""
