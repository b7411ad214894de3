"""Write a session of a research agent: it searches, reads long pages, takes notes, and writes a report from them.

    python examples/make_research.py build/research.json

The file is one OpenAI chat request of some 210,000 tokens. Each page that the agent fetches is long, and one sentence
in it matters; the agent notes it with the page's URL, the DOI and the figure, and the report at the end cites pages
that were read long before. Every detail comes from the lists below and a seeded generator: every run writes the
same bytes.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SYSTEM = "You are a research agent. Search, read, note what matters with its source, and cite exactly."
QUESTION = (
    "I need a report on how towns keep their streets cool in summer: which measures were tried, what they achieved in "
    "degrees, and what they cost. Only cite what you have read. Never round a figure, give the DOI of every source, "
    "and do not cite press releases. Budget for the pilot is 184300 euro."
)
MEASURES = (
    "pale asphalt", "street trees", "shaded arcades", "green roofs", "misting posts", "opened streams", "porous paving",
    "awnings over crossings", "night flushing", "reflective roof paint", "pocket gardens", "tram tracks in grass",
)  # fmt: skip
TOWNS = ("Turku", "Sassari", "Graz", "Leiria", "Zadar", "Arles", "Murcia", "Ghent", "Lublin", "Volos", "Split", "Evora")
SUBJECTS = (
    "The survey team",
    "A first inspection",
    "The council's engineer",
    "One shopkeeper",
    "The school at the corner",
)
DEEDS = (
    "measured the pavement at six in the morning and again at three in the afternoon",
    "walked the same round every other day and wrote down where people chose to stand",
    "compared the quarter with the one beyond the river, which had been left as it was",
    "asked the drivers of the line that passes there whether the wait had become easier",
    "had the old plans copied, on which the course of the covered ditch can still be seen",
)
REMARKS = (
    "and found less of a difference than the leaflet had promised",
    "which took longer than planned, because the summer was wet until the middle of July",
    "although the instruments had to be moved when the market was set up",
    "and nobody had thought of the delivery vans that stand in the shade all morning",
    "so that the second series begins a week later than the first",
)


@dataclass(frozen=True)
class Finding:
    """What one page says that is worth noting."""

    measure: str
    town: str
    url: str
    doi: str
    degrees: str
    cost: int
    grant: str

    @property
    def sentence(self) -> str:
        return (
            f"In {self.town}, {self.measure} lowered the afternoon temperature by {self.degrees} K at a cost of "
            f"{self.cost} euro (grant {self.grant}, doi {self.doi})."
        )


def make_research(seed: int = 5, pages: int = 60) -> dict[str, Any]:
    """A request with the whole session. ``pages`` decides how long it is: some 3,500 tokens each."""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    findings: list[Finding] = []
    for number in range(pages):
        finding = make_finding(chance)
        hits = [make_finding(chance).url for _ in range(9)]
        query = {"query": f"{finding.measure} {finding.town} temperature"}
        listed = "\n".join(sorted([*hits, finding.url]))
        _call(messages, f"Next: {finding.measure} in {finding.town}.", "search", query, listed)
        _call(messages, "", "fetch", {"url": finding.url}, page(finding, chance))
        _say(messages, f"Noted from {finding.url}: {finding.sentence}")
        findings.append(finding)
        if number % 7 == 6:
            _interim(messages, chance.sample(findings[:-3], 3))
    _report(messages, findings[::6])
    return {"model": "gpt-5", "messages": messages}


def make_finding(chance: random.Random) -> Finding:
    """A finding on a page that nobody has read before."""
    measure, town = chance.choice(MEASURES), chance.choice(TOWNS)
    slug = f"{measure.replace(' ', '-')}-{chance.randrange(1_000, 9_999)}"
    return Finding(
        measure=measure,
        town=town,
        url=f"https://archive.coolstreets.example/{town.lower()}/{slug}.html",
        doi=f"10.{chance.randrange(1_000, 9_999)}/cs.{chance.randrange(10_000, 99_999)}",
        degrees=f"{chance.uniform(0.2, 4.8):.2f}",
        cost=chance.randrange(12_000, 2_000_000, 10),
        grant=f"CST-{chance.randrange(1_000, 9_999)}",
    )


def page(finding: Finding, chance: random.Random, paragraphs: int = 22) -> str:
    """The text of a page: mostly prose of no consequence, and a sentence that matters somewhere in it."""
    place = chance.randrange(4, paragraphs - 2)
    texts = []
    for number in range(paragraphs):
        sentences = [f"{chance.choice(SUBJECTS)} {chance.choice(DEEDS)}, {chance.choice(REMARKS)}." for _ in range(4)]
        if number == place:
            sentences.insert(2, finding.sentence)
        texts.append(f"{number + 1}. {' '.join(sentences)}")
    return f"# {finding.measure.capitalize()} in {finding.town}\n\n" + "\n\n".join(texts)


def _interim(messages: list[dict[str, Any]], findings: list[Finding]) -> None:
    numbers = ", ".join(f"{finding.measure} in {finding.town} ({finding.grant})" for finding in findings)
    messages.append({"role": "user", "content": f"Where do we stand with {numbers}? Figures and sources, please."})
    _say(messages, "\n".join(f"- {finding.sentence} Source: {finding.url}" for finding in findings))


def _report(messages: list[dict[str, Any]], findings: list[Finding]) -> None:
    messages.append({"role": "user", "content": "Now write the report, from what you noted, within the budget."})
    text = "\n\n".join(
        f"{finding.measure.capitalize()}. {finding.sentence} Read at {finding.url}." for finding in findings
    )
    _say(messages, f"# Cool streets\n\nBudget: 184300 euro.\n\n{text}")


def _say(messages: list[dict[str, Any]], text: str) -> None:
    messages.append({"role": "assistant", "content": text})


def _call(messages: list[dict[str, Any]], text: str, name: str, arguments: dict[str, Any], output: str) -> None:
    call_id = f"call_{len(messages):04d}"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": call_id, "content": output})


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/research.json")
    request = make_research()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(request['messages'])} messages")


if __name__ == "__main__":
    main()
