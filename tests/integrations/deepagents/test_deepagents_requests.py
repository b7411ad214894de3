"""Requests that a provider refuses, media, reasoning, the tool, and many threads on one instance."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from deepagents import _excluded_middleware, create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from deepagents.profiles import HarnessProfile
from deepagents_scripted import (
    SUMMARY,
    ScriptedModel,
    problems_of,
    prompts,
    questions,
    said,
    summarizer,
    tool_loop,
    written,
)
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from contextfold import count_tokens
from contextfold.integrations.deepagents import (
    SummarizationMiddleware,
    SummarizationToolMiddleware,
    compute_summarization_defaults,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)

THREAD: Any = {"configurable": {"thread_id": "t"}}
WHOLE: Any = {"keep": ("messages", 4), "trim_tokens_to_summarize": None}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 200).decode()


@pytest.fixture
def backend(tmp_path: Path) -> FilesystemBackend:
    return FilesystemBackend(root_dir=tmp_path, virtual_mode=True)


def deep_agent(main: ScriptedModel, backend: Any, *middleware: Any) -> Any:
    return create_deep_agent(main, backend=backend, middleware=list(middleware), checkpointer=InMemorySaver())


def ask(agent: Any, color: str, messages: list[AnyMessage]) -> dict[str, Any]:
    if color == "sync":
        return dict(agent.invoke({"messages": messages}, THREAD))

    async def run() -> dict[str, Any]:
        return dict(await agent.ainvoke({"messages": messages}, THREAD))

    return anyio.run(run)


def limited(tokens: int) -> ScriptedModel:
    """A model that refuses requests of more tokens."""

    def script(messages: list[BaseMessage], number: int) -> Any:
        size = count_tokens(messages)
        return ContextOverflowError(f"prompt is too long: {size} tokens > {tokens} maximum") if size > tokens else "ok"

    return ScriptedModel(script=script)


# ---- refusals ----


@pytest.mark.parametrize("color", ["sync", "async"])
def test_after_a_refusal_a_smaller_request_is_sent_once(backend: FilesystemBackend, color: str) -> None:
    """No trigger at all; the refusal names the limit, and the second request is below it. The event is stored."""
    main, paid = limited(3_000), summarizer()
    agent = deep_agent(main, backend, SummarizationMiddleware(paid, backend=backend, keep=("messages", 4)))
    ask(agent, color, [*questions(40), HumanMessage("[q]", id="q")])
    assert len(main.sent) == 2
    assert count_tokens(main.sent[1]) <= 3_000 < count_tokens(main.sent[0])
    assert SUMMARY in said(main.sent[1])
    ask(agent, color, [HumanMessage("[next]", id="next")])
    assert len(main.sent) == 3


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(("share", "calls"), [(1.4, 2), (2, 1)])
def test_a_refusal_without_a_word_is_one_of_size_where_the_window_is_nearly_full(
    backend: FilesystemBackend, color: str, share: float, calls: int
) -> None:
    thread = questions(40)
    main = ScriptedModel(script=lambda messages, number: "ok" if number else BadRequestError("Error code: 400"))
    main.profile = {"max_input_tokens": int(share * count_tokens(thread))}
    middleware = SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 4))
    with nullcontext() if calls == 2 else pytest.raises(BadRequestError):
        ask(deep_agent(main, backend, middleware), color, thread)
    assert len(main.sent) == calls


class BadRequestError(Exception):
    """An answer without a body."""

    status_code = 400


@pytest.mark.parametrize("words", [40, 3_000])
def test_behind_a_refusal_a_summary_takes_less_than_what_it_stands_for(backend: FilesystemBackend, words: int) -> None:
    """Little of the thread may leave beside a newest message that alone is above half of what was refused."""
    thread = [*questions(3, words=12), HumanMessage("word " * words, id="h")]
    main = limited(count_tokens(thread))
    ask(
        deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 2))),
        "sync",
        thread,
    )
    assert len(main.sent) == 2
    assert count_tokens(main.sent[1]) < count_tokens(main.sent[0])
    assert SUMMARY in said(main.sent[1])


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_summarizer_that_failed_before_a_call_is_not_asked_again_behind_its_refusal(
    backend: FilesystemBackend, color: str
) -> None:
    """The built-in summary stands in, and the next call asks again."""
    main, failing = limited(3_000), ScriptedModel(script=lambda messages, number: ValueError("no key"))
    middleware = SummarizationMiddleware(failing, backend=backend, trigger=("tokens", 2_500), **WHOLE)
    agent = deep_agent(main, backend, middleware)
    ask(agent, color, [*questions(40), HumanMessage("[q]", id="q")])
    assert (len(main.sent), len(failing.sent)) == (2, 1)
    ask(agent, color, [*questions(40, start=40), HumanMessage("[next]", id="next")])
    assert (len(main.sent), len(failing.sent)) == (4, 2)


def test_a_tiny_window_in_a_profile_costs_no_more_requests_than_deepagents_sends(backend: FilesystemBackend) -> None:
    """A double's profile is no limit; a summary is one request where the model takes it."""
    main = limited(3_000)
    paid = ScriptedModel(script=lambda messages, number: SUMMARY, profile={"max_input_tokens": 1_000})
    middleware = SummarizationMiddleware(paid, backend=backend, keep=("messages", 4), trim_tokens_to_summarize=None)
    ask(deep_agent(main, backend, middleware), "sync", [*questions(40), HumanMessage("[q]", id="q")])
    assert (len(main.sent), len(paid.sent)) == (2, 1)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_cannot_shrink_raises_one_clear_error(backend: FilesystemBackend, color: str) -> None:
    """One message that is too long; no request is repeated, and the error names the sizes."""
    main = limited(1_000)
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend))
    with pytest.raises(ContextOverflowError, match=r"refused .* tokens as too long, and nothing more can leave"):
        ask(agent, color, [HumanMessage("word " * 4_000, id="h")])
    assert len(main.sent) == 1


def test_a_second_refusal_raises(backend: FilesystemBackend) -> None:
    main = ScriptedModel(script=lambda messages, number: ContextOverflowError("prompt is too long"))
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 4)))
    with pytest.raises(ContextOverflowError, match=r"does not fit after recovery: the provider refused .* were left"):
        ask(agent, "sync", [*questions(40), HumanMessage("[q]", id="q")])
    assert len(main.sent) == 2


def test_other_errors_are_left_alone(backend: FilesystemBackend) -> None:
    failures = [ConnectionError("gone"), ContextOverflowError("prompt is too long"), ConnectionError("gone again")]
    main = ScriptedModel(script=lambda messages, number: failures[number])
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 4)))
    with pytest.raises(ConnectionError, match="gone\n"):
        ask(agent, "sync", [*questions(40), HumanMessage("[q]", id="q")])
    with pytest.raises(ConnectionError, match="gone again"):
        ask(agent, "sync", [HumanMessage("[r]", id="r")])


@pytest.mark.parametrize("color", ["sync", "async"])
def test_large_results_at_the_end_move_to_the_backend(backend: FilesystemBackend, tmp_path: Path, color: str) -> None:
    """The model has not read them, so they cannot be summarized: a preview stands in, and the file has every word."""
    main = limited(3_000)
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 4)))
    text = "\n".join(f"row {number} is fine" for number in range(4_000))
    messages: list[AnyMessage] = [
        *tool_loop(6),
        AIMessage("", id="ax", tool_calls=[{"name": "grep", "args": {"pattern": "row"}, "id": "call.x"}]),
        ToolMessage(text, tool_call_id="call.x", name="grep", id="tx"),
    ]
    values = ask(agent, color, messages)
    assert (tmp_path / "large_tool_results" / "call_x").read_text() == text
    assert not problems_of(main.sent[-1])
    assert count_tokens(main.sent[-1]) <= 3_000
    result = next(message for message in values["messages"] if message.id == "tx")
    assert "/large_tool_results/call_x" in result.content
    assert "row 0 is fine" in result.content
    assert "row 3999 is fine" in result.content


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_large_result_is_written_by_write_byte_for_byte(tmp_path: Path, color: str) -> None:
    """As deepagents does it, so that a backend that guards ``write`` sees it; what it changes is put right."""
    written_to: list[str] = []

    class Guarded(FilesystemBackend):
        def write(self, file_path: str, content: str) -> Any:
            written_to.append(file_path)
            return super().write(file_path, content.replace("\r\n", "\n"))

    backend = Guarded(root_dir=tmp_path, virtual_mode=True)
    agent = deep_agent(limited(3_000), backend, SummarizationMiddleware(summarizer(), backend=backend))
    text = "a row\r\n" * 4_000
    call = {"name": "grep", "args": {}, "id": "c"}
    messages = [HumanMessage("Go", id="h"), AIMessage("", tool_calls=[call], id="a")]
    ask(agent, color, [*messages, ToolMessage(text, tool_call_id="c", id="t")])
    assert "/large_tool_results/c" in written_to
    assert (tmp_path / "large_tool_results" / "c").read_bytes() == text.encode()


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("profile", [None, {"max_input_tokens": 8_000}])
def test_a_result_that_cannot_be_saved_is_sent_shortened(
    tmp_path: Path, profile: dict[str, Any] | None, color: str
) -> None:
    """By a profile or behind a refusal; the state keeps every word, and the thread goes on."""

    class ReadOnly(FilesystemBackend):
        def write(self, file_path: str, content: str) -> Any:
            raise PermissionError("read only")

    backend = ReadOnly(root_dir=tmp_path, virtual_mode=True)
    main = ScriptedModel(script=limited(5_500).script, profile=profile)
    agent = deep_agent(main, backend, SummarizationMiddleware(summarizer(), backend=backend))
    text = "\n".join(f"row {number} is fine" for number in range(4_000))
    call = {"name": "grep", "args": {}, "id": "c"}
    messages = [HumanMessage("Go", id="h"), AIMessage("", tool_calls=[call], id="a")]
    values = ask(agent, color, [*messages, ToolMessage(text, tool_call_id="c", id="t")])
    assert next(message for message in values["messages"] if message.id == "t").content == text
    result = main.sent[-1][-1].content
    assert "row 0 is fine" in result
    assert "row 3999 is fine" in result
    assert "row 2000 is fine" not in result
    assert "large_tool_results" not in said(main.sent[-1])
    with pytest.warns(UserWarning, match="could not be saved"):  # of the history, which is summarized now
        assert ask(agent, color, [HumanMessage("And now?", id="h2")])["messages"][-1].content == "ok"
    assert not problems_of(main.sent[-1])


def test_a_result_is_sent_as_short_as_a_counter_of_the_users_own_says(tmp_path: Path) -> None:
    """One that counts characters, which are several for each token of our estimate."""

    def characters(messages: Any) -> int:
        return sum(len(str(message.content)) for message in messages)

    class ReadOnly(FilesystemBackend):
        def write(self, file_path: str, content: str) -> Any:
            raise PermissionError("read only")

    backend = ReadOnly(root_dir=tmp_path, virtual_mode=True)
    main = ScriptedModel(profile={"max_input_tokens": 10_000})
    middleware = SummarizationMiddleware(summarizer(), backend=backend, token_counter=characters)
    call = {"name": "grep", "args": {}, "id": "c"}
    messages = [HumanMessage("Go", id="h"), AIMessage("", tool_calls=[call], id="a")]
    sent: list[BaseMessage] = []
    request = request_of([*messages, ToolMessage("row " * 5_000, tool_call_id="c", id="t")], {}, main)
    middleware.wrap_model_call(request, lambda given: sent.extend(given.messages) or answered())
    assert 0 < characters(sent) < 10_000


def test_a_profile_keeps_requests_inside_the_input_limit(backend: FilesystemBackend) -> None:
    """Without a trigger, the model's profile and its answer limit say when; what stays above it is not sent."""
    main = ScriptedModel(profile={"max_input_tokens": 8_000})
    middleware = SummarizationMiddleware(summarizer(), backend=backend, keep=("messages", 4))
    agent = deep_agent(main, backend, middleware)
    ask(agent, "sync", [*questions(60), HumanMessage("[q]", id="q")])
    assert count_tokens(main.sent[-1]) < 8_000
    assert SUMMARY in said(main.sent[-1])
    with pytest.raises(ContextOverflowError, match="above the input budget after compaction"):
        ask(agent, "sync", [HumanMessage("word " * 20_000, id="long")])
    assert len(main.sent) == 1


def test_the_input_limit_counts_where_the_trigger_is_above_it(backend: FilesystemBackend) -> None:
    """A large answer leaves less room than the trigger says: the pass ends inside the room."""
    main = ScriptedModel(profile={"max_input_tokens": 10_000})
    middleware = SummarizationMiddleware(
        ScriptedModel(script=lambda messages, number: SUMMARY, profile={"max_input_tokens": 10_000}),
        backend=backend,
        trigger=("fraction", 0.9),
    )
    sent: list[BaseMessage] = []
    request = request_of([*questions(60), HumanMessage("[q]", id="q")], {}, main, {"max_tokens": 5_000})
    middleware.wrap_model_call(request, lambda given: sent.extend(given.messages) or answered())
    assert count_tokens(sent) < 4_500
    assert SUMMARY in said(sent)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_summarizer_of_ones_own_reads_messages(backend: FilesystemBackend, color: str) -> None:
    """A callable gets messages; one that returns something else than text is a mistake, and says so."""
    read: list[BaseMessage] = []
    main = ScriptedModel()
    settings: dict[str, Any] = {"backend": backend, "trigger": ("messages", 20), "keep": ("messages", 4)}
    own = SummarizationMiddleware(main, summarizer=lambda messages: read.extend(messages) or SUMMARY, **settings)
    ask(deep_agent(main, backend, own), color, [*questions(12), HumanMessage("[q]", id="q")])
    assert {f"h{number}" for number in range(10)} <= {message.id for message in read}
    assert SUMMARY in said(main.sent[-1])
    wrong = SummarizationMiddleware(main, summarizer=lambda messages: 3, **settings)
    with pytest.raises(TypeError, match="must return a str"):
        ask(deep_agent(main, backend, wrong), color, [*questions(12), HumanMessage("[q]", id="q")])


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_counter_of_the_users_own_gets_system_message_and_tools(backend: FilesystemBackend, color: str) -> None:
    """As deepagents gives them: the system message first, and ``tools=`` where the counter takes them."""
    given: list[tuple[type[BaseMessage], int]] = []

    def count(messages: list[BaseMessage], tools: Any = None) -> int:
        given.append((type(messages[0]), len(tools or ())))
        return 10 * len(messages) + 100 * len(tools or ())

    main = ScriptedModel()
    middleware = SummarizationMiddleware(
        summarizer(), backend=backend, trigger=("tokens", 400), keep=("messages", 4), token_counter=count
    )
    ask(deep_agent(main, backend, middleware), color, [*questions(2), HumanMessage("[q]", id="q")])
    whole = [tools for first, tools in given if first is SystemMessage]
    assert whole
    assert min(whole) >= 5  # those that deepagents gives its agents
    assert middleware._should_summarize(questions(1), max(10 * 6 + 100 * tools for tools in whole))


def test_a_counter_is_asked_once_where_keep_is_in_messages(backend: FilesystemBackend) -> None:
    """And once more after arguments were truncated: a counter of the user's own may ask a server."""
    asked: list[int] = []

    def count(messages: list[BaseMessage], tools: Any = None) -> int:
        asked.append(len(messages))
        return 10

    truncation = {"trigger": ("messages", 3), "keep": ("messages", 2), "max_length": 100}
    middleware = SummarizationMiddleware(
        summarizer(),
        backend=backend,
        trigger=("messages", 100),
        token_counter=count,
        truncate_args_settings=truncation,
    )
    main = ScriptedModel()
    ask(deep_agent(main, backend, middleware), "sync", [*written(1, "x" * 200), *questions(2), HumanMessage("[q]")])
    assert main.sent[-1][1].tool_calls[0]["args"]["content"] == "x" * 20 + "...(argument truncated)"
    assert len(asked) == 2


class Undeclared:
    """A counter that does not say what it takes, as one in C."""

    def __init__(self, counted: Callable[..., int]) -> None:
        self.counted = counted

    def __call__(self, *arguments: Any, **named: Any) -> int:
        return self.counted(*arguments, **named)

    @property
    def __signature__(self) -> Any:
        raise ValueError("no signature")


def test_a_counter_that_does_not_say_what_it_takes_is_tried_with_tools(backend: FilesystemBackend) -> None:
    given: list[int] = []
    takes_none = Undeclared(lambda messages: given.append(0) or 10)
    takes_tools = Undeclared(lambda messages, tools=None: given.append(len(tools or ())) or 10)
    for counter, most in ((takes_none, 0), (takes_tools, 5)):
        given.clear()
        middleware = SummarizationMiddleware(summarizer(), backend=backend, token_counter=counter)
        assert middleware._counter_accepts_tools is None  # what deepagents' class says of it
        ask(deep_agent(ScriptedModel(), backend, middleware), "sync", questions(1))
        assert max(given) >= most


def test_a_mistake_in_a_counter_is_raised_and_not_counted_around(backend: FilesystemBackend) -> None:
    def count(messages: list[BaseMessage], tools: Any = None) -> int:
        raise TypeError("no schema for this tool")

    middleware = SummarizationMiddleware(summarizer(), backend=backend, token_counter=count)
    with pytest.raises(TypeError, match="no schema for this tool"):
        ask(deep_agent(ScriptedModel(), backend, middleware), "sync", questions(1))


def test_a_profile_that_excludes_deepagents_class_excludes_ours(backend: FilesystemBackend) -> None:
    """And one of the user's own, below ours, is named by itself, as below deepagents' class."""

    class Own(SummarizationMiddleware):
        pass

    ours, own = (cls(summarizer(), backend=backend) for cls in (SummarizationMiddleware, Own))
    assert (ours.excluded_as, own.excluded_as) == (DeepAgentsMiddleware, Own)
    profile = HarnessProfile(excluded_middleware=frozenset({DeepAgentsMiddleware}))
    if hasattr(_excluded_middleware, "_exclusion_type"):  # the first releases of 0.7 match exact types alone
        assert _excluded_middleware._apply_excluded_middleware([ours, own], profile) == [own]


# ---- media and reasoning ----


@pytest.mark.parametrize("color", ["sync", "async"])
def test_media_are_stored_once_and_referred_to(backend: FilesystemBackend, tmp_path: Path, color: str) -> None:
    """In the folder ``media`` by content, named in the history and to the summarizer, which gets no base64."""
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    vector = {"type": "image_url", "image_url": {"url": "data:image/svg+xml,%3Csvg%2F%3E"}}
    pdf = {"type": "file", "base64": base64.b64encode(b"%PDF-1.4").decode(), "mime_type": "application/pdf"}
    main, paid = ScriptedModel(), summarizer()
    messages: list[AnyMessage] = [HumanMessage([{"type": "text", "text": "[m] Look"}, image, url, vector, pdf], id="m")]
    middleware = SummarizationMiddleware(paid, backend=backend, trigger=("messages", 20), keep=("messages", 4))
    ask(deep_agent(main, backend, middleware), color, [*messages, *questions(12), HumanMessage("[q]", id="q")])
    stored = {file.name: file.read_bytes() for file in (tmp_path / "conversation_history" / "media").iterdir()}
    assert sorted(name.rpartition(".")[2] for name in stored) == ["pdf", "png", "svg"]
    assert base64.b64decode(PNG) in stored.values()
    assert b"<svg/>" in stored.values()
    (history,) = (tmp_path / "conversation_history").glob("*.md")
    text = history.read_text()
    for name in stored:
        reference = f"/conversation_history/media/{name}"
        assert reference in text
        assert reference in prompts(paid)
    assert text.count("<image url=") == 3
    assert PNG not in prompts(paid)
    assert PNG not in text


def test_media_that_cannot_be_stored_are_named_nowhere(tmp_path: Path) -> None:
    """A pointer is shown only if it resolves; the state still has the medium."""

    class NoUploads(FilesystemBackend):
        def upload_files(self, files: Any) -> Any:
            raise PermissionError("read only")

    backend = NoUploads(root_dir=tmp_path, virtual_mode=True)

    def echo(asked: list[BaseMessage], number: int) -> str:
        found = re.search(r"/conversation_history/media/[0-9a-f]{16}\.png", said(asked))
        return f"A picture is at {found and found[0]} for later."

    main, paid = ScriptedModel(), ScriptedModel(script=echo)
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    middleware = SummarizationMiddleware(
        paid,
        backend=backend,
        trigger=("messages", 20),
        keep=("messages", 4),
        trim_tokens_to_summarize=None,
        evidence=False,
    )
    agent = deep_agent(main, backend, middleware)
    with pytest.warns(UserWarning, match="1 media could not be offloaded"):
        ask(agent, "sync", [HumanMessage([image], id="m"), *questions(12), HumanMessage("[q]", id="q")])
    (history,) = tmp_path.rglob("*.md")
    assert "failed_to_offload" in history.read_text()
    assert "/media/" not in said(main.sent[-1])
    assert "A picture is at (not saved) for later." in said(main.sent[-1])


@pytest.mark.parametrize("provider", ["anthropic", None, "google_genai"])
def test_reasoning_from_before_a_summary_is_gone_or_as_it_was(backend: FilesystemBackend, provider: str | None) -> None:
    """Claude's blocks go from messages kept from before the summary, and stay in those that came after it."""
    metadata = {"model_provider": provider} if provider else {}
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s=="}, {"type": "text", "text": "[think] Yes."}]
    later = AIMessage(content=thought, response_metadata=metadata, id="later")
    main = ScriptedModel(script=lambda messages, number: later if number == 0 else "ok")
    middleware = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 20), keep=("messages", 5))
    agent = deep_agent(main, backend, middleware)
    kept = AIMessage(content=thought, response_metadata=metadata, id="kept")
    alone = AIMessage(content=thought[:1], response_metadata=metadata, id="alone")
    ask(agent, "sync", [*questions(12), HumanMessage("[x]", id="x"), kept, alone, HumanMessage("[q]", id="q")])
    ask(agent, "sync", [HumanMessage("[r]", id="r")])
    sent = {message.id: message.content for message in main.sent[-1]}
    assert sent["kept"] == (thought if provider == "google_genai" else thought[1:])
    assert ("alone" in sent) == (provider == "google_genai")
    assert sent["later"] == thought
    assert [m.content for m in agent.get_state(THREAD).values["messages"] if m.id == "kept"] == [thought]


def test_a_profile_that_says_zero_rules_nothing_out(backend: FilesystemBackend) -> None:
    main = ScriptedModel(profile={"max_input_tokens": 0})
    summarization = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 40))
    values = ask(deep_agent(main, backend, summarization), "sync", [HumanMessage("[q]", id="q")])
    assert values["messages"][-1].content == "ok"


# ---- the tool ----


@pytest.mark.parametrize("color", ["sync", "async"])
def test_the_agent_compacts_from_half_of_the_trigger_on(backend: FilesystemBackend, tmp_path: Path, color: str) -> None:
    compact = {"name": "compact_conversation", "args": {}}

    def script(messages: list[BaseMessage], number: int) -> Any:
        calls: Any = [{**compact, "id": f"compact-{number}"}]
        return AIMessage("", tool_calls=calls, id=f"call-{number}") if number in (0, 2) else "ok"

    main, paid = ScriptedModel(script=script), summarizer()
    summarization = SummarizationMiddleware(paid, backend=backend, trigger=("messages", 60), keep=("messages", 4))
    tool = SummarizationToolMiddleware(summarization, system_prompt="COMPACT when a task is done.")
    agent = deep_agent(main, backend, summarization, tool)
    values = ask(agent, color, [*questions(5), HumanMessage("[q]", id="q")])
    assert "Nothing to compact yet" in said(values["messages"])
    assert not paid.sent
    values = ask(agent, color, [*questions(12, start=5), HumanMessage("[r]", id="r")])
    assert "Conversation compacted. Summarized" in said(values["messages"])
    assert len(main.sent[-1]) < 14
    assert SUMMARY in said(main.sent[-1])
    assert "COMPACT when a task is done." in said(main.sent[-1])
    assert not problems_of(main.sent[-1])
    assert len(list(tmp_path.rglob("*.md"))) == 1


def test_the_agent_may_compact_twice_in_one_step(backend: FilesystemBackend) -> None:
    calls: Any = [{"name": "compact_conversation", "args": {}, "id": call_id} for call_id in ("c", "d")]
    main = ScriptedModel(script=lambda messages, number: AIMessage("", tool_calls=calls) if number == 0 else "ok")
    summarization = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 40))
    agent = deep_agent(main, backend, summarization, SummarizationToolMiddleware(summarization))
    values = ask(agent, "sync", [*questions(15), HumanMessage("[q]", id="q")])
    assert values["messages"][-1].content == "ok"
    assert SUMMARY in said(main.sent[-1])
    assert not problems_of(main.sent[-1])


def test_a_failed_summary_is_the_tools_answer(backend: FilesystemBackend) -> None:
    calls: Any = [{"name": "compact_conversation", "args": {}, "id": "c"}]
    main = ScriptedModel(script=lambda messages, number: AIMessage("", tool_calls=calls) if number == 0 else "ok")
    summarization = SummarizationMiddleware(summarizer(RuntimeError("down")), backend=backend, trigger=("messages", 40))
    agent = deep_agent(main, backend, summarization, SummarizationToolMiddleware(summarization))
    values = ask(agent, "sync", [*questions(15), HumanMessage("[q]", id="q")])
    assert "Compaction failed" in said(values["messages"])
    assert agent.get_state(THREAD).values.get("_summarization_event") is None


@pytest.mark.parametrize("color", ["sync", "async"])
def test_the_tool_says_that_nothing_may_leave_and_no_summary_failed(backend: FilesystemBackend, color: str) -> None:
    calls: Any = [{"name": "compact_conversation", "args": {}, "id": "c"}]
    main = ScriptedModel(script=lambda messages, number: AIMessage("", tool_calls=calls) if number == 0 else "ok")
    paid = summarizer()
    summarization = SummarizationMiddleware(paid, backend=backend, trigger=("messages", 20), keep=("messages", 30))
    agent = deep_agent(main, backend, SummarizationToolMiddleware(summarization))
    values = ask(agent, color, [*questions(6), HumanMessage("[q]", id="q")])
    assert "Nothing to compact yet: all of the conversation is recent" in said(values["messages"])
    assert not paid.sent


def test_the_tool_takes_only_our_middleware() -> None:
    with pytest.raises(TypeError, match=r"contextfold\.integrations\.deepagents"):
        SummarizationToolMiddleware(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="system_prompt"):
        SummarizationToolMiddleware(
            create_summarization_middleware(ScriptedModel(), StateBackend()),
            system_prompt=3,  # type: ignore[arg-type]
        )


# ---- construction ----


def test_factories_set_what_deepagents_sets() -> None:
    from deepagents.middleware import summarization as theirs

    for profile in (None, {"max_input_tokens": 100_000}):
        model = ScriptedModel(profile=profile)
        made = create_summarization_middleware(model, StateBackend(), instructions="Keep ids.")
        original = theirs.create_summarization_middleware(model, StateBackend())
        assert isinstance(made, theirs.SummarizationMiddleware)
        assert made.name == original.name == "SummarizationMiddleware"
        assert made.model is original.model is model
        helpers = (made._lc_helper, original._lc_helper)
        assert helpers[0].trigger == helpers[1].trigger
        assert helpers[0].keep == helpers[1].keep
        assert made.passes.arguments.max_length == 2_000
        assert compute_summarization_defaults(model) == theirs.compute_summarization_defaults(model)
        tool = create_summarization_tool_middleware(model, StateBackend())
        assert [found.name for found in tool.tools] == ["compact_conversation"]
        assert isinstance(tool, theirs.SummarizationToolMiddleware)
    with pytest.raises(TypeError, match="BaseChatModel"):
        create_summarization_middleware("openai:gpt", StateBackend())  # type: ignore[arg-type]


def test_wrong_arguments_are_refused_as_by_deepagents() -> None:
    with pytest.raises(TypeError, match="history_path_prefix"):
        SummarizationMiddleware(ScriptedModel(), backend=StateBackend(), history_path_prefix="/x")
    with pytest.raises(ValueError, match="Model profile information is required"):
        SummarizationMiddleware(ScriptedModel(), backend=StateBackend(), trigger=("fraction", 0.5))
    with pytest.raises(ValueError, match="unknown unit"):
        SummarizationMiddleware(
            ScriptedModel(), backend=StateBackend(), truncate_args_settings={"trigger": ("words", 5)}
        )


# ---- many threads ----


def answered() -> ModelResponse[Any]:
    return ModelResponse(result=[AIMessage("ok")])


def request_of(
    messages: list[AnyMessage],
    state: dict[str, Any],
    model: ScriptedModel | None = None,
    settings: dict[str, Any] | None = None,
) -> ModelRequest[Any]:
    return ModelRequest(
        model=model or ScriptedModel(),
        model_settings=settings or {},
        messages=messages,
        system_message=SystemMessage("Be brief."),
        state={"messages": messages, **state},  # type: ignore[arg-type]
        runtime=None,
    )


@pytest.mark.strict
def test_a_thousand_interleaved_runs_share_nothing(backend: FilesystemBackend) -> None:
    """100 threads of ten calls each on one instance, eight at a time; no thread sees a word of another."""

    def echo(asked: list[BaseMessage], number: int) -> str:
        return "SUMMARY of " + said(asked).partition("owner-")[2].partition(" ")[0]

    middleware = SummarizationMiddleware(
        ScriptedModel(script=echo), backend=backend, trigger=("messages", 8), keep=("messages", 3), evidence=False
    )

    def thread(number: int) -> int:
        messages: list[AnyMessage] = []
        state: dict[str, Any] = {}
        summaries = 0
        for turn in range(10):
            messages = [*messages, HumanMessage(f"owner-{number} asks", id=f"h{number}-{turn}")]
            sent: list[BaseMessage] = []

            def handler(request: ModelRequest[Any], sent: list[BaseMessage] = sent) -> ModelResponse[Any]:
                sent += request.messages
                return ModelResponse(result=[AIMessage("ok")])

            answer = middleware.wrap_model_call(request_of(messages, state), handler)
            state = {**state, **answer.command.update} if not isinstance(answer, ModelResponse) else state
            owners = {word for message in sent for word in str(message.content).split() if word.startswith("owner-")}
            assert owners == {f"owner-{number}"}
            summaries += "SUMMARY of" in said(sent)
            messages = [*messages, AIMessage(f"owner-{number} gets an answer", id=f"a{number}-{turn}")]
        return summaries

    with ThreadPoolExecutor(8) as pool:
        assert all(found >= 5 for found in pool.map(thread, range(100)))


def test_truncation_needs_no_ids(backend: FilesystemBackend) -> None:
    """Messages that no graph has given ids: they are truncated, and nothing can be remembered of it."""
    arguments = {"file_path": "/a", "content": "x" * 3_000}
    calls: Any = [{"name": "write_file", "args": arguments, "id": "c"}]
    messages: list[AnyMessage] = [
        HumanMessage("Go"),
        AIMessage("", tool_calls=calls),
        ToolMessage("ok", tool_call_id="c"),
        HumanMessage("And?"),
    ]
    settings = {"trigger": ("messages", 2), "keep": ("messages", 1)}
    middleware = SummarizationMiddleware(summarizer(), backend=backend, truncate_args_settings=settings)
    sent: list[BaseMessage] = []
    middleware.wrap_model_call(
        request_of(messages, {}),
        lambda request: sent.extend(request.messages) or AIMessage("ok"),  # type: ignore[arg-type, return-value]
    )
    assert [len(call["args"]["content"]) for m in sent if isinstance(m, AIMessage) for call in m.tool_calls] == [43]


@pytest.mark.parametrize("keep", [("tokens", 50), ("fraction", 0.1)])
def test_arguments_are_truncated_where_the_newest_message_is_larger_than_keep(
    backend: FilesystemBackend, keep: tuple[str, float]
) -> None:
    """deepagents' own settings keep a tenth of the window, and one result of a tool may take more: it is sent whole."""
    middleware = SummarizationMiddleware(
        summarizer(),
        backend=backend,
        token_counter=lambda messages: len(said(messages)) // 4,
        truncate_args_settings={"trigger": ("tokens", 100), "keep": keep},
    )
    newest = HumanMessage("[q] " + "word " * 400, id="q")
    main = ScriptedModel(profile={"max_input_tokens": 4_000})
    agent = deep_agent(main, backend, middleware)
    state = ask(agent, "sync", [HumanMessage("Go", id="go"), *written(1, "x" * 3_000), newest])
    assert main.sent[-1][2].tool_calls[0]["args"]["content"] == "x" * 20 + "...(argument truncated)"
    assert main.sent[-1][-1].content == newest.content
    assert state["messages"][1].tool_calls[0]["args"]["content"] == "x" * 3_000
    ask(agent, "sync", [HumanMessage("And?", id="and")])
    assert main.sent[-1][: len(main.sent[-2])] == main.sent[-2]


def test_what_a_parents_summary_quotes_survives_the_forks_own(backend: FilesystemBackend) -> None:
    """A forked agent begins with its parent's summary as a message, and has no event: nothing of it is lost."""
    parent = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 30), keep=("messages", 4))
    answer = parent.wrap_model_call(request_of(tool_loop(20), {}), lambda request: answered())
    summary = answer.command.update["_summarization_event"]["summary_message"]
    assert "never touch /etc" in summary.content
    paid = summarizer()
    fork = SummarizationMiddleware(paid, backend=backend, trigger=("messages", 30), keep=("messages", 4))
    messages = [summary.model_copy(update={"id": "parent"}), *questions(20), HumanMessage("Do it.", id="do")]
    fork.wrap_model_call(request_of(messages, {}), lambda request: answered())
    assert "never touch /etc" in prompts(paid)
    assert SUMMARY in prompts(paid)


def test_a_state_that_was_trimmed_goes_on(backend: FilesystemBackend, tmp_path: Path) -> None:
    """Someone removed messages from the state: what is left is sent behind the summary, and saved when it leaves."""
    middleware = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 30), keep=("messages", 4))
    state = middleware.wrap_model_call(request_of(questions(20), {}), lambda request: answered()).command.update
    sent: list[BaseMessage] = []
    left = questions(5, start=50)
    middleware.wrap_model_call(request_of(left, state), lambda request: sent.extend(request.messages) or answered())
    assert sent[1:] == left
    middleware.wrap_model_call(request_of(questions(16, start=50), state), lambda request: answered())
    assert "[h50]" in next(tmp_path.rglob("*.md")).read_text()


def test_messages_are_neither_changed_nor_copied_without_need(backend: FilesystemBackend) -> None:
    """What is sent are the state's own objects; state and messages are as they were."""
    middleware = SummarizationMiddleware(summarizer(), backend=backend, trigger=("messages", 10), keep=("messages", 3))
    messages = [*tool_loop(8), HumanMessage("[q]", id="q")]
    before = [message.model_dump_json() for message in messages]
    sent: list[BaseMessage] = []
    middleware.wrap_model_call(
        request_of(messages, {}),
        lambda request: sent.extend(request.messages) or ModelResponse(result=[AIMessage("ok")]),
    )
    assert all(any(message is original for original in messages) for message in sent[1:])
    assert [message.model_dump_json() for message in messages] == before
