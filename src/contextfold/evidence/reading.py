"""What lines hold: names, the plain words beside them, and what their wording counts.

What belongs here: reading lines, many at once. What does not: cutting a message into lines (``lines``), recognizing
identifiers (``identifiers``), and what a line is worth beside others (``choice``).

A cold pass reads every line of a conversation, so this is where its time goes. Lines of ASCII, which most are, are read
together: one search over some hundred lines finds all chunks, one the first words of each line, and what a chunk names
is looked at once. What is found stands in columns: a line as an object of its own costs as much as to read it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Literal, NamedTuple

from contextfold import identifiers
from contextfold.identifiers import Identifier, Kind
from contextfold.summary import extractive_cues as cues

Source = Literal["user", "assistant", "tool"]

RULE, WISH = 3.0, 1.5
"""What a user's constraint and a milder one count by themselves, whatever stands in them and at any age: people do not
repeat a rule."""

ERROR, OUTCOME, MEASURE = 0.6, 0.6, 0.45
"""What a tool's line about a failure, about what came of something, and with an amount in it count by themselves."""

BARE = 0.6
"""What an identifier counts without any plain word beside it."""

ENOUGH_WORDS = 2
"""Plain words beside an identifier that make it more than a bare name."""

_TOGETHER = 200
"""Lines that are read together: enough that searches are shared, and no search takes more than some milliseconds."""

_REMEMBERED = 12_288
"""Chunks, about 2.5 megabytes. With 8,192 a pass of a growing session takes 2 % longer."""

_KIND_WORTH: dict[Kind, float] = {
    "date": 0.6,
    "flag": 0.6,
    "title": 0.5,
    "person": 0.4,
    "member": 0.4,
    "number": 0.3,
}
"""What is short, common or made of plain words is easily said another way; the other kinds count 1."""

_ERROR_WORDS = tuple(filter(str.isascii, cues.ERROR_WORDS))
_OUTCOME_WORDS = tuple(filter(str.isascii, cues.OUTCOME_WORDS))
"""Those that tell which lines of ASCII may have a bonus."""

_ASCII_WORD = re.compile(r"[A-Za-z]{3,}")
"""``PLAIN_WORD`` in a text of ASCII alone."""

_LONG = 6
"""Characters. A longer name cannot be guessed."""

_IN_NAME, _IN_WORD = "\0", "\1"
"""Stand for the signs of a name, where only the words around it are looked at: the second one for a letter at an end of
it, since a word that goes on there is none."""

_WORD_APART = re.compile(rf"(?<![A-Za-z{_IN_WORD}])[A-Za-z]{{3,}}+(?!{_IN_WORD})")

_NO_WORD = r"[^a-z\n]*+(?:[a-z]{1,2}+(?![a-z])[^a-z\n]*+)*+"
_TWO_WORDS = re.compile(rf"^{_NO_WORD}([a-z]{{3,}}+)?+{_NO_WORD}([a-z]{{3,}}+)?+[^\n]*+", re.MULTILINE).findall
"""Of each line of a text in lower case the first two plain words, as far as it has them."""

PLAIN_WORD = re.compile(rf"[{identifiers.CJK}]{{2}}|[^\W\d_{identifiers.CJK}]{{3,}}")


class Line(NamedTuple):
    """A line of a message, word for word but without indentation and line numbers.

    ``names`` are the identifiers in it and the parts that they may be called by, ``worths`` what each would cost to get
    wrong (0 to 1). ``words`` counts the plain words beside them, up to ``ENOUGH_WORDS``. ``bonus`` is what the line
    counts besides its names. ``terms`` are the plain words of what was said, each behind a blank so that none is taken
    for a name. ``date``: when it was said, where a section that is read back told it.
    """

    text: str
    source: Source
    names: tuple[str, ...] = ()
    worths: tuple[float, ...] = ()
    words: int = 0
    bonus: float = 0.0
    terms: tuple[str, ...] = ()
    date: str = ""


class Lines:
    """Lines of one message column by column.

    ``texts``, ``sources``, ``words`` and ``bonuses`` as in ``Line``; ``counts``: how many of ``names`` and ``worths``
    are each line's. ``terms`` and ``dates`` of the lines that have any, by their numbers.
    """

    __slots__ = ("_ends", "bonuses", "counts", "dates", "names", "sources", "terms", "texts", "words", "worths")

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.texts: list[str] = []
        self.sources: list[Source] = []
        self.counts: list[int] = []
        self.names: list[str] = []
        self.worths: list[float] = []
        self.words: list[int] = []
        self.bonuses: list[float] = []
        self.terms: dict[int, tuple[str, ...]] = {}
        self.dates: dict[int, str] = {}
        self._ends: list[int] | None = None
        """Where the names of each line begin, and the last ones end, once that was asked for."""
        for line in lines:
            self.append(line)

    def __len__(self) -> int:
        return len(self.texts)

    def append(self, line: Line) -> None:
        """One more line."""
        if line.terms:
            self.terms[len(self)] = line.terms
        if line.date:
            self.dates[len(self)] = line.date
        self.texts.append(line.text)
        self.sources.append(line.source)
        self.counts.append(len(line.names))
        self.names += line.names
        self.worths += line.worths
        self.words.append(line.words)
        self.bonuses.append(line.bonus)
        self._ends = None

    def extend(self, other: Lines) -> None:
        """More lines, which have no dates."""
        if other.terms:
            self.terms.update((len(self) + n, terms) for n, terms in other.terms.items())
        self.texts += other.texts
        self.sources += other.sources
        self.counts += other.counts
        self.names += other.names
        self.worths += other.worths
        self.words += other.words
        self.bonuses += other.bonuses
        self._ends = None

    def taken(self, rows: Sequence[int]) -> Lines:
        """These of the lines, which have no dates, in this order and some of them more than once."""
        if self._ends is None:
            self._ends = [0, *accumulate(self.counts)]
        taken, ends = Lines(), self._ends
        first, last = (rows[0], rows[-1] + 1) if rows else (0, 0)
        if rows == list(range(first, last)):  # an output that is new, as most are
            lines, names = slice(first, last), slice(ends[first], ends[last])
            taken.texts, taken.sources, taken.counts = self.texts[lines], self.sources[lines], self.counts[lines]
            taken.words, taken.bonuses = self.words[lines], self.bonuses[lines]
            taken.names, taken.worths = self.names[names], self.worths[names]
        else:  # column by column
            taken.texts = list(map(self.texts.__getitem__, rows))
            taken.sources = list(map(self.sources.__getitem__, rows))
            taken.counts = list(map(self.counts.__getitem__, rows))
            taken.words = list(map(self.words.__getitem__, rows))
            taken.bonuses = list(map(self.bonuses.__getitem__, rows))
            spans = [slice(ends[n], ends[n + 1]) for n in rows if self.counts[n]]
            taken.names = list(chain.from_iterable(map(self.names.__getitem__, spans)))
            taken.worths = list(chain.from_iterable(map(self.worths.__getitem__, spans)))
        if self.terms:
            taken.terms = {n: self.terms[row] for n, row in enumerate(rows) if row in self.terms}
        return taken

    def each_names(self) -> list[list[str]]:
        """The names of each line."""
        return [self.names[start:end] for start, end in pairwise([0, *accumulate(self.counts)])]

    def each(self) -> list[Line]:
        """The lines as objects."""
        spans = list(pairwise([0, *accumulate(self.counts)]))
        return [
            Line(
                text,
                self.sources[n],
                tuple(self.names[slice(*spans[n])]),
                tuple(self.worths[slice(*spans[n])]),
                self.words[n],
                self.bonuses[n],
                self.terms.get(n, ()),
                self.dates.get(n, ""),
            )
            for n, text in enumerate(self.texts)
        ]


# ---- many lines ----


def read(texts: Sequence[str], source: Source) -> Lines:
    """What lines without breaks in them hold, each of which has a letter or digit in it."""
    distinct = list(dict.fromkeys(texts))
    plain = [text for text in distinct if text.isascii()]
    lines = Lines()
    for start in range(0, len(plain), _TOGETHER):
        _read(plain[start : start + _TOGETHER], source, lines)
    if len(plain) == len(texts):
        return lines
    if len(plain) < len(distinct):
        for text in distinct:
            if not text.isascii():
                lines.append(read_line(text, source))
    place = {text: n for n, text in enumerate(lines.texts)}
    return lines.taken([place[text] for text in texts])


def _read(texts: Sequence[str], source: Source, lines: Lines) -> None:
    """Add lines of ASCII, read together: a search over all of them costs a fraction of one in each."""
    text = "\n".join(texts)
    starts = [0, *accumulate(len(line) + 1 for line in texts)]
    between, chunks, hidden = _split(text)
    counts, names, worths = _named(between, chunks, len(texts))
    hidden = hidden.lower()
    words = _each_plain_words(hidden)
    if spaced := _spaced(text, starts):
        _insert(spaced, counts, names, worths)
        rows = hidden.split("\n")
        for n, found in spaced.items():
            words[n] = _plain_words(_without(rows[n], [(one.start, one.end) for one in found]), _ASCII_WORD)
    lines.texts += texts
    lines.sources += [source] * len(texts)
    lines.counts += counts
    lines.names += names
    lines.worths += worths
    lines.words += words
    if source == "tool":
        some = _tool_bonuses(texts, text, starts)
        lines.bonuses += [some.get(n, 0.0) for n in range(len(texts))] if some else [0.0] * len(texts)
    else:
        lines.bonuses += [_bonus(line, source) for line in texts]


def _split(text: str) -> tuple[list[str], list[_Chunk], str]:
    """What stands between the chunks of a text, what these name, and the text with all these names hidden."""
    parts = _by_chunks(text)
    between, chunks = parts[::2], list(map(_CHUNKS.__getitem__, parts[1::2]))
    parts[1::2] = [chunk[0] for chunk in chunks]
    if _IN_NAME in text or _IN_WORD in text:  # no sign of the text itself may pass for a name
        parts[::2] = [part.replace(_IN_NAME, " ").replace(_IN_WORD, " ") for part in between]
    return between, chunks, "".join(parts)


def _named(between: Sequence[str], chunks: Sequence[_Chunk], lines: int) -> tuple[list[int], list[str], list[float]]:
    """How many names each of some lines has, and all names with what they would cost to get wrong, line by line."""
    counts = [0] * lines
    names: list[str] = []
    worths: list[float] = []
    number = 0
    for before, (_, found, costs) in zip(between, chunks, strict=False):
        if "\n" in before:
            number += before.count("\n")
        if not found:
            continue
        had = counts[number]
        if had and not set(found).isdisjoint(names[-had:]):  # named for the second time
            new = [one for one in zip(found, costs, strict=True) if one[0] not in names[-had:]]
            names += [name for name, _ in new]
            worths += [cost for _, cost in new]
            counts[number] += len(new)
        else:
            names += found
            worths += costs
            counts[number] = had + len(found)
    return counts, names, worths


def _insert(spaced: dict[int, list[Identifier]], counts: list[int], names: list[str], worths: list[float]) -> None:
    """Add names with blanks in them to the names of their lines, behind the others."""
    ends = list(accumulate(counts))
    for n in sorted(spaced, reverse=True):  # from the end, so that the ends of the lines before stay where they are
        new: dict[str, float] = {}
        for one in spaced[n]:
            if one.text not in names[ends[n] - counts[n] : ends[n]]:
                new.setdefault(one.text, _worth(one.text, one.kind))
        names[ends[n] : ends[n]] = new
        worths[ends[n] : ends[n]] = new.values()
        counts[n] += len(new)


def _each_plain_words(text: str) -> list[int]:
    """What ``_plain_words`` says of each line of a text in lower case that has a sign without meaning for each name."""
    found = _TWO_WORDS(text)
    counts = [(first != "") + (second != "") for first, second in found]
    lines: list[str] = []
    for n, (first, second) in enumerate(found):
        if first and first == second:  # a third word may be another one
            lines = lines or text.split("\n")
            counts[n] = min(ENOUGH_WORDS, len(set(_ASCII_WORD.findall(lines[n]))))
    return counts


def _spaced(text: str, starts: Sequence[int]) -> dict[int, list[Identifier]]:
    """The names with blanks in them in each line of a text of ASCII, by the line's number, and where they stand."""
    found: dict[int, list[Identifier]] = {}
    for one in identifiers.spaced(text):
        n = bisect_right(starts, one.start) - 1
        found.setdefault(n, []).append(one._replace(start=one.start - starts[n], end=one.end - starts[n]))
    return found


# ---- one line ----


def read_line(text: str, source: Source, searched: str | None = None) -> Line:
    """A line with what it holds. ``searched`` is the part of it that may name something, if not all of it."""
    plain = text if searched is None else searched
    _, chunks, hidden = _split(plain)
    names: dict[str, float] = {}
    for _, found, worths in chunks:
        for name, worth in zip(found, worths, strict=True):
            names.setdefault(name, worth)
    if identifiers.MAY_BE_SPACED.search(plain):
        spaced = list(identifiers.spaced(plain))
        for one in spaced:
            names.setdefault(one.text, _worth(one.text, one.kind))
        hidden = _without(hidden, [(one.start, one.end) for one in spaced])
    words = _plain_words(hidden, _ASCII_WORD if plain.isascii() else PLAIN_WORD)
    return Line(text, source, tuple(names), tuple(names.values()), words, _bonus(text, source))


def names_in(text: str) -> set[str]:
    """What a part of a line names, and the parts that this may be called by: ``identifiers.names`` for known chunks."""
    found = {name for chunk in _by_chunks(text)[1::2] for name in _CHUNKS[chunk][1]}
    if identifiers.MAY_BE_SPACED.search(text):
        found.update(one.text for one in identifiers.spaced(text))
    return found


def _without(hidden: str, spans: Iterable[tuple[int, int]]) -> str:
    """A line whose other names are hidden without the names with blanks that stand behind them."""
    # Words of those before count as words beside the others: ``Ada Lovelace in src/app.py``.
    done = max(hidden.rfind(_IN_NAME), hidden.rfind(_IN_WORD)) + 1
    for first, last in spans:
        if first >= done:
            hidden = f"{hidden[:first]}{_IN_NAME * (last - first)}{hidden[last:]}"
            done = last
    return hidden


def _plain_words(hidden: str, pattern: re.Pattern[str]) -> int:
    """How many distinct plain words a line has whose names are hidden, counted up to what makes a difference."""
    return min(ENOUGH_WORDS, len(set(map(str.lower, pattern.findall(hidden)))))


def named_spans(text: str) -> list[tuple[int, int]]:
    """From where to where each name stands in a text, in order of their beginnings."""
    spans = [
        (chunk.start() + one.start, chunk.start() + one.end)
        for chunk in identifiers.chunk_pattern(text).finditer(text)
        for one in identifiers.in_chunk(chunk.group())
    ]
    if identifiers.MAY_BE_SPACED.search(text):
        spans += [(one.start, one.end) for one in identifiers.spaced(text)]
        spans.sort()
    return spans


def plain_words(text: str) -> list[tuple[int, int]]:
    """Where the plain words of a line begin and end: those that no name overlaps."""
    if text.isascii() and _IN_WORD not in text:
        has_spaced = identifiers.MAY_BE_SPACED.search(text) and any(identifiers.spaced(text))
        if not has_spaced:  # most lines: what chunks name is known
            parts = _by_chunks(text)
            parts[1::2] = [_CHUNKS[chunk][0] for chunk in parts[1::2]]
            return [word.span() for word in _WORD_APART.finditer("".join(parts))]
    taken = named_spans(text)
    found: list[tuple[int, int]] = []
    n = 0
    for word in PLAIN_WORD.finditer(text):
        start, end = word.span()
        while n < len(taken) and taken[n][1] <= start:
            n += 1
        if n == len(taken) or taken[n][0] >= end:
            found.append((start, end))
    return found


# ---- chunks ----


_BY_CHUNKS, _BY_WIDE_CHUNKS = (
    re.compile(f"({identifiers.chunk_pattern(text).pattern})", re.ASCII).split for text in ("a", "ä")
)


def _by_chunks(text: str) -> list[str]:
    """What stands between chunks, and the chunks, in turns. Quicker than one match after the other."""
    return (_BY_CHUNKS if text.isascii() else _BY_WIDE_CHUNKS)(text)


_Chunk = tuple[str, tuple[str, ...], tuple[float, ...]]
"""A chunk with what it names hidden, the names, each once, and what each would cost to
get wrong."""


class _Chunks(dict[str, _Chunk]):
    """What chunks name, remembered: agents' logs repeat themselves. Forgotten all at once: the order of use that a
    better memory would keep costs more than to look at some chunks again.
    """

    def __missing__(self, chunk: str) -> _Chunk:
        name, assigned, value = chunk.partition("=")
        if assigned and _is_assignment(name, value):
            # each side is what it is alone, and comes again beside others
            (one, names, worths), (other, more, costs) = self._side(name), self._side(value)
            if more and names != more:
                return f"{one}={other}", names + more, worths + costs
            return f"{one}={other}", names, worths
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[chunk] = _looked_at(chunk)
        return found

    def _side(self, text: str) -> _Chunk:
        """What a side of an assignment names: nothing where it is too short."""
        return self[text] if len(text) >= identifiers.SHORTEST else (text, (), ())


_CHUNKS = _Chunks()


def _is_assignment(name: str, value: str) -> bool:
    if len(name) + len(value) >= identifiers.LONGEST:
        return False
    return name.isidentifier() and (value.isdigit() or value.isidentifier())


def _looked_at(chunk: str) -> _Chunk:
    if chunk.isidentifier() and len(chunk) <= identifiers.LONGEST:  # most of them: one name or none
        if not identifiers.is_name(chunk):
            return chunk, (), ()
        return _hidden(chunk), (chunk,), _alone(_worth(chunk, "name"))
    if chunk.isdigit():
        is_number = identifiers.is_number(chunk)
        return (_hidden(chunk), (chunk,), _alone(_worth(chunk, "number"))) if is_number else (chunk, (), ())
    found = identifiers.in_chunk.__wrapped__(chunk)  # remembered here, so not there as well
    if not found:
        return chunk, (), ()
    if len(found) == 1 and not found[0].parts:
        text, kind, first, last, _ = found[0]
        return f"{chunk[:first]}{_hidden(text)}{chunk[last:]}", (text,), _alone(_worth(text, kind))
    rest, end = [], 0
    names: dict[str, float] = {}
    for text, kind, first, last, parts in found:
        rest += [chunk[end:first], _hidden(text)]
        end = last
        names.setdefault(text, _worth(text, kind))
        for part in parts:
            names.setdefault(part, _worth(part, "name"))
    return "".join([*rest, chunk[end:]]), tuple(names), tuple(names.values())


def _hidden(name: str) -> str:
    return _mask(len(name), name[0].isalpha(), name[-1].isalpha())


@lru_cache(maxsize=1_024)
def _mask(length: int, begins_word: bool, ends_word: bool) -> str:
    """What stands for the signs of a name. Names of one length share it: it is half of what a chunk takes."""
    return (_IN_WORD if begins_word else _IN_NAME) + _IN_NAME * (length - 2) + (_IN_WORD if ends_word else _IN_NAME)


@lru_cache(maxsize=1_024)
def _alone(worth: float) -> tuple[float]:
    """The worths of a chunk with one name, shared by all such chunks for the same reason."""
    return (worth,)


# ---- what the wording counts ----


def _where(pattern: re.Pattern[str], text: str, starts: Sequence[int]) -> set[int]:
    """The numbers of the lines, which begin at ``starts``, in which a pattern matches."""
    lines: set[int] = set()
    found = pattern.search(text)
    while found is not None:
        line = bisect_right(starts, found.start()) - 1
        lines.add(line)
        found = pattern.search(text, starts[line + 1])
    return lines


def _with_any(words: Iterable[str], text: str, starts: Sequence[int]) -> set[int]:
    """The numbers of the lines in which one of these words stands."""
    lines: set[int] = set()
    for word in words:
        place = text.find(word)
        while place >= 0:
            line = bisect_right(starts, place) - 1
            lines.add(line)
            place = text.find(word, starts[line + 1])
    return lines


def _tool_bonuses(lines: Sequence[str], text: str, starts: Sequence[int]) -> dict[int, float]:
    """The bonuses of a tool's lines of ASCII that have one, as ``_bonus`` gives them."""
    bonuses = {n: MEASURE for n in _where(cues.MEASURE_ASCII, text, starts) if cues.MEASURE_ASCII.search(lines[n])}
    # the patterns are tried where a word stands that each of their matches holds
    for n in _with_any(_OUTCOME_WORDS, text.lower(), starts):
        if cues.OUTCOME.search(lines[n]):
            bonuses[n] = OUTCOME
    for n in _with_any(_ERROR_WORDS, text, starts):
        if cues.ERROR.search(lines[n]):
            bonuses[n] = ERROR
    return bonuses


def _worth(name: str, kind: Kind) -> float:
    """What getting it wrong would cost, from 0 to 1: the longer a name is, the less it can be guessed."""
    length = len(name)
    return _KIND_WORTH.get(kind, 1.0) * (1.0 if length > _LONG else (length - 1) / _LONG)


def _bonus(text: str, source: Source) -> float:
    if source == "user":
        heads = cues.heads(text)
        is_rule = cues.PROHIBITION.search(text, heads) or cues.is_labeled(text)
        return RULE if is_rule else WISH if cues.CONSTRAINT.search(text, heads) else 0.0
    if source == "assistant":
        return 0.0
    if cues.ERROR.search(text):
        return ERROR
    return OUTCOME if cues.OUTCOME.search(text) else MEASURE if cues.MEASURE.search(text) else 0.0
