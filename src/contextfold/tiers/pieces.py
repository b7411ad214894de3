"""A text as a row of pieces (lines, rows of a table, sentences), and which of them to keep when there is little room.

What belongs here: ranking pieces, choosing within a room, and putting the chosen ones together with markers between
them. What does not: telling what kind of text it is (``tool_outputs_text``) and limits in tokens (``fitting``).

The head and the tail of a text say what it is and how it ended, so both are kept. The rest of the room goes to pieces
in between: first those that report an outcome (errors, tracebacks, exit codes, test summaries), then warnings, then
those that bring the most identifiers not seen further up per character, because identifiers cannot be guessed again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from contextfold import identifiers
from contextfold.at_once import folded, split_lines
from contextfold.tiers.markers import counts_in, cut, is_shortened, marker, without_markers
from contextfold.tokens.estimate import stretches

OUTCOME = re.compile(
    r"""
      (?:Error|Exception|Interrupt)(?::\ \S|$)
    | ^Traceback\ \(most | ^E\ {2,}\S | ^\s{0,200}+-{3}\ FAIL | ^(?:not\ )?ok\s+\d
    | \b(?:ERROR|FATAL|CRITICAL|FAILED|FAILURE|FAIL|PANIC|ERR!)(?![\w=])
    | \b(?:[Ee]rror|[Ff]atal|[Pp]anic|[Ff]ailed|[Ff]ailure|[Aa]borted)(?:\[[^\]\n]{1,20}\])?:
    | \b(?:[Ee]xit(?:ed)?(?:\ with)?\ (?:code|status)|return[ _]?code)\b
    | \b\d+\ (?:passed|failed|failing|passing|errors?|tests?)\b | ^Tests?(?:\ Suites)?:\ | ^BUILD\ (?:SUCCESS|FAILED)
    | \b(?:Segmentation\ fault|core\ dumped|[Kk]illed|[Oo]ut\ of\ memory|OOM)\b
    | 错误[:：] | 失败 | 异常[:：] | エラー | 失敗 | 例外 | 오류 | 실패 | 예외
    """,
    re.VERBOSE | re.MULTILINE,
)
"""An error, a test result, how a process ended. Written as logs write it: code that handles errors rarely matches."""

WARNING = re.compile(
    r"""
      \b(?i:warn(?:ing)?)\b:? | 警告 | 경고
    | \b(?i:no\ such\ file | not\ found | permission\ denied | access\ denied | connection\ refused | timed\ out
        | cannot\ | could\ not\ | unable\ to\ | undefined\  | unresolved\  | deprecated)
    | ^\s{0,200}+File\ "[^"\n]{1,300}",\ line\ \d
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Worth a line when errors have theirs."""

_OUTCOME_WORDS = (
    *(
        "error",
        "exception",
        "interrupt",
        "traceback",
        "e  ",
        "fail",
        "ok ",
        "ok\t",
        "ok\n",
        "fatal",
        "critical",
        "panic",
    ),
    *(
        "err!",
        "aborted",
        "exit",
        "return",
        " passed",
        " passing",
        "test",
        "build ",
        "segmentation fault",
        "core dumped",
    ),
    *("killed", "out of memory", "oom", "错误", "失败", "异常", "エラー", "失敗", "例外", "오류", "실패", "예외"),
)
_WARNING_WORDS = (
    *("warn", "警告", "경고", "no such file", "not found", "denied", "connection refused", "timed out", "cannot "),
    *("could not ", "unable to ", "undefined ", "unresolved ", "deprecated", 'file "'),
)
"""In lower case: one of these stands in each match of the patterns above."""

_SEARCHED_AT_ONCE = 32_768
"""Characters. In a longer text words are looked for before patterns: a search holds the interpreter until its end."""

_REACH = 400
"""Characters. No match begins as far before its word, nor ends as far behind it, but for endless digits and blanks."""

_BLANKS = re.compile(r"\s*")
_DIGITS = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])|\n\s*")

_HEAD_SHARE = 0.25
_TAIL_SHARE = 0.15
"""Of the room. What the pieces in between do not use goes to the head as well. Measured on real tool outputs: smaller
shares keep more identifiers, and leave less to read of how a text begins and ends."""

_GAP = len("…[999 lines shortened]\n")
_WIDEST_SHARE = 0.25
"""Of the room: what one piece may take. A longer one is cut itself."""
_NARROWEST = 80
"""Characters. Pieces are not cut shorter than this however little room there is."""
_SEARCHED = 500_000
"""Characters of a text that are searched for identifiers. Outcomes are looked for everywhere."""
_SAME_KIND = 80
"""Characters at the start of two pieces which, numbers aside, tell whether they say the same."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a text in their order; together they are the text.

    ``unit`` names them in markers. The first ``header`` ones are always kept. ``glue`` follows a marker.
    ``order`` holds the indexes of the pieces worth keeping for themselves, the most valuable first.
    """

    texts: Sequence[str]
    unit: str
    header: int = 0
    glue: str = "\n"
    order: Sequence[int] = field(default=(), repr=False)

    def render(self, room: int) -> str:
        """The most telling pieces, verbatim and in order, with counts of the others, in at most ``room`` characters.

        Only a marker that stands alone may take more.
        """
        if sum(map(len, self.texts)) <= room:
            return "".join(self.texts)
        if len(self.texts) > 2:
            width = max(_NARROWEST, int(room * _WIDEST_SHARE))
            chosen = self._joined(self._chosen(room, width), width)
            if len(chosen) <= room:
                return chosen
        return cut("".join(self.texts), room, _TAIL_SHARE)

    def _chosen(self, room: int, width: int) -> set[int]:
        """Indexes of what is kept: header, head and tail, then the valuable ones, then more of the head."""
        costs = [min(len(text), width) for text in self.texts]
        kept = set(range(self.header))
        left = room - _GAP - sum(costs[: self.header])
        left -= _take(kept, range(self.header, len(costs)), costs, int(left * _HEAD_SHARE))
        left -= _take(kept, range(len(costs) - 1, -1, -1), costs, int(room * _TAIL_SHARE))
        for index in self.order:
            if left < _GAP:
                break
            # one that stands alone parts a gap in two, which takes one more marker
            cost = costs[index] + (0 if index - 1 in kept or index + 1 in kept else _GAP)
            if index not in kept and cost <= left:
                kept.add(index)
                left -= cost
        _take(kept, range(self.header, len(costs)), costs, left)
        return kept

    def _joined(self, kept: set[int], width: int) -> str:
        parts: list[str] = []
        following = 0
        for index in sorted(index for index in kept if not _is_marker(self.texts[index])):
            parts.append(self._gap(following, index))
            parts.append(_narrowed(self.texts[index], width))
            following = index + 1
        parts.append(self._gap(following, len(self.texts)))
        return "".join(parts)

    def _gap(self, start: int, end: int) -> str:
        """A marker for the pieces from ``start`` up to ``end``, or these pieces where they are not longer than it.

        Of pieces that are markers themselves, what they count is added up.
        """
        if start == end:
            return ""
        hidden = self.texts[start:end]
        shortened = [text for text in hidden if is_shortened(text)]
        counts = sum(map(counts_in, shortened), Counter[str]())
        counts[self.unit] += len(hidden) - sum(map(_is_marker, shortened))
        note = marker(counts) + self.glue
        return note if len(note) < sum(map(len, hidden)) else "".join(hidden)


def of_lines(text: str, unit: str = "lines", header: int = 0) -> Pieces:
    """Pieces that are lines (or rows, the first ``header`` of which name the columns). Repeated lines are collapsed."""
    texts = collapsed(split_lines(text, keepends=True))
    return Pieces(texts, unit, header, "\n", _order(texts, by_identifiers=unit == "lines"))


def of_sentences(text: str) -> Pieces:
    """Pieces that are sentences, with the space that follows them."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    texts = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]
    return Pieces(texts, "sentences", 0, " ", _order(texts))


def collapsed(lines: Sequence[str]) -> list[str]:
    """The lines, where a run of equal ones is the first of them and a marker, if that is shorter."""
    found: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end] == lines[start]:
            end += 1
        found += _collapsed_run(lines[start], end - start)
        start = end
    return found


def _collapsed_run(line: str, times: int) -> list[str]:
    if times > 1 and not is_shortened(line):
        note = marker({"repeated lines": times - 1}) + "\n"
        if len(note) < (times - 1) * len(line):
            return [line, note]
    return [line] * times


def _take(kept: set[int], indexes: range, costs: Sequence[int], room: int) -> int:
    """Keep pieces in this order until the next one does not fit. The characters taken."""
    taken = 0
    for index in indexes:
        if index in kept:
            continue
        if taken + costs[index] > room:
            break
        kept.add(index)
        taken += costs[index]
    return taken


def _is_marker(piece: str) -> bool:
    return is_shortened(piece) and not without_markers(piece).strip()


def _narrowed(piece: str, width: int) -> str:
    body = piece.rstrip()
    return piece if len(piece) <= width else cut(body, width) + piece[len(body) :]


def _order(texts: Sequence[str], by_identifiers: bool = True) -> list[int]:
    """Indexes of outcomes, then warnings (the first of each kind), then of the pieces dense with new identifiers."""
    starts = list(accumulate(chain([0], map(len, texts))))
    whole = "".join(texts)
    outcomes = _first_of_kind(texts, _touched(OUTCOME, _OUTCOME_WORDS, whole, starts))
    warnings = _first_of_kind(texts, _touched(WARNING, _WARNING_WORDS, whole, starts))
    dense = _by_density(texts, _new_identifiers(whole, starts)) if by_identifiers else []
    return list(dict.fromkeys([*outcomes, *warnings, *dense]))


def _touched(pattern: re.Pattern[str], words: Sequence[str], whole: str, starts: Sequence[int]) -> list[int]:
    """The pieces in which the pattern begins, in their order. One of the ``words`` stands in each of its matches."""
    if len(whole) < _SEARCHED_AT_ONCE:
        return list(dict.fromkeys(bisect_right(starts, found.start()) - 1 for found in pattern.finditer(whole)))
    # A search for a word is a hundred times as quick as one for a pattern, and most outputs of megabytes hold few of
    # them. So the pattern is tried where one stands: on its line, from the white space before it to the next sign
    # behind. Of a long line, only around the word.
    found: dict[int, None] = {}
    last = 0
    for start, end, is_cut in _around(words, folded(whole), whole):
        for one in pattern.finditer(whole, max(start, last), end):
            if is_cut and one.end() == end:  # it may go on, or be none, and has its word in another stretch as well
                break
            found[bisect_right(starts, one.start()) - 1] = None
            last = one.end()
    return list(found)


def _around(words: Sequence[str], lower: str, whole: str) -> Iterator[tuple[int, int, bool]]:
    """Where the lines with one of the words begin and end, with the white space before and one sign behind. Of a long
    line stretches around its words, and whether the line goes on behind one.
    """
    found: dict[tuple[int, int], bool] = {}
    for word in words:
        place = lower.find(word)
        while place >= 0:
            start, end = whole.rfind("\n", 0, place) + 1, whole.find("\n", place)
            end = len(whole) if end < 0 else end
            is_cut = end - place > 2 * _REACH
            stretch = max(start, place - _REACH), place + 2 * _REACH if is_cut else end
            found[stretch] = is_cut
            place = lower.find(word, place + _REACH if is_cut else end)
    for (start, end), is_cut in sorted(found.items()):
        if not is_cut:
            blanks = _BLANKS.match(whole, end)
            end = (blanks.end() if blanks else end) + 1
        if start and whole[start - 1] == "\n":
            # A pattern takes at most 200 blanks before its word, line breaks among them.
            start = len(whole[max(0, start - 300) : start].rstrip()) + max(0, start - 300)
        yield start, end, is_cut


def _first_of_kind(texts: Sequence[str], indexes: Sequence[int]) -> list[int]:
    seen: dict[str, int] = {}
    for index in indexes:
        seen.setdefault(_DIGITS.sub("0", texts[index].strip()[:_SAME_KIND]), index)
    return list(seen.values())


def _new_identifiers(whole: str, starts: Sequence[int]) -> Counter[int]:
    """Piece -> how many identifiers occur in it for the first time."""
    first: dict[str, int] = {}
    place = 0
    for part in stretches(whole[:_SEARCHED], _SEARCHED_AT_ONCE):
        for found in identifiers.find(part):
            start = place + found.start
            first[found.text] = min(start, first.get(found.text, start))
        place += len(part)
    return Counter(bisect_right(starts, start) - 1 for start in first.values())


def _by_density(texts: Sequence[str], values: Counter[int]) -> list[int]:
    # A piece that stands alone takes a marker, too.
    return sorted(values, key=lambda index: (-values[index] / (len(texts[index]) + _GAP), index))
