"""Deep agents without a checkpointer, whose caller gives all messages at each turn, or the newest of them: what the
caller drops costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents_scripted import SUMMARY, ScriptedModel, said, summarizer
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages

from contextfold.integrations.deepagents import SummarizationMiddleware

TURNS = 36
KEEP: Any = {"trigger": ("messages", 24), "keep": ("messages", 6)}


class DeepCaller:
    """Has the messages of one person's conversation, and gives an agent the newest ``most`` of them, perhaps behind the
    first ones.
    """

    def __init__(
        self, agent: Any, person: str, most: int, *, first: int = 0, as_dicts: bool = False, calls: bool = True
    ) -> None:
        self.agent, self.person, self.most, self.first, self.as_dicts = agent, person, most, first, as_dicts
        self.calls = calls
        self.history: list[Any] = []

    def ask(self, number: int) -> None:
        filler = " ".join(f"fact-{number}-{word}" for word in range(60))
        call = {"name": "look", "args": {"room": number}, "id": f"call_{self.person}{number:03}xK7b9Tq2w"}
        new: list[Any] = [HumanMessage(f"What about room {number}? {filler}")]
        if self.calls:
            new.append(AIMessage("", tool_calls=[call]))
            new.append(ToolMessage(f"Room {number} is dry.", tool_call_id=str(call["id"])))
        self.history += convert_to_openai_messages(new) if self.as_dicts else new
        newest = max(self.first, len(self.history) + 1 - self.most)
        given = [*self.history[: self.first], *self.history[newest:]]
        answer = self.agent.invoke({"messages": given})["messages"][-1]
        self.history.append({"role": "assistant", "content": answer.text} if self.as_dicts else answer)


def agent(model: ScriptedModel, used: SummarizationMiddleware, backend: Any) -> Any:
    return create_deep_agent(model, backend=backend, middleware=[used])


def paid(folder: Path, most: int, **how: Any) -> tuple[int, str]:
    """How many summaries a conversation costs, and what its model is sent in the end."""
    backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
    writer, model = summarizer(), ScriptedModel(script=lambda messages, number: "It is dry.")
    used = SummarizationMiddleware(writer, backend=backend, **KEEP)
    caller = DeepCaller(agent(model, used, backend), "a", most, **how)
    for number in range(TURNS):
        caller.ask(number)
    return len(writer.sent), said(model.sent[-1])


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a caller pays that gives all of its message objects."""
    return paid(tmp_path_factory.mktemp("all"), 10_000)[0]


@pytest.mark.parametrize(
    "how", [{}, {"first": 1}, {"first": 4}, {"as_dicts": True}, {"as_dicts": True, "first": 1}], ids=str
)
def test_a_caller_that_drops_its_oldest_messages_pays_as_seldom_as_one_that_keeps_all(
    tmp_path: Path, how: dict[str, Any], usual: int
) -> None:
    """Message objects keep their ids; dicts get others at each run, and ids of calls tell which conversation it is."""
    often, sent = paid(tmp_path / "window", 40, **how)
    assert usual >= 3
    assert often <= usual + 1
    assert SUMMARY in sent
    assert "room 35?" in sent


def test_dicts_that_are_given_whole_pay_for_no_more_summaries_than_message_objects(tmp_path: Path, usual: int) -> None:
    often, sent = paid(tmp_path / "dicts", 10_000, as_dicts=True)
    assert often <= usual
    assert SUMMARY in sent


@pytest.mark.parametrize("often", [1, 3], ids=["", "drops at each third turn"])
@pytest.mark.parametrize("how", [{}, {"first": 1}, {"as_dicts": True}, {"as_dicts": True, "calls": False}], ids=str)
def test_what_one_person_was_told_reaches_no_other_who_said_the_same(
    tmp_path: Path, how: dict[str, Any], often: int
) -> None:
    """Of two conversations through one middleware, each goes on with its own summary."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)

    def told(messages: list[Any], number: int) -> str:
        people = [person for person in ("north", "south") if f"vault-{person}" in said(messages)]
        return f"The key is held by {' and '.join(f'vault-{person}' for person in people) or 'no one'}."

    writer = ScriptedModel(script=told)
    used = SummarizationMiddleware(writer, backend=backend, **KEEP)
    callers, models = {}, {}
    for person in ("north", "south"):
        models[person] = ScriptedModel(
            script=lambda messages, number, person=person: f"Ask vault-{person}." if number == 2 else "ok"
        )
        callers[person] = DeepCaller(agent(models[person], used, backend), person, 40, **how)
    for number in range(TURNS):
        for caller in callers.values():
            caller.most = 40 if number % often == 0 else 40 + 4 * (number % often)
            caller.ask(number)
    for person, other in (("north", "south"), ("south", "north")):
        # Dicts without calls have no id that tells whose they are: nobody's summary goes on then.
        assert f"vault-{person}" in said(models[person].sent[-1]) or how.get("calls") is False
        assert not any(f"vault-{other}" in said(sent) for sent in models[person].sent)
