"""The three APIs, one class each; adding one touches only this package and the routes of ``app``."""

from contextfold.testing.provider.wires.anthropic import AnthropicMessages
from contextfold.testing.provider.wires.base import Reply, Wire
from contextfold.testing.provider.wires.openai_chat import OpenAIChat
from contextfold.testing.provider.wires.openai_responses import OpenAIResponses

__all__ = ["AnthropicMessages", "OpenAIChat", "OpenAIResponses", "Reply", "Wire"]
