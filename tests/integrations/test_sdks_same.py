"""``summarizer="same"`` around the official SDKs: the summary is asked for behind what the provider has cached."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from emulator import Answer, ProviderServer, Request, ToolCall

from contextfold import Compactor
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import openai as over_openai
from contextfold.integrations.wrapping import LEAST_ANSWER
from contextfold.tokens.estimate import estimate
from effort import crossed

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

WINDOW = 12_000
SUMMARY = "<summary>\nInvoices are late because the queue was full; ledger_2019 was left alone.\n</summary>"
CACHED = {"type": "ephemeral"}


def is_behind(request: Request) -> bool:
    return "Pause the task here" in request.messages_text


def server(count_tokens: Callable[[str], int] | None = None) -> ProviderServer:
    return ProviderServer(
        default_window=WINDOW,
        answers=lambda request: SUMMARY if is_behind(request) else "Looking on.",
        count_tokens=count_tokens,
    )


def unevenly(text: str) -> int:
    """What a provider counts that agrees with the estimate about the messages, but not about the instruction."""
    return math.ceil(1.6 * estimate(text)) if "Pause the task here" in text else estimate(text)


def turn(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"Read module_{number:03}.py. " + f"value_{number} stays as it is here. " * 14}


TOOL = {"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}


def with_anthropic(provider: ProviderServer, *, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=provider.anthropic_url, api_key="any", max_retries=0)
    compactor = Compactor(window=WINDOW, summarizer="same")
    create = over_anthropic.with_compaction(client.messages.create, compactor)
    history: list[dict[str, Any]] = []
    system = [{"type": "text", "text": "You find out why invoices are late. " * 60, "cache_control": CACHED}]
    for number in range(80):
        history = [*history, turn(number)]
        marked = {"type": "text", "text": history[-1]["content"], "cache_control": CACHED}
        history[-1] = {"role": "user", "content": [marked]}
        answer = create(
            model="m",
            max_tokens=200,
            system=system,
            tools=[TOOL],
            messages=history,
            stream=stream,
            tool_choice={"type": "auto"},
        )
        if stream:
            list(answer)
        history = [*history, {"role": "assistant", "content": "Looking on."}]
        if create.result is not None and create.result.changed:
            return create.result
    raise AssertionError("nothing was compacted")


@crossed(stream=(False, True), quick=1)
def test_anthropic_reads_the_view_from_its_cache(stream: bool) -> None:
    with server() as provider:
        result = with_anthropic(provider, stream=stream)
        (asked,) = [request for request in provider.requests if is_behind(request)]
        before = provider.requests[asked.number - 2]
    assert asked.body["system"] == before.body["system"]
    assert asked.body["tools"] == before.body["tools"]
    assert asked.body["messages"][: len(before.body["messages"])] == before.body["messages"]
    assert asked.usage is not None
    assert asked.usage.cached > 0.8 * asked.usage.prompt
    assert asked.answer_limit is not None
    assert asked.answer_limit > 200
    assert not asked.stream
    assert result.summary.text.startswith("Invoices are late because")


@crossed(shape=("chat", "responses"), quick=1)
def test_openai_reads_the_view_from_its_cache_in_async_code(shape: str) -> None:
    async def main(provider: ProviderServer) -> Any:
        async with openai.AsyncOpenAI(base_url=provider.openai_url, api_key="any", max_retries=0) as client:
            method = client.chat.completions.create if shape == "chat" else client.responses.create
            create = over_openai.with_compaction(method, Compactor(window=WINDOW, summarizer="same"))
            history: list[dict[str, Any]] = []
            for number in range(80):
                history = [*history, turn(number)]
                await create(model="m", **{"messages" if shape == "chat" else "input": history})
                history = [*history, {"role": "assistant", "content": "Looking on."}]
                if create.result is not None and create.result.changed:
                    return create.result
        raise AssertionError("nothing was compacted")

    with server() as provider:
        result = asyncio.run(main(provider))
        (asked,) = [request for request in provider.requests if is_behind(request)]
    assert asked.usage is not None
    assert asked.usage.cached > 0.8 * asked.usage.prompt
    assert result.summary.text.startswith("Invoices are late because")


@crossed(face=("anthropic", "chat", "call"), limit=(200, 6_000), quick=2)
def test_a_summary_is_asked_for_with_a_limit_that_it_needs_and_that_fits_beside_the_view(face: str, limit: int) -> None:
    """With the request's own it is cut off, or is refused at each pass and asked for again, uncached. The
    estimate may be a little too low."""
    compactor, result = Compactor(window=WINDOW, summarizer="same"), None
    with server(unevenly) as provider:
        if face == "anthropic":
            client = anthropic.Anthropic(base_url=provider.anthropic_url, api_key="any", max_retries=0).messages
        else:
            client = openai.OpenAI(base_url=provider.openai_url, api_key="any", max_retries=0).chat.completions
        over = over_anthropic if face == "anthropic" else over_openai
        create = over.with_compaction(client.create, compactor)
        history: list[dict[str, Any]] = []
        for number in range(120):
            history = [*history, turn(number)]
            if face == "call":
                found = list[Any]()
                compactor.call(
                    lambda view, most: client.create(model="m", max_tokens=most, messages=view),
                    history,
                    result and result.compaction,
                    calibration=result and result.calibration,
                    max_tokens=limit,
                    on_result=found.append,
                )
                result = found[0]
            else:
                create(model="m", max_tokens=limit, messages=history)
            history = [*history, {"role": "assistant", "content": "Looking on."}]
        asked = [request for request in provider.requests if is_behind(request)]
        asked_again = [request for request in provider.requests if "<conversation>" in request.messages_text]
        uncached = [request for request in asked_again if not is_behind(request)]
    assert len(asked) > 1
    assert not uncached
    assert [request.status for request in asked] == [200] * len(asked)
    assert min(request.answer_limit or 0 for request in asked) > 250


def test_a_loop_of_calls_reads_all_but_the_instruction_from_the_cache() -> None:
    """The newest results stand in the view and leave with no summary; the only mark stands on them."""

    def answer(request: Request) -> Answer | str:
        call = ToolCall("read_file", {"path": f"module_{request.number}.py"})
        return SUMMARY if is_behind(request) else Answer("Looking on.", tool_calls=(call,))

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        client = anthropic.Anthropic(base_url=provider.anthropic_url, api_key="any", max_retries=0)
        compactor = Compactor(window=WINDOW, summarizer="same")
        create = over_anthropic.with_compaction(client.messages.create, compactor)
        history: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Find the late ones."}]}]
        for number in range(30):
            *before, newest = history
            *blocks, last = newest["content"]
            marked = {**newest, "content": [*blocks, {**last, "cache_control": CACHED}]}
            said = create(model="m", max_tokens=200, tools=[TOOL], messages=[*before, marked])
            history.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
            read = turn(number)["content"] * 3
            result = {"type": "tool_result", "tool_use_id": said.content[-1].id, "content": read}
            history.append({"role": "user", "content": [result]})
        asked = [request for request in provider.requests if is_behind(request)]
    assert asked
    for request in asked:
        assert request.usage is not None
        assert request.usage.cached > 0.95 * request.usage.prompt


def test_a_summary_of_messages_alone_has_nothing_of_the_task_around_them() -> None:
    """What shapes an answer to the task shapes no summary, and a limit for short answers would cut it off, paid for."""
    asked: list[dict[str, Any]] = []

    def method(**given: Any) -> dict[str, Any]:
        asked.append({**given, "messages": len(given["messages"])})
        return {"content": [{"type": "text", "text": "All modules were read."}], "stop_reason": "end_turn"}

    history = [{"role": ("user", "assistant")[n % 2], "content": f"module {n} " + "word " * 300} for n in range(81)]
    tools = [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
    task: dict[str, Any]
    task = {"model": "small", "system": "Be brief.", "max_tokens": 100, "tools": tools, "tool_choice": {"type": "any"}}
    body = {
        "extra_body": {"tool_choice": {"type": "any"}, "top_k": 5},
        "output_config": {"format": {}, "effort": "low"},
    }
    create: Any = over_anthropic.with_compaction(method, Compactor(window=8_000, summarizer="same"))
    task |= {"mcp_servers": [{"type": "url", "url": "https://mcp.test", "name": "m"}], "container": {"skills": []}}
    create(**task, **body, messages=history)
    *summaries, answered = asked
    alone = {
        "model": "small",
        "max_tokens": LEAST_ANSWER,
        "extra_body": {"top_k": 5},
        "output_config": {"effort": "low"},
    }
    assert summaries
    assert all(summary == {**alone, "messages": 1} for summary in summaries)
    assert answered == {**task, **body, "messages": answered["messages"]}


@pytest.mark.parametrize("model", [{}, {"model": "small"}], ids=["of the prompt", "named"])
def test_a_stored_prompt_of_the_task_is_no_part_of_a_summary_unless_it_alone_names_the_model(
    model: dict[str, str],
) -> None:
    """It has instructions, and perhaps tools, which the answer would follow."""
    asked: list[dict[str, Any]] = []

    def method(**given: Any) -> dict[str, Any]:
        asked.append(given)
        said = {"type": "output_text", "text": "All modules were read."}
        return {"output": [{"type": "message", "content": [said]}], "status": "completed"}

    history = [{"role": ("user", "assistant")[n % 2], "content": f"module {n} " + "word " * 300} for n in range(81)]
    create: Any = over_openai.with_compaction(method, Compactor(window=8_000, summarizer="same"))
    create(**model, prompt={"id": "pmpt_1"}, input=history)
    *summaries, answered = asked
    assert summaries
    assert all(("prompt" in summary) is (not model) for summary in summaries)
    assert answered["prompt"] == {"id": "pmpt_1"}
