"""Groups: what stands or falls together, for every way in which a history can be shaped or broken."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import calls, result, results, said, system, thought, user
from contextfold import formats
from contextfold.conversation.groups import MOST_ROWS, Grouping, Walk, group, told_of
from contextfold.messages import Message, Opaque, Text, ToolCall, ToolResult


def members(grouping: Grouping) -> list[tuple[int, ...]]:
    return [found.indices for found in grouping.groups]


def kinds(grouping: Grouping) -> list[str]:
    return [fault.kind for fault in grouping.faults]


def test_parallel_calls_and_their_results_are_one_group() -> None:
    found = group([user(), calls("a", "b"), result("a"), result("b"), said()])
    assert members(found) == [(0,), (1, 2, 3), (4,)]
    assert found.faults == ()


def test_several_results_in_one_user_message_belong_to_their_call() -> None:
    assert members(group([user(), calls("a", "b"), results("a", "b")])) == [(0,), (1, 2)]


def test_a_human_message_between_parallel_results_is_no_part_of_their_group_but_no_cut_either() -> None:
    found = group([calls("a", "b"), result("a"), user("wait"), result("b"), said()])
    assert members(found) == [(0, 1, 3), (2,), (4,)]
    assert found.cuts() == {0, 4, 5}
    assert kinds(found) == ["result_out_of_place"]


def test_a_result_far_from_its_call_still_belongs_to_it() -> None:
    found = group([calls("a"), said(), user(), calls("b"), result("b"), result("a")])
    assert (0, 5) in members(found)
    assert not found.cuts().intersection(range(1, 6))


def test_rows_of_one_message_id_are_one_turn() -> None:
    found = group([calls("a", id="m1"), result("a"), calls("b", id="m1"), result("b"), said(id="m2")])
    assert members(found) == [(0, 1, 2, 3), (4,)]
    assert found.faults == ()


def with_words(message: Message) -> Message:
    return replace(message, parts=(Text("I look."), *message.parts))


@pytest.mark.parametrize(
    "turn",
    [
        lambda n: [said(id="msg_1"), user()],
        lambda n: [with_words(calls(f"c{n}", id="msg_1")), result(f"c{n}")],
        lambda n: [calls(f"c{n}", id="msg_1"), result(f"c{n}")],
    ],
    ids=["answers", "words and calls", "calls alone"],
)
def test_answers_that_all_have_one_id_are_no_single_turn(turn: Callable[[int], list[Message]]) -> None:
    """Some servers, and doubles of them, give each answer the same id: such a conversation could not be compacted."""
    found = group([user(), *(message for n in range(100) for message in turn(n))])
    assert max(len(one.indices) for one in found.groups) <= 2 * MOST_ROWS
    assert len(found.groups) > 5


def test_a_turn_of_any_number_of_rows_before_its_results_is_one() -> None:
    """The view had the last calls of such a turn alone."""
    ids = [f"c{n}" for n in range(2 * MOST_ROWS)]
    rows = [replace(thought(), id="msg_1", split=False), *(calls(one, id="msg_1") for one in ids)]
    found = group([user(), *rows, *map(result, ids)])
    assert members(found) == [(0,), tuple(range(1, 1 + len(rows) + len(ids)))]


def test_an_id_that_all_items_of_the_responses_api_have_makes_them_no_turn() -> None:
    call = {"type": "function_call", "id": "__fake_id__", "name": "look", "arguments": "{}"}
    answer = {"type": "message", "id": "__fake_id__", "role": "assistant", "content": "Dry."}
    output = {"type": "function_call_output", "output": "dry"}
    loop = [[{**call, "call_id": name}, {**output, "call_id": name}, answer] for name in ("a", "b")]
    items = [{"role": "user", "content": "Look."}, *loop[0], {"role": "user", "content": "Again."}, *loop[1]]
    found = group(formats.decode(items, formats.get("openai-responses")))
    assert [one.indices for one in found.groups] == [(0,), (1, 2), (3,), (4,), (5, 6), (7,)]


def test_reasoning_stays_with_the_calls_that_follow_it() -> None:
    found = group([thought(), calls("a", split=True), calls("b", split=True), result("a"), result("b"), thought()])
    assert members(found) == [(0, 1, 2, 3, 4), (5,)]


def _ran(label: str, *, split: bool = False, **source: str) -> Message:
    return Message("assistant", (Opaque(label, source={"type": label, **source}),), split=split)


def _called(call_id: str, **caller: str) -> Message:
    return Message(
        "assistant", (ToolCall(call_id, "run", "{}", source={"caller": caller}),), split="caller_id" in caller
    )


def test_what_a_provider_runs_is_one_with_the_calls_that_it_makes_and_its_result() -> None:
    code = [
        _ran("server_tool_use", id="s"),
        _called("a", tool_id="s"),
        results("a"),
        _called("b", tool_id="s"),
        results("b"),
        _ran("code_execution_tool_result", tool_use_id="s"),
    ]
    assert members(group([user(), *code, user()])) == [(0,), (1, 2, 3, 4, 5, 6), (7,)]
    program = [
        _ran("program", call_id="p", split=True),
        _called("a", caller_id="p"),
        result("a"),
        _ran("program_output", call_id="p", split=True),
    ]
    assert members(group([*program, user(), *program])) == [(0, 1, 2, 3), (4,), (5, 6, 7, 8)]
    approved = [_ran("mcp_approval_request", id="r"), user(), _ran("mcp_approval_response", approval_request_id="r")]
    assert members(group([*approved, said()])) == [(0, 2), (1,), (3,)]
    assert not group([*approved, said()]).cuts() & {1, 2}


def test_a_run_without_its_result_is_pending_and_one_with_a_used_id_is_another() -> None:
    begun = [_ran("server_tool_use", id="s"), _called("a", tool_id="s"), results("a")]
    assert [found.pending for found in group([user(), *begun]).groups] == [False, True]
    found = group([*begun, _ran("x_tool_result", tool_use_id="s"), user(), *begun])
    assert members(found) == [(0, 1, 2, 3), (4,), (5, 6, 7)]
    assert members(group([_ran("x_tool_result", tool_use_id="s"), _called("a", tool_id="s")])) == [(0,), (1,)]


def test_an_async_call_waits_for_its_result_whatever_is_said_and_nothing_between_is_held() -> None:
    source = {"type": "function_call", "async": True}
    call = Message("assistant", (ToolCall("slow", "run", "{}", source=source),), split=True)
    begun = [user(), call, user(), calls("a"), result("a"), said()]
    found = group(begun)
    assert found.faults == ()
    assert [one.pending for one in found.groups] == [False, True, False, False, False]
    ended = group([*begun, result("slow")])
    assert ended.faults == ()
    assert ended.answers == {(4, 0): 3, (6, 0): 1}
    assert ended.groups[1].pending, "the model has not read the result"
    assert 5 in ended.cuts()
    assert not any(one.pending for one in group([*begun, result("slow"), said()]).groups)


def test_a_call_without_result_is_pending_until_the_assistant_speaks_again() -> None:
    waiting = group([user(), calls("a", "b"), result("a"), user("hurry")])
    assert [found.pending for found in waiting.groups] == [False, True, False]
    assert [str(fault) for fault in waiting.faults] == ["message 1: dangling call 'b'"]
    forgotten = group([user(), calls("a"), user("never mind"), said()])
    assert not any(found.pending for found in forgotten.groups)
    assert kinds(forgotten) == ["dangling_call"]


def test_a_reused_id_matches_the_nearest_call_that_still_waits() -> None:
    found = group([calls("x"), result("x"), calls("x"), result("x")])
    assert members(found) == [(0, 1), (2, 3)]
    assert kinds(found) == ["duplicate_call_id"]


def test_a_result_without_call_is_an_orphan_and_so_is_a_second_answer() -> None:
    assert kinds(group([user(), result("ghost")])) == ["orphan_result"]
    assert kinds(group([calls("a"), result("a"), result("a")])) == ["orphan_result"]


def test_an_empty_message_and_a_system_message_in_the_middle_are_groups_of_their_own() -> None:
    found = group([user(), Message("assistant", ()), system("new rule"), said()])
    assert members(found) == [(0,), (1,), (2,), (3,)]
    assert kinds(found) == ["empty_message"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_history_of_no_or_one_message_can_be_cut_at_its_ends(count: int) -> None:
    assert group([user()] * count).cuts() == set(range(count + 1))


_MESSAGES = st.lists(
    st.one_of(
        st.builds(user),
        st.builds(said),
        st.builds(lambda ids: calls(*ids), st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3)),
        st.builds(lambda ids: results(*ids), st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3)),
        st.builds(result, st.sampled_from("abcdef")),
    ),
    max_size=40,
)


@given(_MESSAGES)
def test_groups_are_a_partition_and_hold_every_answer_with_its_call(messages: list[Message]) -> None:
    found = group(messages)
    assert sorted(index for one in found.groups for index in one.indices) == list(range(len(messages)))
    for (index, number), caller in found.answers.items():
        answer = messages[index].parts[number]
        assert isinstance(answer, ToolResult)
        assert any(call.id == answer.call_id for call in messages[caller].tool_calls)
        assert caller < index
        assert found.group_of[caller] == found.group_of[index]


@given(_MESSAGES)
def test_a_position_is_a_cut_exactly_when_no_group_reaches_over_it(messages: list[Message]) -> None:
    found = group(messages)
    for position in range(len(messages) + 1):
        reaching = any(one.first < position <= one.last for one in found.groups)
        assert (position in found.cuts()) is not reaching


@given(_MESSAGES)
def test_a_walk_that_goes_on_finds_what_one_from_the_beginning_finds(messages: list[Message]) -> None:
    known: list[Message] = []
    walk = Walk(known)
    for message in messages:
        known.append(message)
        assert walk.result() == group(known)


def test_a_long_history_is_grouped_in_one_pass() -> None:
    order = random.Random(7)
    messages: list[Message] = []
    for step in range(20_000):
        messages += [calls(f"c{step}"), result(f"c{step}")] if order.random() < 0.7 else [user()]
    assert len(group(messages).groups) == 20_000


def test_faults_of_one_kind_in_one_message_are_told_by_their_number() -> None:
    """Sixteen calls without results were sixteen ids, and what else was wrong stood nowhere."""
    found = group([user(), calls(*(f"call_{n}" for n in range(16))), user("stop"), result("lost"), said()])
    line = told_of(found.faults, ["a line was put in"])
    assert line == "message 1: 16 dangling calls; message 3: orphan result 'lost'; a line was put in"
    many = group([message for n in range(9) for message in (user(), calls(f"c{n}"))] + [user(), said()])
    assert told_of(many.faults, ()).count(";") == 4
    assert told_of(many.faults, ()).endswith(f" and {len(many.faults) - 5} more")


def calls_of_one_turn(count: int, form: str) -> list[Message]:
    """A turn with so many calls, of which every second one is answered: ``form`` says in how many messages."""
    calls = [ToolCall(f"c{n}", "look", "{}") for n in range(count)]
    if form == "one message":
        turn = [Message("assistant", tuple(calls))]
    else:
        turn = [Message("assistant", (call,), id="m", split=form == "entries") for call in calls]
    return [user("Go on."), *turn, *(Message("tool", (ToolResult(f"c{n}", ()),)) for n in range(0, count, 2))]


@pytest.mark.parametrize("form", ["one message", "rows", "entries"])
def test_time_to_group_a_turn_grows_with_its_calls_and_not_with_their_square(form: str) -> None:
    """What stands between a call and its result was read again for each: 8,000 calls of one turn took 15 seconds."""

    def seconds(count: int) -> float:
        messages = calls_of_one_turn(count, form)
        began = time.process_time()
        group(messages)
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (200, 1_600))
    assert many < 20 * few


def results_that_name_a_function(count: int) -> list[Message]:
    """Results without ids, and those of another kind than their calls, which share one."""
    named = [ToolCall(f"c{n}", "look", "{}") for n in range(count)]
    alike = [ToolCall("x", "draw", "", custom=True) for _ in range(count)]
    answers = [ToolResult("look", (), name="look")] * count + [ToolResult("x", ())] * count
    return [user("Go on."), Message("assistant", (*named, *alike)), *(Message("tool", (one,)) for one in answers)]


def test_time_to_find_the_call_of_a_result_does_not_grow_with_the_calls_beside_it() -> None:
    def seconds(count: int) -> float:
        messages = results_that_name_a_function(count)
        began = time.process_time()
        grouping = group(messages)
        assert not grouping.faults or {fault.kind for fault in grouping.faults} == {"duplicate_call_id"}
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (400, 6_400))
    assert many < 40 * few
