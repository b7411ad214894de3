"""A session with an archive: originals are saved before they leave the view, under their sequence numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contextfold import Compactor, Policy
from contextfold.archive import open_archive
from contextfold.errors import ArchiveError, InputError
from contextfold.messages import Message
from contextfold.store import loading


def turn(n: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"question {n} " + "word " * 80},
        {"role": "assistant", "content": f"answer {n}"},
    ]


class Failing:
    address = "nowhere:failing"

    def append(self, messages: Mapping[int, Message]) -> None:
        raise OSError("the disk is full")


def test_every_evicted_message_is_in_the_archive_under_its_number(store: Any, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/archive"
    session = Compactor(window=4_000).session("one", store=store, archive=address)
    for n in range(120):
        session.append(turn(n))
        session.view()
    evicted = [entry.index for entry in session.ledger() if entry.fate == "summarized"]
    assert len(evicted) > 150
    thread = open_archive(address).thread("one", namespace="")
    archived = {entry.index: entry.text for entry in thread.read(0, 1_000)}
    history = session.history()
    assert set(evicted) <= set(archived)
    assert all(archived[n] == history[n]["content"] for n in archived)
    assert thread.address in str(session.view())


def test_nothing_leaves_while_the_archive_fails(store: Any) -> None:
    session = Compactor(window=4_000, trigger=("fraction", 0.5)).session("one", store=store, archive=Failing())
    for n in range(20):
        session.append(turn(n))
    assert len(session.view()) == 40
    assert session.summaries() == []
    session.append([entry for n in range(40) for entry in turn(n)])
    with pytest.raises(ArchiveError, match=r"nowhere:failing \(the disk is full\)"):
        session.view()
    assert session.state().message_count == 120
    assert session.summaries() == []


def test_what_somebody_prepared_without_the_archive_is_archived_before_it_comes_into_force(
    store: Any, tmp_path: Path
) -> None:
    """While that fails, it does not come into force."""
    options = {"upper_threshold": 4_000, "lower_threshold": 2_000, "min_messages": 4, "background": True}
    other = Compactor(window=16_000).session("one", store=store, options=options)
    other.append([entry for n in range(36) for entry in turn(n)])
    other.view()
    other.join()
    (prepared,) = other.summaries()
    other.append([entry for n in range(36, 60) for entry in turn(n)])
    hindered = Compactor(window=16_000).session("one", store=store, options=options, archive=Failing())
    assert len(hindered.view()) == 120
    assert hindered.state().summary_id is None
    address = f"file://{tmp_path}/archive"
    session = Compactor(window=16_000).session("one", store=store, options=options, archive=address)
    session.view()
    assert store.read_summary(session.thread, prepared.id).used_at is not None
    evicted = {entry.index for entry in session.ledger() if entry.fate == "summarized"}
    assert evicted
    assert evicted <= set(open_archive(address).thread("one").indices())
    hindered.join()
    session.join()


def test_a_thread_id_of_any_kind_is_fine(store: Any, tmp_path: Path) -> None:
    for thread in ("../../etc/passwd", "x" * 10_000, "对话"):
        session = Compactor(window=4_000).session(thread, store=store, archive=f"file://{tmp_path}/archive")
        session.append([entry for n in range(60) for entry in turn(n)])
        asyncio.run(session.aview())
    files = list(tmp_path.rglob("*.md"))
    assert len(files) == 3
    assert all(path.is_relative_to(tmp_path / "archive") for path in files)


@pytest.mark.parametrize("first", [None, "first"])
def test_an_archive_that_comes_later_gets_what_left_the_view_long_before(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str | None
) -> None:
    """The summary names it for all originals, those that no pass reads any more included."""
    monkeypatch.setattr(loading, "HORIZON", 60)
    before = None if first is None else f"file://{tmp_path}/{first}"
    session = Compactor(window=4_000).session("one", store=store, archive=before)
    session.append([entry for n in range(120) for entry in turn(n)])
    session.view()
    failing = Compactor(window=4_000).session("one", store=store, archive=Failing())
    session = Compactor(window=4_000, policy=Policy(redact=True)).session(
        "one", store=store, archive=f"file://{tmp_path}/second"
    )
    session.append([entry for n in range(120, 180) for entry in turn(n)])
    with pytest.raises(ArchiveError, match="the disk is full"):
        failing.view()
    assert session.archive.address in str(asyncio.run(session.aview()))
    gone = [entry.index for entry in session.ledger() if entry.fate in ("summarized", "dropped")]
    assert len(gone) > 200
    assert set(gone) <= set(session.archive.indices())
    assert session.archive.read(gone[0], 1)[0].text == session.history()[gone[0]]["content"]


def test_an_archive_of_no_conversation_is_refused_before_the_first_pass(store: Any, tmp_path: Path) -> None:
    """The folder was taken for the file of this session: each pass failed at it, and nothing ever left the view."""
    for wrong in (open_archive(str(tmp_path)), 7, {"address": "x"}):
        with pytest.raises(InputError, match=r"archive must be .* open_archive\(ADDRESS\)\.thread\(ID\)"):
            Compactor(window=4_000).session("anna", store, archive=wrong)


def test_the_address_of_an_archive_may_be_a_path(store: Any, tmp_path: Path) -> None:
    session = Compactor(window=4_000).session("anna", store, archive=tmp_path / "originals")
    session.append([{"role": "user", "content": f"Question {turn}: " + "word " * 90} for turn in range(60)])
    assert session.archive is not None
    assert session.archive.address in str(session.view())
