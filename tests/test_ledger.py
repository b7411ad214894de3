"""The ledger gives every message exactly one fate."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from building import user
from contextfold.conversation.ledger import FATES, Ledger, runs

_FATES = st.lists(st.tuples(st.sampled_from(FATES), st.sampled_from(["a", "b"])), max_size=60)


@given(_FATES, st.integers(0, 20))
def test_every_message_has_one_entry_in_order_and_the_counts_add_up(fates: list, newer: int) -> None:
    messages = [user()] * (len(fates) + newer)
    ledger = Ledger(runs(fates), messages)
    entries = list(ledger)
    assert [entry.index for entry in entries] == list(range(len(messages)))
    assert [(entry.fate, entry.reason) for entry in entries[: len(fates)]] == fates
    assert all(entry.fate == "kept" for entry in entries[len(fates) :])
    assert sum(ledger.counts().values()) == len(ledger) == len(messages)


@given(_FATES)
def test_runs_are_as_few_as_can_be(fates: list) -> None:
    found = runs(fates)
    assert all((one.fate, one.reason) != (two.fate, two.reason) for one, two in itertools.pairwise(found))


def test_an_account_of_nothing_is_empty() -> None:
    ledger = Ledger((), [])
    assert list(ledger) == []
    assert ledger.counts() == dict.fromkeys(FATES, 0)
    assert "kept" in repr(ledger)
