"""Clients put the same reminder behind every few turns, as a message of the system: it is in each view, but once.

All of its copies would be carried at each request and written to the cache after each pass, for as long as a session
lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests import laws
from tests.building import conversation

from contextfold import Compactor

SAID_AGAIN = "said again by a later system or developer message, which stays"
REMINDER = "The task tools have not been used lately. Ignore this if it does not apply. " * 4
Wire = list[dict[str, Any]]


def chat(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def items(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def blocks(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


Write = Callable[[str, str], dict[str, Any]]
FORMATS: list[tuple[str, str, Write]] = [
    ("openai-chat", "system", chat),
    ("openai-chat", "developer", chat),
    ("openai-responses", "developer", items),
    ("anthropic", "system", blocks),
]
formats = pytest.mark.parametrize(("name", "role", "write"), FORMATS, ids=[f"{row[0]}-{row[1]}" for row in FORMATS])


def turns(write: Write, role: str, many: int, *, reminders: tuple[str, ...] = (REMINDER,)) -> Wire:
    """Turns of a person and an agent, with a reminder behind each third thing that the person says."""
    wire: Wire = []
    for n in range(many):
        wire.append(write("user", f"Turn {n}: count on from {n * 100}, and say what you found."))
        if n % 3 == 2:
            wire.append(write(role, reminders[n // 3 % len(reminders)]))
        wire.append(write("assistant", f"Counted {n}: " + " ".join(str(n * 100 + k) for k in range(60))))
    return wire


def said(view: Wire, words: str) -> int:
    return str(view).count(words.strip())


@formats
def test_a_reminder_that_comes_again_and_again_is_in_the_view_once(name: str, role: str, write: Write) -> None:
    wire = turns(write, role, 120)
    out = Compactor(window=8_000).compact(wire, format=name)
    in_tail = sum(said([message], REMINDER) for message in wire[out.compaction.covers :])
    assert said(out.messages, REMINDER) == max(1, in_tail)
    gone = [entry for entry in out.ledger if entry.reason == SAID_AGAIN]
    assert len(gone) == said(wire, REMINDER) - max(1, in_tail)
    assert {entry.fate for entry in gone} == {"dropped"}
    assert not laws.violations(name, wire, out, target=out.target)


@formats
def test_what_is_said_between_passes_stays_and_the_view_only_grows(name: str, role: str, write: Write) -> None:
    compactor, previous, before, passes = Compactor(window=8_000), None, [], 0
    wire = turns(write, role, 160)
    for length in range(2, len(wire), 2):
        out = compactor.compact(wire[:length], previous, format=name)
        if not out.changed:
            assert out.messages[: len(before)] == before
        passes += out.changed
        is_told = REMINDER.strip() in str(wire[:length])
        assert bool(said(out.messages, REMINDER)) == is_told
        previous, before = out.compaction, out.messages
    assert passes > 2


@formats
def test_of_two_that_take_turns_the_one_in_force_stands_last(name: str, role: str, write: Write) -> None:
    """A mode that is switched on, off and on again is on."""
    on, off = "From now on you only plan. " * 6, "From now on you carry out. " * 6
    wire = turns(write, role, 120, reminders=(on, off))
    out = Compactor(window=8_000).compact(wire, format=name)
    last = max((on, off), key=lambda words: str(wire).rfind(words.strip()))
    assert said(out.messages, on)
    assert said(out.messages, off)
    assert max((on, off), key=lambda words: str(out.messages).rfind(words.strip())) == last


@formats
def test_whatever_leaves_the_end_of_a_list_a_reminder_that_is_left_is_in_the_view(
    name: str, role: str, write: Write
) -> None:
    """Rewound to before the newest copy, or with the newer copies taken out or said in other words."""
    compactor, wire = Compactor(window=8_000), turns(write, role, 120)
    out = compactor.compact(wire, format=name)
    places = [n for n, message in enumerate(wire) if message["role"] == role]
    for length in range(places[-1] - 1, places[-1] + 2):
        assert said(compactor.compact(wire[:length], out.compaction, format=name).messages, REMINDER)
    newer = places[len(places) // 2 :]
    without = [message for n, message in enumerate(wire) if n not in newer]
    otherwise = [write(role, "Never mind.") if n in newer else message for n, message in enumerate(wire)]
    for changed in (without, otherwise):
        again = compactor.compact(changed, out.compaction, format=name)
        assert said(again.messages, REMINDER)
        assert not laws.violations(name, changed, again, target=again.target)


def test_what_a_list_begins_with_and_what_differs_stays() -> None:
    """Instructions at the beginning are read from the cache, and one that tells the time is another one each time."""
    head = [{"role": "system", "content": "You repair services."}] * 2
    wire = [*head, *conversation(60)[1:]]
    for n, place in enumerate(range(10, 40, 6)):
        wire.insert(place, {"role": "system", "content": f"It is now 10:{n:02}."})
    # The same words in another role, and beside a picture that the later copy does not show.
    words = {"type": "text", "text": REMINDER}
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/plan.png"}}
    wire.insert(4, {"role": "developer", "content": [words, picture]})
    wire.insert(6, {"role": "system", "content": REMINDER})
    wire.insert(-4, {"role": "developer", "content": REMINDER})
    out = Compactor(window=4_000).compact(wire)
    assert out.changed
    assert all(message in out.messages for message in wire if message["role"] in ("system", "developer"))
    assert out.messages[:2] == head
