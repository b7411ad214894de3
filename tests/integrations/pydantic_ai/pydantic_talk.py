"""A talk about rooms with an agent of pydantic-ai, over its models of OpenAI's."""

from __future__ import annotations

from typing import Any

import httpx2
from emulator import ProviderServer
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from contextfold.integrations.pydantic_ai import Compaction
from integrations import rooms
from integrations.rooms import MODEL, TOLD

SHAPES = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


class Talk(rooms.Talk):
    forbidden = ModelHTTPError

    def __init__(self, server: ProviderServer, shape: str = "chat", way: str = "async", **settings: Any) -> None:
        provider = OpenAIProvider(base_url=server.openai_url, api_key="any", http_client=rooms.client(httpx2))
        self.results = []
        self.compaction = Compaction(**{"window": TOLD, "on_result": self.results.append, **settings})
        self.agent = Agent(
            SHAPES[shape](MODEL, provider=provider),
            system_prompt="Never touch the cellar.",
            instructions="Be brief.",
            capabilities=[self.compaction],
            tools=[rooms.look],
        )
        self.way = way
        self.history = []

    async def ask(self, prompt: str) -> str:
        if self.way == "stream":
            async with self.agent.run_stream(prompt, message_history=self.history) as streamed:
                said = "".join([text async for text in streamed.stream_text(delta=True)])
            self.history = streamed.all_messages()
            return said
        answered = await self.agent.run(prompt, message_history=self.history)
        self.history = answered.all_messages()
        return answered.output

    def ask_blocking(self, prompt: str) -> None:
        self.history = self.agent.run_sync(prompt, message_history=self.history).all_messages()

    def questions(self) -> list[Any]:
        return [part.content for message in self.history for part in message.parts if part.part_kind == "user-prompt"]

    def interrupt(self) -> None:
        lost = ToolCallPart("look", {"room": 1}, tool_call_id="lost")
        self.history += [ModelRequest.user_text_prompt("look"), ModelResponse([lost], model_name="m")]
        self.history += [ModelRequest.user_text_prompt("no, wait"), ModelResponse([TextPart("yes?")], model_name="m")]
