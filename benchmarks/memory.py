"""What a view and a search still hold of long dialogues, by questions with known answers; and the rules of a user.

    python benchmarks/memory.py view DIALOGUES.json [--window 8000] [--every 1] [--recall]
    python benchmarks/memory.py search DIALOGUES.json
    python benchmarks/memory.py rules [--budgets 0.2 0.3 0.5]

DIALOGUES.json has the form of LoCoMo (Maharana et al., ACL 2024): dialogues of two people over many sessions, with
questions and the turns that answer them. It is not part of this repository.

``view``: for how many questions any turn that answers it stands word for word in the view, when the question is asked
at the end of the dialogue. ``search``: how often such a turn is among the first 1, 5 and 10 hits. ``rules``: planted
rules, facts, states and preferences of a user, half of them replaced later, compacted five times to a share of their
characters; how many stand in the view, and how many that were replaced are still in the summary.

``--save`` keeps what was measured in ``benchmarks/memory.json``, of which ``make bench`` writes the section on memory.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextfold import Compactor, Policy
from contextfold.errors import CannotFit
from contextfold.recall import MessageSearch

SAVED = Path(__file__).with_name("memory.json")


def save(what: str, figures: dict[str, float]) -> None:
    """Keep figures under the name of what was measured; those of other measurements stay."""
    known = json.loads(SAVED.read_text(encoding="utf-8")) if SAVED.is_file() else {}
    known.setdefault(what, {}).update({name: round(figure, 4) for name, figure in figures.items()})
    SAVED.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Question:
    text: str
    turns: tuple[tuple[int, str], ...]
    """The turns that answer it: number of the message, and words."""


def dialogues(path: str) -> Iterator[tuple[list[dict[str, Any]], list[Question]]]:
    with open(path, encoding="utf-8") as file:
        samples = json.load(file)
    for sample in samples:
        talk = sample["conversation"]
        messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a friend in a long conversation."}]
        where: dict[str, tuple[int, str]] = {}
        numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
        for number in numbers:
            stamp = talk.get(f"session_{number}_date_time", "")
            for place, turn in enumerate(talk[f"session_{number}"]):
                shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                body = f"{f'({stamp}) ' if place == 0 else ''}{turn['speaker']}: {turn['text']}{shared}"
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                if messages[-1]["role"] == role:
                    messages[-1]["content"] += "\n" + body
                else:
                    messages.append({"role": role, "content": body})
                where[turn["dia_id"]] = (len(messages) - 1, turn["text"])
        questions = []
        for asked in sample["qa"]:
            known = [where[one] for some in asked["evidence"] for one in re.findall(r"D\d+:\d+", some) if one in where]
            if asked["category"] != 5 and known:
                questions.append(Question(asked["question"], tuple(known)))
        yield messages, questions


def squeezed(text: str) -> str:
    return re.sub(r"\W+", " ", text).lower().strip()


def text_of(view: list[Any]) -> str:
    return squeezed("\n".join(str(entry.get("content") or "") for entry in view))


def measure_view(path: str, window: int, every: int, recall: bool) -> dict[str, float]:
    found = asked = tokens = 0
    for messages, questions in dialogues(path):
        compactor = Compactor(window=window, policy=Policy(recall=recall))
        record = None
        for end in range(2, len(messages) + 1):
            if end == len(messages) or messages[end]["role"] == "assistant":
                record = compactor.compact(messages[:end], previous=record).compaction
        for question in questions[::every]:
            out = compactor.compact([*messages, {"role": "user", "content": question.text}], previous=record)
            view = text_of(out.messages)
            found += any(squeezed(words) in view for _, words in question.turns)
            asked += 1
            tokens += out.tokens_after
    print(
        f"window {window:,}, recall {'on' if recall else 'off'}: {found / asked:.1%} of {asked} questions, "
        f"views of {tokens // asked:,} tokens"
    )
    return {f"{window}, {'with' if recall else 'without'} recall": found / asked}


def measure_search(path: str) -> dict[str, float]:
    hits: Counter[int] = Counter()
    asked = 0
    for messages, questions in dialogues(path):
        history = MessageSearch(messages)
        for question in questions:
            first = [hit.index for hit in history.search(question.text, limit=10)]
            right = {index for index, _ in question.turns}
            asked += 1
            for count in (1, 5, 10):
                hits[count] += bool(right & set(first[:count]))
    print(", ".join(f"hit@{count} {hits[count] / asked:.1%}" for count in (1, 5, 10)), f"of {asked} questions")
    return {f"hit@{count}": hits[count] / asked for count in (1, 5, 10)}


SAID = (
    ("Never send the ledger of {name} to anyone outside.", "the ledger of {name}"),
    ("You must ask {name} before each deployment.", "must ask {name}"),
    ("Spend at most {figure} euros on the tickets.", "at most {figure} euros"),
    ("The report is due by {figure} April.", "by {figure} april"),
    ("Only use the staging host {name}.example for tests.", "{name}.example"),
    ("I prefer short answers with the code {name} at the end.", "code {name}"),
    ("The project lead is {name} and she sits in room {figure}.", "room {figure}"),
    ("Next step: move the table {name} to the new server.", "table {name}"),
)
CHATTER = (
    "Let us look at the layout of the pages again.",
    "The menu still looks a bit odd on small screens.",
    "We talked about the colors of the charts last week.",
    "The meeting was fine, nothing new came up there.",
    "I opened the overview, it loads quickly enough.",
)


def planted(seed: int) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """A conversation, what stands at its end, and what was replaced."""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an assistant."}]
    standing, replaced = [], []

    def say(text: str) -> None:
        messages.extend(({"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}))

    for place in chance.sample(range(len(SAID)), len(SAID)):
        text, sign = SAID[place]
        values = [{"name": f"srv-{chance.choice('bdfgk')}{chance.randrange(100, 999)}", "figure": n} for n in (12, 27)]
        for version, value in enumerate(values if place % 2 else values[1:]):
            for _ in range(5):
                say(chance.choice(CHATTER))
            say(text.format(**value))
            if place % 2 and version == 0:
                replaced.append(sign.format(**value))
        standing.append(sign.format(**values[1]))
    for _ in range(4):
        say(chance.choice(CHATTER))
    return messages, standing, replaced


def measure_rules(budgets: list[float]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for budget in budgets:
        kept = stale = total = gone = 0
        for seed in range(4):
            messages, standing, replaced = planted(seed)
            size = sum(len(entry["content"]) for entry in messages)
            sent = compacted(messages, int(budget * size))
            view = text_of(sent)
            summary = text_of([entry for entry in sent if "<conversation_summary>" in str(entry.get("content"))])
            kept += sum(squeezed(sign) in view for sign in standing)
            stale += sum(squeezed(sign) in summary for sign in replaced)
            total, gone = total + len(standing), gone + len(replaced)
        print(f"{budget:.0%} of the characters: {kept / total:.2f} stand, {stale / gone:.2f} of the replaced too")
        figures[f"{budget:.0%}"] = kept / total
    return figures


def compacted(messages: list[dict[str, Any]], characters: int) -> list[Any]:
    """The view of at most ``characters`` characters, of five passes under the largest target that leads there."""
    for share in range(40, 10, -2):
        target = characters * share // 100
        compactor = Compactor(window=4 * target, target=("tokens", target), trigger=("tokens", target + 1))
        record = None
        try:
            for end in (*(len(messages) * n // 5 for n in range(1, 5)), len(messages)):
                out = compactor.compact(messages[:end], previous=record)
                record = out.compaction
        except CannotFit:
            continue
        if sum(len(str(entry.get("content") or "")) for entry in out.messages) <= characters:
            return out.messages
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["view", "search", "rules"])
    parser.add_argument("dialogues", nargs="?")
    parser.add_argument("--window", type=int, default=8_000)
    parser.add_argument("--every", type=int, default=1, help="ask one question in N")
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.2, 0.3, 0.5])
    parser.add_argument("--save", action="store_true", help="keep the figures for the report")
    options = parser.parse_args()
    if options.what == "rules":
        figures = measure_rules(options.budgets)
    elif options.dialogues is None:
        parser.error("give a file of dialogues")
    elif options.what == "view":
        figures = measure_view(options.dialogues, options.window, options.every, options.recall)
    else:
        figures = measure_search(options.dialogues)
    if options.save:
        save(options.what, figures)


if __name__ == "__main__":
    main()
