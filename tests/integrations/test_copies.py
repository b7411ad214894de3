"""Copies of faces: frameworks and people copy agents with all that is in them, as they can with the frameworks' own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from contextfold import Compactor

# A module inside of each package: a folder of tests has the name of some packages.
FACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "deepagents": (
        "deepagents.backends",
        lambda face: face.SummarizationMiddleware(model_of_langchain(), backend=backend()),
    ),
    "google_adk": ("google.adk", lambda face: face.CompactionPlugin(window=4_000)),
    "haystack": ("haystack.components", lambda face: face.ContextfoldCompactor(window=4_000)),
    "langchain": ("langchain", lambda face: face.CompactionMiddleware(window=4_000)),
    "langchain.SummarizationMiddleware": ("langchain", lambda face: face.SummarizationMiddleware(model_of_langchain())),
    "langgraph": ("langchain", lambda face: face.Context.of_window(4_000)),
    "openai_agents": ("agents", lambda face: face.compaction(window=4_000)),
    "pydantic_ai": ("pydantic_ai.models", lambda face: face.Compaction(window=4_000)),
    "strands": ("strands.agent", lambda face: face.CompactionManager(window=4_000)),
}


def model_of_langchain() -> Any:
    from langchain_core.language_models import GenericFakeChatModel

    return GenericFakeChatModel(messages=iter([]))


def backend() -> Any:
    from deepagents.backends import StateBackend

    return StateBackend()


def talk() -> list[dict[str, Any]]:
    said = [("user", f"Question {turn}: " + "word " * 90) for turn in range(60)]
    return [{"role": role, "content": text} for one in said for role, text in (one, ("assistant", "Fine."))]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["copy", "pickle"]
)
def test_a_copy_of_a_compactor_does_what_the_compactor_does(copied: Callable[[Any], Any]) -> None:
    compactor = Compactor(window=4_000, keep="messages:6")
    view = compactor.compact(talk()).messages
    other = copied(compactor)
    assert other.compact(talk()).messages == view
    assert other.policy == compactor.policy


@pytest.mark.parametrize("name", FACES)
def test_a_face_can_be_copied_with_the_agent_that_it_belongs_to(name: str) -> None:
    package, make = FACES[name]
    pytest.importorskip(package)
    made = make(import_module(f"contextfold.integrations.{name.partition('.')[0]}"))
    assert type(copy.deepcopy({"agent": [made]})["agent"][0]) is type(made)


@pytest.mark.parametrize("name", ["deepagents", "langchain", "langchain.SummarizationMiddleware", "langgraph"])
def test_a_face_can_be_sent_to_another_process(name: str) -> None:
    package, make = FACES[name]
    pytest.importorskip(package)
    made = make(import_module(f"contextfold.integrations.{name.partition('.')[0]}"))
    assert type(pickle.loads(pickle.dumps(made))) is type(made)


def test_a_middleware_from_another_process_declares_the_same() -> None:
    pytest.importorskip("langchain")
    from contextfold.integrations.langchain import CompactionMiddleware

    made = CompactionMiddleware(window=4_000, tool=True, name="second")
    copied = pickle.loads(pickle.dumps(made))
    assert copied.state_schema.__annotations__.keys() == made.state_schema.__annotations__.keys()
    assert [tool.name for tool in copied.tools] == [tool.name for tool in made.tools]
