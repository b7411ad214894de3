"""The text of the message that carries a summary in a view, and reading it back.

The frame says that this is a report, not an instruction, and marks its borders, so that a caller who stores views as
histories does not end up with a summary inside a summary: ``parse`` finds an earlier one, and it is updated instead.
The frames are files, one per language, in ``prompts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

OPEN, CLOSE = "<conversation_summary>", "</conversation_summary>"
EVIDENCE_OPEN, EVIDENCE_CLOSE = "<evidence>", "</evidence>"

_MESSAGE = re.compile(
    rf"\s*{OPEN}\n(?P<frame>[^\n]*)(?:\n\n(?P<prose>(?!{EVIDENCE_OPEN}).*?))?(?:\n\n{EVIDENCE_OPEN}\n[^\n]*\n(?P<evidence>.*?)\n{EVIDENCE_CLOSE})?\n{CLOSE}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The sentences around a summary: what it is, what its evidence is, and where the originals are."""

    about: str
    evidence: str
    place: str


def summary_text(prose: str, evidence: str, *, language: str = "en", place: str | None = None) -> str:
    """The content of the summary message. ``place`` is the address of the archive that has the originals, if any."""
    frame = _frame(language)
    about = (
        frame.about if place is None else f"{frame.about} {frame.place.format(place=neutral(' '.join(place.split())))}"
    )
    lines = [OPEN, about, "", neutral(prose.strip())] if prose.strip() else [OPEN, about]
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


def _frame(language: str) -> Frame:
    return _FRAMES.get(language) or _FRAMES["en"]


def _read() -> Mapping[str, Frame]:
    """All frames by language, read when this is imported: a summary may be sized on an event loop (R33)."""
    frames = {}
    for file in (resources.files("contextfold.summary") / "prompts").iterdir():
        if file.name.startswith("frame."):
            frames[file.name.split(".")[1]] = Frame(*filter(None, file.read_text(encoding="utf-8").splitlines()))
    return frames


_FRAMES = _read()
