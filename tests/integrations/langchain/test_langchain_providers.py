"""LangChain's own clients of OpenAI and Anthropic against a provider on loopback: overflow, streams, usage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, ProviderServer, Request
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_scripted import ScriptedModel, read_file, talk
from langgraph.checkpoint.memory import InMemorySaver

from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware
from contextfold.observe import Event
from effort import crossed

openai = pytest.importorskip("langchain_openai")
anthropic = pytest.importorskip("langchain_anthropic")
backends = pytest.importorskip("deepagents.backends")

WINDOW = 6_000
THREAD: Any = {"configurable": {"thread_id": "t"}}
CLIENTS = ("chat", "responses", "anthropic")


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={"small": WINDOW}) as running:
        yield running


def client(kind: str, server: ProviderServer, **options: Any) -> Any:
    """A model whose window no one knows but the server."""
    # LangChain shares connections between clients for good; closed ones are no one's to clean up
    headers = {"Connection": "close"}
    options = {"model": "small", "api_key": "any", "max_retries": 0, "default_headers": headers, **options}
    if kind == "anthropic":
        return anthropic.ChatAnthropic(base_url=server.anthropic_url, max_tokens=300, **options)
    return openai.ChatOpenAI(base_url=server.openai_url, use_responses_api=kind == "responses", **options)


def questions(turn: int) -> Any:
    """A long history at first, one more exchange in each later turn."""
    return {"messages": [*talk(1 if turn else 40, start=40 * turn), HumanMessage("and now?", id=f"now{turn}")]}


def streamed(agent: Any, turn: int) -> str:
    """What a consumer of the ``messages`` stream sees."""
    seen = agent.stream(questions(turn), THREAD, stream_mode="messages")
    return "".join(message.text for message, _ in seen if isinstance(message, AIMessageChunk))


async def astreamed(agent: Any, turn: int) -> str:
    seen = agent.astream(questions(turn), THREAD, stream_mode="messages")
    return "".join([message.text async for message, _ in seen if isinstance(message, AIMessageChunk)])


@crossed(kind=CLIENTS, is_async=(False, True), streams=(False, True))
def test_a_refusal_is_answered_by_a_smaller_view(
    server: ProviderServer, kind: str, is_async: bool, streams: bool
) -> None:
    """One refusal, also one in the middle of a stream; then the window is known, and an event says of which endpoint.
    A consumer sees one answer.
    """
    events: list[Event] = []
    middleware = CompactionMiddleware(on_event=events.append)
    agent = create_agent(client(kind, server), [read_file], middleware=[middleware], checkpointer=InMemorySaver())
    before = len(server.requests)

    async def turns() -> list[str]:
        if streams:
            return [await astreamed(agent, turn) if is_async else streamed(agent, turn) for turn in range(3)]
        answered = [
            await agent.ainvoke(questions(turn), THREAD) if is_async else agent.invoke(questions(turn), THREAD)
            for turn in range(3)
        ]
        return [state["messages"][-1].text for state in answered]

    texts = asyncio.run(turns())
    sent = server.requests[before:]
    assert len(sent) == 4
    assert sent[0].tokens > WINDOW
    assert sent[0].error is not None
    assert all(request.error is None and request.tokens < WINDOW for request in sent[1:])
    assert texts == [request.answer.text for request in sent[1:] if request.answer]
    assert len(agent.get_state(THREAD).values["messages"]) == 80 + 2 + 2 * 4
    assert [
        event.data["endpoint"] in (server.openai_url, server.anthropic_url)
        for event in events
        if event.name == "window_learned"
    ] == [True]


def reading(calls: int) -> list[Any]:
    """A task whose calls open with one answer that thinks: a model with a budget thinks once, before its first call."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages: list[Any] = [HumanMessage("Read all logs.", id="task")]
    for n in range(calls):
        call = {"name": "read_file", "args": {"path": f"log_{n}.txt"}, "id": f"c{n}"}
        content: Any = [thought] if n == 0 else ""
        result = f"log_{n}.txt says {n * 7} " * 60
        messages += [
            AIMessage(content, tool_calls=[call], id=f"a{n}"),
            ToolMessage(result, tool_call_id=f"c{n}", name="read_file", id=f"t{n}"),
        ]
    return messages


def compacting(kind: str, folder: Path) -> Any:
    if kind == "CompactionMiddleware":
        return CompactionMiddleware(window=WINDOW)
    options: Any = {"trigger": ("tokens", 4_000), "keep": ("messages", 6)}
    writer = ScriptedModel()
    if kind == "langchain":
        return SummarizationMiddleware(writer, **options)
    from contextfold.integrations import deepagents

    backend = backends.FilesystemBackend(root_dir=folder, virtual_mode=True)
    return deepagents.SummarizationMiddleware(writer, backend=backend, **options)


@crossed(kind=("CompactionMiddleware", "langchain", "deepagents"), is_setting=(False, True))
def test_calls_whose_thinking_was_summarized_go_on_without_and_the_next_turn_thinks_again(
    server: ProviderServer, tmp_path: Path, kind: str, is_setting: bool
) -> None:
    """Behind an answer without thinking, Anthropic takes no budget, nor edits that clear thinking."""
    own: Any = {
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }
    options = {"betas": ["context-management-2025-06-27"], **({} if is_setting else own)}
    model = client("anthropic", server, **options).model_copy(update={"max_tokens": 2_000})

    @wrap_model_call
    def asking(request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings={**request.model_settings, **own}) if is_setting else request)

    middleware = [asking, compacting(kind, tmp_path)]
    agent = create_agent(model, [read_file], middleware=middleware, checkpointer=InMemorySaver())
    before = len(server.requests)

    def sent(messages: list[Any]) -> dict[str, Any]:
        agent.invoke({"messages": messages}, THREAD)
        return dict(server.requests[-1].body)

    whole = sent(reading(2))
    assert {name: whole[name] for name in own} == own
    view = sent(reading(40)[5:])
    assert view["thinking"] == {"type": "disabled"}
    assert "context_management" not in view
    later = sent([HumanMessage("And now?", id="now")])
    assert {name: later[name] for name in own} == own
    assert all(request.error is None for request in server.requests[before:])


@crossed(kind=CLIENTS, finish=("length", "content_filter"))
def test_a_summary_that_was_cut_off_or_filtered_is_not_used(kind: str, finish: str) -> None:
    """Each API has a name of its own for how an answer ended."""
    said = "The user asked many things, and each of them was answered in some words, and"
    with ProviderServer(answers=lambda request: Answer(said, finish=finish)) as cutting:  # type: ignore[arg-type]
        middleware = SummarizationMiddleware(client(kind, cutting), trigger=("tokens", 4_000), keep=("messages", 4))
        assert middleware.before_model({"messages": talk(40)}, None) is None  # type: ignore[arg-type, typeddict-item]
        assert cutting.requests


@pytest.mark.parametrize("kind", ["CompactionMiddleware", "deepagents"])
def test_prompt_and_answer_that_do_not_fit_together_make_the_prompt_smaller(
    server: ProviderServer, tmp_path: Path, kind: str
) -> None:
    """A middleware knows no answer limit that it could lower."""
    model = client("anthropic", server).model_copy(update={"max_tokens": 3_000})
    agent = create_agent(model, [read_file], middleware=[compacting(kind, tmp_path)], checkpointer=InMemorySaver())
    before = len(server.requests)
    for turn in range(12):
        words = talk(1, words=300, start=turn)
        agent.invoke({"messages": [*words, HumanMessage(f"and {turn}?", id=f"n{turn}")]}, THREAD)
    sent = server.requests[before:]
    refused = [request.error for request in sent if request.error is not None]
    assert refused
    assert len(refused) < len(sent) / 2
    assert "max_tokens" in str(refused[0])


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_summarizers_own_window_is_found_out(server: ProviderServer, kind: str) -> None:
    """No one knows it and the whole history goes into one request; it is halved until it is read."""
    writer, model = client(kind, server), client(kind, server, model="large")
    middleware = SummarizationMiddleware(
        writer, trigger=("tokens", 9_000), keep=("messages", 4), trim_tokens_to_summarize=None
    )
    agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
    before = len(server.requests)
    thread = agent.invoke(questions(0), THREAD)["messages"]
    asked = [request for request in server.requests[before:] if request.model == "small"]
    assert asked[0].error is not None
    read = "".join(request.text for request in asked if request.error is None)
    assert all(f"Question {turn}:" in read for turn in range(38))
    assert thread[0].additional_kwargs["lc_source"] == "summarization"
    assert len(thread) <= 7


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_a_summary_does_not_end_at_the_stop_words_of_the_agents_model(kind: str, is_refused: bool) -> None:
    """They are fields of the chat model; the task's own requests keep them. So it is where the words that leave are
    sent alone.
    """
    summary = "<summary>The files were read, and nothing is open.</summary>"

    def answer(request: Request) -> str:
        if "Pause the task" in request.text and is_refused:
            return "I go on."
        return summary if "Pause the task" in request.text or "<conversation>" in request.text else "Seen."

    own: dict[str, Any] = {"stop": ["nothing"]}
    if kind == "chat":
        predicted = {"type": "content", "content": "part " * 100}
        own |= {"n": 1, "logit_bias": {50256: -100}, "model_kwargs": {"prediction": predicted}}
    fields = {"stop", "stop_sequences", "logit_bias", "prediction"}
    with ProviderServer(default_window=WINDOW, answers=answer) as server:
        middleware = CompactionMiddleware(window=WINDOW, summarizer="same")
        agent = create_agent(
            client(kind, server, **own), [read_file], middleware=[middleware], checkpointer=InMemorySaver()
        )
        for turn in range(30):
            agent.invoke(questions(turn), THREAD)
        sent = list(server.requests)
    asked = [one for one in sent if "Pause the task" in one.text or "tools" not in one.body]
    assert any("Pause the task" in one.text for one in asked)
    assert any("tools" not in one.body for one in asked)
    assert not [one.body.keys() & fields for one in asked if one.body.keys() & fields]
    assert all(one.body.keys() & fields for one in sent if one not in asked)


def test_a_model_that_is_configured_for_each_request_writes_the_summary() -> None:
    """``init_chat_model`` gives such a one, which has no fields of its own."""
    summary = "<summary>The files were read, and nothing is open.</summary>"
    told: list[str] = []
    middleware = CompactionMiddleware(window=WINDOW, summarizer="same", on_event=lambda event: told.append(event.name))
    with ProviderServer(
        default_window=WINDOW, answers=lambda request: summary if "Pause the task" in request.text else "Seen."
    ) as server:
        model: Any = init_chat_model(
            "gpt-4o",
            model_provider="openai",
            configurable_fields=("temperature",),
            base_url=server.openai_url,
            api_key="any",
            default_headers={"Connection": "close"},
        )
        agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
        for turn in range(30):
            agent.invoke(questions(turn), THREAD)
        assert any("Pause the task" in one.text for one in server.requests)
    assert "summary_model_failed" not in told
