"""Plants the forty facts into a conversation, at places that follow from the conversation alone.

What belongs here: which facts fit a conversation, in which message and at which place of its text. What does not: the
facts (``facts``) and asking for them (``retention``).

A conversation is a list of chat dictionaries. Facts are added to the text of messages that are there, so calls, results
and turns stay as they are. Fact ``i`` of forty goes to the first free message of its voice from ``i / 40`` of the
conversation's characters on, at most one per message; which fact comes first follows from the conversation's name. A
voice that a conversation does not have (tools in a dialogue) is spoken by the assistant, a fact for which no message is
free is left out, and so is one that the conversation already tells.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from benchmarks.replay.chat import Message, content_text
from benchmarks.replay.planted.facts import Fact, Language, Voice, facts, is_told, squeezed
from contextfold.inspector.words import INJECTED

STRUCTURED = ("{", "[", "<", *INJECTED)
"""How texts begin that are JSON or a harness's note: a sentence in them would break them, or have no author."""

_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_GERMAN = re.compile(r"\b(?:und|nicht|ist|das|die|der|wir|ich|auch|mit|für|ein|eine|werden|noch)\b", re.IGNORECASE)
_ENGLISH = re.compile(r"\b(?:and|not|is|the|we|you|it|also|with|for|a|an|will|to|of)\b", re.IGNORECASE)

CJK_SHARE = 0.15
"""Of the letters people and the assistant wrote: code and names keep it far below 1 in Chinese and Japanese work."""
KANA_SHARE = 0.15
"""Of the CJK letters: Japanese has at least this share of kana, Chinese nearly none."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact and the index of the message it stands in now."""

    fact: Fact
    index: int


def language_of(messages: Sequence[Message]) -> Language:
    """The language people and the assistant speak here; English where nothing tells otherwise."""
    spoken = "\n".join(content_text(m["content"])[:2000] for m in messages if m["role"] in ("user", "assistant"))[
        :200_000
    ]
    letters = max(1, len(_LETTER.findall(spoken)))
    kana, han = len(_KANA.findall(spoken)), len(_HAN.findall(spoken))
    if kana + han > CJK_SHARE * letters:
        return "ja" if kana > KANA_SHARE * (kana + han) else "zh"
    return "de" if len(_GERMAN.findall(spoken)) > len(_ENGLISH.findall(spoken)) else "en"


def plant(
    messages: Sequence[Message], name: str, language: Language | None = None
) -> tuple[list[Message], list[Planted]]:
    """A copy of the conversation with facts in it, and where they are.

    Args:
        messages: chat dictionaries; those without a fact come back as the same objects.
        name: of the conversation, to vary which fact comes early.
        language: of the facts; the conversation's own if not given.
    """
    planted = list(_places(messages, name, facts(language or language_of(messages))))
    changed: list[Any] = list(messages)
    for number, place in enumerate(planted):
        changed[place.index] = _with(changed[place.index], place.fact, number)
    return changed, planted


def _places(messages: Sequence[Message], name: str, order: Sequence[Fact]) -> Iterator[Planted]:
    known = squeezed("\n".join(content_text(m["content"]) for m in messages))
    ends = list(accumulate(len(content_text(m["content"])) for m in messages))
    free = _free(messages)
    turn = zlib.crc32(name.encode()) % len(order)
    for place, fact in enumerate([*order[turn:], *order[:turn]]):
        candidates = free[_voice(fact.voice, free)]
        if not candidates or is_told(fact, known):
            continue
        start = bisect_left(ends, ends[-1] * place / len(order))
        after = bisect_left(candidates, start)
        yield Planted(fact, candidates.pop(min(after, len(candidates) - 1)))


def _free(messages: Sequence[Message]) -> dict[Voice, list[int]]:
    """Messages that can carry a fact, by voice: not the first of a user, which every pinning strategy keeps anyway."""
    found: dict[Voice, list[int]] = {"user": [], "assistant": [], "tool": []}
    for index, message in enumerate(messages):
        text = content_text(message["content"]).strip()
        if message["role"] in found and text and not text.startswith(STRUCTURED):
            found[message["role"]].append(index)
    del found["user"][:1]
    return found


def _voice(voice: Voice, free: Mapping[Voice, Sequence[int]]) -> Voice:
    return "assistant" if voice == "tool" and not free["tool"] else voice


def _with(message: Message, fact: Fact, number: int) -> Message:
    """The message with the fact in its text: at its end, in a tool's output after a quarter, half, ... of it."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": _woven(content, message["role"], fact, number)}
    last = max(n for n, block in enumerate(content) if _block_text(block).strip())
    woven = _woven(_block_text(content[last]), message["role"], fact, number)
    block = woven if isinstance(content[last], str) else {**content[last], "text": woven}
    return {**message, "content": [*content[:last], block, *content[last + 1 :]]}


def _woven(text: str, role: str, fact: Fact, number: int) -> str:
    if role == "tool":
        lines = text.split("\n")
        at = max(1, len(lines) * (1 + number % 4) // 4)
        return "\n".join([*lines[:at], fact.sentence, *lines[at:]])
    text = text.rstrip()
    last_line = text.rsplit("\n", 1)[-1]
    if text[-1:] in "。！？":
        return text + fact.sentence
    if text[-1:] in ".!?" and not last_line.startswith(("#", "|", "`", "-", "*")):
        return f"{text} {fact.sentence}"
    return f"{text}\n\n{fact.sentence}"


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    return block.get("text") or ""
