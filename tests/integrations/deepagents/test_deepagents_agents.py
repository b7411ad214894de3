"""Deep agents with our summarization: every backend, many passes, failures, sub-agents, streams, async."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.protocol import WriteResult
from deepagents.middleware import summarization as deepagents_summarization
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from deepagents_scripted import (
    SUMMARY,
    ScriptedModel,
    deep_agent,
    problems_of,
    prompts,
    questions,
    said,
    summarizer,
    tool_loop,
    written,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from contextfold.integrations.deepagents import SummarizationMiddleware
from loop_watchdog import nothing_blocks

SIZES: dict[str, Any] = {"trigger": ("messages", 30), "keep": ("messages", 5)}
THREAD: Any = {"configurable": {"thread_id": "t"}}
POINTER = re.compile(r"saved to (\S+) should you need")


class Place:
    """A backend and a way to read it from outside of the agent."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder, self.store = folder, InMemoryStore()
        on_disk = FilesystemBackend(root_dir=folder, virtual_mode=True)
        in_store = StoreBackend(namespace=lambda runtime: ("files",), store=self.store)
        self.backend: Any = {
            "state": StateBackend,
            "filesystem": lambda: on_disk,
            "store": lambda: in_store,
            "composite": lambda: CompositeBackend(
                default=StateBackend(), routes={"/kept/": on_disk}, artifacts_root="/kept"
            ),
        }[kind]()
        self.root = "/kept" if kind == "composite" else ""
        self.kind = kind

    def read(self, path: str, values: dict[str, Any]) -> str:
        if self.kind == "state":
            return str(values["files"][path]["content"])
        found = self.backend.download_files([path])[0]
        assert found.error is None
        return str(found.content.decode())


@pytest.fixture(params=["state", "filesystem", "store", "composite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def ask(agent: Any, color: str, messages: list[AnyMessage] | None, config: Any = THREAD) -> dict[str, Any]:
    given = {"messages": messages} if messages else None
    if color == "sync":
        return dict(agent.invoke(given, config))

    async def run() -> dict[str, Any]:
        return dict(await agent.ainvoke(given, config))

    return anyio.run(run)


def rounds(number: int) -> list[list[AnyMessage]]:
    """What a person sends in each round: a past conversation of 40 messages and a new question."""
    return [
        [*questions(20, start=20 * turn), HumanMessage(f"[q{turn}] And what now?", id=f"q{turn}")]
        for turn in range(number)
    ]


@pytest.mark.parametrize("color", ["sync", "async"])
def test_history_is_appended_and_can_be_read_where_the_summary_says(place: Place, color: str) -> None:
    """Three compactions on each backend: every evicted message is in the file once, the pointer is right, the state
    keeps everything, and what is sent is valid.
    """
    main, paid = ScriptedModel(), summarizer()
    agent = deep_agent(main, place.backend, SummarizationMiddleware(paid, backend=place.backend, **SIZES))
    earlier = ""
    for number, messages in enumerate(rounds(3), start=1):
        values = ask(agent, color, messages)
        sent = main.sent[-1]
        found = POINTER.search(said(sent))
        assert found is not None
        assert re.fullmatch(rf"{place.root}/conversation_history/session_[0-9a-f]{{32}}\.md", found[1])
        text = place.read(found[1], values)
        assert text.startswith(earlier)
        assert len(re.findall(r"^## Summarized at \d{4}-\d\d-\d\dT\S+$", text, re.MULTILINE)) == number
        earlier = text
        kept = {message.id for message in sent}
        for message in values["messages"][:-1]:
            assert text.count(f"[{message.id}]") == (message.id not in kept) or "[" not in str(message.content)
            assert message.id in kept or f"[{message.id}]" in prompts(paid) or "[" not in str(message.content)
        assert not problems_of(sent)
        assert len(values["messages"]) == 42 * number
        assert sum(message.additional_kwargs.get("lc_source") == "summarization" for message in sent) == 1


def test_a_folder_is_appended_to_and_never_rewritten(tmp_path: Path) -> None:
    class NeverEdited(FilesystemBackend):
        def edit(self, *arguments: Any, **options: Any) -> Any:
            raise AssertionError("the history was rewritten")

    backend = NeverEdited(root_dir=tmp_path, virtual_mode=True)
    agent = deep_agent(ScriptedModel(), backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    files = set()
    for messages in rounds(3):
        ask(agent, "sync", messages)
        (history,) = tmp_path.glob("conversation_history/*.md")
        files.add(history.stat().st_ino)
    assert len(files) == 1
    assert history.read_text().count("## Summarized at ") == 3


# ---- failures ----


class Failing(FilesystemBackend):
    """Fails to write, in one way or another, until it is mended."""

    way = "error"
    mended = False

    def write(self, file_path: str, content: str) -> Any:
        if self.mended:
            return super().write(file_path, content)
        if self.way == "raises":
            raise ConnectionError("the disk is gone")
        if self.way == "lies":
            return WriteResult(path=file_path)
        return None if self.way == "silent" else WriteResult(error="disk full")


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("way", ["error", "raises", "silent", "lies"])
def test_a_failing_backend_warns_and_loses_nothing(tmp_path: Path, way: str, color: str) -> None:
    """No path is named; the state has all messages; once it works again, everything missing is in the file."""
    backend = Failing(root_dir=tmp_path, virtual_mode=True)
    backend.way = way
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    first, second = rounds(2)
    words = "Offloading conversation history to backend failed .* could not be saved to /conversation_history/"
    with pytest.warns(UserWarning, match=words):  # it begins as deepagents' own, for filters of warnings
        values = ask(agent, color, first)
    assert "conversation_history" not in said(main.sent[-1])
    assert SUMMARY in said(main.sent[-1])
    assert len(values["messages"]) == 42
    backend.mended = True
    ask(agent, color, second)
    found = POINTER.search(said(main.sent[-1]))
    assert found is not None
    text = (tmp_path / found[1].lstrip("/")).read_text()
    assert all(f"[h{number}]" in text and f"[a{number}]" in text for number in range(36))


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    "answer",
    ["  ", RuntimeError("429 too many requests"), AIMessage("half", response_metadata={"finish_reason": "length"})],
)
def test_a_summary_that_failed_changes_nothing(tmp_path: Path, answer: Any, color: str) -> None:
    """The whole history is sent, nothing is written, no event is stored; an event says why."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    events: list[Any] = []
    main = ScriptedModel()
    middleware = SummarizationMiddleware(summarizer(answer), backend=backend, on_event=events.append, **SIZES)
    agent = deep_agent(main, backend, middleware)
    (messages,) = rounds(1)
    ask(agent, color, messages)
    assert [message.id for message in main.sent[-1] if message.type != "system"] == [m.id for m in messages]
    assert not list(tmp_path.rglob("*.md"))
    assert agent.get_state(THREAD).values.get("_summarization_event") is None
    assert "summary_failed" in [event.name for event in events]


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_paid_summary_survives_a_failing_model(tmp_path: Path, color: str) -> None:
    """Three attempts, one summary, one section; the third attempt's answer brings the event into the state."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    failure = ConnectionError("gone")
    main = ScriptedModel(script=lambda messages, number: failure if number < 2 else "ok")
    paid = summarizer()
    middleware = SummarizationMiddleware(paid, backend=backend, trim_tokens_to_summarize=None, **SIZES)
    agent = deep_agent(main, backend, middleware)
    (messages,) = rounds(1)
    for attempt in (messages, None):
        with pytest.raises(ConnectionError):
            ask(agent, color, attempt)
    ask(agent, color, None)
    assert len(main.sent) == 3
    assert len(paid.sent) == 1
    assert main.sent[0] == main.sent[1] == main.sent[2]
    (history,) = tmp_path.rglob("*.md")
    assert history.read_text().count("## Summarized at ") == 1
    assert agent.get_state(THREAD).values["_summarization_event"]["cutoff_index"] > 30


# ---- one thread, two classes ----


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("first", [DeepAgentsMiddleware, SummarizationMiddleware])
def test_a_thread_begun_with_one_class_goes_on_with_the_other(tmp_path: Path, first: type, color: str) -> None:
    """Both directions on one checkpointer: the summary is understood, updated, and the same file is appended to."""
    second = SummarizationMiddleware if first is DeepAgentsMiddleware else DeepAgentsMiddleware
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    saver = InMemorySaver()
    main, paid = ScriptedModel(), summarizer()

    def agent(middleware: type) -> Any:
        summarization = middleware(paid, backend=backend, **SIZES)
        return create_deep_agent(main, backend=backend, middleware=[summarization], checkpointer=saver)

    one, two = rounds(2)
    ask(agent(first), color, one)
    before = agent(first).get_state(THREAD).values
    view = [message.content for message in main.sent[-1]]
    ask(agent(second), color, [HumanMessage("[q] Short.", id="q")])
    assert [message.content for message in main.sent[-1]][: len(view)] == view
    ask(agent(second), color, two)
    after = agent(second).get_state(THREAD).values
    is_one_file = first is DeepAgentsMiddleware or hasattr(deepagents_summarization, "SUMMARIZATION_SESSION_ID_KEY")
    assert after["_summarization_event"]["cutoff_index"] > before["_summarization_event"]["cutoff_index"]
    assert SUMMARY in prompts(ScriptedModel(sent=[paid.sent[-1]]))
    histories = list(tmp_path.rglob("*.md"))  # the first releases of 0.7 name theirs after the thread
    assert len(histories) == (1 if is_one_file else 2)
    text = "".join(history.read_text() for history in histories)
    assert text.count("## Summarized at ") == 2
    assert all(text.count(f"[h{number}]") == 1 for number in range(36))
    assert any(str(history.relative_to(tmp_path)) in said(main.sent[-1]) for history in histories)
    assert said(main.sent[-1]).count("<summary>") == 1
    assert not problems_of(main.sent[-1])


def test_what_deepagents_reads_of_our_event_is_what_we_send(tmp_path: Path) -> None:
    """A forked sub-agent and deepagents itself rebuild the view from the event alone: it is the same, and it has the
    user's newest words although they stand long before the cutoff.
    """
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    main = ScriptedModel()
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, **SIZES))
    ask(agent, "sync", tool_loop(30))
    values = agent.get_state(THREAD).values
    theirs = DeepAgentsMiddleware._apply_event_to_messages(values["messages"][:-1], values["_summarization_event"])
    assert theirs == [message for message in main.sent[-1] if message.type != "system"]
    assert "Repair the ledger, and never touch /etc." in str(theirs[0].content)
    ask(agent, "sync", [*questions(20, start=100), HumanMessage("[next] Now the tests.", id="next")])
    assert "Repair the ledger" not in str(main.sent[-1][1].content).partition("<user_message>")[2]
    assert main.sent[-1][-1].content == "[next] Now the tests."


# ---- arguments ----


def test_old_arguments_are_truncated_and_originals_are_saved(tmp_path: Path) -> None:
    """What deepagents' words say, in the view only; the state and the history file have the whole content."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    main = ScriptedModel()
    content = "value = 1\n" * 400
    middleware = SummarizationMiddleware(
        summarizer(),
        backend=backend,
        truncate_args_settings={"trigger": ("messages", 8), "keep": ("messages", 4), "max_length": 100},
        **SIZES,
    )
    agent = deep_agent(main, backend, middleware)
    messages: list[AnyMessage] = [HumanMessage("[h] Write.", id="h")]
    for turn in range(6):
        messages += written(turn, content, tool="edit_file" if turn % 2 else "write_file")
    values = ask(agent, "sync", messages)
    sent = [call["args"]["content"] for m in main.sent[-1] if isinstance(m, AIMessage) for call in m.tool_calls]
    assert sent == [content[:20] + "...(argument truncated)"] * 4 + [content] * 2
    stored = [call["args"]["content"] for m in values["messages"] if isinstance(m, AIMessage) for call in m.tool_calls]
    assert stored == [content] * 6
    (more,) = rounds(1)
    ask(agent, "sync", more)
    (history,) = tmp_path.rglob("*.md")
    assert history.read_text().count("value = 1\\n" * 400) == 6


# ---- sub-agents, streams, async ----


def test_sub_agents_in_parallel_have_their_own_summaries_and_files(tmp_path: Path) -> None:
    """No update conflicts, one history file each, nothing of one in the other."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    tasks: list[Any] = [
        {"name": "task", "args": {"description": f"Item {name}", "subagent_type": name}, "id": f"call-{name}"}
        for name in ("ada", "bob")
    ]
    main = ScriptedModel(
        script=lambda messages, number: AIMessage("", tool_calls=tasks) if number == 0 else "Both done."
    )
    workers = {name: ScriptedModel(script=_worker(name)) for name in ("ada", "bob")}
    paid = {name: summarizer(f"SUMMARY of {name}") for name in workers}
    subagents: Any = [
        {
            "name": name,
            "description": name,
            "system_prompt": "Work.",
            "model": worker,
            "middleware": [
                SummarizationMiddleware(paid[name], backend=backend, trigger=("messages", 12), keep=("messages", 4))
            ],
        }
        for name, worker in workers.items()
    ]
    agent = deep_agent(main, backend, subagents=subagents)
    values = ask(agent, "sync", [HumanMessage("Go.", id="go")])
    assert values["messages"][-1].content == "Both done."
    histories = [file.read_text() for file in (tmp_path / "conversation_history").glob("*.md")]
    assert len(histories) == 2
    for name, other in (("ada", "bob"), ("bob", "ada")):
        assert sum(f"{name}-0" in history for history in histories) == 1
        assert not any(f"{name}-0" in history and f"{other}-0" in history for history in histories)
        assert f"SUMMARY of {name}" in said(workers[name].sent[-1])
        assert not problems_of(workers[name].sent[-1])
    assert "_summarization_event" not in agent.get_state(THREAD).values


def _worker(name: str) -> Callable[[Any, int], Any]:
    def script(messages: Any, number: int) -> Any:
        if number == 20:
            return f"{name} is done."
        call = {"name": "ls", "args": {"path": "/"}, "id": f"{name}-{number}"}
        return AIMessage(f"{name}-{number} looks", tool_calls=[call])

    return script


def test_the_general_purpose_sub_agent_has_the_same_middleware(tmp_path: Path) -> None:
    """One instance, replaced by name, serves the agent and its built-in sub-agent."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    call: Any = {"name": "task", "args": {"description": "Look", "subagent_type": "general-purpose"}, "id": "call"}
    script = _worker("gp")

    def answer(messages: Any, number: int) -> Any:
        if number == 0:
            return AIMessage("", tool_calls=[call])
        return "All done." if any("gp is done." in str(m.content) for m in messages) else script(messages, number - 1)

    main, paid = ScriptedModel(script=answer), summarizer()
    middleware = SummarizationMiddleware(paid, backend=backend, trigger=("messages", 12), keep=("messages", 4))
    values = ask(deep_agent(main, backend, middleware), "sync", [HumanMessage("Go.", id="go")])
    assert values["messages"][-1].content == "All done."
    assert paid.sent
    assert len(list(tmp_path.rglob("*.md"))) == 1


def test_no_stream_shows_the_summary_being_written(tmp_path: Path) -> None:
    """Messages, updates, values, custom and ``astream_events``; the model object is unchanged."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    main, paid = ScriptedModel(script=lambda messages, number: "plain answer"), summarizer()
    before = paid.model_dump(exclude={"sent"})
    (messages,) = rounds(1)

    def fresh() -> Any:
        return deep_agent(main, backend, SummarizationMiddleware(paid, backend=backend, **SIZES))

    for mode in ("messages", "updates", "values", "custom"):
        for chunk in fresh().stream({"messages": messages}, THREAD, stream_mode=mode):
            assert "SUMMARYTOKEN" not in _shown(mode, chunk)

    async def events() -> list[Any]:
        stream = fresh().astream_events({"messages": messages}, THREAD, version="v2")
        return [event async for event in stream if event["event"].startswith("on_chat_model")]

    assert all("SUMMARYTOKEN" not in str(event["data"].get("chunk", "")) for event in anyio.run(events))
    assert len(paid.sent) >= 5
    assert paid.model_dump(exclude={"sent"}) == before


def _shown(mode: str, chunk: Any) -> str:
    """What a consumer of a stream takes for the conversation: message chunks, or the messages of a node or a state."""
    if mode == "messages":
        return str(chunk[0].content)
    if mode == "values":
        return str(chunk.get("messages"))
    if mode == "updates":
        return str([update.get("messages") for update in chunk.values() if update])
    return str(chunk)


@pytest.mark.parametrize("kind", ["filesystem", "store", "composite"])
def test_async_agents_never_block_the_event_loop(kind: str, tmp_path: Path) -> None:
    """Through two summaries, media, and the history file."""
    place = Place(kind, tmp_path)
    main, paid = ScriptedModel(), summarizer()
    agent = deep_agent(main, place.backend, SummarizationMiddleware(paid, backend=place.backend, **SIZES))
    image = {"type": "image", "base64": "iVBORw0KGgo" + "A" * 401, "mime_type": "image/png"}
    one, two = rounds(2)
    one.insert(0, HumanMessage([{"type": "text", "text": "[pic] Look"}, image], id="pic"))

    async def run() -> None:
        with nothing_blocks():
            await agent.ainvoke({"messages": one}, THREAD)
            await agent.ainvoke({"messages": two}, THREAD)

    anyio.run(run)
    assert len(paid.sent) >= 2
    assert POINTER.search(said(main.sent[-1]))


def test_nothing_is_said_twice_when_nothing_is_due(tmp_path: Path) -> None:
    """After a pass the view only grows until the next one, and no warning is given."""
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    main, paid = ScriptedModel(), summarizer()
    agent = deep_agent(main, backend, SummarizationMiddleware(paid, backend=backend, **SIZES))
    (messages,) = rounds(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(agent, "sync", messages)
        paid_before = len(paid.sent)
        for turn in range(8):
            ask(agent, "sync", [HumanMessage(f"[m{turn}]", id=f"m{turn}")])
    assert len(paid.sent) == paid_before
    texts = [[str(message.content) for message in sent] for sent in main.sent]
    for earlier, later in pairwise(texts):
        assert later[: len(earlier)] == earlier
