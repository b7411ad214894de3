"""Events: each decision once, to the log at its level and to the caller's hook, which can do no harm (R36)."""

from __future__ import annotations

import logging

import pytest

from contextfold.observe import LEVELS, Event, Observer


def test_an_event_reaches_the_hook_and_the_log_at_its_level(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Event] = []
    observer = Observer(seen.append)
    with caplog.at_level(logging.DEBUG, logger="contextfold"):
        observer.emit("summary_failed", "the model was down", seconds=2)
    assert seen == observer.events == [Event("summary_failed", "the model was down", {"seconds": 2})]
    assert caplog.records[0].levelno == LEVELS["summary_failed"]
    assert caplog.records[0].contextfold == {"event": "summary_failed", "seconds": 2}


def test_a_hook_that_fails_is_reported_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no")

    observer = Observer(broken)
    with caplog.at_level(logging.ERROR, logger="contextfold"):
        observer.emit("skipped", "one")
        observer.emit("skipped", "two")
    assert len(observer.events) == 2
    assert len(caplog.records) == 1


def test_an_event_that_is_not_listed_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        Observer().emit("surprise", "?")
