"""The official SDKs behind one small interface, so that a test can say the same to every API, in every color."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from emulator import ProviderServer

WIRES = ("openai-chat", "openai-responses", "anthropic")
MODES = ("plain", "stream", "async", "async-stream")
KEY = "sk-secret-0123456789"


@dataclass(frozen=True)
class Said:
    """What came back: the text, why it ended in the words of the API, (name, arguments) of calls, and the usage."""

    text: str
    finish: str | None
    calls: tuple[tuple[str, Any], ...]
    usage: Any


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def ask(
    server: ProviderServer,
    wire: str,
    messages: Sequence[Any],
    *,
    mode: str = "plain",
    model: str = "small",
    **more: Any,
) -> Said:
    """One request by the official SDK, without retries."""
    if mode.startswith("async"):
        return asyncio.run(_ask_async(server, wire, messages, mode == "async-stream", model, more))
    settings = _settings(server, wire)
    stream = mode == "stream"
    if wire == "anthropic":
        with anthropic.Anthropic(**settings) as client:
            given = _anthropic(messages, model, more)
            if not stream:
                return _said(wire, client.messages.create(**given))
            with client.messages.stream(**given) as events:
                return _said(wire, events.get_final_message())
    with openai.OpenAI(**settings) as client:
        create = client.chat.completions.create if wire == "openai-chat" else client.responses.create
        answer = create(**_openai(wire, messages, model, stream, more))
        return _joined(wire, list(answer)) if stream else _said(wire, answer)


async def _ask_async(
    server: ProviderServer, wire: str, messages: Sequence[Any], stream: bool, model: str, more: dict[str, Any]
) -> Said:
    settings = _settings(server, wire)
    if wire == "anthropic":
        async with anthropic.AsyncAnthropic(**settings) as client:
            given = _anthropic(messages, model, more)
            if not stream:
                return _said(wire, await client.messages.create(**given))
            async with client.messages.stream(**given) as events:
                return _said(wire, await events.get_final_message())
    async with openai.AsyncOpenAI(**settings) as client:
        create = client.chat.completions.create if wire == "openai-chat" else client.responses.create
        answer = await create(**_openai(wire, messages, model, stream, more))
        return _joined(wire, [event async for event in answer]) if stream else _said(wire, answer)


def _settings(server: ProviderServer, wire: str) -> dict[str, Any]:
    url = server.anthropic_url if wire == "anthropic" else server.openai_url
    return {"base_url": url, "api_key": KEY, "max_retries": 0, "timeout": 20}


def _anthropic(messages: Sequence[Any], model: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), "max_tokens": 500, **more}


def _openai(wire: str, messages: Sequence[Any], model: str, stream: bool, more: dict[str, Any]) -> dict[str, Any]:
    given = {"model": model, "stream": stream, "messages" if wire == "openai-chat" else "input": list(messages), **more}
    if stream and wire == "openai-chat":
        given["stream_options"] = {"include_usage": True}
    return given


def _said(wire: str, answer: Any) -> Said:
    if wire == "openai-chat":
        choice = answer.choices[0]
        calls = tuple((call.function.name, call.function.arguments) for call in choice.message.tool_calls or ())
        return Said(choice.message.content or choice.message.refusal or "", choice.finish_reason, calls, answer.usage)
    if wire == "openai-responses":
        finish = answer.incomplete_details.reason if answer.incomplete_details else answer.status
        calls = tuple((item.name, item.arguments) for item in answer.output if item.type == "function_call")
        return Said(answer.output_text, finish, calls, answer.usage)
    text = "".join(block.text for block in answer.content if block.type == "text")
    calls = tuple((block.name, block.input) for block in answer.content if block.type == "tool_use")
    return Said(text, answer.stop_reason, calls, answer.usage)


def _joined(wire: str, events: list[Any]) -> Said:
    if wire == "openai-responses":
        last = events[-1]
        if last.type == "response.failed":
            raise Failed(last.response.error)
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        said = _said(wire, last.response)
        assert said.text == text, "the pieces make the final text"
        return said
    deltas = [event.choices[0].delta for event in events if event.choices]
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        names.setdefault(call.index, call.function.name)
        arguments[call.index] = arguments.get(call.index, "") + (call.function.arguments or "")
    return Said(
        "".join(delta.content or delta.refusal or "" for delta in deltas),
        next(
            (event.choices[0].finish_reason for event in events if event.choices and event.choices[0].finish_reason),
            None,
        ),
        tuple((names[index], arguments[index]) for index in names),
        events[-1].usage,
    )


class Failed(Exception):
    """A response that failed in its stream; the SDK hands it out as an event."""

    def __init__(self, error: Any) -> None:
        self.code, self.message = error.code, error.message
        super().__init__(error.message)
