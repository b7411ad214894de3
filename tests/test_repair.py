"""Repair: what a provider would refuse is put right, nothing is lost, and what is right stays untouched (R5, L2)."""

from __future__ import annotations

from hypothesis import given

from building import calls, result, results, said, user
from contextfold.groups import group
from contextfold.messages import Message, Text, ToolResult
from contextfold.repair import is_clean, repair
from test_groups import _MESSAGES


def mended(messages: list[Message]) -> list[Message]:
    return [place.message for place in repair(messages)]


def test_what_is_right_stays_the_same_objects() -> None:
    messages = [user(), calls("a", "b"), result("a"), result("b"), said()]
    assert all(new is old for new, old in zip(mended(messages), messages, strict=True))


def test_a_result_behind_a_human_message_moves_up_to_its_call() -> None:
    messages = [calls("a", "b"), result("a"), user("wait"), result("b"), said()]
    assert [place.position for place in repair(messages)] == [0, 1, 3, 2, 4]


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
        before = messages[place.position]
        said_before = [part.text for part in before.parts if isinstance(part, Text | ToolResult)]
        said_after = "\n".join(part.text for part in place.message.parts if isinstance(part, Text | ToolResult))
        shown = [text for text in said_before if text not in said_after]
        assert all(any(text in str(other.message) for other in old) for text in shown)


@given(_MESSAGES)
def test_a_list_that_is_called_clean_needs_no_mending(messages: list[Message]) -> None:
    if is_clean(messages, set()):
        assert all(new is old for new, old in zip(mended(messages), messages, strict=True))


def test_a_call_that_was_never_answered_gets_a_result_that_says_so() -> None:
    messages = [calls("a", "b"), result("b"), said()]
    assert [place.position for place in repair(messages)] == [0, 1, None, 2]
    assert "never answered" in mended(messages)[2].tool_results[0].text


def test_a_pending_call_is_left_to_wait() -> None:
    messages = [user(), calls("a")]
    assert mended(messages) == messages
