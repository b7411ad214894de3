"""The page on loopback: a report, or a store that is followed while its sessions run.

Who may read: anyone with the token, which is part of the address that is printed and opened. Requests must name this
server as their host, so that no page of another origin reaches it by a name that it made resolve to loopback; what
changes something is a POST that also carries a header no form can send, and exists only where it was allowed.

What belongs here: routes, who may ask, and telling pages that something changed. What does not: what a document holds
(``stored``), and the page (``page``).
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from contextfold.errors import ContextfoldError, InputError, StoreCorrupt
from contextfold.inspector import page, records
from contextfold.inspector.document import as_json, redactor
from contextfold.inspector.money import LISTS
from contextfold.inspector.records import THROUGH_GATEWAY
from contextfold.inspector.stored import StoredFigures, figures, row, stored
from contextfold.store import Thread
from contextfold.store.database import Database

HOST = "127.0.0.1"
POLL = 1.0
"""Seconds between looks at a store. Pages are told within this time."""
ALIVE = 15
"""Looks after which a page that has nothing to hear gets a comment, so that both ends know of each other."""
WORK = 0.5
"""Seconds of a look that may go into figures of sessions that changed; the others wait for the next one."""

_OURS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")
"""The whole of a ``Host`` header: what stands behind a colon is a port, and no other name."""

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Change = Callable[[Thread], str]
"""Does something to a session and says in a sentence what was done; raises ``ContextfoldError``."""


class Source(Protocol):
    """Where live sessions are: ``Store`` here, and whatever else keeps records of them."""

    @property
    def name(self) -> str: ...

    def sessions(self) -> list[dict[str, Any]]:
        """The lines of the list, as ``stored.row`` makes them, what was written to last first."""
        ...

    def document(self, thread: Thread) -> dict[str, Any]:
        """The document of a session as it is now."""
        ...

    def signature(self, thread: Thread | None) -> Any:
        """Something that differs once a session, or any of them, has changed."""
        ...


@dataclass
class Store:
    """The sessions of a store."""

    store: Any
    name: str
    namespace: str = ""
    _figures: dict[str, tuple[Any, StoredFigures]] = field(default_factory=dict)
    _damage: dict[str, str] = field(default_factory=dict)
    """Thread key -> what of its messages or summaries cannot be read."""
    errors: dict[str, str] = field(default_factory=dict)
    """Thread key -> what failed last when it was asked for here."""
    _hidden: dict[str, Thread] = field(default_factory=dict)
    """Sessions whose names hold what looks like a key, by what the list calls them."""
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def named(self, thread: Thread) -> Thread:
        """The session that a page asks for, by its name or by what the list calls it."""
        return self._hidden.get(thread.id, thread)

    def _shown(self, thread: Thread, clean: Callable[[str], str]) -> str:
        """A session's name without keys. What such a name loses may be all that told it from others, and the page asks
        for a session by its name: so it gets a mark, which tells nothing of the key.
        """
        shown = clean(thread.id)
        if shown == thread.id:
            return shown
        mark = hmac.digest(self._secret, thread.key.encode(), "sha256").hex()[:8]
        self._hidden[f"{shown} {mark}"] = thread
        return f"{shown} {mark}"

    def sessions(self) -> list[dict[str, Any]]:
        until = time.monotonic() + WORK
        clean = redactor()
        lines = []
        for state in self.store.sessions(self.namespace):
            found = self._known(state, until)
            error = self._damage.get(state.thread.key) or self.errors.get(state.thread.key, "")
            line = row(state, found, clean(error))
            lines.append({**line, "thread": self._shown(state.thread, clean)})
        return lines

    def _known(self, state: Any, until: float) -> StoredFigures | None:
        """The figures of a session; old ones, or none, where there is no time for new ones in this look."""
        signature = (state.message_count, state.revision)
        known = self._figures.get(state.thread.key)
        if (known is None or known[0] != signature) and time.monotonic() < until:
            made = self._made(state)
            if made is None:  # not remembered: a backup that is restored has the same signature
                return None
            known = self._figures[state.thread.key] = (signature, made)
        return known[1] if known else None

    def _made(self, state: Any) -> StoredFigures | None:
        """The figures of a session as it is now; none of one that is damaged, whose line says so among the others."""
        self._damage.pop(state.thread.key, None)
        try:
            return figures(stored(self.store, state.thread), LISTS[0].key)
        except StoreCorrupt as error:
            self._damage[state.thread.key] = str(error)
            return None

    def document(self, thread: Thread) -> dict[str, Any]:
        return stored(self.store, self.named(thread))

    def signature(self, thread: Thread | None) -> Any:
        if thread is None:
            states = self.store.sessions(self.namespace)
            waiting = sum((state.message_count, state.revision) != self._signed(state.thread) for state in states)
            return [(state.thread.key, *_signature(state)) for state in states], waiting
        return _signature(self.store.load(self.named(thread)))

    def _signed(self, thread: Thread) -> Any:
        known = self._figures.get(thread.key)
        return known[0] if known else None


def _signature(state: Any) -> tuple[Any, ...]:
    return state.message_count, state.revision, state.is_summarizing


@dataclass(frozen=True)
class GatewayRecords:
    """Conversations that went through a gateway: what it keeps of them, in the database of a store."""

    database: Database
    name: str

    def sessions(self) -> list[dict[str, Any]]:
        return [{**records.row(line), "namespace": THROUGH_GATEWAY} for line in records.lines(self.database)]

    def document(self, thread: Thread) -> dict[str, Any]:
        if (line := records.find(self.database, thread.id)) is None:
            raise InputError(f"the gateway has no records of a conversation {thread.id!r} any more")
        return records.recorded(line)

    def signature(self, thread: Thread | None) -> Any:
        return records.signature(self.database)


@dataclass(frozen=True)
class Together:
    """A store and the gateway that keeps its records in the same database."""

    store: Store
    gateway: GatewayRecords

    @property
    def name(self) -> str:
        return self.store.name

    def sessions(self) -> list[dict[str, Any]]:
        found = [*self.store.sessions(), *self.gateway.sessions()]
        return sorted(found, key=lambda line: -(line["updated_at"] or 0))

    def document(self, thread: Thread) -> dict[str, Any]:
        return self._of(thread).document(thread)

    def signature(self, thread: Thread | None) -> Any:
        if thread is None:
            return self.store.signature(None), self.gateway.signature(None)
        return self._of(thread).signature(thread)

    def _of(self, thread: Thread) -> Source:
        return self.gateway if thread.namespace == THROUGH_GATEWAY else self.store


@dataclass(frozen=True)
class Live:
    """What a server of a source is allowed: ``thread`` alone (None: all), and these changes (none: it only reads)."""

    source: Source
    thread: Thread | None = None
    changes: Mapping[str, Change] = field(default_factory=dict)


def report_app(document: Mapping[str, Any], token: str) -> Starlette:
    """A server of one report."""
    body = page.report(document)
    data = as_json(document)

    async def show(_: Request) -> Response:
        return _html(body, page.policy(connects=False))

    async def plain(_: Request) -> Response:
        return Response(data, media_type="application/json")

    return _app({"/": show, "/api/document": plain}, {}, token)


def live_app(live: Live, token: str) -> Starlette:
    """A server of the sessions of a source."""
    source = live.source

    async def show(request: Request) -> Response:
        if live.thread is None and request.url.path == "/":
            return _html(page.live(source.name, {"mode": "list", "store": source.name}), page.policy(connects=True))
        thread = _thread(request, live)
        config = {
            "mode": "live",
            "thread": thread.id,
            "namespace": thread.namespace,
            "list": live.thread is None,
            "follows": True,
            "allow": bool(live.changes) and thread.namespace != THROUGH_GATEWAY,
        }
        return _html(page.live(thread.id, config), page.policy(connects=True))

    async def sessions(_: Request) -> Response:
        if live.thread is not None:
            return PlainTextResponse("this server shows one session", 404)
        return _json({"sessions": await anyio.to_thread.run_sync(source.sessions)})

    async def document(request: Request) -> Response:
        return _json(await anyio.to_thread.run_sync(source.document, _thread(request, live)))

    async def events(request: Request) -> Response:
        thread = None if live.thread is None and not request.query_params.get("thread") else _thread(request, live)
        return StreamingResponse(_changes(source, thread), media_type="text/event-stream")

    def doing(change: Change) -> Callable[[Request], Awaitable[Response]]:
        async def do(request: Request) -> Response:
            # Pages of other sites can post a form here, but no form sets a header.
            if request.headers.get("x-contextfold") != "view":
                return PlainTextResponse("a change is asked for by the page alone", 403)
            return _json({"said": await anyio.to_thread.run_sync(change, _thread(request, live))})

        return do

    reading = {
        "/": show,
        "/session": show,
        "/api/sessions": sessions,
        "/api/document": document,
        "/api/events": events,
    }
    return _app(reading, {f"/api/{name}": doing(change) for name, change in live.changes.items()}, token)


async def _changes(source: Source, thread: Thread | None) -> AsyncIterator[bytes]:
    """An event whenever something has changed since this connection began."""
    known, quiet = await _signature_now(source, thread), 0
    yield b"retry: 1000\n\n"
    while True:
        await anyio.sleep(POLL)
        now = await _signature_now(source, thread)
        if now is None:
            continue
        quiet += 1
        if now != known:
            known, quiet = now, 0
            yield b"event: change\ndata: {}\n\n"
        elif quiet % ALIVE == 0:
            yield b": still here\n\n"


async def _signature_now(source: Source, thread: Thread | None) -> Any:
    """The signature; None while it cannot be read, on a full disk for instance: a look that follows tells."""
    try:
        return await anyio.to_thread.run_sync(source.signature, thread)
    except ContextfoldError:
        return None


def _thread(request: Request, live: Live) -> Thread:
    if live.thread is not None:
        return live.thread
    return Thread(request.query_params.get("namespace", ""), request.query_params.get("thread", ""))


def _html(body: bytes, policy: str) -> Response:
    framed = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return Response(body, media_type="text/html", headers=framed)


def _json(value: Any) -> Response:
    return Response(as_json(value), media_type="application/json")


# ---- who may ask ----


def _app(reading: Mapping[str, Any], changing: Mapping[str, Any], token: str) -> Starlette:
    routes = [Route(path, do, methods=["GET"]) for path, do in reading.items()]
    routes += [Route(path, do, methods=["POST"]) for path, do in changing.items()]
    return Starlette(routes=[_guarded(route, token) for route in routes], exception_handlers={ContextfoldError: _told})


def _guarded(route: Route, token: str) -> Route:
    async def endpoint(request: Request) -> Response:
        refused = _refusal(request, token)
        if refused:
            return PlainTextResponse(refused, 403, headers=HEADERS)
        response: Response = await route.endpoint(request)
        response.headers.update(HEADERS)
        return response

    return Route(route.path, endpoint, methods=list(route.methods or ()))


def _refusal(request: Request, token: str) -> str:
    # Another site's name may be made to resolve to loopback; its pages would read what this server answers.
    if not _OURS.fullmatch(request.headers.get("host", "")):
        return "this server answers on loopback alone"
    origin = request.headers.get("origin")
    # A browser says where a request comes from; without an origin it is one that the person made.
    if origin is not None and origin.partition("//")[2] != request.headers.get("host"):
        return "this server answers its own pages alone"
    given = request.query_params.get("token", "")
    # In constant time: a page of another origin could measure how much of a guess was right.
    if not hmac.compare_digest(given.encode(), token.encode()):
        return "the address lacks its token: open the one that contextfold view printed"
    return ""


async def _told(_: Request, error: Exception) -> Response:
    return PlainTextResponse(redactor()(str(error)), 409, headers=HEADERS)


# ---- running ----


def new_token() -> str:
    return secrets.token_urlsafe(24)


def serve(app: Starlette, port: int, opened: Callable[[int], object]) -> None:
    """Serve on loopback until interrupted. ``port`` 0 takes a free one; ``opened(port)`` is called once it listens."""
    import uvicorn

    listener = socket.socket(proto=socket.IPPROTO_TCP)  # or asyncio sends each second answer 40 ms late
    if os.name == "posix":  # Windows would let two listen on one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    listener.listen(64)
    # Streams of events end with the page only: Ctrl-C waits no longer than a second for them.
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, access_log=False)
    opened(listener.getsockname()[1])
    uvicorn.Server(config).run(sockets=[listener])
