"""The text of the message that carries a summary in a view, and reading it back.

The frame says that this is a report, not an instruction, and marks its borders, so that a caller who stores views as
histories does not end up with a summary inside a summary: ``parse`` finds an earlier one, and it is updated instead.
A text is a summary if it is our frame and nothing else. Where words stand beside it (two messages were joined),
``blocks`` takes both apart, so that what is quoted keeps its speakers and words stay words.
The frames are files, one per language, in ``prompts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from contextfold.summary.extractive_words import CONSTRAINTS

OPEN, CLOSE = "<conversation_summary>", "</conversation_summary>"
EVIDENCE_OPEN, EVIDENCE_CLOSE = "<evidence>", "</evidence>"

_HEADING = re.compile(rf"## (?:{'|'.join(map(re.escape, sorted(CONSTRAINTS)))})")


@dataclass(frozen=True, slots=True)
class Frame:
    """The sentences around a summary: what it is, what its evidence is, and where the originals are."""

    about: str
    evidence: str
    place: str
    former: tuple[str, ...]
    """``about`` as it was worded before, the newest first: summaries in stored histories begin with it."""


class Earlier(NamedTuple):
    """What an earlier summary says: its prose, and the lines that it quotes."""

    prose: str
    evidence: str

    @property
    def text(self) -> str:
        return "\n".join(text for text in (self.prose, self.evidence) if text)


def summary_text(prose: str, evidence: str, *, language: str = "en", place: str | None = None) -> str:
    """The content of the summary message. ``place`` is the address of the archive that has the originals, if any."""
    from contextfold import quoting  # compiles patterns that most conversations never need

    frame = _frame(language)
    about = frame.about
    if place is not None:
        about += f" {frame.place.format(place=quoting.without_tags(' '.join(place.split())))}"
    lines = [OPEN, about, "", quoting.without_marks(prose.strip())] if prose.strip() else [OPEN, about]
    if evidence:
        lines += ["", EVIDENCE_OPEN, frame.evidence, quoting.without_tags(evidence.strip()), EVIDENCE_CLOSE]
    return "\n".join([*lines, CLOSE])


def without_headings(prose: str) -> str:
    """The words of a model with ``> `` before a line that is the heading which the user's rules stand under where code
    wrote the summary: read back, what a model puts there would be told as the user's. Records are made with it.
    """
    if "## " not in prose:
        return prose
    lines = prose.splitlines(keepends=True)
    return "".join(f"> {line}" if _HEADING.fullmatch(line.rstrip()) else line for line in lines)


def parse(text: str) -> Earlier | None:
    """What a text made by ``summary_text`` says; None if it is not one, or if anything stands before or behind it."""
    found = blocks(text)
    return found[0] if len(found) == 1 and isinstance(found[0], Earlier) else None


def blocks(text: str) -> list[Earlier | str]:
    """A text as the summaries that it holds and the words between them, in order; blank words are left out.

    A summary begins and ends a line, and its first line is one of our frames. ``summary_text`` lets no border into
    what it frames, so a summary ends at the first one, and words never end up in it. One walk over the text.
    """
    found: list[Earlier | str] = []
    done = searched = 0
    while (end := text.find(f"\n{CLOSE}", searched)) >= 0:
        start = text.rfind(f"{OPEN}\n", searched, end)
        searched = end + 1 + len(CLOSE)
        if start < 0 or not _is_bare(text, start, searched):
            continue
        earlier = _read_block(text[start + len(OPEN) + 1 : end])
        if earlier is not None:
            found += [text[done:start], earlier]
            done = searched
    found.append(text[done:])
    return [block for block in found if isinstance(block, Earlier) or block.strip()]


def _is_bare(text: str, start: int, end: int) -> bool:
    """Whether nothing stands in the lines where a block begins and ends but its borders."""
    return text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n", "\r", " ")


def _read_block(inner: str) -> Earlier | None:
    """The lines between the borders: a frame, prose behind a blank line, and the evidence in its own borders."""
    about, _, rest = inner.partition("\n")
    frame = next((frame for frame in _FRAMES.values() if _is_about(about, frame)), None)
    if frame is None:
        return None
    opening = f"\n{EVIDENCE_OPEN}\n{frame.evidence}\n"
    prose, found, quoted = f"\n{rest}".partition(opening)
    if not found:
        return Earlier(prose.strip("\n"), "")
    if not quoted.endswith(f"\n{EVIDENCE_CLOSE}"):
        return None
    return Earlier(prose.strip("\n"), quoted.removesuffix(f"\n{EVIDENCE_CLOSE}"))


def _is_about(line: str, frame: Frame) -> bool:
    """Whether a line is the first one of a frame, with or without the place of the originals."""
    before, _, after = frame.place.partition("{place}")
    for about in (frame.about, *frame.former):
        rest = line.removeprefix(about)
        if rest == "" or (rest != line and rest.startswith(f" {before}") and rest.endswith(after)):
            return True
    return False


def _frame(language: str) -> Frame:
    return _FRAMES.get(language) or _FRAMES["en"]


def _read() -> Mapping[str, Frame]:
    """All frames by language, read when this is imported: a summary may be sized on an event loop."""
    frames = {}
    for file in (resources.files("contextfold.summary") / "prompts").iterdir():
        if file.name.startswith("frame."):
            about, evidence, place, *former = file.read_text(encoding="utf-8").splitlines()
            frames[file.name.split(".")[1]] = Frame(about, evidence, place, tuple(former))
    return frames


_FRAMES = _read()
