"""What the gateway adds to a request: side by side in one run with the direct connection, a pass-through of the same
stack without us, and litellm's proxy where one is installed.

    python benchmarks/gateway.py [--sizes 10,200,2000] [--connections 1,16,64] [--requests 60] [--rounds 1]
                                 [--litellm PATH]

Each connection is a conversation of its own that grows by two messages per request, as an agent's does. The upstream
answers at once, plain or as a stream of events. Every server is a process of its own; figures of one run compare with
each other and with nothing else, so look at the ratios. ``--litellm`` is the ``litellm`` program of an environment of
its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATH = "/v1/chat/completions"
KEY = "sk-" + "b" * 48
"""litellm wants one; the others take any."""
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok " * 40}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 40, "total_tokens": 1_040},
}
EVENTS = 30
LENGTH = b"\r\ncontent-length:"
"""With the line break: litellm hands the upstream's headers on as ``llm_provider-content-length`` and the like."""
WARM = 2
"""Requests of each connection before anything is measured: a conversation is read whole once."""


# ---- the servers; each is this file run with another first word ----


def upstream(port: int) -> None:
    """Reads a request and answers it; nothing else."""
    plain = json.dumps(ANSWER).encode()
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(plain), plain)
    piece = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"ok ok ok "}}]}\n\n'
    end = b"data: [DONE]\n\n"
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lower = head.lower()
                if b"content-length:" in lower:
                    length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
                    body = await reader.readexactly(length)
                else:
                    body = await _chunked(reader)
                if b'"stream":true' not in body[-200:] and b'"stream": true' not in body[:200] + body[-200:]:
                    writer.write(whole)
                    continue
                writer.write(opening)
                for _ in range(EVENTS):
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", port, limit=16 * 1024 * 1024)
        await server.serve_forever()

    _with_uvloop(serve())


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


def _with_uvloop(work: Any) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def pass_through(port: int, target: str) -> None:
    """The same stack without us: uvicorn and Starlette in front, aiohttp behind, nothing read."""
    import aiohttp
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    sessions: list[aiohttp.ClientSession] = []

    async def proxy(request: Request) -> StreamingResponse:
        if not sessions:
            connector = aiohttp.TCPConnector(limit=1_000)
            sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        body = await request.body()
        answer = await sessions[0].request(request.method, target + request.url.path, headers=headers, data=body)
        kept = {name: value for name, value in answer.headers.items() if name.lower() != "transfer-encoding"}
        return StreamingResponse(answer.content.iter_any(), answer.status, kept)

    app = Starlette(routes=[Route("/{path:path}", proxy, methods=["GET", "POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, ws="none")


def litellm_config(target: str, folder: Path) -> Path:
    config = {
        "model_list": [
            {"model_name": "m", "litellm_params": {"model": "openai/m", "api_base": target + "/v1", "api_key": "k"}}
        ]
    }
    file = folder / "litellm.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


# ---- the load ----


@dataclass(frozen=True)
class Row:
    """Milliseconds and requests per second of one server under one load. ``cpu``: milliseconds of its own for each
    request, which other work on the machine changes least.
    """

    p50: float
    p99: float
    rate: float
    cpu: float = 0.0


def conversation(size: int, seed: int, count: int, stream: bool) -> list[bytes]:
    """``count`` requests of one conversation; the first has about ``size`` bytes, each has two messages more."""
    rng = random.Random(seed)
    messages: list[dict[str, str]] = [{"role": "system", "content": f"You are agent {seed}."}]
    length = 0
    while length < size:
        text = f"{seed} {rng.choice(paragraphs())}"
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": f"{len(messages)} done"}]
        length += len(text) + 90
    bodies = []
    for turn in range(count):
        messages = [*messages, {"role": "assistant", "content": f"turn {turn}"}, {"role": "user", "content": "go on"}]
        body = {"model": "m", "messages": messages}
        bodies.append(json.dumps(body | ({"stream": True} if stream else {}), separators=(",", ":")).encode())
    return bodies


@cache
def paragraphs() -> list[str]:
    """What is said, in many ways: making it up for each message would take longer than the measurement."""
    rng = random.Random(0)
    words = ["path/to/file.py", "error", "result", "4711", "value", "return", "def", "context"]
    return [" ".join(rng.choices(words, k=160)) for _ in range(5_000)]


async def one_connection(port: int, bodies: list[bytes], times: list[float], warm: asyncio.Barrier) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * 1024 * 1024)
    head = "POST {} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\n"
    head += "content-length: {}\r\n\r\n"
    for number, body in enumerate(bodies):
        if number == WARM:
            await warm.wait()
            # the others may have taken longer than a server keeps an idle connection
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * 1024 * 1024)
        began = time.perf_counter()
        writer.write(head.format(PATH, KEY, len(body)).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        lower = answer.lower()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{answer[:300]!r} {await reader.read(500)!r}")
        if LENGTH in lower:
            await reader.readexactly(int(lower.partition(LENGTH)[2].partition(b"\r\n")[0]))
        else:
            await _chunked(reader)
        if number >= WARM:
            times.append(time.perf_counter() - began)
    writer.close()


def cpu_seconds(process_id: int) -> float:
    """User and system time of a process, from Linux's ``/proc``; 0 elsewhere."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(port: int, process_id: int, size: int, connections: int, requests: int, stream: bool) -> Row:
    each = max(3, requests // connections) + WARM
    all_bodies = [conversation(size, seed, each, stream) for seed in range(connections)]
    times: list[float] = []
    warm = asyncio.Barrier(connections + 1)
    work = asyncio.gather(*(one_connection(port, bodies, times, warm) for bodies in all_bodies))
    waiting = asyncio.ensure_future(warm.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)  # work ends first only where it fails
    began, spent = time.perf_counter(), cpu_seconds(process_id)
    await work
    seconds, spent = time.perf_counter() - began, cpu_seconds(process_id) - spent
    times.sort()
    at99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    return Row(statistics.median(times) * 1e3, at99 * 1e3, len(times) / seconds, spent / len(times) * 1e3)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def process(words: list[str], port: int, environ: dict[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """A server: the port that it listens on, and its process id."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(environ or {})}
    child = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 180
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if child.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{words} does not listen") from None
                time.sleep(0.1)
        yield port, child.pid
    finally:
        child.terminate()
        child.wait(30)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[10, 200, 2_000], help="kB of a request")
    parser.add_argument("--connections", type=numbers, default=[1, 16, 64])
    parser.add_argument("--requests", type=int, default=60, help="measured per load, over all connections")
    parser.add_argument("--rounds", type=int, default=1, help="servers take turns; the least disturbed round counts")
    parser.add_argument("--window", type=int, default=100_000, help="tokens; 200 kB are some 60,000: read, not changed")
    parser.add_argument("--litellm", help="the litellm program of an environment of its own")
    parser.add_argument("--output", help="write the figures there, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    target_port = free_port()
    target = f"http://127.0.0.1:{target_port}"
    me = [sys.executable, str(Path(__file__).resolve())]
    through, ours, theirs = free_port(), free_port(), free_port()
    gateway = [sys.executable, "-m", "contextfold", "gateway", "--port", str(ours), "--upstream", f"openai={target}/v1"]
    gateway += ["--window", str(arguments.window), "--store", f"sqlite:///{folder / 'g.db'}", "--log", "none"]
    found: list[dict[str, Any]] = []
    with (
        process([*me, "upstream", str(target_port)], target_port) as direct,
        process([*me, "pass-through", str(through), target], through) as passing,
        process(gateway, ours) as own,
    ):
        servers = {"direct": direct, "pass-through": passing, "contextfold": own}
        if arguments.litellm:
            words = [arguments.litellm, "--config", str(litellm_config(target, folder)), "--port", str(theirs)]
            with process(words, theirs, {"LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": KEY}) as litellm:
                time.sleep(5)
                found = all_loads(arguments, {**servers, "litellm": litellm})
        else:
            found = all_loads(arguments, servers)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def all_loads(arguments: argparse.Namespace, servers: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    found = []
    print("| body | connections | answer | server | p50 ms | p99 ms | requests/s | CPU ms | p50 / pass-through |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in arguments.sizes:
        for connections in arguments.connections:
            for stream in (False, True):
                rows: dict[str, Row] = {}
                turns = [name for _ in range(arguments.rounds) for name in servers]
                for name in turns:
                    if name == "litellm" and (size * connections > 4_000 or name in rows):
                        continue  # minutes per load
                    try:
                        asked = (size * 1_000, connections, arguments.requests, stream)
                        row = asyncio.run(load(*servers[name], *asked))
                    except (RuntimeError, OSError, EOFError) as error:
                        print(f"| {size} kB | {connections} | | {name} failed: {str(error)[:80]} | | | | | |")
                        continue
                    rows[name] = min(row, rows.get(name, row), key=lambda one: one.p50)
                for name, row in rows.items():
                    ratio = row.p50 / rows["pass-through"].p50
                    kind = "stream" if stream else "plain"
                    print(
                        f"| {size} kB | {connections} | {kind} | {name} | {row.p50:.1f} | {row.p99:.1f} "
                        f"| {row.rate:.0f} | {row.cpu:.2f} | {ratio:.2f} |",
                        flush=True,
                    )
                    found.append({"kB": size, "connections": connections, "answer": kind, "server": name, **vars(row)})
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["upstream"]:
        upstream(int(sys.argv[2]))
    elif sys.argv[1:2] == ["pass-through"]:
        pass_through(int(sys.argv[2]), sys.argv[3])
    else:
        main()
