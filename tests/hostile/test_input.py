"""No input ends in an error that is not ours, and none takes long: odd text, deep and endless values, odd numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contextfold import Compaction, Compactor, Policy, count_tokens, json_values, overflow
from contextfold.errors import ContextfoldError, InputError
from contextfold.inspector import anchors, sentences
from contextfold.messages import Message, ToolCall
from contextfold.recall import HistoryTools
from contextfold.redaction import redact
from contextfold.settings import load
from contextfold.store import open_store
from contextfold.summary.plans import newest_plan
from contextfold.testing.dict_store import DictStore
from contextfold.transcripts import read_file
from effort import FULL, crossed

HALF = "name_\ud83d"
SECONDS = 5.0
"""Far above what any of these takes (most: milliseconds), and far below what they took: minutes, or for ever."""


@contextmanager
def quickly() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def nested(depth: int, opening: str = '{"a":', middle: str = "1", closing: str = "}") -> str:
    return opening * depth + middle + closing * depth


def deep(depth: int) -> Any:
    value: Any = "bottom_value_7"
    for _ in range(depth):
        value = {"a": [value]}
    return value


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "odd", "text_of_it": "x"}
    value["inner"] = [value]
    return value


def bomb(levels: int = 40) -> Any:
    value: Any = ["lol"] * 9
    for _ in range(levels):
        value = [value] * 9
    return {"type": "odd", "inner": value}


def chat(arguments: str = "{}", output: str = "done", said: str = "go on") -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": arguments}}
    talk = [
        entry
        for n in range(8)
        for entry in (
            {"role": "user", "content": f"question_{n} " + "about it " * 150},
            {"role": "assistant", "content": f"answer_{n}"},
        )
    ]
    return [
        {"role": "user", "content": "start"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": output},
        *talk,
        {"role": "user", "content": said},
    ]


def anthropic(value: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "start"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": value}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
        *(
            {"role": role, "content": f"{role} {n} " + "about it " * 150}
            for n in range(8)
            for role in ("assistant", "user")
        ),
    ]


# ---- odd text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summarizer", [None, lambda prompt: f"A summary of {HALF}."], ids=["built in", "a model"])
def test_half_a_character_stops_nothing(summarizer: Any) -> None:
    messages = chat(json.dumps({"path": HALF}), f"{HALF} in main_{HALF}.py\n{HALF}", f"what is {HALF}?")
    messages[0]["content"] = f"always use {HALF} as db_name_7"
    compactor = Compactor(window=1_500, summarizer=summarizer)
    out = compactor.compact(messages)
    assert out.changed
    assert Compaction.from_json(out.compaction.to_json()) == out.compaction
    json.dumps(out.messages, ensure_ascii=False).encode()
    longer = [*messages, *chat()[3:]]
    again = compactor.compact(longer, previous=out.compaction)
    assert again.changed
    assert compactor.compact(longer, previous=again.compaction).messages == again.messages


def test_two_halves_that_belong_together_are_their_character() -> None:
    out = Compactor(window=1_500).compact(chat(said="look: \ud83d\ude00"))
    assert count_tokens(out.messages) == count_tokens([*out.messages[:-1], {"role": "user", "content": "look: 😀"}])


# ---- deep and endless values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [100, 290, 310, 1_100, 30_000])
@pytest.mark.parametrize(
    "shape", [('{"a":', "1", "}"), ("[", "1", "]"), ("[", "", "")], ids=["objects", "lists", "open"]
)
def test_arguments_of_any_depth_are_compacted(depth: int, shape: tuple[str, str, str]) -> None:
    text = nested(depth, *shape)
    for messages in (chat(text), chat(output=text), chat(json.dumps({"code": text}))):
        with quickly():
            out = Compactor(window=1_500).compact(messages)
        assert out.changed


@pytest.mark.parametrize("depth", [100, 1_100, 10_000])
def test_arguments_that_are_values_of_any_depth_are_compacted(depth: int) -> None:
    with quickly():
        out = Compactor(window=1_500).compact(anthropic(deep(depth)))
    assert out.changed


@pytest.mark.parametrize("value", [endless(), bomb()], ids=["endless", "billions"])
def test_values_that_no_request_could_hold_are_refused(value: Any) -> None:
    blocks = [value, {"type": "tool_use", "id": "c1", "name": "run", "input": value}]
    for block in blocks[: 1 if value.get("inner") != [value] else 2]:
        messages = [{"role": "user", "content": "start"}, {"role": "assistant", "content": [block]}]
        with quickly(), pytest.raises(InputError):
            Compactor(window=1_500).compact(messages, format="anthropic")


class Hostile:
    """An object that raises whatever it is asked."""

    def __init__(self, method: str) -> None:
        self.method = method

    def _raise(self, method: str) -> Any:
        if method == self.method:
            raise ZeroDivisionError(method)
        return {"__repr__": "odd", "__eq__": False, "__bool__": True}[method]

    def __repr__(self) -> str:
        return str(self._raise("__repr__"))

    def __eq__(self, other: object) -> bool:
        return bool(self._raise("__eq__"))

    def __bool__(self) -> bool:
        return bool(self._raise("__bool__"))

    __hash__ = None  # type: ignore[assignment]


ODD: dict[str, Any] = {
    "a number without a decimal text": {"x": 10**5_000},
    "a key of bytes": {b"a": 1},
    "a key of a pair": {(1, 2): 3},
    "keys without an order": {"1": 1, None: 2},
    "endless": endless(),
    "raises when shown": Hostile("__repr__"),
    "raises when compared": Hostile("__eq__"),
    "raises when asked": Hostile("__bool__"),
    "deep": deep(1_200),
    "no text": [{"type": "text", "text": None}],
    "a kind that is none": [{"type": None}],
    "a number": 1,
    "no number": float("nan"),
    "nothing": None,
    "a kind": dict,
}

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"role": "user", "content": [{"type": "text", "text": "start"}, {"type": "odd", "x": 1}], "name": "bob"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "refusal": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ],
    "openai-responses": [
        {"role": "user", "content": [{"type": "input_text", "text": "start"}]},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "web_search_call", "id": "w1", "status": "completed"},
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "start"}, {"type": "odd", "x": 1}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "start"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": "done"}}}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
    ],
    "bedrock-converse": [
        {"role": "user", "content": [{"text": "start"}, {"image": {"format": "png", "source": {"bytes": b"abc"}}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "run", "input": {"a": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": {"x": 1}}]}}]},
    ],
    "langchain": [
        {"type": "human", "data": {"content": "start", "additional_kwargs": {}}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "run", "args": {"a": 1}}]}},
        {"type": "tool", "data": {"content": "done", "tool_call_id": "c1"}},
    ],
}


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*way, key))


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    copied = value.copy()
    copied[way[0]] = changed(value[way[0]], way[1:], new) if way[1:] else new
    return copied


def refuses_or_reads(messages: Any, format: str | None) -> None:
    compactor = Compactor(window=30_000, trigger=("messages", 2), keep=("messages", 1), target=("tokens", 9_000))
    for entered in (
        lambda: compactor.compact(messages, format=format),
        lambda: compactor.call(lambda view: "sent", messages, format=format),
        lambda: compactor.compact(messages, format=format, to="openai-chat" if format != "openai-chat" else "gemini"),
        lambda: count_tokens(messages),
    ):
        try:
            made = entered()
        except ContextfoldError:
            continue
        record = getattr(made, "compaction", None)
        assert record is None or Compaction.from_json(record.to_json()) == record


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("format", SAMPLES)
def test_an_odd_value_in_any_place_of_any_format_is_read_or_refused_as_ours(format: str, odd: str) -> None:
    wire = SAMPLES[format]
    ways = list(places(wire))
    for way in ways if FULL else ways[len(odd) % 4 :: 4]:
        with quickly():
            refuses_or_reads(changed(wire, way, ODD[odd]), format)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_list_of_messages_is_refused_as_ours(odd: str) -> None:
    for messages in (ODD[odd], [ODD[odd]], [SAMPLES["openai-chat"][0], ODD[odd]]):
        refuses_or_reads(messages, None)


@crossed(format=("gemini", "bedrock-converse", "langchain", "anthropic"), depth=(1_100, 10_000), quick=2)
def test_arguments_that_are_values_of_any_depth_are_compacted_in_each_format(format: str, depth: int) -> None:
    inner = {
        "gemini": (1, "parts", 0, "functionCall", "args"),
        "bedrock-converse": (1, "content", 0, "toolUse", "input"),
        "langchain": (1, "data", "tool_calls", 0, "args"),
        "anthropic": (1, "content", 1, "input"),
    }[format]
    wire = changed(SAMPLES[format], inner, deep(depth))
    said = SAMPLES[format][0]
    compactor = Compactor(window=30_000, trigger=("messages", 2), keep=("messages", 1), target=("tokens", 9_000))
    with quickly():
        assert compactor.compact([said, *wire, said, said], format=format).changed


def test_what_is_too_deep_for_the_encoder_is_written_all_the_same() -> None:
    text = json_values.write(deep(10_000), compact=True)
    assert text == '{"a":[' * 10_000 + '"bottom_value_7"' + "]}" * 10_000


SAID = SAMPLES["openai-chat"][:1] * 3
GIVEN: dict[str, Callable[[Any], Any]] = {
    "previous": lambda odd: Compactor(window=9_000).compact(SAID, previous=odd),
    "tools": lambda odd: Compactor(window=9_000).compact(SAID, tools=odd),
    "a tool": lambda odd: Compactor(window=9_000).compact(SAID, tools=[odd]),
    "system": lambda odd: Compactor(window=9_000).compact(SAID, system=odd),
    "format": lambda odd: Compactor(window=9_000).compact(SAID, format=odd),
    "to": lambda odd: Compactor(window=9_000).compact(SAID, to=odd),
    "window": lambda odd: Compactor(window=odd),
    "trigger": lambda odd: Compactor(window=9_000, trigger=odd),
    "a trigger's number": lambda odd: Compactor(window=9_000, trigger=("tokens", odd)),
    "keep": lambda odd: Compactor(window=9_000, keep=odd),
    "a target's share": lambda odd: Compactor(window=9_000, target=("fraction", odd)),
    "policy": lambda odd: Compactor(window=9_000, policy=odd),
    "pins": lambda odd: Policy(pins=odd),
    "summarizer": lambda odd: Compactor(window=9_000, summarizer=odd),
    "what a summarizer returns": lambda odd: Compactor(window=1_500, summarizer=lambda prompt: odd).compact(chat()),
    "count_text": lambda odd: Compactor(window=9_000, count_text=odd),
    "what a counter returns": lambda odd: Compactor(window=9_000, count_text=lambda text: odd).compact(SAID),
    "a model to count by": lambda odd: count_tokens(SAID, model=odd),
    "tools to count": lambda odd: count_tokens(SAID, tools=odd),
    "send": lambda odd: Compactor(window=9_000).call(odd, SAID),
    "a record": lambda odd: Compaction.from_json(odd),
    "text to redact": redact,
    "an error": lambda odd: overflow.classify(odd),
    "an error's body": lambda odd: overflow.classify(body=odd),
    "an error's status": lambda odd: overflow.classify(status=odd, message="prompt is too long"),
    "a store": lambda odd: open_store(odd),
    "settings": lambda odd: load(odd),
    "a thread": lambda odd: talk(thread=odd),
    "a namespace": lambda odd: talk(namespace=odd),
    "options": lambda odd: talk(options=odd),
    "an option": lambda odd: talk(options={"upper_threshold": odd}),
    "a query": lambda odd: talk().search(odd),
    "a limit": lambda odd: talk().search("start", limit=odd),
    "a place to read": lambda odd: talk().read(odd),
    "messages to append": lambda odd: talk().append(odd),
    "a message to append": lambda odd: talk().append([odd]),
    "a place to append": lambda odd: talk().append(SAID, at=odd),
    "a session's tools": lambda odd: talk().view(tools=odd),
    "a session's system": lambda odd: talk().view(system=odd),
    "a refusal": lambda odd: talk().compact(overflow=odd),
    "what a session sends with": lambda odd: talk().call(odd, SAID),
}


def talk(thread: Any = "talk", **given: Any) -> Any:
    session = Compactor(window=9_000).session(thread, DictStore(), **given)
    session.append(SAID)
    return session


@pytest.mark.parametrize("argument", GIVEN)
def test_an_argument_of_any_kind_is_used_or_refused_as_ours(argument: str) -> None:
    asks_it = {"raises when compared", "raises when asked"}  # an object of the caller's own code, not a stranger's
    kinds = [value for name, value in ODD.items() if name not in asks_it]
    if argument in ("send", "what a session sends with"):
        kinds.remove(dict)  # a function, and what it raises is its own
    for odd in [*kinds, 10**5_000, [[[]]], "\ud83d", b"x", {1: 2}]:
        with quickly(), suppress(ContextfoldError):
            GIVEN[argument](odd)


# ---- records ---------------------------------------------------------------------------------------------------------


def record() -> dict[str, Any]:
    out = Compactor(window=1_500).compact(chat())
    assert out.changed
    return json.loads(out.compaction.to_json())


TAMPERED: list[dict[str, Any]] = [
    {"edits": [{"index": 1, "part": 99, "tier": "tool_arguments", "limit": 20}]},
    {"edits": [{"index": 1, "part": -1, "tier": "tool_arguments", "limit": 20}]},
    {"edits": [{"index": 10**8, "part": 0, "tier": "tool_arguments", "limit": 20}]},
    {"edits": [{"index": 1, "part": 0, "tier": "no_such_tier", "limit": 20}]},
    {"fates": [{"start": 0, "stop": 10**8, "fate": "summarized", "reason": "x"}]},
    {"fates": [{"start": 0, "stop": 10**8, "fate": "summarized", "reason": "x"}], "covers": 10**8},
    {
        "fates": [
            {"start": 0, "stop": 5, "fate": "kept", "reason": "x"},
            {"start": 2, "stop": 9, "fate": "kept", "reason": "x"},
        ]
    },
    {"fates": [{"start": 5, "stop": 5, "fate": "kept", "reason": "x"}]},
    {"fates": [{"start": -5, "stop": 5, "fate": "kept", "reason": "x"}]},
    {"covers": -1},
    {"covers": 10**400},
    {"covers": float("inf")},
    {"covers": None},
    {"summary_after": -7},
    {"summary": {"text": "x", "role": "tool"}},
    {"summary": {"text": {}, "role": "user"}},
    {"version": 10**30},
    {"version": "x"},
    {"fates": "x"},
    {"format": 7},
    {"fingerprint": "\ud83d"},
    {"outline": "\ud83d"},
    {"fingerprint": "0" * 32, "outline": "0" * 39},
    *({"recalled": [{"after": 0, "digest": "", "text": "x", "indices": [n]}]} for n in (-1, 10**12)),
]


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: json.dumps(change)[:60])
def test_a_tampered_record_is_refused_or_set_aside(change: dict[str, Any]) -> None:
    text = json.dumps({**record(), **change})
    with quickly():
        try:
            found = Compaction.from_json(text)
        except InputError as error:
            assert len(str(error)) < 600  # noqa: PT017 - both outcomes are right
            return
        out = Compactor(window=100_000).compact(chat(), previous=found)
    assert "compaction_set_aside" in [event.name for event in out.events]
    assert out.messages == chat()


@pytest.mark.parametrize(
    "text",
    ["", "[" * 100_000, '{"a":' * 100_000, "null", "[]", "7", "1e999", b"\xff\xfe\xff", b"\x00", "{", "9" * 5_000],
)
def test_what_is_no_record_is_refused(text: str | bytes) -> None:
    with quickly(), pytest.raises(InputError):
        Compaction.from_json(text)


# ---- tools, files, errors of providers -------------------------------------------------------------------------------


class Found:
    """A history that any words are found in."""

    def search(self, query: str, *, limit: int = 20) -> list[Any]:
        return [SimpleNamespace(index=3, role="user", snippet=query[:80], text=query)][:limit]

    def read(self, start: int = 0, count: int = 50) -> list[Any]:
        return []


ARGUMENTS = [
    '{"query": "x", "limit": 1e999}',
    '{"start": 1e999}',
    '{"start": "1e999"}',
    '{"start": -1e999, "count": 1e999}',
    '{"start": "nan"}',
    "[" * 100_000,
    '{"query": 7}',
    "null",
    '{"query": "\\ud83d"}',
    '{"start": 1' + "0" * 5_000 + "}",
    '{"query": "' + "a " * 50_000 + '"}',
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda text: text[:30])
@pytest.mark.parametrize("name", ["search_history", "read_history"])
def test_a_tool_call_that_makes_no_sense_is_answered(name: str, arguments: str) -> None:
    tools = HistoryTools(Found())
    with quickly():
        assert tools.dispatch(name, arguments)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
)
MERGED = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    "text", [LAUGHS, MERGED, "a: " + "[" * 20_000, "[" * 20_000, "? " * 20_000], ids=lambda text: text[:12]
)
def test_a_yaml_file_of_any_shape_is_read_or_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    cassette = tmp_path / "cassette.yaml"
    cassette.write_text("interactions:\n- " + text.replace("\n", "\n  "))
    with quickly():
        with pytest.raises(ContextfoldError):
            load(file)
        with pytest.raises(ContextfoldError):
            read_file(cassette)


@pytest.mark.parametrize("body", ["[" * 100_000, '{"error":' * 50_000, "{" * 100_000, "'{[" * 30_000, "1,1," * 30_000])
def test_the_body_of_an_error_may_be_anything(body: str) -> None:
    with quickly():
        assert overflow.classify(status=400, body=body) is None
        assert overflow.classify(RuntimeError(body)) is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (anchors.find, "a/b+" * 25_000),
        (sentences.constraints, "Do it, e.g. " * 15_000),
        (
            lambda text: newest_plan([Message("assistant", (ToolCall("c", "TodoWrite", text),))], {"TodoWrite"}),
            f"{' ' * 40_000}[]",
        ),
    ],
    ids=["data with slashes", "abbreviations", "blanks before a todo list"],
)
def test_a_text_of_one_kind_of_sign_takes_as_long_as_it_is(read: Callable[[str], object], text: str) -> None:
    with quickly():
        read(text)


@pytest.mark.parametrize("odd", ["5", 1.5, True, None, -1, [], float("inf")], ids=repr)
def test_a_number_that_is_none_is_refused_wherever_a_session_takes_one(odd: Any, tmp_path: Path) -> None:
    session = Compactor(window=2_000).session("s", store=f"sqlite:///{tmp_path / 's.db'}")
    session.append(chat())
    asked = [lambda: session.search("question_1", limit=odd), lambda: session.read(odd), lambda: session.read(0, odd)]
    for ask in [*asked, *([] if odd is None else [lambda: session.history(odd), lambda: session.history(0, odd)])]:
        with pytest.raises(InputError):
            ask()


def test_a_session_that_took_half_a_character_is_summarized(tmp_path: Path) -> None:
    session = Compactor(window=1_500).session("s", store=f"sqlite:///{tmp_path / 's.db'}")
    session.append(chat(json.dumps({"path": HALF}), HALF, HALF))
    session.append(chat(said=HALF))
    assert session.compact().changed
    assert session.search(HALF)
    json.dumps(session.view(), ensure_ascii=False).encode()


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact", "talk.json", "--window", "2000", "--output", "9" * 400],
        ["view", "talk.json", "--out", "9" * 400],
        ["batch", "check", "talk.json", "--output", "9" * 400],
        ["batch", "check", "talk.json", "--output", "http://["],
        ["sessions", "list", "--store", "sqlite:///s.db", "--namespace", "\udcff"],
        ["compact", "talk.json", "--config", "9" * 400],
        ["inspect", "9" * 400],
    ],
    ids=lambda arguments: " ".join(arguments)[:50],
)
def test_an_option_of_any_kind_ends_in_one_line_and_the_code_for_it(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from contextfold.cli.app import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.json").write_text(json.dumps(chat()))
    open_store("sqlite:///s.db").close()
    with quickly():
        ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 2
    assert isinstance(ended.exception, SystemExit)
    assert len(ended.output) < 1_500
