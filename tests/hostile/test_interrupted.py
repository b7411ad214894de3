"""Work that is interrupted: cancelled at every await point, killed, without room, without rights. Nothing is lost, no
lease stays behind, and it goes on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any

import pytest

from contextfold import Compactor, Policy
from contextfold.archive import open_archive
from contextfold.errors import ArchiveError, ContextfoldError, StoreUnavailable
from contextfold.store import open_store
from contextfold.testing.dict_store import DictStore

PATIENCE = 10.0


def said(count: int) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"{role} {n} " + f"about part_{n}.py " * 60}
        for n in range(count)
        for role in ("user", "assistant")
    ] + [{"role": "user", "content": "and now, in room_77?"}]


@coroutine
def cancelled_at(point: int, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, bool]:
    """Drive ``work``, and cancel its task where it waits for the ``point``-th time. Whether it came to that."""
    sent: Any = None
    waits = 0
    failure: BaseException | None = None
    while True:
        try:
            waiting = work.throw(failure) if failure is not None else work.send(sent)
        except StopIteration:
            return waits > point
        except asyncio.CancelledError:
            assert waits > point, "it was cancelled by no one"
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return True
        if waits == point:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        waits += 1
        failure = None
        try:
            sent = yield waiting
        except BaseException as error:  # noqa: BLE001 - handed on to the work, as the loop would
            failure = error


async def summarize(prompt: str) -> str:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return "They went through the parts in order."


async def send(view: list[Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"choices": [{"message": {"role": "assistant", "content": "fine"}}]}


def every_point(run: Callable[[int], Awaitable[bool]], step: int = 1) -> int:
    """Cancel at the first await point, the next (``step`` later), and on until the work ends; the last one's number."""
    points = 0
    while asyncio.run(_one(run, points)):
        points += step
        assert points < 2_000
    return points


async def _one(run: Callable[[int], Awaitable[bool]], point: int) -> bool:
    return await run(point)


@pytest.mark.parametrize("method", ["acompact", "acall"])
def test_a_compactor_that_is_cancelled_anywhere_changes_nothing(method: str, tmp_path: Path) -> None:
    history = said(20)
    before = json.dumps(history)
    compactor = Compactor(window=3_000, summarizer=summarize)
    archive = open_archive(tmp_path.as_uri()).thread("t")

    async def run(point: int) -> bool:
        work = (
            compactor.acompact(history, archive=archive)
            if method == "acompact"
            else compactor.acall(send, history, archive=archive)
        )
        return await cancelled_at(point, work)

    assert every_point(run) > 6
    assert json.dumps(history) == before
    assert compactor.compact(history, archive=archive).changed
    assert len(archive.read()) > 0


class Down(Exception):
    status_code = 503


class RolesRefused(Exception):
    status_code = 400


@pytest.mark.parametrize(
    "error",
    [Down("the provider is down"), RolesRefused("messages: roles must alternate between user and assistant")],
    ids=["down", "malformed"],
)
def test_a_summary_that_is_paid_for_is_not_paid_again_wherever_the_call_that_finds_it_is_cancelled(
    error: Exception,
) -> None:
    """It is not in force, since no view of it was answered."""
    paid = 0
    history = said(20)

    async def counted(prompt: str) -> str:
        nonlocal paid
        paid += 1
        return await summarize(prompt)

    async def refuse(view: list[Any]) -> Any:
        await asyncio.sleep(0)
        raise error

    compactor = Compactor(window=3_000, summarizer=counted)

    async def run(point: int) -> bool:
        with contextlib.suppress(Down, RolesRefused):
            return await cancelled_at(point, compactor.acall(refuse, history))
        return False

    assert not asyncio.run(_one(run, 2_000))
    assert paid == 1
    assert every_point(run) > 3
    assert paid == 1


@pytest.mark.parametrize("method", ["acompact", "acall"])
def test_a_pass_that_is_made_is_not_paid_again_wherever_its_call_is_cancelled_from_there_on(method: str) -> None:
    answered, in_force = 0, 0
    history = said(20)
    made: list[Any] = []

    async def counted(prompt: str) -> str:
        nonlocal answered
        text = await summarize(prompt)
        answered += 1
        return text

    async def run(point: int) -> bool:
        nonlocal answered, in_force
        compactor, answered = Compactor(window=3_000, summarizer=counted), 0
        made.clear()
        options: Any = {"after": made.append}
        work = (
            compactor.acompact(history, **options)
            if method == "acompact"
            else compactor.acall(send, history, **options)
        )
        if not await cancelled_at(point, work):
            return False
        if made:
            in_force += 1
            await compactor.acompact(history)
            assert answered == 1, f"cancelled where it waits for the {point}th time"
        return True

    assert every_point(run) > 6
    assert in_force > 1


@pytest.mark.parametrize("method", ["acompact", "acall", "in the background"])
def test_no_work_of_a_cancelled_call_goes_on_beside_the_next_one(method: str) -> None:
    """Both would write into what is known of one history, and quote lines that no one said, or fail."""
    lock, at_work, most = threading.Lock(), 0, 0

    def count(text: str) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.0005)
        if began.is_set() and method != "in the background":  # at work when it is cancelled, on any machine
            counting.set()
            gone.wait(PATIENCE)
        with lock:
            at_work -= 1
        return 1 + len(text) // 4

    began, counting, gone = threading.Event(), threading.Event(), threading.Event()
    window = 40_000 if method == "in the background" else 3_000
    compactor = Compactor(
        window=window,
        count_text=count,
        policy=Policy(background=0.1),
        on_event=lambda event: began.set() if event.name == "compaction_started" else None,
    )
    history = said(40)

    async def cancelled() -> None:
        if method == "in the background":  # the task that prepares it ends with its event loop
            await compactor.acompact(history)
            while not began.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
            return
        work = compactor.acall(send, history) if method == "acall" else compactor.acompact(history)
        task = asyncio.create_task(work)
        while not counting.is_set():
            assert not task.done()
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        gone.set()
        await asyncio.wait({task})
        assert task.cancelled()

    # once a task has ended with its event loop, no other is begun
    for number in range(1 if method == "in the background" else 3):
        for event in (began, counting, gone):
            event.clear()
        asyncio.run(cancelled())
        assert at_work == 0
        history += [{"role": "user", "content": f"and in room_{number}? " * 400}]  # something to count for the next one
    again = asyncio.run(compactor.acompact(history, force=True))
    assert most == 1
    assert again.messages == Compactor(window=window, count_text=count).compact(history, force=True).messages


@pytest.mark.parametrize("method", ["acompact", "aview", "acall", "aappend"])
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("memory", 9),
        pytest.param("memory", 1, marks=pytest.mark.strict),
        pytest.param("sqlite", 3, marks=pytest.mark.strict),
    ],
)
def test_a_session_that_is_cancelled_anywhere_has_no_lease_and_goes_on(
    method: str, kind: str, step: int, tmp_path: Path
) -> None:
    compactor = Compactor(window=3_000, summarizer=summarize)
    store: Any = DictStore() if kind == "memory" else open_store(f"sqlite:///{tmp_path / 's.db'}")

    async def run(point: int) -> bool:
        session = compactor.session(f"s-{point}", store=store)
        session.append(said(20))
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "acompact": session.acompact,
            "aview": session.aview,
            "acall": lambda: session.acall(send, [{"role": "user", "content": "more"}]),
            "aappend": lambda: session.aappend([{"role": "user", "content": "more"}]),
        }
        reached = await cancelled_at(point, calls[method]())
        deadline = time.monotonic() + PATIENCE
        while session.state().is_summarizing:
            assert time.monotonic() < deadline, f"the lease is held after a cancel at await point {point}"
            await asyncio.sleep(0.002)
        view = await session.aview()
        assert len(view) < 41
        assert session.history()[:41] == said(20)
        assert len(session.history()) in (41, 42)
        assert sum(session.ledger().counts().values()) == len(session.history())
        return reached

    points = every_point(run, step)
    if kind == "sqlite":
        store.close()
    assert points >= (0 if method == "aappend" else 5)


KILLED = textwrap.dedent(
    """
    import os, sys, time
    sys.path[:0] = {path!r}
    from contextfold import Compactor
    import contextfold.store.sql, sqlalchemy.dialects.sqlite, contextfold.summary.extractive

    def summarize(prompt):
        print("asked", flush=True)
        time.sleep(0.02)
        return "They went through the parts in order."

    def go_on():
        session = Compactor(window=3_000, summarizer=summarize).session(
            "s", store={store!r}, options={{"lease_seconds": 0.5}}
        )
        n = len(session.history())
        while True:
            roles = ("user", "assistant")
            said = [dict(role=roles[i % 2], content=f"{{n + i}} " + "about part.py " * 60) for i in range(4)]
            session.append(said, at=n)
            n += 4
            print("appended", n, flush=True)
            session.view()

    for line in sys.stdin:
        if child := os.fork():
            os.waitpid(child, 0)
            print("ended", flush=True)
        else:
            print("started", os.getpid(), flush=True)
            go_on()
    """
)
"""Imports once what each of its processes needs, and starts one for each line that it is told."""


@pytest.mark.strict
@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.strict)])
def test_a_process_that_is_killed_leaves_a_session_that_goes_on(times: int, tmp_path: Path) -> None:
    """Killed at other moments each time; what it said it had appended is there, once, and the lease runs out."""
    url = f"sqlite:///{tmp_path / 's.db'}"
    script = KILLED.format(path=sys.path, store=url)
    appended = 0
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        for number in range(times):
            print("go on", file=starter.stdin, flush=True)
            pid = int(starter.stdout.readline().removeprefix("started"))
            lines = 1 + number * 7 % 5
            for line in starter.stdout:
                if line.startswith("appended"):
                    appended, lines = int(line.split()[1]), lines - 1
                if lines <= 0:
                    break
            time.sleep(number % 6 * 0.009)
            os.kill(pid, signal.SIGKILL)
            for line in starter.stdout:
                if line.startswith("appended"):
                    appended = int(line.split()[1])
                if line.startswith("ended"):
                    break
        starter.stdin.close()
    session = Compactor(window=3_000).session("s", store=url)
    history = session.history()
    assert len(history) - appended in (0, 4)
    assert [int(message["content"].split()[0]) for message in history] == list(range(len(history)))
    began = time.monotonic()
    assert session.compact().changed
    assert time.monotonic() - began < PATIENCE
    session.append([{"role": "user", "content": "go on"}])
    assert session.view()[-1] == {"role": "user", "content": "go on"}
    assert sum(session.ledger().counts().values()) == len(session.history())


# ---- no room, no rights ----

full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


ALL_IS_IMPORTED = """
    from contextfold import Compactor
    from contextfold.archive import open_archive
    talk = [{"role": "user", "content": f"{n} " + "about part.py " * 200} for n in range(40)]
    Compactor(window=3_000).compact(talk, archive=open_archive("file://" + os.path.abspath("open")).thread("t"))
    Compactor(window=3_000).session("s", store="sqlite:///open.db").append(talk)
"""
"""Done once while it is allowed: that user may not be able to read where the project lies."""


def unprivileged(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a user who owns nothing here, where this process may become one."""
    code = f"import os, sys\nsys.path[:0] = {sys.path!r}\nos.chdir({str(folder)!r})\n"
    if os.geteuid() == 0:
        code += textwrap.dedent(ALL_IS_IMPORTED) + "os.setgid(65534); os.setuid(65534)\n"
    # That user may write no report of its coverage either.
    environment = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    command = [sys.executable, "-c", code + textwrap.dedent(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_places_that_may_not_be_written_are_refused_as_ours_and_named(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        with contextlib.suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    done = unprivileged(
        """
        from contextfold import Compactor
        from contextfold.archive import open_archive
        from contextfold.errors import ContextfoldError
        talk = [{"role": "user", "content": f"{n} " + "about part.py " * 200} for n in range(40)]
        def archived():
            thread = open_archive("file://" + os.path.abspath("closed/archive")).thread("t")
            return Compactor(window=3_000).compact(talk, archive=thread)
        def stored():
            return Compactor(window=3_000).session("s", store="sqlite:///closed/s.db").append(talk)
        for work in (archived, stored):
            try:
                work()
            except ContextfoldError as error:
                print(type(error).__name__, "closed" in str(error))
            else:
                print("no error")
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["True", "True"], done.stdout


def test_an_archive_without_room_keeps_the_old_view(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    archive = open_archive(tmp_path.as_uri()).thread("t")
    history = said(20)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
        with pytest.raises(ArchiveError):
            Compactor(window=3_000).compact(history, archive=archive)
        out = Compactor(window=100_000, trigger=("tokens", 3_000)).compact(history, archive=archive)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not out.changed
    assert out.messages == history
    again = Compactor(window=3_000).compact(history, archive=open_archive(tmp_path.as_uri()).thread("t"))
    assert again.changed
    left = [entry.index for entry in again.ledger if entry.fate == "summarized"]
    assert set(left) <= {entry.index for entry in archive.read(0, 1_000)}


@full
def test_a_command_whose_output_has_no_room_says_so(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(said(20)))
    command = [sys.executable, "-m", "contextfold", "compact", str(file), "--window", "3000", "--output", "/dev/full"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "/dev/full" in done.stderr


def test_a_store_whose_file_is_not_one_is_refused_as_ours(tmp_path: Path) -> None:
    for number, content in enumerate((b"not a database " * 100, b"SQLite format 3\x00" + b"\xff" * 5_000)):
        file = tmp_path / f"{number}.db"
        file.write_bytes(content)
        with pytest.raises(ContextfoldError, match=file.name):
            Compactor(window=3_000).session("s", store=f"sqlite:///{file}").append(said(1))
    folder = tmp_path / "folder.db"
    folder.mkdir()
    with pytest.raises(StoreUnavailable):
        Compactor(window=3_000).session("s", store=f"sqlite:///{folder}").append(said(1))


def test_links_at_our_file_names_are_not_followed_and_files_are_their_owners(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "s.db").symlink_to(victim)
    with pytest.raises(ContextfoldError):
        Compactor(window=3_000).session("s", store=f"sqlite:///{tmp_path / 's.db'}").append(said(1))
    assert victim.read_text() == "precious"
    (tmp_path / "deep").mkdir(0o700)
    session = Compactor(window=3_000).session("s", store=f"sqlite:///{tmp_path / 'deep' / 'own.db'}")
    session.append(said(20))
    session.view()
    Compactor(window=3_000).compact(said(20), archive=open_archive((tmp_path / "deep" / "a").as_uri()).thread("t"))
    made = list((tmp_path / "deep").rglob("*"))
    assert len(made) > 2
    assert {oct(path.stat().st_mode & 0o077) for path in [*made, tmp_path / "deep"]} == {"0o0"}
