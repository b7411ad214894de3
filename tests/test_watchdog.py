"""What the watchdog of the event loop notices, and what it lets pass."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from loop_watchdog import nothing_blocks


def run(work: Callable[[], object], below: str = "") -> None:
    async def main() -> None:
        with nothing_blocks(below):
            made = work()
            if isinstance(made, Awaitable):
                await made

    asyncio.run(main())


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.001)


def connect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def ask_a_database() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("select 1")


BLOCKING: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(0.001),
    "open a file": lambda: open(__file__).close(),
    "write a file": lambda: Path(os.devnull).write_text("x"),
    "look for a file": Path(__file__).exists,
    "list a folder": lambda: os.listdir("/"),
    "wait for a lock": wait_for_a_lock,
    "wait for an event": lambda: threading.Event().wait(0.001),
    "ask a database": ask_a_database,
    "connect": connect,
    "run a program": lambda: subprocess.run(["true"], check=True),
}


@pytest.mark.parametrize("what", BLOCKING)
def test_it_notices_what_blocks(what: str) -> None:
    with pytest.raises(AssertionError, match="in the event loop") as error:
        run(BLOCKING[what])
    assert "test_watchdog.py" in str(error.value) or what == "run a program"


def test_it_lets_pass_what_waits_as_a_loop_should() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1))
        writer.close()

    async def work() -> None:
        await asyncio.sleep(0.001)
        await asyncio.to_thread(time.sleep, 0.001)
        await asyncio.to_thread(Path(__file__).read_text)
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"x")
            assert await reader.read(1) == b"x"
            writer.close()
        threading.Lock().acquire()
        threading.Thread(target=time.sleep, args=(0.001,)).start()
        import mailbox  # noqa: F401 - an import reads files

        sys.stdout.write("said")

    run(work)


def test_it_can_look_at_one_package_alone() -> None:
    run(lambda: time.sleep(0.001), below="contextfold")
    with pytest.raises(AssertionError):
        run(lambda: time.sleep(0.001), below="tests")


def test_a_failure_of_the_work_is_what_is_reported() -> None:
    def work() -> None:
        time.sleep(0.001)
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        run(work)
