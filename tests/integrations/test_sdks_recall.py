"""Recall around the official SDKs: what the newest message asks about comes back in what the provider is sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from emulator import ProviderServer

from contextfold import Compactor, Policy
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import openai as over_openai
from contextfold.record.compaction import Compaction

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

WINDOW = 4_000
FACT = "The gateway listens on port 8443 behind the old balancer."
QUESTION = "Which port does the gateway listen on?"
SHAPES = ("chat", "responses", "messages")


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def talk(turns: int = 60) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for n in range(turns):
        found.append(said("user", f"Now part {n} of the list, please."))
        fact = f"{FACT}\n" if n == 3 else ""
        found.append(said("assistant", f"{fact}Part {n} is done. " + f"filler{n} " * 60))
    return found


def compactor(**recall: Any) -> Compactor:
    return Compactor(window=WINDOW, policy=Policy(evidence=False, recall={"enabled": True, **recall}))


def conversation(provider: ProviderServer, shape: str, color: str, turns: list[Any], **options: Any) -> list[Any]:
    """Ask with each of these lists of messages in turn; the record in force after each, through JSON, as a caller who
    stores it has it. ``turns``: what is added to the conversation before each request.
    """
    argument = "input" if shape == "responses" else "messages"
    more: dict[str, Any] = {"model": "m", "max_tokens": 100} if shape == "messages" else {"model": "m"}
    history: list[Any] = []
    records: list[Any] = []

    def wrapped(client: Any, previous: Any) -> Any:
        if shape == "messages":
            return over_anthropic.with_compaction(client.messages.create, compactor(**options), previous=previous)
        method = client.chat.completions.create if shape == "chat" else client.responses.create
        return over_openai.with_compaction(method, compactor(**options), previous=previous)

    async def in_async() -> None:
        nonlocal history
        made: Any = anthropic.AsyncAnthropic if shape == "messages" else openai.AsyncOpenAI
        url = provider.anthropic_url if shape == "messages" else provider.openai_url
        async with made(base_url=url, api_key="any", max_retries=0) as client:
            send = wrapped(client, None)
            for added in turns:
                history = [*history, *added]
                await send(**more, **{argument: history})
                records.append(send.compaction)

    if color == "async":
        asyncio.run(in_async())
        return records
    made: Any = anthropic.Anthropic if shape == "messages" else openai.OpenAI
    url = provider.anthropic_url if shape == "messages" else provider.openai_url
    with made(base_url=url, api_key="any", max_retries=0) as client:
        for added in turns:  # each in a new process, so to say: all that is known is what the caller stored
            send = wrapped(client, records[-1] if records else None)
            history = [*history, *added]
            send(**more, **{argument: history})
            record = send.compaction
            records.append(Compaction.from_json(record.to_json()) if record is not None else None)
    return records


def texts(request: Any) -> list[str]:
    """The words of each message of a request, those of one turn in parts of their own."""
    body = request.body
    found = []
    for message in body.get("messages") or body["input"]:
        content = message["content"]
        found += [content] if isinstance(content, str) else [block["text"] for block in content]
    return found


TURNS: list[Any] = [
    [*talk(), said("user", "Go on.")],
    [said("assistant", "Gladly."), said("user", QUESTION)],
    [said("assistant", "8443."), said("user", "Thanks, and good night!")],
]


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_asked_about_reaches_the_provider_behind_the_question_and_stays_there(shape: str, color: str) -> None:
    with ProviderServer(default_window=WINDOW) as provider:
        records = conversation(provider, shape, color, TURNS)
        before, asked, after = provider.requests
    assert FACT not in before.messages_text
    assert texts(asked)[-2] == QUESTION
    block = texts(asked)[-1]
    assert f"[assistant, message 7 of {len(TURNS[0]) + 1}]\n{FACT}" in block
    assert texts(asked)[: len(texts(before))] == texts(before)
    assert texts(after)[: len(texts(asked))] == texts(asked)
    assert len(records[1].recalled) == 1
    assert records[2] == records[1]
    assert after.usage is not None


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_comes_back_that_the_provider_reads_in_the_view_already(shape: str) -> None:
    turns = [[*talk(), said("user", f"Remember: {FACT}")], [said("assistant", "Yes."), said("user", QUESTION)]]
    with ProviderServer(default_window=WINDOW) as provider:
        records = conversation(provider, shape, "sync", turns)
        _, asked = provider.requests
    assert asked.messages_text.count(FACT) == 1
    assert records[0] is not None
    assert FACT not in json.dumps([one.text for one in records[1].recalled])
