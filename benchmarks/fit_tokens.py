"""Fits the numbers of ``contextfold.tokens.rates`` and writes that module.

    python benchmarks/fit_tokens.py TRANSCRIPTS TEXTS --check     # leave-one-source-out errors, some minutes
    python benchmarks/fit_tokens.py TRANSCRIPTS TEXTS --write src/contextfold/tokens/rates.py   # then: ruff format

TRANSCRIPTS is a folder of real conversations, one folder per source. TEXTS is a folder of plain text files, one file
per source, for what the conversations do not show: other languages (``language-NAME.txt``), kinds of code, encoded
data. Needs numpy and tiktoken.

Every source weighs the same, however long: it is the next source that matters, not the longest of these. Word prices
are a ridge regression with a floor at one token (pieces that the floor decides leave the fit, and the fit is repeated
until they stay the same), sharpened so that whole sources come out right. Prices of single
characters are a ridge regression toward one token each.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).parent))
import tokens as benchmark

estimate = importlib.import_module("contextfold.tokens.estimate")  # the package exports a function of that name

COMMON_LANGUAGES = frozenset(
    ("ar", "de", "es", "fr", "hi", "id", "it", "ja", "ko", "nl", "pl", "pt_BR", "ru", "tr", "vi", "zh_Hans", "zh_Hant")
)
LANGUAGE_WEIGHT, COMMON_LANGUAGE_WEIGHT, OTHER_WEIGHT = 0.05, 0.3, 0.3
LEADS = ("", " ", "_", ".", "/", "-", '"', "(", "`", "\\", "$", "<", "other")
CASES = ("lower", "Capital", "UPPER", "MIxed")
AFTER = ("space", "nothing", "symbol")
SYMBOL_RUNS = 6
RIDGE = 2e-6
SIGN_RIDGE = 2e-3
"""Keeps a class that is no more than about four per cent of any document near one token per character."""

Source = tuple[str, float, list[str]]
Array = Any


# ---- what there is to learn from ----------------------------------------------------------------


def sources(transcripts: Path, texts: Path) -> list[Source]:
    """(name, weight, texts) of every source."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for name, strings in benchmark.conversations(transcripts):
        by_folder[name.split("/")[0]].append("\n".join(strings))
    found: list[Source] = [(name, 1.0, strings) for name, strings in sorted(by_folder.items())]
    for path in sorted(texts.glob("*.txt")):
        found.append((path.stem, weight_of(path.stem), [path.read_text(encoding="utf8")]))
    return found


def weight_of(text_name: str) -> float:
    """A language that many people talk to agents in weighs more than one that few do."""
    kind, _, language = text_name.partition("-")
    if kind != "language":
        return OTHER_WEIGHT
    return COMMON_LANGUAGE_WEIGHT if language in COMMON_LANGUAGES else LANGUAGE_WEIGHT


# ---- features -----------------------------------------------------------------------------------

WORD_COLUMNS = {
    **{("lead", lead, case): place for place, (lead, case) in enumerate((x, y) for x in LEADS for y in CASES)},
}
WORD_COLUMNS |= {("letter", case): len(WORD_COLUMNS) + place for place, case in enumerate(CASES)}
WORD_COLUMNS |= {("after", kind): len(WORD_COLUMNS) + place for place, kind in enumerate(AFTER)}
WORD_COLUMNS |= {("pair", *divmod(place, 28)): len(WORD_COLUMNS) + place for place in range(28 * 28)}


def word_features(piece: str) -> Counter[int]:
    lead, word = estimate.word_of(piece)
    lead = lead if lead in LEADS else "other"
    case = estimate.case_of(word)
    found: Counter[int] = Counter({WORD_COLUMNS["lead", lead, case]: 1})
    found[WORD_COLUMNS["letter", case]] += len(word)
    found[WORD_COLUMNS["after", estimate.after(lead)]] += len(word)
    for first, second in estimate.pairs_of(word):
        found[WORD_COLUMNS["pair", first, second]] += 1
    return found


def symbol_features(piece: str) -> Counter[int]:
    symbols = piece.lstrip(" ")
    runs = estimate.runs_of(symbols)
    beyond = max(0, runs - SYMBOL_RUNS)
    return Counter({min(runs, SYMBOL_RUNS) - 1: 1, SYMBOL_RUNS: beyond, SYMBOL_RUNS + 1: len(symbols) - runs})


ALPHABETS = sorted({estimate._block_of(chr(point)) for point in (*range(0x370, 0x2000), 0xAC00)})


def alphabetic_features(word: str) -> Counter[int]:
    script, length, foreign = estimate.alphabetic_features(word, russian=False)
    place = ALPHABETS.index(script)
    return Counter({2 * place: 1, 2 * place + 1: length, 2 * len(ALPHABETS): foreign})


def russian_features(word: str) -> Counter[int]:
    return Counter({0: 1, 1: len(word.lstrip(" "))})


def kind_of(piece: str) -> str:
    if piece[-1].isalpha():
        word = estimate.word_of(piece)[1]
        return "fixed" if len(word) >= 6 and len(set(word)) == 1 else "word"
    return "fixed" if piece.isdigit() or piece.isspace() else "symbols"


# ---- fitting ------------------------------------------------------------------------------------


class Pieces:
    """Pieces of one kind with their true tokens, and their share of all tokens in each source."""

    def __init__(self, counts: dict[str, Counter[str]], totals: dict[str, int], features: Any, columns: int) -> None:
        self.pieces = sorted({piece for counter in counts.values() for piece in counter})
        place = {piece: row for row, piece in enumerate(self.pieces)}
        self.tokens = numpy.array([benchmark.real_tokens(piece) for piece in self.pieces], float)
        self.columns = columns
        self.features = [features(piece) for piece in self.pieces]
        self.shares = {}
        for source, counter in counts.items():
            share = numpy.zeros(len(self.pieces))
            for piece, count in counter.items():
                share[place[piece]] = count / totals[source]
            self.shares[source] = share

    def matrix(self, rows: Array) -> Array:
        dense = numpy.zeros((len(rows), self.columns), numpy.float32)
        for line, row in enumerate(rows):
            for column, value in self.features[row].items():
                dense[line, column] = value
        return dense

    def weights(self, importance: dict[str, float]) -> Array:
        return sum(importance[source] * share for source, share in self.shares.items() if source in importance)

    def predict(self, solution: Array) -> Array:
        return numpy.concatenate([self.matrix(rows) @ solution for rows in chunks(len(self.pieces))])


def chunks(size: int, step: int = 20_000) -> list[range]:
    return [range(start, min(start + step, size)) for start in range(0, size, step)]


def ridge(pieces: Pieces, target: Array, weights: Array, strength: float = RIDGE) -> Array:
    left = strength * numpy.eye(pieces.columns)
    right = numpy.zeros(pieces.columns)
    for rows in chunks(len(pieces.pieces)):
        matrix, weight = pieces.matrix(rows).astype(float), weights[rows.start : rows.stop]
        left += matrix.T @ (matrix * weight[:, None])
        right += matrix.T @ (weight * target[rows.start : rows.stop])
    return numpy.linalg.solve(left, right)


def fit_surplus(pieces: Pieces, importance: dict[str, float], rounds: int = 6) -> Array:
    """Amounts whose sum, where positive, is what a piece costs beyond one token."""
    surplus, weights = pieces.tokens - 1, pieces.weights(importance)
    active = numpy.ones(len(surplus), bool)
    solution = numpy.zeros(pieces.columns)
    for _ in range(rounds):
        solution = ridge(pieces, surplus, numpy.where(active | (surplus > 0), weights, 0))
        now = pieces.predict(solution) > 0
        if (now == active).all():
            break
        active = now
    return solution


def fit_words(pieces: Pieces, importance: dict[str, float], rounds: int = 6) -> Array:
    return sharpened(pieces, fit_surplus(pieces, importance, rounds), importance)


def sharpened(pieces: Pieces, solution: Array, importance: dict[str, float]) -> Array:
    """The solution less a constant per word and times a factor, so that whole sources come out best.

    Least squares over pieces draws prices to the middle: plain English comes out too dear and everything else too
    cheap. A grid search over the two numbers sets that right where it matters, in the sum over a text.
    """
    surplus, predicted = pieces.tokens - 1, pieces.predict(solution)
    sources = [(weight, pieces.shares[name]) for name, weight in importance.items()]

    def loss(constant: float, factor: float) -> float:
        errors = numpy.maximum(0, predicted - constant) * factor - surplus
        return sum(weight * float(share @ errors) ** 2 for weight, share in sources)

    grid = [(constant / 50, factor / 20) for constant in range(16) for factor in range(18, 33)]
    constant, factor = min(grid, key=lambda pair: loss(*pair))
    print(f"less {constant:.2f} per word, times {factor:.2f}")
    sharp = solution.copy()
    sharp[[WORD_COLUMNS["lead", lead, case] for lead in LEADS for case in CASES]] -= constant
    return sharp * factor


def fit_signs(documents: list[tuple[str, Counter[str], int]], importance: dict[str, float]) -> dict[str, float]:
    """Tokens per character of every class of signs, from documents as (source, characters by class, tokens)."""
    points = (*range(0x250, 0x370), *range(0x2000, 0xAC00), *range(0xD7A4, 0x30000))
    names = sorted({estimate.sign_of(chr(point)) for point in points})
    per_source = Counter(source for source, _, _ in documents)
    left, right = SIGN_RIDGE * numpy.eye(len(names)), numpy.zeros(len(names))
    for source, signs, tokens in documents:
        row = numpy.array([float(signs[name]) for name in names])
        weight = importance.get(source, 0) / per_source[source] / max(tokens, 1000) ** 2  # relative errors count
        left += weight * numpy.outer(row, row)
        right += weight * row * (tokens - row.sum())
    return dict(zip(names, 1 + numpy.linalg.solve(left, right), strict=True))


# ---- data in the shape that the fit wants -------------------------------------------------------


def cut(found: list[Source]) -> tuple[dict[str, dict[str, Counter[str]]], dict[str, int], list[Any]]:
    """Pieces by kind and source, tokens by source, and the wide text of every document."""
    kinds: dict[str, dict[str, Counter[str]]] = {"word": {}, "symbols": {}, "alphabetic": {}, "Russian": {}}
    totals: dict[str, int] = {}
    wide: list[tuple[str, Counter[str], int]] = []
    for source, _, texts in found:
        counter: Counter[str] = Counter()
        kinds["alphabetic"][source], kinds["Russian"][source] = Counter(), Counter()
        for text in texts:
            words = estimate.ALPHABETIC_WORDS.findall(text)
            russian = estimate.looks_russian(words)
            for word in words:
                script = estimate.alphabetic_features(word, russian)[0]
                kinds["Russian" if script == "Russian" else "alphabetic"][source][word] += 1
            rest = estimate.ALPHABETIC_WORDS.sub(estimate.PLACE, text)
            runs = estimate.WIDE_RUNS.findall(rest)
            signs = Counter(estimate.sign_of(character) for character in "".join(runs) if character not in " \r\n")
            if runs:
                wide.append((source, signs, sum(map(benchmark.real_tokens, runs))))
            counter.update(estimate.PIECES.findall(estimate.WIDE_RUNS.sub(estimate.PLACE, rest)))
        totals[source] = sum(map(benchmark.real_tokens, texts))
        for kind in ("word", "symbols"):
            kinds[kind][source] = Counter({piece: n for piece, n in counter.items() if kind_of(piece) == kind})
    return kinds, totals, wide


# ---- writing ------------------------------------------------------------------------------------

HEADER = '''"""The numbers of the estimate, in hundredths of a token. Written by benchmarks/fit_tokens.py: do not edit.

Fitted against o200k_base on {conversations} sources of real conversations (weight 1 each) and {texts} other texts:
the translations that ship with Django 5.2, and for Amharic, Gujarati, Lao, Odia and Sinhala those of Debian's
packages (one source per language, weight {common} or {rare} by how common it is); source code, documentation, logs,
tables, numbers, hexadecimal and base64 (weight {other}).
"""

'''


def hundredths(value: float) -> int:
    return round(100 * value)


def module_text(
    words: Array, symbols: Array, alphabets: Array, russian: Array, signs: dict[str, float], header: str
) -> str:
    lines = [header, "LEADS: dict[str, dict[str, int]] = {"]
    for lead in LEADS:
        prices = {case: hundredths(words[WORD_COLUMNS["lead", lead, case]]) for case in CASES}
        lines.append(f"    {lead!r}: {prices!r},")
    lines += ["}", '"""What a word costs beyond one token, by the character before it and by its case."""\n']
    per_letter = {case: hundredths(words[WORD_COLUMNS["letter", case]]) for case in CASES}
    per_after = {kind: hundredths(words[WORD_COLUMNS["after", kind]]) for kind in AFTER}
    lines += [f"PER_LETTER = {per_letter!r}", f"PER_LETTER_AFTER = {per_after!r}\n"]
    lines += [f"SYMBOL_RUNS = {tuple(map(hundredths, symbols[:SYMBOL_RUNS]))!r}"]
    lines += ['"""Symbols by the number of runs of the same character: one run, two, ..."""\n']
    lines += [f"FURTHER_SYMBOL_RUN = {hundredths(symbols[SYMBOL_RUNS])}"]
    lines += [f"REPEATED_SYMBOL = {hundredths(symbols[SYMBOL_RUNS + 1])}\n"]
    lines += ["ALPHABETS: dict[str, tuple[int, int]] = {"]
    for place, script in enumerate(ALPHABETS):
        lines.append(f"    {script!r}: {tuple(map(hundredths, alphabets[2 * place : 2 * place + 2]))!r},")
    lines += [f"    'Russian': {tuple(map(hundredths, russian))!r},"]
    lines += ["}", '"""What a word of each script costs beyond one token: to begin with, and per letter."""\n']
    lines += [f"FOREIGN_LETTER = {hundredths(alphabets[2 * len(ALPHABETS)])}\n", "SIGNS: dict[str, int] = {"]
    lines += [f"    {name!r}: {hundredths(price)}," for name, price in signs.items()]
    lines += [
        "}",
        '"""One character of each class."""\n',
        'PAIRS = [[int(number) for number in row.split()] for row in """',
    ]
    for first in range(28):
        lines.append(" ".join(str(hundredths(words[WORD_COLUMNS["pair", first, second]])) for second in range(28)))
    lines[-1] += '""".strip().splitlines()]'
    lines.append(
        '"""``PAIRS[first][second]`` for neighboring letters: a to z, any other letter, the edge of the word."""\n'
    )
    return "\n".join(lines)


def check(words: Pieces, importance: dict[str, float]) -> None:
    """The words of each source of conversations by a fit without it: the error as a share of all its tokens."""
    for source in (name for name, weight in importance.items() if weight == 1):
        share = words.shares[source]
        rest = {name: weight for name, weight in importance.items() if name != source}
        prices = 1 + numpy.maximum(0, words.predict(fit_words(words, rest, rounds=3)))
        print(f"{source:40} {100 * float(share @ (prices - words.tokens)):+6.1f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--check", action="store_true", help="errors of every source under a fit without it")
    parser.add_argument("--write", type=Path, help="the module to write")
    options = parser.parse_args()
    found = sources(options.transcripts, options.texts)
    importance = {name: weight for name, weight, _ in found}
    kinds, totals, wide = cut(found)
    words = Pieces(kinds["word"], totals, word_features, len(WORD_COLUMNS))
    if options.check:
        check(words, importance)
    if options.write:
        symbols = Pieces(kinds["symbols"], totals, symbol_features, SYMBOL_RUNS + 2)
        prices = ridge(symbols, symbols.tokens, symbols.weights(importance))
        conversations = sum(weight == 1 for weight in importance.values())
        header = HEADER.format(
            conversations=conversations,
            texts=len(found) - conversations,
            common=COMMON_LANGUAGE_WEIGHT,
            rare=LANGUAGE_WEIGHT,
            other=OTHER_WEIGHT,
        )
        alphabetic = Pieces(kinds["alphabetic"], totals, alphabetic_features, 2 * len(ALPHABETS) + 1)
        alphabets = fit_surplus(alphabetic, importance)
        common = {name: weight for name, weight in importance.items() if weight > LANGUAGE_WEIGHT}
        russian = fit_surplus(Pieces(kinds["Russian"], totals, russian_features, 2), common)  # not what resembles it
        signs = fit_signs(wide, importance)
        text = module_text(fit_words(words, importance), prices, alphabets, russian, signs, header)
        options.write.write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
