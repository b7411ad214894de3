"""Sessions of different namespaces and threads never have anything in common, whatever is done to them."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from conversations import said
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.store import Session, Thread
from contextfold.store.sql import SQLStore
from effort import examples

OWNERS = [("", "a"), ("x", "a"), ("x", "b"), ("xa", ""), ("", "xa"), ("x\u0001", "a"), ("租户", "会话")]
OWNERS = [(namespace, thread or "t") for namespace, thread in OWNERS]

STEP = st.tuples(
    st.sampled_from(range(len(OWNERS))), st.sampled_from(["append", "append", "view", "compact", "undo", "prepare"])
)


def opened(store: SQLStore, owner: tuple[str, str]) -> Session:
    options = {"upper_threshold": 1_500, "lower_threshold": 800, "min_messages": 2, "min_new_messages": 1}
    return Compactor(window=16_000).session(owner[1], store, namespace=owner[0], options=options)


def step(session: Session, name: str, number: int, secret: str) -> None:
    if name == "append":
        session.append([{**wire, "content": f"{secret} {wire['content']}"} for wire in said(6, 60, number)])
    elif name == "prepare":
        session.store.acquire_lease(session.thread, secret, 0.001)
        session.store.release_lease(session.thread, secret)
    else:
        getattr(session, name)()


def everything(store: SQLStore, owner: tuple[str, str]) -> str:
    session = opened(store, owner)
    return repr([session.history(), session.view(), session.state(), session.summaries(), list(session.ledger())])


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=8, max_size=20))
def test_nobody_sees_or_changes_what_belongs_to_another(steps: list[tuple[int, str]]) -> None:
    store = SQLStore("sqlite://")
    secrets = [f"secret-{index}-of-nobody-else" for index in range(len(OWNERS))]
    seen = [everything(store, owner) for owner in OWNERS]
    for number, (index, name) in enumerate(steps):
        step(opened(store, OWNERS[index]), name, 6 * number, secrets[index])
        now = everything(store, OWNERS[index])
        assert not [other for other in secrets if other != secrets[index] and other in now]
        seen[index] = now
    assert seen == [everything(store, owner) for owner in OWNERS]
    for namespace in {owner[0] for owner in OWNERS}:
        listed = {state.thread for state in store.sessions(namespace)}
        assert listed <= {Thread(*owner) for owner in OWNERS if owner[0] == namespace}
    store.close()


def test_ids_of_summaries_are_of_no_use_to_others(store: SQLStore) -> None:
    mine, theirs = opened(store, ("x", "a")), opened(store, ("y", "a"))
    for session in (mine, theirs):
        session.append(said(12, 200))
    mine.view()
    (summary,) = mine.summaries()
    read = functools.partial(store.read_summary, theirs.thread, summary.id)
    with pytest.raises(Exception, match=r"summary 1 of session .* is missing"):
        read()
    with pytest.raises(Exception, match=r"summary 1 of session .* is missing"):
        store.put_in_force(theirs.thread, summary.id, (), revision=0)
    assert store.read_links(theirs.thread, summary.id) == []
    assert theirs.undo() is None
    assert mine.state().summary_id == summary.id


def keys(*owners: Any) -> set[str]:
    return {Thread(*owner).key for owner in owners}


def test_no_two_threads_share_a_key() -> None:
    assert len(keys(*OWNERS)) == len(set(OWNERS))
    assert len(keys(("a", "b"), ("", "a\x01b"), ("ab", "c"), ("a", "bc"))) == 4
