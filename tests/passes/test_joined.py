"""A caller who keeps views as the history: one summary, however often, also where roles alternate and it is joined."""

from __future__ import annotations

import json
from typing import Any

import pytest

import laws
from contextfold import Compactor, Policy
from contextfold.formats import FORMATS
from contextfold.messages import Message, Text
from contextfold.summary.message import OPEN
from effort import crossed

FIRST = "Port the loader to src/loader/load_first.py. Never touch the table ledger_4711."
ALTERNATING = ("anthropic", "gemini", "bedrock-converse")
EVERY = (*ALTERNATING, "openai-chat", "openai-responses")
PLACES = ("after_first_user", "after_system")
WINDOW = 6_000
ROUNDS = 12


def wire(format: str, *messages: Message) -> list[Any]:
    return FORMATS[format].encode(messages)


def talk(number: int, words: str = "went as planned and wrote src/step") -> list[Message]:
    """Some turns, each longer than what a tail of this window holds twice."""
    return [
        Message(role, (Text(f"{role} {number}.{n} {words}_{number}_{n}.py. " * 25),))
        for n in range(6)
        for role in ("assistant", "user")
    ]


def texts(view: Any) -> str:
    return json.dumps(view, ensure_ascii=False)


def fed_back(format: str, policy: Policy, rounds: int = ROUNDS, **settings: Any) -> list[Any]:
    """The results of a caller who goes on from each view, and keeps no record."""
    compactor = Compactor(window=WINDOW, policy=policy, **settings)
    view, found = wire(format, Message("user", (Text(FIRST),))), []
    for number in range(rounds):
        history = [*view, *wire(format, *talk(number))]
        found.append((history, compactor.compact(history, format=format)))
        view = found[-1][1].messages
    return found


def violations(format: str, history: list[Any], out: Any) -> list[str]:
    """To the checkers, a summary in the first message is part of the user's words."""
    found = laws.violations(format, history, out, target=out.compaction.target, trigger=None)
    return [line for line in found if not line.startswith("verbatim: the first user message")]


@crossed(place=PLACES, format=EVERY)
def test_views_that_are_kept_as_the_history_hold_one_summary_and_the_users_words(format: str, place: Any) -> None:
    results = fed_back(format, Policy(summary_place=place))
    for number, (history, out) in enumerate(results):
        shown = texts(out.messages)
        assert out.compaction is not None, number
        assert shown.count(OPEN) == 1, number
        assert shown.count(FIRST) == 1, number
        assert f"user {number}.5" in shown, "the newest words of the user"
        assert "ledger_4711" in shown
        assert out.tokens_after <= 0.6 * WINDOW
        if format in ("openai-chat", "openai-responses", "anthropic"):  # what the checkers can read
            assert not violations(format, history, out)


@pytest.mark.parametrize("format", EVERY)
def test_a_model_updates_the_summary_that_was_joined_and_reads_the_words_behind_it(format: str) -> None:
    asked: list[str] = []

    def summarize(prompt: str) -> str:
        asked.append(prompt)
        return f"Summary number {len(asked)}: the loader is being ported, and the ledger stays as it is."

    results = fed_back(format, Policy(), rounds=4, summarizer=summarize)
    assert all(texts(out.messages).count(OPEN) == 1 for _, out in results)
    for number in range(1, len(asked)):
        assert f"Summary number {number}:" in asked[number]
    read = " ".join([*asked, texts(results[-1][1].messages)])
    assert all(f"user {number}.{n} " in read for number in range(3) for n in range(6))


def test_words_around_a_summary_that_a_record_took_out_stay_out_with_the_record() -> None:
    (_, first), (history, second) = fed_back("anthropic", Policy(), rounds=2)
    assert first.compaction is not None
    compactor = Compactor(window=WINDOW)
    record = second.compaction
    for number in range(2, 9):
        history = [*history, *wire("anthropic", *talk(number))]
        out = compactor.compact(history, previous=record, format="anthropic")
        assert not violations("anthropic", history, out)
        assert texts(out.messages).count(OPEN) == 1
        assert texts(out.messages).count(FIRST) == 1
        record = out.compaction


def test_what_was_joined_is_archived_before_it_leaves() -> None:
    kept: dict[int, Message] = {}

    class Archive:
        address = "memory"

        def append(self, originals: dict[int, Message]) -> None:
            kept.update(originals)

    (_, first) = fed_back("anthropic", Policy(), rounds=1)[0]
    history = [*first.messages, *wire("anthropic", *talk(1))]
    Compactor(window=WINDOW).compact(history, archive=Archive(), format="anthropic")
    assert OPEN in kept[0].text


def test_a_whole_summary_that_a_user_pastes_between_words_leaves_the_words() -> None:
    (_, first) = fed_back("anthropic", Policy(), rounds=1)[0]
    frame = next(part["text"] for part in first.messages[0]["content"] if OPEN in part["text"])
    pasted = {"role": "user", "content": [{"type": "text", "text": text} for text in ("What is this:", frame, "Tell!")]}
    history = [*wire("anthropic", Message("user", (Text(FIRST),)), *talk(0)), pasted]
    out = Compactor(window=WINDOW).compact(history, format="anthropic")
    assert "What is this:" in texts(out.messages)
    assert "Tell!" in texts(out.messages)
