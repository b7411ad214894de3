"""What may be named as a summarizer, what is said about anything else, and what the real SDKs are sent."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import anthropic
import openai
import pytest
from asking_models import KEY, compacted, conversation
from emulator import Answer as Served
from emulator import Fault, ProviderServer, ToolCall

from contextfold import Compactor, Policy, PolicyError
from contextfold.ports import Patience, SyncPorts, run
from contextfold.summary.models import SummaryModel, clients
from contextfold.summary.models.cost import price
from contextfold.summary.summarizer import as_summarizer
from loop_watchdog import nothing_blocks


def asked(server: ProviderServer, before: int) -> Any:
    """The only request since."""
    (request,) = server.requests[before:]
    return request


def summary_of(summarizer: Any, color: str = "sync", **options: Any) -> Any:
    policy = Policy(on_failure="raise", summary={"retries_on_failure": 0})
    out = compacted(
        color, Compactor(window=64_000, summarizer=summarizer, policy=policy, **options), conversation(), force=True
    )
    return out.summary


# ---- names ----


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("mistral:large", "there is no provider 'mistral'; there are openai:MODEL, anthropic:MODEL"),
        ("llama3:8b", "openai:MODEL with a base_url for every server that speaks OpenAI's API"),
        ("openai:", "it names no provider and model"),
        ("gpt-5", "summarizer is 'gpt-5'"),
        (openai.OpenAI(api_key="x"), "client of openai, and which model"),
        (anthropic.AsyncAnthropic(api_key="x"), "client of anthropic, and which model"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,  # the same in every process
)
def test_what_names_no_model_is_refused_in_one_line_with_what_is_known(value: Any, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Compactor(summarizer=value)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": " "}, "it must be a name"),
        ({"api": "completions"}, "for openai it is chat or responses"),
        ({"model": "anthropic:x", "api": "chat"}, "for anthropic it is messages"),
        ({"window": 100}, "window is 100: it must be a whole number of at least 1,024 tokens"),
        ({"max_output_tokens": 0}, "max_output_tokens is 0"),
        ({"client": object()}, "client is a object: it must be a client of the SDK openai or anthropic"),
        ({"client": openai.OpenAI(api_key="x"), "base_url": "http://x"}, "give either client or base_url"),
        ({"fallbacks": "openai:y"}, "must be a list, such as ['openai:y']"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        SummaryModel(**{"model": "openai:x", **fields})
    assert words in str(refused.value)


def test_a_missing_key_and_a_missing_package_are_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(PolicyError, match="set OPENAI_API_KEY in the environment"):
        Compactor(summarizer="openai:x")
    SummaryModel("openai:x", base_url="http://127.0.0.1:9/v1")
    monkeypatch.setattr(clients, "find_spec", lambda name: None)
    with pytest.raises(PolicyError, match=r"needs the package anthropic.*pip install 'contextfold\[anthropic\]'"):
        Compactor(summarizer="anthropic:x")


def test_naming_a_model_imports_no_sdk() -> None:
    code = (
        "import sys; from contextfold import Compactor; Compactor(summarizer='openai:gpt-5-mini', window=9000); "
        "sys.exit('openai' in sys.modules)"
    )
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- windows and prices ----


def test_the_window_leaves_room_for_the_answer() -> None:
    def window(**fields: Any) -> int | None:
        return as_summarizer(SummaryModel("openai:gpt-4o", **fields)).window

    assert window(window=8_000) == 7_000
    assert window(window=8_000, max_output_tokens=500) == 7_500
    assert window(window=8_000, max_output_tokens=7_000) == 4_000
    assert window() == 128_000 - 4_096
    assert window(base_url="http://127.0.0.1:9/v1") is None, "another server sets a window of its own"
    assert as_summarizer(SummaryModel("openai:nobody-knows")).window is None


def test_prices_are_known_for_known_models_only() -> None:
    assert price("openai:gpt-4o", 1_000_000, 0) == pytest.approx(2.5, rel=0.5)
    assert price("openai:nobody-knows", 1_000, 1_000) is None
    assert price("a_function", 1_000, 1_000) is None


# ---- what is sent ----


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_chat_completions_get_the_options_and_nothing_else(color: str, stream: bool, server: ProviderServer) -> None:
    before = len(server.requests)
    model = SummaryModel(
        "openai:llama3:8b", base_url=server.openai_url, temperature=0.2, max_output_tokens=900, stream=stream
    )
    summary = summary_of(model, color)
    request = asked(server, before)
    assert (request.wire, request.model, request.stream) == ("openai-chat", "llama3:8b", stream)
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.2, 900)
    assert len(request.body["messages"]) == 1
    assert summary.text == request.answer.text
    assert summary.input_tokens == request.tokens or summary.input_tokens > 1_000


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_responses_are_asked_not_to_be_stored(color: str, stream: bool, server: ProviderServer) -> None:
    before = len(server.requests)
    model = SummaryModel(
        "openai:gpt-x", base_url=server.openai_url, api="responses", max_output_tokens=900, stream=stream
    )
    summary = summary_of(model, color)
    request = asked(server, before)
    assert (request.wire, request.body["store"], request.body["max_output_tokens"]) == ("openai-responses", False, 900)
    assert summary.text == request.answer.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_messages_get_a_limit_in_any_case(color: str, stream: bool, server: ProviderServer) -> None:
    before = len(server.requests)
    model = SummaryModel("anthropic:claude-x", base_url=server.anthropic_url, temperature=0.1, stream=stream)
    summary = summary_of(model, color)
    request = asked(server, before)
    assert request.wire == "anthropic"
    assert 1_024 <= request.body["max_tokens"] <= 4_096
    assert request.body["temperature"] == 0.1
    assert summary.text == request.answer.text


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.tool_call(), "it calls a tool"),
        (Fault.length(), "it was cut off"),
        (Fault.refusal(), "it was refused"),
        (Fault.blank(), "it is blank"),
    ],
    ids=["tool call", "length", "refusal", "blank"],
)
def test_what_is_wrong_with_an_answer_is_read_in_every_api(
    fault: Fault, reason: str, api: str, stream: bool, server: ProviderServer
) -> None:
    server.faults.add(fault, times=1)
    url, name = (server.anthropic_url, "anthropic:x") if api == "messages" else (server.openai_url, "openai:x")
    events: list[Any] = []
    summary_of(SummaryModel(name, base_url=url, api=api, stream=stream), on_event=events.append)
    (rejected,) = [event for event in events if event.name == "summary_rejected"]
    assert rejected.data["reason"].startswith(reason)


def test_an_error_inside_a_stream_of_responses_is_an_error(server: ProviderServer) -> None:
    server.faults.add(Fault.http_error(500, "the server had an error", in_stream=True), times=1)
    with pytest.raises(Exception, match="the server had an error"):
        summary_of(SummaryModel("openai:x", base_url=server.openai_url, api="responses"))


# ---- clients ----


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("of", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_client_of_either_color_serves_both(of: Any, color: str, server: ProviderServer) -> None:
    """And stays open: two compactions, and the caller's own call after them. Its own retries are switched off."""
    client = of(base_url=server.openai_url, api_key=KEY, max_retries=7)
    before = len(server.requests)
    model = SummaryModel("gpt-x", client=client)
    if color == "async":

        async def main() -> None:
            for _ in range(2):
                policy = Policy(on_failure="raise")
                await Compactor(window=64_000, summarizer=model, policy=policy).acompact(conversation(), force=True)
            assert not client.is_closed()
            if of is openai.AsyncOpenAI:
                await client.close()

        asyncio.run(main())
    else:
        for _ in range(2):
            assert summary_of(model).text.startswith("Digest")
        assert not client.is_closed()
    assert len(server.requests) == before + 2
    server.faults.add(Fault.server_error(), times=1)
    if color == "sync":
        with pytest.raises(openai.InternalServerError):
            summary_of(model)
        assert len(server.requests) == before + 3
        assert client.max_retries == 7
        run(ended(client.close))


async def ended(close: Any) -> None:
    """Close a client where its connections are: an async one on the loop for async leaves of blocking code."""
    async for _ in SyncPorts().pieces(Patience(), close):
        pass


def test_an_anthropic_client_serves(server: ProviderServer) -> None:
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key=KEY) as client:
        assert summary_of(SummaryModel("anthropic:claude-x", client=client)).text.startswith("Digest")


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_langchain_chat_model_serves(stream: bool, color: str, server: ProviderServer) -> None:
    """It is not changed, and its run says that it is no answer to the user."""
    chat = pytest.importorskip("langchain_openai")
    core = pytest.importorskip("langchain_core.callbacks")

    class Listener(core.BaseCallbackHandler):  # type: ignore[misc, name-defined]
        seen: list[Any] = []  # noqa: RUF012

        def on_chat_model_start(self, *_: Any, tags: Any = None, metadata: Any = None, **__: Any) -> None:
            self.seen.append((tags, metadata))

    listener = Listener()
    listener.seen.clear()
    # LangChain shares one async client in a process; with one loop per test, each needs its own
    http = {"http_client": openai.DefaultHttpxClient(), "http_async_client": openai.DefaultAsyncHttpxClient()}
    model = chat.ChatOpenAI(model="gpt-4o", base_url=server.openai_url, api_key=KEY, callbacks=[listener], **http)
    before = repr(model)
    pieces: list[Any] = []
    ends: list[Any] = []
    policy = Policy(on_failure="raise")
    compactor = Compactor(
        window=64_000, summarizer=model, policy=policy, on_stream=pieces.append if stream else None, on_end=ends.append
    )

    async def main() -> Any:
        try:
            return await compactor.acompact(conversation(), force=True)
        finally:
            await http["http_async_client"].aclose()

    out = asyncio.run(main()) if color == "async" else compactor.compact(conversation(), force=True)
    http["http_client"].close()
    summary = out.summary
    assert summary.text.startswith("Digest")
    assert ("".join(piece.text for piece in pieces) == summary.text) == stream
    ((tags, metadata),) = listener.seen
    assert "nostream" in tags
    assert metadata["lc_source"] == "summarization"
    assert ends[0].model == "openai:gpt-4o"
    assert repr(model) == before


# ---- keys ----


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_key_that_a_provider_echoes_is_seen_nowhere(
    from_client: bool, color: str, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    key = "unusual/key+of:a=company" if from_client else KEY
    server.faults.add(Fault.http_error(401, f"Incorrect API key provided: {key}."), times=9)
    model = (
        SummaryModel("x-echo", client=openai.OpenAI(base_url=server.openai_url, api_key=key))
        if from_client
        else SummaryModel("openai:x-echo", base_url=server.openai_url)
    )
    told: list[Any] = []
    with caplog.at_level(logging.DEBUG, logger="contextfold"):
        summary: dict[str, Any] = {}
        compactor = Compactor(
            window=8_000,
            summarizer=model,
            policy=Policy(summary=summary),
            on_event=told.append,
            on_end=told.append,
        )
        out = compacted(color, compactor, conversation())
        strict = Compactor(window=8_000, summarizer=model, policy=Policy(fallback=None, summary=summary))
        with pytest.raises(Exception, match="the summarizer failed") as raised:
            compacted(color, strict, conversation())
    assert "fallback_used" in {event.name for event in out.events}
    said = [
        repr(told),
        repr((out, out.events, out.ledger, out.messages)),
        out.compaction.to_json(),
        caplog.text,
        str(raised.value),
        repr(raised.value.attempts),
    ]
    assert all(key not in text for text in said)
    assert "[key]" in said[0]


def test_a_client_is_not_shown() -> None:
    client = openai.OpenAI(api_key=KEY)
    assert KEY not in repr(SummaryModel("x", client=client))
    assert KEY not in repr(as_summarizer(SummaryModel("x", client=client)))


def test_an_answer_with_text_beside_a_tool_call_is_not_taken(server: ProviderServer) -> None:
    answer = Served("Let me look that up first.", tool_calls=(ToolCall("search", {"q": "x"}),))
    with ProviderServer(answers=[answer, answer]) as own, pytest.raises(Exception, match="it calls a tool"):
        summary_of(SummaryModel("openai:x", base_url=own.openai_url))


@pytest.mark.parametrize("name", ["openai:gpt-x", "anthropic:claude-x"])
def test_nothing_blocks_the_event_loop(name: str, server: ProviderServer) -> None:
    """Importing the SDK, reading certificates, looking prices up."""
    url = server.openai_url if name.startswith("openai") else server.anthropic_url

    async def main() -> Any:
        compactor = Compactor(window=64_000, summarizer=SummaryModel(name, base_url=url))
        with nothing_blocks(below="contextfold"):
            return await compactor.acompact(conversation(), force=True)

    assert asyncio.run(main()).changed


# ---- test doubles ----


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_double_of_a_chat_model_is_asked_as_one(color: str) -> None:
    """It answers to every name, ``complete`` too; what it was made to return is what counts."""
    double = MagicMock()
    double.invoke.return_value = MagicMock(text="The ledger is done.")
    double.ainvoke = AsyncMock(return_value=MagicMock(text="The ledger is done."))
    assert summary_of(double, color).text == "The ledger is done."
    assert not double.complete.called


def test_an_object_of_ones_own_with_complete_is_asked_by_it() -> None:
    class Own:
        def complete(self, prompt: str) -> str:
            return "by complete"

        def invoke(self, prompt: str) -> str:
            raise AssertionError("asked by invoke")

    assert summary_of(Own()).text == "by complete"
    assert summary_of(MagicMock(spec=["complete"], complete=lambda prompt: "by complete")).text == "by complete"
