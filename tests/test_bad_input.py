"""Bad input ends in one clear line and an exit code, never in a traceback, never in half an output file.

Through the command line (exit code 2: usage or bad input; 3: cannot fit), and through the library (a typed error that
names the place). Input that is only unusual, such as one enormous message, is compacted.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wire
from contextfold import Compactor, count_tokens
from contextfold.cli import main
from contextfold.errors import CannotFit, ContextfoldError, InputError, PolicyError
from contextfold.record.compaction import Compaction

HELLO = {"role": "user", "content": "hello"}
GOOD = json.dumps([HELLO, {"role": "assistant", "content": "hi"}]).encode()


def run(*arguments: str, stdin: bytes = b"", folder: Path) -> subprocess.CompletedProcess[bytes]:
    """The command line in this process: what it raises, the test raises, and no interpreter starts for each case."""
    out, errors, code = io.BytesIO(), io.BytesIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setattr(sys, "argv", ["contextfold", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(errors, "utf-8", write_through=True))
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), errors.getvalue())


def run_alone(*arguments: str, stdin: bytes = b"", folder: Path) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "contextfold", *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )


def complaint(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    """The one line that a failed command leaves."""
    errors = done.stderr.decode()
    assert "Traceback" not in errors
    assert done.returncode == code, errors
    lines = [line for line in errors.splitlines() if line.strip()]
    assert len(lines) == 1, errors
    assert done.stdout == b""
    return lines[0]


@pytest.mark.parametrize("case", ["truncated JSON", "nothing", "DEEP"])
def test_a_process_ends_as_the_command_line_does_in_ours(case: str, tmp_path: Path) -> None:
    data = DEEP if case == "DEEP" else BROKEN_FILES[case][0]
    alone, ours = (one("compact", "-", stdin=data, folder=tmp_path) for one in (run_alone, run))
    assert (alone.returncode, alone.stdout, alone.stderr) == (ours.returncode, ours.stdout, ours.stderr)
    complaint(alone, 2)


def long_conversation(tokens: int = 6_000) -> list[dict[str, Any]]:
    messages = [HELLO]
    while count_tokens(messages) < tokens:
        number = len(messages)
        role = "assistant" if number % 2 else "user"
        messages.append({"role": role, "content": f"Step {number} went to /srv/app/file_{number}.py as planned. " * 20})
    return messages


DEEP = b"[" * 100_000
BROKEN_FILES: dict[str, tuple[bytes, list[str]]] = {
    "truncated JSON": (b'[{"role": "user", "content": "hello"},\n{"role": "assistant", "con', ["line 2"]),
    "truncated JSON Lines": (b'{"role": "user", "content": "hello"}\n{"role": "assistant", "con', ["line 2"]),
    "nothing": (b"", ["empty"]),
    "blanks": (b" \n\n", ["empty"]),
    "no JSON at all": (b"Dear diary,\ntoday I met a computer.\n", ["JSON"]),
    "a number in the list": (b'[{"role": "user", "content": "hello"}, 7]', ["message 1"]),
    "a null in the list": (b'[null, {"role": "user", "content": "hello"}]', ["message 0"]),
    "an unknown role": (b'[{"role": "user", "content": "a"}, {"role": "king", "content": "b"}]', ["message 1", "king"]),
    "no roles": (b'[{"name": "x"}]', ["message 0"]),
    "an empty object": (b"{}", []),
    "a string": (b'"hello"', []),
    "null": (b"null", []),
    "content that is a number": (b'[{"role": "user", "content": 7}]', ["message 0", "content"]),
    "tool calls that are no list": (
        b'[{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": 7}]',
        ["message 1", "tool_calls"],
    ),
    "a tool call that is no object": (
        b'[{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": ["x"]}]',
        ["message 1"],
    ),
    "invalid UTF-8": (b'[{"role": "user",\n"content": "caf\xe9"}]', ["UTF-8"]),
    "a binary file": (bytes(range(256)) * 40, []),
    "endless nesting": (DEEP, []),
    "nesting in a message": (b'[{"role": "user", "content": ' + DEEP, []),
    "an archive": (b"PK\x03\x04" + bytes(3_000), []),
}


@pytest.mark.parametrize("command", ["compact", "inspect"])
@pytest.mark.parametrize("case", BROKEN_FILES)
def test_a_broken_file_is_named_with_its_place(case: str, command: str, tmp_path: Path) -> None:
    data, named = BROKEN_FILES[case]
    (tmp_path / "session.json").write_bytes(data)
    line = complaint(run(command, "session.json", folder=tmp_path), 2)
    assert "session.json" in line
    for word in named:
        assert word in line


@pytest.mark.parametrize("case", ["truncated JSON", "invalid UTF-8", "nothing", "a number in the list"])
def test_standard_input_is_named_like_a_file(case: str, tmp_path: Path) -> None:
    line = complaint(run("compact", "-", stdin=BROKEN_FILES[case][0], folder=tmp_path), 2)
    assert "standard input" in line


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert "nowhere.json" in complaint(run("compact", "nowhere.json", folder=tmp_path), 2)
    (tmp_path / "folder").mkdir()
    assert "folder" in complaint(run("inspect", "folder", folder=tmp_path), 2)


@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "langchain"])
def test_a_file_in_another_format_than_said_is_refused(format: str, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(messages))
    line = complaint(run("compact", "chat.json", "--from", format, folder=tmp_path), 2)
    assert "chat.json" in line


WRONG_OPTIONS: dict[str, tuple[list[str], list[str]]] = {
    "an unknown format": (["--from", "xml"], ["xml", "openai-chat"]),
    "an unknown target format": (["--to", "xml"], ["xml", "openai-chat"]),
    "a window of nothing": (["--window", "0"], ["window"]),
    "a window in words": (["--window", "large"], ["window", "large"]),
    "trigger below target": (
        ["--window", "9000", "--trigger", "fraction:0.4", "--target", "fraction:0.6"],
        ["target", "trigger", "0.4", "0.6"],
    ),
    "trigger below target in tokens": (
        ["--window", "9000", "--trigger", "tokens:2000", "--target", "fraction:0.5"],
        ["target", "trigger", "2,000", "4,500"],
    ),
    "keep above the window": (["--window", "9000", "--keep", "tokens:10000"], ["keep", "10,000", "9,000"]),
    "a trigger above the window": (["--window", "9000", "--trigger", "tokens:10000"], ["trigger", "10,000", "9,000"]),
    "an unknown unit": (["--trigger", "pages:3"], ["trigger", "pages", "tokens"]),
    "no unit": (["--target", "0.5"], ["target", "0.5"]),
    "a fraction above one": (["--keep", "fraction:2"], ["keep", "2"]),
    "a negative size": (["--keep", "tokens:-5"], ["keep", "-5"]),
    "a size that is no number": (["--trigger", "tokens:many"], ["trigger", "many"]),
    "a target in messages": (["--target", "messages:5"], ["target", "messages"]),
    "an unknown summarizer": (["--summarizer", "magic"], ["magic"]),
    "an unknown report": (["--report", "xml"], ["xml", "json"]),
    "a pick beyond the file": (["--pick", "9"], ["pick", "9"]),
    "a pick of zero": (["--pick", "0"], ["pick", "0"]),
    "an unknown option": (["--wibble"], ["wibble"]),
    "a missing config": (["--config", "no.yaml"], ["no.yaml"]),
    "an output in no folder": (["--output", "no/where.json"], ["no"]),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_a_wrong_option_is_named_with_its_value_and_what_is_allowed(case: str, tmp_path: Path) -> None:
    options, named = WRONG_OPTIONS[case]
    (tmp_path / "good.json").write_bytes(GOOD)
    line = complaint(run("compact", "good.json", *options, folder=tmp_path), 2)
    for word in named:
        assert word in line


@pytest.mark.parametrize(
    "config",
    ["trigger: [", "trigger: 7", "- a\n- b", "wibble: 1", "tool_outputs: {limit: -1}", "budgets: {summary: 2}", "\x00"],
)
def test_a_wrong_configuration_is_named(config: str, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(GOOD)
    (tmp_path / "settings.yaml").write_text(config)
    line = complaint(run("compact", "good.json", "--config", "settings.yaml", folder=tmp_path), 2)
    assert "settings.yaml" in line


def texts_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the strings of a JSON value stand; of each list, in its first entry."""
    if isinstance(value, str):
        yield place
    for key, one in (
        value.items() if isinstance(value, dict) else enumerate(value[:1] if isinstance(value, list) else ())
    ):
        yield from texts_in(one, (*place, key))


def with_half(value: Any, place: tuple[Any, ...]) -> Any:
    """A copy of a JSON value with half a character behind the string at this place."""
    if not place:
        return value + "\ud83d"
    made = copy.copy(value)
    made[place[0]] = with_half(value[place[0]], place[1:])
    return made


class TestOutputs:
    """Written whole or not at all."""

    @pytest.mark.parametrize(
        "data", [b"[", json.dumps([{"role": "system", "content": "word " * 9_000}, HELLO]).encode()]
    )
    def test_a_failure_leaves_the_old_output_and_nothing_beside_it(self, data: bytes, tmp_path: Path) -> None:
        (tmp_path / "in.json").write_bytes(data)
        (tmp_path / "out.json").write_text("old")
        done = run("compact", "in.json", "--window", "4000", "--output", "out.json", folder=tmp_path)
        assert done.returncode in (2, 3)
        assert (tmp_path / "out.json").read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json"]

    def test_a_failure_makes_no_output(self, tmp_path: Path) -> None:
        (tmp_path / "in.json").write_bytes(b"{")
        assert run("compact", "in.json", "--output", "out.json", folder=tmp_path).returncode == 2
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json"]

    def test_half_a_character_becomes_a_replacement_character(self, tmp_path: Path) -> None:
        """A lone surrogate is valid in JSON and not in UTF-8."""
        (tmp_path / "in.json").write_text('[{"role": "user", "content": "half \\ud83d of it"}]')
        done = run("compact", "in.json", "--output", "out.json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "out.json").read_bytes())[0]["content"] == "half \ufffd of it"
        assert run("inspect", "in.json", folder=tmp_path).returncode == 0


class TestUnusual:
    """Legal, and compacted or refused for its size."""

    def test_a_window_smaller_than_the_system_prompt_names_the_floor(self, tmp_path: Path) -> None:
        messages = [{"role": "system", "content": "Follow the rules. " * 2_000}, *long_conversation(3_000)]
        (tmp_path / "in.json").write_text(json.dumps(messages))
        line = complaint(run("compact", "in.json", "--window", "4000", "--output", "o.json", folder=tmp_path), 3)
        assert "in.json" in line
        assert "system" in line
        assert not (tmp_path / "o.json").exists()

    @pytest.mark.parametrize(
        "text", ["log line with /a/path_{n} and code 500\n", "没有空格的中文文本内容{n}", "QUFB{n}"]
    )
    def test_one_output_of_300_000_characters_fits_afterwards(self, text: str, tmp_path: Path) -> None:
        whole = "".join(text.format(n=n) for n in range(300_000 // len(text)))
        call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages = [
            HELLO,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": whole},
        ]
        (tmp_path / "in.json").write_text(json.dumps(messages))
        done = run("compact", "in.json", "--window", "8000", "--output", "out.json", "-q", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        view = json.loads((tmp_path / "out.json").read_bytes())
        assert count_tokens(view) <= 8_000
        assert not wire.refusals("openai-chat", wire.read("openai-chat", view))

    def test_a_user_message_of_300_000_characters_is_refused_for_its_size(self, tmp_path: Path) -> None:
        """The newest user message is never cut, so nothing can be done."""
        (tmp_path / "in.json").write_text(json.dumps([{"role": "user", "content": "word " * 60_000}]))
        line = complaint(run("compact", "in.json", "--window", "8000", folder=tmp_path), 3)
        assert "user message" in line

    def test_a_message_that_is_nothing_but_an_image_of_5_megabytes_is_priced_as_an_image(self, tmp_path: Path) -> None:
        data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(5_000_000)).decode()
        block = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        (tmp_path / "in.json").write_text(json.dumps([{"role": "user", "content": [block]}]))
        done = run("compact", "in.json", "--window", "8000", "--report", "json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["tokens_before"] < 5_000

    @pytest.mark.parametrize("count", [10_000, pytest.param(30_000, marks=pytest.mark.strict)])
    def test_tiny_messages_are_all_accounted_for(self, count: int, tmp_path: Path) -> None:
        messages = [{"role": "assistant" if n % 2 else "user", "content": f"ok {n}"} for n in range(count)]
        (tmp_path / "in.json").write_text(json.dumps(messages))
        done = run("compact", "in.json", "--window", "16000", "--report", "json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["tokens_after"] <= 8_800  # the default target gives way to what users said
        assert sum(told["ledger"]["counts"].values()) == count


class TestLibrary:
    @pytest.mark.parametrize(
        ("messages", "named"),
        [
            ([HELLO, 7], "message 1"),
            ([HELLO, None], "message 1"),
            ([HELLO, {"role": "king", "content": "x"}], "message 1"),
            ([{"role": "user", "content": 7}], "message 0"),
            ([HELLO, {"role": "assistant", "tool_calls": 7}], "message 1"),
            ([HELLO, {"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 1"),
            ([HELLO, {"role": "tool", "content": "x"}], "message 1"),
            ("a text", "list"),
            ({"messages": [HELLO]}, "list"),
            (None, "list"),
            (7, "list"),
        ],
    )
    def test_what_is_no_conversation_is_refused_with_its_place(self, messages: Any, named: str) -> None:
        with pytest.raises(InputError, match=named):
            Compactor(window=8_000).compact(messages)

    def test_a_refused_message_leaves_the_compactor_as_it_was(self) -> None:
        compactor, messages = Compactor(window=8_000), [HELLO, {"role": "assistant", "content": "hi"}]
        before = compactor.compact(messages)
        messages.append({"role": "king", "content": "x"})
        with pytest.raises(InputError, match="message 2"):
            compactor.compact(messages)
        messages.pop()
        assert compactor.compact(messages).messages == before.messages

    def test_no_messages_are_an_empty_view(self) -> None:
        out = Compactor(window=8_000).compact([])
        assert (out.messages, out.changed, list(out.ledger)) == ([], False, [])

    @pytest.mark.parametrize("record", ["{}", "[]", "", "null", '{"version": 99}', '{"covers": "x"}'])
    def test_what_is_no_record_is_refused(self, record: str) -> None:
        with pytest.raises(InputError, match="compaction record"):
            Compaction.from_json(record)

    def test_half_a_character_anywhere_in_a_stored_record_is_no_traceback(self) -> None:
        """It can be told by its id, and written: the summary's words alone were mended."""
        history = [
            {"role": role, "content": f"{n} " + "word " * 60} for n in range(60) for role in ("user", "assistant")
        ]
        compactor = Compactor(window=4_000)
        record = compactor.compact(history).compaction
        assert record is not None
        recalled = {"after": 119, "digest": "aa", "text": "t", "reason": "r"}
        stored = {**json.loads(record.to_json()), "parent": "aa", "recalled": [recalled]}
        mended = 0
        for place in list(texts_in(stored)):
            try:
                one = Compaction.from_json(json.dumps(with_half(stored, place)))
            except InputError:  # hashes and names of ours can only be what they are
                continue
            mended += 1
            assert Compaction.from_json(one.to_json()).id == one.id, place
            compactor.compact(history, one)
        assert mended > 8

    @pytest.mark.parametrize("record", ["text", 7, {"covers": 3}])
    def test_a_previous_that_is_no_record_is_refused(self, record: Any) -> None:
        with pytest.raises(InputError, match="previous"):
            Compactor(window=8_000).compact([HELLO], previous=record)

    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"window": 0}, "window"),
            ({"window": -5}, "window"),
            ({"window": "8000"}, "window"),
            ({"window": 8_000, "trigger": ("tokens", 3_000), "target": ("tokens", 3_000)}, "target"),
            ({"window": 8_000, "trigger": ("fraction", 0.2), "target": ("fraction", 0.5)}, "target"),
            ({"window": 8_000, "keep": ("tokens", 8_000)}, "keep"),
            ({"window": 8_000, "keep": ("pages", 3)}, "keep"),
            ({"window": 8_000, "trigger": ("fraction", float("nan"))}, "trigger"),
            ({"window": 8_000, "trigger": ("fraction", 0)}, "trigger"),
            ({"window": 8_000, "trigger": {}}, "trigger"),
            ({"window": 8_000, "trigger": ("tokens", True)}, "trigger"),
            ({"window": 8_000, "trigger": 0.8}, "trigger"),
            ({"window": 8_000, "summarizer": 7}, "summarizer"),
            ({"window": 8_000, "summarizer": "magic"}, "summarizer"),
        ],
    )
    def test_a_wrong_setting_is_refused_by_name(self, settings: dict[str, Any], named: str) -> None:
        with pytest.raises(PolicyError, match=named):
            Compactor(**settings)

    def test_the_floor_is_itemized_where_nothing_fits(self) -> None:
        """Each item with its tokens, their sum above the limit."""
        messages = [{"role": "system", "content": "Follow the rules. " * 2_000}, *long_conversation(3_000)]
        with pytest.raises(CannotFit) as caught:
            Compactor(window=4_000).compact(messages)
        assert caught.value.needed == sum(caught.value.floor.values()) > caught.value.limit
        assert any("system" in item for item in caught.value.floor)

    @pytest.mark.parametrize("arguments", ["", "{", "null", "[1]", '"text"', "{'single': 1}"])
    def test_arguments_that_are_no_json_object_are_compacted_all_the_same(self, arguments: str) -> None:
        """Models write such arguments; providers send them back."""
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        turn = [
            {"role": "assistant", "content": "x" * 4_000, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "y" * 4_000},
        ]
        messages = [HELLO]
        for number in range(8):
            again = json.loads(json.dumps(turn).replace('"c"', f'"c{number}"'))
            messages += again
        for target in (None, "anthropic", "openai-responses"):
            out = Compactor(window=4_000).compact(messages, to=target)
            assert out.tokens_after <= 4_000

    def test_every_error_is_one_line(self) -> None:
        for messages in ([HELLO, 7], "text", [{"role": "king"}]):
            with pytest.raises(ContextfoldError) as caught:
                Compactor(window=8_000).compact(messages)
            assert "\n" not in str(caught.value)
