"""What the tests of formats share: real conversations, calls and results of a list, and objects instead of dumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kinds import Conversation, read_file

from contextfold import formats
from contextfold.messages import Message
from real_files import some

NOT_CONVERSATIONS = ("LICENSE", "README", "probing_questions")


def conversation_files(folder: Path) -> list[Path]:
    return some(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(NOT_CONVERSATIONS))


def conversations(folder: Path) -> Iterator[Conversation]:
    for path in conversation_files(folder):
        yield from read_file(path)


def decoded(wire: Sequence[Any], name: str) -> list[Message]:
    return formats.decode(wire, formats.get(name))


def pairing(messages: Sequence[Message]) -> tuple[list[str], list[str]]:
    """All call ids and all answered ids, sorted."""
    calls = sorted(call.id for message in messages for call in message.tool_calls)
    return calls, sorted(result.call_id for message in messages for result in message.tool_results)


def as_objects(dumps: Sequence[dict[str, Any]]) -> list[Any]:
    """LangChain dumps as message objects."""
    from langchain_core.messages import messages_from_dict

    return list(messages_from_dict([{"type": dump["type"], "data": dump} for dump in dumps]))
