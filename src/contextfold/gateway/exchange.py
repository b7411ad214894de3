"""One conversation's request: whose it is, which record it has, which view goes out, and what a refusal leads to.

    body ──cut──▶ messages ──chain of hashes──▶ record ──Compactor──▶ view ──original bytes──▶ upstream ──▶ answer

The law: if anything of ours fails, the request goes on as the bytes that came. So everything here is inside
``Exchanges.answer``, which knows three ends: an answer of the upstream, a failure of the upstream, and a failure of
ours, after which the original is sent (or, if ``strict``, refused).

What belongs here: the order of these steps. What does not: HTTP toward the client (``app``) and the upstream
(``upstream``), bytes (``body``), shapes (``wires``), what an answer says (``refusals``), the store (``shared``), and
any decision about a message.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from contextfold.calls.request import CompactionResult, Once
from contextfold.compactor import Compactor
from contextfold.errors import CannotFit, ContextfoldError, StillTooLong, text_of
from contextfold.formats import cache_marks
from contextfold.gateway.body import Body, Unreadable, canonical, person_of
from contextfold.gateway.call import Both, GatewayCall, State, label_of, model_of, plain_name, weight
from contextfold.gateway.conversations import MOST_REMEMBERED, Beginning, Conversations, KnownParts, parts_of
from contextfold.gateway.failures import NoSummary, StrictRefusal, told
from contextfold.gateway.fitting import Bounds
from contextfold.gateway.headers import beside_view, of_own_request
from contextfold.gateway.kept import KeptItems
from contextfold.gateway.metrics import Metrics, price_of
from contextfold.gateway.passing import Overtaken, Passing, none_under_way
from contextfold.gateway.refusals import HOLD_SECONDS, Accepted, Refused, Relayed, check_answer
from contextfold.gateway.settings import EXTRACTIVE, GatewaySettings
from contextfold.gateway.shared import MOST_WINDOWS, SharedStore, StoreFailed
from contextfold.gateway.summaries import Ask, asking, summarizer_of
from contextfold.gateway.tracing import Tracing
from contextfold.gateway.upstream import Client, UpstreamAnswer, UpstreamFailed
from contextfold.gateway.wires import GatewayWire
from contextfold.observe import Event, Observer, scrub
from contextfold.policy import Policy
from contextfold.ports import AsyncPorts
from contextfold.record.compaction import Compaction

log = logging.getLogger("contextfold.gateway")

T = TypeVar("T")

SOON = 0.85
"""Share of the trigger from which on a model's summary is prepared beside the conversation, unless the policy says."""

_AT_ONCE = 65_536
"""Bytes that are taken apart in the event loop's own thread: a few milliseconds at most."""

_SHORT = 2_048
"""Bytes. The stream of a shorter request is not held back: nothing could be taken from it."""


@dataclass(frozen=True, slots=True)
class ManagedCall:
    """A request that the engine has to look at, taken apart."""

    call: GatewayCall
    wire: GatewayWire
    scope: bytes
    body: Body
    state: State


class Exchanges:
    """Answers conversations for one process. Made inside the event loop that uses it."""

    def __init__(self, settings: GatewaySettings, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self.settings = settings
        self.metrics = metrics
        self._tracing = tracing or Tracing()
        # twice: a request may ask for a summary as well
        self.client = Client(settings.max_requests * 2, settings.first_byte_seconds)
        self.shared = SharedStore(settings, self._spawn, lambda *learned: self.compactor.windows.adopt(*learned))
        self.conversations = Conversations()
        self._kept = KeptItems()
        policy = _policy(settings)
        self.compactor = Compactor(
            window=settings.window,
            policy=policy,
            summarizer=summarizer_of(settings),
            windows=self.shared,
            on_event=self._count_event,
            remembered=MOST_REMEMBERED,
        )
        self._bounds = Bounds(policy)
        self._both: dict[tuple[str, str], Both] = {}
        """By endpoint and model, what refused an answer limit beside a prompt that fits: there even a short request is
        looked at that asks for so long an answer."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Open what the first request needs. A store that is down does not keep a gateway from starting."""
        AsyncPorts()  # loads what waits for threads; then the registry of models, and their prices
        await asyncio.to_thread(self.compactor.windows.assumed, "gpt-5")
        await asyncio.to_thread(price_of, 0, "gpt-5")
        await self.shared.hash_key()
        if self.shared.is_away:
            # said at once: a mistake in its address would be found out only by the first request that wants a record
            log.warning("the store cannot be used, so records stay in memory until it can: %s", self.shared.problem)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()
        await self.shared.close()

    async def keep(self, call: GatewayCall, wire: GatewayWire, items: list[dict[str, Any]]) -> None:
        """Remember items of an answer to this caller, who may name them by their ids alone from now on."""
        self._kept.remember(await self.shared.scope(call, wire), items)

    async def answer(self, call: GatewayCall) -> UpstreamAnswer:
        """The upstream's answer. Raises ``UpstreamFailed`` where there is none, ``StrictRefusal`` if so configured."""
        wire = call.wire
        assert wire is not None
        call.model = call.named(model_of(call.raw))
        if call.is_switched_off:
            call.reason = "off"
            return await self._passed(call)
        readable = call.readable()
        if readable is not call.raw:
            call.model = call.named(model_of(readable or b""))
        if readable is None:
            self._unread(call, "encoding")
            return await self._passed(call)
        try:
            is_small, found = await self._is_small(call, wire, readable)
            if not is_small:
                return await self._managed(call, wire, readable, None, found)
            call.reason = "small"
            if found is None:
                self._left(call, wire.native_in(readable))
            try:
                return await self._send(call, call.raw)
            except Refused as error:
                return await self._managed(call, wire, readable, error, None)
        except Relayed as relayed:
            return relayed.answer

    async def _is_small(self, call: GatewayCall, wire: GatewayWire, raw: bytes) -> tuple[bool, Beginning | None]:
        try:
            return await self._surely_fits(call, wire, raw)
        except Exception as error:  # noqa: BLE001 - as in `_managed`, which looks at it next
            self._failed(call, "internal", error)
            return False, None

    async def _surely_fits(self, call: GatewayCall, wire: GatewayWire, raw: bytes) -> tuple[bool, Beginning | None]:
        """Whether the request is below its trigger whatever a count would say (``fitting``); and what it begins with,
        where that was looked for.
        """
        endpoint, model, windows = call.endpoint, call.model_by_window, self.compactor.windows
        await self.shared.load_window(endpoint, model)  # what other workers learned counts here from now on
        window, learned = windows.assumed(model or None).tokens, windows.learned(endpoint, model or None)
        # The smaller of both: too small a bound costs a count, too large a one a refusal.
        window = min(window, learned) if learned else window
        both = self._both.get((endpoint, model))
        is_tight = both is not None and not both.leaves(wire.most_asked(raw), raw)
        if not is_tight and self._bounds.is_short(raw, window):
            return True, None
        try:
            found = self.conversations.find(await self.shared.scope(call, wire), raw, wire.key)
        except Unreadable:
            return False, None
        if is_tight or found.known is None or not self._bounds.has_room(found.known.state, found, raw, window):
            return False, found
        self.conversations.used(found.known)
        self._kept.used(found.known.scope, found.known.body.messages)
        call.label = label_of(call, found.known.body.fields)
        return True, found

    async def _passed(self, call: GatewayCall) -> UpstreamAnswer:
        """The answer to the bytes that came, whatever it is."""
        return await self._sent(call, call.raw)

    # ---- with the engine ----

    async def _managed(
        self, call: GatewayCall, wire: GatewayWire, raw: bytes, refused: Refused | None, found: Beginning | None
    ) -> UpstreamAnswer:
        """The view's answer. Whatever fails here that is ours: the original's."""
        sent: list[Refused] = [refused] if refused is not None else []
        try:
            return await self._with_view(call, wire, raw, sent, found)
        except (Relayed, StrictRefusal, UpstreamFailed):
            raise
        except StillTooLong as error:
            # The client gets the provider's own refusal, which its SDK knows how to read.
            self._failed(call, "still_too_long", error)
            return sent[-1].answer
        except Refused as error:  # refused for another reason than size, and nothing could be mended
            return error.answer
        except Unreadable as error:
            self._unread(call, "unreadable")
            log.debug("a body is passed on: %s", scrub(text_of(error)))
        except CannotFit as error:
            self._failed(call, "cannot_fit", error)
            if not sent:
                return await self._unshortened(call, error.needed)
        except ContextfoldError as error:
            self._failed(call, type(error).__name__, error)
        except Exception as error:  # noqa: BLE001 - our own mistakes must never cost an agent its turn
            self._failed(call, "internal", error, may_refuse=call.answer is None)
        if call.answer is not None:  # the mistake came behind it: what the provider took is not sent again
            return call.answer
        if sent:
            return sent[-1].answer
        return await self._passed(call)

    async def _with_view(
        self, call: GatewayCall, wire: GatewayWire, raw: bytes, sent: list[Refused], found: Beginning | None
    ) -> UpstreamAnswer:
        scope = await self.shared.scope(call, wire)
        found = found or self.conversations.find(scope, raw, wire.key)
        taking_apart = partial(parts_of, raw, wire.key, partial(self._plain, scope, wire), found, wire.said)
        # Megabytes that are new take a tenth of a second, in which all other requests would wait.
        is_long = found.new_length(raw) > _AT_ONCE
        parts = await asyncio.to_thread(taking_apart) if is_long else taking_apart()
        body, known = self.conversations.known_of(scope, parts)
        self._kept.used(scope, body.messages)
        call.label = label_of(call, body.fields)
        name = body.fields.get("model")  # first in the bytes may stand an input of a tool
        call.model = call.named(plain_name(name if isinstance(name, str) else ""))
        # Before anything is remembered: two parties that both shorten a conversation would each take away what the
        # other counts on.
        feature = wire.native_feature(body.fields, body.messages)
        if feature is not None:
            self._left(call, feature)
            return sent[-1].answer if sent else await self._passed(call)
        state: State = known.state if known is not None else State(wire.read_as)
        if known is None and found.known is not None:
            state.rate, state.counted = found.known.state.rate, found.known.state.counted
            # It leaves the way of that one, as do the turns of a client whose newest message is never the same again:
            # what its provider counts holds for this one, too. A turn that is sent again goes out as it did then.
            if found.same < len(body.messages):
                state.calibration = found.known.state.calibration
        call.state = state
        self.conversations.remember(KnownParts(scope, body, state, parts.newest), known, wire.said)
        self.metrics.set("remembered_conversations", len(self.conversations))
        try:
            await self.shared.look_up(scope, body.chain, state, is_new=known is None)
        except StoreFailed as error:
            self._failed(call, "store", error)
        conversation = ManagedCall(call, wire, scope, body, state)
        if self.settings.shadow:
            return await self._shadowed(conversation)
        answer = await self._exchanged(conversation, sent)
        if known is None and "prepared" in call.notes:  # of a conversation that is not known here any more
            state.says_all = False
        return answer

    def _plain(self, scope: bytes, wire: GatewayWire, entry: Any) -> tuple[Any, bool]:
        return wire.plain(self._kept.named(scope, entry))

    async def _exchanged(self, conversation: ManagedCall, sent: list[Refused]) -> UpstreamAnswer:
        while True:
            # Sent once more, or the next turn already: the summary is paid for once.
            await none_under_way(conversation.state)
            with suppress(Overtaken):
                return await self._exchanged_once(conversation, sent)

    async def _exchanged_once(self, conversation: ManagedCall, sent: list[Refused]) -> UpstreamAnswer:
        call, state = conversation.call, conversation.state
        before, passing = state.record, Passing(state)
        began: list[int] = []
        made: list[Compaction] = [] if before is None else [before]
        had = len(made)

        async def before_pass(_: Any) -> None:
            await passing.begin()
            began.append(time.time_ns())

        async def after(result: Any) -> None:
            # Stored before the view goes out: the next turn may come to another worker.
            made.append(result.compaction)
            self._tracing.compacted(began[-1], result.compaction)
            await self._keep(conversation, result.compaction)
            passing.made()

        send = self._sending(conversation, sent, made)

        async def send_behind(view: list[Any], max_tokens: int | None) -> Accepted:
            passing.go_on()
            return await send(view, max_tokens)

        results: list[CompactionResult] = []
        work = self.compactor.acall(
            send_behind,
            conversation.body.open,
            state.record,
            max_tokens=conversation.wire.limit(conversation.body.fields)[1],
            on_result=results.append,
            before=before_pass,
            after=after,
            ask=self._ask(conversation),
            once=self._once(conversation),
            whose=conversation.scope + canonical(person_of(conversation.body.fields)),
            **_options(conversation),
        )
        try:
            accepted: Accepted = await passing.outlived(self._spawn(work))
            result = results[-1]
            if before is not None and any(event.name == "compaction_set_aside" for event in result.events):
                state.set_aside.add(before.id)
            # Made without a pass, after a refusal. Of a pass it is kept, perhaps in another one's place in the line.
            if result.compaction is not None and all(result.compaction is not one for one in made):
                # The client has dropped messages: the one in force is the same, but for their places.
                if before is None or not before.is_moved_to(result.compaction):
                    made.append(result.compaction)
                await self._keep(conversation, result.compaction)
            self._tell(conversation, result, is_new=len(made) > had)
            self._tell_of_summaries(call, result)
        finally:
            if len(made) > had:  # in force, whatever the provider answered
                self.metrics.add("compactions_total", wire=conversation.wire.format)
                call.action = "compacted" if call.action == "view" else call.action
        return accepted.answer

    def _sending(
        self, conversation: ManagedCall, sent: list[Refused], made: list[Compaction]
    ) -> Callable[[list[Any], int | None], Awaitable[Accepted]]:
        """What sends a view. ``sent``: the refusals so far; those to come are added. ``made``: the record in force
        and those that were made for this request.
        """
        call, wire, body = conversation.call, conversation.wire, conversation.body
        limit = wire.limit(body.fields)[1]
        repeated = sent[-1] if sent else None
        mark = _last_mark(body)

        async def send(view: list[Any], max_tokens: int | None) -> Accepted:
            nonlocal repeated
            changes = wire.limited(body.fields, max_tokens) if max_tokens is not None and max_tokens != limit else {}
            data = body.with_view(view, wire.key, changes, mark)
            # What the engine makes of this very refusal is exact; else the lower of both estimates is taken.
            lowered = None if changes and sent else self._answer_room(conversation, limit, data)
            if lowered is not None and (not changes or max_tokens is None or lowered < max_tokens):
                changes = wire.limited(body.fields, lowered)
                data = body.with_view(view, wire.key, changes, mark)
            if data is not body.raw and (beside := wire.beside({**body.fields, **changes}, view, body.open)):
                data = body.with_view(view, wire.key, {**changes, **beside}, mark)
            if data is not body.raw and not changes and not made and not sent:
                # Nothing left it, and no provider has refused it: what the engine would mend is the client's.
                try:
                    return await attempt(body.raw)
                except Refused as error:
                    if error.kind != "malformed_history":
                        raise
            is_same = data is body.raw
            if is_same and repeated is not None:  # the upstream has said already what it thinks of this
                again, repeated = repeated, None
                self._learn(conversation, again, data)
                raise again
            return await attempt(data)

        async def attempt(data: bytes) -> Accepted:
            is_same = data is body.raw
            if sent:
                call.notes["resent"] = sent[-1].kind
            try:
                call.answer = await self._send(call, call.raw if is_same else data, changed=not is_same)
                call.is_changed = not is_same
                call.weighed = weight(data) if conversation.state.rate is not None else 0
                return Accepted(call.answer)
            except Refused as error:
                sent.append(error)
                self._learn(conversation, error, data)
                raise

        return send

    def _learn(self, conversation: ManagedCall, refused: Refused, data: bytes) -> None:
        """This body was refused for its size."""
        call, said = conversation.call, refused.overflow
        if said is not None and said.kind == "output_budget" and said.limit is not None and said.used and data:
            # The limit is the model's, and a client may send each turn as another conversation.
            conversation.state.rate = rate = said.used / weight(data)
            if len(self._both) >= MOST_WINDOWS:
                self._both.clear()
            place = call.endpoint, call.model_by_window
            known = self._both.get(place) or Both(said.limit, rate, rate)
            self._both[place] = known.learned(said.limit, rate)

    def _answer_room(self, conversation: ManagedCall, limit: int | None, data: bytes) -> int | None:
        """As ``Both.room``; None as well where no limit was refused yet."""
        call, state = conversation.call, conversation.state
        both = self._both.get((call.endpoint, call.model_by_window))
        # Words that got denser would be refused again. Never less: some report fewer tokens than they refuse for.
        rate = max(state.rate, state.counted) if state.rate is not None else None
        return both.room(limit, data, rate) if both is not None else None

    def _ask(self, conversation: ManagedCall) -> Ask:
        """How the caller's own model is asked for a summary, under the caller's credential."""
        call = conversation.call
        headers = of_own_request(call.headers)
        url = call.upstream.url(*conversation.wire.whole(call.path, call.query))

        async def post(data: bytes) -> UpstreamAnswer:
            return await self.client.send("POST", url, call.upstream.headers(headers), data)

        wire, body = conversation.wire, conversation.body
        mark = _last_mark(body)
        room = partial(self._answer_room, conversation)
        return asking(post, wire, body, call.model, mark, room, self.settings.first_byte_seconds)

    def _once(self, conversation: ManagedCall) -> Once | None:
        """What keeps several workers from preparing the same summary; None where none is paid for."""
        is_free = self.settings.summarizer == EXTRACTIVE
        return None if is_free else partial(self.shared.prepare_once, conversation.scope, conversation.body.chain)

    async def _keep(self, conversation: ManagedCall, record: Compaction) -> None:
        try:
            await self.shared.keep(conversation.scope, conversation.body, conversation.state, record)
        except StoreFailed as error:
            self._failed(conversation.call, "store", error)

    # ---- shadow ----

    async def _shadowed(self, conversation: ManagedCall) -> UpstreamAnswer:
        """The original goes on; beside it is worked out what would have been saved."""
        call = conversation.call
        # Beside the request, not before it: shadow mode must add no time, or its figures would be those of another
        # system.
        task = self._spawn(self._rehearse(conversation))
        answer = await self._passed(call)
        await asyncio.wait({task}, timeout=0.05)  # for the header; the metric comes in any case
        call.action = "shadow"
        return answer

    async def _rehearse(self, conversation: ManagedCall) -> None:
        call, body, state = conversation.call, conversation.body, conversation.state
        before = state.record
        try:
            result = await self.compactor.acompact(body.open, before, **_options(conversation))
        except Exception as error:  # noqa: BLE001 - nothing waits for this
            self._failed(call, "shadow", error, may_refuse=False)
            return
        state.record = result.compaction
        self._tell(conversation, result, is_new=result.compaction is not before)
        call.action = "shadow"

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it; else asyncio would log what it quotes

    # ---- the upstream ----

    async def _send(self, call: GatewayCall, data: bytes, *, changed: bool = False) -> UpstreamAnswer:
        """Send a body. Raises ``Refused`` where it is said not to fit, and ``Relayed`` for other errors."""
        with self._tracing.attempt(call, len(data)) as told:
            answer = await self._sent(call, data, changed=changed)
            told["http.response.status_code"] = answer.status
            try:
                await check_answer(answer, opens=len(data) > _SHORT)
            except Refused as error:
                if error.is_sure:
                    self.metrics.add("overflows_total", kind=error.kind)
                    told["contextfold.overflow"] = error.kind
                raise
        return answer

    async def _sent(self, call: GatewayCall, data: bytes, *, changed: bool = False) -> UpstreamAnswer:
        if call.sent_at is None:
            call.sent_at = time.perf_counter()
            self.metrics.took(call.sent_at - call.began)
        call.action = "view" if changed else "passed"
        headers = beside_view(call.headers, data, self.settings.usage) if changed else call.headers
        url = call.upstream.url(call.path, call.query)
        call.newest = await self.client.send(call.method, url, call.upstream.headers(headers), data)
        await call.newest.begin(HOLD_SECONDS)
        return call.newest

    async def _unshortened(self, call: GatewayCall, needed: int) -> UpstreamAnswer:
        """The answer to the original where no view fits; ``needed``: the tokens that it has at least. What it is
        refused for corrects a window that was learned from something else, as does that it is taken: without that, no
        later turn would fit either.
        """
        endpoint, model, windows = call.endpoint, call.model_by_window or None, self.compactor.windows
        try:
            answer = await self._send(call, call.raw)
        except Refused as refused:
            said = refused.overflow
            if said is not None and said.kind == "prompt_too_long" and said.limit:
                observer = Observer(self._count_event)
                await windows.learn(endpoint, model, said.limit, AsyncPorts(), observer, refused=None)
            return refused.answer
        if windows.trusts(endpoint, model):
            windows.accept(endpoint, model, needed)
        return answer

    # ---- failures and figures ----

    def _tell(self, conversation: ManagedCall, result: CompactionResult, *, is_new: bool) -> None:
        call = conversation.call
        call.result = result
        call.reason = ""
        is_view = result.compaction is not None or call.is_changed
        call.action = "compacted" if is_new else "view" if is_view else "passed"
        full = result.tokens_after
        if result.compaction is not None:
            full = max(full, result.history_tokens or 0)
        call.notes |= {"tokens-before": str(full), "tokens-after": str(result.tokens_after)}
        call.notes["window"] = str(result.window)
        # Under a record the view is the engine's business at each turn (``fitting``), so there is no size to keep.
        conversation.state.sized = None if result.compaction else (conversation.body, result.tokens_after)
        if result.compaction is not None:
            call.notes["compaction"] = (conversation.state.record or result.compaction).id
            saved = max(0, full - result.tokens_after)
            call.notes["tokens-saved"] = str(saved)
            if self.settings.shadow:
                self.metrics.add("shadow_tokens_total", saved)
            else:
                self.metrics.add("tokens_saved_total", saved)
                self.metrics.add("money_saved_dollars_total", price_of(saved, call.model))

    def _left(self, call: GatewayCall, feature: str | None) -> None:
        """Say that a request is left to the provider, once for each."""
        if feature is not None and "native" not in call.notes:
            call.reason, call.notes["native"] = "native", feature
            self.metrics.add("native_total", field=feature)

    def _unread(self, call: GatewayCall, reason: str) -> None:
        """A body that is not read is never compacted, however long it gets: whoever runs the gateway should see it."""
        call.reason = reason
        self.metrics.add("unread_total", reason=reason)

    def _tell_of_summaries(self, call: GatewayCall, result: CompactionResult) -> None:
        if any(event.name == "summary_adopted" for event in result.events):
            call.notes["prepared"] = "true"
        failed = next((event for event in result.events if event.name in ("summary_failed", "fallback_used")), None)
        if failed is not None:
            # A summarizer that failed costs no turn: the conversation goes on as it was, or with the built-in summary.
            self._failed(call, "summary", NoSummary(failed), may_refuse=False)

    def _failed(self, call: GatewayCall, kind: str, error: BaseException, *, may_refuse: bool = True) -> None:
        """Say that something of ours failed. Raises ``StrictRefusal`` where requests are to be refused then."""
        self.metrics.add("failures_total", kind=kind)
        call.notes["failure"] = kind
        log.warning("%s failed, the request goes on: %s", kind, told(error))
        if may_refuse and self.settings.strict:
            raise StrictRefusal(kind, f"contextfold failed ({kind}), and --strict refuses to go on: {text_of(error)}")

    def _count_event(self, event: Event) -> None:
        if event.name == "background_failed":
            self.metrics.add("failures_total", kind="prepare")
        elif event.name == "compaction_finished":
            spent = (event.data.get("input_tokens") or 0) + (event.data.get("output_tokens") or 0)
            if spent:
                self.metrics.add("summary_tokens_total", spent)


# ---- small steps ----


def _policy(settings: GatewaySettings) -> Policy:
    policy = settings.policy
    if settings.summarizer == EXTRACTIVE or settings.shadow or "background" in policy.model_fields_set:
        return policy
    # A model's summary is prepared in the background, so that no request waits for it.
    return policy.model_copy(update={"background": SOON})


def _options(conversation: ManagedCall) -> dict[str, Any]:
    call, fields = conversation.call, conversation.body.fields
    tools = fields.get("tools")
    return {
        "format": conversation.wire.read_as,
        "system": conversation.wire.system_text(fields),
        "tools": tools if isinstance(tools, list) and tools else None,
        "model": call.model_by_window or None,
        "endpoint": call.endpoint,
        "calibration": conversation.state.calibration,
    }


def _last_mark(body: Body) -> Callable[[Any], Any] | None:
    """Puts the mark of the newest message on the one that stands in its place, if that is one of ours: the very mark,
    since it says how long the provider keeps what it has read.
    """
    newest = len(body.messages) - 1
    if newest < 0 or b'"cache_control"' not in body.message_bytes(newest):
        return None
    mark = cache_marks.newest([body.as_it_came(newest)])
    return None if mark is None else partial(cache_marks.marked, mark=mark)
