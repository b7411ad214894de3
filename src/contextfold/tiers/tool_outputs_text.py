"""Tool outputs that are not JSON: what kind of text it is, and the pieces that this kind falls into.

What belongs here: telling tables, prose, and lines (code, logs, listings, everything else) apart. What does not: the
choice among pieces (``pieces``) and limits in tokens (``fitting``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from contextfold.tiers import pieces
from contextfold.tiers.pieces import Pieces

_SAMPLE = 60
"""Lines looked at to tell the kind of a text."""
_FEWEST_ROWS = 5
"""Lines, the header included. Shorter tables are lines like any others."""
_LONG_LINE = 160
"""Characters. Prose has its paragraphs on long lines; code and logs have shorter ones on average."""
_SENTENCE_LENGTH = 400
"""Characters. Text with fewer ends of sentences than one in this many is data, not prose."""

_MARKDOWN_RULE = re.compile(r"\s*+(?:\|\s*+)?:?-{2,}+:?\s*+(?:\|\s*+:?-{2,}+:?\s*+)*+(?:\|\s*+)?")
_COLUMN_GAP = re.compile(r"\s{2,}")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")


def of_text(text: str) -> Pieces:
    """The pieces of a text by its kind: rows under a header, sentences, or lines."""
    sample = [line for line in text[: _SAMPLE * 1_000].splitlines()[:_SAMPLE] if line.strip()]
    header = table_header(sample)
    if header:
        return pieces.of_lines(text, "rows", header)
    return pieces.of_sentences(text) if is_prose(sample) else pieces.of_lines(text)


def table_header(lines: Sequence[str]) -> int:
    """How many of the first lines name the columns of a table; 0 if the lines are none."""
    if len(lines) < _FEWEST_ROWS:
        return 0
    if all("|" in line for line in lines) and _MARKDOWN_RULE.fullmatch(lines[1]):
        return 2
    names_columns = lines[0][:1].isalpha() or lines[0][:1] in "\"'#"
    is_table = names_columns and (any(_is_delimited(lines, mark) for mark in "\t,;|") or _is_aligned(lines))
    return 1 if is_table else 0


def is_prose(sample: Sequence[str]) -> bool:
    """Whether a text is, by the first of its lines, made of sentences on long lines."""
    if not sample or sum(map(len, sample)) < _LONG_LINE * len(sample):
        return False
    shown = "\n".join(sample)
    return len(_SENTENCE_END.findall(shown)) * _SENTENCE_LENGTH >= len(shown)


def _is_delimited(lines: Sequence[str], mark: str) -> bool:
    """At least three columns (two for tabs), and as many in each line as in the first."""
    if mark not in lines[0]:
        return False
    try:
        widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
    except csv.Error:  # a field longer than csv takes
        return False
    return len(widths) == 1 and min(widths) >= (2 if mark == "\t" else 3)


def _is_aligned(lines: Sequence[str]) -> bool:
    """Columns set apart by two or more blanks, as ``kubectl get`` and ``docker ps`` print them."""
    widths = [len(_COLUMN_GAP.split(line.strip())) for line in lines]
    return widths[0] >= 3 and all(width >= widths[0] - 1 for width in widths)
