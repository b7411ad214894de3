"""Outputs are whole or not there, and inputs that cannot be read are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contextfold.cli.files import SeveralConversations, check_writable, load, write_atomically
from contextfold.errors import InputError

CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello to you"}]


def saved(folder: Path, value: object) -> str:
    path = folder / "session.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_a_file_with_one_conversation_needs_no_choice(tmp_path: Path) -> None:
    conversation = load(saved(tmp_path, CHAT), format=None, pick=None)
    assert (conversation.format, conversation.messages) == ("openai-chat", CHAT)
    assert load(saved(tmp_path, CHAT), format=None, pick=1).messages == CHAT


def test_a_file_with_several_conversations_asks_for_a_choice(tmp_path: Path) -> None:
    file = saved(tmp_path, {"simulations": [{"messages": CHAT}, {"messages": CHAT[:1]}]})
    with pytest.raises(SeveralConversations, match="holds 2 conversations: choose one with --pick N, from 1 to 2"):
        load(file, format=None, pick=None)
    assert load(file, format=None, pick=2).messages == CHAT[:1]
    with pytest.raises(InputError, match="holds 2 conversations, so --pick must be from 1 to 2, not 3"):
        load(file, format=None, pick=3)


def test_what_of_a_file_is_in_no_conversation_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(text: str, before: str | None) -> dict[str, object]:
        message = {"role": "user", "content": text}
        return {"type": "user", "uuid": text, "parentUuid": before, "sessionId": "s", "message": message}

    file = saved(tmp_path, [said("a", None), said("b", "a"), said("c", "a")])
    assert [message["content"] for message in load(file, format=None, pick=None).messages] == ["a", "c"]
    wanted = f"contextfold: {file}: entry 1: left out, as the person went back and said something else\n"
    assert capsys.readouterr().err == wanted


def test_a_choice_beyond_the_only_conversation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds one conversation, so --pick must be from 1 to 1, not 2"):
        load(saved(tmp_path, CHAT), format=None, pick=2)


@pytest.mark.parametrize(("name", "reason"), [("none.json", "no such file"), (".", "is a directory")])
def test_an_input_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"{name} cannot be read: {reason}"):
        load(name, format=None, pick=None)


def test_a_closed_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed: name a file, or send a conversation"):
        load("-", format=None, pick=None)


@pytest.mark.parametrize(
    "words",
    [
        "compact FILE --output - --quiet",
        "compact FILE --output view.json --report json",
        "inspect FILE --report json",
        "view FILE --out -",
        "batch compact FILE --output views --report json",
        "gateway --print-config codex",
    ],
)
def test_what_a_closed_standard_output_would_lose_is_an_error(tmp_path: Path, words: str) -> None:
    (tmp_path / "talk.json").write_text('[{"role": "user", "content": "Hello."}]', encoding="utf-8")
    command = f"exec {sys.executable} -m contextfold {words.replace('FILE', 'talk.json')} >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "contextfold: standard output is closed: name a file, or send it through a pipe\n"
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]


def test_a_written_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "view.json"), b"[1]")
    assert [path.name for path in tmp_path.iterdir()] == ["view.json"]
    assert (tmp_path / "view.json").read_bytes() == b"[1]"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "view.json"
    path.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match=r"view\.json cannot be written: no space left on device"):
        write_atomically(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_atomically(str(tmp_path / "new.json"), b"")
    finally:
        os.umask(mask)
    assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o640
    old = tmp_path / "old.json"
    old.write_bytes(b"")
    old.chmod(0o604)
    write_atomically(str(old), b"x")
    assert old.stat().st_mode & 0o777 == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_bytes(b"old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_atomically(str(tmp_path / "link.json"), b"new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_bytes() == b"new"


def test_a_device_is_written_and_not_replaced() -> None:
    write_atomically(os.devnull, b"gone")
    assert not Path(os.devnull).is_file()


def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "view.json"))
    with pytest.raises(InputError, match="is a folder: name a file in it"):
        check_writable(str(tmp_path))
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        check_writable(str(tmp_path / "nowhere" / "view.json"))
