"""What befalls a deep agent's thread in use: deleted messages, rewinds, approvals, subclasses, both classes in turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NotRequired

import anyio
import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from deepagents.middleware.summarization import SummarizationToolMiddleware as DeepAgentsTool
from deepagents_scripted import ScriptedModel, deep_agent, problems_of, prompts, questions, said, summarizer
from langchain.agents.middleware import AgentState
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from contextfold.integrations.deepagents import (
    SummarizationMiddleware,
    SummarizationToolMiddleware,
    create_summarization_tool_middleware,
    passes,
)
from contextfold.integrations.deepagents.state import EVENT, SummarizationEvent

THREAD: Any = {"configurable": {"thread_id": "t"}}
THEIRS = (DeepAgentsMiddleware, DeepAgentsTool)
OURS = (SummarizationMiddleware, SummarizationToolMiddleware)
SIZES: dict[str, Any] = {"trigger": ("messages", 30), "keep": ("messages", 6)}


@pytest.fixture
def backend(tmp_path: Path) -> FilesystemBackend:
    return FilesystemBackend(root_dir=tmp_path, virtual_mode=True)


def ask(agent: Any, messages: Sequence[AnyMessage]) -> list[Any]:
    return list(agent.invoke({"messages": list(messages)}, THREAD)["messages"])


def names(messages: Sequence[Any]) -> set[str]:
    """What messages call themselves: ``h3`` and ``a3`` of turn 3."""
    return {str(message.content).partition("]")[0].removeprefix("[") for message in messages}


# ---- deleted messages and rewinds ----


@pytest.mark.parametrize("deleted", [["h1"], ["h1", "a1", "h2"], ["a16"], ["h17"], ["a16", "h17"]])
def test_messages_that_are_deleted_take_no_others_with_them(backend: FilesystemBackend, deleted: list[str]) -> None:
    """The cutoff is an index, and every message behind a deleted one moves: nothing that was kept is skipped."""
    main = ScriptedModel()
    scribe = summarizer()
    agent = deep_agent(main, backend, SummarizationMiddleware(scribe, backend=backend, **SIZES))
    ask(agent, questions(20))
    kept = names(main.sent[0]) & names(questions(20))
    assert {"a16", "h17", "a17", "a19"} & kept >= {"h17", "a17", "a19"}
    agent.update_state(THREAD, {"messages": [RemoveMessage(id=message) for message in deleted]})
    read = len(scribe.sent)
    ask(agent, [HumanMessage("[q]")])
    later = said(main.sent[1]) + "".join(said(sent) for sent in scribe.sent[read:])
    assert all(f"[{name}]" in later for name in (kept - set(deleted)) | {"q"})
    assert len([m for m in main.sent[1] if "SUMMARYTOKEN" in str(m.content)]) == 1


def test_a_thread_that_was_cleared_and_grows_again_loses_nothing(backend: FilesystemBackend, tmp_path: Path) -> None:
    """The old cutoff means nothing in the new messages: deepagents drops as many of them, unread."""
    main, scribe = ScriptedModel(), summarizer()
    agent = deep_agent(main, backend, SummarizationMiddleware(scribe, backend=backend, **SIZES))
    ask(agent, questions(20))
    agent.update_state(THREAD, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    ask(agent, questions(25, start=100))
    for turn in range(125, 145):
        ask(agent, questions(1, start=turn))
    read = prompts(scribe) + said(main.sent[-1])
    assert all(f"[h{turn}]" in read for turn in range(100, 145))
    assert all(f"[h{turn}]" in next(tmp_path.rglob("*.md")).read_text() for turn in range(100, 130))


def test_what_leaves_a_state_that_lost_messages_is_saved_whatever_an_event_of_deepagents_says(
    backend: FilesystemBackend, tmp_path: Path
) -> None:
    """Its cutoff lies behind all that is left, so it tells nothing of which messages the file has."""
    agent = deep_agent(ScriptedModel(), backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    summary = HumanMessage("They talked.", additional_kwargs={"lc_source": "summarization"})
    event = {"cutoff_index": 60, "summary_message": summary, "file_path": None}
    ask(agent, questions(10))
    agent.update_state(THREAD, {EVENT: event})
    ask(agent, questions(10, start=10))
    assert 30 < agent.get_state(THREAD).values[EVENT]["cutoff_index"] < 60
    saved = next(tmp_path.rglob("*.md")).read_text()
    assert all(f"[h{turn}]" in saved for turn in range(17))


def test_a_rewound_thread_has_the_event_of_its_checkpoint(backend: FilesystemBackend) -> None:
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    for turn in range(40):
        ask(agent, questions(1, start=turn))
    states = [state for state in agent.get_state_history(THREAD) if not state.next]
    before = [state for state in states if state.values.get(EVENT) is None][4]
    agent.invoke({"messages": [HumanMessage("[q] from before?")]}, before.config)
    view = [message for message in main.sent[-1] if message.type != "system"]
    assert view == [*before.values["messages"], view[-1]]
    assert view[-1].content == "[q] from before?"


def test_an_event_knows_both_sides_of_its_cutoff() -> None:
    messages = questions(5)
    event = SummarizationEvent(4, HumanMessage("S"), None, 8, 4, covered_to="a1", kept_from="h2")
    assert event.aligned(messages) is event
    assert event.aligned(messages[1:]) == SummarizationEvent(3, event.summary, None, 7, 3, "a1", "h2", False)
    assert event.aligned(messages[5:]).cutoff == 0, "both sides are gone"
    without_kept = [message for message in messages if message.id != "h2"]
    assert event.aligned(without_kept[1:]).cutoff == 3
    dropped = event.without(range(1, 3), [messages[0], *messages[3:]])
    assert dropped == SummarizationEvent(2, event.summary, None, 6, 2, "a1", "h2", False)
    assert event.without(range(0), messages) == event
    older = SummarizationEvent(4, HumanMessage("S"), None, 8, 4)
    assert older.aligned(messages[1:]) is older
    assert SummarizationEvent.from_state(event.to_state()) == event


# ---- what the state still has ----


def test_a_restart_changes_no_summary(backend: FilesystemBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that left the view is in the state: evidence is chosen from it, whatever the process remembers."""
    monkeypatch.setattr(passes, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="0" * 32)))  # in every view
    saver, views = InMemorySaver(), list[list[str]]()
    one = SummarizationMiddleware(summarizer(), backend=backend, **SIZES)
    for restarts in (False, True):
        main, config = ScriptedModel(), {"configurable": {"thread_id": f"restarts-{restarts}"}}
        for turn in range(0, 60, 3):
            used = SummarizationMiddleware(summarizer(), backend=backend, **SIZES) if restarts else one
            agent = create_deep_agent(main, backend=backend, middleware=[used], checkpointer=saver)
            agent.invoke({"messages": list(questions(3, start=turn))}, config)
        views.append([said(sent) for sent in main.sent])
    assert views[0] == views[1]
    assert "SUMMARYTOKEN" in views[0][-1]


def test_what_one_summary_has_no_room_for_a_later_one_quotes(backend: FilesystemBackend) -> None:
    """Its lines are chosen from all messages that left, and not from what the summary before it quotes."""
    lines = "\n".join(f"def step_{n}(limit_{n * 37}): raise Fault{n}x" for n in range(200))
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))

    def quoted() -> int:
        return sum(f"step_{n}(" in said(main.sent[-1]) for n in range(200))

    ask(agent, [HumanMessage("Read it.", id="first"), AIMessage(lines, id="file"), *questions(14, words=0)])
    few = quoted()
    filling = [HumanMessage("well then " * 400, id=f"w{n}") for n in range(30)]
    ask(agent, filling)
    assert 0 < few < 120
    assert quoted() > 1.3 * few


def test_what_was_deleted_from_the_state_is_quoted_on(backend: FilesystemBackend) -> None:
    """The summary alone knows it then."""
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    fact = HumanMessage("The deploy key is /srv/keys/deploy-7741.pem and must never be rotated.", id="fact")
    ask(agent, [fact, *questions(16)])
    for start in (20, 40, 60):
        assert "/srv/keys/deploy-7741.pem" in said(main.sent[-1])
        agent.update_state(THREAD, {"messages": [RemoveMessage(id=f) for f in ("fact",) if start == 20]})
        ask(agent, questions(20, start=start))
    assert "/srv/keys/deploy-7741.pem" in said(main.sent[-1])


def test_the_summary_of_a_forks_parent_is_never_quoted_as_the_users_words(backend: FilesystemBackend) -> None:
    """Nor what stands around it: it names the file of another history."""
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    lines = "Lines quoted word for word from those earlier messages:\n[tool]\nthe port is 9041 in /etc/parent.conf"
    text = f"<summary>\nThe parent must not push.\n\n<evidence>\n{lines}\n</evidence>\n</summary>"
    saved = "The full conversation history has been saved to /conversation_history/of_the_parent.md should you need it."
    parents = HumanMessage(f"{saved}\n\n{text}", id="parent", additional_kwargs={"lc_source": "summarization"})
    ask(agent, [parents, *questions(18, words=0)])
    for start in (20, 40, 60):
        ask(agent, [HumanMessage("Go on.", id=f"{start}-{n}") for n in range(40)])
        view = said(main.sent[-1])
        assert "the port is 9041 in /etc/parent.conf" in view
        assert "of_the_parent.md" not in view
        assert "The parent must not push." not in view.partition("<evidence>")[2]


def test_where_a_file_of_the_user_was_saved_is_quoted_on(backend: FilesystemBackend) -> None:
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    file = {"type": "file", "base64": "JVBERi0xLjQgaGVsbG8=", "mime_type": "application/pdf"}
    ask(agent, [HumanMessage([{"type": "text", "text": "This is the contract of ACME-771."}, file], id="file")])
    for turn in range(4):
        ask(agent, [HumanMessage("Go on.", id=f"{turn}-{n}") for n in range(40)])
        assert '<file url="/conversation_history/media/' in said(main.sent[-1])


# ---- approvals ----


def test_a_call_that_waits_for_an_approval_survives_a_summary(backend: FilesystemBackend) -> None:
    call = {"name": "write_file", "args": {"file_path": "/a.txt", "content": "hello"}, "id": "w1"}
    main = ScriptedModel(
        script=lambda messages, number: AIMessage("[w]", tool_calls=[call]) if number == 0 else "[done]"
    )
    middleware = SummarizationMiddleware(summarizer(), backend=backend, **SIZES)
    agent = deep_agent(main, backend, middleware, interrupt_on={"write_file": True})
    ask(agent, [*questions(20), HumanMessage("[q] write it")])
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)["messages"]
    assert done[-1].content == "[done]"
    assert backend.download_files(["/a.txt"])[0].content == b"hello"
    assert not any(problems_of(sent) for sent in main.sent)


@pytest.mark.parametrize("writer", [DeepAgentsMiddleware, SummarizationMiddleware])
def test_a_thread_that_came_as_json_has_its_summary(backend: FilesystemBackend, writer: type[Any]) -> None:
    """A client of an Agent Server states a thread as JSON, and only the messages have a reducer that reads it."""
    first = deep_agent(ScriptedModel(), backend, writer(summarizer(), backend=backend, **SIZES))
    ask(first, questions(20))
    values = first.get_state(THREAD).values
    sent = json.loads(json.dumps(values, default=lambda message: message.model_dump(mode="json")))
    assert isinstance(sent[EVENT]["summary_message"], dict)
    main, scribe = ScriptedModel(), summarizer()
    agent = deep_agent(main, backend, SummarizationMiddleware(scribe, backend=backend, **SIZES))
    agent.invoke(Command(update=sent), THREAD)
    ask(agent, [HumanMessage("[q]", id="q")])
    assert scribe.sent == []
    assert all("SUMMARYTOKEN" in said(view) and "[h0]" not in said(view) for view in main.sent)


# ---- subclasses and names ----


@pytest.mark.parametrize("base", [DeepAgentsMiddleware, SummarizationMiddleware])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_subclass_overrides_decides(backend: FilesystemBackend, base: type[Any], is_async: bool) -> None:
    """When, where and by whom: the same subclass on deepagents' class and on ours."""

    class Own(base):  # type: ignore[misc]
        def _should_summarize(self, messages: list[AnyMessage], total_tokens: int) -> bool:
            return len(messages) > 10

        def _determine_cutoff_index(self, messages: list[AnyMessage]) -> int:
            return len(messages) - 3

        def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return f"own summary of {len(messages_to_summarize)}"

        async def _acreate_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return self._create_summary(messages_to_summarize)

    main, scribe = ScriptedModel(), summarizer()
    middleware = Own(scribe, backend=backend, trim_tokens_to_summarize=None)
    agent = deep_agent(main, backend, middleware)
    given = [*questions(10, words=10), HumanMessage("[q]", id="q")]
    if is_async:
        anyio.run(agent.ainvoke, {"messages": given}, THREAD)
    else:
        ask(agent, given)
    assert "own summary of 18" in said(main.sent[0])
    assert [message.id for message in main.sent[0][-3:]] == ["h9", "a9", "q"]
    assert scribe.sent == []


def test_a_subclass_may_add_to_our_summary(backend: FilesystemBackend) -> None:
    """``super()._create_summary`` is ours, reads everything, and does not come back to the subclass."""

    class Signed(SummarizationMiddleware):
        def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return super()._create_summary(messages_to_summarize) + " -- signed"

    main, scribe = ScriptedModel(), summarizer()
    ask(deep_agent(main, backend, Signed(scribe, backend=backend, **SIZES)), questions(20))
    assert " -- signed" in said(main.sent[0])
    assert all(f"[h{turn}]" in prompts(scribe) for turn in range(16))


@pytest.mark.parametrize("method", ["_offload_to_backend", "_count_tokens", "_get_history_path", "_truncate_args"])
def test_what_a_subclass_overrides_in_vain_is_said(backend: FilesystemBackend, method: str) -> None:
    """Any private method of deepagents' class, and of its tool's."""
    own = type("Own", (SummarizationMiddleware,), {method: lambda self, *arguments: None})
    with pytest.warns(UserWarning, match=f"Own overrides {method}: contextfold does not call"):
        own(summarizer(), backend=backend)
    tool = type("Tool", (SummarizationToolMiddleware,), {"_compact_error": lambda self, *arguments: None})
    with pytest.warns(UserWarning, match="Tool overrides _compact_error: contextfold does not call"):
        tool(SummarizationMiddleware(summarizer(), backend=backend))


@pytest.mark.parametrize("classes", [THEIRS, OURS], ids=["deepagents", "contextfold"])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_subclass_of_the_tool_overrides_decides(
    backend: FilesystemBackend, classes: tuple[Any, Any], is_async: bool
) -> None:
    """A person's own command compacts at once, inside of what a program puts around it."""
    around: list[str] = []
    middleware, tool = classes

    class Forced(tool):  # type: ignore[misc]
        def _is_eligible_for_compaction(self, messages: list[AnyMessage]) -> bool:
            return len(messages) > 3

    class Wrapped(Forced):
        def _run_compact(self, runtime: Any) -> Any:
            around.append("sync")
            return super()._run_compact(runtime)

        async def _arun_compact(self, runtime: Any) -> Any:
            around.append("async")
            return await super()._arun_compact(runtime)

        def _create_compact_tool(self) -> Any:
            return super()._create_compact_tool().model_copy(update={"description": "Said by the program."})

    assert Wrapped(middleware(summarizer(), backend=backend)).tools[0].description == "Said by the program."
    for own, seen in ((Forced, []), (Wrapped, ["async" if is_async else "sync"])):
        calls: Any = [{"name": "compact_conversation", "args": {}, "id": "c"}]
        main = ScriptedModel(script=lambda _, number, calls=calls: "ok" if number else AIMessage("", tool_calls=calls))
        made = middleware(summarizer(), backend=backend, trigger=("messages", 900), keep=("messages", 4))
        agent = deep_agent(main, backend, made, own(made))
        given = {"messages": [*questions(8), HumanMessage("[q]", id="q")]}
        if is_async:
            anyio.run(agent.ainvoke, given, THREAD)
        else:
            agent.invoke(given, THREAD)
        assert "SUMMARYTOKEN" in said(main.sent[-1])
        assert around == seen


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_subclass_puts_around_the_tools_work_is_around_ours(backend: FilesystemBackend, is_async: bool) -> None:
    """``super()`` led to deepagents' own work: the lines that ours quotes, and the words of users, were gone."""
    compacted: list[str] = []
    for name in ("_other", "_arun_compact" if is_async else "_run_compact"):

        def around(self: Any, runtime: Any, name: str = name) -> Any:
            return getattr(SummarizationToolMiddleware, name)(self, runtime)

        own = type("Own", (SummarizationToolMiddleware,), {name: around})
        calls: Any = [{"name": "compact_conversation", "args": {}, "id": "c"}]
        main = ScriptedModel(script=lambda _, number, calls=calls: "ok" if number else AIMessage("", tool_calls=calls))
        made = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 18), keep=("messages", 4))
        agent = deep_agent(main, backend, made, own(made))
        given = {"messages": [*questions(8), HumanMessage("[q]", id="q")]}
        anyio.run(agent.ainvoke, given, THREAD) if is_async else agent.invoke(given, THREAD)
        compacted += [said(main.sent[-1]).partition("<summary>")[2]]
    assert "SUMMARYTOKEN" in compacted[0]
    assert compacted[0] == compacted[1]


class Counted(AgentState[Any]):
    """A state with a key of the application's own."""

    seen: NotRequired[int]


def test_a_subclass_may_have_a_state_of_its_own(backend: FilesystemBackend) -> None:
    """Its keys and all of ours are in the thread."""
    own = type("Own", (SummarizationMiddleware,), {"state_schema": Counted})
    agent = deep_agent(ScriptedModel(), backend, own(summarizer(), backend=backend, **SIZES))
    answered = agent.invoke({"messages": questions(20), "seen": 3}, THREAD)
    assert answered["seen"] == 3
    assert agent.get_state(THREAD).values[EVENT]
    assert own(summarizer(), backend=backend).state_schema.__annotations__.keys() > Counted.__annotations__.keys()


def test_the_tools_factory_takes_a_models_name(backend: FilesystemBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolved as deepagents does it, with its profiles of providers."""
    model = summarizer()
    monkeypatch.setattr("deepagents._models.init_chat_model", lambda name, **options: model)
    middleware = create_summarization_tool_middleware("openai:gpt-5", backend)
    assert isinstance(middleware, SummarizationToolMiddleware)
    assert [tool.name for tool in middleware.tools] == ["compact_conversation"]


# ---- both classes in turn ----


def test_a_thread_may_go_back_and_forth(backend: FilesystemBackend, tmp_path: Path) -> None:
    """Theirs, ours, theirs, ours on one checkpointer: one file, and every evicted message in it once."""
    saver, sent = InMemorySaver(), []
    for turn, kind in enumerate([DeepAgentsMiddleware, SummarizationMiddleware] * 2):
        main = ScriptedModel()
        middleware = kind(summarizer(), backend=backend, trim_tokens_to_summarize=None, **SIZES)
        agent = create_deep_agent(main, backend=backend, middleware=[middleware], checkpointer=saver)
        ask(agent, questions(16, start=16 * turn, words=5))
        ask(agent, [HumanMessage(f"[q{turn}]", id=f"q{turn}")])
        sent += main.sent
    assert all(len(view) < 40 and "SUMMARYTOKEN" in said(view) for view in sent)
    (file,) = tmp_path.rglob("*.md")
    text = file.read_text()
    assert all(text.count(f"[h{turn}]") == 1 for turn in range(58))
    assert not any(problems_of(view) for view in sent)
