"""``contextfold view``: what can be typed, what is written, and which mistakes end it in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from emulator import ProviderServer
from talks import tool_loop, unpacked
from typer.testing import CliRunner, Result

from contextfold import Compactor
from contextfold.cli.app import app

MESSAGES = tool_loop(16)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(MESSAGES), encoding="utf-8")
    return path


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["view", *map(str, arguments)])


def test_out_writes_one_file_that_holds_the_document(file: Path, tmp_path: Path) -> None:
    done = run(file, "--window", 3000, "--out", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_bytes()
    assert page.startswith(b"<!doctype html>")
    found = unpacked(page)
    assert found["runs"][0]["settings"]["window"] == 3000
    assert "open it in a browser" in done.stderr
    written = run(file, "--window", 3000, "--out", tmp_path / "document.json")
    assert written.exit_code == 0
    assert "browser" not in written.stderr
    plain = json.loads((tmp_path / "document.json").read_bytes())
    assert plain["runs"][0]["requests"] == found["runs"][0]["requests"]


def test_two_settings_are_compared(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = run(file, "--compare", "window=3000", "window=6000,keep=fraction:0.2", "--out", out)
    assert done.exit_code == 0, done.output
    one, other = unpacked(out.read_bytes())["runs"]
    assert (one["name"], one["settings"]["window"]) == ("window=3000", 3000)
    assert (other["settings"]["window"], other["settings"]["keep"]) == (6000, "fraction:0.2")


def test_every_field_of_the_policy_can_be_compared_and_no_other(file: Path, tmp_path: Path) -> None:
    """Those inside of a section were refused; and who mistyped ``window`` got a list of names without it."""
    out = tmp_path / "document.json"
    done = run(file, "--compare", "window=3000,budgets.usage=0.3", "window=3000,budgets.usage=0.8", "--out", out)
    assert done.exit_code == 0, done.output
    small, large = (run["states"][-1]["compaction"]["tokens_after"] for run in json.loads(out.read_bytes())["runs"])
    assert small < large
    mistyped = run(file, "--compare", "windw=3000", "window=9000", "--out", out)
    assert mistyped.exit_code == 2
    assert "--compare 'windw=3000': there is no setting 'windw'; did you mean 'window'?" in mistyped.stderr


def test_the_settings_of_a_file_are_those_of_the_replay_its_model_too(file: Path, tmp_path: Path) -> None:
    """As for ``compact`` and ``batch``: the model that the file names was not asked, and no one said so."""
    out, config = tmp_path / "document.json", tmp_path / "settings.yaml"
    options = [file, "--window", 3000, "--config", config, "--out", out]
    config.write_text(
        "summarization: {enabled: true, model_name: 'openai:small', trigger: {type: fraction, value: 0.6}}",
        encoding="utf-8",
    )
    with ProviderServer() as server:
        assert run(*options, "--base-url", server.openai_url).exit_code == 0
        first, *_ = json.loads(out.read_bytes())["runs"][0]["states"][1:]
        assert first["summary"]["algorithm"] == "bisect_v1"
        assert first["summary"]["text"].startswith("Digest of ")
        asked = len(server.requests)
        assert asked
        assert run(*options, "--summarizer", "extractive").exit_code == 0
        assert len(server.requests) == asked, "what is typed goes before the file"
    config.write_text(config.read_text(encoding="utf-8").replace("openai:", "nobody:"), encoding="utf-8")
    refused = run(*options)
    assert refused.exit_code == 2
    assert "settings.yaml, line 1: model_name: summarizer 'nobody:small'" in refused.output
    config.write_text("summarization: {enabled: false, model_name: 'openai:small'}", encoding="utf-8")
    assert run(*options).exit_code == 0
    assert len(json.loads(out.read_bytes())["runs"][0]["states"]) == 1, "switched off is off"


def test_a_recorded_session_becomes_a_report_or_is_replayed(tmp_path: Path) -> None:
    url, out = f"sqlite:///{tmp_path / 'sessions.db'}", tmp_path / "report.html"
    session = Compactor(window=3_000).session("demo", url)
    for at in range(0, len(MESSAGES), 2):
        session.view()
        session.append(MESSAGES[at : at + 2])
    assert run("--store", url, "demo", "--out", out).exit_code == 0
    recorded = unpacked(out.read_bytes())
    assert recorded["source"]["recorded"] is True
    assert run("--store", url, "demo", "--compare", "window=3000", "window=9000", "--out", out).exit_code == 0
    replayed = unpacked(out.read_bytes())
    assert replayed["source"]["recorded"] is False
    assert len(replayed["runs"]) == 2
    assert replayed["messages"] == recorded["messages"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a session file, or --store URL"),
        (["FILE", "--compare", "window", "window=9"], "'window' is not NAME=VALUE"),
        (["FILE", "--compare", "window=zero", "window=9"], "a whole number of at least 1"),
        (["FILE", "--compare", "widow=9000", "window=9000"], "widow"),
        (["FILE", "--compare", "window=9", "keep=x"], ": --compare 'keep=x': 'x' is not a size"),
        (["FILE", "--keep", "messages:9", "--trigger", "messages:5"], ": --keep and --trigger: keep messages:9 is not"),
        (["FILE", "--allow-changes"], "--allow-changes is for --store"),
        (["FILE", "--out", "/nowhere/report.html"], "there is no folder /nowhere"),
        (["/nowhere/session.json"], "cannot be read"),
        (["--store", "sqlite:///:memory:", "--out", "report.html"], "name its thread"),
        (["--store", "STORE", "--allow-changes", "--keep", "bogus"], "'bogus' is not a size"),
        (["--store", "STORE", "--allow-changes", "--summarizer", "gpt"], "it names no provider and model"),
    ],
)
def test_a_mistake_ends_in_one_line_that_says_the_way_out(file: Path, arguments: list[str], said: str) -> None:
    url = f"sqlite:///{file.with_name('sessions.db')}"
    Compactor(window=3_000).session("demo", url).append(MESSAGES[:2])
    named = {"FILE": str(file), "STORE": url}
    done = run(*[named.get(argument, argument) for argument in arguments])
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_without_the_extra_a_report_can_still_be_written(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(sys.modules, "contextfold.inspector.server", raising=False)
    monkeypatch.delattr("contextfold.inspector.server", raising=False)  # another test may have imported it
    done = run(file, "--window", 3000, "--no-open")
    assert done.exit_code == 2
    assert "pip install 'contextfold[view]'" in done.output
    assert run(file, "--window", 3000, "--out", tmp_path / "report.html").exit_code == 0
