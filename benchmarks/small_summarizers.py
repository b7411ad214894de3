"""A summarizer with a small window against a long history: what it takes, and whether it ends.

    python -m benchmarks.small_summarizers [FILE ...]

For each window (2,000, 4,000, 8,000 tokens), with the window known, unknown, and declared eight times too large: the
outcome, the depth, the calls, and all that the summarizer was sent as a multiple of what left the view. Without FILEs
the history is made: about 200,000 tokens of an agent's work. With FILEs their conversations of 50,000 tokens and more
are used as well. Everything is deterministic and offline; the summarizer answers as long as it is asked to.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kinds import read_file
from contextfold import Compactor, ContextOverflow, Policy, count_tokens

WINDOWS = (2_000, 4_000, 8_000)
KNOWLEDGE = ("known", "unknown", "wrong")
LONG = 50_000
BOUND = 1.15
"""Of what was evicted, with the window known."""
TOO_LARGE = 8
"""By this factor a wrongly declared window is too large."""
HISTORY_TOKENS = 200_000


class Obedient:
    """Answers with words of the prompt, exactly as long as asked; refuses prompts of more than ``limit`` tokens."""

    def __init__(self, limit: int, declared: int | None) -> None:
        self.limit = limit
        self.window = declared
        self.rejected = 0

    def complete(self, prompt: str) -> str:
        used = count_tokens([{"role": "user", "content": prompt}])
        if used > self.limit:
            self.rejected += 1
            raise ContextOverflow(limit=None, used=None)
        asked = int(re.findall(r"at most (\d+) tokens", prompt)[0])
        words = re.findall(r"[\w/.:-]{3,}", prompt)
        return " ".join(words[:: max(1, len(words) * 2 // max(1, asked))])[: asked * 3]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one history. ``ratio``: tokens sent to the summarizer by tokens evicted."""

    history: str
    window: int
    knowledge: str
    outcome: str
    depth: int
    calls: int
    rejected: int
    ratio: float
    seconds: float


def measured(name: str, messages: Sequence[Any], window: int, knowledge: str) -> Row:
    """One row of the table."""
    declared = {"known": window, "unknown": None, "wrong": window * TOO_LARGE}[knowledge]
    summarizer = Obedient(window, declared)
    started = time.perf_counter()
    out = Compactor(window=64_000, summarizer=summarizer, policy=Policy(on_failure="raise")).compact(
        list(messages), force=True
    )
    summary = out.summary
    sent = sum(event.data["input_tokens"] for event in out.events if event.name == "summary_request")
    return Row(
        history=name,
        window=window,
        knowledge=knowledge,
        outcome="ok" if summary is not None and not summary.truncated else "truncated",
        depth=summary.max_depth if summary else 0,
        calls=summary.calls if summary else 0,
        rejected=summarizer.rejected,
        ratio=sent / summary.original_tokens if summary and summary.original_tokens else 0.0,
        seconds=time.perf_counter() - started,
    )


def made_history(tokens: int, seed: int = 7) -> list[dict[str, Any]]:
    """An agent's work of about this many tokens: words of the assistant, calls, outputs of very different length."""
    chance = random.Random(seed)
    words = [
        f"{stem}{number}" for stem in ("module", "path/to/file", "error ", "value=", "test_") for number in range(40)
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find out why the nightly import fails."}]
    total, number = 0, 0
    while total < tokens:
        number += 1
        said = " ".join(chance.choices(words, k=chance.randint(10, 60)))
        output = "\n".join(" ".join(chance.choices(words, k=9)) for _ in range(chance.choice((2, 5, 20, 60, 150))))
        function = {"name": "shell", "arguments": f'{{"command": "grep -rn {chance.choice(words)} ."}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        turn: list[dict[str, Any]] = [
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": output},
        ]
        messages += turn
        total += count_tokens(turn)
    return [*messages, {"role": "user", "content": "Go on."}]


def histories(files: Sequence[Path]) -> Iterator[tuple[str, Sequence[Any]]]:
    """The made history, and the long conversations of the files."""
    yield "made", made_history(HISTORY_TOKENS)
    for path in files:
        for conversation in read_file(path):
            if count_tokens(conversation.messages) >= LONG:
                yield path.name, conversation.messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    titles = f"{'depth':>5} {'calls':>5} {'refused':>7} {'input':>6} {'s':>6}"
    print(f"{'history':<28} {'window':>6} {'told':<8} {'outcome':<10} {titles}")
    worst = 0.0
    for name, messages in histories(parser.parse_args().files):
        for window in WINDOWS:
            for knowledge in KNOWLEDGE:
                row = measured(name, messages, window, knowledge)
                worst = max(worst, row.ratio if knowledge == "known" else 0.0)
                print(
                    f"{row.history[:28]:<28} {row.window:>6,} {row.knowledge:<8} {row.outcome:<10} {row.depth:>5} "
                    f"{row.calls:>5} {row.rejected:>7} {row.ratio:>6.3f} {row.seconds:>6.1f}",
                    flush=True,
                )
    print(f"worst input with the window known: {worst:.3f} times what was evicted (bound {BOUND})")


if __name__ == "__main__":
    main()
