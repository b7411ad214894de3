"""What harnesses of coding agents write into user messages by themselves: no one said it.

What belongs here: telling these notes from the words beside them. What does not: what follows from that (``pins``).
"""

from __future__ import annotations

import re

# Seen in session files of coding agents and in their requests. Claude Code sends its reminders and the prompt in one
# message, so words behind a closed tag count.
_WRAPPED = ("<environment_context>", "<user_instructions>", "<system-reminder>")
_OF_COMMANDS = ("<local-command", "<command-name>", "Caveat:", "[Request interrupted by user")
_NOTES = (*_OF_COMMANDS, "# AGENTS.md")
_COMMAND = re.compile(r"(?:<command-(name|message)>[^<]*</command-\1>\s*)+<command-args>(.*?)</command-args>", re.S)
"""A command that a person typed, ``/review the gateway``: its name, told twice, and what stood behind it."""

_INSERTED = ("Base directory for this skill:", "<subagent_notification>", "<task-notification>", "<turn_aborted>")
"""How texts begin that a harness inserts as a message by itself."""

_BLANKS = re.compile(r"\s*")


def without_notes(text: str) -> str:
    """A text of a user from where a harness's notes end; empty if it is nothing else."""
    start = _behind_blanks(text, 0)
    while tag := next((tag for tag in _WRAPPED if text.startswith(tag, start)), None):
        end = "</" + tag[1:]
        closed = text.find(end, start)
        if closed < 0:
            return ""
        start = _behind_blanks(text, closed + len(end))
    command = _COMMAND.match(text, start)
    if command and command[2].strip():
        return command[2].strip() + text[command.end() :]
    return "" if text.startswith(_NOTES, start) else text[start:]


_REMINDER, _END_OF_REMINDER = "<system-reminder>", "</system-reminder>"


def without_reminders(text: str) -> str:
    """A tool's output without what a harness wrote into it for the model, the same each time."""
    pieces, done = [], 0
    while (start := text.find(_REMINDER, done)) >= 0 and (end := text.find(_END_OF_REMINDER, start)) >= 0:
        pieces.append(text[done:start])
        done = end + len(_END_OF_REMINDER)
    return "\n".join([*pieces, text[done:]]) if pieces else text


def is_note(text: str) -> bool:
    """Whether a text of a user is nothing but what a harness tells of a command of its own, ``/exit`` say."""
    return text.lstrip().startswith(_OF_COMMANDS) and not without_notes(text)


def _behind_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def is_inserted(text: str) -> bool:
    """Whether a message of a user is the text of a skill or a notification. It may say what is to be done, so it stays
    like words of a person; but no one asked for what stands in it.
    """
    return text.lstrip().startswith(_INSERTED)
