"""The laws of formats over real and generated conversations: one to one, identity, and crossing without loss."""

from __future__ import annotations

import copy
import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wire as provider
from contextfold import formats
from contextfold.errors import FormatError
from contextfold.formats.marks import is_marked
from contextfold.messages import Message, Text, ToolCall, ToolResult
from contextfold.testing import histories
from effort import examples
from formats.reading import conversations, decoded, pairing

NAMES = tuple(formats.FORMATS)
SLOW = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


def assert_identity(wire: list[Any], name: str) -> None:
    messages = decoded(wire, name)
    assert len(messages) == len(wire)
    encoded = formats.get(name).encode(messages)
    assert len(encoded) == len(wire)
    assert all(one is other for one, other in zip(encoded, wire, strict=True))


def assert_crosses(wire: list[Any], name: str, target: str) -> list[Any]:
    messages = decoded(wire, name)
    crossed = formats.get(target).encode(messages)
    assert pairing(decoded(crossed, target)) == pairing(messages)
    return crossed


def test_real_conversations_encode_to_the_very_same_objects(transcripts: Path) -> None:
    """What no one changed is handed back untouched, and decoding changes nothing in it."""
    for conversation in conversations(transcripts):
        before = copy.deepcopy(conversation.messages)
        assert_identity(conversation.messages, conversation.format)
        assert conversation.messages == before, conversation.name


@pytest.mark.strict
def test_real_conversations_cross_to_every_format_with_all_calls_and_results(transcripts: Path) -> None:
    """Call ids, results and their pairing survive any change of format, and nothing becomes newly invalid."""
    for conversation in conversations(transcripts):
        for target in NAMES:
            if target == conversation.format:
                continue
            crossed = assert_crosses(conversation.messages, conversation.format, target)
            if "docent" in conversation.name or "tau2" in conversation.name:
                continue  # recorders' dialects of chat, which no provider would take as they are
            before = provider.refusals(conversation.format, provider.read(conversation.format, conversation.messages))
            after = provider.refusals(target, provider.read(target, crossed))
            assert not after - before, (conversation.name, target)


@pytest.mark.strict
def test_real_conversations_are_detected_as_what_they_were_encoded_to(transcripts: Path) -> None:
    for conversation in conversations(transcripts):
        messages = decoded(conversation.messages, conversation.format)
        for target in NAMES:
            crossed = formats.get(target).encode(messages)
            found = formats.detect(crossed).name
            plain = target == "anthropic" and not any(isinstance(entry["content"], list) for entry in crossed)
            assert found == target or plain or found == "openai-chat", (conversation.name, target)


@pytest.mark.strict
def test_conversations_crossing_into_anthropic_alternate(transcripts: Path) -> None:
    """User and assistant take turns where the provider demands it."""
    for conversation in conversations(transcripts):
        if conversation.format != "anthropic":
            crossed = formats.get("anthropic").encode(decoded(conversation.messages, conversation.format))
            roles = [entry["role"] for entry in crossed if entry["role"] != "system"]
            assert all(one != other for one, other in itertools.pairwise(roles)), conversation.name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("broken", [False, True])
def test_generated_conversations_encode_to_the_very_same_objects(name: str, broken: bool) -> None:
    @SLOW
    @given(histories(name, broken=broken, max_turns=3, max_units=4, huge_units=8))
    def check(wire: list[Any]) -> None:
        assert_identity(wire, name)

    check()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_generated_conversations_cross_with_all_calls_and_results(name: str, target: str) -> None:
    @SLOW
    @given(histories(name, max_turns=3, max_units=4, huge_units=8))
    def check(wire: list[Any]) -> None:
        crossed = assert_crosses(wire, name, target)
        calls, results = pairing(decoded(wire, name))
        waiting = set(calls) - set(results)  # formats differ in which calls may still wait for their results
        faults = provider.refusals(target, provider.read(target, crossed))
        assert not [fault for fault in faults if fault[1] not in waiting]

    check()


def assert_rebuilds(wire: list[Any], name: str) -> None:
    rebuilt = [message.with_parts(message.parts) for message in decoded(wire, name) if message.parts]
    sources = [message.source for message in rebuilt]
    assert formats.get(name).encode(rebuilt) == sources


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("the quota", "Error: the quota"),
        ("error 4: the quota", "error 4: the quota"),
        ([], "Error"),
        ([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWs="}}], "Error"),
    ],
)
def test_a_call_that_failed_reads_as_failed_in_every_format(content: Any, said: str, target: str) -> None:
    """By the format's own field, or by the first word where it has none."""
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "run", "input": {}}]}
    failed = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": content}
    crossed = decoded(assert_crosses([called, {"role": "user", "content": [failed]}], "anthropic", target), target)
    (result,) = [result for message in crossed for result in message.tool_results]
    assert result.is_error or result.text.startswith(said)


@pytest.mark.strict
def test_real_conversations_rebuilt_with_the_same_parts_are_equal_to_what_they_were(transcripts: Path) -> None:
    """An edit that changes nothing loses nothing: every key and every block is there, in the same shape."""
    for conversation in conversations(transcripts):
        assert_rebuilds(conversation.messages, conversation.format)


@pytest.mark.parametrize("name", NAMES)
def test_generated_conversations_rebuilt_with_the_same_parts_are_equal_to_what_they_were(name: str) -> None:
    @SLOW
    @given(histories(name, broken=True, max_turns=3, max_units=4, huge_units=8))
    def check(wire: list[Any]) -> None:
        assert_rebuilds(wire, name)

    check()


# ---- arbitrary JSON: never anything but a message or a FormatError ---------------------------------------------------

_WORDS = st.sampled_from(
    ["text", "tool_use", "tool_result", "image", "user", "assistant", "tool", "human", "ai", "function_call", "c1", ""]
)
_KEYS = st.sampled_from(
    [
        *("role", "type", "content", "text", "id", "name", "input", "tool_calls", "tool_call_id", "function"),
        *("arguments", "call_id", "output", "source", "image_url", "url", "data", "kwargs", "args", "summary"),
        *("additional_kwargs", "toolUse", "toolUseId", "toolResult", "json", "reasoningContent", "reasoningText"),
        *("cachePoint", "guardContent", "document", "bytes", "s3Location", "uri"),
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.just(b"x") | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=14,
)


@pytest.mark.parametrize("name", NAMES)
def test_any_json_is_either_decoded_or_refused_with_its_index(name: str) -> None:
    """Bad wire objects end in a FormatError that knows the place, never in another exception."""
    known = formats.get(name)

    @settings(max_examples=examples(400), deadline=None)
    @given(_JSON)
    def check(entry: Any) -> None:
        is_marked(name, entry)
        refused: FormatError | None = None
        try:
            message = known.decode(entry, 7)
        except FormatError as error:
            refused = error
        if refused is not None:
            assert refused.index == 7
            assert "\n" not in str(refused)
            return
        assert known.encode([message])[0] is entry
        for target in formats.FORMATS.values():
            target.encode([message])
        known.encode([message.with_parts(message.parts)])

    check()


@pytest.mark.parametrize("target", ["anthropic", "gemini", "bedrock-converse"])
def test_time_to_cross_grows_with_the_results_in_a_row_and_not_with_their_square(target: str) -> None:
    """Each was joined to a copy of all before it: 4,000 results took Gemini's format 13 seconds."""

    def seconds(count: int) -> float:
        calls = tuple(ToolCall(f"c{n}", "f", "{}") for n in range(count))
        results = (Message("tool", (ToolResult(call.id, (Text("x"),)),)) for call in calls)
        messages = [Message("user", (Text("go"),)), Message("assistant", calls), *results]
        began = time.process_time()
        crossed = formats.get(target).encode(messages)
        assert len(crossed) == 3
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (200, 3_200))
    assert many < 40 * few
