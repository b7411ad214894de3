"""The command line with a summary by a model: a real server, live progress, and how it ends when the model fails."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from emulator import Fault, ProviderServer
from rich.console import Console
from typer.testing import CliRunner, Result

from contextfold.cli import app as commands
from contextfold.cli.app import app
from contextfold.cli.progress import LiveProgress, duration, says
from contextfold.observe import SummaryPiece, SummaryProgress
from effort import crossed


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={"small": 4_000}) as server:
        yield server


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    messages = [{"role": "user", "content": "Please repair the nightly import."}]
    for number in range(40):
        said = f"I read /srv/app/part{number}.py. " + "It works as it should. " * 60
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"Go on with T-{number}."}]
    path = tmp_path / "session.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compact", *arguments], env={"COLUMNS": "200"})


def report(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@crossed(api=("chat", "responses"), quick=1)
def test_a_model_behind_a_base_url_summarizes(api: str, session: Path, server: ProviderServer) -> None:
    options = ["--window", "8000", "--summarizer", "openai:small", "--base-url", server.openai_url]
    found = report(run(str(session), *options, "--summary-api", api, "--report", "json"))
    assert found["changed"]
    assert found["summary"]["text"].startswith("Digest of ")
    assert found["summary"]["algorithm"] == "bisect_v1"
    assert found["summary"]["chunk_count"] > 1
    assert found["summary"]["max_depth"] >= 1


def test_a_window_that_is_told_is_not_searched(session: Path, server: ProviderServer) -> None:
    options = ["--window", "8000", "--summarizer", "openai:small", "--base-url", server.openai_url]
    found = report(run(str(session), *options, "--summary-window", "4000", "--report", "json"))
    assert found["summary"]["max_depth"] == 0


def test_the_next_model_is_asked(session: Path, server: ProviderServer) -> None:
    server.faults.add(Fault.http_error(401, "no"), when=lambda request: request.model == "first", times=1)
    options = ["--window", "8000", "--summarizer", "openai:first", "--base-url", server.openai_url]
    result = run(str(session), *options, "--summary-fallback", "anthropic:second")
    assert result.exit_code == 2
    assert "anthropic:second needs a key: set ANTHROPIC_API_KEY" in result.stderr


def test_a_model_that_fails_leaves_a_view_and_a_warning(session: Path, server: ProviderServer) -> None:
    server.faults.add(Fault.http_error(401, "wrong key"), when=lambda request: request.model == "locked", times=9)
    options = ["--window", "8000", "--summarizer", "openai:locked", "--base-url", server.openai_url]
    result = run(str(session), *options)
    assert result.exit_code == 0
    assert "the built-in extractive summary stands in" in result.stdout


def test_a_failure_that_the_settings_let_through_is_one_line(
    session: Path, server: ProviderServer, tmp_path: Path
) -> None:
    server.faults.add(Fault.http_error(401, "wrong key"), when=lambda request: request.model == "locked", times=9)
    config = tmp_path / "settings.yaml"
    config.write_text("on_failure: raise\n", encoding="utf-8")
    options = ["--window", "8000", "--summarizer", "openai:locked", "--base-url", server.openai_url]
    result = run(str(session), *options, "--config", str(config))
    assert result.exit_code == 3
    assert f"{session}: the summary by openai:locked failed: " in result.stderr
    assert "wrong key" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--summarizer", "openai:x"], "openai:x needs a key: set OPENAI_API_KEY"),
        (["--summarizer", "openai:x"], "OPENAI_API_KEY in the environment\n"),
        (["--summarizer", "gpt"], "--summarizer 'gpt': it names no provider and model; there are extractive, openai"),
        (["--summarizer", "x:gpt"], "and openai:MODEL with --base-url for"),
        (["--summarizer", "openai:x", "--base-url", "http://x", "--summary-api", "old"], ": --summary-api is 'old'"),
        (["--summarizer", "openai:x", "--base-url", "x"], ": --base-url is 'x'"),
        (["--summarizer", "openai:x", "--base-url", "http://x", "--summary-window", "9"], ": --summary-window is 9:"),
        (["--summarizer", "openai:x", "--base-url", "http://x", "--summary-fallback", "y"], "--summary-fallback 'y'"),
        (["--summary-api", "chat"], "--summary-api chat: the extractive summarizer calls no provider"),
        (["--summary-window", "4000"], "--summary-window 4000: the extractive"),
        (["--summary-fallback", "openai:x"], "--summary-fallback openai:x: the extractive"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_the_options(options: list[str], words: str, session: Path) -> None:
    result = run(str(session), *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_ctrl_c_ends_with_one_line(
    session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: Any) -> None:
        raise typer.Abort

    monkeypatch.setattr(commands, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        commands.run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "contextfold: interrupted; nothing was written\n"


# ---- live progress ----

HALFWAY = SummaryProgress(3, 12, 1, 10_000, 40_000, 5.0, 15.0)


def test_progress_says_chunks_depth_tokens_and_time_left() -> None:
    assert says(HALFWAY) == "3 of 12 chunks, depth 1, 10,000 of 40,000 tokens, about 15 s left"
    begun = SummaryProgress(0, 1, 0, 0, 900, 0.1, None)
    assert says(begun) == "0 of 1 chunk, depth 0, 0 of 900 tokens"
    read = SummaryProgress(12, 12, 1, 40_000, 40_000, 20.0, 0.0)
    assert says(read).endswith("40,000 tokens, merging")
    assert duration(200) == "3 min 20 s"


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=160)


def test_it_is_drawn_on_a_terminal_and_nowhere_else() -> None:
    for terminal in (True, False):
        out = console(terminal=terminal)
        with LiveProgress(out, "openai:[small]") as progress:
            for hook in progress.hooks.values():
                assert terminal
                hook(HALFWAY if hook == progress.on_progress else SummaryPiece("abc", "chunk", 1))
        shown = out.file.getvalue()  # type: ignore[attr-defined]
        assert ("3 of 12 chunks" in shown) == terminal
        assert ("openai:[small]" in shown) == terminal
        assert ("3 characters written" in shown) == terminal


def test_hooks_that_come_late_draw_nothing() -> None:
    """An answer that no one waits for any more may still arrive."""
    progress = LiveProgress(console(terminal=True), "openai:small")
    progress.on_progress(HALFWAY)
    progress.on_stream(SummaryPiece("abc", "chunk", 1))
