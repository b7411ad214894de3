"""What is remembered of a conversation between calls, and how a summary that is paid for is kept."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

from contextfold import Compactor
from contextfold.calls.memory import FailedAt, KnownConversation, Memory
from contextfold.conversation.fingerprint import digest
from contextfold.limits import Limits
from contextfold.messages import Message
from contextfold.passes.prepared import Prepared
from contextfold.passes.question import Question
from contextfold.policy import Policy


def chat(length: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"message {n} of a conversation about port {8000 + n}"} for n in range(length)
    ]


def known(wire: list[dict[str, Any]]) -> KnownConversation:
    from contextfold import formats

    return Memory(None).take(wire, formats.get("openai-chat"))


def test_a_list_that_grows_at_its_end_is_decoded_once() -> None:
    from contextfold import formats

    memory, wire, source = Memory(None), chat(6), formats.get("openai-chat")
    first = memory.take(wire, source)
    memory.put_back(first)
    second = memory.take([*wire, {"role": "user", "content": "and now?"}], source)
    assert second is first
    assert second.view.wire[:6] == wire
    assert second.history.messages[0] is first.history.messages[0]


def test_a_new_conversation_is_read_no_more_often_the_more_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of those is compared with it, and a message may be megabytes."""
    from contextfold import formats

    memory, source = Memory(None), formats.get("openai-chat")
    for number in range(20):
        memory.put_back(memory.take([{"role": "user", "content": f"task {number}"}, *chat(4)], source))
    read, decode = list[int](), type(source).decode
    monkeypatch.setattr(type(source), "decode", lambda *given: read.append(given[2]) or decode(*given))
    memory.put_back(memory.take([{"role": "user", "content": "another task"}, *chat(4)], source))
    assert len(read) <= 5 + 3


def test_a_second_call_meanwhile_finds_nothing_and_changes_nothing() -> None:
    from contextfold import formats

    memory, wire, source = Memory(None), chat(4), formats.get("openai-chat")
    memory.put_back(memory.take(wire, source))
    first, second = memory.take(wire, source), memory.take(wire, source)
    assert first is not second
    assert first.view.wire == second.view.wire


def test_a_conversation_is_not_taken_out_while_another_one_is_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would hash its messages at once, and one of them put a hash in the place of the next message's."""
    from contextfold import formats

    memory, wire, source = Memory(None), chat(4), formats.get("openai-chat")
    other = known(chat(6))
    other.history.fingerprint(6)
    memory.put_back(memory.take(wire, source))
    taking = threading.Thread(target=memory.take, args=(wire, source))
    is_out = list[bool]()

    def digested(message: Message) -> bytes:
        if not is_out:
            taking.start()
            taking.join(0.2)
            is_out.append(not taking.is_alive())
        return digest(message)

    monkeypatch.setattr("contextfold.conversation.history.digest", digested)
    memory.is_beside(other)
    taking.join()
    assert is_out == [False]


def test_long_conversations_are_remembered_up_to_their_tokens_together_the_newest_in_any_case() -> None:
    from contextfold import formats

    source = formats.get("openai-chat")
    talks = [[{"role": "user", "content": f"talk {number}"}, *chat(40)] for number in range(5)]
    one = sum(known(talks[0]).history.sizes)

    def kept(most_tokens: int) -> list[int]:
        memory = Memory(None, most_tokens=most_tokens)
        first = [memory.take(wire, source) for wire in talks]
        for conversation in first:
            memory.put_back(conversation)
        return [number for number, wire in enumerate(talks) if memory.take(wire, source) is first[number]]

    assert kept(5 * one) == [0, 1, 2, 3, 4]
    assert kept(5 * one - 1) == [1, 2, 3, 4]
    assert kept(2 * one) == [3, 4]
    assert kept(1) == [4]


def test_a_failure_is_remembered_for_its_very_state_alone() -> None:
    conversation = known(chat(4))
    conversation.attempt = conversation.state
    assert conversation.attempt == FailedAt(4, "")
    conversation.append([{"role": "user", "content": "more"}])
    assert conversation.attempt != conversation.state


def test_a_paid_summary_answers_while_nothing_but_new_messages_came() -> None:
    wire = chat(60)
    record = Compactor(window=1_000).compact(wire).compaction
    assert record is not None
    prepared = Prepared(record, None)

    def question(messages: list[dict[str, Any]]) -> Question:
        conversation = known(messages)
        policy = Policy(trigger=("tokens", 900), target=("tokens", 800))
        return Question(
            history=conversation.history,
            record=None,
            view_tokens=sum(conversation.history.sizes),
            view_messages=len(messages),
            overhead={},
            limits=Limits.of(policy, 1_000),
            policy=policy,
        )

    more = question([*wire, {"role": "user", "content": "and now?"}])
    assert prepared.still_fits(more.history)
    assert prepared.answers(more)
    gone = min(record.gone())
    changed = question([*wire[:gone], {**wire[gone], "content": "something else"}, *wire[gone + 1 :]])
    assert not prepared.still_fits(changed.history)
    assert not prepared.answers(changed)
    assert not Prepared(record, "another record").answers(more)


def test_a_call_leaves_nothing_to_pythons_collector() -> None:
    """What refers to itself holds its lists of all messages until the collector comes: memory grew, and turns took
    longer.
    """
    compactor, wire = Compactor(window=2_000), chat(40)
    compactor.compact(wire)
    gc.collect()
    gc.disable()
    try:
        for more in (2, 4):
            compactor.compact([*wire, *chat(more)])
        assert gc.collect() == 0
    finally:
        gc.enable()
