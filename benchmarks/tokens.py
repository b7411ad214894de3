"""How far the built-in estimate is from a real tokenizer, on real conversations, beside characters / 4.

    python -m benchmarks.tokens [TRANSCRIPTS]

Prints a line for every conversation and a summary. Exit status 1 where that does not hold: within 10 % of o200k for
nine conversations in ten, and within 25 % for all.

The same strings go through all three: every readable text of a message, names and arguments of tool calls. Nothing
that would be the same in all of them is added, such as overheads and media, so the errors are not thinned out.

The reference is tiktoken with the vocabulary that the litellm wheel carries, so no network is needed: install the
bench extra, or set TIKTOKEN_CACHE_DIR.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.kinds import read_file
from contextfold import formats
from contextfold.errors import InputError
from contextfold.messages import Message, Reasoning, ToolCall, texts
from contextfold.tokens import estimate

ENCODING = "o200k_base"
CLOSE, FAR, SHARE_CLOSE = 0.10, 0.25, 0.90
SMALLEST_MESSAGE = 20
"""Tokens. The error of a shorter message says little in per cent."""


# ---- the reference ------------------------------------------------------------------------------


@cache
def encoding() -> Any:
    import tiktoken

    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = importlib.util.find_spec("litellm")  # found, not imported
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(folder) / "litellm_core_utils" / "tokenizers")
    return tiktoken.get_encoding(ENCODING)


def real_tokens(text: str) -> int:
    return len(encoding().encode_ordinary(text))


# ---- conversations ------------------------------------------------------------------------------


def readable(message: Message) -> Iterator[str]:
    """Every string of a message that a model reads."""
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.name
        if isinstance(part, Reasoning):
            yield part.text
        yield from texts(part)


def read_all(folder: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """(name, strings of each message) of every conversation, in order of name."""
    for path in sorted(path for path in folder.glob("*/*") if path.suffix not in (".md", "")):
        try:
            found = read_file(path)
        except InputError:
            continue  # not a conversation: questions about one, a license
        for number, conversation in enumerate(found):
            place = path.relative_to(folder).as_posix()
            messages = formats.decode(conversation.messages, formats.get(conversation.format))
            strings = [[text for text in readable(message) if text] for message in messages]
            if any(strings):
                yield (place if len(found) == 1 else f"{place}#{number}"), strings


def conversations(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """(name, strings) of every conversation."""
    for name, messages in read_all(folder):
        yield name, [text for strings in messages for text in strings]


# ---- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    name: str
    characters: int
    tokens: int
    estimated: int
    message_errors: tuple[float, ...]

    @property
    def error(self) -> float:
        return self.estimated / self.tokens - 1

    @property
    def quarter(self) -> int:
        """Characters / 4."""
        return self.characters // 4

    @property
    def quarter_error(self) -> float:
        return self.quarter / self.tokens - 1


def measure(name: str, messages: list[list[str]]) -> Result:
    exact = [sum(map(real_tokens, strings)) for strings in messages]
    estimated = [sum(map(estimate, strings)) for strings in messages]
    errors = (guess / true - 1 for guess, true in zip(estimated, exact, strict=True) if true >= SMALLEST_MESSAGE)
    characters = sum(len(text) for strings in messages for text in strings)
    return Result(name, characters, sum(exact), sum(estimated), tuple(errors))


def megabytes_per_second(function: Any, strings: list[str]) -> float:
    size = sum(len(text.encode("utf8", "surrogatepass")) for text in strings)
    start = time.perf_counter()
    for text in strings:
        function(text)
    return size / 1e6 / (time.perf_counter() - start)


# ---- printing -----------------------------------------------------------------------------------


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def summary(label: str, errors: list[float]) -> str:
    sizes = [abs(error) for error in errors]
    within = sum(size <= CLOSE for size in sizes) / len(sizes)
    return (
        f"{label:<28}{len(sizes):>7,}{within:>12.1%}{percentile(sizes, 0.5):>9.1%}"
        f"{percentile(sizes, 0.9):>8.1%}{max(sizes):>8.1%}{sum(errors) / len(errors):>+8.1%}"
    )


def print_table(results: list[Result]) -> None:
    print(f"{'conversation':<78}{ENCODING:>12}{'estimate':>11}{'error':>9}{'chars / 4':>11}{'error':>9}")
    for result in results:
        print(
            f"{result.name[-77:]:<78}{result.tokens:>12,}{result.estimated:>11,}{result.error:>+9.1%}"
            f"{result.quarter:>11,}{result.quarter_error:>+9.1%}"
        )


def print_summary(results: list[Result], strings: list[str]) -> None:
    print(f"\n{'':<28}{'number':>7}{'within 10 %':>12}{'median':>9}{'p90':>8}{'worst':>8}{'bias':>8}")
    print(summary("conversations, estimate", [result.error for result in results]))
    print(summary("conversations, chars / 4", [result.quarter_error for result in results]))
    print(summary("messages, estimate", [error for result in results for error in result.message_errors]))
    ours, theirs = megabytes_per_second(estimate, strings), megabytes_per_second(real_tokens, strings)
    print(f"\nspeed: estimate {ours:.1f} MB/s, tiktoken {theirs:.1f} MB/s")


def holds(results: list[Result]) -> bool:
    errors = [abs(result.error) for result in results]
    return max(errors) <= FAR and sum(error <= CLOSE for error in errors) >= SHARE_CLOSE * len(errors)


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    named = os.environ.get("CONTEXTFOLD_TRANSCRIPTS", root.parent / "shared" / "transcripts")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcripts", nargs="?", type=Path, default=Path(named))
    read = dict(read_all(parser.parse_args().transcripts))
    if not read:
        print("no conversations found: name a folder that holds one folder of transcripts per source", file=sys.stderr)
        return 2
    results = [measure(name, messages) for name, messages in read.items()]
    print_table(results)
    print_summary(results, [text for messages in read.values() for strings in messages for text in strings])
    good = holds(results)
    verdict = "holds" if good else "does NOT hold"
    print(f"the estimate {verdict}: {SHARE_CLOSE:.0%} within {CLOSE:.0%}, all within {FAR:.0%}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
