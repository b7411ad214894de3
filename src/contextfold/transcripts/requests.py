"""Requests to providers, as people record them: the messages, with what stands beside them.

An Anthropic ``system``, a Responses ``instructions``, a Gemini ``systemInstruction`` or a harness's ``system_prompt``
becomes a leading system entry; the answer to the request, if it was recorded too, becomes the last entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextfold.formats.langchain_shapes import shape_of

SYSTEM_KEYS = ("system", "instructions", "system_prompt", "systemPrompt", "systemInstruction", "system_instruction")


def format_of(body: Mapping[str, Any], key: str) -> str | None:
    """The format that a request body tells by its keys, whatever its messages look like."""
    if key == "input" and "model" in body:
        return "openai-responses"
    if key == "contents":
        return "gemini"
    return "anthropic" if "system" in body and "model" in body else None


def messages_of(body: Mapping[str, Any], key: str) -> list[Any] | None:
    """The list of messages under ``key``; the ``input`` of a Responses request may be one string."""
    value = body.get(key)
    if isinstance(value, list):
        return value
    if key == "input" and isinstance(value, str) and "model" in body:
        return [{"role": "user", "content": value}]
    return None


def tools_of(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """The tool declarations of a request; they take room in the window as the messages do."""
    tools = body.get("tools")
    return tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()


def with_system(messages: list[Any], body: Mapping[str, Any]) -> list[Any]:
    """The messages, led by the system prompt that stands beside them, unless they have one of their own."""
    system = next((body[key] for key in SYSTEM_KEYS if body.get(key)), None)
    if system is None and isinstance(config := body.get("config") or body.get("generation_config"), Mapping):
        system = next((config[key] for key in SYSTEM_KEYS if config.get(key)), None)  # as the Python SDK takes it
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    if isinstance(first.get("parts"), list):
        parts = _parts_of(system)
        return [{"role": "system", "parts": parts}, *messages] if parts and first.get("role") != "system" else messages
    if not isinstance(system, str | list) or "system" in (first.get("role"), first.get("type")):
        return messages
    key = "type" if shape_of(first) is not None else "role"
    return [{key: "system", "content": system}, *messages]


def _parts_of(system: Any) -> list[Any]:
    """Gemini's system instruction: a content, parts, or a text."""
    parts = system.get("parts", [system] if "text" in system else []) if isinstance(system, Mapping) else system
    if isinstance(parts, str):
        return [{"text": parts}]
    found = parts if isinstance(parts, list) else [parts]
    return [{"text": part} if isinstance(part, str) else part for part in found if part]


def answer_in(response: Any) -> list[Any]:
    """The messages of a recorded response: Chat Completions, Anthropic, Responses or Gemini."""
    if not isinstance(response, dict):
        return []
    if response.get("role") == "assistant" and isinstance(response.get("content"), list):
        return [{"role": "assistant", "content": response["content"]}]
    if isinstance(response.get("output"), list):
        return list(response["output"])
    candidates = response.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    if isinstance(candidate, dict) and isinstance(candidate.get("content"), dict):
        return [candidate["content"]]
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if isinstance(message, dict) else []
