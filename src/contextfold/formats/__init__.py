"""Wire formats by name, and which of them a list of wire objects is in.

Each format is one module; this one only knows their names. Marks decide: the first entry that carries a mark of one
format (a block type, a key, a role that no other format has) names it. A list without any marks, nothing but roles
and text, reads the same in all formats that have roles, and counts as ``openai-chat``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextfold.errors import InputError, shown
from contextfold.formats.anthropic import Anthropic
from contextfold.formats.base import Format
from contextfold.formats.bedrock_converse import BedrockConverse
from contextfold.formats.gemini import Gemini
from contextfold.formats.haystack import Haystack
from contextfold.formats.langchain import LangChain
from contextfold.formats.openai_chat import ROLES as CHAT_ROLES
from contextfold.formats.openai_chat import OpenAIChat
from contextfold.formats.openai_responses import OpenAIResponses
from contextfold.formats.pydantic_ai import PydanticAI
from contextfold.formats.values import kind_of
from contextfold.messages import Message

__all__ = ["FORMATS", "Format", "decode", "detect", "get", "marked"]

_CHAT = OpenAIChat()
FORMATS: Mapping[str, Format] = MappingProxyType(
    {known.name: known for known in (_CHAT, OpenAIResponses(), Anthropic(), LangChain(), Gemini(), BedrockConverse())}
)
"""All formats by their public name."""

OF_FRAMEWORKS: Mapping[str, Format] = MappingProxyType({known.name: known for known in (Haystack(), PydanticAI())})
"""Formats whose messages are objects of a framework, and nothing that stands in a file."""


def get(name: str) -> Format:
    """The format of this name, or an ``InputError`` that lists the names there are."""
    found = (FORMATS.get(name) or OF_FRAMEWORKS.get(name)) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown format {shown(name)}; formats are {', '.join(FORMATS)}")
    return found


def detect(wire: Sequence[Any]) -> Format:
    """The format of these wire objects. Raises ``InputError`` naming the first entry that fits none."""
    found = marked(wire)
    if found is not None:
        return found
    for index, entry in enumerate(wire):
        if not isinstance(entry, Mapping):
            raise InputError(f"message {index} is {kind_of(entry)}, and no format has such messages: {_REMEDY}")
        role = entry.get("role")
        if not isinstance(role, str) or role not in CHAT_ROLES:
            what = f"has the role {shown(role)}" if "role" in entry else "has no role"
            raise InputError(f"message {index} {what}, and fits no format: {_REMEDY}")
    return _CHAT


def marked(wire: Sequence[Any]) -> Format | None:
    """The format whose mark comes first; None where nothing but roles and text is there."""
    for entry in wire:
        for known in (*FORMATS.values(), *OF_FRAMEWORKS.values()):
            if _recognizes(known, entry):
                return known
    return None


def _recognizes(known: Format, entry: Any) -> bool:
    """Objects of strangers may raise when they are compared. Those carry no mark; decoding says what is wrong."""
    try:
        return known.recognizes((entry,))
    except Exception:  # noqa: BLE001 - whatever their code raises
        return False


def decode(wire: Sequence[Any], format: Format) -> list[Message]:
    """Wire objects as messages, one to one. Raises ``FormatError`` naming the index of a bad one."""
    return [format.decode(entry, index) for index, entry in enumerate(wire)]


_REMEDY = f"give a list of messages in one of {', '.join(FORMATS)}"
