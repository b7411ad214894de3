"""What a person said, and how much of it stands in a view word for word, or can be found again without loss.

- A user message is *verbatim* when it is in the view as its own message, or whole inside another one.
- It is *findable* when it is verbatim, or stands in the view in pieces (each of its lines, or each sentence of a line),
  or the view names a place that the agent can open and that holds it whole. An original that is kept somewhere, but of
  which the view says nothing, cannot be found by the agent.
- A *constraint* is a sentence of a user message with must, never, only, do not and the like (``sentences``); it counts
  when it stands in the view word for word. Runs of blanks count as one.

What belongs here: one message against one view. What does not: counting over a replay (the benchmark's measures, and
``contextfold.batch``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextfold.inspector.sentences import constraints, sentences

INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md",
    "Caveat:",
    "<local-command",
    "<command-name>",
    "<system-reminder>",
    "<system>",
)
"""How texts begin that a harness, not a person, put into the user's role. The instrument's own list, on purpose."""

_BLANKS = re.compile(r"\s+")


def squeezed(text: str) -> str:
    """The text with each run of blanks as one, so that a changed line break or indentation is no loss."""
    return _BLANKS.sub(" ", text).strip()


@dataclass(frozen=True, slots=True)
class Said:
    """A user message: its text, its lines with the sentences of each, and its constraints. All squeezed."""

    number: int
    text: str
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    constraints: tuple[str, ...]


def said(number: int, text: str) -> Said:
    """What is asked of a user message with this number and text."""
    lines = tuple((squeezed(line), tuple(map(squeezed, sentences(line)))) for line in text.splitlines() if line.strip())
    return Said(number, squeezed(text), lines, tuple(map(squeezed, constraints(text))))


@dataclass(frozen=True, slots=True)
class WordsFound:
    """How one user message fares in one view."""

    verbatim: bool
    findable: bool
    constraints: int


def found(message: Said, is_present: bool, others: str, places: Mapping[str, str]) -> WordsFound:
    """Look for a message in a view.

    Args:
        is_present: it stands in the view as its own message.
        others: squeezed text of everything in the view that is no message of the conversation.
        places: squeezed texts that can be opened, by the name under which ``others`` may point to them.
    """
    if is_present or (message.text and message.text in others):
        return WordsFound(True, True, len(message.constraints))
    kept = sum(constraint in others for constraint in message.constraints)
    in_pieces = bool(message.lines) and all(_is_line_in(line, parts, others) for line, parts in message.lines)
    pointed = any(name in others and message.text in text for name, text in places.items())
    return WordsFound(False, in_pieces or pointed, kept)


def _is_line_in(line: str, parts: Sequence[str], others: str) -> bool:
    return line in others or (bool(parts) and len(" ".join(parts)) >= len(line) - 2 and all(p in others for p in parts))
