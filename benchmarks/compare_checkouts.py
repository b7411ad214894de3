"""Do two checkouts make the same records and views, byte for byte? ``python benchmarks/compare_checkouts.py OLD NEW``.

Every conversation of ``CONTEXTFOLD_TRANSCRIPTS`` (else ``../shared/transcripts`` beside the checkout) is replayed in
three windows through each face that both have, turn by turn, in a process of its own for each checkout, and the hashes
of what came out are compared. What differs is listed by face, window, conversation and turn, the first turn of each.

    python benchmarks/compare_checkouts.py ../old . --most 12 --windows 16000 32000 --faces compact call
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TURNS = 24
"""Looks at each conversation: enough for several compactions, few enough to replay hundreds of conversations."""

LONGEST = 1_500
"""Messages of one conversation that are replayed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path, help="two checkouts to compare; with --worker, one")
    parser.add_argument("--windows", nargs="+", type=int, default=[16_000, 32_000, 64_000])
    parser.add_argument("--faces", nargs="+", default=list(FACES), choices=list(FACES))
    parser.add_argument("--most", type=int, default=0, help="conversations at most; 0 for all")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        for key, digest in replayed(options):
            print(json.dumps([key, digest]), flush=True)
        return 0
    old, new = (results(checkout, options) for checkout in options.checkouts)
    return report(old, new)


def results(checkout: Path, options: argparse.Namespace) -> dict[str, str]:
    """What a process with this checkout's sources says, by face, window, conversation and turn."""
    command = [sys.executable, __file__, str(checkout), "--worker", "--most", str(options.most)]
    command += ["--windows", *map(str, options.windows), "--faces", *options.faces]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), "PYTHONHASHSEED": "0"}
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(line) for line in said.stdout.splitlines())


def report(old: dict[str, str], new: dict[str, str]) -> int:
    """0 if both say the same."""
    different = [key for key in old if new.get(key) != old[key]]
    first: dict[str, str] = {}
    for key in different:
        first.setdefault(key.rpartition("#")[0], key)
    print(f"{len(old):,} views and records compared, {len(different):,} differ, in {len(first):,} replays")
    for key in first.values():
        print(f"  {key}")
    return 1 if different or old.keys() != new.keys() else 0


# ---- one checkout ----


def replayed(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    from contextfold import ContextfoldError

    for name, messages in conversations(options.most):
        turns = sorted({len(messages) * turn // TURNS for turn in range(1, TURNS + 1)} - {0})
        for window in options.windows:
            for face in options.faces:
                looks = FACES[face](window, messages, turns)
                for turn in turns:
                    try:
                        said = next(looks)
                    except ContextfoldError as error:
                        said = type(error).__name__
                        looks = iter(())
                    except StopIteration:
                        break
                    yield f"{face} {window} {name}#{turn}", fingerprint(said)


def conversations(most: int) -> Iterator[tuple[str, list[Any]]]:
    from contextfold import InputError
    from contextfold.transcripts import read_file

    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "transcripts"
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".traj"):
            continue
        try:
            found = read_file(path)
        except InputError:
            continue
        for conversation in found[:2]:
            if len(conversation.messages) < 40:
                continue
            count += 1
            yield f"{path.parent.name}/{conversation.name.rpartition('/')[2]}", conversation.messages[:LONGEST]
            if count == most:
                return


def fingerprint(said: Any) -> str:
    """A hash of plain data. Spelling that changed on purpose is read as one."""
    text = json.dumps(said, ensure_ascii=False, sort_keys=True, default=repr)
    text = text.replace("summaris", "summariz").replace("Summaris", "Summariz")
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def told(out: Any) -> list[Any]:
    record = json.loads(out.compaction.to_json()) if out.compaction else {}
    for field in ("parent", "version"):  # an id is a hash of the spelling, too
        record.pop(field, None)
    return [out.messages, record, out.ledger.counts()]


def by_compact(window: int, messages: list[Any], turns: list[int]) -> Iterator[Any]:
    from contextfold import Compactor

    compactor, record = Compactor(window=window), None
    for turn in turns:
        out = compactor.compact(messages[:turn], record)
        record = out.compaction
        yield told(out)


def by_acompact(window: int, messages: list[Any], turns: list[int]) -> Iterator[Any]:
    from contextfold import Compactor

    compactor, record = Compactor(window=window), None
    for turn in turns:
        out = asyncio.run(compactor.acompact(messages[:turn], record))
        record = out.compaction
        yield told(out)


class Refused(Exception):
    status_code = 400


def by_call(window: int, messages: list[Any], turns: list[int]) -> Iterator[Any]:
    """The provider takes three quarters of the window that is assumed, and says so."""
    from contextfold import Compactor, count_tokens

    compactor, record, limit = Compactor(window=window), None, window * 3 // 4

    def send(view: list[Any]) -> str:
        if (used := count_tokens(view)) > limit:
            raise Refused(f"This model's maximum context length is {limit} tokens. Your messages have {used} tokens.")
        return "answered"

    for turn in turns:
        results: list[Any] = []
        compactor.call(send, messages[:turn], record, on_result=results.append)
        record = results[-1].compaction
        yield told(results[-1])


def by_session(window: int, messages: list[Any], turns: list[int]) -> Iterator[Any]:
    from contextfold import Compactor

    with tempfile.TemporaryDirectory() as folder:
        session = Compactor(window=window).session("thread", f"sqlite:///{folder}/sessions.db")
        known = 0
        for turn in turns:
            session.append(messages[known:turn])
            known = turn
            yield session.view()


FACES: dict[str, Callable[[int, list[Any], list[int]], Iterator[Any]]] = {
    "compact": by_compact,
    "acompact": by_acompact,
    "call": by_call,
    "session": by_session,
}

if __name__ == "__main__":
    sys.exit(main())
