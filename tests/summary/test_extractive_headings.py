"""Headings and notes of a harness say nothing by themselves, and no line of a small summary is spent on them."""

from __future__ import annotations

import pytest

from contextfold.messages import Message, Text
from contextfold.summary import extractive
from contextfold.tokens import estimate


def summary(*said: tuple[str, str]) -> str:
    messages = [Message(role, (Text(text),)) for role, text in said]  # type: ignore[arg-type]
    return extractive.summarize(messages, budget=400, count=estimate)


@pytest.mark.parametrize("heading", ["## Root cause found", "**Found it!**", "### Summary of Investigation:"])
def test_a_heading_of_the_assistant_is_no_finding(heading: str) -> None:
    made = summary(("user", "Why does it fail?"), ("assistant", f"{heading}\n\nThe cause is a race in src/pool.py."))
    assert "race in src/pool.py" in made
    assert heading.strip("#*: ") not in made


def test_a_heading_that_names_something_exact_is_kept() -> None:
    made = summary(("user", "Why does it fail?"), ("assistant", "## Decided on src/queue/worker_7.py\n\nNothing else."))
    assert "src/queue/worker_7.py" in made


@pytest.mark.parametrize("note", ["[Request interrupted by user]", "Caveat: The messages below were generated."])
def test_a_note_of_a_harness_is_no_request_of_the_user(note: str) -> None:
    made = summary(("user", "Port the loader."), ("assistant", "I begin."), ("user", note), ("user", "Use tabs."))
    assert note not in made
    assert "Port the loader." in made
