"""What a stranger wrote, on a person's terminal: shown, and never obeyed.

Tools' outputs, names of tools, ids and names of files may hold a terminal's control codes, which clear a screen, hide
what stands on it, or write to the clipboard. What belongs here: making them signs that are seen, in every line that a
command writes for people. What does not: JSON, which is for programs and escapes them itself.
"""

from __future__ import annotations

import typer

_SIGNS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},  # pictures of control codes
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
}


def visible(text: str) -> str:
    """A text whose control codes are signs that a terminal shows. Line breaks and tabs are left."""
    return text.translate(_SIGNS)


def say(text: str, *, err: bool = False) -> None:
    """Write a line for people."""
    typer.echo(visible(text), err=err)
