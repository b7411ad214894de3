"""``History``: what is known of messages follows from them alone, however they came into it."""

from __future__ import annotations

import copy
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold import formats, json_values
from contextfold.conversation.fingerprint import Saying
from contextfold.conversation.history import MOST_MARKED_VALUES, History, Offered, _mark
from contextfold.messages import Media, Message, Text, ToolCall, ToolResult
from contextfold.testing import histories
from contextfold.tokens import TokenCounter

FORMATS = ("openai-chat", "openai-responses", "anthropic", "langchain", "gemini", "bedrock-converse")

TEXTS = st.text(max_size=60) | st.sampled_from(["see /srv/a_1.py and id 7741", "never use port 9000", "naïve 表 x_2"])
MESSAGES = st.lists(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), TEXTS),
    min_size=1,
    max_size=12,
)


def history_of(messages: list[dict[str, Any]]) -> History:
    history = History(formats.get("openai-chat"), TokenCounter())
    history.extend(messages)
    return history


@given(MESSAGES, st.data())
def test_a_part_that_grows_is_as_if_it_was_read_anew_and_the_whole_stays_as_it_was(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    whole, count = history_of(messages), len(messages)
    read = data.draw(st.integers(0, count))
    for n in range(read):
        whole.block(n)
    whole.fingerprint(data.draw(st.integers(0, count)))
    chosen = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    part = whole.part(chosen)
    part.extend(messages[:2])
    anew = history_of([*(messages[n] for n in chosen), *messages[:2]])
    for history, same in ((part, anew), (whole, history_of(messages))):
        length = len(same.messages)
        assert (history.messages, history.sizes, history.wire) == (same.messages, same.sizes, same.wire)
        assert history.fingerprint(length) == same.fingerprint(length)
        assert history.refresh() is False
        assert [history.block(n).texts for n in range(length)] == [same.block(n).texts for n in range(length)]


@given(format=st.sampled_from(FORMATS), data=st.data())
def test_a_history_that_goes_on_in_equal_objects_is_as_if_it_was_read_anew(format: str, data: st.DataObject) -> None:
    """In every format, whole and broken, and with more behind it. Where one message is another it stays as it was."""
    wire = data.draw(histories(format, max_turns=6, broken=data.draw(st.booleans())))
    source = formats.get(format)
    known, anew = History(source, TokenCounter()), History(source, TokenCounter())
    known.extend(wire[: data.draw(st.integers(0, len(wire)))])
    count = len(known.messages)
    for n in range(data.draw(st.integers(0, count))):
        known.block(n)
        known.note(n, known.messages[n])
        known.digest_at(n)
    start = data.draw(st.integers(0, count))
    now = copy.deepcopy(wire)
    if now and data.draw(st.booleans()):
        now[data.draw(st.integers(0, len(now) - 1))] = data.draw(st.sampled_from(wire))
    now[:start] = known.given[:start]
    anew.extend(now)
    same = all(one == other for one, other in zip(known.messages[start:], anew.messages[start:], strict=False))
    before, offered = list(known.wire), Offered(source, now)
    assert known.put_equal(offered, start) == same
    assert not same or known.is_like(offered, start) == (start < count)
    if not same:
        assert all(one is other for one, other in zip(known.wire, before, strict=True))
        return
    known.extend(now[count:])
    assert (known.messages, known.sizes, known.says_all) == (anew.messages, anew.sizes, anew.says_all)
    assert [one.answers for one in known.messages] == [one.answers for one in anew.messages]
    assert all(one is given for one, given in zip(known.given, now, strict=True))
    assert known.fingerprint(len(now)) == anew.fingerprint(len(now))
    assert known.grouping == anew.grouping
    assert known.refresh() is False
    for n, message in enumerate(known.messages):
        assert known.block(n).texts == anew.block(n).texts
        assert known.note(n, message) == anew.note(n, anew.messages[n])


SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0, float("nan")]) | TEXTS
VALUES = st.recursive(
    SCALARS | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.sampled_from("ab1"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_objects_have_one_mark_as_long_as_they_say_the_same(one: Any, other: Any) -> None:
    """A client may change a message in place, and nothing else tells: ``1`` is another value than ``True``."""
    mark = _mark({"content": [one]})
    assert mark is not None
    assert mark == _mark(copy.deepcopy({"content": [one]}))
    assert (mark == _mark({"content": [other]})) == (repr(one) == repr(other))


@pytest.mark.parametrize(
    "value",
    [object(), {1: "x"}, {"a": {2.5: "x"}}, [0] * (MOST_MARKED_VALUES + 1), {1}],
    ids=lambda value: repr(value)[:9],
)
def test_what_is_no_json_or_has_very_many_values_is_told_by_decoding(value: object) -> None:
    assert _mark({"content": [value]}) is None


def test_to_look_whether_a_history_is_as_it_was_copies_none_of_its_texts() -> None:
    """Each pass looks at all messages, those with outputs of megabytes too."""
    blocks = [{"type": "text", "text": "line of a log\n" * 100_000} for _ in range(5)]
    history = history_of([{"role": "user", "content": blocks}])
    tracemalloc.start()
    try:
        assert history.refresh() is False
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()
    blocks[3]["text"] += "one more\n"
    assert history.refresh() is True


def test_the_arguments_of_a_call_are_read_no_more_than_twice_for_all_hashes_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading them takes most of the time that the fingerprints of a record take."""
    calls = [{"id": "call_1", "type": "function", "function": {"name": "run", "arguments": '{"b": 1, "a": [2]}'}}]
    wire = [
        {"role": "assistant", "content": "I run it.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]
    history, read, texts = history_of(wire), json_values.read, list[Any]()
    monkeypatch.setattr(json_values, "read", lambda text, **how: texts.append(text) or read(text, **how))
    history.outline_of({0, 1}, ())
    history.fingerprint_of({0, 1}, ())
    assert texts == ['{"b": 1, "a": [2]}'] * 2


PARTS = (
    st.builds(Text, TEXTS | st.just("[Image removed to save context]"))
    | st.builds(lambda text: ToolCall("call_1", "run", text), TEXTS | st.just(json.dumps({"b": 1, "a": 2})))
    | st.builds(lambda data: Media("image", "image/png", data=data), st.sampled_from(["aGk=", "aG8="]))
)
RESULTS = st.lists(PARTS.filter(lambda part: not isinstance(part, ToolCall)), max_size=3).map(tuple)


@given(st.lists(PARTS | st.builds(lambda content: ToolResult("call_1", content), RESULTS), max_size=4).map(tuple))
def test_what_a_message_says_has_the_same_hashes_whichever_is_asked_for_first(parts: Any) -> None:
    message = Message("assistant", parts)
    first, second = Saying(message), Saying(message)
    told = (first.all, first.beside, first.clearable, first.media)
    assert (second.media, second.clearable, second.beside, second.all) == told[::-1]
