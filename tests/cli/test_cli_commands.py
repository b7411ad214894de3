"""The commands as a user types them: what they print, what they write, and how they end."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from contextfold import formats
from contextfold.cli import files, main
from contextfold.cli.app import app
from real_files import BENCHMARKS_ONLY
from real_files import files as real_files

ROOT = Path(__file__).resolve().parents[2]
KEYS = [
    "format", "messages_before", "messages_after", "tokens_before", "tokens_after", "window", "changed", "trigger",
    "target", "floor", "ledger", "summary", "seconds",
]  # fmt: skip
SUMMARY_KEYS = [
    "text", "input_tokens", "output_tokens", "calls", "chunk_count", "max_depth", "truncated", "compression_ratio",
    "algorithm",
]  # fmt: skip
FATES = {"kept", "pinned", "shortened", "summarized", "dropped"}
SMALL = [{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "Under the mat."}]


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin, env={"COLUMNS": "100"})


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example session, as ``make demo`` makes it."""
    path: Path = tmp_path_factory.mktemp("demo") / "session.json"
    request = runpy.run_path(str(ROOT / "examples" / "make_session.py"))["make_request"]()
    path.write_text(json.dumps(request), encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL), encoding="utf-8")
    return path


def complaint(result: Result, code: int) -> str:
    """The one line that a failed command leaves."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("contextfold: ")
    return lines[0]


# ---- compact ----


def test_compact_tells_what_it_did(demo: Path) -> None:
    result = run("compact", str(demo), "--window", "16000")
    assert result.exit_code == 0, result.output
    for part in ("before", "after", "What made room", "Where every message went", "The summary", "untouched in"):
        assert part in result.stdout
    assert "\x1b" not in result.stdout, "color codes outside a terminal"


def test_originals_are_called_untouched_only_where_they_are(demo: Path, tmp_path: Path) -> None:
    for output in ("own", "link", "other"):
        source = tmp_path / f"{output}.json"
        source.write_bytes(demo.read_bytes())
        places = {"own": f"{tmp_path}/../{tmp_path.name}/own.json", "link": f"{tmp_path}/to.json"}
        if output == "link":
            (tmp_path / "to.json").symlink_to(source)
        place = places.get(output, f"{tmp_path}/view.json")
        result = run("compact", str(source), "--window", "16000", "--output", place)
        assert ("untouched" in result.stdout) == (source.read_bytes() == demo.read_bytes()) == (output == "other")
    assert "untouched" not in run("compact", "-", "--window", "16000", stdin=demo.read_bytes()).stdout


def test_the_json_report_has_exactly_the_contracts_keys(demo: Path) -> None:
    result = run("compact", str(demo), "--window", "16000", "--report", "json")
    report = json.loads(result.stdout)
    assert list(report) == KEYS
    assert list(report["summary"]) == SUMMARY_KEYS
    assert 0 < report["floor"] < report["tokens_after"] <= report["target"]
    assert report["changed"] is True
    assert report["format"] == "openai-chat"
    assert report["window"] == 16_000
    assert report["tokens_after"] <= report["target"] < report["tokens_before"]
    entries, counts = report["ledger"]["entries"], report["ledger"]["counts"]
    assert [index for index, _, _ in entries] == list(range(report["messages_before"]))
    assert counts == {fate: sum(1 for entry in entries if entry[1] == fate) for fate in counts}
    assert set(counts) == FATES


def test_the_view_is_written_beside_the_report(demo: Path, tmp_path: Path) -> None:
    view = tmp_path / "view.json"
    result = run("compact", str(demo), "--window", "16000", "--output", str(view), "--report", "json")
    messages = json.loads(view.read_text(encoding="utf-8"))
    assert len(messages) == json.loads(result.stdout)["messages_after"]
    assert messages[0]["role"] == "system"
    original = json.loads(demo.read_text(encoding="utf-8"))["messages"]
    assert messages[1] == original[1], "the first user message stays word for word"
    assert messages[-1] == original[-1], "the newest user message stays word for word"


def test_what_the_user_said_early_is_in_the_view_at_the_end(demo: Path) -> None:
    view = run("compact", str(demo), "--window", "16000", "--output", "-", "--quiet").stdout
    for fact in (
        "INV-2031-118731",
        "BILL-4417",
        "ledger_entries",
        "55432",
        "release/31.3",
        "CHG-20764",
        "half to even",
    ):
        assert fact in view, f"{fact} is lost"


def test_the_view_goes_to_standard_output_and_the_report_to_standard_error(demo: Path) -> None:
    result = run("compact", str(demo), "--window", "16000", "--output", "-")
    assert json.loads(result.stdout)[0]["role"] == "system"
    assert "Where every message went" in result.stderr
    result = run("compact", str(demo), "--window", "16000", "--output", "-", "--report", "json")
    assert len(json.loads(result.stdout)) == json.loads(result.stderr)["messages_after"]


def test_quiet_prints_nothing(demo: Path, tmp_path: Path) -> None:
    result = run("compact", str(demo), "--window", "16000", "--quiet", "--output", str(tmp_path / "view.json"))
    assert (result.exit_code, result.output) == (0, "")


def test_a_conversation_that_fits_is_handed_back_as_it_is(small: Path, tmp_path: Path) -> None:
    result = run("compact", str(small), "--output", str(tmp_path / "view.json"))
    assert result.exit_code == 0
    assert "Nothing to do" in result.stdout
    assert json.loads((tmp_path / "view.json").read_text(encoding="utf-8")) == SMALL
    report = json.loads(run("compact", str(small), "--report", "json").stdout)
    assert (report["changed"], report["summary"]) == (False, None)
    assert report["ledger"]["counts"]["kept"] == len(SMALL)


def test_the_output_may_be_the_input(demo: Path, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(demo.read_bytes())
    assert run("compact", str(path), "--window", "16000", "--output", str(path)).exit_code == 0
    first = path.read_bytes()
    assert len(first) < len(demo.read_bytes())
    assert run("compact", str(path), "--window", "16000", "--output", str(path)).exit_code == 0
    assert path.read_bytes() == first, "it fits by now, so nothing changes"


def test_standard_input_works(small: Path) -> None:
    result = run("compact", "-", "--output", "-", "--quiet", stdin=small.read_bytes())
    assert json.loads(result.stdout) == SMALL
    assert "standard input" in run("inspect", "-", stdin=small.read_bytes()).stdout


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "langchain"])
def test_the_view_can_be_in_another_format(demo: Path, target: str) -> None:
    result = run("compact", str(demo), "--window", "16000", "--to", target, "--output", "-", "--report", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert json.loads(result.stderr)["format"] == target


def test_settings_come_from_a_file_and_options_go_before_them(demo: Path, tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("trigger: fraction:0.9\ntarget: tokens:9000\n", encoding="utf-8")
    arguments = ["compact", str(demo), "--window", "16000", "--config", str(config), "--report", "json"]
    assert json.loads(run(*arguments).stdout)["target"] == 9_000
    assert json.loads(run(*arguments, "--target", "tokens:7000").stdout)["target"] == 7_000


def test_a_broken_history_is_mended_and_said(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "42"}
    path.write_text(json.dumps([SMALL[0], orphan, SMALL[1]]), encoding="utf-8")
    result = run("compact", str(path))
    assert "Worth knowing" in result.stdout
    assert "orphan result 'nobody'" in result.stdout
    assert "orphan result 'nobody'" in run("inspect", str(path)).stdout


def test_half_a_surrogate_pair_becomes_a_replacement_character(tmp_path: Path) -> None:
    """No file and no request can carry it, so the view is mended like any other broken history."""
    path = tmp_path / "half.json"
    path.write_text('[{"role": "user", "content": "half \\ud83d of it"}]', encoding="utf-8")
    view = run("compact", str(path), "--output", "-", "--quiet").stdout
    assert json.loads(view)[0]["content"] == "half \ufffd of it"


def test_a_default_window_says_so(small: Path) -> None:
    assert "cautious default" in run("compact", str(small)).stdout
    assert "cautious default" not in run("compact", str(small), "--window", "9000").stdout
    assert "registry" in run("compact", str(small), "--model", "openai:gpt-4o").stdout


# ---- several conversations ----


def test_several_conversations_are_listed_for_choosing(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"simulations": [{"messages": SMALL}, {"messages": SMALL[:1]}]}), encoding="utf-8")
    result = run("compact", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds 2 conversations: choose one with --pick N" in result.stderr
    assert result.stderr.count("Where is the key?") == 2
    assert run("compact", str(path), "--pick", "2").exit_code == 0
    assert "1 to 2, not 3" in complaint(run("compact", str(path), "--pick", "3"), 2)


# ---- bad input ----


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b'[{"role": "user", "content": "cut of', "not valid JSON"),
        (b'[{"role": "user", "content": "x"}, 5]', "message 1"),
        (b'{"role": "user", "content": "\xff"}', "not valid UTF-8"),
        (b"[1, 2]", "message 0"),
    ],
    ids=["empty", "truncated", "no message", "not UTF-8", "numbers"],
)
def test_bad_input_ends_in_one_line_that_names_the_file_and_no_output(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    for command in ("compact", "inspect"):
        line = complaint(
            run(command, str(path), *(["--output", str(tmp_path / "v")] if command == "compact" else [])), 2
        )
        assert "bad.json" in line
        assert problem in line
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--trigger", "fraction:2"], "trigger"),
        (["--trigger", "fraction:0.5", "--target", "fraction:0.6"], "target fraction:0.6 is not below the trigger"),
        (["--keep", "pages:3"], "unknown unit 'pages'"),
        (["--window", "1000", "--keep", "tokens:2000"], "keep"),
        (["--summarizer", "mistral:large"], "there is no provider 'mistral'"),
        (["--base-url", "http://localhost"], "calls no provider"),
        (["--config", "none.yaml"], "none.yaml cannot be read"),
        (["--output", "nowhere/view.json"], "there is no folder"),
    ],
)
def test_a_bad_setting_ends_in_one_line_that_names_it(small: Path, options: list[str], problem: str) -> None:
    assert problem in complaint(run("compact", str(small), *options), 2)


@pytest.mark.parametrize("options", [["--window", "0"], ["--window", "many"], ["--report", "xml"], ["--nonsense"]])
def test_wrong_usage_ends_with_two(small: Path, options: list[str]) -> None:
    assert run("compact", str(small), *options).exit_code == 2


def test_a_window_below_the_floor_ends_with_three_and_names_the_floor(demo: Path) -> None:
    line = complaint(run("compact", str(demo), "--window", "300"), 3)
    assert "cannot be compacted below" in line
    assert str(demo) in line


@pytest.mark.parametrize(
    ("option", "named"), [("--wibble", "--wibble"), ("--window=0", "--window"), ("--window=large", "--window")]
)
def test_wrong_usage_is_said_in_one_line(
    option: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["contextfold", "compact", "session.json", option])
    with pytest.raises(SystemExit, match="2"):
        main()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert named in shown.err


def test_nothing_at_all_shows_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["contextfold"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "compact" in capsys.readouterr().out


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, small: Path) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "load", interrupt)
    monkeypatch.setattr(sys, "argv", ["contextfold", "inspect", str(small)])
    with pytest.raises(SystemExit, match="130"):
        main()


@pytest.mark.parametrize("module", ["contextfold.cli.app", "contextfold.transcripts.codex", "contextfold.compactor"])
def test_an_interrupt_while_modules_are_loaded_ends_quietly_too(module: str, small: Path) -> None:
    """They take the first third of a second; a person who pressed Ctrl-C then saw forty lines of Python."""
    script = f"""
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from contextfold.cli import main
main()
"""
    command = [sys.executable, "-c", script, "compact", str(small), "--window", "4000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert len(ended.stderr.splitlines()) <= 1


# ---- inspect ----


def test_inspect_shows_where_the_tokens_are(demo: Path) -> None:
    shown = run("inspect", str(demo)).stdout
    for part in ("Tokens along", "By role", "By tool", "read_file", "Largest messages", "Largest groups", "No broken"):
        assert part in shown


def test_the_json_inspection_adds_up(demo: Path) -> None:
    found = json.loads(run("inspect", str(demo), "--report", "json").stdout)
    assert found["tokens"] == sum(found["sizes"]) == sum(share["tokens"] for share in found["roles"])
    assert found["messages"] == len(found["sizes"]) == sum(share["messages"] for share in found["roles"])
    assert found["faults"] == []
    assert found["largest"][0]["tokens"] == max(found["sizes"])


def test_an_empty_message_and_media_have_a_preview(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    path = tmp_path / "media.json"
    path.write_text(json.dumps([{"role": "user", "content": [image]}, {"role": "assistant", "content": ""}]))
    previews = [
        large["preview"] for large in json.loads(run("inspect", str(path), "--report", "json").stdout)["largest"]
    ]
    assert "1 media" in previews


# ---- the program itself ----


def test_the_program_is_installed_under_its_name() -> None:
    program = Path(sys.executable).with_name("contextfold")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("contextfold 0.")
    done = subprocess.run([sys.executable, "-m", "contextfold", "--help"], capture_output=True, text=True, check=True)
    assert "compact" in done.stdout
    assert "inspect" in done.stdout


def test_a_terminal_without_unicode_gets_a_plain_report(demo: Path) -> None:
    command = [sys.executable, "-m", "contextfold", "compact", str(demo), "--window", "16000"]
    environment = {"PYTHONIOENCODING": "ascii", "PATH": "", "COLUMNS": "100"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stdout.isascii()
    assert b"####" in done.stdout


def test_help_does_not_load_what_only_reports_need() -> None:
    probe = (
        "import sys; sys.argv = ['contextfold', '--version']\n"
        "from contextfold.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'rich', 'yaml', 'genai_prices', 'tiktoken', 'langchain_core'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---- real conversations ----


@pytest.mark.strict
def test_real_files_of_every_kind_are_inspected_and_compacted(transcripts: Path) -> None:
    """One of each folder, the smallest, so that this takes seconds; all of them are the business of the laws script."""
    named = [path for path in real_files(transcripts, "*/*") if not path.name.startswith(("LICENSE", "probing"))]
    smallest: dict[Path, Path] = {}
    for path in sorted(named, key=lambda path: (-path.stat().st_size, path.name)):
        if path.parent.name not in BENCHMARKS_ONLY:
            smallest[path.parent] = path
    assert smallest
    for path in smallest.values():
        result = run("compact", str(path), "--window", "16000", "--report", "json")
        chosen = []
        if result.exit_code == 2 and "--pick N" in result.stderr:
            chosen = ["--pick", "1"]
            result = run("compact", str(path), "--window", "16000", "--report", "json", *chosen)
        assert result.exit_code == 0, f"{path}: {result.output}"
        report: dict[str, Any] = json.loads(result.stdout)
        assert sum(report["ledger"]["counts"].values()) == report["messages_before"]
        assert run("inspect", str(path), *chosen).exit_code == 0


@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [("inspect big.json", "1"), ("inspect big.json --report json", ""), ("--help", "")],
)
def test_a_reader_who_leaves_early_ends_the_program_in_order(command: str, unbuffered: str, tmp_path: Path) -> None:
    (tmp_path / "big.json").write_text(json.dumps(SMALL * 200), encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    program = [sys.executable, "-m", "contextfold", *command.split()]
    done = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_cannot_be_said_on_standard_error_ends_no_work(tmp_path: Path) -> None:
    """A closed, full or abandoned one ended the program before its output was written, and with exit code 1."""
    (tmp_path / "talk.jsonl").write_text('{"messages": [{"role": "user", "content": "go"}]}\n{"note": 1}\n', "utf-8")
    read, write = os.pipe()
    os.close(read)
    program = [sys.executable, "-m", "contextfold", "compact", "talk.jsonl", "--window", "1000", "--output"]
    done = subprocess.run([*program, "view.json"], stderr=write, stdout=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(write)
    assert (done.returncode, (tmp_path / "view.json").exists()) == (0, True)
    refused = [*program, "view.json", "--pick", "7"]
    if Path("/dev/full").exists():
        with open("/dev/full", "wb") as full:
            assert subprocess.run(refused, stderr=full, cwd=tmp_path, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["inspect"], ["inspect", "--report", "json"], ["compact", "--output", "-", "-q"]])
def test_a_full_standard_output_is_told_in_one_line(command: list[str], small: Path) -> None:
    program = [sys.executable, "-m", "contextfold", command[0], str(small), *command[1:]]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"contextfold: standard output cannot be written: no space left on device\n"


@pytest.mark.parametrize("command", ["compact", "inspect", "view", "batch compact", "sessions import"])
def test_the_help_names_every_format(command: str) -> None:
    """What ``--from`` takes was told by an error alone."""
    told = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    said = " ".join(told.replace("│", " ").split())
    assert all(name in said for name in formats.FORMATS)
