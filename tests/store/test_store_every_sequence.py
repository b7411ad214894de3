"""All short sequences of what can be done to a session: one object that did them all sees what a fresh one sees."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import laws
from contextfold import Compactor
from contextfold.store import Session, open_store
from contextfold.testing.plots import (
    AssistantSays,
    Blank,
    Event,
    PlotCall,
    PlotWords,
    Result,
    ToolsAnswer,
    UserSays,
)
from contextfold.testing.render import WRITERS
from effort import FULL

WORDS, LOG = PlotWords("english", 6), PlotWords("log", 14)

BEFORE = (UserSays(WORDS), AssistantSays(calls=(PlotCall("old"),)), ToolsAnswer((Result("old", LOG),))) * 3


class Talk:
    """A session past two passes, told by one object for all steps, or by a fresh one for each."""

    def __init__(self, url: str, format: str, *, fresh: bool = False) -> None:
        self.format, self.fresh = format, fresh
        self.store = open_store(url)
        self.said: list[Any] = []
        self.compactor = Compactor(window=2_400)
        self.known, self.second = self.opened(), self.opened()

    def opened(self) -> Session:
        compactor = Compactor(window=2_400) if self.fresh else self.compactor
        options = {"upper_threshold": None, "lower_threshold": None}
        return compactor.session("thread", self.store, options=options, format=self.format)

    @property
    def session(self) -> Session:
        return self.opened() if self.fresh else self.known

    @property
    def beside(self) -> Session:
        """Another object of the same compactor."""
        return self.opened() if self.fresh else self.second

    def hears(self, *events: Event) -> None:
        messages: list[Any] = []
        for number, event in enumerate(events):
            WRITERS[self.format]().write(event, itertools.count(100 * (len(self.said) + number)), messages)
        self.session.append(messages)
        self.said += messages

    def takes_back(self) -> None:
        state = self.session.state()
        assert self.store.delete_newest(state.thread, state.message_count, state.revision)
        del self.said[-1]


STEPS: dict[str, Callable[[Talk], object]] = {
    "a question": lambda talk: talk.hears(UserSays(WORDS)),
    "calls": lambda talk: talk.hears(AssistantSays(calls=(PlotCall("one"), PlotCall("two")))),
    "a result": lambda talk: talk.hears(ToolsAnswer((Result("one", LOG),))),
    "an empty answer": lambda talk: talk.hears(Blank("assistant")),
    "a view": lambda talk: talk.session.view(),
    "a pass": lambda talk: talk.session.compact(),
    "a pass beside": lambda talk: talk.beside.compact(),
    "an undo": lambda talk: talk.session.undo(),
    "taken back": Talk.takes_back,
}


FORMATS = ("anthropic", "openai-chat", "openai-responses") if FULL else ("anthropic",)


@pytest.fixture(params=FORMATS)
def begun(request: pytest.FixtureRequest, tmp_path: Path) -> Talk:
    talk = Talk(f"sqlite:///{tmp_path}/begun.db", request.param)
    for _ in range(2):
        talk.hears(*BEFORE)
        assert talk.known.compact().changed
    talk.store.close()
    return talk


def test_what_one_object_did_in_any_order_is_what_a_fresh_one_finds(begun: Talk, tmp_path: Path) -> None:
    """All sequences of two steps, each in one of the formats, and each step in both places of each format (outside of
    strict runs those of one format): the view and the ledger are the same, and those of the library over the same
    messages; every message is found; all laws hold."""
    names, turn = list(STEPS), FORMATS.index(begun.format)
    for first, second in itertools.product(range(len(names)), repeat=2):
        if (first + second) % 3 != turn:
            continue
        steps = names[first], names[second]
        talks = []
        for fresh in (False, True):
            file = tmp_path / f"{fresh}.db"
            shutil.copy(tmp_path / "begun.db", file)
            talks.append(Talk(f"sqlite:///{file}", begun.format, fresh=fresh))
            talks[-1].said = list(begun.said)
            talks[-1].session.view()
            for step in steps:
                STEPS[step](talks[-1])
        one, other = (talk.session for talk in talks)
        assert one.view() == other.view() == one.view(), steps
        assert one.history() == other.history() == talks[0].said, steps
        assert list(one.ledger()) == list(other.ledger()), steps
        check_against_the_library(one, talks[0].said, begun.format, steps)
        assert one.compact().changed == other.compact().changed, steps  # from what it has kept, or read again
        assert one.view() == other.view(), steps
        for talk in talks:
            talk.store.close()


def check_against_the_library(session: Session, said: list[Any], format: str, steps: tuple[str, ...]) -> None:
    summary = session.view().result.summary
    out = Compactor(window=1_000_000).compact(said, summary.record if summary else None, format=format)
    assert out.messages == session.view(), steps
    assert list(out.ledger) == list(session.ledger()), steps
    assert laws.violations(format, said, out, target=1_000_000) == [], steps
    gone = {entry.index for entry in session.ledger() if entry.fate == "summarized"}
    for index, entry in enumerate(session.read(0, len(said))):
        if entry.text.startswith("note-"):
            found = session.search(f'"{entry.text.split()[0]}"')
            assert [(hit.index, hit.evicted) for hit in found] == [(index, index in gone)], steps
