"""LiteLLM's functions with a compaction around them, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from functools import cache, partial
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall

from contextfold import Compactor
from contextfold.errors import CannotFit, InputError
from contextfold.integrations.litellm import with_compaction
from effort import crossed
from integrations.rooms import Passes

# It keeps its async clients, whose sockets outlive each test's event loop; whether they are closed is its own business.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

WINDOW = 8_000
COLORS = ("sync", "async")
PROVIDERS = ("openai/small", "anthropic/small")
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}]
Wire = list[dict[str, Any]]


@cache
def sdk() -> Any:
    """LiteLLM, loaded by the tests that run: it takes seconds, and every worker collects this file."""
    found = pytest.importorskip("litellm")
    found.suppress_debug_info = True
    return found


def provider(**options: Any) -> ProviderServer:
    return ProviderServer(windows={"small": WINDOW}, default_window=100_000, **options)


def conversation(steps: int) -> Wire:
    wire: Wire = [{"role": "user", "content": "Find out why invoices are late. Never touch the table `ledger_2019`."}]
    for step in range(steps):
        calls = [call(f"call_{step}_{n}") for n in range(2)]
        wire.append({"role": "assistant", "content": f"Step {step}: reading.", "tool_calls": calls})
        wire += [result(one["id"], step) for one in calls]
    return wire


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "read_file", "arguments": f'{{"path": "/srv/app/module_{call_id}.py"}}'}
    return {"id": call_id, "type": "function", "function": function}


def result(call_id: str, step: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": " ".join(f"value{step}x{n}" for n in range(60))}


TOO_LONG = "Input validation error: `inputs` must have less than 3000 tokens. Given: 9000"


def check_kind(answer: Any, *, stream: bool = False, **more: Any) -> None:
    """Callers of LiteLLM tell a stream from a response by its class."""
    assert isinstance(answer, sdk().CustomStreamWrapper if stream else sdk().ModelResponse)


class Talk:
    """One conversation with one provider, in one color."""

    def __init__(self, server: ProviderServer, color: str, compactor: Compactor, model: str = "openai/small") -> None:
        method = sdk().completion if color == "sync" else sdk().acompletion
        self.send: Any = with_compaction(method, compactor)
        base = server.openai_url if model.startswith("openai") else server.anthropic_url
        self.fixed = {"model": model, "api_base": base, "api_key": "any", "tools": TOOLS, "num_retries": 0}
        self.fixed["max_retries"] = 0
        self.color = color

    def ask(self, wire: Wire, **more: Any) -> Any:
        """The response, or the chunks of a stream."""
        given = {**self.fixed, "messages": wire, **more}
        if self.color == "sync":
            answer = self.send(**given)
            check_kind(answer, **more)
            return list(answer) if more.get("stream") else answer

        async def ask() -> Any:
            answer = await self.send(**given)
            check_kind(answer, **more)
            return [chunk async for chunk in answer] if more.get("stream") else answer

        return asyncio.run(ask())

    def text(self, wire: Wire, *, stream: bool = False) -> str:
        answer = self.ask(wire, stream=stream) if stream else self.ask(wire)
        if not stream:
            return str(answer.choices[0].message.content)
        return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)


@crossed(color=COLORS, stream=(False, True), model=PROVIDERS, window=(WINDOW, 100_000), quick=1)
def test_a_conversation_larger_than_the_window_is_answered(color: str, stream: bool, model: str, window: int) -> None:
    """With a window that is too large, the provider's refusal comes as ``ContextWindowExceededError``."""
    wire = conversation(40)
    with provider() as server:
        talk = Talk(server, color, Compactor(window=window), model)
        assert talk.text(wire, stream=stream).startswith("Digest of")
        assert [request.status for request in server.requests] == ([200] if window == WINDOW else [400, 200])
        assert server.requests[-1].tokens <= WINDOW
        assert "ledger_2019" in server.requests[-1].text
    assert sum(talk.send.result.ledger.counts().values()) == len(wire)


def test_the_model_and_the_messages_may_stand_without_names() -> None:
    with provider() as server:
        send: Any = with_compaction(sdk().completion, Compactor(window=WINDOW))
        answer = send("openai/small", conversation(2), api_base=server.openai_url, api_key="any", tools=TOOLS)
        assert answer.choices[0].message.content.startswith("Digest of")
        assert len(server.requests[0].body["messages"]) == 7
        with pytest.raises(InputError, match="by name"):
            send("openai/small", conversation(2), 5)


@pytest.mark.parametrize("color", COLORS)
def test_other_errors_and_errors_after_the_first_content_are_the_callers(color: str) -> None:
    with provider() as server:
        talk = Talk(server, color, Compactor(window=WINDOW))
        server.faults.add(Fault.rate_limit(), times=1)
        with pytest.raises(sdk().RateLimitError):
            talk.ask(conversation(2))
        server.faults.clear()
        server.faults.add(Fault.cut(after=1), times=1)
        try:
            pieces = talk.ask(conversation(2), stream=True)  # its async stream ends without a word
        except (sdk().exceptions.APIConnectionError, sdk().exceptions.MidStreamFallbackError):
            pieces = []
        assert len(pieces) < 5
        assert len(server.requests) == 2
        assert talk.text(conversation(2)).startswith("Digest of")


@pytest.mark.parametrize("body", [{"detail": TOO_LONG}, {"error": TOO_LONG, "error_type": "validation"}, TOO_LONG])
@pytest.mark.parametrize("color", COLORS)
def test_a_refusal_whose_words_litellm_leaves_out_is_recovered(color: str, body: Any) -> None:
    """Of an error that is not written as OpenAI's are, its exceptions repeat the status; the words are those of the
    SDK's exception that they were raised for.
    """
    with provider() as server:
        server.faults.add(Fault.http_error(400, body=body), times=1)
        assert Talk(server, color, Compactor()).text(conversation(40)).startswith("Digest of")
        first, second = server.requests
        assert second.tokens < first.tokens


@pytest.mark.parametrize("color", COLORS)
def test_a_prompt_that_nothing_can_shorten_ends_in_an_error_of_ours(color: str) -> None:
    with provider() as server:
        with pytest.raises(CannotFit):
            Talk(server, color, Compactor(window=WINDOW)).ask([{"role": "user", "content": "fact " * 9_000}])
        assert not server.requests


def loop(server: ProviderServer, color: str, turns: int, *, interrupted: int, **more: Any) -> tuple[Talk, int]:
    """An agent's loop, which appends LiteLLM's own message objects as its documentation shows."""
    talk = Talk(server, color, Compactor(window=WINDOW, **more))
    history: list[Any] = [{"role": "user", "content": "Why are invoices late? Never touch `ledger_2019`."}]
    for turn in range(turns):
        sent = len(history)
        message = talk.ask(history).choices[0].message
        history.append(message)
        if turn == interrupted:  # the process ended before the tools had run
            history.append({"role": "user", "content": "Go on."})
        else:
            history += [result(one.id, turn) for one in message.tool_calls or ()]
    return talk, sent


def answers() -> Any:
    numbers = itertools.count()

    def answer(request: Any) -> Answer:
        return Answer("Looking.", tuple(ToolCall("read_file", {"path": f"/srv/{next(numbers)}"}) for _ in range(2)))

    return answer


@crossed(color=COLORS, quick=1)
def test_a_loop_with_parallel_calls_and_an_interruption_is_never_refused(color: str) -> None:
    with provider(answers=answers()) as server:
        talk, sent = loop(server, color, 20, interrupted=10)
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == 20
    assert talk.send.compaction is not None
    assert talk.send.calibration.observations > 12
    assert sum(talk.send.result.ledger.counts().values()) == sent


@pytest.mark.strict
@pytest.mark.parametrize("color", ["async"])
def test_a_loop_of_many_passes_stays_below_the_window(color: str) -> None:
    passes = Passes()
    with provider(answers=answers()) as server:
        talk, sent = loop(server, color, 80, interrupted=40, on_event=passes)
        assert {request.status for request in server.requests} == {200}
        assert max(request.tokens for request in server.requests) <= WINDOW
    assert passes.count >= 8
    assert sum(talk.send.result.ledger.counts().values()) == sent


@pytest.mark.parametrize("color", COLORS)
@pytest.mark.parametrize("fault", [Fault.blank(), Fault.refusal(), Fault.http_error(400, "no")], ids=lambda f: f.name)
def test_a_summarizer_that_fails_changes_nothing(color: str, fault: Fault) -> None:
    """The model itself summarizes, and every summary fails: the answer is about a view without that text."""
    with provider() as server:
        server.faults.add(fault, when=lambda request: not request.body.get("tools"))
        talk = Talk(server, color, Compactor(window=WINDOW, summarizer="same"))
        assert talk.text(conversation(40)).startswith("Digest of")
        assert "can't help" not in server.requests[-1].text


@pytest.mark.strict
@crossed(color=COLORS, stream=(False, True), quick=1)
def test_what_anthropic_searched_itself_gets_no_second_result_and_is_read_for_the_summary(
    color: str, stream: bool
) -> None:
    """Its calls stand among the others in LiteLLM's messages, and their results beside them."""
    wire: Wire = [{"role": "user", "content": "Which harbors are open?"}]
    for turn in range(12):
        ran = {**call(f"srvtoolu_{turn}"), "function": {"name": "web_search", "arguments": '{"query": "harbor"}'}}
        page = {
            "type": "web_search_result",
            "title": f"Harbor H-{turn}",
            "url": "https://a.b",
            "encrypted_content": "x",
        }
        found = {"type": "web_search_tool_result", "tool_use_id": ran["id"], "content": [page]}
        fields = {"web_search_results": [found]}
        answer = {"role": "assistant", "content": f"Answer {turn}.", "tool_calls": [ran]}
        wire += [{**answer, "provider_specific_fields": fields}, {"role": "user", "content": "Go on. " + "pad " * 700}]
    read: list[str] = []

    def write(prompt: str) -> str:
        read.append(prompt)
        return "Harbors were looked up."

    with provider() as server:
        talk = Talk(server, color, Compactor(window=WINDOW, summarizer=write), "anthropic/small")
        talk.fixed["max_tokens"] = 500  # LiteLLM's own default is more than the whole window
        talk.text(wire[:3], stream=stream)
        talk.text(wire, stream=stream)
        assert [request.status for request in server.requests if "harbors" in request.text] == [200, 200]
        sent = "".join(str(request.body["messages"]) for request in server.requests)
    assert "never answered" not in sent
    assert all(f"Harbor H-{turn}" in sent + "".join(read) for turn in range(12))
    assert "Harbor H-0" in "".join(read)


def test_without_litellm_the_error_names_the_extra() -> None:
    code = (
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "from contextfold import Compactor\n"
        "from contextfold.integrations.litellm import with_compaction\n"
        "with_compaction(print, Compactor(window=9_000))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'contextfold[litellm]'" in done.stderr


@pytest.mark.parametrize("name", ["responses", "aresponses", "embedding", "text_completion"])
def test_a_function_that_sends_no_messages_is_refused_before_its_first_call(name: str) -> None:
    method = getattr(sdk(), name)
    for given in (method, partial(method, model="openai/small")):
        with pytest.raises(InputError, match=f"{name} of litellm sends no list of messages; give"):
            with_compaction(given, Compactor())
