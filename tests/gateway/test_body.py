"""Bodies are taken apart and put together again from their own bytes, whatever way a client writes its JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.requests_made import KEYS, body_of, compact, read_by, turns

from contextfold.formats import FORMATS
from contextfold.formats.openai_chat import OpenAIChat
from contextfold.gateway.body import Unreadable, marks_in
from contextfold.gateway.call import State
from contextfold.gateway.conversations import Conversations, KnownParts, Parts, parts_of
from contextfold.gateway.fitting import Bounds
from contextfold.gateway.tap import AnswerTap
from contextfold.gateway.upstream import UpstreamAnswer
from contextfold.gateway.wires import CHAT, CONTENTS, MESSAGES, RESPONSES
from contextfold.policy import Policy
from contextfold.tokens import TokenCounter

TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ['"messages":[', '\\"messages\\": [', "]}", '{"messages":[]}', "\\", '"', "\u2028", "日本語", "😀"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT | JSON}) | st.builds(
    lambda extra: {"role": "user", **extra}, st.dictionaries(TEXT, JSON, max_size=3)
)
FIELDS = st.dictionaries(TEXT.filter(lambda name: name != "messages"), JSON, max_size=3)
WRITERS = st.sampled_from(
    [
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
        lambda value: json.dumps(value).encode(),
        lambda value: json.dumps(value, indent=2).encode(),
        lambda value: json.dumps(value, ensure_ascii=True, separators=(" , ", " : ")).encode(),
    ]
)


def read(raw: bytes, conversations: Conversations | None = None) -> Any:
    return read_by(conversations or Conversations(), b"scope", raw, "messages", CHAT.plain)[0]


@given(before=FIELDS, messages=st.lists(MESSAGE, max_size=5), after=FIELDS, write=WRITERS)
@settings(max_examples=200)
def test_every_message_is_cut_out_as_the_bytes_that_came(before: Any, messages: Any, after: Any, write: Any) -> None:
    fields = {**before, "messages": messages, **{name: one for name, one in after.items() if name not in before}}
    raw = write(fields)
    body = read(raw)
    assert [json.loads(body.message_bytes(index)) for index in range(len(messages))] == messages
    assert {name: value for name, value in fields.items() if name != "messages"} == dict(body.fields)
    assert body.with_view(body.open, "messages") is raw


@given(
    messages=st.lists(MESSAGE, min_size=2, max_size=6),
    more=st.lists(MESSAGE, min_size=1, max_size=3),
    kept=st.data(),
    write=WRITERS,
)
@settings(max_examples=150)
def test_a_view_is_made_of_original_bytes_and_extends_the_last_one(
    messages: Any, more: Any, kept: st.DataObject, write: Any
) -> None:
    """What stays between two turns is the same bytes, for any choice of messages that stay."""
    stays = kept.draw(st.lists(st.booleans(), min_size=len(messages), max_size=len(messages)))
    summary = {"role": "user", "content": "what was before"}
    conversations = Conversations()

    def viewed(all_messages: list[Any]) -> bytes:
        raw = write({"model": "m", "messages": all_messages})
        body, known = read_by(conversations, b"scope", raw, "messages", CHAT.plain)
        conversations.remember(KnownParts(b"scope", body), known)
        chosen = [one for one, is_kept in zip(body.messages, stays, strict=False) if is_kept]
        view = [summary, *chosen, *body.messages[len(messages) :]]
        return body.with_view(view, "messages")

    first, second = viewed(messages), viewed([*messages, *more])
    assert json.loads(second)["messages"][-len(more) :] == more
    common = first[: first.rindex(b"]")].rstrip()
    assert second.startswith(common)


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES, CONTENTS], ids=lambda wire: wire.format)
def test_a_conversation_that_grows_keeps_its_objects_and_its_chain(wire: Any) -> None:
    conversations = Conversations()
    known_messages: list[Any] = []
    chain: list[bytes] = []
    for messages in turns(wire.format, 6):
        raw = compact(body_of(wire.format, messages, tools=[{"name": "read"}]))
        body, known = read_by(conversations, b"scope", raw, wire.key, wire.plain)
        conversations.remember(KnownParts(b"scope", body), known)
        assert all(new is old for new, old in zip(body.messages, known_messages, strict=False))
        assert body.chain[: len(chain)] == chain
        known_messages, chain = body.messages, body.chain
    assert len(conversations) == 1


def test_marks_that_move_from_turn_to_turn_do_not_make_another_conversation() -> None:
    """Claude Code marks its newest messages, and writes a text as a block only while it is marked."""
    mark = {"type": "ephemeral"}
    first = [
        {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": mark}]},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": [{"type": "text", "text": "three", "cache_control": mark}]},
    ]
    second = [
        {"role": "user", "content": "one"},
        first[1],
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "four"},
        {"role": "user", "content": [{"type": "text", "text": "five", "cache_control": mark}]},
    ]
    conversations = Conversations()
    body, _ = read_by(conversations, b"s", compact({"messages": first}), "messages", MESSAGES.plain)
    conversations.remember(KnownParts(b"s", body))
    grown, known = read_by(conversations, b"s", compact({"messages": second}), "messages", MESSAGES.plain)
    assert known is not None
    assert grown.messages[:3] == body.messages
    assert all(new is old for new, old in zip(grown.messages[:3], body.messages, strict=True))
    assert grown.chain[:3] == body.chain
    assert marks_in(json.loads(grown.with_view(grown.messages[2:], "messages"))["messages"]) == 1


def test_turns_that_are_edited_again_and_again_leave_little_behind() -> None:
    conversations, key, plainly = Conversations(), CHAT.key, CHAT.plain
    said = [{"role": "user", "content": f"message {n}"} for n in range(60)]
    state = None
    for turn in range(80):
        messages = [*said[:2], *({**one, "content": f"{one['content']} in turn {turn}"} for one in said[2:])]
        raw = compact({"model": "m", "messages": messages})
        body, known = read_by(conversations, b"s", raw, key, plainly)
        conversations.remember(KnownParts(b"s", body, state), known)
        view = [body.messages[0], *body.messages[-3:]]
        assert json.loads(body.with_view(view, key))["messages"] == [messages[0], *messages[-3:]]
        assert len(body.places) < 2_000


def test_a_fork_gets_objects_of_its_own_and_shares_the_chain_of_what_is_common() -> None:
    conversations = Conversations()
    common = list(turns("openai-chat", 4))[-1]
    left, right = [*common, {"role": "user", "content": "left"}], [*common, {"role": "user", "content": "right"}]
    one, _ = read_by(conversations, b"s", compact({"messages": left}), "messages", CHAT.plain)
    conversations.remember(KnownParts(b"s", one))
    other, known = read_by(conversations, b"s", compact({"messages": right}), "messages", CHAT.plain)
    assert known is None
    assert other.chain[: len(common)] == one.chain[: len(common)]
    assert other.chain[-1] != one.chain[-1]


@pytest.mark.parametrize("wire", KEYS)
def test_a_next_turn_goes_on_with_the_known_conversation_and_no_other_is_looked_for(wire: str) -> None:
    """What a model says and the calls beside it are several items in some APIs, and one answer in all. Two answers at
    once may be those of another conversation that begins alike.
    """
    key, conversations = KEYS[wire], Conversations()
    first, second, third = (list(turns(wire, 3))[n] for n in (1, 2, 3))

    def parts(messages: list[Any]) -> Parts:
        raw = compact(body_of(wire, messages))
        return parts_of(raw, key, lambda one: (one, False), conversations.find(b"s", raw, key))

    known = KnownParts(b"s", parts(first).body)
    conversations.remember(known)
    assert (parts(second).known, list(parts(second).earlier)) == (known, [])
    assert parts(third).known is known
    assert parts(third).earlier


def test_two_scopes_share_nothing() -> None:
    conversations = Conversations()
    raw = compact({"messages": list(turns("openai-chat", 3))[-1]})
    body, _ = read_by(conversations, b"mine", raw, "messages", CHAT.plain)
    conversations.remember(KnownParts(b"mine", body))
    assert read_by(conversations, b"mine", raw, "messages", CHAT.plain)[1] is not None
    assert read_by(conversations, b"theirs", raw, "messages", CHAT.plain)[1] is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"messages": 5}',
        b'{"messages": [1, 2}',
        b'{"messages": [{"a": 1}], "x": }',
        b'{"other": {"messages": []}}',
        b'{"messages": [{"role": "user"}], "messages": [{"role": "system"}]}',
        b'{"messages": [{}], "a": 1}, {"b": []}',
        b"\xff\xfe",
    ],
)
def test_what_cannot_be_read_is_said_to_be_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        read(raw)


NAMES = ('"messages"', r'"\u006dessages"', r'"m\u0065ssage\u0073"')
ONE, OTHER = '[{"role":"user","content":"a"}]', '[{"role":"user","content":"b"}]'


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", [OTHER, "{}", "null"])
@pytest.mark.parametrize("form", ["{%s:%s, %s:%s}", '{"tools" :["\\u00e9"], %s : %s ,"a":1,"b":{}, %s:%s , "c":2}'])
def test_a_body_with_two_fields_of_that_name_is_unreadable_however_they_are_written(
    name: str, other: str, form: str
) -> None:
    """Readers differ in which of the two counts: a view made of one could be that of the other."""
    for fields in (('"messages"', ONE, name, other), (name, other, '"messages"', ONE)):
        with pytest.raises(Unreadable):
            read_by(Conversations(), b"", (form % fields).encode(), "messages", CHAT.plain)
    quoted = name.replace('"', '\\"')
    inside = form % ('"messages"', ONE, '"other"', f'{{{name}: 1, "x": "{quoted}: y"}}')
    assert read_by(Conversations(), b"", inside.encode(), "messages", CHAT.plain)[0].messages == json.loads(ONE)


def test_where_the_messages_begin_is_found_in_time_that_grows_with_the_body() -> None:
    """A field of the same name may stand in tools and texts, as often as a client likes."""

    def seconds(count: int) -> float:
        raw = b'{"tools":[' + b'{"messages":[]},' * count + b'{}],"messages":[{"role":"user","content":"x"}]}'
        began = time.process_time()
        assert read(raw).messages == [{"role": "user", "content": "x"}]
        return time.process_time() - began

    seconds(100)
    short, long = (min(seconds(count) for _ in range(3)) for count in (1_000, 8_000))
    assert long < max(0.05, 24 * short)


def test_messages_too_deep_to_be_compared_are_said_to_be_unreadable_or_known_again() -> None:
    for levels in (200, 400, 700, 1_000):
        conversations = Conversations()
        raw = b'{"messages":[{"role":"user","content":' + b'[{"content":' * levels + b"1" + b"}]" * levels + b"}]}"
        try:
            body, _ = read_by(conversations, b"s", raw, "messages", MESSAGES.plain)
        except Unreadable:
            continue
        conversations.remember(KnownParts(b"s", body))
        assert read_by(conversations, b"s", raw + b" ", "messages", MESSAGES.plain)[1] is not None


@pytest.mark.parametrize("told", [None, 9_000])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_usage_is_read_from_events_in_any_pieces_and_nothing_is_lost(told: int | None, size: int) -> None:
    events = (
        b': x\n\ndata: {"choices":[],"usage":{"prompt_tokens":7}}\r\n\r\n'
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}],"usage":{"prompt_tokens":8}}\n\n'
        b'data: {"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"usage":{"prompt_tokens":1}}\n\ndata: the end'
    )
    tap = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"text/event-stream")], None), told)
    out = b"".join(tap.feed(events[at : at + size]) for at in range(0, len(events), size)) + tap.rest()
    assert tap.input_tokens == 8
    assert out == (events if told is None else events.replace(b'"prompt_tokens":7', b'"prompt_tokens":9000'))


@pytest.mark.parametrize("told", [None, 9_000])
@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_of_events_end_in_any_of_the_three_ways(told: int | None, size: int, end: bytes) -> None:
    events = b'event: a\ndata: {"usage":{"prompt_tokens":7}}\n\n: x\n\ndata: [DONE]\n\n'.replace(b"\n", end)
    tap = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"text/event-stream")], None), told)
    out = b"".join(tap.feed(events[at : at + size]) for at in range(0, len(events), size)) + tap.rest()
    assert tap.input_tokens == 7
    assert out == (events if told is None else events.replace(b":7", b":9000"))


BILLED = {"input_tokens": 30_000, "output_tokens": 9}
FIRST_ROUND = {"type": "message_start", "message": {"usage": {"input_tokens": 1_000, "output_tokens": 1}}}
SEARCHED = {**BILLED, "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}}
FOUND = {"object": "response", "output": [{"type": "web_search_call", "id": "ws_1"}], "usage": BILLED}
GROUNDED = {"promptTokenCount": 1_000, "toolUsePromptTokenCount": 29_000, "candidatesTokenCount": 9}


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ([{"type": "message", "content": [], "usage": SEARCHED}], None),
        ([FIRST_ROUND, {"type": "message_delta", "delta": {}, "usage": SEARCHED}], 1_000),
        ([{"type": "message", "content": [], "usage": {**BILLED, "iterations": [{"type": "compaction"}]}}], None),
        ([{"content": [], "context_management": {"applied_edits": [{"type": "clear"}]}, "usage": BILLED}], None),
        ([FOUND], None),
        ([{"type": "response.created"}, {"type": "response.completed", "response": FOUND}], None),
        ([{"candidates": [{"content": {}}], "usageMetadata": GROUNDED}], None),
        ([{"type": "message", "content": [], "usage": {**BILLED, "server_tool_use": None}}], 30_000),
        ([FIRST_ROUND, {"type": "message_delta", "delta": {}, "usage": BILLED}], 30_000),
    ],
)
def test_usage_of_an_answer_for_which_the_provider_read_something_else_teaches_nothing(
    said: list[Any], tokens: int | None
) -> None:
    """It searched by itself, and counts each round; or it edited what was sent, and counts what was left."""
    is_stream = len(said) > 1
    kind = b"text/event-stream" if is_stream else b"application/json"
    tap = AnswerTap(UpstreamAnswer(200, [(b"content-type", kind)], None), None)
    for event in said:
        tap.feed(b"data: " + compact(event) + b"\n\n" if is_stream else compact(event))
    tap.rest()
    assert tap.input_tokens == tokens


def test_an_answer_that_could_not_be_written_as_it_was_read_stays_as_it_came() -> None:
    body = b'{"usage":{"prompt_tokens":5,"total_tokens":5},"score":1e400}'  # an infinity, in Python
    plain = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"application/json")], None), 9_000)
    assert plain.rewritten(body) == body
    stream = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"text/event-stream")], None), 9_000)
    assert stream.feed(b"data: " + body + b"\n\n") == b"data: " + body + b"\n\n"


def test_an_event_without_an_end_costs_no_more_than_its_bytes() -> None:
    def seconds(pieces: int) -> float:
        tap = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"text/event-stream")], None), 9_000)
        began = time.process_time()
        for _ in range(pieces):
            tap.feed(b"x" * 100)
        return time.process_time() - began

    seconds(100)
    short, long = (min(seconds(count) for _ in range(3)) for count in (2_000, 16_000))
    assert long < max(0.1, 24 * short)


def test_the_event_of_an_answer_with_an_image_is_looked_through_at_the_speed_of_bytes() -> None:
    """All other requests wait meanwhile, and each answer of the Responses API is read along for what may be named."""
    item = {"type": "image_generation_call", "id": "ig_1", "result": "A" * 3_000_000}
    told = {"response": {"object": "response", "output": [item], "usage": {"input_tokens": 7}}}
    data = compact(told)
    event = b"event: response.completed\ndata: " + data + b"\n\n"

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    def tapped() -> None:
        tap = AnswerTap(UpstreamAnswer(200, [(b"content-type", b"text/event-stream")], None), None)
        tap.feed(event)
        assert tap.items == [item]

    least = min(seconds(lambda: json.loads(data)) for _ in range(7))
    assert min(seconds(tapped) for _ in range(7)) < 25 * least


def test_half_an_emoji_is_no_obstacle() -> None:
    raw = b'{"messages": [{"role": "user", "content": "cut \\ud83d"}, {"role": "user", "content": "b"}]}'
    body = read(raw)
    assert body.message_bytes(0) == b'{"role": "user", "content": "cut \\ud83d"}'
    assert body.with_view([body.messages[1]], "messages") == b'{"messages": [{"role": "user", "content": "b"}]}'


@pytest.mark.parametrize("differs", ["the task", "each result"])
@pytest.mark.parametrize("drops", [0, 40], ids=["", "drops its oldest messages"])
def test_a_conversation_is_told_from_others_that_answered_the_same_without_reading_it(
    drops: int, differs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read the messages of both held up all other requests, for each of the others."""

    def of(name: str, messages: list[Any]) -> list[Any]:
        said = [messages[0], {"role": "user", "content": f"I am {name}."}, *messages[2:]]
        is_other = differs == "each result"
        return [
            {**one, "content": f"{name}: {one['content']}"} if is_other and one["role"] == "tool" else one
            for one in said
        ]

    rows = [body_of("openai-chat", messages)["messages"] for messages in turns("openai-chat", 60)]
    conversations, plainly = Conversations(), CHAT.plain
    for n, messages in enumerate(rows[40:-1]):
        body, _ = read_by(conversations, b"scope", compact({"messages": of(str(n), messages)}), "messages", plainly)
        conversations.remember(KnownParts(b"scope", body, State("openai-chat")))
    assert len(conversations) > 10
    decode, read = OpenAIChat.decode, list[Any]()
    monkeypatch.setattr(OpenAIChat, "decode", lambda *given: read.append(given) or decode(*given))
    last = of("Bert", rows[-1])
    raw = compact({"messages": [*last[:2], *last[2 + drops :]]})
    assert read_by(conversations, b"scope", raw, "messages", plainly)[1] is None
    assert len(read) < 30 * len(conversations)


def test_what_is_forgotten_is_forgotten_everywhere() -> None:
    conversations = Conversations(most=3)
    for number in range(10):
        raw = compact({"messages": [{"role": "user", "content": f"{number}"}, {"role": "user", "content": "x"}]})
        body, known = read_by(conversations, b"s", raw, "messages", CHAT.plain)
        conversations.remember(KnownParts(b"s", body), known)
    assert len(conversations) == 3
    assert len(conversations._by_end) == 3
    assert sum(len(one) for one in conversations._by_opening.values()) == 3
    assert sum(conversations._openings[b"s"].values()) == 3


def test_a_changed_answer_limit_keeps_every_other_field() -> None:
    fields = {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 9, "seed": 2**70}
    raw = compact(fields)
    body = read(raw)
    changed = json.loads(body.with_view(body.messages, "messages", {"max_tokens": 3}))
    assert changed == {**fields, "max_tokens": 3}


@pytest.mark.strict
def test_recorded_conversations_are_cut_without_a_byte_changed(transcripts: Any) -> None:
    """Real messages, in each wire's way: what passes is what came, and each turn's view extends the one before."""
    from contextfold.errors import ContextfoldError
    from contextfold.transcripts import read as read_file

    files = sorted(path for path in transcripts.rglob("*") if path.suffix in (".json", ".jsonl"))
    wires = {wire.format: wire for wire in (CHAT, RESPONSES, MESSAGES)}
    seen = 0
    for path in files[:: max(1, len(files) // 25)]:
        try:
            conversation = max(read_file(path.read_bytes(), name=path.name), key=lambda one: len(one.messages))
        except (ContextfoldError, ValueError):  # not every file is a conversation
            continue
        wire = wires.get(conversation.format)
        if wire is None or not 10 < len(conversation.messages) < 3_000:
            continue
        seen += 1
        conversations = Conversations()
        before = b""
        for end in range(len(conversation.messages) - 4, len(conversation.messages) + 1, 2):
            messages = list(conversation.messages[:end])
            raw = compact({"model": "m", wire.key: messages, "tools": conversation.tools or []})
            body, known = read_by(conversations, b"s", raw, wire.key, wire.plain)
            conversations.remember(KnownParts(b"s", body), known)
            assert body.with_view(body.open, wire.key) is raw
            view = body.with_view([{"role": "user", "content": "summary"}, *body.open[5:]], wire.key)
            inside = view[: view.rindex(b'],"tools"')]
            assert inside.startswith(before)
            assert inside.endswith(raw[body.spans[body.floor + 5][0] : body.spans[-1][1]])
            before = inside
    assert seen >= 3


LINK = {"url": "https://a.example/b"}


@pytest.mark.parametrize(
    ("format", "block"),
    [
        ("openai-chat", {"type": "image_url", "image_url": LINK}),
        ("openai-chat", {"type": "video_url", "video_url": LINK}),
        ("openai-chat", {"type": "audio_url", "audio_url": LINK}),
        ("openai-chat", {"type": "file", "file": {"file_id": "file-1"}}),
        ("openai-responses", {"type": "input_image", "file_id": "file-1"}),
        ("openai-responses", {"type": "input_file", "file_id": "file-1"}),
        ("openai-responses", {"type": "computer_screenshot", "file_id": "file-1"}),
        ("anthropic", {"type": "document", "source": {"type": "file", "file_id": "file-1"}}),
        ("gemini", {"fileData": {"fileUri": "files/1", "mimeType": "image/png"}}),
        ("gemini", {"file_data": {"file_uri": "files/1", "mime_type": "video/mp4"}}),
    ],
)
def test_what_costs_more_tokens_than_it_has_bytes_is_always_counted(format: str, block: dict[str, Any]) -> None:
    given = {"role": "user", ("parts" if format == "gemini" else "content"): [block]}
    raw = json.dumps({"messages": [given]}).encode()
    message = FORMATS[format].decode(given)
    assert TokenCounter().message(message) > len(raw)
    assert not Bounds(Policy()).is_short(raw, 64_000)
