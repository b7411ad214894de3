"""Recall in an agent with ``CompactionMiddleware``: in a real run, over checkpoints, with tools in between."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_scripted import ScriptedModel, calling, read_file, talk
from langgraph.checkpoint.memory import InMemorySaver

from contextfold import Policy
from contextfold.integrations.langchain import CompactionMiddleware

WINDOW = 6_000
FACT = "The gateway listens on port 8443 behind the old balancer."
QUESTION = "Which port does the gateway listen on?"
ON = Policy(evidence=False, recall=True)


def told() -> list[BaseMessage]:
    """A talk in which the fact was said long ago."""
    messages = talk(30)
    messages[7] = AIMessage(f"{FACT}\n{messages[7].content}", id=messages[7].id)
    return messages


def script(messages: list[BaseMessage], number: int) -> AIMessage:
    """An assistant that reads two files before it answers a question."""
    return calling(f"src/module_{number}.py", f"call_{number}") if number % 3 else AIMessage(f"Answer {number}.")


def config_of(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 100}


class Run:
    """A thread that holds a talk already. ``lasting``: one middleware serves it all; else each question is asked by
    another process, so to say, by a middleware that knows what the checkpoint has.
    """

    def __init__(
        self,
        color: str = "sync",
        policy: Policy = ON,
        messages: Sequence[BaseMessage] | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        self.color = color
        self.saver = InMemorySaver()
        self.model = ScriptedModel(script=script)
        self.events: list[Any] = []
        self._lasting = lasting
        self._policy = policy
        self.restart()
        self.agent.update_state(config_of(), {"messages": list(messages or told())}, as_node="model")

    def restart(self) -> None:
        self.middleware = CompactionMiddleware(window=WINDOW, policy=self._policy, on_event=self.events.append)
        options: Any = {"checkpointer": self.saver, "system_prompt": "Be exact."}
        self.agent: Any = create_agent(self.model, [read_file], middleware=[self.middleware], **options)

    def ask(self, question: str) -> list[list[Any]]:
        """The requests that the model got for it, as texts."""
        if not self._lasting:
            self.restart()
        before = len(self.model.sent)
        asked = {"messages": [HumanMessage(question)]}
        if self.color == "async":
            anyio.run(lambda: self.agent.ainvoke(asked, config_of()))
        else:
            self.agent.invoke(asked, config_of())
        return [[message.content for message in sent] for sent in self.model.sent[before:]]

    def record(self) -> Any:
        return self.middleware.record(self.agent.get_state(config_of()).values)

    def came_back(self) -> list[Any]:
        return [event for event in self.events if event.name == "recalled"]


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_is_asked_about_stands_behind_the_question_in_every_request_of_the_run(color: str, lasting: bool) -> None:
    run = Run(color, lasting=lasting)
    run.ask("Go on.")
    *_, before = run.ask("And on.")
    assert FACT not in str(before)
    asked_by = len(run.agent.get_state(config_of()).values["messages"])
    *asked, _ = run.ask(QUESTION)
    assert len(asked) == 2
    place = asked[0].index(QUESTION) + 1
    assert f"[assistant, message 7 of {asked_by}]\n{FACT}\n" in asked[0][place]
    assert asked[0][: len(before)] == before
    run.restart()
    later = [*asked, *run.ask("Thanks.")]
    for one, following in itertools.pairwise(later):
        assert following[: len(one)] == one, "the provider's cache holds"
    assert len(run.came_back()) == 1
    assert len(run.record().recalled) == 1


def test_nothing_comes_back_that_is_in_the_view_already_or_where_recall_is_off() -> None:
    run = Run()
    run.ask(f"Remember this:\n{FACT}")
    run.ask("Go on.")
    asked = run.ask(QUESTION)[0]
    assert str(asked).count(FACT) == 1
    off = Run(policy=Policy(evidence=False))
    off.ask("Go on.")
    assert FACT not in str(off.ask(QUESTION))


@pytest.mark.parametrize("lasting", [True, False])
def test_undo_takes_back_the_summary_and_not_only_what_came_back(lasting: bool) -> None:
    run = Run(messages=told()[:36], lasting=lasting)
    run.middleware.compact(run.agent, config_of())
    assert run.record() is not None
    assert "<history>" in str(run.ask(QUESTION)[0])
    assert run.middleware.undo(run.agent, config_of())
    assert run.record() is None
    assert not run.middleware.undo(run.agent, config_of())


def test_a_run_that_failed_gets_the_same_block_when_it_is_tried_again() -> None:
    run = Run(lasting=True)
    run.ask("Go on.")
    run.model.script = lambda messages, number: ConnectionError("gone")
    with pytest.raises(ConnectionError):
        run.ask(QUESTION)
    run.model.script = lambda messages, number: AIMessage("8443.")
    run.restart()
    run.agent.invoke(None, config_of())
    refused, answered = ([message.content for message in sent] for sent in run.model.sent[-2:])
    assert FACT in str(refused)
    assert answered == refused
    assert len(run.record().recalled) == 1
