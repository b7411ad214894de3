"""Our classes in place of LangChain's and of deepagents', driven and given the same as these."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies import deepagents, langchain
from benchmarks.replay.strategies.bridge import stub_model
from benchmarks.replay.strategies.masking_langchain import model_request
from contextfold.integrations.deepagents import SummarizationMiddleware as ForDeepAgents
from contextfold.integrations.langchain import SummarizationMiddleware as ForLangChain


class LangChain(langchain.Summarization):
    """One changed import in an agent of LangChain. It stands around the model's call, too, and sees what is sent."""

    packages = ("contextfold", *langchain.Summarization.packages)
    middleware = ForLangChain

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._model = stub_model(window)
        self._remembered: dict[str, Any] = {}

    def view(self, messages: list[Message]) -> list[Message]:
        system = self._told(messages)
        with self.outside():
            instructions = self._bridge.incoming(system)
        sent: list[BaseMessage] = []

        def handler(request: Any) -> ModelResponse:
            sent[:] = request.messages
            return ModelResponse(result=[AIMessage("ok")])

        update = self._middleware.before_model({"messages": self._state, **self._remembered}, None)
        self._take(update or {})
        state = {"messages": self._state, **self._remembered}
        response = self._middleware.wrap_model_call(
            model_request(self._model, instructions, self._state, state), handler
        )
        if isinstance(response, ExtendedModelResponse) and response.command:
            self._take(dict(response.command.update or {}), answers=1)
        with self.outside():
            return system + self._bridge.outgoing(sent)

    def _take(self, update: dict[str, Any], answers: int = 0) -> None:
        """What the middleware wants to have in the agent's state. The answers at its end are not the recorded ones."""
        messages = update.pop("messages", None)
        if messages:
            kept = [message for message in messages if not isinstance(message, RemoveMessage)]
            self._state = kept[: len(kept) - answers]
        self._remembered |= update


class DeepAgents(deepagents.Summarization):
    """One changed import in an agent of deepagents."""

    packages = ("contextfold", *deepagents.Summarization.packages)
    middleware = ForDeepAgents
