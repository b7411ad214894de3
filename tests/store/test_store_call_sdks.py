"""``Session.call`` with the official SDKs over HTTP, against the provider on loopback: plain, streamed, both colors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from conversations import SYSTEM, turns
from emulator import ProviderServer

from contextfold import Compactor
from contextfold.testing.dict_store import DictStore

openai = pytest.importorskip("openai")

MODEL, WINDOW = "small", 8_000


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={MODEL: WINDOW}) as running:
        yield running


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_session_recovers_from_a_genuine_refusal(server: ProviderServer, color: str, stream: bool) -> None:
    session = Compactor(window=64_000).session("thread", DictStore())
    session.append([SYSTEM, *turns(50)])
    options: dict[str, Any] = {"api_key": "none", "base_url": f"{server.url}/v1", "max_retries": 0}
    before = len(server.requests)

    def sync() -> str:
        with openai.OpenAI(**options) as client:
            got = session.call(lambda view: client.chat.completions.create(model=MODEL, messages=view, stream=stream))
            return text_of(list(got) if stream else [got], stream)

    async def suspending() -> str:
        async with openai.AsyncOpenAI(**options) as client:

            async def send(view: list[Any]) -> Any:
                return await client.chat.completions.create(model=MODEL, messages=view, stream=stream)

            got = await session.acall(send)
            return text_of([one async for one in got] if stream else [got], stream)

    assert sync() if color == "sync" else asyncio.run(suspending())
    assert len(server.requests) - before == 2  # one refused, one smaller
    (summary,) = session.summaries()
    assert summary.trigger == "overflow_retry"
    assert session.state().summary_id == summary.id
    assert summary.tokens_after < WINDOW


def text_of(events: list[Any], stream: bool) -> str:
    if stream:
        return "".join(event.choices[0].delta.content or "" for event in events if event.choices)
    return str(events[0].choices[0].message.content)
