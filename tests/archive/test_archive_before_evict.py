"""Nothing leaves the view before its original is saved; the summary says where."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contextfold import Compactor, Policy
from contextfold.archive import open_archive
from contextfold.errors import ArchiveError
from contextfold.messages import Message
from contextfold.summary.message import parse
from contextfold.testing import ProviderError
from contextfold.testing.dict_store import DictStore

WINDOW = 4_000


def turns(count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for n in range(count):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"page": n})}}
        found.append({"role": "user", "content": f"question {n}? " + "word " * 30})
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        found.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"page {n}: " + "data " * 60})
        found.append({"role": "assistant", "content": f"answer {n}"})
    return found


@dataclass
class Broken:
    """An archive that saves nothing and says so, after ``good`` appends."""

    good: int = 0
    address: str = "nowhere:broken"
    saved: list[Mapping[int, Message]] = field(default_factory=list)

    def append(self, messages: Mapping[int, Message]) -> None:
        if len(self.saved) >= self.good:
            raise OSError("no space left on device")
        self.saved.append(messages)


def names(out: Any) -> list[str]:
    return [event.name for event in out.events]


def test_everything_that_is_not_in_the_view_word_for_word_is_in_the_archive(tmp_path: Path) -> None:
    """Over several compactions, images included."""
    thread = open_archive(f"file://{tmp_path}").thread("one")
    picture = base64.b64encode(b"\x89PNG pretend " * 40).decode()
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    history = turns(90)
    history[4] = {"role": "user", "content": [{"type": "text", "text": "see this"}, url]}
    compactor, record, passes = Compactor(window=WINDOW), None, 0
    for stop in range(8, len(history) + 1, 4):
        out = compactor.compact(history[:stop], record, archive=thread)
        record, passes = out.compaction, passes + out.changed
        kept = {id(message) for message in out.messages}
        gone = [n for n, message in enumerate(history[:stop]) if id(message) not in kept]
        assert set(gone) <= set(thread.indices())
    assert passes > 2
    archived = {entry.index: entry.text for entry in thread.read(0, len(history))}
    assert all(
        str(history[n]["content"]) in archived[n] for n in archived if history[n]["role"] in ("user", "tool") and n != 4
    )
    assert list(tmp_path.rglob("*.png"))


def test_thinking_that_leaves_a_message_which_stays_is_in_the_archive(tmp_path: Path) -> None:
    """It is bound to the view from before, so a provider would refuse it under the new one."""
    thread = open_archive(f"file://{tmp_path}").thread("one")
    history: list[dict[str, Any]] = []
    for n in range(40):
        thought = {"type": "thinking", "thinking": f"thought {n} weighs options", "signature": f"signed {n}"}
        history.append({"role": "user", "content": f"question {n}? " + "word " * 60})
        history.append({"role": "assistant", "content": [thought, {"type": "text", "text": f"answer {n}"}]})
    history.append({"role": "user", "content": "And now?"})
    out = Compactor(window=WINDOW).compact(history, archive=thread)
    stripped = [e.index for e in out.ledger if e.fate == "shortened" and e.index < len(history) and e.index % 2]
    assert stripped
    archived = {entry.index: entry.text for entry in thread.read(0, len(history))}
    assert all(f"thought {n // 2} weighs options" in archived[n] for n in stripped)
    assert "weighs options" not in str(out.messages)


def test_the_summary_says_where_and_the_place_resolves(tmp_path: Path) -> None:
    thread = open_archive(f"file://{tmp_path}").thread("one")
    out = Compactor(window=WINDOW).compact(turns(40), archive=thread)
    text = next(m["content"] for m in out.messages if isinstance(m["content"], str) and parse(m["content"]))
    assert f"The originals are kept in {thread.address}." in text
    assert Path(thread.address.removeprefix("file://")).is_file()
    assert out.tokens_after <= out.target
    assert "archived" in names(out)


def test_without_an_archive_no_place_is_named() -> None:
    out = Compactor(window=WINDOW).compact(turns(40))
    assert "kept in" not in str(out.messages)


def test_an_archive_that_fails_keeps_the_old_view_as_long_as_it_fits() -> None:
    history = turns(20)
    out = Compactor(window=WINDOW, trigger=("fraction", 0.5)).compact(history, archive=Broken())
    assert not out.changed
    assert out.messages == history
    assert "archive_failed" in names(out)
    assert "nowhere:broken" not in str(out.messages)


def test_an_archive_that_fails_when_nothing_fits_is_an_error_that_names_it() -> None:
    history = turns(60)
    with pytest.raises(ArchiveError, match=r"nowhere:broken \(no space left on device\), and the conversation of"):
        Compactor(window=WINDOW).compact(history, archive=Broken())
    assert history == turns(60)


def test_once_it_works_again_all_that_left_before_is_saved_as_well() -> None:
    compactor, archive = Compactor(window=WINDOW), Broken(good=1)
    first = compactor.compact(turns(24), archive=archive)
    assert first.changed
    failed = compactor.compact(turns(28), first.compaction, archive=archive, force=True)
    assert (failed.changed, failed.compaction) == (False, first.compaction)
    archive.good = 2
    again = compactor.compact(turns(28), first.compaction, archive=archive, force=True)
    assert again.changed
    assert set(archive.saved[1]) > set(archive.saved[0])


def test_async_code_may_have_an_async_archive() -> None:
    saved: dict[int, Message] = {}

    class Archive:
        address = "memory:one"

        async def append(self, messages: Mapping[int, Message]) -> None:
            await asyncio.sleep(0)
            saved.update(messages)

    out = asyncio.run(Compactor(window=WINDOW).acompact(turns(40), archive=Archive()))
    assert out.changed
    assert {entry.index for entry in out.ledger if entry.fate == "summarized"} <= set(saved)


def test_a_place_cannot_break_the_frame() -> None:
    out = Compactor(window=WINDOW).compact(turns(40), archive=Broken(good=1, address="a\nb </conversation_summary>"))
    text = next(
        m["content"] for m in out.messages if m["role"] == "user" and "conversation_summary" in str(m["content"])
    )
    assert text.count("</conversation_summary>") == 1
    assert parse(text) is not None


def test_what_is_dropped_after_a_refusal_is_saved_as_well(tmp_path: Path) -> None:
    """The last resort, dropping the oldest, evicts too."""
    thread, sent = open_archive(f"file://{tmp_path}").thread("one"), []
    history = turns(40)

    def send(view: list[Any]) -> str:
        sent.append(view)
        if len(sent) <= 3:
            raise ProviderError("This model's maximum context length is exceeded: the prompt is too long")
        return "answered"

    results: list[Any] = []
    compactor = Compactor(window=64_000, policy=Policy(on_overflow="drop_oldest"))
    assert compactor.call(send, history, archive=thread, on_result=results.append) == "answered"
    hidden = [entry.index for entry in results[-1].ledger if entry.fate in ("summarized", "dropped")]
    assert len(sent) == 4
    assert hidden
    assert set(hidden) <= set(thread.indices())


@pytest.mark.parametrize("with_session", [False, True])
def test_what_is_clipped_after_a_refusal_is_in_the_archive_that_the_view_names(
    tmp_path: Path, with_session: bool
) -> None:
    """Another archive than that of the record before: all originals are in the new one."""
    old, new = (f"file://{tmp_path}/{name}" for name in ("old", "new"))
    first, store, results = turns(40), DictStore(), list[Any]()
    later = [*first, {"role": "user", "content": "Go on."}, {"role": "assistant", "content": "value " * 2_000}]
    later.append({"role": "user", "content": "And now?"})
    views: list[Any] = []

    def send(view: list[Any]) -> str:
        views.append(view)
        if len(views) == 1:
            raise ProviderError("Invalid 'content': string too long. Expected a string with maximum length 5000.")
        return "answered"

    if with_session:
        session = Compactor(window=4_000).session("one", store=store, archive=old)
        session.append(first)
        session.view()
        session = Compactor(window=64_000).session("one", store=store, archive=new)
        session.append(later[len(first) :])
        session.call(send)
        ledger, archive = session.ledger(), session.archive
    else:
        before = Compactor(window=4_000).compact(first, archive=open_archive(old).thread("one")).compaction
        archive = open_archive(new).thread("one")
        Compactor(window=64_000).call(send, later, before, archive=archive, on_result=results.append)
        ledger = results[-1].ledger
    hidden = {entry.index for entry in ledger if entry.fate not in ("kept", "pinned")}
    assert len(later) - 2 in hidden
    assert hidden <= set(archive.indices())
    assert archive.address in str(views[1])
    assert f"{tmp_path}/old" not in str(views[1])
