"""The official SDKs and LangChain, unchanged, through a gateway: sync, async, streams. All end inside a small window.

Clients of Node and whole coding agents are run by ``benchmarks/gateway_clients.py``: they have to be installed first.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import anthropic
import google.genai
import openai
from emulator import Answer, ProviderServer, ToolCall
from tests.gateway.requests_made import words

from contextfold.gateway.serve import InThread
from effort import crossed

TURNS = 24
TOOL = {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}


def user_texts() -> list[str]:
    rng = random.Random(3)
    return [f"turn {turn}: {words(rng, 200)}" for turn in range(TURNS)]


def chat(gateway: InThread) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}]
    for text in user_texts():
        messages.append({"role": "user", "content": text})
        answer = client.chat.completions.create(model="m", messages=messages)
        messages.append(answer.choices[0].message)


def chat_stream(gateway: InThread) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
    messages: list[Any] = []
    for text in user_texts():
        messages.append({"role": "user", "content": text})
        with client.chat.completions.stream(model="m", messages=messages) as stream:
            for _ in stream:
                pass
            messages.append(stream.get_final_completion().choices[0].message)


def responses(gateway: InThread) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
    items: list[Any] = []
    for text in user_texts():
        items.append({"role": "user", "content": text})
        answer = client.responses.create(model="m", input=items, store=False)
        items += answer.output


async def responses_stream_async(gateway: InThread) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client:
        items: list[Any] = []
        for text in user_texts():
            items.append({"role": "user", "content": text})
            async with client.responses.stream(model="m", input=items, store=False) as stream:
                async for _ in stream:
                    pass
                items += (await stream.get_final_response()).output


def messages_stream(gateway: InThread) -> None:
    client = anthropic.Anthropic(base_url=gateway.url, api_key="k", max_retries=0)
    history: list[Any] = []
    for text in user_texts():
        history.append({"role": "user", "content": text})
        with client.messages.stream(model="m", max_tokens=300, messages=history) as stream:
            assert "".join(stream.text_stream)
            history.append({"role": "assistant", "content": stream.get_final_message().content})


async def messages_async(gateway: InThread) -> None:
    async with anthropic.AsyncAnthropic(base_url=gateway.url, api_key="k", max_retries=0) as client:
        history: list[Any] = []
        for text in user_texts():
            history.append({"role": "user", "content": text})
            answer = await client.messages.create(model="m", max_tokens=300, messages=history)
            history.append({"role": "assistant", "content": answer.content})
        counted = await client.messages.count_tokens(model="m", messages=history)
        assert counted.input_tokens > 8_000


def google_stream(gateway: InThread) -> None:
    with google.genai.Client(api_key="k", http_options={"base_url": gateway.url}) as client:
        contents: list[Any] = []
        for text in user_texts():
            contents.append({"role": "user", "parts": [{"text": text}]})
            pieces = client.models.generate_content_stream(model="m", contents=contents)
            said = "".join(piece.text or "" for piece in pieces)
            contents.append({"role": "model", "parts": [{"text": said}]})


async def google_async(gateway: InThread) -> None:
    async with google.genai.Client(api_key="k", http_options={"base_url": gateway.url}).aio as client:
        contents: list[Any] = []
        for text in user_texts():
            contents.append({"role": "user", "parts": [{"text": text}]})
            answer = await client.models.generate_content(model="m", contents=contents)
            contents.append(answer.candidates[0].content)
        counted = await client.models.count_tokens(model="m", contents=contents)
        assert counted.total_tokens > 8_000


def langchain_google(gateway: InThread) -> None:
    from langchain_google_genai import ChatGoogleGenerativeAI

    _langchain(ChatGoogleGenerativeAI(model="m", base_url=gateway.url, api_key="k", max_retries=0))


def langchain_openai(gateway: InThread) -> None:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)  # type: ignore[arg-type]
    _langchain(model)


def langchain_anthropic(gateway: InThread) -> None:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model_name="m", base_url=gateway.url, api_key="k", max_retries=0, max_tokens=300)  # type: ignore[call-arg, arg-type]
    _langchain(model)


def _langchain(model: Any) -> None:
    history: list[Any] = []
    for turn, text in enumerate(user_texts()):
        history.append({"role": "user", "content": text})
        if turn % 2:
            pieces = list(model.stream(history))
            answer = sum(pieces[1:], pieces[0])
        else:
            answer = model.invoke(history)
        history.append({"role": "assistant", "content": answer.content})


PROGRAMS: list[Callable[[InThread], Any]] = [
    chat_stream,
    responses_stream_async,
    messages_stream,
    google_stream,
    langchain_openai,
    chat,
    responses,
    messages_async,
    langchain_anthropic,
    google_async,
    langchain_google,
]


@crossed(program=PROGRAMS, quick=5)
def test_a_program_goes_on_through_several_windows(opened: Any, provider: ProviderServer, program: Any) -> None:
    import asyncio
    import inspect

    gateway = opened()
    if inspect.iscoroutinefunction(program):
        asyncio.run(program(gateway))
    else:
        program(gateway)
    assert len([request for request in provider.requests if request.error is None]) == TURNS
    assert gateway.metrics.total("compactions_total") >= 1
    assert gateway.metrics.total("failures_total") == 0
    assert provider.requests[-1].tokens < 8_000


def test_a_tool_loop_of_an_sdk_ends_where_it_would(opened: Any, provider: ProviderServer) -> None:
    """Parallel calls, results and a last answer, over several compactions."""
    steps = iter(range(1_000))

    def answer(_: Any) -> Answer:
        step = next(steps)
        if step == 30:
            return Answer("done")
        return Answer(tool_calls=(ToolCall("read", {"path": f"{step}.py"}), ToolCall("read", {"path": f"{step}.md"})))

    provider._provider.script = answer
    gateway = opened()
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
    rng = random.Random(5)
    messages: list[Any] = [{"role": "user", "content": "Read everything."}]
    while True:
        said = (
            client.chat.completions.create(model="m", messages=messages, tools=[{"type": "function", "function": TOOL}])
            .choices[0]
            .message
        )
        messages.append(said)
        if not said.tool_calls:
            break
        messages += [{"role": "tool", "tool_call_id": call.id, "content": words(rng, 150)} for call in said.tool_calls]
    assert said.content == "done"
    assert gateway.metrics.total("compactions_total") >= 2
    assert {request.status for request in provider.requests} == {200}
