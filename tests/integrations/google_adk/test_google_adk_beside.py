"""What stands beside the plugin in an app: callbacks that change a request behind it, and live connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from emulator import ProviderServer

pytest.importorskip("google.adk")

from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.models import LlmResponse
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.google_llm import Gemini
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from contextfold.integrations.google_adk import STATE, CompactionPlugin
from integrations.google_adk.test_google_adk import MODEL, WINDOW, pytestmark, talk
from integrations.rooms import Writer

__all__ = ["pytestmark"]

CLOCK = "It is five o'clock."


def masked(llm_request: Any) -> None:
    """New contents without the secret."""
    llm_request.contents = [
        types.Content(role=one.role, parts=[types.Part(text=str(part.text).replace("SECRET", "***"))])
        for one in llm_request.contents
        for part in one.parts
    ]


def told_the_time(llm_request: Any) -> None:
    """The same contents, and one more."""
    llm_request.contents.append(types.UserContent(CLOCK))


class Changing(BasePlugin):
    def __init__(self, change: Callable[[Any], None]) -> None:
        super().__init__("changing")
        self.change = change

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        self.change(llm_request)


@pytest.mark.parametrize("whose", ["the agent's", "a plugin's"])
@pytest.mark.parametrize("change", [masked, told_the_time])
def test_what_a_callback_changed_in_a_request_stays_so_in_the_one_that_follows_a_refusal(
    change: Callable[[Any], None], whose: str
) -> None:
    writer = Writer()

    async def play() -> None:
        plugins = [Changing(change)] if whose == "a plugin's" else []
        async with talk(server, CompactionPlugin(window=200_000, summarizer=writer), *plugins) as told:
            if whose == "the agent's":
                told.runner.agent.before_model_callback = lambda callback_context, llm_request: change(llm_request)
            turn = 0
            while all(request.status == 200 for request in server.requests):
                await told.say(f"SECRET {turn}: " + "word " * 800)
                turn += 1
            for more in range(8):
                await told.say(f"SECRET {turn + more}: " + "word " * 800)

    with ProviderServer(windows={MODEL: WINDOW}) as server:
        asyncio.run(play())
        assert [request.status for request in server.requests].count(400) == 1
        if change is masked:
            assert not [request for request in server.requests if "SECRET" in request.text]
        else:
            assert all(CLOCK in request.text for request in server.requests)
        assert {request.text.count("SUMMARYTOKEN") for request in server.requests} == {0, 1}


def test_usage_of_a_request_that_a_callback_shortened_says_nothing_about_the_view() -> None:
    """The next requests that go out whole would be taken for as short."""
    is_short = True

    def shortened(callback_context: Any, llm_request: Any) -> None:
        if is_short:
            llm_request.contents = llm_request.contents[-1:]

    async def play() -> None:
        nonlocal is_short
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            told.runner.agent.before_model_callback = shortened
            for turn in range(18):
                is_short = turn < 14
                await told.say(f"question {turn}: " + "word " * 800)

    with ProviderServer(windows={MODEL: WINDOW}) as server:
        asyncio.run(play())
        assert {request.status for request in server.requests} == {200}


class Spoken(BaseLlmConnection):
    """Answers each message of the user with one word."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[types.Content] = asyncio.Queue()

    async def send_history(self, history: list[types.Content]) -> None:
        pass

    async def send_content(self, content: types.Content) -> None:
        self.heard.put_nowait(content)

    async def send_realtime(self, input: Any) -> None:
        pass

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while await self.heard.get():
            yield LlmResponse(content=types.ModelContent("Yes."), turn_complete=True)

    async def close(self) -> None:
        pass


class Live(Gemini):
    @asynccontextmanager
    async def connect(self, llm_request: Any) -> AsyncGenerator[BaseLlmConnection]:
        yield Spoken()


def test_what_is_said_in_a_live_session_is_let_through_and_costs_no_summary() -> None:
    """ADK shows plugins each message alone, and sends it on a connection that has the rest."""
    writer = Writer()

    async def spoken(told: Any, text: str) -> None:
        queue = LiveRequestQueue()
        queue.send_content(types.UserContent(text))
        said = []
        async with asyncio.timeout(20):
            async for event in told.runner.run_live(user_id=told.user, session_id=told.id, live_request_queue=queue):
                said.append(event)
                if event.turn_complete:
                    break
        queue.close()
        assert said[-1].content.parts[0].text == "Yes."

    async def play() -> None:
        async with talk(server, CompactionPlugin(window=WINDOW, summarizer=writer)) as told:
            while not writer.prompts:
                await told.say("question: " + "word " * 800)
            record = (await told.session()).state[STATE + "clerk"]
            told.runner.agent.model = Live(model=MODEL, base_url=server.url, client_kwargs={"api_key": "any"})
            await spoken(told, "Do you hear me?")
            await spoken(told, "Then listen. " + "word " * 2 * WINDOW)
            assert (await told.session()).state[STATE + "clerk"] == record

    with ProviderServer(windows={MODEL: WINDOW}) as server:
        asyncio.run(play())
        assert len(writer.prompts) == 1
