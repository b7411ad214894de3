"""A talk about rooms with an agent of the Agents SDK, over a client of OpenAI's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import openai as openai_sdk
from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool, set_tracing_disabled
from emulator import ProviderServer
from openai import AsyncOpenAI

from contextfold import Compactor
from contextfold.integrations.openai_agents import CompactionSession, compaction
from integrations import rooms
from integrations.rooms import MODEL, TOLD

SHAPES = ("chat", "responses")
FACES = ("filter", "provider", "session")


class Talk(rooms.Talk):
    forbidden = openai_sdk.PermissionDeniedError

    def __init__(
        self,
        server: ProviderServer,
        shape: str = "responses",
        way: str = "async",
        face: str = "filter",
        folder: Path | None = None,
        **settings: Any,
    ) -> None:
        set_tracing_disabled(True)
        provider = OpenAIProvider(openai_client=client(server, max_retries=0), use_responses=shape == "responses")
        self.results = []
        self.way, self.face = way, face
        self.history = []
        self.session: CompactionSession | None = None
        settings = {"window": TOLD, **settings}

        async def save(result: Any) -> None:
            self.results.append(result)

        self.compaction = compaction(on_result=self.results.append if way == "sync" else save, **settings)
        config: dict[str, Any] = {"model_provider": provider}
        if face == "filter":
            config["call_model_input_filter"] = self.compaction
        elif face == "provider":
            config["model_provider"] = self.compaction.provider(provider)
        else:
            store = f"sqlite:///{folder}/sessions.db"
            self.session = CompactionSession("talk", Compactor(**settings), store, options={"background": False})
        self.config = RunConfig(**config, tracing_disabled=True)
        self.agent = Agent(
            "Guide", instructions="Never touch the cellar.", model=MODEL, tools=[function_tool(rooms.look)]
        )

    def given(self, prompt: str) -> Any:
        """What a run is given for what the user says."""
        return prompt if self.session is not None else [*self.history, {"role": "user", "content": prompt}]

    @property
    def options(self) -> dict[str, Any]:
        return {"run_config": self.config, "session": self.session}

    async def ask(self, prompt: str) -> str:
        if self.way == "stream":
            ran: Any = Runner.run_streamed(self.agent, self.given(prompt), **self.options)
            async for _ in ran.stream_events():
                pass
        else:
            ran = await Runner.run(self.agent, self.given(prompt), **self.options)
        self.history = ran.to_input_list()
        return str(ran.final_output)

    def ask_blocking(self, prompt: str) -> None:
        self.history = Runner.run_sync(self.agent, self.given(prompt), **self.options).to_input_list()

    def questions(self) -> list[Any]:
        items = asyncio.run(self.session.history()) if self.session is not None else self.history
        return [item["content"] for item in items if item.get("role") == "user"]

    def interrupt(self) -> None:
        call = {"type": "function_call", "call_id": "lost", "name": "look", "arguments": "{}"}
        self.history += [{"role": "user", "content": "look"}, call, {"role": "user", "content": "no, wait"}]


def client(server: ProviderServer, **options: Any) -> AsyncOpenAI:
    web = httpx if issubclass(openai_sdk.DefaultAsyncHttpxClient, httpx.AsyncClient) else __import__("httpx2")
    return AsyncOpenAI(base_url=server.openai_url, api_key="any", http_client=rooms.client(web), **options)
