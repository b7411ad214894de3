"""What is typed wrong is told in one line: the option, what was typed, and the way out. Nothing is begun."""

from __future__ import annotations

import json
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextfold.cli.app import run
from contextfold.compactor import Compactor
from contextfold.errors import FormatError, InputError, PolicyError
from contextfold.gateway.settings import GatewaySettings

TALK = [
    {"role": "user", "content": "hello " * 50},
    {"role": "assistant", "content": "good day " * 50},
    {"role": "user", "content": "go on"},
]

REFUSED = [
    ("gateway --port abc", "--port': 'abc' is not a whole number from 0 to 65535"),
    ("gateway --port 65536", "'65536' is not a whole number from 0 to 65535"),
    ("gateway --max-body 0", "--max-body': '0' is not a whole number of at least 1"),
    ("gateway --max-requests -5", "'-5' is not a whole number of at least 1"),
    ("gateway --workers 0", "--workers': '0' is not a whole number of at least 1"),
    ("gateway --first-byte-timeout 0", "'0' is not a number of seconds above 0"),
    ("gateway --client-timeout inf", "'inf' is not a number of seconds above 0"),
    ("gateway --shutdown-timeout nan", "'nan' is not a number of seconds above 0"),
    ("gateway --upstream openai", "--upstream openai: write NAME=URL, such as"),
    ("gateway --upstream openai=http://h:99999/v1", "openai=http://h:99999/v1: give the base URL"),
    ("gateway --upstream openai=http://:80/v1", "openai=http://:80/v1: give the base URL"),
    ("gateway --upstream 'a b=http://h'", "'a b' is no name for the path"),
    ("gateway --upstream metrics=http://h", "none of v1, healthz, metrics"),
    ("gateway --trigger soon", "--trigger: 'soon' is not a size: write tokens:4000, messages:20 or fraction:0.8"),
    (
        "gateway --trigger tokens:5 --target tokens:9",
        "--target and --trigger: target tokens:9 is not below the trigger",
    ),
    ("gateway --host no-such-host.invalid --port 0", "give an address of this machine with --host"),
    ("gateway --host '' --port 0", "host has no name: leave it out for this machine alone"),
    ("gateway --host 203.0.113.7 --port 0", "give an address of this machine with --host"),
    ("gateway --port BUSY", "address already in use; choose another with --port"),
    ("gateway --workers 2 --port BUSY", "address already in use; choose another with --port"),
    *(
        (f"gateway --workers 2 --port 0 --store {store}", "several workers need a store that they share")
        for store in ("sqlite://", "sqlite:///:memory:", "'sqlite:///file:a?mode=memory&uri=true'")
    ),
    ("gateway --print-config emacs", "--print-config emacs: there are claude, codex"),
    ("run --host 0.0.0.0 -- true", "listens on loopback only"),
    ("run --log yaml -- true", "log is 'yaml'; it is text, json or none"),
    ("run", "-- COMMAND"),
    ("compact talk.json --trigger 80%", "--trigger: '80%' is not a size: write tokens:4000"),
    ("compact talk.json --keep messages:0", "--keep: a size in messages must be a whole number of at least 1"),
    ("compact talk.json --window 1000 --to klingon", "--to': unknown format 'klingon'; formats are openai-chat"),
    ("inspect talk.json --from klingon", "--from': unknown format 'klingon'; formats are openai-chat"),
    ("compact talk.json --report xml", "--report': 'xml' is not one of 'text', 'json'"),
    ("inspect talk.json --pick 2", "holds one conversation"),
    ("inspect nothing.json", "nothing.json cannot be read: no such file"),
    ("batch compact talk.json -o out --workers many", "--workers': 'many' is not a whole number of at least 0"),
    ("batch compact talk.json -o out --window 9 --target big", "--target: 'big' is not a size"),
    ("batch check talks.jsonl -o out --as csv", "--as': 'csv' is not one of 'jsonl', 'parquet'"),
    ("sessions recall talk words --neighbors few", "'few' is not a whole number of at least 0"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("talk.json").write_text(json.dumps(TALK), encoding="utf-8")
    Path("talks.jsonl").write_text(json.dumps({"messages": TALK}) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def busy() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield int(taken.getsockname()[1])


def said(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["contextfold", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        run()
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(("line", "told"), REFUSED)
def test_a_line_that_cannot_be_is_refused_with_what_was_typed(
    line: str,
    told: str,
    folder: Path,
    busy: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path.name for path in folder.iterdir()}
    code, error = said(line.replace("BUSY", str(busy)), monkeypatch, capsys)
    assert (code, error.count("\n")) == (2, 1), error
    assert error.startswith("contextfold: ")
    assert told in error
    assert "Value error" not in error
    assert {path.name for path in folder.iterdir()} - {"state"} == before


def test_a_group_without_a_command_shows_its_help_and_no_empty_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for group in ("batch", "sessions"):
        monkeypatch.setattr("sys.argv", ["contextfold", group])
        with pytest.raises(SystemExit) as ended:
            run()
        out, error = capsys.readouterr()
        assert ended.value.code == 2
        assert f"contextfold {group}" in out
        assert error == ""


def test_an_unknown_model_is_named_where_its_window_is_guessed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["contextfold", "compact", "talk.json", "--model", "abacus-1"])
    with pytest.raises(SystemExit):
        run()
    assert "the window of abacus-1 is not known: give --window" in " ".join(capsys.readouterr().out.split())


def test_a_named_column_that_no_row_has_is_an_error_of_each_row(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "batch check talks.jsonl -o out --window 1000 --workers 0 --column chat"
    monkeypatch.setattr("sys.argv", ["contextfold", *line.split()])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 3
    assert "no column chat: there are messages" in capsys.readouterr().out


def test_an_address_where_nothing_answers_is_not_called_empty(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fsspec")
    code, error = said("batch check memory://nowhere/talks.jsonl -o out --workers 0", monkeypatch, capsys)
    assert code == 2
    assert "memory://nowhere/talks.jsonl: there is no such file or folder" in error


def test_a_format_that_there_is_not_costs_no_summary() -> None:
    asked: list[str] = []

    def summarize(text: str) -> str:
        asked.append(text)
        return "They greeted each other."

    compactor = Compactor(window=400, summarizer=summarize)
    with pytest.raises((FormatError, InputError), match="klingon"):
        compactor.compact(TALK * 20, to="klingon")
    assert asked == []
    assert compactor.compact(TALK * 20, to="anthropic").changed
    assert asked


@pytest.mark.parametrize("field", ["max_body", "max_requests", "workers"])
def test_a_gateway_with_a_limit_of_nothing_is_refused(field: str) -> None:
    with pytest.raises(PolicyError, match=f"{field} is 0; it is a number of at least 1"):
        GatewaySettings(**{field: 0})


@pytest.mark.parametrize("field", ["first_byte_seconds", "client_seconds", "shutdown_seconds"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_a_gateway_that_waits_for_no_time_or_forever_is_refused(field: str, value: float) -> None:
    with pytest.raises(PolicyError, match=f"{field} is .* a number of seconds above 0"):
        GatewaySettings(**{field: value})
