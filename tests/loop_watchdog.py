"""Async code never blocks the event loop: every call that could block is noticed in the loop's own thread.

The interpreter tells a profile function about each call of a function written in C, and Python code blocks in no other
place. So nothing is patched, and unlike a stopwatch the verdict does not depend on how busy the machine is.
"""

from __future__ import annotations

import io
import socket
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

FUNCTIONS = {
    "time": {"sleep"},
    "posix": {"access", "link", "listdir", "lstat", "mkdir", "open", "read", "readlink", "remove", "rename", "replace"}
    | {"rmdir", "scandir", "stat", "statvfs", "symlink", "unlink", "write"},
    "io": {"open", "open_code"},
}
"""By the module that holds them. Anything here waits for a disk, a pipe or a clock."""

METHODS = {"read", "readline", "readlines", "readinto", "write", "flush"}
FILES = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
SOCKET = {"connect", "accept", "send", "sendall", "sendto", "recv", "recv_into", "recvfrom", "recvmsg"}
SQLITE = {"execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall", "commit", "rollback"}

PATIENT = ("asyncio/", "linecache.py")
"""Files that call what looks as if it could block, and knows better: the loop itself, and tracebacks."""
PATIENTLY = {
    ("<frozen importlib._bootstrap>", "_find_and_load"),  # an import, which happens once
    ("threading.py", "start"),  # waits until the thread runs
    ("threading.py", "_is_owned"),  # asks, with blocking=False
    ("concurrent/futures/thread.py", "submit"),
}
"""The end of a file and a function inside which everything may wait."""


@contextmanager
def nothing_blocks(below: str = "") -> Iterator[None]:
    """Fail if this thread, which runs an event loop, calls what can block; with ``below`` only inside that package."""
    found: list[str] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and can_block(called) and not is_patient(frame):
            stack = traceback.extract_stack(frame, limit=60)
            if any(f"/{below}/" in line.filename for line in stack) or not below:
                where = "".join(traceback.format_list(stack[-6:]))
                found.append(f"{called.__qualname__} in the event loop:\n{where}")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert not found, f"{len(found)} calls, the first of them {found[0]}"


def can_block(called: Any) -> bool:
    name, owner = called.__name__, called.__self__
    if isinstance(owner, ModuleType):
        return name in FUNCTIONS.get(owner.__name__.lstrip("_"), ())
    if isinstance(owner, socket.socket):
        return name in SOCKET and owner.gettimeout() != 0
    if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
        return name in SQLITE
    if isinstance(owner, FILES):
        return name in METHODS and owner not in (sys.stdout, sys.stderr) and not owner.closed and owner.fileno() > 2
    return name == "acquire" and type(owner).__name__ == "lock" and owner.locked()


def is_patient(frame: FrameType | None) -> bool:
    """Whether waiting is in order there."""
    if frame is not None and any(place in frame.f_code.co_filename for place in PATIENT):
        return True
    while frame is not None:
        code = frame.f_code
        if any(code.co_name == name and code.co_filename.endswith(file) for file, name in PATIENTLY):
            return True
        frame = frame.f_back
    return False
