"""The archive: what was appended can be read back whole, or the caller is told."""

from __future__ import annotations

import base64
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pytest
from benchmarks.kinds import read_file
from hypothesis import given
from hypothesis import strategies as st

from contextfold import formats
from contextfold.archive import Archive, ThreadArchive, names, open_archive
from contextfold.errors import ArchiveError, InputError
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from real_files import files

NOON = datetime(2026, 1, 20, 12, tzinfo=UTC)
PIXEL = base64.b64encode(b"\x89PNG pretend").decode()


def said(text: str, role: Any = "user") -> Message:
    return Message(role, (Text(text),))


@pytest.fixture(params=["file", "memory"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    """On a disk and in memory: with and without a file system of our own to lock and sync."""
    address = f"file://{tmp_path}/store" if request.param == "file" else f"memory://archive-{tmp_path.name}"
    yield replace(open_archive(address), now=lambda: NOON)
    fsspec.filesystem("memory").store.clear()


def raw(thread: ThreadArchive) -> bytes:
    data: bytes = thread.archive.system.cat_file(thread.path)
    return data


class TestReadingBack:
    def test_an_append_reads_what_it_wrote_and_not_all_that_is_there(
        self, archive: Archive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where others wrote between: then all of it is read once."""
        thread, read = archive.thread("one"), []
        of_thread = ThreadArchive._bytes

        def counted(self: ThreadArchive, start: int, stop: int | None) -> bytes:
            data = of_thread(self, start, stop)
            read.append(len(data))
            return data

        monkeypatch.setattr(ThreadArchive, "_bytes", counted)
        for number in range(40):
            thread.append({2 * number: said("word " * 400), 2 * number + 1: said(f"number {number}")})
        assert sum(read) <= 2 * len(raw(thread))
        assert archive.thread("one").append({80: said("of another")}).count == 1
        thread.append({81: said("behind it")})
        assert thread._scanned() == archive.thread("one")._scanned()
        assert [entry.text for entry in thread.read(78)] == ["word " * 400, "number 39", "of another", "behind it"]

    def test_what_was_appended_is_there_word_for_word(self, archive: Archive) -> None:
        thread = archive.thread("one")
        pointer = thread.append({3: said("third"), 4: said("fourth\n\n## not a section\n", "assistant"), 9: said("九")})
        assert (pointer.first, pointer.last, pointer.count) == (3, 9, 3)
        found = archive.thread("one").read()
        assert [(entry.index, entry.role, entry.text) for entry in found] == [
            (3, "user", "third"),
            (4, "assistant", "fourth\n\n## not a section\n"),
            (9, "user", "九"),
        ]

    def test_the_address_of_the_pointer_resolves(self, archive: Archive) -> None:
        pointer = archive.thread("one").append({0: said("hello")})
        with fsspec.open(pointer.address, "rt", encoding="utf-8") as file:
            assert "hello" in file.read()

    def test_reading_is_paged(self, archive: Archive) -> None:
        thread = archive.thread("one")
        thread.append({n: said(f"message {n}") for n in range(50)})
        assert [entry.index for entry in thread.read(10, 5)] == [10, 11, 12, 13, 14]
        assert thread.read(50, 5) == []
        assert thread.indices() == list(range(50))

    def test_nothing_archived_reads_as_nothing(self, archive: Archive) -> None:
        assert archive.thread("nobody").read() == []

    @given(texts=st.lists(st.text(), min_size=1, max_size=8), cuts=st.lists(st.integers(1, 3), max_size=4))
    def test_any_words_in_any_number_of_sections_come_back(self, texts: list[str], cuts: list[int]) -> None:
        """Whatever is said, marks of our own included, cannot break the file."""
        marks = ["<!-- end of section -->\n\n", "\n## x\n\n<!-- section bytes=1 sha256=" + "0" * 64 + " -->\n\n"]
        messages = dict(enumerate(said(text) for text in [*texts, *marks]))
        thread = open_archive("memory://any").thread("".join(texts))
        rest = list(messages)
        for cut in [*cuts, len(rest)]:
            part, rest = rest[:cut], rest[cut:]
            if part:
                thread.append({n: messages[n] for n in part})
        again = open_archive("memory://any").thread("".join(texts))
        assert {entry.index: entry.text for entry in again.read(0, 99)} == {n: m.text for n, m in messages.items()}
        fsspec.filesystem("memory").store.clear()

    def test_every_kind_of_part_is_readable(self, archive: Archive) -> None:
        call = ToolCall("c1", "look", '{"page": 1}')
        result = ToolResult("c1", (Text("```\nfenced\n```"), Media("image", "image/png", data=PIXEL)), name="look")
        thread = archive.thread("one")
        thread.append(
            {
                1: Message("assistant", (Reasoning("think"), Reasoning(""), Text("I look."), call)),
                2: Message("tool", (result, ToolResult("c2", (Text("no"),), is_error=True))),
                3: Message(
                    "user", (Media("document", url="https://example.org/a.pdf"), Opaque("hint", source={"a": 1}))
                ),
            }
        )
        first, second, third = (entry.text for entry in thread.read())
        assert "think" in first
        assert "reasoning that cannot be read" in first
        assert "call `look` (c1)" in first
        assert '```json\n{"page": 1}\n```' in first
        assert "````text\n```\nfenced\n```\n````" in second
        assert "result of c2, an error" in second
        assert "https://example.org/a.pdf" in third
        assert '{"a": 1}' in third

    def test_media_stand_beside_the_file_once_by_content(self, archive: Archive) -> None:
        thread = archive.thread("one")
        picture = Message("user", (Media("image", "image/png", data=PIXEL),))
        thread.append({1: picture, 2: replace(picture, id="again"), 3: Message("user", (Media("audio", data="?!"),))})
        system, folder = archive.system, thread.path.removesuffix(".md") + ".media"
        stored = {path.rpartition("/")[2]: system.cat_file(path) for path in system.ls(folder, detail=False)}
        assert sorted(stored.values()) == sorted([base64.b64decode(PIXEL), b"?!"])
        references = re.findall(r"!\[\w+\]\([^)]*\.media/([^)]+)\)", raw(thread).decode())
        assert set(references) == set(stored)
        assert any(name.endswith(".png") for name in stored)

    def test_an_archived_transcript_holds_every_word(self, archive: Archive, transcripts: Path) -> None:
        for file in files(transcripts, "*/*")[::9]:
            try:
                conversation = next(iter(read_file(file)))
            except InputError:
                continue
            messages = formats.decode(conversation.messages, formats.get(conversation.format))
            thread = archive.thread(file.name)
            thread.append(dict(enumerate(messages)))
            texts = {entry.index: entry.text for entry in thread.read(0, len(messages))}
            for index, message in enumerate(messages):
                for part in message.parts:
                    if isinstance(part, Text):
                        assert part.text in texts[index]


class TestAppending:
    def test_what_is_there_already_is_not_saved_again(self, archive: Archive) -> None:
        thread = archive.thread("one")
        messages = {n: said(f"message {n}") for n in range(5)}
        thread.append(messages)
        size = len(raw(thread))
        assert archive.thread("one").append(messages).count == 5
        assert len(raw(thread)) == size
        thread.append({**messages, 5: said("new")})
        assert raw(thread).count(b"message 3\n") == 1
        assert thread.indices() == list(range(6))

    def test_a_section_is_never_changed_once_it_is_written(self, archive: Archive) -> None:
        thread = archive.thread("one")
        before = b""
        for n in range(5):
            thread.append({n: said(f"message {n}")})
            now = raw(thread)
            assert now.startswith(before)
            before = now

    def test_another_message_under_the_same_index_replaces_none(self, archive: Archive) -> None:
        thread = archive.thread("one")
        thread.append({1: said("undone")})
        thread.append({1: said("said instead")})
        assert b"undone" in raw(thread)
        assert [entry.text for entry in thread.read()] == ["said instead"]

    def test_what_came_again_under_its_index_is_read_and_not_what_stood_there_between(self, archive: Archive) -> None:
        """A turn that was undone, another one, and the first one again: that was taken for saved."""
        thread = archive.thread("one")
        for words in ("first", "said instead", "first", "first"):
            thread.append({1: said(words)})
            assert [entry.text for entry in archive.thread("one").read()] == [words]
        assert raw(thread).count(b"<!-- section ") == 3

    def test_nothing_to_archive_is_a_mistake(self, archive: Archive) -> None:
        with pytest.raises(ArchiveError):
            archive.thread("one").append({})


class TestDamage:
    def test_what_a_crash_left_half_written_does_not_count_and_is_cut_off(self, archive: Archive) -> None:
        thread = archive.thread("one")
        thread.append({1: said("first")})
        whole = raw(thread)
        thread.append({2: said("second " * 20)})
        full = raw(thread)
        for size in range(len(whole), len(full)):
            archive.system.pipe_file(thread.path, full[:size])
            again = archive.thread("one")
            assert again.indices() == [1]
        again.append({2: said("second " * 20)})
        assert raw(again) == full

    def test_a_torn_section_is_torn_whatever_it_quotes(self, archive: Archive) -> None:
        """A message that shows an archive file: its words look like headers, messages and ends of sections."""
        quoted = archive.thread("quoted")
        quoted.append({1: said("first")})
        quoted.append({2: said("second")})
        thread = archive.thread("one")
        thread.append({1: said("first")})
        whole = raw(thread)
        thread.append({2: said(raw(quoted).decode()), 3: said("\n\n## a heading\n\n" + raw(quoted).decode()[-400:])})
        full = raw(thread)
        for size in range(len(whole), len(full)):
            archive.system.pipe_file(thread.path, full[:size])
            assert archive.thread("one").indices() == [1], size
        archive.thread("one").append({2: said("again")})
        assert archive.thread("one").indices() == [1, 2]

    def test_a_size_that_was_changed_is_damage_and_no_tear(self, archive: Archive) -> None:
        """A whole section behind it would be cut off with what counts as torn."""
        thread = archive.thread("one")
        thread.append({1: said("first")})
        thread.append({2: said("second")})
        archive.system.pipe_file(
            thread.path, re.sub(rb"section bytes=\d+", b"section bytes=99999", raw(thread), count=1)
        )
        with pytest.raises(ArchiveError, match="is damaged at byte"):
            archive.thread("one").append({3: said("third")})

    @pytest.mark.parametrize("kind", ["shorter", "of the same size"])
    def test_a_medium_that_a_crash_left_unwritten_is_written_again(self, archive: Archive, kind: str) -> None:
        thread = archive.thread("one")
        picture = Message("user", (Media("image", "image/png", data=PIXEL),))
        thread.append({1: picture})
        (path,) = archive.system.ls(thread.path.removesuffix(".md") + ".media", detail=False)
        whole = archive.system.cat_file(path)
        archive.system.pipe_file(path, whole[:3] if kind == "shorter" else bytes(len(whole)))
        thread.append({2: picture})
        assert archive.system.cat_file(path) == whole

    def test_a_half_written_heading_is_written_again(self, archive: Archive) -> None:
        thread = archive.thread("one")
        thread.append({1: said("first")})
        full = raw(thread)
        archive.system.pipe_file(thread.path, full[:30])
        archive.thread("one").append({1: said("first")})
        assert raw(thread) == full

    @pytest.mark.parametrize("is_last", [False, True], ids=["first section", "last section"])
    @pytest.mark.parametrize("place", ["in the text", "in the section's header", "at the end mark"])
    def test_a_change_of_what_was_written_is_told(self, archive: Archive, place: str, is_last: bool) -> None:
        """In the last section as well: it is changed, and was not cut off by a crash."""
        thread = archive.thread("one")
        thread.append({1: said("words")})
        thread.append({2: said("words")})
        old, new = {
            "in the text": (b"words", b"wOrds"),
            "in the section's header": (b"<!-- section bytes", b"<!-- Section bytes"),
            "at the end mark": (b"<!-- end of section", b"<!-- END of section"),
        }[place]
        before, _, behind = raw(thread).rpartition(old) if is_last else raw(thread).partition(old)
        archive.system.pipe_file(thread.path, before + new + behind)
        with pytest.raises(ArchiveError, match=r"is damaged.* byte"):
            archive.thread("one").read()
        with pytest.raises(ArchiveError, match="is damaged"):
            archive.thread("one").append({3: said("third")})

    def test_a_file_system_that_lies_about_success_is_found_out(self, archive: Archive, monkeypatch: Any) -> None:
        thread = archive.thread("one")
        thread.append({1: said("first")})
        before = raw(thread)
        monkeypatch.setattr(ThreadArchive, "_write", lambda self, end, data: None)
        with pytest.raises(ArchiveError, match="does not hold what was written"):
            thread.append({2: said("second")})
        assert raw(thread) == before

    def test_what_ends_amid_is_found_out_and_cut_off_again(self, archive: Archive, monkeypatch: Any) -> None:
        thread, write = archive.thread("one"), ThreadArchive._write
        thread.append({1: said("first")})
        before = raw(thread)
        with monkeypatch.context() as patched:
            patched.setattr(ThreadArchive, "_write", lambda self, end, data: write(self, end, data[:-4]))
            with pytest.raises(ArchiveError, match="does not hold what was written"):
                thread.append({2: said("second")})
        assert raw(thread) == before or not archive.address.startswith("file:"), "elsewhere it is written over"
        thread.append({2: said("se")})  # as many bytes as are there
        assert [entry.text for entry in thread.read()] == ["first", "se"]

    def test_a_medium_that_is_not_there_after_all_is_found_out(self, archive: Archive, monkeypatch: Any) -> None:
        monkeypatch.setattr(ThreadArchive, "_write_medium", lambda self, name, data: None)
        with pytest.raises(ArchiveError, match=r"\.media/\w+\.png does not hold what was written"):
            archive.thread("one").append({1: Message("user", (Media("image", "image/png", data=PIXEL),))})
        assert archive.thread("one").indices() == []

    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "store").write_text("a file where a folder should be")
        with pytest.raises(ArchiveError, match=r"store/.* cannot be written"):
            open_archive(f"file://{tmp_path}/store").thread("one").append({1: said("first")})

    def test_a_full_disk_is_told_and_the_thread_goes_on_later(self, tmp_path: Path) -> None:
        thread = open_archive(f"file://{tmp_path}").thread("one")
        thread.append({0: said("before")})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
        try:
            with pytest.raises(ArchiveError, match="cannot be written"):
                thread.append({1: said("first " * 1_000)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        thread.append({1: said("first")})
        assert open_archive(f"file://{tmp_path}").thread("one").indices() == [0, 1]


class TestPrivacy:
    """What strangers on the same machine may do."""

    @pytest.fixture
    def written(self, tmp_path: Path) -> ThreadArchive:
        thread = open_archive(f"file://{tmp_path}/a/store").thread("one")
        thread.append({1: said("first"), 2: Message("user", (Media("image", "image/png", data=PIXEL),))})
        return thread

    def test_files_are_for_their_owner_alone(self, written: ThreadArchive, tmp_path: Path) -> None:
        umask = os.umask(0o022)
        os.umask(umask)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
        assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
        assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
        assert umask != 0o077, "the test says nothing under this umask"

    def test_the_mode_that_an_operator_gave_stays(self, written: ThreadArchive) -> None:
        os.chmod(written.path, 0o640)
        written.append({3: said("third")})
        assert stat.S_IMODE(os.stat(written.path).st_mode) == 0o640

    @pytest.mark.parametrize("name", ["{}.md", "{}.md.lock", "{}.media"])
    def test_a_symbolic_link_at_a_name_of_ours_is_not_followed(self, tmp_path: Path, name: str) -> None:
        thread = open_archive(f"file://{tmp_path}/store").thread("one")
        folder, own = os.path.split(thread.path.removesuffix(".md"))
        victim = tmp_path / "victim"
        if name.endswith(".media"):
            victim.mkdir()
        else:
            victim.write_text("the words of someone else")
        os.makedirs(folder)
        os.symlink(victim, os.path.join(folder, name.format(own)))
        with pytest.raises(ArchiveError, match="symbolic link"):
            thread.append({1: said("first"), 2: Message("user", (Media("image", "image/png", data=PIXEL),))})
        assert (list(victim.iterdir()) if victim.is_dir() else victim.read_text()) in ([], "the words of someone else")

    def test_a_link_in_place_of_the_folder_of_a_namespace_is_not_followed(self, tmp_path: Path) -> None:
        thread = open_archive(f"file://{tmp_path}/store").thread("one")
        (tmp_path / "store").mkdir()
        (tmp_path / "elsewhere").mkdir()
        os.symlink(tmp_path / "elsewhere", os.path.dirname(thread.path))
        for attempt in (lambda: thread.append({1: said("first")}), thread.read, thread.delete):
            with pytest.raises(ArchiveError, match="symbolic link"):
                attempt()
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_root_behind_a_link_is_the_operators_business(self, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir()
        (tmp_path / "store").symlink_to(tmp_path / "disk")
        thread = open_archive(f"file://{tmp_path}/store").thread("one")
        thread.append({1: said("first")})
        assert thread.indices() == [1]

    @pytest.mark.parametrize("address", ["memory://bob:S3cr3t@host/x", "memory://S3cr3t@host/x"])
    def test_credentials_of_an_address_are_told_to_no_one(self, address: str) -> None:
        thread = open_archive(address).thread("one")
        pointer = thread.append({1: said("first")})
        for told in (thread.address, pointer.address, thread.archive.address):
            assert "S3cr3t" not in told
            assert told.startswith("memory://host/x")
        with pytest.raises(InputError) as refused:
            open_archive(address.replace("memory", "nonsense"))
        assert "S3cr3t" not in f"{refused.value!r} {refused.value.__cause__!r}"
        fsspec.filesystem("memory").store.clear()


class TestNames:
    """Names are made by us."""

    @pytest.mark.parametrize("thread", ["../../etc/passwd", "x" * 10_000, "对话", "", "a/b\\c\0d\n", "-->", "\ud800"])
    def test_any_thread_id_stays_inside_the_folder(self, thread: str, tmp_path: Path) -> None:
        one = open_archive(f"file://{tmp_path}/store").thread(thread, namespace=thread)
        one.append({0: said("hello")})
        inside = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert all(path.is_relative_to(tmp_path / "store") for path in inside)
        assert len(inside) == 2  # and the lock
        assert [entry.text for entry in one.read()] == ["hello"]

    @given(first=st.tuples(st.text(), st.text()), second=st.tuples(st.text(), st.text()))
    def test_different_threads_never_share_a_name(self, first: tuple[str, str], second: tuple[str, str]) -> None:
        assert (names.thread_name(*first) == names.thread_name(*second)) == (first == second)
        assert re.fullmatch(r"[a-z0-9-]{1,73}", names.thread_name(*first))

    @pytest.mark.parametrize("kind", ["image/png", "application/pdf; x=y", "nonsense", "../../x", None, ""])
    def test_media_types_cannot_become_a_path(self, kind: str | None) -> None:
        assert re.fullmatch(r"[0-9a-f]{32}\.[a-z0-9]+", names.media_name(b"data", kind))

    def test_namespaces_do_not_meet(self, archive: Archive) -> None:
        archive.thread("one", namespace="left").append({1: said("left")})
        archive.thread("one", namespace="right").append({1: said("right")})
        assert [entry.text for entry in archive.thread("one", namespace="left").read()] == ["left"]
        assert archive.thread("one").read() == []


def test_an_address_that_cannot_be_used_is_named() -> None:
    with pytest.raises(InputError, match="nonsense://x"):
        open_archive("nonsense://x")


class TestDeleting:
    def test_all_files_of_one_thread_go_and_no_others(self, archive: Archive) -> None:
        """Its media too; the thread can be archived to again, by this object and others."""
        picture = Message("user", (Media("image", "image/png", PIXEL, None),))
        thread, other = archive.thread("one"), archive.thread("one", namespace="tenant")
        for each in (thread, other):
            each.append({0: said("hello"), 1: picture})
        before = archive.system.find(other.path.rpartition("/")[0])
        thread.delete()
        assert archive.system.find(thread.path.rpartition("/")[0]) == []
        assert archive.system.find(other.path.rpartition("/")[0]) == before
        assert thread.read() == archive.thread("one").read() == []
        assert [entry.text for entry in other.read(0, 1)] == ["hello"]
        thread.append({5: said("again")})
        assert thread.indices() == archive.thread("one").indices() == [5]
        thread.delete()
        archive.thread("one").append({7: said("again")})  # as many bytes as were there
        assert thread.indices() == [7]

    def test_what_is_not_there_is_deleted_already(self, archive: Archive) -> None:
        archive.thread("nobody").delete()
        assert archive.thread("nobody").indices() == []


WRITER = """
import sys
from contextfold.archive import open_archive
from contextfold.messages import Message, Text

thread = open_archive(sys.argv[1]).thread("one")
for n in range(int(sys.argv[2]), 10_000):
    thread.append({n: Message("user", (Text(f"message {n} " * 200),))})
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_all_that_it_had_saved(tmp_path: Path) -> None:
    """Killed at any moment, the file reads back whole and the next writer goes on."""
    address, saved = f"file://{tmp_path}", -1
    for pause in (0.002, 0.011, 0.023, 0.037):
        command = [sys.executable, "-c", WRITER, address, str(saved + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            saved = int(writer.stdout.readline())
            time.sleep(pause)
            os.kill(writer.pid, signal.SIGKILL)
            saved = max([saved, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        thread = open_archive(address).thread("one")
        assert thread.indices()[: saved + 1] == list(range(saved + 1))
        assert thread.read(saved, 1)[0].text == f"message {saved} " * 200


def test_two_writers_take_turns(tmp_path: Path) -> None:
    address = f"file://{tmp_path}"
    script = WRITER.replace("10_000", "int(sys.argv[2]) + 40")
    writers = [
        subprocess.Popen([sys.executable, "-c", script, address, str(first)], stdout=subprocess.DEVNULL)
        for first in (0, 1000)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert open_archive(address).thread("one").indices() == [*range(40), *range(1000, 1040)]


def test_a_path_names_a_folder_and_what_is_no_address_is_refused(tmp_path: Path) -> None:
    assert open_archive(tmp_path / "here").thread("t").path == open_archive(str(tmp_path / "here")).thread("t").path
    wrong: list[Any] = [None, 7, b"file:///x", "", ["file:///x"]]
    for address in wrong:
        with pytest.raises(InputError, match="named by an address or a path"):
            open_archive(address)


@pytest.mark.parametrize("wrong", [None, 7, b"ada"], ids=str)
def test_the_name_of_a_thread_that_is_no_text_is_refused(tmp_path: Path, wrong: Any) -> None:
    archive = open_archive(str(tmp_path))
    with pytest.raises(InputError, match="thread id must be a text"):
        archive.thread(wrong)
    with pytest.raises(InputError, match="namespace must be a text"):
        archive.thread("ada", namespace=wrong)
