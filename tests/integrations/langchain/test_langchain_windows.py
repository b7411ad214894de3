"""Agents without a checkpointer whose caller gives the newest messages at each turn: what it drops costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages, trim_messages
from langchain_scripted import PLAIN, SUMMARY, ScriptedModel

from contextfold.integrations.known_lists import left_of
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.integrations.langchain.counting import FORMAT
from effort import crossed

TURNS, NEWEST = 36, 40
KEEP: Any = {"trigger": ("tokens", 4_000), "keep": ("messages", 6)}


def middleware(writer: Any) -> CompactionMiddleware:
    return CompactionMiddleware(window=32_000, summarizer=writer, **KEEP)


def drop_in(writer: Any) -> SummarizationMiddleware:
    return SummarizationMiddleware(writer, **KEEP)


class Caller:
    """Has the messages of one person's conversation, and gives an agent the newest ``most`` of them."""

    def __init__(self, agent: Any, person: str, most: int, *, as_dicts: bool = False, calls: bool = True) -> None:
        self.agent, self.person, self.most = agent, person, most
        self.as_dicts, self.calls = as_dicts, calls
        self.history: list[Any] = []

    def turn(self, number: int) -> list[Any]:
        filler = " ".join(PLAIN[(number * 7 + word) % len(PLAIN)] for word in range(600))
        asked = HumanMessage(f"What about room {number}? {filler}")
        call_id = f"call_{self.person}{number:03}xK7b9Tq2w"
        call = {"name": "look", "args": {"room": number}, "id": call_id}
        work = [AIMessage("", tool_calls=[call]), ToolMessage(f"Room {number} is dry.", tool_call_id=call_id)]
        return [asked, *(work if self.calls else [])]

    def ask(self, number: int) -> None:
        new = self.turn(number)
        self.history += convert_to_openai_messages(new) if self.as_dicts else new
        state = self.agent.invoke({"messages": self.newest()})
        answer = state["messages"][-1]
        self.history.append({"role": "assistant", "content": answer.text} if self.as_dicts else answer)

    def newest(self) -> list[Any]:
        if self.as_dicts:
            return self.history[-self.most + self.most % 4 :] if self.most < len(self.history) else self.history
        options: Any = {"token_counter": len, "strategy": "last", "start_on": "human"}
        return trim_messages(self.history, max_tokens=self.most, **options)


def paid(made: Callable[[Any], Any], most: int, **how: Any) -> int:
    """Summaries of a conversation whose model has found out something early, which is told to the end."""
    writer = ScriptedModel(script=lambda messages, number: SUMMARY)
    fact = "The key of ring 2 is held by vault-7311 at 10.4.2.77."
    model = ScriptedModel(script=lambda messages, number: fact if number == 2 else "ok")
    caller = Caller(create_agent(model, middleware=[made(writer)]), "a", most, **how)
    for number in range(TURNS):
        caller.ask(number)
    assert fact in "\n".join(str(message.text) for message in model.sent[-1])
    return len(writer.sent)


@crossed(how=[{}, {"calls": False}, {"as_dicts": True}], made=[middleware, drop_in])
def test_a_caller_that_drops_its_oldest_messages_pays_as_seldom_as_one_that_keeps_all(
    made: Callable[[Any], Any], how: dict[str, Any]
) -> None:
    """Message objects keep their ids; dicts get others at each run, and ids of calls tell which conversation it is."""
    usual = paid(made, 10_000, **how)
    assert usual >= 3
    assert paid(made, NEWEST, **how) <= usual + 1


@pytest.mark.parametrize("how", [{"calls": False, "as_dicts": True}, {"calls": False}, {}], ids=str)
@pytest.mark.parametrize("made", [middleware, drop_in])
def test_what_one_person_was_told_reaches_no_other_who_said_the_same(
    made: Callable[[Any], Any], how: dict[str, Any]
) -> None:
    """Of two conversations through one middleware that differ in one early answer, each goes on with its own."""
    facts = {person: f"The key of ring 2 is held by vault-{person}." for person in ("north", "south")}
    callers, models = {}, {}
    shared = made(ScriptedModel(script=lambda messages, number: SUMMARY))
    for person, fact in facts.items():
        models[person] = ScriptedModel(script=lambda messages, number, fact=fact: fact if number == 2 else "ok")
        callers[person] = Caller(create_agent(models[person], middleware=[shared]), person, NEWEST, **how)
    for number in range(TURNS):
        for caller in callers.values():
            caller.ask(number)
    for person, other in (("north", "south"), ("south", "north")):
        assert not any(f"vault-{other}" in str(message.text) for sent in models[person].sent for message in sent)


@pytest.mark.parametrize("dropped", [0, 120], ids=["another", "drops its oldest messages"])
def test_conversations_that_end_in_the_same_words_are_told_apart_without_reading_them(
    dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of the model waited while all known conversations whose users had said "Continue." were read."""

    def of(person: str) -> list[Any]:
        caller = Caller(None, person, 0)
        turns = [[*caller.turn(number), AIMessage(f"Room {number} is {person}'s.")] for number in range(40)]
        return [*(message for turn in turns for message in turn), HumanMessage("Continue.")]

    known = [(of(f"p{number}"), number) for number in range(32)]
    asked = known[7][0][dropped:] if dropped else of("new")[4:]
    decode, read = type(FORMAT).decode, list[Any]()
    monkeypatch.setattr(type(FORMAT), "decode", lambda *given: read.append(given) or decode(*given))
    found = left_of(known, asked, FORMAT)
    assert (found and found[0]) == (7 if dropped else None)
    assert len(read) < 20 * len(known)
