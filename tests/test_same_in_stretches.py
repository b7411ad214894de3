"""Long texts are read in stretches and where a word stands, so that other threads run between.

The outcome is that of one search over everything.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from itertools import accumulate, chain

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import contextfold.tokens.estimate  # noqa: F401 - the name of the package's own is the function
from contextfold import at_once, identifiers
from contextfold.evidence import EstimatedSizes, reading
from contextfold.messages import Text, ToolResult
from contextfold.recall import words
from contextfold.summary import extractive_cues as cues
from contextfold.summary import extractive_facts
from contextfold.tiers import pieces
from contextfold.tokens import arrays
from effort import examples

counting = sys.modules["contextfold.tokens.estimate"]

PIECES = [
    "abc",
    "X",
    "1234",
    ",",
    "\n",
    " ",
    "  ",
    "\t",
    ";",
    "'s",
    "é",
    "日本",
    "привет",
    "。\n",
    "A" * 5000,
    "-" * 70,
]
PIECES += ["가나", " 다", "อากาศ", "👩‍💻", "e\u0301\u0323", "\ud83d", '"', '":"', "(", "x'll;", "}}"]
PIECES += [" " * 70, "a b ", "z9,b", "\n\n", "/", "b64=" * 1200]
SAID = ["Error: x", "Exception", "ok 5", "ok\n\n 7", "not ok 3", "--- FAIL", "Warning", "WARN", "E   x", "exit code"]
SAID += [
    "  \n  \n--- FAIL z",
    "Tests: 4",
    "73 passed",
    "killed",
    'File "a", line 3',
    '\n   \n File "a", line 3',
    *("ſ", "İ", "ı", "permıssıon denied", "ACCEſS DENİED", "tımed out", "WARNİNG"),
]
SAID += [
    "cannot see",
    "timed out",
    "失败",
    "x\n",
    "yy zz\n",
    "\n",
    "12 ms",
    "note: a",
    "5 files changed",
    "fertig",
    "é",
]


@given(st.lists(st.sampled_from(PIECES), max_size=120).map("".join))
@settings(max_examples=examples(150), deadline=None)
def test_the_price_of_a_text_is_the_sum_of_its_stretches(text: str) -> None:
    is_russian = counting.looks_russian(counting.ALPHABETIC_WORDS.findall(text))
    parts = list(counting.stretches(text, 20))
    assert "".join(parts) == text
    assert sum(counting._price(part, is_russian) for part in parts) == counting._price(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_STRETCH", 20)
        patch.setattr(counting, "_LOOKED_AT", 9)
        assert counting.hundredths(text) == counting._price(text)


WORDS = [
    "abc",
    "fooBar",
    " ",
    "\n",
    "。",
    "日本",
    "가",
    "e\u0301",
    "\u0301",
    "ｶ",
    "ﾞ",
    "か\u3099",
    "\\n",
    '"x\\ny"',
    "क",
    "ि",
    "-",
]


RUNS = st.tuples(st.lists(st.sampled_from(WORDS), max_size=3).map("".join), st.sampled_from(" \n。,:{")).map("".join)
"""Of at most 19 signs: what is longer than a piece, and has no sign to be cut at, is cut anywhere."""


@given(st.lists(RUNS, max_size=30).map("".join))
@settings(max_examples=examples(150), deadline=None)
def test_the_words_of_a_text_are_those_of_its_pieces(text: str) -> None:
    found, names = list(words.words_of(text)), words.names_of(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "AT_ONCE", 80)
        assert len(text) <= 40 or len(list(at_once.some_words(text))) > 1
        assert list(words.words_of(text)) == found
        assert words.names_of(text) == names


@pytest.mark.parametrize(
    "line",
    [
        "some words in a row, and more of them\n",
        "夜间导入速度太慢，请先检查日志再修改配置。",
        "서버가 응답하지 않아서 다시 시작했습니다.\n",
        "تم رفض الوصول إلى الملف بعد المحاولة.\n",
        "Сервер не отвечает, поэтому мы начали сначала.\n",
        "👍🏽🎉✅",
        '{"id":"a7","name":"b"},',
        '<a href="x9"><b>text</b></a>',
        "| c12 | 7 | Yes |\n",
    ],
)
def test_a_long_text_is_cut_at_all(line: str) -> None:
    text = line * (150_000 // len(line))
    assert max(map(len, counting.stretches(text))) < 3 * counting._STRETCH


@given(st.lists(st.sampled_from([*SAID, " ", "\n"]), max_size=120).map("".join), st.sampled_from([50, 400]))
@settings(max_examples=examples(150), deadline=None)
def test_what_is_found_around_words_is_what_is_found_everywhere(text: str, reach: int) -> None:
    """Also in lines that are longer than what a pattern looks at, of which the surroundings of words are searched."""
    starts = list(accumulate(chain([0], map(len, text.splitlines(keepends=True)))))
    patterns = ((pieces.OUTCOME, pieces._OUTCOME_WORDS), (pieces.WARNING, pieces._WARNING_WORDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_SEARCHED_AT_ONCE", 0)
        patch.setattr(pieces, "_REACH", reach)
        for pattern, words in patterns:
            found = [bisect_right(starts, one.start()) - 1 for one in pattern.finditer(text)]
            assert pieces._touched(pattern, words, text, starts) == list(dict.fromkeys(found))


BESIDE = ["`a b`", "Ann Lee", "$1,000", "a_b", "a_b=12345", "x=a_1", "1a=b2", "Fox fox", "src/a.py", "\0", "ab cde "]


@given(st.lists(st.lists(st.sampled_from([*SAID, *BESIDE, " "]), min_size=1, max_size=9), max_size=20))
@example(said=[["İ", "İ", "İ", "失败"]])
@settings(max_examples=examples(150), deadline=None)
def test_lines_that_are_read_together_hold_what_each_holds(said: list[list[str]]) -> None:
    lines = [line.strip() for parts in said for line in "".join(parts).splitlines() if line.strip()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_TOGETHER", 3)
        for source in ("tool", "assistant", "user"):
            assert reading.read(lines, source).each() == [reading.read_line(line, source) for line in lines]


@given(
    st.lists(st.sampled_from([*SAID, *BESIDE, " ", "\1", " Ann Lee", "Bo Fox,"]), min_size=1, max_size=9).map("".join)
)
@settings(max_examples=examples(300), deadline=None)
def test_a_line_holds_what_the_patterns_find_one_after_the_other(said: str) -> None:
    line = reading.read_line(said, "assistant")
    found = list(identifiers.find(said))
    assert line.names == tuple(dict.fromkeys(name for one in found for name in (one.text, *one.parts)))
    words, end = [], 0
    for one in found:
        if one.start >= end:
            words += reading.PLAIN_WORD.findall(said, end, one.start)
            end = one.end
    words += reading.PLAIN_WORD.findall(said, end)
    assert line.words == min(2, len({word.lower() for word in words}))


@given(
    st.lists(st.sampled_from([*"`A$1,.a B", "Ann", " Lee", "1,000", "$2,500.5", "x, Bo", "日本", "12"])).map("".join)
)
@settings(max_examples=examples(300), deadline=None)
def test_a_text_of_ascii_names_what_the_full_pattern_finds_in_it(text: str) -> None:
    text = text.encode("ascii", "ignore").decode()
    full = [(one.lastgroup, *one.span()) for one in identifiers._SPACED.finditer(text)]
    quick = [
        (one.kind, one.start - (one.kind == "title"), one.end + (one.kind == "title"))
        for one in identifiers.spaced(text)
    ]
    assert quick == [
        (kind, start, end)
        for kind, start, end in full
        if (identifiers.is_title(text[start + 1 : end - 1], text[start]) if kind == "title" else True)
        if end - start >= 3 or kind in ("title", "person")
    ]


@pytest.mark.parametrize(
    "line", ["Error: a", "fatal: x", "3 passed", "Note: x", "5 files changed", "12 ms", "0.5 GB", "失败", "exit code 2"]
)
def test_what_gives_a_line_a_bonus_is_found_by_its_words(line: str) -> None:
    assert reading._bonus(line, "tool")
    assert reading.read(["nothing", line], "tool").bonuses == [0.0, reading._bonus(line, "tool")]


@given(st.text(alphabet="aAbZ_09", min_size=3, max_size=12).filter(str.isidentifier))
@settings(max_examples=examples(300), deadline=None)
def test_a_chunk_of_letters_and_digits_is_a_name_as_its_shape_says(chunk: str) -> None:
    shaped = () if identifiers._PLAIN_WORD.fullmatch(chunk) else identifiers._by_shape(chunk)
    assert identifiers.in_chunk(chunk) == shaped


@given(st.text(alphabet="aAbZ_09.:?-/ =\n(é日", max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_plain_words_that_are_passed_over_name_nothing(text: str) -> None:
    assume("://" not in text)  # an address may go on in signs of no alphabet
    letters = "" if text.isascii() else identifiers._SPACED_LETTERS
    runs = re.findall(rf"[\w{letters}@#~$%+/.:\\&=?-]{{3,}}", text, re.ASCII)
    plain = rf"[A-Za-z{letters}]?[a-z{letters}]*[.:?-]*"
    assert identifiers.chunk_pattern(text).findall(text) == [run for run in runs if not re.fullmatch(plain, run)]


NAMING = ["src/app/max_age.py", "v1.2", "`a b`", "Ann Lee", "$1,000", "a_b", "fooBar", "x.Name", "https://a.io/b?c=d"]


@given(st.lists(st.sampled_from([*NAMING, *SAID, " ", ", "]), max_size=20).map("".join))
@settings(max_examples=examples(150), deadline=None)
def test_a_line_holds_what_is_found_in_it(text: str) -> None:
    found = list(identifiers.find(text))
    assert reading.named_spans(text) == sorted((one.start, one.end) for one in found)
    names = dict.fromkeys(name for one in found for name in (one.text, *one.parts))
    assert reading.read_line(text, "assistant").names == tuple(names)
    assert reading.names_in(text) == set(names)
    spans = [(one.start, one.start + len(one.text)) for one in found]
    words = [word.span() for word in reading.PLAIN_WORD.finditer(text)]
    apart = [word for word in words if not any(start < word[1] and word[0] < end for start, end in spans)]
    assert reading.plain_words(text) == apart


SIGNS = ["ab", "Cd", "EF", "g", "12345", "6", ".", "/", "=", "-", "_", "~", ":", "\\", "%", "$", "T", "2024-01-02"]


@given(st.lists(st.sampled_from(SIGNS), max_size=12).map("".join))
@settings(max_examples=examples(300), deadline=None)
def test_a_chunk_without_some_signs_names_what_the_full_pattern_finds_in_it(chunk: str) -> None:
    quick = identifiers.in_chunk.__wrapped__(chunk)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_SHAPE_OF_PATHS", "_SHAPE_OF_WORDS"):
            patch.setattr(identifiers, name, identifiers._SHAPE)
        assert quick == identifiers.in_chunk.__wrapped__(chunk)
        if identifiers.chunk_pattern(chunk).fullmatch(chunk):
            assert quick == identifiers._by_shape(chunk)
            assert reading._Chunks()[chunk][1] == tuple(
                dict.fromkeys(name for one in quick for name in (one.text, *one.parts))
            )


RUNS = ["a" * 6, "B" * 33, "-" * 64, "=" * 65, " " * 33, "\x1c", "\x00", "\x0b", "\r"]


@given(
    st.lists(st.lists(st.sampled_from([*PIECES, *SAID, *SIGNS, *RUNS, "'", "aB", " (", "\t"])).map("".join), max_size=9)
)
@example(
    texts=[
        "a',b",
        "it's ,'a,,' x",
        "they'll'm x",
        ";\n//",
        "/",
        "it's",
        "HTMLParser fooBar A1b",
        "x  (y",
        "x\t(y",
        "a" * 5,
    ]
)
@settings(max_examples=examples(400), deadline=None)
def test_texts_that_are_priced_in_arrays_cost_what_each_costs(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_TOGETHER", 50)
        prices, breaks = arrays.prices(texts)
    for text, price, more in zip(texts, prices.tolist(), breaks.tolist(), strict=True):
        if price < 0:
            assert more < 0
        else:
            assert price == counting.hundredths(text)
            assert price + more == counting.hundredths(f"{text}\n")
    assert EstimatedSizes(counting.estimate).each(texts) == list(map(counting.estimate, texts))


def test_lines_of_a_program_are_all_priced_in_arrays() -> None:
    lines = [
        "def read(self, *, limit: int = 4_096) -> list[Line]:  # don't cut",
        "    ".join("ab"),
        "GET /api/v2/users?id=7",
    ]
    prices, _ = arrays.prices(lines)
    assert prices.tolist() == list(map(counting.hundredths, lines))


@given(st.lists(st.sampled_from([*PIECES[:-1], *SAID, "\n\n", "\n  - "]), max_size=60).map("".join))
@settings(max_examples=examples(150), deadline=None)
def test_the_size_of_a_text_by_its_lines_is_what_whoever_counts_it_finds(text: str) -> None:
    counting._KNOWN.clear()
    plain = counting.estimate(text)
    counting._KNOWN.clear()
    assert EstimatedSizes(counting.estimate).whole(text) == plain == counting.estimate(text)


LOG = ["Error: x", "x: not found", "timed out", "fine", "error[E1]", "exit code 3", "失败:", "TypeError: a", "2 failed"]


@given(st.lists(st.sampled_from([*LOG, "word " * 90, "-" * 2100]), max_size=40).map("\n".join))
@settings(max_examples=examples(100), deadline=None)
def test_the_line_that_names_a_failure_is_the_first_found_that_says_what_it_was(text: str) -> None:
    lines = [*text[:4000].splitlines(), *text[4000:][-2000:].splitlines()]
    found = [line for line in lines if len(line) < 2000 and cues.ERROR.search(line)]
    telling = [line for line in found if not extractive_facts._BARE_FAILURE.fullmatch(line)]
    first = next(iter(telling or found), "")
    said = ToolResult("call_1", (Text(text),))
    assert extractive_facts.error_line(said) == (extractive_facts.clipped(first, extractive_facts.QUOTE))
