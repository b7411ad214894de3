"""Gemini: what each part becomes, in both spellings and as objects, what an edit leaves alone, and what is refused."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import wire as provider
from contextfold import CannotFit, Compactor, formats
from contextfold.conversation.groups import group
from contextfold.errors import FormatError
from contextfold.formats.gemini import Gemini
from contextfold.formats.marks import is_marked
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from contextfold.testing import histories
from effort import examples
from formats.reading import decoded

GEMINI = Gemini()
SIGNATURE = base64.b64encode(b"signed").decode()
PNG = {"mimeType": "image/png", "data": "AAAA"}
CALLED = {"functionCall": {"name": "f", "args": {"path": "long"}}, "thoughtSignature": SIGNATURE}
ANSWERED = {"functionResponse": {"name": "f", "response": {"output": "long"}}}


def part_of(part: dict[str, Any]) -> Any:
    return GEMINI.decode({"role": "user", "parts": [part]}).parts[0]


def edited(wire: Any, *parts: Any) -> Any:
    (entry,) = GEMINI.encode([GEMINI.decode(wire).with_parts(parts)])
    return entry


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ({"text": "hi"}, Text("hi")),
        ({"text": "hi", "thoughtSignature": SIGNATURE}, Text("hi")),
        ({"text": "hi", "speechMetadata": {"speaker": "Ann"}}, Text("hi")),
        ({"text": "hi", "mediaProcessing": {"mode": "AGENTIC"}, "partMetadata": {"a": "b"}}, Text("hi")),
        ({"text": "hm", "thought": True}, Reasoning("hm")),
        ({"text": "", "thoughtSignature": SIGNATURE}, Reasoning("")),
        ({"thoughtSignature": SIGNATURE}, Reasoning("")),
        ({"functionCall": {"name": "f", "args": {"é": 1}}}, ToolCall("f", "f", '{"é": 1}')),
        ({"functionCall": {"id": "c", "name": "f"}}, ToolCall("c", "f", "{}")),
        ({"functionResponse": {"id": "c", "name": "f"}}, ToolResult("c", (), name="f")),
        (
            {"functionResponse": {"name": "f", "response": {"result": "no"}}},
            ToolResult("f", (Text("no"),), name="f"),
        ),
        (
            {"functionResponse": {"name": "f", "response": {"error": "no"}}},
            ToolResult("f", (Text("no"),), name="f", is_error=True),
        ),
        (
            {"functionResponse": {"name": "f", "response": {"rows": [1]}, "parts": [{"inlineData": PNG}]}},
            ToolResult("f", (Text('{"rows": [1]}'), Media("image", "image/png", data="AAAA")), name="f"),
        ),
        ({"inlineData": PNG}, Media("image", "image/png", data="AAAA")),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.b/c"}},
            Media("document", "application/pdf", url="https://a.b/c"),
        ),
        ({"fileData": {"fileUri": "https://youtu.be/x"}}, Media("video", url="https://youtu.be/x")),
        ({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}, Media("audio", "audio/wav", data="AAAA")),
        (
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            Opaque("executableCode", "PYTHON\nprint(1)"),
        ),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            Opaque("codeExecutionResult", "OUTCOME_OK\n1"),
        ),
        ({"somethingNew": {"words": "x"}}, Opaque("somethingNew", "x")),
        ({}, Opaque("unknown", "")),
    ],
)
def test_every_part_becomes_its_part_in_either_spelling(wire: dict[str, Any], part: Any) -> None:
    assert part_of(wire) == part
    assert part_of(wire).source is wire
    assert part_of(snake(wire)) == part


def snake(value: Any) -> Any:
    """The other spelling, but for what functions are called with and answer."""
    from contextfold.formats.gemini_shapes import snake as name_of

    if isinstance(value, list):
        return [snake(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name_of(k): v if k in ("args", "response") else snake(v) for k, v in value.items()}


def test_a_thought_without_words_is_sent_only_where_it_carries_a_signature() -> None:
    """Google refuses an empty text without one."""
    bare, signed = {"thought": True, "text": ""}, {"thought": True, "text": "", "thoughtSignature": SIGNATURE}
    thoughts = GEMINI.decode({"role": "model", "parts": [bare, {"text": "So."}, signed]})
    assert GEMINI.encode([GEMINI.acceptable(thoughts, leading=False)]) == [
        {"role": "model", "parts": [{"text": "So."}, signed]}
    ]


def test_roles_are_those_of_the_api_and_its_older_ones() -> None:
    roles = {"user": "user", "model": "assistant", "function": "user", "system": "system"}
    assert {role: GEMINI.decode({"role": role, "parts": []}).role for role in roles} == roles
    assert GEMINI.decode({"parts": [{"text": "hi"}]}).role == "user"


# ---- calls without ids ----


def test_parallel_calls_without_ids_are_paired_by_name_and_order() -> None:
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]
    answers = [{"functionResponse": {"name": name, "response": {}}} for name in ("f", "g", "f")]
    messages = decoded([{"role": "model", "parts": calls}, {"role": "user", "parts": answers}], "gemini")
    assert [call.id for call in messages[0].tool_calls] == ["f", "g", "f#2"]
    found = group(messages)
    assert found.answers == {(1, 0): 0, (1, 1): 0, (1, 2): 0}
    assert not found.faults


def test_results_without_ids_answer_calls_that_have_some() -> None:
    """``Part.from_function_response(name=..., response=...)`` takes no id, whatever id the call had."""
    calls = [{"functionCall": {"id": f"id{n}", "name": "f", "args": {}}} for n in range(2)]
    answers = [{"functionResponse": {"name": "f", "response": {"output": str(n)}}} for n in range(2)]
    told = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
        {"role": "model", "parts": [{"text": "done"}]},
    ]
    assert not group(decoded(told, "gemini")).faults
    assert Compactor(window=100_000).compact(told).messages == told


def test_a_result_without_an_id_answers_no_call_of_another_function() -> None:
    told = [
        {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "g", "response": {"output": "x"}}}]},
    ]
    assert {fault.kind for fault in group(decoded(told, "gemini")).faults} == {"orphan_result"}


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories("gemini", max_turns=4, max_units=20, huge_units=300), st.sampled_from(["calls", "both"]))
def test_a_compacted_conversation_without_ids_is_valid_and_only_what_left_is_gone(wire: list[Any], bare: str) -> None:
    """Results keep the order of their calls, so that the API can pair them."""
    told = [bared(content, calls=True, results=bare == "both") for content in ordered(wire)]
    told.append({"role": "user", "parts": [{"text": "And now?"}]})
    before = copy.deepcopy(told)
    try:
        out = Compactor(window=6_000).compact(told, force=True)
    except CannotFit:
        assume(False)
    assert told == before
    entries = provider.read("gemini", out.messages)
    assert not (bare == "both" and provider.refusals("gemini", entries))
    assert sum(out.ledger.counts().values()) == len(told)


def ordered(wire: list[Any]) -> list[Any]:
    """Results in the order of the calls of the content before."""
    found: list[Any] = []
    for content in wire:
        before = [
            part["functionCall"]["id"] for part in (found[-1]["parts"] if found else []) if "functionCall" in part
        ]
        parts = content["parts"]
        if parts and all("functionResponse" in part for part in parts):
            parts = sorted(parts, key=lambda part: before.index(part["functionResponse"]["id"]))
        found.append({**content, "parts": parts})
    return found


def bared(content: dict[str, Any], *, calls: bool, results: bool) -> dict[str, Any]:
    keys = [key for key, wanted in (("functionCall", calls), ("functionResponse", results)) if wanted]
    parts = []
    for part in content["parts"]:
        for key in keys:
            if key in part:
                part = {**part, key: {name: value for name, value in part[key].items() if name != "id"}}
        parts.append(part)
    return {**content, "parts": parts}


# ---- edits ----


def test_an_edited_call_keeps_its_signature_and_every_other_key() -> None:
    wire = {"role": "model", "parts": [{"text": "hm", "thought": True}, CALLED, ANSWERED]}
    thought, call, _ = GEMINI.decode(wire).parts
    entry = edited(wire, thought, replace(call, arguments='{"path": "s"}', edited=True))
    assert entry["parts"] == [wire["parts"][0], {**CALLED, "functionCall": {"name": "f", "args": {"path": "s"}}}]
    assert entry["parts"][0] is wire["parts"][0]


@pytest.mark.parametrize(
    ("response", "text", "left"),
    [
        ({"output": "long"}, "s", {"output": "s"}),
        ({"result": "long"}, "s", {"result": "s"}),
        ({"error": "long"}, "s", {"error": "s"}),
        ({"rows": [1, 2]}, '{"rows": [1]}', {"rows": [1]}),
        ({"rows": [1, 2]}, "two rows", {"output": "two rows"}),
    ],
)
@pytest.mark.parametrize("spelled", [lambda value: value, snake])
def test_an_edited_response_keeps_the_shape_that_it_had(response: Any, text: str, left: Any, spelled: Any) -> None:
    wire = spelled({"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": response}}]})
    (result,) = GEMINI.decode(wire).tool_results
    (said,) = result.content
    shorter = replace(result, content=(replace(said, text=text, edited=True),), edited=True)
    key = next(iter(wire["parts"][0]))
    assert edited(wire, shorter) == {
        "role": "user",
        "parts": [{key: {"id": "c", "name": "f", "response": left}}],
    }


def test_media_beside_a_response_leaves_without_its_text() -> None:
    answer = {"name": "f", "response": {"output": "seen"}, "parts": [{"inlineData": PNG}]}
    wire = {"role": "user", "parts": [{"functionResponse": answer}]}
    (result,) = GEMINI.decode(wire).tool_results
    text, image = result.content
    noted = replace(result, content=(text, Text("[image]", source=image.source, edited=True)), edited=True)
    assert edited(wire, noted)["parts"] == [
        {"functionResponse": {"name": "f", "response": {"output": "seen\n[image]"}}}
    ]


def test_new_contents_take_the_spelling_of_the_others() -> None:
    placeholder = Message("tool", (ToolResult("c", (Text("none"),), name="f"),))
    for spelled in (snake, lambda value: value):
        wire = spelled({"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {"aKey": 1}}}]})
        _, made = GEMINI.encode([GEMINI.decode(wire), placeholder])
        assert made == spelled(
            {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "none"}}}]}
        )


# ---- objects of the SDK ----


def test_objects_are_read_as_their_json_and_handed_back_as_the_same_objects() -> None:
    types = pytest.importorskip("google.genai").types
    wire = [types.Content.model_validate(content) for content in STORY]
    assert formats.detect(wire).name == "gemini"
    messages = decoded(wire, "gemini")
    assert messages == decoded(STORY, "gemini")
    assert all(one is other for one, other in zip(GEMINI.encode(messages), wire, strict=True))


def test_an_edited_object_is_a_changed_copy_and_new_ones_are_objects_too() -> None:
    types = pytest.importorskip("google.genai").types
    wire = [types.Content.model_validate(content) for content in STORY]
    before = copy.deepcopy(wire)
    messages = decoded(wire, "gemini")
    call = messages[1].tool_calls[0]
    rest = messages[1].parts[2:]
    changed = messages[1].with_parts((replace(call, arguments='{"path": "s"}', edited=True), *rest, Text("more")))
    entry, summary = GEMINI.encode([changed, Message("user", (Text("so far"),))])
    assert entry.parts[0].function_call.args == {"path": "s"}
    assert entry.parts[0].thought_signature == b"signed"
    assert entry.parts[1] is wire[1].parts[2]
    assert entry.parts[-1].text == "more"
    assert isinstance(summary, types.Content)
    assert summary == types.Content(role="user", parts=[types.Part(text="so far")])
    assert wire == before


STORY: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "look"}, {"inlineData": PNG}]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}, CALLED, {"functionCall": {"name": "g", "args": {}}}]},
    {"role": "user", "parts": [ANSWERED, {"functionResponse": {"name": "g", "response": {"rows": [1]}}}]},
    {"role": "model", "parts": [{"executableCode": {"code": "print(1)"}}, {"text": "done"}]},
]


# ---- crossing ----


def test_results_of_other_formats_get_the_names_of_their_functions() -> None:
    wire = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": f"do_{name}", "arguments": "{}"}} for name in "ab"
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and?"},
        {"role": "system", "content": "late rule"},
    ]
    crossed = GEMINI.encode(decoded(wire, "openai-chat"))
    assert [content["role"] for content in crossed] == ["system", "user", "model", "user"]
    assert crossed[3]["parts"] == [
        {"functionResponse": {"id": "a", "name": "do_a", "response": {"output": "1"}}},
        {"functionResponse": {"id": "b", "name": "do_b", "response": {"output": "2"}}},
        {"text": "and?"},
        {"text": "<system>\nlate rule\n</system>"},
    ]


def test_media_is_carried_or_noted() -> None:
    parts = (Media("image", data="AAAA"), Media("audio", url="https://a.b/c"), Media("document", url="file-1"))
    (entry,) = GEMINI.encode([Message("user", parts)])
    assert entry["parts"] == [
        {"inlineData": PNG},
        {"fileData": {"mimeType": "audio/mp3", "fileUri": "https://a.b/c"}},
        {"text": "[document: file-1]"},
    ]


def test_neighbors_of_one_role_are_joined_with_results_first() -> None:
    joined = GEMINI.join({"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [ANSWERED]})
    assert joined == {"role": "user", "parts": [ANSWERED, {"text": "a"}]}
    assert GEMINI.join({"role": "user", "parts": []}, {"role": "model", "parts": []}) is None


# ---- detection and refusals ----


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"role": "model", "parts": [{"text": "x"}]}, "gemini"),
        ({"role": "model", "parts": []}, "gemini"),
        ({"parts": [{"text": "x"}]}, "gemini"),
        ({"role": "user", "parts": [{"function_response": {"name": "f"}}]}, "gemini"),
    ],
)
def test_parts_without_a_type_are_the_mark(entry: dict[str, Any], name: str) -> None:
    assert formats.detect([entry]).name == name


@pytest.mark.parametrize(
    "entry",
    [
        {"role": "user", "parts": [{"type": "text", "content": "x"}], "content": "x"},
        {"role": "user", "parts": [{"type": "text", "content": "x"}]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x"}]},
    ],
)
def test_parts_of_others_are_not_taken_for_geminis(entry: dict[str, Any]) -> None:
    assert not is_marked("gemini", entry)


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("text", "a Gemini content is a JSON object or a google.genai Content, and this is a string"),
        ({"role": "assistant", "parts": []}, "unknown role 'assistant'; roles are user and model"),
        ({"text": "x"}, "it has neither a role nor parts"),
        ({"role": "user", "parts": "x"}, "'parts' is a list, and this is a string"),
        ({"role": "user", "parts": ["x"]}, "part 0 is a string, not an object"),
        ({"role": "user", "parts": [{"text": 3}]}, "part 0 needs a string in 'text', and this is a number"),
        ({"role": "model", "parts": [{"functionCall": {"args": {}}}]}, "the functionCall in part 0 has no name"),
    ],
)
def test_what_is_no_content_is_refused_in_words_with_its_index(wire: Any, words: str) -> None:
    with pytest.raises(FormatError) as error:
        GEMINI.decode(wire, 4)
    assert words in str(error.value)
    assert str(error.value).startswith("message 4: ")
