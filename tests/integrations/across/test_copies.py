"""Copies of faces: frameworks and people copy agents with all that is in them, as they can with the frameworks' own."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from emulator import ProviderServer

from contextfold import Compactor
from contextfold.errors import InputError

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


# ---- sessions, and what stands for an SDK's method ----

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda made: pickle.loads(pickle.dumps(made)),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_session_in_use_is_the_same_session(how: str, tmp_path: Path) -> None:
    """It ended in Python's own words about modules and local objects, once a connection was open."""
    compactor = Compactor(window=4_000, keep="messages:6")
    session = compactor.session("ada", f"sqlite:///{tmp_path}/a.db", namespace="office", format="openai-chat")
    session.append(talk())
    session.view()
    other = COPIES[how](session)
    assert other.view() == session.view()
    other.append([{"role": "user", "content": "One more."}])
    assert session.view()[-1]["content"] == "One more."
    tools = COPIES[how](session.tools())
    assert "Question 3" in tools.dispatch(tools.schemas()[0]["function"]["name"], {"query": "Question 3"})
    assert COPIES[how](session.store).load(session.thread) == session.store.load(session.thread)
    session.store.close()


def test_a_session_in_memory_is_copied_in_its_process_and_refused_by_name_for_another() -> None:
    session = Compactor(window=4_000).session("ada", "sqlite:///:memory:")
    session.append(talk())
    assert copy.deepcopy({"agent": [session]})["agent"][0].view() == session.view()
    with pytest.raises(InputError, match=r"in memory .* sqlite:///FILE"):
        pickle.dumps(session)
    session.store.close()


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_session_for_the_agents_sdk_has_its_items(how: str, tmp_path: Path) -> None:
    pytest.importorskip("agents")
    from contextfold.integrations.openai_agents import CompactionSession

    session = CompactionSession("ada", Compactor(window=4_000), f"sqlite:///{tmp_path}/a.db")
    asyncio.run(session.add_items([{"role": "user", "content": "Hello."}]))
    other = COPIES[how](session)
    assert asyncio.run(other.get_items()) == asyncio.run(session.get_items()) != []
    session.close()


def method_of(kind: str, server: ProviderServer) -> tuple[Any, Callable[[], Any]]:
    """What is wrapped, and what closes its client."""
    if kind == "openai":
        sdk = pytest.importorskip("openai").OpenAI(base_url=server.openai_url, api_key="any")
        made = import_module("contextfold.integrations.openai").with_compaction
        return made(sdk.chat.completions.create, Compactor(window=4_000)), sdk.close
    sdk = pytest.importorskip("google.genai").Client(api_key="any", http_options={"base_url": server.url})
    made = import_module("contextfold.integrations.google_genai").with_compaction
    whole = made(sdk, Compactor(window=4_000))
    wraps = {
        "client": lambda: whole,
        "aio": lambda: whole.aio,
        "chat": lambda: whole.chats.create(model="gemini-2.5-flash"),
        "method": lambda: made(sdk.models.generate_content, Compactor(window=4_000)),
    }
    return wraps[kind](), sdk.close


@pytest.mark.parametrize("how", ["copy", "deepcopy"])
@pytest.mark.parametrize("kind", ["openai", "client", "aio", "chat", "method"])
def test_a_copy_of_what_is_wrapped_has_its_client_and_goes_its_own_way(kind: str, how: str) -> None:
    """Agents are copied with all that is in them, and no client of an SDK can be."""
    with ProviderServer() as server:
        made, close = method_of(kind, server)
        if kind == "openai":
            made(model="small", messages=talk())
        elif kind == "chat":
            for n in range(20):
                made.send_message(f"Question {n}: " + "word " * 250)
        before = made.compaction
        other = COPIES[how](made)
        assert type(other) is type(made)
        assert other.compaction is before
        if kind == "openai":
            other(model="small", messages=talk()[:2])
        elif kind == "chat":
            told = len(made.get_history())
            other.send_message("One more: " + "word " * 3_000)
            assert len(other.get_history()) == told + 2 == len(made.get_history()) + 2
        assert (other.compaction is before) is (kind not in ("openai", "chat"))
        assert made.compaction is before
        close()


@pytest.mark.parametrize("kind", ["openai", "client", "aio", "chat", "method"])
def test_what_is_wrapped_is_refused_by_name_for_another_process(kind: str) -> None:
    with ProviderServer() as server:
        made, close = method_of(kind, server)
        with pytest.raises(InputError, match=r"another process.* with_compaction\(.*previous"):
            pickle.dumps(made)
        close()
