"""The replay's loop: what a request says of its view follows from the views alone, however they are made."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from contextfold import formats
from contextfold.inspector import anchors
from contextfold.inspector.recording import Known, Recording
from contextfold.inspector.replay import ReplayRequest, requests
from contextfold.inspector.wire import Wire


def talk(turns: int) -> list[dict[str, Any]]:
    said = [
        ({"role": "user", "content": f"Question {n % 7}?"}, {"role": "assistant", "content": f"Answer {n}."})
        for n in range(turns)
    ]
    return [message for turn in said for message in turn]


def recording_of(messages: list[dict[str, Any]]) -> Recording:
    return Recording(messages, Wire(formats.get("openai-chat")))


class Views:
    """Makes views as strategies do: its own list goes on, is changed in place or made again, with notes of its own."""

    def __init__(self, moves: Sequence[str]) -> None:
        self.moves = iter(moves)
        self.view: list[Any] = []
        self.done = 0
        self.seen: list[list[Any]] = []

    def __call__(self, history: list[Any]) -> list[Any]:
        move = next(self.moves, "go on")
        new, self.done = history[self.done :], len(history)
        self.view += new
        if move == "again":
            self.view = list(self.view)
        elif move == "copies":
            self.view = copy.deepcopy(self.view)
        elif move == "pass":
            self.view = [{"role": "user", "content": f"Summary of {len(history)}."}, *self.view[-3:]]
        elif move == "note":
            self.view.append({"role": "user", "content": "A note."})
        elif move == "change" and self.view[0] is not history[0]:
            self.view[0]["content"] += " And more."
        elif move == "other object":
            self.view[-1] = dict(self.view[-1])
        elif move == "fails":
            self.seen.append([])
            raise ValueError("no view")
        self.seen.append(copy.deepcopy(self.view))
        return self.view


MOVES = ("go on", "again", "copies", "pass", "note", "change", "other object", "fails")


@given(st.lists(st.sampled_from(MOVES), max_size=14))
@settings(max_examples=examples(150), deadline=None)
def test_what_a_request_says_follows_from_the_two_views_alone(moves: list[str]) -> None:
    messages = talk(14)
    recording = recording_of(messages)
    made = Views(moves)
    found: list[ReplayRequest] = list(requests(recording, made))

    known = recording_of(copy.deepcopy(messages)).known
    numbers = [tuple(map(known.number_now, view)) for view in made.seen]
    sizes = [[known.tokens(number) for number in one] for one in numbers]
    for n, request in enumerate(found):
        before = numbers[n - 1] if n else ()
        same = next((i for i, (a, b) in enumerate(zip(numbers[n], before, strict=False)) if a != b), None)
        same = min(len(numbers[n]), len(before)) if same is None else same
        assert bool(request.error) == (not made.seen[n])
        assert request.numbers == numbers[n]
        assert request.present == set(numbers[n])
        assert request.foreign == tuple(number for number in numbers[n] if number not in recording.source)
        assert (request.tokens, request.cached) == (sum(sizes[n]), sum(sizes[n][:same]))
        assert request.rewritten == (same < len(before))


def test_a_chat_of_many_short_messages_is_read_once_and_not_at_each_of_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chat of 20,000 messages that fits its window took minutes to be shown."""
    recording = recording_of(talk(300))
    read: list[Any] = []
    number = Known.number

    def noted(known: Known, message: Any) -> int:
        read.append(message)
        return number(known, message)

    monkeypatch.setattr(Known, "number", noted)
    assert len(list(requests(recording, lambda history: history))) == 300
    assert len(read) <= len(recording.messages)


def test_what_an_answer_needs_stood_before_it_and_its_own_names_are_looked_for_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer of a megabyte with tens of thousands of names took a minute: each was looked for in all of it."""
    new = " ".join(f"file_number_{n}.txt" for n in range(2_000))
    said = [
        "Read alpha_seven.py.",
        f"It names beta_file_8.txt. {new}",
        "And then?",
        "alpha_seven.py, file_number_77.txt",
    ]
    told = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    searched: list[str] = []
    monkeypatch.setattr(
        anchors, "occurs", lambda anchor, text, occurs=anchors.occurs: searched.append(text) or occurs(anchor, text)
    )
    needs = recording_of(told).needs
    assert {step: [(need.anchor, need.last) for need in found] for step, found in needs.items()} == {
        1: [],
        3: [("alpha_seven.py", 0), ("file_number_77.txt", 1)],
    }
    assert sum(map(len, searched)) < 3 * len(new)
