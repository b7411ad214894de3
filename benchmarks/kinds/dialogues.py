"""Dialogues without tools: records of who said what, written as chat messages.

Four shapes: sessions of turns with a ``speaker``, days of ``query`` and ``response`` for several people, group chats
with senders, and lists of turns that name their speaker (``speaker`` and ``content`` or ``text``).
"""

from __future__ import annotations

from typing import Any

from contextfold.formats.values import json_text
from contextfold.transcripts.conversation import Conversation
from contextfold.transcripts.document import TranscriptFile

KIND = "dialogue"
USER_NAMES = frozenset({"user", "human"})
SPEAKER_KEYS = (("speaker", "content"), ("speaker", "text"))


def recognizes(document: TranscriptFile) -> bool:
    return bool(_dialogues(document.value))


def read(document: TranscriptFile) -> list[Conversation]:
    found = _dialogues(document.value)
    names = [document.name] if len(found) == 1 else [f"{document.name}#{number}" for number in range(len(found))]
    return [Conversation(name, "openai-chat", messages, KIND) for name, messages in zip(names, found, strict=True)]


def _dialogues(value: Any) -> list[list[Any]]:
    """The conversations in a file's value, as chat messages; none where it is not of these shapes."""
    if isinstance(value, list):
        return _one(_turns(value))
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("dialogues"), list):
        sessions = [entry for entry in value["dialogues"] if isinstance(entry, dict)]
        return _one([turn for session in sessions for turn in _turns(session.get("dialogue_turns"))])
    if isinstance(value.get("conversation_list"), list):
        return _one([_group_message(entry) for entry in value["conversation_list"] if isinstance(entry, dict)])
    return [messages for messages in map(_days, value.values()) if messages]


def _one(messages: list[Any]) -> list[list[Any]]:
    return [messages] if messages else []


def _turns(turns: Any) -> list[Any]:
    """Turns that name their speaker; empty unless every entry is one."""
    if not isinstance(turns, list):
        return []
    messages = [_turn(turn) for turn in turns]
    return [] if None in messages else messages


def _turn(turn: Any) -> dict[str, Any] | None:
    for speaker_key, content_key in SPEAKER_KEYS:
        if isinstance(turn, dict) and "role" not in turn and speaker_key in turn and content_key in turn:
            speaker = str(turn[speaker_key])
            role = "user" if speaker.lower() in USER_NAMES else "system" if speaker == "system" else "assistant"
            return {"role": role, "content": _text(turn[content_key])}
    return None


def _days(person: Any) -> list[Any]:
    """One person's history: for each day, what was asked and answered."""
    days = person.get("history") if isinstance(person, dict) else None
    if not isinstance(days, dict):
        return []
    asked = [turn for day in days.values() if isinstance(day, list) for turn in day if isinstance(turn, dict)]
    return [
        {"role": role, "content": _text(turn[key])}
        for turn in asked
        for role, key in (("user", "query"), ("assistant", "response"))
        if key in turn
    ]


def _group_message(entry: dict[str, Any]) -> dict[str, Any]:
    """A message of a group chat: the name of its sender is part of what was said."""
    sender = str(entry.get("sender", ""))
    role = "assistant" if any(name in sender.lower() for name in ("robot", "assistant")) else "user"
    return {"role": role, "content": f"{entry.get('sender_name') or sender}: {_text(entry.get('content'))}"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
