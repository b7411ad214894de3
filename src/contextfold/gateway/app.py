"""The gateway toward its clients: an ASGI application.

What belongs here: HTTP with clients, limits, relaying answers as they come, and what is told about each request. What
does not: what is done with a conversation (``exchange``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from contextfold.gateway.call import GatewayCall
from contextfold.gateway.caller import Caller, ClientGone, TooSlow
from contextfold.gateway.exchange import Exchanges
from contextfold.gateway.failures import StrictRefusal, told
from contextfold.gateway.garbage import Garbage
from contextfold.gateway.metrics import Metrics, WorkerFiles
from contextfold.gateway.protocol import ABORT, OF_1_0
from contextfold.gateway.settings import MESSAGES_PATH, GatewaySettings, Upstream
from contextfold.gateway.tap import MOST_USAGE, AnswerTap
from contextfold.gateway.tracing import Tracing, number
from contextfold.gateway.upstream import UpstreamAnswer, UpstreamFailed
from contextfold.gateway.wires import CHAT, CONTENTS, MESSAGES, RESPONSES, GatewayWire, wire_of

log = logging.getLogger("contextfold.gateway")

TELL_SECONDS = 1.0
"""How old the figures of another worker may be."""


class BrokenOff(Exception):
    """The upstream ended in the middle: the client's connection is cut as well, so that it does not take a half answer
    for a whole one."""


def make_app(
    settings: GatewaySettings,
    metrics: Metrics | None = None,
    files: WorkerFiles | None = None,
    *,
    is_alone: bool = False,
) -> Starlette:
    """The application. One process may have one at a time. ``files``: where it finds the figures of other workers.

    ``is_alone``: the process has nothing else to do, so that its settings are the gateway's to choose.
    """
    gateway = Gateway(settings, metrics or Metrics())
    garbage = Garbage(lambda: gateway.in_flight > 0) if is_alone else None

    async def tell_others(files: WorkerFiles) -> None:
        while True:
            files.write(gateway.metrics)
            await asyncio.sleep(TELL_SECONDS)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        telling = asyncio.create_task(tell_others(files)) if files is not None else None
        if garbage is not None:
            garbage.start()
        try:
            yield
        finally:
            if garbage is not None:
                garbage.stop()
            if files is not None and telling is not None:
                telling.cancel()
                files.write(gateway.metrics)
            await gateway.close()

    async def healthz(_: Request) -> Response:
        body = {"status": "ok", "in_flight": gateway.in_flight, "store": gateway.store_state}
        return Response(json.dumps(body), media_type="application/json")

    async def show_metrics(_: Request) -> Response:
        others = await asyncio.to_thread(files.others) if files is not None else None
        return PlainTextResponse(gateway.metrics.text(others), media_type="text/plain; version=0.0.4")

    app = Starlette(
        routes=[Route("/healthz", healthz), Route("/metrics", show_metrics), Mount("/", app=gateway)],
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    return app


class Gateway:
    """The ASGI application behind all other routes."""

    def __init__(self, settings: GatewaySettings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self.in_flight = 0
        self._upstreams = settings.all_upstreams()
        self._exchanges: Exchanges | None = None
        self._tracing = Tracing()

    async def start(self) -> None:
        self._exchanges = Exchanges(self.settings, self.metrics, self._tracing)
        await self._exchanges.start()

    async def close(self) -> None:
        if self._exchanges is not None:
            await self._exchanges.close()

    @property
    def store_state(self) -> str:
        """``ok``, or ``away`` where the database failed a moment ago."""
        return "away" if self._exchanges is not None and self._exchanges.shared.is_away else "ok"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":  # only HTTP is spoken here; clients fall back to it
                await send({"type": "websocket.close", "code": 1000})
            return
        if self._exchanges is None:
            text = (
                "the gateway was not started: an application that mounts it has to enter its lifespan, "
                "`async with app.router.lifespan_context(app)`"
            )
            await _refuse(send, CHAT, 503, "api_error", text)
            return
        if self.in_flight >= self.settings.max_requests:
            self.metrics.add("failures_total", kind="busy")
            wire = _wire_of_errors(*self._upstream_of(scope))
            text = f"{self.in_flight} requests are being answered, and no more are taken"
            await _refuse(send, wire, 503, "overloaded_error", text, [(b"retry-after", b"1")])
            return
        self.in_flight += 1
        self.metrics.set("in_flight", self.in_flight)
        try:
            await self._serve(scope, receive, send)
        finally:
            self.in_flight -= 1
            self.metrics.set("in_flight", self.in_flight)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        path = _path_of(scope)
        if await self._is_refused(scope, path, send):
            return
        method, headers, query = scope["method"], scope["headers"], scope["query_string"].decode("latin-1")
        upstream, path = self._upstream_of(scope)
        wire, refused_as = wire_of(path) if method == "POST" else None, _wire_of_errors(upstream, path)
        client = Caller(receive, send, self.settings)
        call = GatewayCall(method, path, query, headers, b"", upstream, wire, scope.get("root_path", "").rstrip("/"))
        status = 0
        with self._tracing.span(call) as span:
            try:
                status = await self._answered(call, client)
            except ClientGone:
                # 499 as proxies log it; no client is left to read it
                status = 200 if client.has_last_event else 499
                self.metrics.add("disconnects_total", status == 499)
            except TooSlow as error:
                status = 408
                if client.started:
                    if (abort := scope.get(ABORT)) is not None:
                        abort()
                    raise BrokenOff(str(error)) from None
                await _refuse(send, refused_as, 408, "request_timeout", str(error), [(b"connection", b"close")])
            except StrictRefusal as error:
                status = 503
                await _refuse(send, refused_as, 503, "contextfold_failed", str(error), _note_headers(call))
            except UpstreamFailed as error:
                status = error.status
                self.metrics.add("upstream_errors_total", kind=error.kind)
                call.notes["upstream"] = error.kind
                if client.started:
                    raise _cut(scope, str(error)) from None
                kind = "api_error" if refused_as is MESSAGES else f"upstream_{error.kind}"
                await _refuse(send, refused_as, error.status, kind, str(error), _note_headers(call))
            except Exception as error:  # noqa: BLE001 - a mistake of ours; uvicorn would log its text
                status = 500
                self.metrics.add("failures_total", kind="internal")
                call.notes["failure"] = "internal"
                log.error("internal failed, and no answer could be given: %s", told(error))
                if client.started:
                    raise _cut(scope, "an answer could not be given whole") from None
                text = "contextfold failed, and could not pass the request on"
                await _refuse(send, refused_as, 500, "api_error", text, _note_headers(call))
            finally:
                self._told(call, status, time.perf_counter() - began)
                self._tracing.end(span, call, status)

    async def _is_refused(self, scope: Scope, path: str, send: Send) -> bool:
        """Whether a request was refused for what its head says."""
        names = {name for name, _ in scope["headers"]}
        if problem := _problem_of(path):
            await _refuse(send, CHAT, 400, "invalid_request_error", problem)
        elif b"sec-websocket-key" in names:
            self.metrics.add("websockets_declined_total")
            await _decline_websocket(send)
        elif b"origin" in names and (upstream := self._upstream_of(scope)[0]).authorization:
            # Any page that someone opens may send requests to a port of this machine, and would spend the operator's
            # money with a password that no client of ours has to know.
            text = f"pages of a browser may not ask {upstream.name}: its password stands in the gateway's own settings"
            await _refuse(send, _wire_of_errors(upstream, path), 403, "permission_error", text)
        else:
            return False
        return True

    async def _answered(self, call: GatewayCall, client: Caller) -> int:
        """The status of the answer that was relayed."""
        exchanges = self._exchanges
        assert exchanges is not None
        if call.wire is None:
            return await client.while_there(self._pass_on(call, client))
        too_long = f"a request may have {self.settings.max_body:,} bytes"
        try:
            call.raw = await client.body(self.settings.max_body)
        except OverflowError:
            await _refuse(client.send, call.wire, 413, "request_too_large", too_long)
            return 413
        call.began = time.perf_counter()
        # The upstream's work ends when the client leaves.
        return await client.while_there(self._converse(call, client))

    async def _converse(self, call: GatewayCall, client: Caller) -> int:
        assert self._exchanges is not None
        try:
            answer = await self._exchanges.answer(call)
            await self._relay(call, answer, client)
        finally:
            # Also where the client left before it got any of it: the provider is not to go on for no one.
            if call.newest is not None:
                call.newest.close()
        return answer.status

    async def _pass_on(self, call: GatewayCall, client: Caller) -> int:
        """Everything that is no conversation: both ways as it comes."""
        assert self._exchanges is not None
        names = {name.lower(): value for name, value in call.headers}
        has_body = names.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in names
        data: Any = None
        # A small body is read first: in one piece it costs less than in several, and it can be sent once more.
        if has_body and int(names.get(b"content-length", b"0") or 0) <= _SMALL_BODY and b"content-length" in names:
            data = await client.body(_SMALL_BODY)
        elif has_body:
            data = client.pieces()
        url = call.upstream.url(call.path, call.query)
        try:
            answer = await self._exchanges.client.send(call.method, url, call.upstream.headers(call.headers), data)
        except UpstreamFailed:
            if client.problem is None:
                raise
            # What it was sent ended because the client broke off: none of the upstream's doing.
            raise client.problem from None
        try:
            await self._hand_on(answer, client, _redirected(answer.headers, call))
        finally:
            answer.close()
        return answer.status

    async def _hand_on(self, answer: UpstreamAnswer, client: Caller, headers: list[tuple[bytes, bytes]]) -> None:
        await client.start(answer.status, headers)
        async for chunk in answer.chunks():
            await client.piece(chunk)
        await client.end()

    async def _relay(self, call: GatewayCall, answer: UpstreamAnswer, client: Caller) -> None:
        if call.result is None and call.wire is not RESPONSES:  # nothing was counted that it could correct
            await self._hand_on(answer, client, _headers_of(answer, call))
            return
        told, body = self._history_tokens(call), None
        is_list = told is not None and not answer.is_stream and await answer.is_list()
        if told is not None and not answer.is_stream and not is_list:
            # Rewritten whole, so that its length is known before the headers go out; none that is too large for that.
            body = await answer.whole(MOST_USAGE) if answer.is_plain else None
            told = told if body is not None else None
        tap = AnswerTap(answer, told, is_list=is_list)
        headers = _headers_of(answer, call)
        if told is not None:
            headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        try:
            await self._read_along(call, answer, client, tap, headers, body)
        finally:
            self._learn(call, tap.input_tokens)  # also where the client leaves, as many do at the last event

    async def _read_along(
        self,
        call: GatewayCall,
        answer: UpstreamAnswer,
        client: Caller,
        tap: AnswerTap,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None,
    ) -> None:
        if body is not None:
            body = tap.rewritten(body)
            headers.append((b"content-length", str(len(body)).encode()))
            await client.start(answer.status, headers)
            await client.piece(body)
        else:
            await client.start(answer.status, headers)
            async for chunk in answer.chunks():
                out = tap.feed(chunk)
                await self._keep(call, tap)  # before its client can name them
                if out:
                    await client.piece(out)
            if rest := tap.rest():
                await client.piece(rest)
        await self._keep(call, tap)
        await client.end()

    async def _keep(self, call: GatewayCall, tap: AnswerTap) -> None:
        if tap.items and call.wire is not None and self._exchanges is not None:
            items, tap.items = tap.items, []
            await self._exchanges.keep(call, call.wire, items)

    def _history_tokens(self, call: GatewayCall) -> int | None:
        """The input tokens to tell in place of the provider's; None to leave them alone."""
        result = call.result
        if self.settings.usage != "history" or result is None or result.compaction is None or self.settings.shadow:
            return None
        return int(call.notes.get("tokens-before", "0")) or None

    def _learn(self, call: GatewayCall, tokens: int | None) -> None:
        state = call.state
        if call.result is None or state is None or not tokens:
            return
        state.calibration = call.result.after_usage(tokens).calibration
        if state.rate is not None and call.weighed:
            state.counted = tokens / call.weighed
        if state.sized is not None and call.result.compaction is None:
            # The larger of the two: requests below the trigger by this figure are not looked at any more (`fitting`).
            state.sized = state.sized[0], max(tokens, state.sized[1])

    def _upstream_of(self, scope: Scope) -> tuple[Upstream, str]:
        """Where a request goes: by the name of an upstream before ``/v1``, else by its path, else by its headers."""
        path = _path_of(scope)
        first, slash, rest = path.lstrip("/").partition("/")
        if first in self._upstreams and slash:
            return self._upstreams[first], "/" + rest
        if f"/v1{path}/".startswith(f"{MESSAGES_PATH}/"):
            path = f"/v1{path}"  # Vercel's AI SDK puts no /v1 behind ANTHROPIC_BASE_URL, as all others do
        wire = wire_of(path)
        if wire is not None and not _GOOGLES_OWN.match(path):  # there Google may speak as OpenAI does
            return self._upstreams[wire.provider], path
        names = {name.lower() for name, _ in scope["headers"]}
        # Paths such as ``/v1/models`` are the same for all providers; their SDKs differ in headers. Only Google takes
        # a key in the address.
        has_key = parse_qs(scope["query_string"].decode("latin-1")).keys() & {"key"}
        if _GOOGLES_OWN.match(path) or has_key or names & {b"x-goog-api-key", b"x-goog-api-client"}:
            return self._upstreams["gemini"], path
        is_anthropic = path.startswith(MESSAGES_PATH) or names & {b"anthropic-version", b"x-api-key"}
        return self._upstreams["anthropic" if is_anthropic else "openai"], path

    def _told(self, call: GatewayCall, status: int, seconds: float) -> None:
        """One line and one count per request. No content, no credential."""
        wire = call.wire.format if call.wire else "other"
        self.metrics.add(
            "requests_total", wire=wire, upstream=call.upstream.name, action=call.action, status=str(status)
        )
        if not log.isEnabledFor(logging.INFO):
            return
        added = (call.sent_at - call.began) if call.sent_at is not None else 0.0
        figures = {
            "wire": wire,
            "upstream": call.upstream.name,
            "path": call.path,
            "status": status,
            "action": call.action,
            "reason": call.reason or None,
            "model": call.model or None,
            "session": call.label or None,
            "bytes": len(call.raw),
            "seconds": round(seconds, 4),
            "added_seconds": round(added, 5),
            **{_KEYS.get(name, name.replace("-", "_")): number(value) for name, value in call.notes.items()},
        }
        shown = {name: value for name, value in figures.items() if value is not None}
        line = " ".join(f"{name}={_in_line(value)}" for name, value in shown.items())
        log.info("%s", line, extra={"figures": shown})


def _in_line(value: object) -> object:
    """A value in a line of the log. A name with a blank could pass for a figure of ours behind it."""
    return json.dumps(value) if isinstance(value, str) and (" " in value or '"' in value) else value


def _path_of(scope: Scope) -> str:
    """The path as it came (decoded and encoded again it could be another one), without that of the place where an
    application of one's own has mounted the gateway: this is none of the provider's.
    """
    path: str = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
    mounted = scope.get("root_path", "").rstrip("/")
    parts = path.split("/")
    depth = mounted.count("/") + 1
    if not mounted or unquote("/".join(parts[:depth])) != mounted:
        return path
    return "/" + "/".join(parts[depth:])


def _problem_of(path: str) -> str:
    """Why a target is sent to no upstream; empty where it may be."""
    if not path.startswith("/"):
        # Behind an upstream's address anything else would name another host: "@host/", ".host/", "http://host/".
        return "the request's target must be a path"
    if any(step in (".", "..") for step in re.split(r"[/\\]", unquote(path))):
        # The upstream, or a proxy before it, would resolve them, and leave the path of the address that the operator
        # gave, with the password that stands in it.
        return "the request's path has the step '.' or '..': give the path that is meant, without it"
    return ""


def _wire_of_errors(upstream: Upstream, path: str) -> GatewayWire:
    """In whose shape a client of this path reads an error, also where the path is no conversation."""
    of_upstream = {"anthropic": MESSAGES, "gemini": CONTENTS}.get(upstream.name, CHAT)
    return wire_of(path) or (MESSAGES if path.startswith(MESSAGES_PATH) else of_upstream)


_GOOGLES_OWN = re.compile(r"/(?:upload/)?v1(?:alpha|beta)\d*/")


def _cut(scope: Scope, text: str) -> BrokenOff:
    """What ends a connection in the middle of an answer."""
    # In HTTP/1.0 an answer may end with its connection, so that a mere end would pass for that of the whole.
    if scope["http_version"] == OF_1_0 and (abort := scope.get(ABORT)) is not None:
        abort()
    return BrokenOff(text)


async def _decline_websocket(send: Send) -> None:
    # At once, and by the status that some clients take as the word to go on in HTTP.
    text = "WebSockets are not spoken here: send the request by HTTP"
    offer = [(b"upgrade", b"HTTP/1.1"), (b"connection", b"close")]
    await _refuse(send, CHAT, 426, "upgrade_required", text, offer)


_KEYS = {"upstream": "upstream_error"}  # where "upstream" is its name
_SMALL_BODY = 1024 * 1024


def _headers_of(answer: UpstreamAnswer, call: GatewayCall) -> list[tuple[bytes, bytes]]:
    # Of two gateways in a row at most one made a view, and the client is told of that one; else of the one it asked.
    given = _redirected(answer.headers, call)
    theirs = {name.lower() for name, _ in given if name.lower().startswith(b"x-contextfold-")}
    if call.action == "passed" and "failure" not in call.notes and b"x-contextfold-action" in theirs:
        return given
    return [*(one for one in given if one[0].lower() not in theirs), *_note_headers(call)]


def _redirected(headers: list[tuple[bytes, bytes]], call: GatewayCall) -> list[tuple[bytes, bytes]]:
    return [(name, call.redirected(value) if name.lower() == b"location" else value) for name, value in headers]


def _note_headers(call: GatewayCall) -> list[tuple[bytes, bytes]]:
    notes = {"action": call.action, **({"reason": call.reason} if call.reason else {}), **call.notes}
    return [(f"x-contextfold-{name}".encode(), value.encode("ascii", "replace")) for name, value in notes.items()]


async def _refuse(
    send: Send, wire: GatewayWire, status: int, kind: str, text: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    body = json.dumps(wire.error(status, kind, text)).encode()
    given = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})
