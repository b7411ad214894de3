"""Instructions at the beginning of a list stand in every view, so what they say makes no other conversation of it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from emulator import ProviderServer
from tests.building import conversation

from contextfold import Compactor, Policy, formats
from contextfold.calls.memory import Memory
from contextfold.conversation.fingerprint import digest, fingerprint
from contextfold.errors import InputError
from contextfold.integrations import openai as wrapped
from contextfold.messages import Message, Text
from effort import crossed

SUMMARY = "The agent reads one module after the other to find out why invoices are late."
WINDOW = 6_000
HISTORY = formats.decode(conversation(60), formats.get("openai-chat"))
FORMATS = ["openai-chat", "openai-responses", "langchain", "haystack", "pydantic-ai"]


class Clerk:
    """A model for summaries that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, prompt: str) -> str:
        self.asked += 1
        return SUMMARY


def at(time: str) -> Message:
    return Message("system", (Text(f"You repair services. It is {time}."),))


def walk(
    name: str, subject: Compactor, time: Callable[[int], str], read: Callable[[list[Any]], list[Any]] = list
) -> list[Any]:
    """A view at each turn of a conversation whose instructions say what time it is."""
    source, known, record, views = formats.get(name), list[Any](), None, list[Any]()
    for number, message in enumerate(HISTORY[1:]):
        known = read([*known, *source.encode([message])])
        if message.role != "assistant":
            result = subject.compact([*source.encode([at(time(number))]), *known], record, format=name)
            record = result.compaction
            for thread in threading.enumerate():
                if thread.name == "contextfold-background":
                    thread.join(10)
            views.append(result.messages)
            assert time(number) in words(name, result.messages[0])
    return views


def words(name: str, *wire: Any) -> str:
    return "\n".join(message.text for message in formats.decode(wire, formats.get(name)))


def later(number: int) -> str:
    return f"{number // 60 + 8:02}:{number % 60:02}"


def noon(number: int) -> str:
    return "12:00"


@crossed(name=FORMATS, read=(list, copy.deepcopy))
def test_instructions_with_the_time_of_day_cost_no_summary(name: str, read: Callable[[list[Any]], list[Any]]) -> None:
    """Each turn paid for a summary, with new words, so that the provider had nothing of the view in its cache."""
    pytest.importorskip({"haystack": "haystack", "pydantic-ai": "pydantic_ai"}.get(name, "langchain_core"))
    often, once = Clerk(), Clerk()
    views = walk(name, Compactor(window=WINDOW, summarizer=often), later, read)
    others = walk(name, Compactor(window=WINDOW, summarizer=once), noon, read)
    assert often.asked == once.asked > 2
    assert [words(name, *view[1:]) for view in views] == [words(name, *view[1:]) for view in others]


def test_a_summary_that_is_prepared_holds_under_other_instructions() -> None:
    clerk, told = Clerk(), list[str]()
    policy = Policy(background=True)
    subject = Compactor(policy=policy, window=WINDOW, summarizer=clerk, on_event=lambda e: told.append(e.name))
    walk("openai-chat", subject, later)
    assert "summary_adopted" in told
    assert "compaction_set_aside" not in told


def test_one_instruction_more_makes_another_conversation_of_it() -> None:
    """A record speaks of messages by their numbers."""
    wire = conversation(60)
    subject = Compactor(window=WINDOW)
    record = subject.compact(wire).compaction
    again = subject.compact([wire[0], {"role": "system", "content": "Be brief."}, *wire[1:]], record)
    assert "compaction_set_aside" in [event.name for event in again.events]


def test_messages_that_share_nothing_but_instructions_are_two_conversations() -> None:
    clerk = Clerk()
    subject = Compactor(window=WINDOW, summarizer=clerk)
    first, second = conversation(60), conversation(61)
    second[1] = {"role": "user", "content": "Find out why nobody is paid. Never touch the table `wages`."}
    for message in second[2:]:
        message["content"] = message["content"].replace("value", "wage")
    record = subject.compact(first).compaction
    result = subject.compact([first[0], *second[1:]], record)
    assert "compaction_set_aside" in [event.name for event in result.events]
    assert clerk.asked == 2
    assert "wages" in words("openai-chat", *result.messages)


def test_agents_with_one_question_and_instructions_of_their_own_are_each_read_once() -> None:
    """A second agent with the same object as its question drove the first out of the memory, with the summary that was
    paid for it: 74 summaries instead of 16 for three agents.
    """
    memory, source = Memory(None), formats.get("openai-chat")
    question, *talk = source.encode(HISTORY[1:9])
    talks = {who: [question, *copy.deepcopy(talk)] for who in ("planner", "critic")}
    taken: dict[str, Any] = {}
    for length in range(3, len(talk)):
        for who, said in talks.items():
            known, turn = taken.get(who), f"{who}'s turn {length}"
            taken[who] = memory.take([*source.encode([at(turn)]), *said[:length]], source)
            assert known in (None, taken[who])
            assert turn in words("openai-chat", taken[who].view.wire[0])
            memory.put_back(taken[who])


def test_a_record_from_before_holds_though_what_the_instructions_say_counts_in_it() -> None:
    """After an update each such conversation, and each session in a store, paid for its summary a second time."""
    wire = conversation(60)
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    whole = fingerprint([digest(message) for message in HISTORY[: record.covers]])
    assert whole != record.fingerprint
    earlier = record.model_copy(update={"fingerprint": whole})
    again = Compactor(window=WINDOW).compact(wire, earlier)
    assert again.compaction == earlier
    assert not again.changed


def test_an_object_whose_role_cannot_be_asked_for_is_said_to_be_no_message() -> None:
    """What its own code raised came out of ``compact``."""

    class Lazy:
        @property
        def role(self) -> str:
            raise RuntimeError("it is not loaded")

    for wire in ([Lazy()], [{"role": "system", "content": "Be brief."}, Lazy()]):
        with pytest.raises(InputError, match="is a Lazy"):
            Compactor(window=WINDOW).compact(wire)


def test_a_wrapped_client_pays_once_where_its_system_message_has_the_time() -> None:
    openai = pytest.importorskip("openai")

    def asked(time: Callable[[int], str]) -> int:
        clerk = Clerk()
        with ProviderServer(default_window=WINDOW) as provider:
            client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="key-of-a-test", max_retries=0)
            subject = Compactor(window=WINDOW, summarizer=clerk)
            create = wrapped.with_compaction(client.chat.completions.create, subject)
            history: Sequence[Any] = conversation(60)
            for number in range(2, len(history) + 1, 2):
                system = {"role": "system", "content": f"You repair services. It is {time(number)}."}
                create(model="model-of-a-test", messages=[system, *history[1:number]])
                assert time(number) in provider.requests[-1].text
            client.close()
        return clerk.asked

    assert asked(later) == asked(noon) > 2
