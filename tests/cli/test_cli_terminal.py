"""What a stranger wrote is shown on a person's terminal, and never obeyed there."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from contextfold import Compactor
from effort import crossed

HOSTILE = "\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07gone\x9b31m\x7f\b\r"
"""Clears the screen, writes to the clipboard, colors, and takes back what stands there."""
MESSAGES = [
    {"role": "user", "content": f"port {HOSTILE} 5432"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": HOSTILE, "type": "function", "function": {"name": f"run{HOSTILE}", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": HOSTILE, "content": f"port {HOSTILE} is taken\n" * 400},
    {"role": "assistant", "content": f"Port {HOSTILE} 5432 is taken by postgres."},
    {"role": "user", "content": "go on"},
]
OURS = re.compile(r"\r?\x1b\[(?:[0-9;]*m|\?25[hl]|2K|1A)|\r\n")
"""What rich writes: colors, and how it draws a bar anew. And the ends of lines on a terminal."""


def on_a_terminal(*arguments: str) -> str:
    """What a command writes to a terminal, on both streams."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "contextfold", *arguments]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    written = b""
    try:
        while piece := os.read(master, 65_536):
            written += piece
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(master)
        process.wait()
    return written.decode()


def store_of(folder: Path) -> str:
    url = f"sqlite:///{folder / 'sessions.db'}"
    session = Compactor(window=2_000).session(f"talk{HOSTILE}", url)
    session.append(MESSAGES)
    session.compact()
    return url


@crossed(
    arguments=[
        lambda folder: ("inspect", str(folder / f"file{HOSTILE}")),
        lambda folder: ("compact", str(folder / f"file{HOSTILE}"), "--window", "1000"),
        lambda folder: ("compact", str(folder / f"several{HOSTILE}")),
        lambda folder: ("recall", str(folder / f"file{HOSTILE}"), "port"),
        lambda folder: ("recall", str(folder / f"file{HOSTILE}"), f"nothing{HOSTILE}"),
        lambda folder: ("inspect", str(folder / f"nowhere{HOSTILE}")),
        lambda folder: ("view", str(folder / f"file{HOSTILE}"), "--out", str(folder / f"out{HOSTILE}")),
        lambda folder: ("sessions", "list", "--store", store_of(folder)),
        lambda folder: ("sessions", "show", f"talk{HOSTILE}", "--store", store_of(folder)),
        lambda folder: ("sessions", "compact", f"talk{HOSTILE}", "--store", store_of(folder)),
        lambda folder: (
            "batch",
            "check",
            str(folder / f"bad{HOSTILE}.json"),
            "-o",
            str(folder / "o.jsonl"),
            "--workers=0",
        ),
    ],
    quick=4,
)
def test_control_codes_are_shown_on_a_terminal_and_never_obeyed(
    arguments: Callable[[Path], tuple[str, ...]], tmp_path: Path
) -> None:
    bad = [{"role": f"robot{HOSTILE}", "content": "x"}, {"role": "user", "content": "y"}]
    several = [{"messages": MESSAGES}, {"messages": MESSAGES}]
    for name, value in (("file", MESSAGES), ("several", several), ("bad", bad)):
        path = tmp_path / (f"{name}{HOSTILE}" + (".json" if name == "bad" else ""))
        path.write_text(json.dumps(value), encoding="utf-8")
    written = OURS.sub("", on_a_terminal(*arguments(tmp_path)))
    assert "gone" in written, "it is shown"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", written)
