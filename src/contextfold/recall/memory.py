"""An index in memory: search over the history at hand, without a store.

What belongs here: rows of words (for every index), and the dictionaries that find them. What does not: scores
(``ranking``), and an index on disk (``store.search``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from contextfold.recall import stems
from contextfold.recall.ranking import PIECES, Ask, RankedText, Row, place_of, sequence_of
from contextfold.recall.words import marks_of, names_of, words_of

PIECE = 8_000
"""Words of one row; longer texts take several, and only those that would take more than ``PIECES`` longer ones."""

LARGEST_ROW = 900_000
"""Bytes of the different words and marks of one row: PostgreSQL takes less than 1 MB of them for one."""

OVERLAP = 16
"""Words that a row repeats from the one before it, so that a phrase is found where a text was cut."""


def rows_of(sequence: int, text: str) -> Iterator[Row]:
    """The rows of a message. A text without any word has none."""
    words = tuple(words_of(text))
    if not words:
        return
    language, names = stems.language_of(text), names_of(text)
    piece = start = 0
    # A text whose rows are all full has more than 50 MB of different words; what follows in it is not found.
    while start < len(words) and piece < PIECES:
        left = len(words) - start
        new = words[start : start + max(PIECE, -(-left // (PIECES - piece)))]
        marks = marks_of(new, language, names)
        while _bytes_of(new, marks) > LARGEST_ROW:
            new = new[: len(new) // 2]
            marks = marks_of(new, language, names)
        repeated = words[max(0, start - OVERLAP) : start]
        yield Row(place_of(sequence, piece, len(words)), repeated + new, len(repeated), tuple(marks))
        start += len(new)
        piece += 1


def _bytes_of(words: Sequence[str], marks: Sequence[str]) -> int:
    """Of the different ones; more than that as long as it does not matter."""
    most = 4 * (sum(map(len, words)) + sum(map(len, marks)))
    return most if most <= LARGEST_ROW else sum(len(token.encode()) for token in {*words, *marks})


class MemoryIndex:
    """An ``Index`` over messages that are added one after another. Grows with what is added, and never shrinks."""

    def __init__(self) -> None:
        self.messages = 0
        self.words = 0
        self._rows: dict[int, list[Row]] = {}
        self._texts: dict[int, RankedText] = {}
        self._places: dict[str, list[int]] = {}

    def add(self, sequence: int, text: str, *, found: bool = True) -> None:
        """Add a message. Sequence numbers ascend. ``found`` False: it only counts for how long messages are."""
        self.messages += 1
        for row in rows_of(sequence, text):
            self.words += len(row.words) - row.repeated
            if not found:
                continue
            self._rows.setdefault(sequence, []).append(row)
            for token in {*row.words, *row.marks}:
                self._places.setdefault(token, []).append(row.place)

    def places(self, ask: Ask) -> list[int]:
        if ask.phrase:
            return [place for place in self._with_all(ask) if self._has(place, ask)]
        found = [self._places[token] for token in ask.tokens if token in self._places]
        return found[0] if len(found) == 1 else sorted({place for places in found for place in places})

    def texts(self, sequences: Sequence[int]) -> Mapping[int, RankedText]:
        return {n: self._text(n) for n in sequences if n in self._rows}

    def _text(self, sequence: int) -> RankedText:
        found = self._texts.get(sequence)
        if found is None:
            rows = [(row.words, row.repeated, row.marks) for row in self._rows[sequence]]
            found = self._texts[sequence] = RankedText.of(rows)
        return found

    def _with_all(self, ask: Ask) -> list[int]:
        """Rows that have every word of a phrase, wherever; a word that may go on is looked for later."""
        whole = ask.phrase[:-1] if ask.prefix else ask.phrase
        if not whole:
            start = ask.phrase[-1]
            return sorted({n for token, places in self._places.items() if token.startswith(start) for n in places})
        found = sorted((self._places.get(word, []) for word in whole), key=len)
        rest = [set(places) for places in found[1:]]
        return [place for place in found[0] if all(place in places for places in rest)]

    def _has(self, place: int, ask: Ask) -> bool:
        row = next(row for row in self._rows[sequence_of(place)] if row.place == place)
        line = " " + " ".join(row.words) + " "
        return " " + " ".join(ask.phrase) + ("" if ask.prefix else " ") in line
