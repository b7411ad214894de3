"""Every regular expression of the package takes time that grows with its text, not with the square of it.

The patterns are found, not listed: compiled ones wherever a module or a class keeps them, literal ones in its syntax
tree. The texts that hurt are made from the pattern itself: each of its repetitions many times over, alone, behind what
stands before it, in the order in which they follow each other, and with an end that matches nothing.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import contextfold
from effort import FULL

SIZES = ((500, 2_000), (3_000, 12_000))
"""Characters. What is linear takes four times as long for the long text, the quadratic sixteen times. The small pair
comes first, for what is worse than quadratic."""

EVERY = 1 if FULL else 4
"""A quick run looks at one text in four for each pattern."""

TEXTS = 200
"""The most texts for one pattern. Of a longer list these are taken at equal distances."""

MOST = 9.0
CLEARLY = 6.0
"""What takes at most as many times as long at the first look is not looked at again."""
NOTICEABLE = 0.012
"""Seconds. Nothing linear takes as long for the long text here, and everything quadratic several times of it."""
SUSPECT = 1.6
"""A text of the time ``a * n + b * n * n`` takes ``a + 2 * b * n`` for a character in front. Where four times the text
takes ``MOST`` times as long, this is 2.7 times as much. Only such texts are searched as a whole."""

PLAIN = {"LITERAL", "IN"}
WORDS = 4
"""The most plain words of one choice that are tried."""

FROM_START = {"match", "fullmatch"}
USED = re.compile(r"(\w+)\.(match|fullmatch|search|sub|subn|split|finditer|findall)\b")

ROOT = Path(contextfold.__file__).parent
FILES = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py")) if path.name != "__main__.py"]
COMPILES = re.compile(r"\bre\.(?:compile|sub|subn|search|match|fullmatch|split|findall|finditer)\(")

GENERIC = [
    "\\",
    "\n",
    " ",
    "\t",
    "a",
    "A",
    "0",
    "1,",
    "1.",
    "a.",
    "a/",
    "/",
    "-",
    "_",
    "sk-",
    "=",
    "<",
    "[",
    "{",
    '"',
    "'",
    "a b ",
    "\n\n<evidence>\nx\n",
    "é",
    "中",
    "\\n",
    "eyJ",
    "://",
    "a:",
    "@",
    "aA",
    "Aa ",
    "1-",
    "x" * 64 + "\n",
    "token ",
    "data:a;",
]


@dataclass(frozen=True)
class Found:
    name: str
    pattern: re.Pattern[Any]
    anchored: bool


def patterns_in(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth < 4 and isinstance(value, dict):
        for key, inner in value.items():
            yield from patterns_in(inner, f"{name}[{key!r}]", depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for number, inner in enumerate(value):
            yield from patterns_in(inner, f"{name}[{number}]", depth + 1)
    elif depth < 4 and type(value).__module__.startswith("contextfold"):
        for field in (*getattr(type(value), "__dataclass_fields__", ()), *getattr(value, "__dict__", ())):
            yield from patterns_in(getattr(value, field, None), f"{name}.{field}", depth + 1)


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def methods() -> dict[str, set[str]]:
    """Name of a pattern -> the methods that are called on it: anywhere, or in its own file for a private one."""
    called: dict[str, set[str]] = {}
    for file in FILES:
        for name, method in USED.findall(source(file)):
            called.setdefault(f"{file}:{name}" if name.startswith("_") else name, set()).add(method)
    return called


def literals(file: str) -> Iterator[Found]:
    """Patterns that stand where they are used: ``re.sub(r"...", ...)``."""
    for node in ast.walk(ast.parse(source(file))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        first = node.args[0]
        if is_re and node.func.attr not in ("compile", "escape") and isinstance(first, ast.Constant):
            yield Found(f"{file}:{node.lineno}", re.compile(first.value), node.func.attr in FROM_START)


def compiled(file: str) -> Iterator[Found]:
    """Patterns that the module of a file, or a class in it, keeps; those that it imported among them."""
    module = importlib.import_module(
        "contextfold." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    )
    holders = [
        ("", vars(module)),
        *((k, vars(v)) for k, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__),
    ]
    for holder, values in holders:
        for key, value in values.items():
            for name, pattern in patterns_in(value, key):
                used = methods().get(f"{file}:{key}" if key.startswith("_") else key, set())
                anchored = name == key and bool(used) and used <= FROM_START
                yield Found(f"{file}:{holder + '.' if holder else ''}{name}", pattern, anchored)


def patterns_of(file: str) -> list[Found]:
    """Each pattern once; as one that searches, if it is used in both ways."""
    found: dict[tuple[Any, int], Found] = {}
    for one in compiled(file):
        known = found.get((one.pattern.pattern, one.pattern.flags))
        if known is None or known.anchored:
            found[one.pattern.pattern, one.pattern.flags] = one
    return [*found.values(), *literals(file)]


# ---- hostile texts ---------------------------------------------------------------------------------------------------


def sample(node: Any, least: int = 1) -> str:
    """A text that this part of a pattern matches, as short as it can be with each repetition ``least`` times."""
    said: list[str] = []
    for op, argument in node:
        said.append(_sample(op, argument, least))
    return "".join(said)


def _sample(op: Any, argument: Any, least: int) -> str:
    name = str(op)
    if name == "LITERAL":
        return chr(argument)
    if name == "NOT_LITERAL":
        return "b" if argument == ord("a") else "a"
    if name == "ANY":
        return "a"
    if name == "IN":
        return in_class(argument)
    if name == "BRANCH":
        return sample(argument[1][0], least)
    if name == "SUBPATTERN":
        return sample(argument[-1], least)
    if name == "ATOMIC_GROUP":
        return sample(argument, least)
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        low, high, inner = argument
        return sample(inner, least) * min(max(low, least), high if high is not constants.MAXREPEAT else 10**6)
    return ""


CATEGORIES = {
    "CATEGORY_DIGIT": "1",
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_NOT_WORD": "-",
}


def in_class(items: Any) -> str:
    negated = str(items[0][0]) == "NEGATE"
    if negated:
        pattern = re.compile("x")
        excluded = {chr(argument) for op, argument in items[1:] if str(op) == "LITERAL"}
        kinds = {str(argument) for op, argument in items[1:] if str(op) == "CATEGORY"}
        del pattern
        for one in "a1 -,/\n":
            bad = (
                one in excluded
                or (one.isspace() and "CATEGORY_SPACE" in kinds)
                or (one.isalnum() and "CATEGORY_WORD" in kinds)
                or (one.isdigit() and "CATEGORY_DIGIT" in kinds)
            )
            if not bad:
                return one
        return "é"
    op, argument = items[0]
    if str(op) == "LITERAL":
        return chr(argument)
    if str(op) == "RANGE":
        return chr(argument[0])
    return CATEGORIES.get(str(argument), "a")


def bodies(node: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what stands before it, one turn) of each part that may repeat often, and of each branch."""
    for op, argument in node:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, high, inner = argument
            if high is constants.MAXREPEAT or high > 8:
                yield before, sample(inner)
            yield from bodies(inner, before)
        elif name == "BRANCH":
            for branch in telling(argument[1]):
                yield before, sample(branch)
                yield from bodies(branch, before)
        elif name == "SUBPATTERN":
            yield from bodies(argument[-1], before)
        elif name == "ATOMIC_GROUP":
            yield from bodies(argument, before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from bodies(argument[1], before)
        before += _sample(op, argument, 1)


def telling(branches: Sequence[Any]) -> list[Any]:
    """The branches of one choice that may hurt in ways of their own: of hundreds of plain words one does what another
    does, so some are taken from the whole of them.
    """
    plain = [n for n, branch in enumerate(branches) if all(str(op) in PLAIN for op, _ in branch)]
    left_out = {*plain} - {*plain[:: -(-len(plain) // WORDS) or 1]}
    return [branch for n, branch in enumerate(branches) if n not in left_out]


def hostile(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """(beginning, what is repeated, end) of texts that may hurt a pattern."""
    tree = parser.parse(
        pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    found = list(dict.fromkeys(bodies(tree)))
    whole = sample(tree)
    turns = list(
        dict.fromkeys(
            [
                *(body for _, body in found),
                *(before + body for before, body in found),
                *(before for before, _ in found),
                *(f"{before} " for before, _ in found if before[-1:].isalnum()),
                whole,
            ]
        )
    )
    texts = [("", turn, "") for turn in turns]
    texts += [(before, body, end) for before, body in found for end in ("", "\x00", "!\n")]
    texts += [
        ("", one + other, "")
        for one, other in itertools.islice(itertools.permutations(dict.fromkeys(body for _, body in found), 2), 40)
    ]
    texts += [("", turn, end) for turn in GENERIC for end in ("", "\x00")]
    return [text for text in dict.fromkeys(texts) if text[1]]


def as_data(found: Found, text: str) -> Any:
    return text.encode("latin-1", "ignore") if isinstance(found.pattern.pattern, bytes) else text


def seconds(found: Found, text: str) -> float:
    data = as_data(found, text)
    began = time.thread_time()
    if found.anchored:
        found.pattern.match(data)
    else:
        for _ in found.pattern.finditer(data):
            pass
    return time.thread_time() - began


def attempts(found: Found, data: Any, at: int, end: int, most: int) -> tuple[float, int]:
    """Seconds of the attempts of a search from one place to another, at most so many, and where the next one begins."""
    attempt = found.pattern.match
    began = time.thread_time()
    for number in range(most):
        if at >= end or (number % 16 == 15 and time.thread_time() - began > NOTICEABLE):
            break
        match = attempt(data, at)
        at = max(at + 1, match.end() if match else 0)
    return time.thread_time() - began, at


def sampled(found: Found, size: int, beginning: str, turn: str, end: str) -> tuple[float, float]:
    """Seconds for the beginning of a text, and for all else if each character takes as long as those behind it.

    What follows from the place in a turn alone repeats itself after as many attempts as a turn has characters.
    """
    data = as_data(found, beginning + turn * (size // len(turn)) + end)
    first, at = attempts(found, data, 0, len(as_data(found, beginning)), len(beginning))
    rest, reached = attempts(found, data, at, len(data), len(turn) + 32)
    return first, rest / max(reached - at, 1) * len(data)


def suspect(found: Found, sizes: tuple[int, int], *text: str) -> bool:
    """Whether a search of the whole text may take ``MOST`` times as long, or is too short to be asked by samples."""
    if found.anchored:
        return True
    long = sampled(found, sizes[1], *text)
    if max(long) < NOTICEABLE / 4:
        return False
    short = [min(taken) for taken in zip(*(sampled(found, sizes[0], *text) for _ in range(2)), strict=True)]
    return long[0] > CLEARLY * short[0] or long[1] > SUSPECT * short[1] * sizes[1] / sizes[0]


def growth(found: Found, beginning: str, turn: str, end: str) -> float:
    """How many times as long the long text takes; 0 where neither takes long."""

    def text(size: int) -> str:
        return beginning + turn * (size // len(turn)) + end

    for shorter, longer in SIZES:
        if not suspect(found, (shorter, longer), beginning, turn, end):
            continue
        for runs in (1, 2, 10):  # on a busy machine a short time may come out long
            long = min(seconds(found, text(longer)) for _ in range(runs))
            short = min(seconds(found, text(shorter)) for _ in range(3 * runs))
            if long < NOTICEABLE or long <= (CLEARLY if runs == 1 else MOST) * short:
                break
        else:
            return long / max(short, 1e-6)
    return 0.0


@cache
def slow_texts(pattern: re.Pattern[Any], anchored: bool) -> dict[tuple[str, str, str], float]:
    """The first text that hurts, with how many times as long four times of it takes. Remembered: modules share some."""
    found = Found("", pattern, anchored)
    texts = hostile(pattern)
    for text in texts[:: max(EVERY, len(texts) // TEXTS)]:
        if (times := growth(found, *text)) > MOST:
            return {text: round(times, 1)}
    return {}


@pytest.mark.strict
@pytest.mark.parametrize("file", [file for file in FILES if COMPILES.search(source(file))])
def test_no_text_costs_a_pattern_the_square_of_its_size(file: str) -> None:
    found = patterns_of(file)
    slow = {one.name: texts for one in found if (texts := slow_texts(one.pattern, one.anchored))}
    assert not slow, f"four times the text takes so many times as long: {slow}"


@pytest.mark.strict
def test_no_pattern_stands_in_another_module() -> None:
    named = {file for file in FILES if COMPILES.search(source(file))}
    tried = {(one.pattern.pattern, one.pattern.flags) for file in named for one in patterns_of(file)}
    others = {
        one.name
        for file in set(FILES) - named
        for one in patterns_of(file)
        if (one.pattern.pattern, one.pattern.flags) not in tried
    }
    assert len(tried) > 150
    assert not others


def test_a_quadratic_pattern_is_noticed() -> None:
    patterns = (r"\\+x", r"\s*\d+x", r"(?:\d{1,3},)+\d\.\d", r"\bsk[-\w]+(?=\.)", r"a[^\n]*b", r"\b(?:if|when)\b[^.]*,")
    for bad in patterns if FULL else patterns[::5]:
        found = Found("bad", re.compile(bad), anchored=False)
        assert any(growth(found, *text) > MOST for text in hostile(found.pattern)), bad
