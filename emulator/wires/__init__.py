"""The APIs, one class each; adding one touches only this package and the routes of ``app``."""

from emulator.wires.anthropic import AnthropicMessages
from emulator.wires.base import Reply, Wire
from emulator.wires.bedrock_converse import BedrockConverse
from emulator.wires.gemini import GeminiContent
from emulator.wires.openai_chat import OpenAIChat
from emulator.wires.openai_responses import OpenAIResponses

__all__ = ["AnthropicMessages", "BedrockConverse", "GeminiContent", "OpenAIChat", "OpenAIResponses", "Reply", "Wire"]
