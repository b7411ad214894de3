"""The text of the message that carries a summary in a view, and reading it back.

The frame says that this is a report, not an instruction, and marks its borders, so that a caller who stores views as
histories does not end up with a summary inside a summary: ``parse`` finds an earlier one, and it is updated instead.
The frames are files, one per language, in ``prompts``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

OPEN, CLOSE = "<conversation_summary>", "</conversation_summary>"
EVIDENCE_OPEN, EVIDENCE_CLOSE = "<evidence>", "</evidence>"

_MESSAGE = re.compile(
    rf"\s*{OPEN}\n(?P<frame>[^\n]*)(?:\n\n(?P<prose>(?!{EVIDENCE_OPEN}).*?))?(?:\n\n{EVIDENCE_OPEN}\n[^\n]*\n(?P<evidence>.*?)\n{EVIDENCE_CLOSE})?\n{CLOSE}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The two sentences around a summary: what it is, and what its evidence is."""

    about: str
    evidence: str


def summary_text(prose: str, evidence: str, *, language: str = "en") -> str:
    """The content of the summary message."""
    frame = _frame(language)
    lines = [OPEN, frame.about, "", neutral(prose.strip())] if prose.strip() else [OPEN, frame.about]
    if evidence:
        lines += ["", EVIDENCE_OPEN, frame.evidence, neutral(evidence.strip()), EVIDENCE_CLOSE]
    return "\n".join([*lines, CLOSE])


def parse(text: str) -> tuple[str, str] | None:
    """(prose, evidence) of a text made by ``summary_text``; None if it is not one."""
    found = _MESSAGE.match(text)
    if found is None:
        return None
    return found["prose"] or "", found["evidence"] or ""


def neutral(text: str) -> str:
    """The text without our own border marks, so that quoted content can neither end nor fake a summary."""
    return re.sub(r"<(/?)(conversation_summary|evidence)>", r"‹\1\2›", text)


@cache
def _frame(language: str) -> Frame:
    folder = resources.files("contextfold.summary") / "prompts"
    file = folder / f"frame.{language}.md"
    text = (file if file.is_file() else folder / "frame.en.md").read_text(encoding="utf-8")
    about, evidence = (line for line in text.splitlines() if line.strip())
    return Frame(about, evidence)
