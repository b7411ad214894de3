"""LangChain messages: objects and dumps read alike, edits that reach every place a call stands in, new messages."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)

from contextfold import Compactor
from contextfold.errors import FormatError
from contextfold.formats.langchain import LangChain
from contextfold.formats.langchain_shapes import shape_of
from contextfold.formats.local_tools import BLANK_SCREENSHOT
from contextfold.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from contextfold.tiers import reduce
from contextfold.tokens import count_tokens
from formats.openai_tools import PATCH, SCREEN, in_block, of_computer, of_custom, of_patch
from formats.reading import as_objects, decoded

LANGCHAIN = LangChain()
CALL = {"name": "f", "args": {"a": "long"}, "id": "c", "type": "tool_call"}
RAW = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "long"}'}}
CONVERSATION = [
    SystemMessage("rules", additional_kwargs={"__openai_role__": "developer"}),
    HumanMessage([{"type": "text", "text": "look"}], name="ann", id="h1", additional_kwargs={"pin": True}),
    AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "first"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": "long"}},
        ],
        tool_calls=[CALL],
        invalid_tool_calls=[{"name": "g", "args": "{bad", "id": "d", "error": "x", "type": "invalid_tool_call"}],
        additional_kwargs={"reasoning_content": "thought", "tool_calls": [RAW]},
    ),
    ToolMessage("out", tool_call_id="c", name="f", status="error", artifact={"big": 1}),
]
SHAPES = {
    "object": CONVERSATION,
    "flat": [message.model_dump() for message in CONVERSATION],
    "data": [message_to_dict(message) for message in CONVERSATION],
    "constructor": [dumpd(message) for message in CONVERSATION],
}


def fields_of(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        return dict(entry.__dict__)
    return dict(entry.get("data") or entry.get("kwargs") or entry)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_reads_the_same(shape: str) -> None:
    system, human, answer, result = decoded(SHAPES[shape], "langchain")
    assert (system.role, system.parts) == ("developer", (Text("rules"),))
    assert (human.role, human.name, human.id, human.metadata["pin"]) == ("user", "ann", "h1", True)
    assert answer.parts == (
        Reasoning("thought"),
        Reasoning("hm"),
        Text("first"),
        ToolCall("c", "f", '{"a": "long"}'),
        ToolCall("d", "g", "{bad"),
    )
    assert result.role == "tool"
    assert result.parts == (ToolResult("c", (Text("out"),), name="f", is_error=True),)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_edited_call_is_edited_in_its_block_its_entry_and_its_raw_form(shape: str) -> None:
    wire = SHAPES[shape]
    message = decoded(wire, "langchain")[2]
    parts = tuple(
        replace(p, arguments='{"a": "s"}', edited=True) if p == message.tool_calls[0] else p for p in message.parts
    )
    (entry,) = LANGCHAIN.encode([message.with_parts(parts)])
    assert type(entry) is type(wire[2])
    fields, before = fields_of(entry), fields_of(wire[2])
    assert fields["content"][2]["input"] == {"a": "s"}
    assert fields["tool_calls"][0]["args"] == {"a": "s"}
    assert fields["additional_kwargs"]["tool_calls"][0]["function"]["arguments"] == '{"a": "s"}'
    assert fields["content"][:2] == before["content"][:2]
    assert fields["invalid_tool_calls"] == before["invalid_tool_calls"]
    assert before["tool_calls"][0]["args"] == {"a": "long"}
    assert LANGCHAIN.decode(entry).tool_calls[0].arguments == '{"a": "s"}'


@pytest.mark.parametrize("as_dump", [False, True])
def test_an_invalid_call_without_an_id_is_read_and_stays_where_it_is(as_dump: bool) -> None:
    """No result can answer it, and agents go on behind it."""
    bad = {"name": "g", "args": "{bad", "id": None, "error": "x", "type": "invalid_tool_call"}
    message = AIMessage("said", tool_calls=[CALL], invalid_tool_calls=[bad])
    wire: Any = message.model_dump() if as_dump else message
    read = LANGCHAIN.decode(wire)
    assert [call.id for call in read.tool_calls] == ["c"]
    assert any(isinstance(part, Opaque) and "{bad" in part.text for part in read.parts)
    assert LANGCHAIN.encode([read])[0] is wire
    edited = tuple(replace(p, arguments="{}", edited=True) if isinstance(p, ToolCall) else p for p in read.parts)
    fields = fields_of(LANGCHAIN.encode([read.with_parts(edited)])[0])
    assert fields["tool_calls"][0]["args"] == {}
    assert fields["invalid_tool_calls"] == [bad]
    gone = fields_of(LANGCHAIN.encode([read.with_parts(read.parts[:1])])[0])
    assert gone["invalid_tool_calls"] == []


@pytest.mark.parametrize("as_dump", [False, True])
def test_a_call_without_an_id_is_read_and_stays_where_it_is(as_dump: bool) -> None:
    """LangChain's types allow it, streams without ids give it, and no result can answer it."""
    bare = {**CALL, "id": None, "name": "bare"}
    block = {"type": "tool_call", "name": "bare", "args": {}, "id": None}
    message = AIMessage([{"type": "text", "text": "said"}, block], tool_calls=[CALL, bare])
    wire: Any = message.model_dump() if as_dump else message
    read = LANGCHAIN.decode(wire)
    assert [call.id for call in read.tool_calls] == ["c"]
    assert any(isinstance(part, Opaque) and "bare" in part.text for part in read.parts)
    edited = tuple(replace(p, arguments="{}", edited=True) if isinstance(p, ToolCall) else p for p in read.parts)
    fields = fields_of(LANGCHAIN.encode([read.with_parts(edited)])[0])
    assert [call["id"] for call in fields["tool_calls"]] == ["c", None]
    assert fields["tool_calls"][0]["args"] == {}


SAID_BESIDE = {
    "refusal": "I cannot open the vault VK-991.",
    "audio": {"id": "audio_1", "data": "UklGRiQA" * 400, "transcript": "Pier 9 is closed.", "expires_at": 9},
}


@pytest.mark.parametrize("as_dump", [False, True])
@pytest.mark.parametrize("key", SAID_BESIDE)
def test_what_a_model_says_beside_its_content_is_read_and_stays_there(key: str, as_dump: bool) -> None:
    """OpenAI's client puts a refusal, and the words of a spoken answer, where no content is."""
    words = "I cannot open the vault VK-991." if key == "refusal" else "Pier 9 is closed."
    message = AIMessage("", additional_kwargs={key: SAID_BESIDE[key], "other": 1}, tool_calls=[CALL])
    wire: Any = message.model_dump() if as_dump else message
    read = LANGCHAIN.decode(wire)
    assert read.parts[0] == Opaque(key, words)
    assert LANGCHAIN.encode([read])[0] is wire
    edited = tuple(replace(p, arguments="{}", edited=True) if isinstance(p, ToolCall) else p for p in read.parts)
    assert fields_of(LANGCHAIN.encode([read.with_parts(edited)])[0])["additional_kwargs"][key] == SAID_BESIDE[key]
    gone = fields_of(LANGCHAIN.encode([read.with_parts(read.parts[1:])])[0])
    assert gone["additional_kwargs"] == {"other": 1}


@pytest.mark.parametrize("key", SAID_BESIDE)
def test_what_a_model_says_beside_its_content_reaches_the_summarizer(key: str) -> None:
    said = AIMessage("", additional_kwargs={key: SAID_BESIDE[key]})
    turns = [(HumanMessage(f"Question {n}. " + "pad " * 300), AIMessage("fine " * 100)) for n in range(8)]
    read: list[str] = []

    def write(prompt: str) -> str:
        read.append(prompt)
        return "What was said."

    history = [HumanMessage("Open it."), said, *(message for turn in turns for message in turn)]
    result = Compactor(window=2_500, summarizer=write).compact(history)
    assert list(result.ledger)[1].fate == "summarized"
    assert ("VK-991" if key == "refusal" else "Pier 9") in "".join(read)


@pytest.mark.parametrize("as_dump", [False, True])
def test_a_role_that_only_a_chat_message_has_goes_with_it_as_a_name(as_dump: bool) -> None:
    message = ChatMessage("Too long.", role="critic")
    wire: Any = message.model_dump() if as_dump else message
    read = LANGCHAIN.decode(wire)
    assert (read.role, read.name) == ("assistant", "critic")
    assert LANGCHAIN.encode([read])[0] is wire


def test_a_call_with_an_empty_id_is_answered_under_it() -> None:
    """As LangChain itself does, for providers that give none."""
    call = AIMessage("", tool_calls=[{**CALL, "id": ""}])
    (asked, answered) = decoded([call, ToolMessage("out", tool_call_id="")], "langchain")
    assert asked.tool_calls[0].id == answered.tool_results[0].call_id == ""
    assert LANGCHAIN.encode([asked])[0] is call


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_and_reasoning_that_are_removed_are_gone_everywhere(shape: str) -> None:
    message = decoded(SHAPES[shape], "langchain")[2]
    (entry,) = LANGCHAIN.encode([message.with_parts((message.parts[2],))])
    fields = fields_of(entry)
    assert [block["type"] for block in fields["content"]] == ["text"]
    assert fields["tool_calls"] == []
    assert fields["invalid_tool_calls"] == []
    assert fields["additional_kwargs"] == {"tool_calls": []}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_edited_result_keeps_its_artifact_status_and_name(shape: str) -> None:
    message = decoded(SHAPES[shape], "langchain")[3]
    (result,) = message.tool_results
    shorter = replace(result, content=(Text("s", edited=True),), edited=True)
    (entry,) = LANGCHAIN.encode([message.with_parts((shorter,))])
    fields = fields_of(entry)
    assert (fields["content"], fields["status"], fields["name"]) == ("s", "error", "f")
    assert fields.get("artifact") == fields_of(SHAPES[shape][3]).get("artifact")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_new_message_takes_the_shape_of_the_others(shape: str) -> None:
    """A summary stands in the list as what the caller's own code can read."""
    summary = Message("user", (Text("summary"),), metadata={"contextfold": "summary"})
    known = decoded(SHAPES[shape], "langchain")
    first, *rest = LANGCHAIN.encode([summary, *known])
    assert rest == SHAPES[shape]
    assert shape_of(first) == shape
    assert fields_of(first)["content"] == "summary"
    assert fields_of(first)["additional_kwargs"] == {"contextfold": "summary"}
    assert LANGCHAIN.decode(first).role == "user"


def test_new_messages_alone_are_flat_dumps() -> None:
    messages = [
        Message("developer", (Text("rules"),)),
        Message("user", (Text("look"), Media("image", "image/png", data="AAAA", detail="low")), name="ann"),
        Message("assistant", (Text("one"), ToolCall("a", "f", "[1]"), ToolCall("b", "sh", "ls", custom=True)), id="m"),
        Message("tool", (ToolResult("a", (Text("x"),), name="f"),)),
        Message("user", (ToolResult("b", (Media("document", url="https://a.b"),), is_error=True), Text("go on"))),
    ]
    assert LANGCHAIN.encode(messages) == [
        {"type": "system", "content": "rules", "additional_kwargs": {"__openai_role__": "developer"}},
        {
            "type": "human",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            ],
            "additional_kwargs": {},
            "name": "ann",
        },
        {
            "type": "ai",
            "content": "one",
            "additional_kwargs": {},
            "id": "m",
            "tool_calls": [
                {"name": "f", "args": {"input": "[1]"}, "id": "a", "type": "tool_call"},
                {"name": "sh", "args": {"input": "ls"}, "id": "b", "type": "tool_call"},
            ],
        },
        {"type": "tool", "content": "x", "tool_call_id": "a", "status": "success", "name": "f"},
        {
            "type": "tool",
            "content": [{"type": "file", "url": "https://a.b"}],
            "tool_call_id": "b",
            "status": "error",
        },
        {"type": "human", "content": "go on", "additional_kwargs": {}},
    ]
    assert [type(entry).__name__ for entry in as_objects(LANGCHAIN.encode(messages))] == [
        "SystemMessage",
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "ToolMessage",
        "HumanMessage",
    ]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("bare", Text("bare")),
        ({"type": "image_url", "image_url": "https://a.b"}, Media("image", url="https://a.b")),
        ({"type": "image", "base64": "AAAA", "mime_type": "image/png"}, Media("image", "image/png", data="AAAA")),
        (
            {"type": "file", "source_type": "base64", "data": "AAAA", "mime_type": "application/pdf"},
            Media("document", "application/pdf", data="AAAA"),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            Media("image", "image/png", data="AAAA"),
        ),
        ({"type": "audio", "url": "https://a.b"}, Media("audio", url="https://a.b")),
        ({"type": "text-plain", "text": "words", "mime_type": "text/plain"}, Text("words")),
        (
            {"type": "text-plain", "base64": "AAAA", "mime_type": "text/plain", "title": "a.txt"},
            Media("document", "text/plain", data="AAAA", name="a.txt"),
        ),
        ({"type": "file", "source_type": "text", "text": "words"}, Opaque("file", "text\nwords")),
        ({"type": "image_url", "image_url": {}}, Opaque("image_url")),
        ({"type": "non_standard", "value": {"note": "x"}}, Opaque("non_standard", "x")),
    ],
)
def test_every_block_of_content_becomes_its_part(block: Any, part: Any) -> None:
    assert LANGCHAIN.decode({"type": "human", "content": [block]}).parts == (part,)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}, "input"),
        ({"type": "tool_call", "id": "c", "name": "f", "args": {"a": 1}}, "args"),
        ({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}, "arguments"),
    ],
)
def test_a_call_that_stands_only_in_the_content_is_a_call(block: dict[str, Any], key: str) -> None:
    wire = {"type": "ai", "content": [block]}
    message = LANGCHAIN.decode(wire)
    (call,) = message.tool_calls
    assert (call.id, call.name, call.arguments) == ("c", "f", '{"a": 1}')
    (entry,) = LANGCHAIN.encode([message.with_parts((replace(call, arguments="{}", edited=True),))])
    assert entry == {"type": "ai", "content": [{**block, key: "{}" if key == "arguments" else {}}]}
    assert LANGCHAIN.encode([message.with_parts(message.parts)]) == [wire]


def test_calls_of_dumps_from_before_tool_calls_existed_are_read_from_the_raw_form() -> None:
    wire = {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [RAW]}}
    message = LANGCHAIN.decode(wire)
    (call,) = message.tool_calls
    assert call == ToolCall("c", "f", '{"a": "long"}')
    (entry,) = LANGCHAIN.encode([message.with_parts((replace(call, arguments="{}", edited=True),))])
    assert entry["additional_kwargs"]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert LANGCHAIN.encode([message.with_parts(message.parts)]) == [wire]


def test_the_rarer_message_classes_are_read_too() -> None:
    chunk = AIMessageChunk("hi", tool_call_chunks=[{"name": "f", "args": '{"a": 1}', "id": "c", "index": 0}])
    message = LANGCHAIN.decode(chunk)
    assert (message.role, message.tool_calls[0].arguments) == ("assistant", '{"a": 1}')
    shorter = replace(message.tool_calls[0], arguments="{}", edited=True)
    (entry,) = LANGCHAIN.encode([message.with_parts((message.parts[0], shorter))])
    assert entry.tool_call_chunks[0]["args"] == "{}"
    assert LANGCHAIN.decode(ChatMessage("x", role="user")).role == "user"
    assert LANGCHAIN.decode(FunctionMessage("x", name="f")).tool_results[0].call_id == "function:f"
    edited = LANGCHAIN.decode(FunctionMessage("x", name="f"))
    (result,) = edited.tool_results
    (entry,) = LANGCHAIN.encode([edited.with_parts((replace(result, content=(), edited=True),))])
    assert entry.content == ""


def test_messages_of_a_person_or_the_system_are_joined_and_others_are_not() -> None:
    one, other = HumanMessage("a", id="h"), HumanMessage([{"type": "text", "text": "b"}])
    joined = LANGCHAIN.join(one, other)
    assert joined.id == "h"
    assert joined.content == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert LANGCHAIN.join({"type": "human", "content": "a"}, HumanMessage("b"))["content"] == "a\n\nb"
    assert LANGCHAIN.join(HumanMessage(""), one).content == "a"
    assert LANGCHAIN.join(one, AIMessage("a")) is None
    assert LANGCHAIN.join(AIMessage("a"), AIMessage("a")) is None
    assert LANGCHAIN.join(one, HumanMessage("b", name="ann")) is None


def test_blocks_of_a_message_are_edited_and_replaced_one_by_one() -> None:
    blocks = [{"type": "text", "text": "long", "extra": 1}, {"type": "image_url", "image_url": "https://a.b"}]
    message = LANGCHAIN.decode(HumanMessage(blocks))
    text = message.parts[0]
    assert isinstance(text, Text)
    parts = (replace(text, text="s", edited=True), Text("[image]"), Media("video", "video/mp4", data="AAAA"))
    (entry,) = LANGCHAIN.encode([message.with_parts((*parts, Media("image", url="file-1")))])
    assert entry.content == [
        {"type": "text", "text": "s", "extra": 1},
        {"type": "text", "text": "[image]"},
        {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"},
        {"type": "text", "text": "[image: file-1]"},
    ]


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        (3, "not a LangChain message: a number; types are human, ai, system, tool"),
        ({"type": "robot", "content": "x"}, "not a LangChain message: type 'robot'"),
        ({"type": "tool", "content": "x"}, "a tool message: 'tool_call_id' is missing"),
        ({"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}}]}, "tool call 0: 'id' is missing"),
        ({"type": "ai", "content": [{"type": "tool_use", "name": "f"}]}, "a tool_use block has no id"),
        ({"type": "chat", "role": None, "content": "x"}, "unknown role None; allowed are user, assistant"),
        ({"lc": 1, "type": "constructor", "id": ["x", "Prompt"], "kwargs": {}}, "not a LangChain message"),
        (RemoveMessage("h1"), "a RemoveMessage is not part of a conversation: apply it first"),
    ],
)
def test_what_is_no_langchain_message_is_refused_in_words_with_its_index(wire: Any, words: str) -> None:
    with pytest.raises(FormatError) as error:
        LANGCHAIN.decode(wire, 5)
    assert words in str(error.value)
    assert str(error.value).startswith("message 5: ")


@pytest.mark.parametrize(
    ("block", "kind", "media_type"),
    [
        ({"type": "image", "image": {"format": "png", "source": {"bytes": b"pixels"}}}, "image", "image/png"),
        (
            {"type": "document", "document": {"format": "pdf", "name": "bill", "source": {"bytes": b"pixels"}}},
            "document",
            "application/pdf",
        ),
        ({"type": "media", "mime_type": "audio/wav", "data": b"pixels"}, "audio", "audio/wav"),
    ],
)
def test_media_that_are_bytes_are_media_with_their_price(block: dict[str, Any], kind: str, media_type: str) -> None:
    """ChatBedrockConverse takes Converse's own blocks, Google's integration bytes: both counted next to nothing."""
    message = HumanMessage(["Look.", block])  # type: ignore[list-item]
    media = LangChain().decode(message).parts[1]
    assert isinstance(media, Media)
    assert (media.kind, media.media_type, media.data) == (kind, media_type, base64.b64encode(b"pixels").decode())
    assert LangChain().encode([LangChain().decode(message)]) == [message]


@pytest.mark.parametrize("rows", [{"rows": [{"n": n, "ok": True} for n in range(900)], "of": "x"}, list(range(3_000))])
def test_what_a_tool_gives_as_json_is_its_text_and_stays_json_where_an_object_is_left(rows: Any) -> None:
    """Of numbers and keys nothing was read, and 9,000 tokens of them were sized as five."""
    message = ToolMessage([{"type": "json", "json": rows}], tool_call_id="c")
    as_text = ToolMessage(json.dumps(rows), tool_call_id="c")
    assert count_tokens([message]) == count_tokens([as_text]) > 5_000
    read = LANGCHAIN.decode(message)
    assert LANGCHAIN.encode([read])[0] is message
    (shorter,) = LANGCHAIN.encode([reduced(read, "tool_outputs", 200)])
    assert count_tokens([shorter]) < 250
    (block,) = shorter.content
    assert block["type"] == ("json" if isinstance(rows, dict) else "text")
    assert block.get("json", {"of": "x"})["of"] == "x"


# ---- tools that OpenAI has built in, and custom ones ----


def reduced(message: Message, tier: str, limit: int) -> Message:
    return message.with_parts(tuple(found for part in message.parts if (found := reduce(part, tier, limit))))


@pytest.mark.parametrize("n", [0, 1])
def test_a_screenshot_that_left_is_a_white_picture_in_the_shape_that_it_had(n: int) -> None:
    """The API takes nothing else there."""
    shown = of_computer(n, is_v1=False)[1]
    read = LANGCHAIN.decode(shown)
    assert isinstance(read.parts[0], ToolResult)
    assert read.parts[0].content == (Media("image", "image/png", data=SCREEN.partition(",")[2]),)
    (left,) = LANGCHAIN.encode([reduced(read, "media", 0)])
    url = left.content if isinstance(shown.content, str) else left.content[0]["image_url"]
    assert url == BLANK_SCREENSHOT["image_url"]
    assert (left.tool_call_id, left.additional_kwargs) == (shown.tool_call_id, shown.additional_kwargs)


@pytest.mark.parametrize("is_v1", [False, True])
@pytest.mark.parametrize("window", [3_000, 6_000])
def test_an_approval_is_in_no_view_without_the_request_that_it_answers(window: int, is_v1: bool) -> None:
    """It stands in a message of the user's, and was kept like one."""
    history: list[Any] = [HumanMessage("Begin.")]
    for n in range(10):
        asks = {"type": "mcp_approval_request", "id": f"r{n}", "name": "roll", "arguments": "words " * 200}
        yes = {"type": "mcp_approval_response", "approve": True, "approval_request_id": f"r{n}"}
        ran = {"type": "mcp_call", "id": f"m{n}", "name": "roll", "arguments": "{}", "output": "out " * 300}
        history += [AIMessage([in_block(asks, is_v1=is_v1)]), HumanMessage([in_block(yes, is_v1=is_v1)])]
        history.append(AIMessage([in_block(ran, is_v1=is_v1), {"type": "text", "text": "rolled " * 50}]))
    view = Compactor(window=window).compact([*history, HumanMessage("And now?")]).messages
    contents = [message.content for message in view if isinstance(message.content, list)]
    blocks = [block.get("value", block) for content in contents for block in content]
    asked = {block["id"] for block in blocks if block["type"] == "mcp_approval_request"}
    assert {block["approval_request_id"] for block in blocks if block["type"] == "mcp_approval_response"} == asked
    assert len(view) < len(history)


@pytest.mark.parametrize("is_v1", [False, True])
def test_a_custom_call_and_its_output_are_shortened_in_all_places(is_v1: bool) -> None:
    called, done = (LANGCHAIN.decode(one) for one in of_custom(1, is_v1=is_v1))
    assert called.tool_calls[0] == ToolCall("c1", "apply", PATCH, custom=True)
    assert done.parts[0] == ToolResult("c1", (Text(PATCH),), name="apply")
    short = [
        one.with_parts(tuple(reduce(part, "oversized", 60) or part for part in one.parts)) for one in (called, done)
    ]
    said, answered = LANGCHAIN.encode(short)
    block = said.content[0]["value"] if is_v1 else said.content[0]
    assert said.tool_calls[0]["args"] == {"__arg1": block["input"]}
    for text in (block["input"], answered.content[0]["output"]):
        assert text.startswith("*** Begin Patch\n+ a line of code\n")
        assert len(text) < 400


def test_what_the_provider_ran_itself_is_no_call_and_a_call_that_no_one_answered_is_told_as_what_it_is() -> None:
    call, done = (one.content[0] for one in of_patch(1, is_v1=False))
    read = LANGCHAIN.decode(AIMessage([call, done]))
    assert [type(part) for part in read.parts] == [Opaque, Opaque]
    unnamed = LANGCHAIN.decode(AIMessage([{"type": "tool_search_call", "call_id": None, "execution": "server"}]))
    assert [type(part) for part in unnamed.parts] == [Opaque]
    asked = [HumanMessage("Patch it."), AIMessage([call]), HumanMessage("Stop. What now?")]
    _, _, placeholder, _ = Compactor(window=90_000).compact(asked).messages
    assert isinstance(placeholder, HumanMessage)
    assert placeholder.content[0]["type"] == "apply_patch_call_output"
    assert (placeholder.content[0]["call_id"], placeholder.content[0]["status"]) == ("c1", "failed")
    shown = [HumanMessage("Look."), of_computer(0, is_v1=False)[0], HumanMessage("Stop. What now?")]
    assert "computer" in str(Compactor(window=90_000).compact(shown).messages[1].content[0]["text"])
