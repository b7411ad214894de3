"""One conversation's request: whose it is, which record it has, which view goes out, and what a refusal leads to.

    body ──cut──▶ messages ──chain of hashes──▶ record ──Compactor──▶ view ──original bytes──▶ upstream ──▶ answer

The law: if anything of ours fails, the request goes on as the bytes that came. So everything here is inside
``Exchanges.answer``, which knows three ends: an answer of the upstream, a failure of the upstream, and a failure of
ours, after which the original is sent (or, if ``strict``, refused).

What belongs here: the order of these steps. What does not: HTTP towards the client (``app``) and the upstream
(``upstream``), bytes (``body``), shapes (``wires``), queries (``records``), and any decision about a message.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from contextfold.calls.request import CompactionResult
from contextfold.calls.usage import Usage
from contextfold.compactor import Compactor
from contextfold.errors import CannotFit, ContextfoldError, RefusedInStream, StillTooLong
from contextfold.gateway.body import MOST_REMEMBERED, Body, Conversations, KnownParts, Unreadable, dumped
from contextfold.gateway.metrics import Metrics, price_of
from contextfold.gateway.records import GatewayRecordStore, own_secret
from contextfold.gateway.settings import EXTRACTIVE, SAME, GatewaySettings, Upstream
from contextfold.gateway.upstream import Client, Decoder, RawHeaders, UpstreamAnswer, UpstreamFailed
from contextfold.gateway.wires import MESSAGES, RESPONSES, GatewayWire, check_refusal, is_opening
from contextfold.observe import Event
from contextfold.overflow import Overflow, classify
from contextfold.policy import Policy
from contextfold.record.compaction import Compaction
from contextfold.summary.models import SummaryModel
from contextfold.summary.summarizer import Answer as SummaryAnswer
from contextfold.tokens import Calibration

T = TypeVar("T")
log = logging.getLogger("contextfold.gateway")

CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"chatgpt-account-id")
"""Headers that say who asks. Hashed together, never kept."""
SWITCH = b"x-contextfold"
"""A request with ``x-contextfold: off`` is passed on untouched. Ours carry it wherever a view was made, so that a
second gateway behind this one leaves it alone."""

STORE_SECONDS = 3.0
"""How long a request waits for the database before it goes on without."""
STORE_PAUSE_SECONDS = 5.0
"""How long the database is left alone after it failed."""
WINDOW_SECONDS = 2.0
"""How old what other workers learned may be."""
HOLD_SECONDS = 3.0
"""How long the opening events of a stream are held back in case the request is refused behind them."""
MOST_ERROR = 1024 * 1024
SOON = 0.85
"""Share of the trigger from which on a model's summary is prepared beside the conversation."""
RECENT_RECORDS = 4_096

_MEDIA = re.compile(
    rb'"type"\s*:\s*"(?:image|image_url|input_image|document|file|input_file|input_audio|audio|video|container_upload)"'
)
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')


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

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for one, value in self.headers if one.lower() == name), "")


@dataclass
class State:
    """What is known of a conversation besides its messages."""

    record: Compaction | None = None
    digest: bytes = b""
    """The chain's hash at the end of what ``record`` covers."""
    calibration: Calibration = field(default_factory=Calibration)
    prepared: Compaction | None = None
    is_preparing: bool = False
    both: tuple[int, float] | None = None
    """What prompt and answer may have together, and tokens per byte of a request, once the provider has said so."""


class Refused(Exception):
    """The upstream said that the request does not fit. ``status_code`` and ``body`` are as SDKs have them."""

    def __init__(self, answer: UpstreamAnswer, body: Any, overflow: Overflow | None = None) -> None:
        self.answer = answer
        self.overflow = overflow
        self.status_code = answer.status
        self.body = body
        super().__init__(f"HTTP {answer.status}: {json.dumps(body)[:2_000]}")


class _Relayed(Exception):
    """An answer that is no success and no matter of size: the client gets it as it is."""

    def __init__(self, answer: UpstreamAnswer) -> None:
        self.answer = answer
        super().__init__("an answer for the client")


class _UsePrepared(Exception):
    """A pass is due, and there is a record already."""


class StrictRefusal(Exception):
    """Something of ours failed, and the operator wants requests refused then."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


class StoreFailed(Exception):
    """The database did not answer, or not in time."""


class Accepted:
    """An upstream's success, as the engine sees it: it says nothing about its usage yet."""

    contextfold_usage = Usage()

    def __init__(self, answer: UpstreamAnswer) -> None:
        self.answer = answer

    async def close(self) -> None:
        self.answer.close()


class Exchanges:
    """Answers conversations for one process. Made inside the event loop that uses it."""

    def __init__(self, settings: GatewaySettings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self.client = Client(settings.max_requests * 2, settings.first_byte_seconds)
        self.records = GatewayRecordStore(settings.store_url)
        self.conversations = Conversations()
        self.compactor = Compactor(
            window=settings.window,
            policy=settings.policy,
            summarizer=_summarizer(settings),
            windows=_SharedWindows(self),
            on_event=self._count_event,
            remembered=MOST_REMEMBERED,
        )
        self._asks_model = settings.summarizer != EXTRACTIVE
        self._is_shared = settings.workers > 1 or self.records.database.dialect != "sqlite"
        self._secret = own_secret()
        self._spare_secret = secrets.token_bytes(32)
        self._store_back_at = 0.0
        self._recent: OrderedDict[tuple[bytes, bytes], Compaction] = OrderedDict()
        self._windows: dict[tuple[str, str], tuple[int | None, float]] = {}
        self._least: dict[int, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Open what the first request needs. A store that is down does not keep a gateway from starting."""
        await asyncio.to_thread(self.compactor.windows.assumed, "gpt-5")  # loads the registry of models
        await self._hash_key()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()
        await asyncio.to_thread(self.records.close)

    async def answer(self, call: GatewayCall) -> UpstreamAnswer:
        """The upstream's answer. Raises ``UpstreamFailed`` where there is none, ``StrictRefusal`` if so configured."""
        wire = call.wire
        assert wire is not None
        call.model = _model_of(call.raw)
        if call.header(SWITCH).strip().lower() == "off":
            call.reason = "off"
            return await self._passed(call)
        readable = _decoded(call)
        if readable is None:
            call.reason = "encoding"
            return await self._passed(call)
        try:
            refused = None
            if await self._surely_fits(call, readable):
                call.reason = "small"
                try:
                    return await self._send(call, call.raw)
                except Refused as error:
                    refused = error
            return await self._managed(call, wire, readable, refused)
        except _Relayed as relayed:
            return relayed.answer

    async def _passed(self, call: GatewayCall) -> UpstreamAnswer:
        try:
            return await self._send(call, call.raw, looks=False)
        except _Relayed as relayed:
            return relayed.answer

    # ---- with the engine ----

    async def _managed(
        self, call: GatewayCall, wire: GatewayWire, raw: bytes, refused: Refused | None
    ) -> UpstreamAnswer:
        """The view's answer. Whatever fails here that is ours: the original's."""
        sent: list[Refused] = [refused] if refused is not None else []
        try:
            return await self._with_view(call, wire, raw, sent)
        except (_Relayed, StrictRefusal, UpstreamFailed):
            raise
        except StillTooLong as error:
            self._failed(call, "still_too_long", error)
            return sent[-1].answer
        except Refused as error:  # refused for another reason than size, and nothing could be mended
            return error.answer
        except Unreadable as error:
            call.reason = "unreadable"
            call.notes["reason"] = "unreadable"
            log.debug("a body is passed on: %s", error)
        except CannotFit as error:
            self._failed(call, "cannot_fit", error)
        except ContextfoldError as error:
            self._failed(call, type(error).__name__, error)
        except Exception as error:  # noqa: BLE001 - our own mistakes must never cost an agent its turn
            self._failed(call, "internal", error)
        if sent:
            return sent[-1].answer
        return await self._passed(call)

    async def _with_view(self, call: GatewayCall, wire: GatewayWire, raw: bytes, sent: list[Refused]) -> UpstreamAnswer:
        scope = await self._scope(call, wire)
        body, known = self.conversations.read(scope, raw, wire.key, wire.plain)
        call.label = _label(call, body.fields)
        feature = wire.native_feature(body.fields, body.messages)
        if feature is not None:
            call.reason, call.notes["native"] = "native", feature
            self.metrics.add("native_total", field=feature)
            if sent:
                return sent[-1].answer
            return await self._passed(call)
        state = known.state if known is not None else State()
        call.state = state
        self.conversations.remember(KnownParts(scope, body, state), known)
        self.metrics.set("remembered_conversations", len(self.conversations))
        await self._look_up(call, scope, body, state, is_new=known is None)
        if self.settings.shadow:
            return await self._shadowed(call, wire, scope, body, state)
        try:
            return await self._exchanged(call, wire, scope, body, state, sent)
        except _UsePrepared:
            assert state.prepared is not None
            record, state.prepared = state.prepared, None
            await self._keep(call, scope, body, state, record)
            call.notes["prepared"] = "true"
            return await self._exchanged(call, wire, scope, body, state, sent)

    async def _exchanged(
        self, call: GatewayCall, wire: GatewayWire, scope: bytes, body: Body, state: State, sent: list[Refused]
    ) -> UpstreamAnswer:
        limit_name, limit = wire.limit(body.fields)
        before = state.record
        repeated = sent[-1] if sent else None
        mark = _last_mark(body) if wire is MESSAGES else None

        async def send(view: list[Any], max_tokens: int | None) -> Accepted:
            nonlocal repeated
            changes = {limit_name: max_tokens} if max_tokens is not None and max_tokens != limit else {}
            data = body.with_view(view, wire.key, changes, mark)
            if not changes and (lowered := _answer_room(state, limit, len(data))) is not None:
                changes = {limit_name: lowered}
                data = body.with_view(view, wire.key, changes, mark)
            if data is body.raw and repeated is not None:  # the upstream has said already what it thinks of this
                again, repeated = repeated, None
                raise again
            try:
                return Accepted(
                    await self._send(call, call.raw if data is body.raw else data, changed=data is not body.raw)
                )
            except Refused as error:
                sent.append(error)
                call.notes["resent"] = error.overflow.kind if error.overflow is not None else "in_stream"
                if error.overflow is not None and error.overflow.kind == "output_budget":
                    state.both = _both(error.overflow, len(data)) or state.both
                raise

        async def after(made: Any) -> None:
            await self._keep(call, scope, body, state, made.compaction)

        results: list[CompactionResult] = []
        token = CALLER.set(Caller(self, call, wire))
        try:
            accepted = await self.compactor.acall(
                send,
                body.open,
                state.record,
                max_tokens=limit,
                on_result=results.append,
                before=_prefer(state),
                after=after,
                **self._options(call, wire, body, state),
            )
        finally:
            CALLER.reset(token)
        result = results[-1]
        if result.compaction is not None and result.compaction is not state.record:
            await self._keep(call, scope, body, state, result.compaction)  # made without a pass, after a refusal
        self._tell(call, result, is_new=state.record is not before)
        self._tell_of_summaries(call, result)
        answer: UpstreamAnswer = accepted.answer
        self._prepare_soon(call, wire, scope, body, state, result)
        return answer

    def _options(self, call: GatewayCall, wire: GatewayWire, body: Body, state: State) -> dict[str, Any]:
        """What every pass over this request is given."""
        tools = body.fields.get("tools")
        return {
            "format": wire.format,
            "system": wire.system_text(body.fields),
            "tools": tools if isinstance(tools, list) and tools else None,
            "model": call.model or None,
            "endpoint": call.upstream.endpoint,
            "calibration": state.calibration,
        }

    def _tell(self, call: GatewayCall, result: CompactionResult, *, is_new: bool) -> None:
        """What was done, as headers and figures."""
        call.result = result
        call.reason = ""
        call.action = "compacted" if is_new else ("view" if result.compaction is not None else "passed")
        full = self._full_size(result)
        call.notes |= {"tokens-before": str(full), "tokens-after": str(result.tokens_after)}
        call.notes["window"] = str(result.window)
        if result.compaction is not None:
            call.notes["compaction"] = result.compaction.id
            saved = max(0, full - result.tokens_after)
            call.notes["tokens-saved"] = str(saved)
            if self.settings.shadow:
                self.metrics.add("shadow_tokens_total", saved)
            else:
                self.metrics.add("tokens_saved_total", saved)
                self.metrics.add("money_saved_dollars_total", price_of(saved, call.model))
        if is_new and not self.settings.shadow:
            self.metrics.add("compactions_total", wire=call.wire.format if call.wire else "")

    def _tell_of_summaries(self, call: GatewayCall, result: CompactionResult) -> None:
        """A summarizer that failed costs no turn: the conversation goes on as it was, or with the built-in summary."""
        failed = next((event for event in result.events if event.name in ("summary_failed", "fallback_used")), None)
        if failed is not None:
            self._failed(call, "summary", RuntimeError(failed.message), may_refuse=False)

    def _full_size(self, result: CompactionResult) -> int:
        """Tokens of the request as the client sent it, by what the record says that it took out."""
        record = result.compaction
        if record is None:
            return result.tokens_after
        if record.summary is None:
            return result.tokens_after + max(0, record.tokens_before - record.tokens_after)
        return result.tokens_after + max(0, record.summary.original_tokens - record.summary.tokens)

    # ---- shadow and preparation ----

    async def _shadowed(
        self, call: GatewayCall, wire: GatewayWire, scope: bytes, body: Body, state: State
    ) -> UpstreamAnswer:
        """The original goes on; beside it is worked out what would have been saved."""
        task = self._spawn(self._rehearse(call, wire, body, state))
        answer = await self._send(call, call.raw, looks=False)
        await asyncio.wait({task}, timeout=0.05)  # for the header; the metric comes in any case
        call.action = "shadow"
        return answer

    async def _rehearse(self, call: GatewayCall, wire: GatewayWire, body: Body, state: State) -> None:
        before = state.record
        try:
            result = await self.compactor.acompact(body.open, state.record, **self._options(call, wire, body, state))
        except Exception as error:  # noqa: BLE001 - nothing waits for this
            self._failed(call, "shadow", error, may_refuse=False)
            return
        state.record = result.compaction
        self._tell(call, result, is_new=result.compaction is not before)
        call.action = "shadow"

    def _prepare_soon(
        self, call: GatewayCall, wire: GatewayWire, scope: bytes, body: Body, state: State, result: CompactionResult
    ) -> None:
        """Have a model's summary made before it is needed, where that is soon."""
        trigger = self._least_trigger(result.window)
        is_free = self._asks_model and not state.is_preparing and state.prepared is None
        if is_free and trigger and SOON * trigger <= result.tokens_after:
            state.is_preparing = True
            self._spawn(self._prepare(call, wire, body, state))

    async def _prepare(self, call: GatewayCall, wire: GatewayWire, body: Body, state: State) -> None:
        base = state.record
        CALLER.set(Caller(self, call, wire))
        try:
            options = self._options(call, wire, body, state)
            made = await self.compactor.acompact(body.open, base, force=True, **options)
            if state.record is base and made.changed:
                state.prepared = made.compaction
        except Exception as error:  # noqa: BLE001 - nothing waits for this
            self._failed(call, "prepare", error, may_refuse=False)
        finally:
            state.is_preparing = False

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- whose conversation, and its record ----

    async def _scope(self, call: GatewayCall, wire: GatewayWire) -> bytes:
        """The tenant: a keyed hash of the credential, the upstream and the wire."""
        key = await self._hash_key()
        told = hashlib.blake2b(digest_size=16, key=key)
        for name in CREDENTIALS:
            told.update(b"\0" + name + b"=" + call.header(name).encode())
        told.update(b"\0" + call.upstream.endpoint.encode() + b"\0" + wire.format.encode())
        return told.digest()

    async def _hash_key(self) -> bytes:
        """The key that all gateways on one database share; one of our own as long as the database is away."""
        if self._secret is None:
            try:
                self._secret = (await self._ask_store(self.records.prepare))[:64]
            except StoreFailed:
                return self._spare_secret
        return self._secret[:64]

    async def _look_up(self, call: GatewayCall, scope: bytes, body: Body, state: State, *, is_new: bool) -> None:
        """The record of the longest known beginning, if it is longer than the one at hand."""
        covers = state.record.covers if state.record is not None else 0
        chain = body.chain
        for place in range(len(chain) - 1, covers - 1, -1):
            record = self._recent.get((scope, chain[place]))
            if record is not None and record is not state.record:
                state.record, state.digest = record, chain[place]
                break
        if not (is_new or self._is_shared) or self.settings.shadow:
            return
        covers = state.record.covers if state.record is not None else 0
        longer = chain[max(0, covers - 1) if self._is_shared else covers :]
        if not longer:
            return
        try:
            found = await self._ask_store(self.records.find, scope.hex(), [digest.hex() for digest in longer])
        except StoreFailed as error:
            self._failed(call, "store", error)
            return
        if found is not None and (state.record is None or found[1].id != state.record.id):
            state.record, state.digest = found[1], bytes.fromhex(found[0])
            self._remember_record(scope, state.digest, found[1])
            self._spawn(self._touched(scope.hex(), found[0]))

    async def _touched(self, scope: str, digest: str) -> None:
        with suppress(StoreFailed):  # it only keeps the record from being deleted a month from now
            await self._ask_store(self.records.touch, scope, digest)

    async def _keep(self, call: GatewayCall, scope: bytes, body: Body, state: State, record: Compaction) -> None:
        """A record is made: in force for this conversation, and stored for every worker."""
        digest = body.chain[record.covers - 1] if 0 < record.covers <= len(body.chain) else b""
        state.record, state.digest, state.prepared = record, digest, None
        if not digest:
            return
        self._remember_record(scope, digest, record)
        if self.settings.shadow:
            return
        try:
            await self._ask_store(self.records.save, scope.hex(), digest.hex(), record.covers, record)
        except StoreFailed as error:
            self._failed(call, "store", error)

    def _remember_record(self, scope: bytes, digest: bytes, record: Compaction) -> None:
        self._recent[scope, digest] = record
        self._recent.move_to_end((scope, digest))
        while len(self._recent) > RECENT_RECORDS:
            self._recent.popitem(last=False)

    async def _ask_store(self, ask: Callable[..., T], *arguments: Any) -> T:
        """Raises ``StoreFailed``; then the database is left alone for a while, so that requests do not queue up."""
        if time.monotonic() < self._store_back_at:
            raise StoreFailed("the store failed a moment ago, and is left alone")
        try:
            return await asyncio.wait_for(asyncio.to_thread(ask, *arguments), STORE_SECONDS)
        except TimeoutError:
            problem = f"no answer within {STORE_SECONDS:g} seconds"
        except Exception as error:  # noqa: BLE001 - whatever a driver raises: the agent goes on
            problem = f"{type(error).__name__}: {error}"
        self._store_back_at = time.monotonic() + STORE_PAUSE_SECONDS
        raise StoreFailed(problem)

    # ---- windows ----

    async def _surely_fits(self, call: GatewayCall, raw: bytes) -> bool:
        """Whether a body is so short that no compaction can be due: a token is at least one byte of it.

        Half of the trigger, because the provider's count is an estimate here; never with media, which cost tokens
        without bytes.
        """
        window = self.compactor.windows.assumed(call.model or None).tokens
        learned = await self._learned(call.upstream.endpoint, call.model)
        least = self._least_trigger(min(window, learned) if learned else window)
        return len(raw) < least // 2 and not _MEDIA.search(raw)

    async def _learned(self, endpoint: str, model: str) -> int | None:
        """What any worker has learned from refusals; asked again now and then, and never waited for twice."""
        key = (endpoint, model)
        known = self._windows.get(key)
        if known is None:
            await self._refresh_window(key)
        elif self._is_shared and time.monotonic() - known[1] > WINDOW_SECONDS:
            self._windows[key] = (known[0], time.monotonic())
            self._spawn(self._refresh_window(key))
        return self._windows[key][0]

    async def _refresh_window(self, key: tuple[str, str]) -> None:
        tokens = self._windows.get(key, (None, 0.0))[0]
        try:
            stored = await self._ask_store(self.records.load_window, *key)
            tokens = stored if stored is not None else tokens
        except StoreFailed:
            pass  # it costs one refused request at most
        self._windows[key] = (tokens, time.monotonic())
        while len(self._windows) > 1_024:  # model names come from outside
            self._windows.pop(next(iter(self._windows)))
        if tokens is not None:
            self.compactor.windows.adopt(*key, tokens)

    def _least_trigger(self, window: int) -> int:
        """Tokens at which a pass may start at the earliest; 0 where messages are counted."""
        if window not in self._least:
            if len(self._least) > 1_024:
                self._least.clear()
            self._least[window] = least_trigger(self.settings.policy, window)
        return self._least[window]

    # ---- the upstream ----

    async def _send(
        self, call: GatewayCall, data: bytes, *, changed: bool = False, looks: bool = True
    ) -> UpstreamAnswer:
        """Send a body. Raises ``Refused`` where it is said not to fit, and ``_Relayed`` for other errors.

        ``looks``: the answer is looked into; without, it is handed on as it is.
        """
        headers = _headers_for(call, changed, self.settings)
        if call.sent_at is None:
            call.sent_at = time.perf_counter()
            self.metrics.took(call.sent_at - call.began)
        answer = await self.client.send(call.method, call.upstream.url(call.path, call.query), headers, data)
        if not looks:
            return answer
        if answer.status >= 400:
            await self._check_error(answer)
            raise _Relayed(answer)
        if answer.is_stream and len(data) > _SHORT:
            await self._check_opening(answer)
        return answer

    async def _check_error(self, answer: UpstreamAnswer) -> None:
        body = await answer.read()
        decoder = Decoder(answer.header(b"content-encoding"))
        if len(body) > MOST_ERROR or not decoder.is_known:
            return
        text = decoder.feed(body)
        try:
            said = json.loads(text)
        except ValueError:
            said = text.decode(errors="replace")
        overflow = classify(status=answer.status, body=said)
        if overflow is not None:
            self.metrics.add("overflows_total", kind=overflow.kind)
        elif (overflow := classify(status=answer.status, body=said, fill=1.0)) is None:
            return
        # a refusal without a word is for the engine to judge, which knows how full the window is
        raise Refused(answer, said, overflow)

    async def _check_opening(self, answer: UpstreamAnswer) -> None:
        """Read a stream up to its first content. Raises ``Refused`` where the request is refused before it."""
        decoder = Decoder(answer.header(b"content-encoding"))
        text, until = b"", time.monotonic() + HOLD_SECONDS
        while decoder.is_known:
            left = until - time.monotonic()
            if left <= 0:
                return
            chunk = await answer.next_within(left)
            if chunk is None:
                return
            answer.ahead.append(chunk)
            text += decoder.feed(chunk)
            *events, text = re.split(rb"\r?\n\r?\n", text)
            for event in events:
                said = event_data(event)
                if said is None:
                    continue
                try:
                    check_refusal(said)
                except RefusedInStream as error:
                    await _to_the_end(answer)
                    self.metrics.add("overflows_total", kind="in_stream")
                    raise Refused(answer, error.body) from None
                if not is_opening(said):
                    return
            if not chunk or len(text) > MOST_ERROR:
                return

    # ---- failures and figures ----

    def _failed(self, call: GatewayCall, kind: str, error: BaseException, *, may_refuse: bool = True) -> None:
        """Say that something of ours failed. Raises ``StrictRefusal`` where requests are to be refused then."""
        self.metrics.add("failures_total", kind=kind)
        call.notes["failure"] = kind
        internal = kind == "internal"
        log.warning(
            "%s failed, the request goes on: %s", kind, error if internal else str(error)[:500], exc_info=internal
        )
        if may_refuse and self.settings.strict:
            raise StrictRefusal(kind, f"contextfold failed ({kind}), and --strict refuses to go on: {error}")

    def _count_event(self, event: Event) -> None:
        if event.name == "window_learned":
            key = (str(event.data.get("endpoint") or ""), str(event.data.get("model") or ""))
            self._windows[key] = (int(event.data["tokens"]), time.monotonic())
        elif event.name == "compaction_finished":
            spent = (event.data.get("input_tokens") or 0) + (event.data.get("output_tokens") or 0)
            if spent:
                self.metrics.add("summary_tokens_total", spent)


_SHORT = 2_048
"""Bytes. The stream of a shorter request is not held back: nothing could be taken from it."""


class _SharedWindows:
    """Windows that refusals taught, for every worker (``window.WindowStore``)."""

    def __init__(self, owner: Exchanges) -> None:
        self._owner = owner

    async def load_window(self, endpoint: str, model: str) -> int | None:
        return await self._owner._learned(endpoint, model)

    async def save_window(self, endpoint: str, model: str, tokens: int) -> None:
        await self._owner._ask_store(self._owner.records.save_window, endpoint, model, tokens)


# ---- a summary by the caller's own model ----


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose model and credential a summary may use."""

    exchanges: Exchanges
    call: GatewayCall
    wire: GatewayWire


CALLER: ContextVar[Caller] = ContextVar("contextfold_caller")


class SummaryRefused(Exception):
    """The caller's model did not write the summary. ``status_code`` and ``body`` are as SDKs have them."""

    def __init__(self, status: int, body: Any) -> None:
        self.status_code = status
        self.body = body
        super().__init__(f"HTTP {status}: {json.dumps(body)[:500]}")


async def ask_callers_model(prompt: str) -> SummaryAnswer:
    """A summary by the model of the request at hand, under its credential."""
    caller = CALLER.get()
    call, wire = caller.call, caller.wire
    body: dict[str, Any] = {"model": call.model}
    if wire is RESPONSES:
        body |= {"input": [{"role": "user", "content": prompt}], "store": False}
    else:
        body |= {"messages": [{"role": "user", "content": prompt}]}
    if wire is MESSAGES:
        body |= {"max_tokens": 4_096}
    dropped = (b"accept-encoding", b"content-encoding", SWITCH)
    headers = [(name, value) for name, value in call.headers if name.lower() not in dropped]
    headers += [(SWITCH, b"off"), (b"accept-encoding", b"identity")]
    url = call.upstream.url(call.path, call.query)
    answer = await caller.exchanges.client.send("POST", url, headers, dumped(body))
    said = json.loads(await answer.read() or b"null")
    if answer.status != 200 or not isinstance(said, dict):
        raise SummaryRefused(answer.status, said)
    return _summary_of(said)


def _summary_of(said: Mapping[str, Any]) -> SummaryAnswer:
    usage = said.get("usage") or {}
    read = usage.get("input_tokens", usage.get("prompt_tokens"))
    written = usage.get("output_tokens", usage.get("completion_tokens"))
    choices = said.get("choices")
    if choices:
        message = choices[0].get("message") or {}
        text, reason = message.get("content") or "", choices[0].get("finish_reason")
        has_calls = bool(message.get("tool_calls"))
    elif "output" in said:
        parts = [part for item in said["output"] for part in item.get("content") or ()]
        text = "".join(part.get("text", "") for part in parts if part.get("type") == "output_text")
        reason = (said.get("incomplete_details") or {}).get("reason")
        has_calls = any(item.get("type") == "function_call" for item in said["output"])
    else:
        blocks = said.get("content") or []
        text = "".join(block.get("text", "") for block in blocks if block.get("type") == "text")
        reason, has_calls = said.get("stop_reason"), any(block.get("type") == "tool_use" for block in blocks)
    return SummaryAnswer(text, finish_reason=reason, has_tool_calls=has_calls, input_tokens=read, output_tokens=written)


def _summarizer(settings: GatewaySettings) -> Any:
    if settings.summarizer == EXTRACTIVE:
        return None
    if settings.summarizer == SAME:
        return ask_callers_model
    return SummaryModel(settings.summarizer, base_url=settings.base_url)


# ---- small steps ----


def least_trigger(policy: Policy, window: int) -> int:
    """Tokens at which a pass may start at the earliest; 0 where that does not depend on tokens alone."""
    usable = max(1, window - policy.answer_reserve)
    found = [size.tokens(usable) for clause in policy.trigger for size in clause.sizes]
    sizes = [tokens for tokens in found if tokens is not None]
    if len(sizes) < len(found):
        return 0
    return min(sizes, default=usable)


def _prefer(state: State) -> Callable[[Any], Awaitable[None]] | None:
    """A hook before a pass that takes the prepared record instead."""
    if state.prepared is None:
        return None

    async def before(_: Any) -> None:
        raise _UsePrepared

    return before


def _headers_for(call: GatewayCall, changed: bool, settings: GatewaySettings) -> RawHeaders:
    if not changed:
        return call.headers
    dropped = {b"content-encoding"} | ({b"accept-encoding"} if settings.usage == "history" else set())
    headers = [(name, value) for name, value in call.headers if name.lower() not in dropped]
    headers.append((SWITCH, b"off"))
    return headers if settings.usage == "provider" else [*headers, (b"accept-encoding", b"identity")]


def _both(overflow: Overflow, length: int) -> tuple[int, float] | None:
    """What prompt and answer may have together, and tokens per byte, from a refusal that names both."""
    if overflow.limit is None or not overflow.used or not length:
        return None
    return overflow.limit, overflow.used / length


def _answer_room(state: State, limit: int | None, length: int) -> int | None:
    """An answer limit that fits where the provider refused the client's before; None to leave it.

    Otherwise a client that always asks for more than the window has left would be refused once in every turn.
    """
    if state.both is None or limit is None:
        return None
    both, rate = state.both
    room = both - int(length * rate * ROOM_FOR_ERROR)
    return room if LEAST_ANSWER <= room < limit else None


LEAST_ANSWER = 256
ROOM_FOR_ERROR = 1.1
"""Tokens per byte differ from message to message."""


def _decoded(call: GatewayCall) -> bytes | None:
    """The body as text; None where its encoding is not known, or it gets too large."""
    encoding = call.header(b"content-encoding")
    if not encoding or encoding.lower() == "identity":
        return call.raw
    decoder = Decoder(encoding)
    found = decoder.feed(call.raw) if len(call.raw) < MOST_ERROR * 8 else b""
    return found or None


def _model_of(raw: bytes) -> str:
    """The model's name, from where clients write it: near the beginning or the end."""
    found = _MODEL.search(raw, 0, 4_096) or _MODEL.search(raw, max(0, len(raw) - 16_384)) or _MODEL.search(raw)
    return found[1].decode(errors="replace") if found else ""


def _label(call: GatewayCall, fields: Mapping[str, Any]) -> str:
    """What a client calls its session: for display alone, since sub-agents share it."""
    told: Any = call.header(b"x-claude-code-session-id") or fields.get("prompt_cache_key")
    metadata = fields.get("metadata")
    if not told and isinstance(metadata, dict):
        told = metadata.get("session_id")
        user = metadata.get("user_id")
        if not told and isinstance(user, str) and user.startswith("{"):
            try:
                told = json.loads(user).get("session_id")
            except (ValueError, AttributeError):
                told = None
    return re.sub(r"[^\w.:-]", "", str(told or ""))[:64]


def _last_mark(body: Body) -> Callable[[Any], Any] | None:
    """Puts the mark of the newest message on the one that stands in its place, if that is one of ours."""
    if not body.messages or b'"cache_control"' not in body.message_bytes(len(body.messages) - 1):
        return None

    def marked(message: Any) -> Any:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if not blocks or not isinstance(blocks[-1], dict):
            return message
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        return {**message, "content": blocks}

    return marked


def event_data(event: bytes) -> dict[str, Any] | None:
    """The JSON object of one server-sent event; None for comments, ``[DONE]`` and anything else."""
    lines = [line[5:].strip() for line in re.split(rb"\r?\n", event) if line.startswith(b"data:")]
    if not lines:
        return None
    try:
        said = json.loads(b"\n".join(lines))
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


async def _to_the_end(answer: UpstreamAnswer) -> None:
    """The rest of a stream that is over in any case, so that the client can be given it whole."""
    while chunk := await answer.next():
        answer.ahead.append(chunk)
    answer.release()
