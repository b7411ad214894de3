"""LangChain's ``ContextEditingMiddleware``: above the trigger, all tool outputs but the last three are cleared."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.replay.chat import Message
from benchmarks.replay.strategies.base import Strategy, split_system
from benchmarks.replay.strategies.bridge import Bridge, stub_model

KEEP_RESULTS = 3


class ClearToolUses(Strategy):
    """Masks old outputs, again at each turn."""

    packages = ("langchain", "langchain-core")

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._bridge = Bridge()
        self._model = stub_model(window)
        edit = ClearToolUsesEdit(trigger=self.trigger, keep=KEEP_RESULTS)
        self._middleware = ContextEditingMiddleware(edits=[edit])

    def view(self, messages: list[Message]) -> list[Message]:
        with self.outside():
            system, rest = split_system(messages)
            request = model_request(self._model, self._bridge.incoming(system), self._bridge.incoming(rest))
        sent: list[BaseMessage] = []

        def handler(request: Any) -> ModelResponse:
            sent[:] = request.messages
            return ModelResponse(result=[AIMessage("ok")])

        self._middleware.wrap_model_call(request, handler)
        with self.outside():
            return system + self._bridge.outgoing(sent)


def model_request(
    model: Any, system: list[BaseMessage], history: list[BaseMessage], state: dict[str, Any] | None = None
) -> ModelRequest:
    """What a middleware that stands around the model gets."""
    return ModelRequest(
        model=model,
        messages=history,
        system_message=system[0] if system else None,
        tools=[],
        runtime=None,
        state={"messages": history} if state is None else state,
    )
