"""What Windows does not have is asked for nowhere: sessions, archives, batches and a run work without it.

``make types`` finds each name that Python lacks there. What is done there instead is run here, with locks of this
system in place of that one's, and files that cannot be removed while they are open.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from contextfold import Compactor
from contextfold.archive import local, open_archive
from contextfold.batch import outputs
from contextfold.errors import ArchiveError
from contextfold.gateway import run as gateway_run
from contextfold.gateway.settings import GatewaySettings
from contextfold.messages import Media, Message, Text
from contextfold.store import open_store

SAID = {1: Message("user", (Text("one\ntwo\r\n"),)), 2: Message("user", (Media("image", "image/png", data="AA=="),))}


@pytest.fixture(autouse=True)
def _windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if "is_here" in request.fixturenames and request.getfixturevalue("is_here"):
        return
    locks = ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, count: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError("Permission denied") from None

    vars(locks).update(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", locks)
    for module in (local, gateway_run):
        monkeypatch.setattr(module, "sys", SimpleNamespace(platform="win32"))

    unlink = os.unlink

    def open_without_folders(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise PermissionError(f"Permission denied: {path}")
        return os.open(path, flags, mode)

    def unlink_what_is_closed(path: Any, **more: Any) -> None:
        folder = Path("/proc/self/fd")
        is_ours = tmp_path in Path(path).parents and folder.is_dir()
        if is_ours and any(os.path.realpath(folder / name) == str(path) for name in os.listdir(folder)):
            raise PermissionError(f"The process cannot access the file because it is being used: {path}")
        unlink(path, **more)

    lacking = {"O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC"}
    here = {name: value for name, value in vars(os).items() if name not in lacking}
    monkeypatch.setattr(local, "os", SimpleNamespace(**{**here, "open": open_without_folders}))
    monkeypatch.setattr(os, "unlink", unlink_what_is_closed)


def test_a_session_with_an_archive_keeps_all_that_was_said(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/sessions.db")
    session = Compactor(window=2_000).session("thread", store, archive=str(tmp_path / "archive"))
    session.append([{"role": "user", "content": f"Step {number}: " + "go on " * 50} for number in range(60)])
    assert session.compact().changed
    evicted = 60 - len(session.view())
    assert len(open_archive(tmp_path / "archive").thread("thread").indices()) >= evicted > 0
    store.close()


def test_an_archive_gives_back_what_was_put_there_and_deletes_it(tmp_path: Path) -> None:
    thread = open_archive(tmp_path / "archive").thread("thread")
    thread.append(SAID)
    assert open_archive(tmp_path / "archive").thread("thread").read()[0].text.strip() == "one\ntwo"
    thread.delete()
    assert [path for path in (tmp_path / "archive").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["{}.md", "{}.media", "{}.md.lock", "."])
def test_a_link_at_a_name_of_ours_is_not_followed(tmp_path: Path, name: str) -> None:
    thread = open_archive(tmp_path / "archive").thread("thread")
    folder, own = os.path.split(thread.path.removesuffix(".md"))
    link, elsewhere = Path(os.path.normpath(os.path.join(folder, name.format(own)))), tmp_path / "elsewhere"
    elsewhere.mkdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(ArchiveError, match="symbolic link"):
        thread.append(SAID)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("is_here", [True, False], ids=["here", "windows"])
def test_who_writes_a_thread_waits_for_another_process_that_does(tmp_path: Path, is_here: bool) -> None:
    thread = open_archive(tmp_path / "archive").thread("thread")
    thread.append({0: Message("user", (Text("zero"),))})
    writer = threading.Thread(target=thread.append, args=[SAID])
    with open(f"{thread.path}.lock", "r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.2)
        assert writer.is_alive()
        assert thread.indices() == [0]
    writer.join(10)
    assert thread.indices() == [0, 1, 2]


def test_of_a_batch_what_was_left_behind_goes_and_what_another_run_writes_stays(tmp_path: Path) -> None:
    folder = outputs.ResultFolder(str(tmp_path))
    left, written = tmp_path / ".part-1.jsonl.a.tmp", tmp_path / ".part-2.jsonl.b.tmp"
    left.touch()
    with open(written, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        folder.remove_left_overs()
        assert sorted(tmp_path.iterdir()) == [written]


def test_a_run_starts_its_program_under_the_name_that_was_found(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "agent"  # stands for agent.cmd, which Windows starts under its whole name alone
    program.symlink_to(shutil.which("python3", path=os.path.dirname(sys.executable)) or sys.executable)
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = ["agent", "-c", "import sys; print(sys.orig_argv[0])"]
    settings = GatewaySettings(store=f"sqlite:///{tmp_path}/gateway.db")
    assert gateway_run.run(command, settings, environ) == 0
    assert capfd.readouterr().out.strip() == str(program)


def test_ctrl_c_is_left_to_the_console_which_tells_the_program_itself() -> None:
    assert gateway_run._is_from_terminal()
