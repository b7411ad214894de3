"""The estimate for many texts at once: the same numbers as ``estimate``, in arrays and a third of the time.

What belongs here: the rules of ``estimate`` for texts of ASCII, as most of a conversation is. What does not: those
rules for all other texts (``estimate``), and the numbers in them (``rates``).

How it works. All texts lie one behind the other in one array of bytes, with a sign between them that is in none. Where
a word, a number, a run of symbols or of white space begins follows from two neighboring signs, so comparisons of the
array with itself find all pieces; tables give their prices. A text with a sign or a run that needs more than that is
left to ``estimate``. Lines (``prices``) are priced without what stands beside them, and whole texts (``whole``) in
parts that are cut where no piece goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from contextfold.tokens import rates
from contextfold.tokens.estimate import CUT, LONGEST, after, has_long_run, hundredths, stretches

Ints = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_TOGETHER = 32_768
"""Characters that are priced together: arrays of this size stay in the processor's cache, and hold no thread up."""

_PART = 300
"""Characters of the parts in which longer texts are priced."""

_SPACE, _UPPER, _LOWER, _FIGURE, _SYMBOL, _BREAK, _ENDING, _OTHER, _NO_SIGN = range(9)
_KINDS = np.full(256, _SYMBOL, dtype=np.uint8)
_KINDS[[9, 32]] = _SPACE
_KINDS[[11, 12, 13, 28, 29, 30, 31]] = _OTHER
_KINDS[10] = _BREAK
_KINDS[48:58] = _FIGURE
_KINDS[65:91] = _UPPER
_KINDS[97:123] = _LOWER
_KINDS[128:] = _OTHER

_CYRILLIC = re.compile(r"[\u0400-\u052f]")

_ENDINGS = re.compile(r"'(?:s|t|re|ve|m|ll|d)\b", re.ASCII)
"""What belongs to a word that stands before it, and costs nothing."""

_EDGE = 27
"""The place of the edge of a word in the table of pairs."""

_SMALL, _CAPITALS, _NONE = range(26), range(32, 58), 63
_CODES = np.full(256, _NONE, dtype=np.uint8)
_CODES[97:123], _CODES[65:91] = _SMALL, _CAPITALS
"""Letters by a code that tells place and case; all else has the same one."""


def _table() -> npt.NDArray[np.int16]:
    """``[first][second]`` for neighboring codes: what the second letter costs behind the first sign."""
    table = np.zeros((64, 64), dtype=np.int16)
    pairs = np.array(rates.PAIRS)[: _EDGE + 1, :26]
    table[:, _SMALL] = table[:, _CAPITALS] = pairs[_EDGE]
    table[:26, _SMALL] = table[32:58, _SMALL] = table[32:58, _CAPITALS] = pairs[:26]
    return table


_PAIRS = _table()
_BEGINS, _ENDS = np.zeros((2, 64, 64), dtype=np.bool_)
_BEGINS[_NONE, :58] = _BEGINS[:26, _CAPITALS] = True
_ENDS[:58, _NONE] = _ENDS[:26, _CAPITALS] = True
"""Between which neighboring codes a word begins or ends: a capital behind a small letter begins one, too."""

_LAST = np.zeros(64, dtype=np.int16)
_LAST[_SMALL] = _LAST[_CAPITALS] = np.array(rates.PAIRS)[:26, _EDGE]
"""What the end of a word costs behind its last letter."""

_CASES = ("lower", "Capital", "UPPER", "MIxed")
_BLANK, _SLASH, _GAP = ord(" "), ord("/"), "\0"
_NOTHING = ord("\n")
"""Stands for the character before a word that has none: a line break, which is never one."""

_BY_LEAD = np.array(
    [
        [rates.LEADS.get("" if sign == _NOTHING else chr(sign), rates.LEADS["other"])[case] for case in _CASES]
        for sign in range(128)
    ],
    dtype=np.int32,
)
"""What a word costs beyond one token, by the sign before it and by its case."""

_BY_LETTER = np.array(
    [
        [
            rates.PER_LETTER[case] + rates.PER_LETTER_AFTER[after("" if sign == _NOTHING else chr(sign))]
            for case in _CASES
        ]
        for sign in range(128)
    ],
    dtype=np.int32,
)

_MOST_LETTERS, _MOST_SYMBOLS, _MOST_SPACES, _SAME_LETTERS = 32, 64, 32, 6
"""Runs that are longer, and as many same letters, are left to ``estimate``."""

_BY_RUNS = np.array(
    [
        rates.SYMBOL_RUNS[min(max(runs, 1), len(rates.SYMBOL_RUNS)) - 1]
        + max(0, runs - len(rates.SYMBOL_RUNS)) * rates.FURTHER_SYMBOL_RUN
        - runs * rates.REPEATED_SYMBOL
        for runs in range(_MOST_SYMBOLS + 2)
    ],
    dtype=np.int32,
)
"""What symbols cost, by how many runs of the same character they are, less what repeated ones cost."""


def prices(texts: Sequence[str]) -> tuple[Numbers, Numbers]:
    """What ``hundredths`` gives for each of these texts, and what a line break behind it adds.

    -1 in both for a text that is left to ``hundredths``, and for one that begins or ends with white space: what that
    costs hangs on what stands beside it.
    """
    found, breaks = np.full(len(texts), -1, dtype=np.int64), np.full(len(texts), -1, dtype=np.int64)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    is_ascii = np.fromiter(map(str.isascii, texts), dtype=np.bool_, count=len(texts))
    for some in _portions(np.flatnonzero(is_ascii & (lengths > 0) & (lengths < LONGEST)), lengths):
        found[some], breaks[some] = _priced([texts[n] for n in some.tolist()], lengths[some])
    return found, breaks


def whole(texts: Sequence[str]) -> list[int]:
    """What ``hundredths`` gives for each of these texts, however long they are and whatever is in them."""
    parts = [_parts(text) for text in texts]
    each = [part for some in parts for part in some]
    prices = iter(_of_parts(each).tolist())
    return [
        sum(price if price >= 0 else hundredths(part) for part, price in zip(some, prices, strict=False))
        for some in parts
    ]


def _parts(text: str) -> list[str]:
    """A text in parts whose prices add up to its own, so that one odd sign leaves little of it to ``hundredths``."""
    long = list(stretches(text))  # as ``hundredths`` does, so that no search holds other threads up
    if not text.isascii() and any(_CYRILLIC.search(some) for some in long):
        return [text]  # the language of words is judged over the whole
    return [part for some in long for part in ([some] if has_long_run(some) else stretches(some, _PART, CUT))]


def _of_parts(texts: Sequence[str]) -> Numbers:
    """The prices of texts that may have line breaks; -1 for one that is left to ``hundredths``."""
    found = np.full(len(texts), -1, dtype=np.int64)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    taken = [n for n, text in enumerate(texts) if text and len(text) < LONGEST and text.isascii() and _GAP not in text]
    for some in _portions(np.array(taken, dtype=np.int64), lengths):
        found[some] = _priced_parts([texts[n] for n in some.tolist()], lengths[some])
    return found


def _priced_parts(texts: Sequence[str], lengths: Numbers) -> Numbers:
    text = _GAP.join(["", *texts, ""])
    signs = np.frombuffer(text.encode(), dtype=np.uint8)
    kinds = _kinds(text, signs)
    kinds[signs == 0] = _NO_SIGN
    starts = np.cumsum(lengths + 1) - lengths
    costs, is_odd, of_breaks = _pieces(signs, kinds)
    _breaks(signs, kinds, of_breaks, costs, is_odd)
    _white(signs, kinds, costs, is_odd)
    is_left = np.logical_or.reduceat(is_odd, starts)
    return np.where(is_left, -1, np.add.reduceat(costs, starts))


def _pieces(signs: Bytes, kinds: Bytes) -> tuple[Ints, Flags, Numbers]:
    """What words, symbols and numbers cost, where they begin; the signs that need more than that; and what a line break
    costs at each place.
    """
    costs = np.zeros(len(signs), dtype=np.int32)
    is_odd = kinds == _OTHER
    changes = np.cumsum(signs[1:] != signs[:-1], dtype=np.int32)
    _words(signs, kinds, changes, costs, is_odd)
    of_breaks = _symbols(signs, kinds, changes, costs, is_odd)
    _figures(kinds, costs)
    return costs, is_odd, of_breaks


def _kinds(text: str, signs: Bytes) -> Bytes:
    kinds: Bytes = _KINDS[signs]
    for ending in _ENDINGS.finditer(text):
        if kinds[ending.start() - 1] in (_UPPER, _LOWER):
            kinds[ending.start() : ending.end()] = _ENDING
    return kinds


def _portions(texts: Numbers, lengths: Numbers) -> Iterator[Numbers]:
    """The texts, some at a time."""
    ends = np.cumsum(lengths[texts] + 1)
    cuts = np.searchsorted(ends, np.arange(_TOGETHER, int(ends[-1]) if len(ends) else 0, _TOGETHER), "right")
    return (part for part in np.split(texts, cuts) if len(part))


def _priced(texts: Sequence[str], lengths: Numbers) -> tuple[Numbers, Numbers]:
    """The same for some texts of ASCII."""
    text = "\n".join(["", *texts, ""])  # with a break before the first one, so every sign has a neighbor
    signs = np.frombuffer(text.encode(), dtype=np.uint8)
    kinds = _kinds(text, signs)
    starts = np.cumsum(lengths + 1) - lengths
    costs, is_odd, of_breaks = _pieces(signs, kinds)
    _spaces(signs, kinds, costs, is_odd)
    is_left = np.logical_or.reduceat(is_odd, starts) | (np.add.reduceat(kinds == _BREAK, starts, dtype=np.int32) > 1)
    found, breaks = np.add.reduceat(costs, starts), of_breaks[starts + lengths]
    return np.where(is_left, -1, found), np.where(is_left, -1, breaks)


def _runs(is_one: Flags) -> tuple[Numbers, Numbers, Numbers]:
    """Where the runs of signs of a kind begin, where their last signs are, and their lengths."""
    edges = np.flatnonzero(is_one[1:] != is_one[:-1]) + 1  # the first sign and the last are line breaks
    first, last = edges[::2], edges[1::2] - 1
    return first, last, last - first + 1


def _words(signs: Bytes, kinds: Bytes, changes: Ints, costs: Ints, is_odd: Flags) -> None:
    """What words cost, written where they begin, as the costs of all pieces are."""
    codes = np.where((kinds == _UPPER) | (kinds == _LOWER), _CODES[signs], np.uint8(_NONE))
    neighbors = codes[:-1].astype(np.uint16) * 64 + codes[1:]
    first, last = np.flatnonzero(_BEGINS.ravel()[neighbors]) + 1, np.flatnonzero(_ENDS.ravel()[neighbors])
    lengths = last - first + 1
    sums = np.cumsum(_PAIRS.ravel()[neighbors], dtype=np.int32)
    pairs = sums[last - 1] - np.where(first > 1, sums[first - 2], 0) + _LAST[codes[last]]
    kind = kinds[first]
    ends_upper = (kinds[last] == _UPPER) & (lengths > 1)
    case = np.where(kind == _LOWER, 0, np.where(ends_upper, 2, np.where(kinds[first + 1] == _UPPER, 3, 1)))
    lead = _leads(signs, kinds, first)
    costs[first] = 100 + np.maximum(0, _BY_LEAD[lead, case] + lengths * _BY_LETTER[lead, case] + pairs)
    is_same = (lengths >= _SAME_LETTERS) & (changes[last - 1] == changes[first - 1])
    is_odd[first[(lengths > _MOST_LETTERS) | is_same]] = True


def _leads(signs: Bytes, kinds: Bytes, first: Numbers) -> Bytes:
    """The sign before each word that belongs to it: white space, or a symbol that stands alone."""
    before = kinds[first - 1]
    is_alone = (before == _SYMBOL) & (kinds[first - 2] != _SYMBOL) & (signs[first - 2] != _BLANK)
    lead: Bytes = np.where((before == _SPACE) | is_alone, signs[first - 1], _NOTHING)
    return lead


def _symbols(signs: Bytes, kinds: Bytes, changes: Ints, costs: Ints, is_odd: Flags) -> Numbers:
    """Runs of symbols. Returns what a line break costs at each place: it goes on with the run before it."""
    of_breaks = np.full(len(signs), 100)
    first, last, lengths = _runs(kinds == _SYMBOL)
    runs = 1 + changes[last - 1] - changes[first - 1]
    is_odd[first[lengths > _MOST_SYMBOLS]] = True
    runs = np.minimum(runs, _MOST_SYMBOLS)
    next_kind = kinds[last + 1]
    is_lead = (lengths == 1) & ((next_kind == _UPPER) | (next_kind == _LOWER)) & (signs[first - 1] != _BLANK)
    costs[first] = np.where(is_lead, 0, _BY_RUNS[runs] + lengths * rates.REPEATED_SYMBOL)
    of_breaks[last + 1] = _BY_RUNS[runs + 1] - _BY_RUNS[runs] + rates.REPEATED_SYMBOL
    return of_breaks


def _figures(kinds: Bytes, costs: Ints) -> None:
    """Figures, three at a time."""
    first, _, lengths = _runs(kinds == _FIGURE)
    costs[first] = (lengths + 2) // 3 * 100


def _spaces(signs: Bytes, kinds: Bytes, costs: Ints, is_odd: Flags) -> None:
    """White space but for its last sign, and that one where nothing behind it takes it."""
    first, last, lengths = _runs(kinds == _SPACE)
    behind = kinds[last + 1]
    is_taken = (behind == _UPPER) | (behind == _LOWER) | ((behind == _SYMBOL) & (signs[last] == _BLANK))
    costs[first] = 100 * (lengths > 1) + 100 * ~is_taken
    is_odd[first[(lengths > _MOST_SPACES) | (behind == _BREAK) | (kinds[first - 1] == _BREAK)]] = True


def _breaks(signs: Bytes, kinds: Bytes, of_breaks: Numbers, costs: Ints, is_odd: Flags) -> None:
    """Line breaks that go on with the symbols before them. They are white space no more."""
    first, last, lengths = _runs(kinds == _BREAK)
    behind = kinds[first - 1] == _SYMBOL
    first, last, lengths = first[behind], last[behind], lengths[behind]
    costs[first] = of_breaks[first] + (lengths - 1) * rates.REPEATED_SYMBOL
    is_odd[first[(lengths > _MOST_SPACES) | (signs[last + 1] == _SLASH)]] = True
    kinds[np.repeat(last - np.cumsum(lengths) + 1, lengths) + np.arange(int(lengths.sum()))] = _ENDING


def _white(signs: Bytes, kinds: Bytes, costs: Ints, is_odd: Flags) -> None:
    """White space: all down to the last line break of a run, and what ``_spaces`` says of the blanks behind it."""
    first, last, _ = _runs((kinds == _SPACE) | (kinds == _BREAK))
    places = np.where(kinds == _BREAK, np.arange(len(kinds)), -1)
    broken = np.maximum(np.maximum.accumulate(places)[last], first - 1)  # the last break
    lengths = last - broken
    behind = kinds[last + 1]
    is_taken = (behind == _UPPER) | (behind == _LOWER) | ((behind == _SYMBOL) & (signs[last] == _BLANK))
    blanks = np.where(behind == _NO_SIGN, lengths > 0, 1 * (lengths > 1) + (~is_taken & (lengths > 0)))
    costs[first] = 100 * (blanks + (broken >= first))
    is_odd[first[(lengths > _MOST_SPACES) | (broken - first >= _MOST_SPACES)]] = True
