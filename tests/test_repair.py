"""Repair: what a provider would refuse is put right, nothing is lost, and what is right stays untouched."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from emulator import ProviderServer
from emulator.wires.anthropic_rules import anthropic_problem
from emulator.wires.chat_rules import chat_problem
from emulator.wires.converse_rules import converse_problem
from emulator.wires.gemini_rules import gemini_problem
from emulator.wires.responses_rules import responses_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from building import calls, result, results, said, system, user
from contextfold import CompactionResult, Compactor, formats
from contextfold.conversation.groups import group
from contextfold.conversation.repair import Seen, answer_pending, bare_end, conform, is_clean, repair
from contextfold.conversation.repair.rules import BEGINNING, SILENT
from contextfold.errors import CannotFit
from contextfold.messages import Message, Text, ToolCall, ToolResult
from contextfold.testing import histories
from effort import examples
from test_groups import _MESSAGES

ANTHROPIC = formats.get("anthropic")
REQUEST = formats.get("anthropic-request")


def mended(messages: list[Message]) -> list[Message]:
    return [place.message for place in repair(messages)]


def conformed(messages: list[Message], format: formats.Format = ANTHROPIC) -> list[Message]:
    """As Anthropic wants them."""
    return [place.message for place in conform(repair(messages), format)]


def test_what_is_right_stays_the_same_objects() -> None:
    messages = [user(), calls("a", "b"), result("a"), result("b"), said()]
    assert all(new is old for new, old in zip(mended(messages), messages, strict=True))


def test_a_result_behind_a_human_message_moves_up_to_its_call() -> None:
    messages = [calls("a", "b"), result("a"), user("wait"), result("b"), said()]
    assert [place.position for place in repair(messages)] == [0, 1, 3, 2, 4]


def test_what_stands_for_a_result_is_joined_to_the_words_behind_it_where_roles_alternate() -> None:
    """Also in a view that is not sent at once."""
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    talk = [("user", "hi"), ("assistant", [call]), ("user", "never mind"), ("assistant", "fine"), ("user", "go on")]
    history = [{"role": role, "content": content} for role, content in talk]
    view = Compactor(window=8_000).compact(history, format="anthropic").messages
    assert [message["role"] for message in view] == [role for role, _ in talk]
    assert [block["type"] for block in view[2]["content"]] == ["tool_result", "text"]


_UNANSWERED: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"type": "tool_use", "id": "a", "name": "find", "input": {}, "toolset_name": "browser"}),
    ("openai-responses", {"type": "function_call", "call_id": "a", "name": "find", "arguments": "{}"}),
    ("openai-responses", {"type": "custom_tool_call", "call_id": "a", "name": "find", "input": "x"}),
    ("openai-responses", {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}),
]


@pytest.mark.parametrize(("format", "call"), _UNANSWERED, ids=[str(call["type"]) for _, call in _UNANSWERED])
def test_what_stands_for_a_result_repeats_what_its_provider_wants_repeated(format: str, call: dict[str, Any]) -> None:
    """Anthropic pairs a tool of a toolset by its family, OpenAI a call of a program by its caller."""
    if format == "anthropic":
        history, kept = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}], "toolset_name"
    else:
        call, kept = {**call, "caller": {"type": "program", "caller_id": "p"}}, "caller"
        history = [{"role": "user", "content": "go"}, {"type": "program", "call_id": "p", "code": "x"}, call]
    history = [*history, {"role": "user", "content": "never mind"}]
    view = Compactor(window=8_000).compact(history, format=format).messages
    answer = view[len(history) - 1]
    answer = answer["content"][0] if format == "anthropic" else answer
    assert answer["type"].endswith(("_result", "_output"))
    assert answer[kept] == call[kept]


def test_what_a_call_says_to_its_own_provider_is_not_repeated_to_another() -> None:
    call = {"type": "tool_use", "id": "a", "name": "find", "input": {}, "caller": {"type": "direct"}}
    history = [("user", "go"), ("assistant", [call]), ("assistant", "Hm."), ("user", "never mind")]
    messages = [{"role": role, "content": content} for role, content in history]
    view = Compactor(window=8_000).compact(messages, format="anthropic", to="openai-responses").messages
    assert [item["type"] for item in view if "call_id" in item] == ["function_call", "function_call_output"]
    assert "caller" not in str(view)


def _output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "Room 3 is empty."}


_REFERRED: list[dict[str, Any]] = [{"type": "item_reference", "id": "rs_1"}, {"type": "item_reference", "id": "fc_1"}]


@pytest.mark.parametrize(
    ("items", "stay"),
    [
        pytest.param([*_REFERRED, _output("a")], [True], id="one call"),
        pytest.param([*_REFERRED, {"id": "fc_2"}, _output("a"), _output("b")], [True, True], id="two at once"),
        pytest.param([*_REFERRED, _output("a"), _output("b")], [True, False], id="more results than items"),
        pytest.param([_REFERRED[0], _output("a")], [False], id="reasoning calls nothing"),
        pytest.param([_output("a"), *_REFERRED], [False], id="behind the result"),
    ],
)
def test_the_result_of_a_call_that_an_item_stands_for_stays_a_result(
    items: list[dict[str, Any]], stay: list[bool]
) -> None:
    """It became a user's text behind a call that OpenAI knows, and a call without output is refused."""
    history = [{"role": "user", "content": "Look at room 3."}, *items, {"role": "user", "content": "And then?"}]
    view = Compactor(window=8_000).compact(history, format="openai-responses").messages
    assert [item in view for item in items if "call_id" in item] == stay
    other = Compactor(window=8_000).compact(history, format="openai-responses", to="anthropic").messages
    assert "tool_result" not in str(other)
    assert str(other).count("Room 3 is empty.") == len(stay)


def test_an_item_that_stands_for_a_call_leaves_with_its_result() -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Look at all rooms."}]
    for n in range(40):
        said = {**_output(f"call_{n}"), "output": f"Room {n}. " + "It has chairs. " * 40}
        history += [{"type": "item_reference", "id": f"fc_{n}"}, said]
    view = Compactor(window=4_000).compact(history, format="openai-responses").messages
    kinds = [item["type"] for item in view[2:]]
    assert 0 < len(kinds) < len(history) // 2
    assert kinds == ["item_reference", "function_call_output"] * (len(kinds) // 2)


def test_the_ledger_says_why_a_message_that_no_record_dropped_is_not_in_the_view() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]}
    empty = {"role": "assistant", "content": []}
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}, result, dict(result), empty]
    out = Compactor(window=8_000).compact([*history, {"role": "user", "content": "go on"}], format="anthropic")
    dropped = {entry.index: entry.reason for entry in out.ledger if entry.fate == "dropped"}
    assert dropped == {3: "a result that was there already, word for word", 4: "it says nothing"}


def test_a_message_with_results_of_several_turns_is_taken_apart() -> None:
    """Anthropic: each turn's results open the message behind it."""
    late = Message("user", (*results("c", "a", "b").parts, Text("done?")))
    messages = [user(), calls("a", "b"), said(), user(), calls("c"), late]
    placed = repair(messages)
    assert [place.position for place in placed] == [0, 1, None, 2, 3, 4, 5]
    assert [answer.call_id for answer in placed[2].message.tool_results] == ["a", "b"]
    assert placed[-1].message.parts == (late.parts[0], late.parts[3])


@pytest.mark.parametrize("format", ["anthropic", "gemini", "bedrock-converse"])
@pytest.mark.parametrize("between", [[user("Never mind."), said("Fine.")], [user("Still there?")], [system()]])
def test_what_the_user_says_beside_a_late_result_stays_where_it_was_said(format: str, between: list[Message]) -> None:
    """It was moved up to the call with the result: the newest words were none, and the assistant's came last."""
    late = Message("user", (Text("By the way:"), *results("a", "b").parts, Text("What now?")))
    told = [user("Look."), calls("a", "b"), *between, late, said("Dry."), user("And there?")]
    wire = [one for message in told for one in formats.get(format).encode([message])]
    compactor, views = Compactor(window=8_000), list[list[Any]]()
    for stop in (len(wire) - 3, len(wire) - 2, len(wire)):
        out = compactor.compact(wire[:stop], format=format)
        assert out.messages == Compactor(window=8_000).compact(wire[:stop], format=format).messages
        views.append(out.messages)
    assert views[2][: len(views[1])] == views[1]
    read = formats.decode(views[1], formats.get(format))
    assert read[-1].role == "user"
    parts = [part for message in read[1:] for part in message.parts]
    assert [type(part) for part in parts[:4]] == [ToolCall, ToolCall, ToolResult, ToolResult]
    assert [part.text for part in parts[-2:] if isinstance(part, Text)] == ["By the way:", "What now?"]
    assert any(entry.reason.startswith("its results stand behind their calls") for entry in out.ledger)


@pytest.mark.parametrize("role", ["function", "tool"])
def test_words_that_are_left_of_a_content_of_geminis_functions_are_the_users(role: str) -> None:
    call = {"functionCall": {"id": "c", "name": "look", "args": {}}}
    answer = {"functionResponse": {"id": "c", "name": "look", "response": {"output": "dry"}}}
    talk = [
        ("user", {"text": "Look."}),
        ("model", call),
        ("user", {"text": "Never mind."}),
        ("model", {"text": "Fine."}),
    ]
    wire = [{"role": speaker, "parts": [part]} for speaker, part in talk]
    late, stray = [answer, {"text": "And now?"}], [{"functionResponse": {"id": "x", "name": "look", "response": {}}}]
    for parts in (late, stray, [*stray, {"text": "And now?"}]):
        view = Compactor(window=8_000).compact([*wire, {"role": role, "parts": parts}], format="gemini").messages
        assert view[-1]["role"] == "user"
        assert all("text" in part for part in view[-1]["parts"])


def test_an_orphan_becomes_text_of_the_user_with_all_it_said() -> None:
    (only,) = mended([result("ghost", "the answer is 42")])
    assert only.role == "user"
    assert "the answer is 42" in only.text
    assert "ghost" in only.text


def test_in_a_message_with_several_results_only_the_orphan_becomes_text() -> None:
    answer = mended([calls("a"), results("a", "ghost")])[1]
    assert [type(part) for part in answer.parts] == [ToolResult, Text, Text]


@given(_MESSAGES)
def test_no_mended_list_has_an_orphan_or_a_result_before_its_call(messages: list[Message]) -> None:
    found = group(mended(messages))
    assert not {"orphan_result", "dangling_call"} & {fault.kind for fault in found.faults}
    assert all(caller < index for (index, _), caller in found.answers.items())


@given(_MESSAGES)
def test_mending_loses_no_message_and_no_word(messages: list[Message]) -> None:
    placed = repair(messages)
    old = [place for place in placed if place.position is not None]
    repeated = set(range(len(messages))) - {place.position for place in old}
    for index in repeated:
        answers = [part.text for part in messages[index].parts if isinstance(part, ToolResult)]
        assert all(any(answer in str(place.message) for place in old) for answer in answers)
    assert len({place.position for place in old}) == len(old)
    for place in old:
        assert place.position is not None
        before = messages[place.position]
        said_before = [part.text for part in before.parts if isinstance(part, Text | ToolResult)]
        said_after = "\n".join(part.text for part in place.message.parts if isinstance(part, Text | ToolResult))
        shown = [text for text in said_before if text not in said_after]
        assert all(any(text in str(other.message) for other in old) for text in shown)


@given(_MESSAGES)
def test_a_list_that_is_called_clean_needs_no_mending(messages: list[Message]) -> None:
    if is_clean(messages, Seen(ANTHROPIC)):
        assert all(new is old for new, old in zip(conformed(messages), messages, strict=True))


def items(*calls_and_results: str) -> list[dict[str, Any]]:
    """Items of Responses: ``a`` is a call, ``a!`` its result, anything longer an answer in words."""
    made: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    for word in calls_and_results:
        if len(word) == 1:
            made.append({"type": "function_call", "call_id": word, "name": "f", "arguments": "{}"})
        elif word.endswith("!"):
            made.append({"type": "function_call_output", "call_id": word[0], "output": "ok"})
        else:
            text = {"type": "output_text", "text": word, "annotations": []}
            made.append({"type": "message", "role": "assistant", "content": [text]})
    return made


def test_an_item_of_the_assistant_behind_results_begins_the_next_turn() -> None:
    """The placeholder of a call stands where its turn ended, however long the list gets."""
    listed = items("a", "b", "b!", "words", "c", "c!")
    views = [Compactor(window=16_000).compact(listed[:count]).messages for count in (5, 6, 7)]
    assert [entry.get("call_id") for entry in views[-1]] == [None, "a", "b", "a", "b", None, "c", "c"]
    assert views[2][: len(views[0])] == views[0]


def test_two_calls_of_one_id_are_never_open_together() -> None:
    view = Compactor(window=16_000).compact(items("a", "a", "a!", "words", "a", "a!")).messages
    assert [entry["type"] for entry in view[1:5]] == ["function_call", "function_call_output"] * 2
    assert "never answered" in view[2]["output"]
    assert view[4]["output"] == "ok"
    assert responses_problem({"input": view}) is None


def test_a_call_that_was_never_answered_gets_a_result_that_says_so() -> None:
    messages = [calls("a", "b"), result("b"), said()]
    assert [place.position for place in repair(messages)] == [0, None, 1, 2]
    assert "never answered" in mended(messages)[1].tool_results[0].text


@pytest.mark.parametrize("ids", ["zb", "bz", "zab", "azb"])
@pytest.mark.parametrize("answered", [(), (1,), (0,)])
def test_results_that_say_there_is_none_stand_in_the_order_of_the_calls(ids: str, answered: tuple[int, ...]) -> None:
    """Where calls have no ids, Gemini takes results in no other."""
    messages = [calls(*ids), *(result(ids[n]) for n in answered), said()]
    assert [found.call_id for message in mended(messages) for found in message.tool_results] == list(ids)


def test_a_pending_call_is_left_to_wait() -> None:
    messages = [user(), calls("a")]
    assert mended(messages) == messages


def test_a_call_of_a_custom_tool_is_answered_as_one() -> None:
    """A provider looks for the output of its own kind, not for any with the id."""
    call = Message("assistant", (ToolCall("a", "patch", "*** Begin", custom=True),), split=True)
    answer = mended([call, user(), said()])[1]
    assert answer.tool_results[0].custom
    pending = [place.message for place in answer_pending(repair([user(), call]))]
    assert pending[-1].tool_results[0].custom


def test_each_of_two_parallel_calls_with_one_id_gets_an_answer() -> None:
    twice = [user(), calls("a", "a"), result("a")]
    assert [len(place.message.tool_results) for place in answer_pending(repair(twice))] == [0, 0, 1, 1]


def test_a_result_is_marked_as_its_call_is_where_a_provider_looks_for_that() -> None:
    responses = formats.get("openai-responses")
    wire = [
        {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "***"},
        {"type": "function_call_output", "call_id": "a", "output": "patched"},
    ]
    messages = formats.decode(wire, responses)
    assert not is_clean(messages, Seen(responses))
    view = responses.encode([place.message for place in conform(repair(messages), responses)])
    assert view == [wire[0], {**wire[1], "type": "custom_tool_call_output"}]
    assert view[0] is wire[0]


# ---- what only some providers refuse ----


def test_calls_that_share_an_id_get_ids_of_their_own_with_their_results() -> None:
    messages = [user(), calls("a", "a"), result("a", "one"), result("a", "two"), calls("a"), result("a", "three")]
    view = conformed(messages)
    assert [[call.id for call in message.tool_calls] for message in view] == [[], ["a", "a_2"], [], [], ["a_3"], []]
    answers = {answer.call_id: answer.text for message in view for answer in message.tool_results}
    assert answers == {"a": "one", "a_2": "two", "a_3": "three"}


def test_a_name_that_is_given_is_not_given_again() -> None:
    messages = [user(), calls("a"), result("a"), calls("a_2"), result("a_2"), calls("a"), result("a"), calls("a_2")]
    ids = [call.id for message in conformed(messages) for call in message.tool_calls]
    assert ids == ["a", "a_2", "a_3", "a_2_2"]


def test_characters_that_an_id_may_not_have_are_replaced() -> None:
    """Calls of the older function API have no id, and go by the name of the function."""
    view = conformed([user(), calls("function:ls"), result("function:ls")])
    assert view[1].tool_calls[0].id == view[2].tool_results[0].call_id == "function_ls"


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "a:2", "b"]), max_size=12))
def test_names_depend_on_earlier_calls_alone(ids: list[str]) -> None:
    messages = [user(), *(message for call_id in ids for message in (calls(call_id), result(call_id)))]
    view = conformed(messages)
    named = [call.id for message in view for call in message.tool_calls]
    assert len(set(named)) == len(named)
    for end in range(1, len(messages) + 1, 2):
        assert conformed(messages[:end]) == view[:end]


def test_what_says_nothing_is_left_out_or_noted() -> None:
    """The user's silence may be what the assistant answers to; the assistant's is nothing."""
    blank = Message("user", (Text(""), Text(" \n")))
    placed = conform(repair([user(), said(""), blank, said("Yes?")]), ANTHROPIC)
    assert [place.message.text for place in placed] == ["Please go on.", SILENT, "Yes?"]
    assert [place.position for place in placed] == [0, 2, 3]


def test_blank_blocks_are_left_out_and_the_others_stay_the_same_objects() -> None:
    source = {"role": "user", "content": [{"type": "text", "text": "\n"}, {"type": "text", "text": "go"}]}
    message = ANTHROPIC.decode(source)
    view: dict[str, Any] = ANTHROPIC.encode(conformed([message]))[0]
    assert view["content"] == [source["content"][1]]
    assert view["content"][0] is source["content"][1]


def test_a_list_that_begins_with_the_assistant_is_opened_by_a_note() -> None:
    view = conformed([system(), said("Hello."), user()])
    assert [message.role for message in view] == ["system", "user", "assistant", "user"]
    assert view[1].text == BEGINNING


def test_a_list_that_begins_with_the_providers_own_compaction_is_opened_by_it() -> None:
    """It stands for what the user said, and Anthropic's own example goes on so after ``pause_after_compaction``."""
    summed = {"role": "assistant", "content": [{"type": "compaction", "content": "Said hello."}]}
    sent = [summed, {"role": "user", "content": "Go on."}]
    assert Compactor(window=9_000).compact(sent).messages == sent
    assert anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": sent}) is None
    assert is_clean(formats.decode(sent, ANTHROPIC), Seen(ANTHROPIC))
    elsewhere = Compactor(window=9_000).compact(sent, to="gemini").messages
    assert gemini_problem({"contents": elsewhere}) is None


_ADDED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "grep"}}}
_INSTRUCTED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        _ADDED,
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "grep"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grep"}},
        {"type": "image", "source": {"type": "url", "url": "https://grep"}},
        {"type": "of_next_year", "id": "grep"},
    ],
    "bedrock-converse": [
        {"toolAddition": {"tool": {"name": "grep"}}},
        {"guardContent": {"text": {"text": "grep"}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://grep"}}}},
        {"ofNextYear": {"id": "grep"}},
    ],
    "gemini": [
        {"fileData": {"fileUri": "gs://grep", "mimeType": "image/png"}},
        {"executableCode": {"code": "grep", "language": "PYTHON"}},
        {"ofNextYear": {"id": "grep"}},
    ],
    "openai-chat": [_ADDED, {"type": "image_url", "image_url": {"url": "https://grep"}}],
    "openai-responses": [_ADDED, {"type": "input_image", "image_url": "https://grep"}],
}


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(("name", "block"), [(name, block) for name, kinds in _INSTRUCTED.items() for block in kinds])
def test_no_block_of_an_instruction_goes_out_emptied(name: str, block: dict[str, Any], place: int) -> None:
    """Whatever it is and wherever it stands: the block itself, or what it says."""
    native = formats.get(name)
    wire = native.encode([user(), said(), said(), user()])
    instruction = native.decode(native.encode([system()])[0]).source
    key = "parts" if "parts" in instruction else "content"
    view = Compactor(window=9_000).compact([*wire[:place], {**instruction, key: [block]}, *wire[place:]], format=name)
    assert "grep" in json.dumps(view.messages)
    assert "<system>\\n\\n</system>" not in json.dumps(view.messages)


@pytest.mark.parametrize("format", ["anthropic", "anthropic-request"])
def test_what_sets_something_stands_where_the_provider_takes_it_next(format: str) -> None:
    added, brief = {"role": "system", "content": [_ADDED]}, {"role": "system", "content": "Be brief."}
    ask, answer = {"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Done."}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]}
    got = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "a.py"}]}
    blank = {"role": "assistant", "content": " "}
    for sent, wanted in (
        ([ask, added, ask, answer], [ask, ask, added, answer]),
        ([ask, answer, added, ask], [ask, answer, ask, added]),
        ([ask, answer, added, answer, ask], [ask, answer, answer, ask, added]),
        ([ask, call, added, got, answer], [ask, call, got, added, answer]),
        ([ask, added, blank, ask], [ask, ask, added]),
        ([ask, added, added, answer, ask], [ask, added, added, answer, ask]),
        ([ask, added, answer, brief, added, ask], None),
        ([ask, answer, added], [ask, answer, added]),
    ):
        native = formats.get(format)
        placed = conform(repair(formats.decode(sent, native)), native)
        wire = native.encode([place.message for place in placed])
        assert wanted in (None, wire)
        assert sum(added is entry for entry in wire) == sent.count(added)
        moved = [place.position for place in placed if place.account is not None and "sets" in place.account[1]]
        assert bool(moved) == (wanted != sent and got not in sent)  # that result itself was moved
        compactor = Compactor(window=9_000)
        grown = [compactor.compact(sent[:n], format="anthropic").messages for n in range(1, len(sent) + 1)]
        assert format != "anthropic" or grown[-1] == wire
        if sent[-1] is not added:
            assert anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": wire}) is None


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "langchain"])
def test_other_providers_take_what_anthropic_refuses(format: str) -> None:
    """Nothing is renamed, added or left out where it need not be."""
    several = [said("Hi"), calls("a"), result("a"), calls("a"), result("a"), said("")]
    native = formats.get(format)
    wire = native.encode(several)
    messages = formats.decode(wire, native)
    placed = conform(repair(messages), native)
    assert all(place.message is message for place, message in zip(placed, messages, strict=True))


def test_white_space_behind_the_last_words_of_the_assistant_goes_only_when_they_are_sent() -> None:
    placed = repair([user(), said("The answer is \n")])
    assert bare_end(placed, ANTHROPIC)[-1].message.text == "The answer is"
    assert conform(placed, ANTHROPIC)[-1].message is placed[-1].message
    assert bare_end(placed, formats.get("openai-chat")) == placed
    behind = repair([said("The answer is \n"), user("42 \n")])
    assert bare_end(behind, ANTHROPIC) == behind


def test_a_call_that_is_overtaken_by_the_next_step_is_looked_at_closely() -> None:
    """Responses: its late result is right behind other results, but the call may have left the view by then."""
    overtaken = [calls("a", split=True), calls("b", split=True), result("b"), calls("c", split=True), result("c")]
    assert not is_clean([user(), *overtaken, result("a")], Seen(formats.get("openai-responses")))
    parallel = [
        calls("a", split=True),
        said(),
        calls("b", split=True),
        result("b"),
        result("a"),
        calls("c", split=True),
    ]
    assert is_clean([user(), *parallel[:1], *parallel[2:]], Seen(formats.get("openai-responses")))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "a:2", "b"]), max_size=8), st.booleans(), st.integers(0, 9))
def test_what_is_called_clean_may_be_appended_to_what_was_mended(ids: list[str], begun: bool, place: int) -> None:
    """A history that was mended once costs no more than another from then on: what is clean stands as it is."""
    messages = [*([user()] if begun else []), *(one for name in ids for one in (calls(name), result(name)))]
    messages.insert(min(place, len(messages) // 2 * 2), said(""))
    seen = Seen(ANTHROPIC)
    view: list[Message] = []
    for length, message in enumerate(messages, start=1):
        clean = is_clean([message], seen) and not seen.broken
        view = [*view, message] if clean else conformed(messages[:length])
        assert view == conformed(messages[:length])


def test_only_what_is_new_is_looked_at_behind_a_mended_beginning() -> None:
    seen = Seen(ANTHROPIC)
    assert not is_clean([said("Hello."), user(), said(""), calls("a"), result("a")], seen)
    assert not seen.broken
    assert is_clean([said("Yes."), user(), calls("b"), result("b"), said()], seen)


WIRE = {
    "u": {"role": "user", "content": "Go on."},
    "a": {"role": "assistant", "content": "Done."},
    "s": {"role": "system", "content": [{"type": "text", "text": "The task list is stale."}]},
    "d": {"role": "system", "content": [], "output_config": {"effort": "low"}},
    "w": {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        ],
    },
}


@pytest.mark.parametrize("roles", ["usaus", "ussa", "usdsa", "udu", "uada", "uwsa"])
def test_an_instruction_stays_one_where_anthropic_takes_it(roles: str) -> None:
    """Claude Code puts reminders behind results, in the system's role. As the user's words they would lose weight, and
    every prompt cache and signature of thinking behind them would be void.
    """
    wire = [dict(WIRE[role]) for role in roles]
    out = Compactor(window=100_000).compact(wire, format="anthropic-request")
    assert all(new is old for new, old in zip(out.messages, wire, strict=True))


@pytest.mark.parametrize("roles", ["usu", "uas", "uassu", "usdu", "wsu"])
def test_an_instruction_that_anthropic_would_refuse_there_becomes_the_users_words(roles: str) -> None:
    out = Compactor(window=100_000).compact([dict(WIRE[role]) for role in roles], format="anthropic-request")
    assert anthropic_problem({"max_tokens": 9, "messages": out.messages}) is None
    assert r"<system>\nThe task list is stale.\n</system>" in json.dumps(out.messages)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.text("uasdw", max_size=9))
def test_instructions_are_called_clean_only_where_they_stay(roles: str) -> None:
    messages = formats.decode([dict(WIRE[role]) for role in roles], REQUEST)
    seen = Seen(REQUEST)
    view: list[Message] = []
    for length, message in enumerate(messages, start=1):
        clean = is_clean([message], seen) and not seen.broken
        view = [*view, message] if clean else conformed(messages[:length], REQUEST)
        assert view == conformed(messages[:length], REQUEST)


# ---- views, by the rules of the providers ----

PROBLEMS = {
    "anthropic": lambda wire: anthropic_problem({"max_tokens": 9, "messages": wire}),
    "openai-chat": lambda wire: chat_problem({"messages": wire}),
    "openai-responses": lambda wire: responses_problem({"input": wire}),
    "gemini": lambda wire: gemini_problem({"contents": wire}),
    "bedrock-converse": lambda wire: converse_problem({"messages": wire, "toolConfig": {"tools": [{}]}}),
}
BESIDE_THE_MESSAGES = ("anthropic", "gemini", "bedrock-converse")
"""Formats of APIs that take leading instructions beside the messages."""
BLANKS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "user", "content": []},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": [{"type": "text", "text": "\n"}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "I see. \n"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "and?"}]},
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": [], "output_config": {"effort": "low"}},
    ],
    "openai-chat": [
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": None, "reasoning_content": "hm"},
        {"role": "assistant", "content": "Yes.", "tool_calls": []},
        {"role": "system", "content": None},
    ],
    "openai-responses": [
        {"type": "message", "role": "user", "content": None},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "custom_tool_call", "call_id": "call_0", "name": "patch", "input": "***"},
        {"type": "function_call", "call_id": "call_0", "name": "run", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "call_0", "output": "patched"},
    ],
    "gemini": [
        {"role": "user", "parts": []},
        {"role": "model", "parts": []},
        {"role": "user", "parts": [{"text": ""}]},
        {"role": "model", "parts": [{"text": ""}]},
        {"role": "model", "parts": [{"text": "I see. \n"}]},
        {"role": "user", "parts": [{"text": ""}, {"text": "and?"}]},
        {"role": "model", "parts": [{"thought": True, "text": ""}]},
        {"role": "system", "parts": [{"text": "Be brief."}]},
    ],
    "bedrock-converse": [
        {"role": "user", "content": []},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [{"text": " "}]},
        {"role": "assistant", "content": [{"text": "\n"}]},
        {"role": "assistant", "content": [{"text": "I see. \n"}]},
        {"role": "user", "content": [{"text": ""}, {"text": "and?"}]},
        {"role": "user", "content": [{"cachePoint": {"type": "default"}}]},
        {"role": "system", "content": [{"text": "Be brief."}]},
    ],
}


@st.composite
def broken(draw: st.DrawFn, format: str) -> list[dict[str, Any]]:
    """A conversation without its beginning, broken, and with messages in it that only this provider refuses."""
    wire = draw(histories(format, broken=True, max_turns=4, max_units=5, huge_units=60))
    wire = wire[draw(st.integers(0, len(wire))) :]
    for blank in draw(st.lists(st.sampled_from(BLANKS[format]), max_size=3)):
        place = draw(st.integers(0, len(wire)))
        wire = [*wire[:place], dict(blank), *wire[place:]]
    return wire


def without_instructions(format: str, view: list[Any]) -> list[Any]:
    """The view as its API takes it: leading instructions stand beside the messages in some."""
    first = next((n for n, entry in enumerate(view) if entry.get("role") != "system"), len(view))
    return view[first:] if format in BESIDE_THE_MESSAGES else view


@pytest.mark.parametrize("format", BLANKS)
def test_whatever_comes_in_a_provider_accepts_what_is_sent(format: str) -> None:
    """With and without a compaction, at every length of a growing history; and views only grow."""

    @settings(max_examples=examples(20), deadline=None, derandomize=True)
    @given(wire=broken(format), window=st.sampled_from([3_000, 100_000]))
    def check(wire: list[dict[str, Any]], window: int) -> None:
        compactor = Compactor(window=window)
        kept: list[CompactionResult] = []
        for length in range(1, len(wire) + 1):
            previous = kept[-1].compaction if kept else None
            try:
                view: list[Any] = compactor.call(list, wire[:length], previous, format=format, on_result=kept.append)
            except CannotFit:
                continue
            if rest := without_instructions(format, view):
                assert PROBLEMS[format](rest) is None

    check()


@pytest.mark.parametrize("format", BLANKS)
def test_what_is_mended_for_one_provider_stays_so_while_the_conversation_grows(format: str) -> None:
    """A blank message, a repeated id or a missing beginning never changes what was sent before."""

    @settings(max_examples=examples(25), deadline=None, derandomize=True)
    @given(plain=histories(format, max_turns=3, max_units=3, huge_units=9), data=st.data())
    def check(plain: list[dict[str, Any]], data: st.DataObject) -> None:
        blanks = [blank for blank in BLANKS[format] if "call_id" not in blank]
        wire = plain[data.draw(st.integers(0, 1)) :]
        place = data.draw(st.integers(0, len(wire)))
        between = [n for n in range(len(wire) + 1) if not _parts_calls_from_results(format, wire, n)]
        place = min(between, key=lambda n: abs(n - place))
        wire = [*wire[:place], dict(data.draw(st.sampled_from(blanks))), *wire[place:]]
        compactor = Compactor(window=1_000_000)
        views = [compactor.compact(wire[:length], format=format).messages for length in range(len(wire) + 1)]
        for shorter, longer in itertools.pairwise(views):
            assert longer[: len(shorter)] == shorter

    check()


def _parts_calls_from_results(format: str, wire: list[dict[str, Any]], place: int) -> bool:
    """Whether a call before this place has its result behind it."""
    messages = formats.decode(wire, formats.get(format))
    return place not in group(messages).cuts()


def test_an_id_that_is_used_again_is_renamed_the_same_way_in_every_view_of_one_record() -> None:
    """And the ledger says so. A prefix that a pass rewrites takes the caller's own objects back where it can."""
    wire: list[dict[str, Any]] = [{"role": "user", "content": "Look at all files."}]
    for number in range(150):
        wire.append({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "cat", "input": {}}]})
        output = {"type": "tool_result", "tool_use_id": "c", "content": f"file {number}: " + "word " * 60}
        wire.append({"role": "user", "content": [output]})
    compactor = Compactor(window=12_000)
    out = compactor.compact(wire)
    assert out.compaction is not None
    again = Compactor(window=12_000).compact(wire, out.compaction)
    grown = compactor.compact([*wire, {"role": "assistant", "content": "All read."}], out.compaction)
    assert again.messages == out.messages == grown.messages[:-1]
    assert anthropic_problem({"max_tokens": 9, "messages": out.messages}) is None
    reasons = [entry.reason for entry in out.ledger if entry.fate == "kept"]
    assert any("another one" in reason for reason in reasons)
    assert next(event for event in compactor.compact(wire).events if event.name == "history_repaired")


# ---- against a provider, with the official SDKs ----


def test_anthropic_answers_a_history_that_it_would_refuse() -> None:
    """Assistant first, an empty message, an id used twice, a prefilled answer with white space behind it."""
    anthropic = pytest.importorskip("anthropic")
    use: dict[str, Any] = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}],
    }
    answer: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}],
    }
    wire: list[dict[str, Any]] = [
        use,
        answer,
        {"role": "user", "content": []},
        dict(use),
        dict(answer),
        {"role": "assistant", "content": "At "},
    ]
    before = [dict(message) for message in wire]
    with (
        ProviderServer() as server,
        anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0) as client,
    ):

        def send(view: list[Any]) -> Any:
            return client.messages.create(model="m", max_tokens=50, messages=view)

        with pytest.raises(anthropic.BadRequestError):
            send(wire)
        results: list[CompactionResult] = []
        assert Compactor(window=8_000).call(send, wire, on_result=results.append).content
    assert any("assistant speaks first" in event.message for event in results[0].events)
    assert wire == before


def test_responses_answers_a_custom_call_that_was_never_answered() -> None:
    openai = pytest.importorskip("openai")
    wire: list[Any] = [
        {"role": "user", "content": "Mend it."},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "patched"},
        {"role": "user", "content": "Stop. What did you do?"},
        {"role": "assistant", "content": "I mended it."},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin"},
        {"role": "user", "content": "Go on."},
    ]
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:

        def send(view: list[Any]) -> Any:
            return client.responses.create(model="m", input=view)

        with pytest.raises(openai.BadRequestError):
            send(wire)
        assert Compactor(window=8_000).call(send, wire).output_text
        body = server.requests[-1].body["input"]
    answers = [(item["type"], item["call_id"]) for item in body if item.get("type", "").endswith("_output")]
    assert sorted(answers) == [
        ("custom_tool_call_output", "c1"),
        ("custom_tool_call_output", "c2"),
        ("function_call_output", "c1"),
    ]


def test_chat_completions_answers_a_history_with_empty_contents() -> None:
    openai = pytest.importorskip("openai")
    wire: list[Any] = [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "Hello.", "tool_calls": []},
        {"role": "user", "content": "Hello?"},
    ]
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:

        def send(view: list[Any]) -> Any:
            return client.chat.completions.create(model="m", messages=view)

        with pytest.raises(openai.BadRequestError):
            send(wire)
        assert Compactor(window=8_000).call(send, wire, format="openai-chat").choices[0].message.content


@pytest.mark.parametrize("format", ["anthropic", "bedrock-converse"])
@pytest.mark.parametrize("sending", [True, False])
def test_roles_alternate_where_a_pass_leaves_nothing_of_an_answer_that_only_thought(format: str, sending: bool) -> None:
    """An answer that was cut off while it thought: without its thinking, the users' words around it are one message."""

    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"text": text} if format != "anthropic" else {"type": "text", "text": text}]}

    thought: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    if format != "anthropic":
        thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}
    history = [message("user", "task")]
    for n in range(30):
        history += [message("assistant", f"a{n} " + "word " * 60), message("user", f"q{n} " + "more " * 10)]
    history += [{"role": "assistant", "content": [thought]}, message("user", "go on, you were cut off")]
    history += [message("assistant", "now I answer"), message("user", "thanks, next")]
    compactor, sent, results = Compactor(window=2_500), list[list[Any]](), list[CompactionResult]()
    if sending:

        def send(view: list[Any]) -> dict[str, Any]:
            sent.append(view)
            return {"output": None}

        compactor.call(send, history, format=format, on_result=results.append)
    else:
        results.append(compactor.compact(history, format=format))
        sent.append(results[0].messages)
    assert results[0].changed
    roles = [entry["role"] for entry in sent[-1]]
    assert "go on, you were cut off" in json.dumps(sent[-1])
    assert not any(one == following for one, following in itertools.pairwise(roles))


def orphans_behind_a_pending_call(count: int) -> list[Message]:
    pending = Message("assistant", (ToolCall("p", "look", "{}"),))
    return [user(), pending, *(Message("tool", (ToolResult(f"o{n}", (Text(f"x{n}"),)),)) for n in range(count))]


def test_results_without_ids_keep_their_calls_where_these_are_named_for_another_provider() -> None:
    """A conversation of Gemini's, written for Anthropic, ended in a KeyError; for Responses, its results were marked as
    those of custom tools.
    """
    calls = (ToolCall("f 1", "f", "{}"), ToolCall("f 2", "f", "{}"))
    answers = tuple(ToolResult("f", (Text(text),), name="f") for text in "xy")
    placed = repair([user(), Message("assistant", calls), Message("user", answers), user()])
    named = [place.message for place in conform(placed, ANTHROPIC)]
    assert [one.call_id for one in named[2].tool_results] == [one.id for one in named[1].tool_calls] == ["f_1", "f_2"]
    kinds = [place.message for place in conform(placed, formats.get("openai-responses"))]
    assert not any(one.custom for one in kinds[2].tool_results)


def calls_in_one_answer(count: int, *, split: bool = False, every: int = 0) -> list[Message]:
    """Of which one of ``every`` so many has a result; the user speaks behind them."""
    calls = [ToolCall(f"c{n}", "look", "{}") for n in range(count)]
    said = [Message("assistant", (call,), split=True) for call in calls] if split else [Message("assistant", (*calls,))]
    answered = calls[::every] if every else []
    return [user(), *said, *(Message("tool", (ToolResult(call.id, ()),)) for call in answered), user()]


def results_of_many_turns(count: int) -> list[Message]:
    """In one message, behind all of them."""
    asked = [one for n in range(count) for one in (Message("assistant", (ToolCall(f"c{n}", "look", "{}"),)), user())]
    return [user(), *asked, Message("user", tuple(ToolResult(f"c{n}", ()) for n in range(count)))]


@pytest.mark.parametrize(
    "messages_of",
    [
        orphans_behind_a_pending_call,
        calls_in_one_answer,
        partial(calls_in_one_answer, every=2),
        partial(calls_in_one_answer, split=True),
        results_of_many_turns,
    ],
)
def test_time_to_mend_a_list_grows_with_it_and_not_with_its_square(
    messages_of: Callable[[int], list[Message]],
) -> None:
    """Each late result was looked for among all others."""

    def seconds(count: int) -> float:
        messages = messages_of(count)
        began = time.process_time()
        repair(messages)
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (200, 1_600))
    assert many < 20 * few
