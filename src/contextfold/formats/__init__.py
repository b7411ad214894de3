"""Wire formats by name, and which of them a list of wire objects is in.

Each format is one module; this one only knows their names. Marks decide: the first entry that carries a mark of one
format (a block type, a key, a role that no other format has) names it. A list without any marks, nothing but roles
and text, reads the same in all formats that have roles, and counts as ``openai-chat``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextfold.errors import FormatError, InputError, held, shown
from contextfold.formats import objects
from contextfold.formats.base import Format
from contextfold.formats.marks import CHAT_ROLES, MARKED, is_marked
from contextfold.formats.values import kind_of
from contextfold.messages import Message

__all__ = ["FORMATS", "Format", "decode", "detect", "get", "marked", "opening"]


class _Formats(Mapping[str, Format]):
    """Formats by name: one object of each, whose module is loaded when it is first asked for."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes
        self._loaded: dict[str, Format] = {}

    def __getitem__(self, name: str) -> Format:
        found = self._loaded.get(name)
        if found is None:
            module, _, kind = self._homes[name].partition(":")
            made = getattr(importlib.import_module(f"{__name__}.{module}"), kind)()
            # Two threads may both have made one; all users get the same.
            found = self._loaded.setdefault(name, made)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


FORMATS: Mapping[str, Format] = _Formats(
    {
        "openai-chat": "openai_chat:OpenAIChat",
        "openai-responses": "openai_responses:OpenAIResponses",
        "anthropic": "anthropic:Anthropic",
        "langchain": "langchain:LangChain",
        "gemini": "gemini:Gemini",
        "bedrock-converse": "bedrock_converse:BedrockConverse",
    }
)
"""All formats by their public name."""

OF_FRAMEWORKS: Mapping[str, Format] = _Formats(
    {"haystack": "haystack:Haystack", "pydantic-ai": "pydantic_ai:PydanticAI"}
)
"""Formats whose messages are objects of a framework, and nothing that stands in a file."""

OF_REQUESTS: Mapping[str, Format] = _Formats({"anthropic-request": "anthropic:AnthropicRequest"})
"""Formats as clients send them, which go by the names of the formats themselves."""


_NAMES = frozenset((*FORMATS, *OF_FRAMEWORKS, *OF_REQUESTS))


def exists(name: str) -> bool:
    """Whether there is a format of this name, without loading it."""
    return name in _NAMES


def opening(wire: Sequence[Any]) -> int:
    """How many wire objects a list begins with that are instructions, without decoding them.

    They stand in every view as they are, so a list that differs in what they say, as with the time of day, is the same
    conversation.
    """
    return next((n for n, entry in enumerate(wire) if not _is_instruction(entry)), len(wire))


def _is_instruction(entry: Any) -> bool:
    role = entry.get("role") if isinstance(entry, dict) else held(entry, "role") or held(entry, "type")
    return isinstance(role, str) and role in ("system", "developer")


def get(name: str) -> Format:
    """The format of this name, or an ``InputError`` that lists the names there are."""
    homes = (FORMATS, OF_FRAMEWORKS, OF_REQUESTS)
    found = next((home[name] for home in homes if name in home), None) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown format {shown(name)}; formats are {', '.join(FORMATS)}")
    return found


def detect(wire: Sequence[Any]) -> Format:
    """The format of these wire objects. Raises ``InputError`` naming the first entry that fits none."""
    found = marked(wire)
    if found is not None:
        return found
    for index, given in enumerate(wire):
        entry = objects.plain(given, index)
        if not isinstance(entry, Mapping):
            raise InputError(f"message {index} is {kind_of(entry)}, and no format has such messages: {_REMEDY}")
        role = entry.get("role")
        if not isinstance(role, str) or role not in CHAT_ROLES:
            what = f"has the role {shown(role)}" if "role" in entry else "has no role"
            raise InputError(f"message {index} {what}, and fits no format: {_REMEDY}")
    return FORMATS["openai-chat"]


def marked(wire: Sequence[Any]) -> Format | None:
    """The format whose mark comes first; None where nothing but roles and text is there."""
    for entry in map(_looked_at, wire):
        for name in MARKED:
            if is_marked(name, entry):
                return get(name)
    return None


def _looked_at(entry: Any) -> Any:
    try:
        return objects.plain(entry)
    except FormatError:  # decoding says what is wrong
        return entry


def decode(wire: Sequence[Any], format: Format) -> list[Message]:
    """Wire objects as messages, one to one. Raises ``FormatError`` naming the index of a bad one."""
    return [format.decode(entry, index) for index, entry in enumerate(wire)]


_REMEDY = f"give a list of messages in one of {', '.join(FORMATS)}"
