"""The user's words: a view that has them scores 1, one that lost them 0, and a refused one has nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from benchmarks.replay import tokens
from benchmarks.replay.chat import Message
from benchmarks.replay.conversation import Conversation
from benchmarks.replay.measure import Column, Totals, added
from benchmarks.replay.measures.user_words import UserWords, found, said, squeezed
from benchmarks.replay.replay import replay
from benchmarks.replay.strategies.base import Strategy
from benchmarks.replay.strategies.none import Everything
from hypothesis import given
from hypothesis import strategies as st

RULE = "Never touch the migrations."
LONG = f"Please look at the parser. {RULE}\nIt is slow."


@pytest.fixture(autouse=True)
def _estimate() -> None:
    tokens.use(tokens.ESTIMATE)


def conversation(*users: str) -> Conversation:
    messages: list[Message] = []
    for text in users:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
    return Conversation("one#0", "one", tuple(messages))


class Newest(Strategy):
    """Only the newest message, behind a note."""

    note = "Nothing of importance was said."

    def view(self, messages: list[Message]) -> list[Message]:
        return [{"role": "user", "content": self.note}, *messages[-1:]]


class Quoting(Newest):
    note = f"They said:\n> {LONG}\n"


class InPieces(Newest):
    note = f"It is slow.\n- {RULE}\n- Please look at the\n   parser.\nIt is slow."


class Pointing(Newest):
    note = "The rest is in /history/a.md, read it there."

    def archive(self) -> Mapping[str, str]:
        return {"/history/a.md": f"Human: {LONG}", "/history/b.md": "something else"}


class Hiding(Pointing):
    note = "The rest is gone."


def measured(strategy: type[Strategy], *users: str, window: int = 10_000) -> Totals:
    return replay(conversation(*users), strategy(window), [UserWords]).totals


def shares(totals: Totals) -> Sequence[float | None]:
    columns: Sequence[Column] = UserWords.columns
    return [column.value(totals, {}) for column in columns]


# ``LONG`` is asked for in the views before the first and the second answer, "and?" in the second alone.


def test_a_view_with_everything_has_all_of_the_users_words() -> None:
    assert shares(measured(Everything, LONG, "and now what?")) == [1.0, 1.0, 1.0]


def test_a_view_that_forgets_has_only_what_is_left_in_it() -> None:
    assert shares(measured(Newest, LONG, "and now what?")) == [2 / 3, 2 / 3, 1 / 2]


def test_a_message_quoted_whole_is_verbatim() -> None:
    assert shares(measured(Quoting, LONG, "and now what?")) == [1.0, 1.0, 1.0]


def test_a_message_in_pieces_is_findable_and_not_verbatim_and_its_rule_counts() -> None:
    assert shares(measured(InPieces, LONG, "and now what?")) == [2 / 3, 1.0, 1.0]


def test_an_archive_counts_only_when_the_view_names_the_place() -> None:
    assert shares(measured(Pointing, LONG, "and now what?")) == [2 / 3, 1.0, 1 / 2]
    assert shares(measured(Hiding, LONG, "and now what?")) == [2 / 3, 2 / 3, 1 / 2]


def test_a_view_that_a_provider_would_refuse_has_nothing() -> None:
    assert shares(measured(Everything, LONG, "and now what?", window=5)) == [0.0, 0.0, 0.0]


def test_what_a_harness_put_into_the_users_role_is_not_the_users() -> None:
    totals = measured(Everything, "<system-reminder>You must never stop.</system-reminder>", "go on then")
    assert (totals["words_users"], totals["words_constraints"]) == (1, 0)


def test_nothing_is_said_of_a_conversation_without_constraints() -> None:
    assert shares(measured(Everything, "hello there"))[2] is None


@given(st.lists(st.sampled_from([LONG, "and now what?", RULE]), min_size=1, max_size=3), st.integers(1, 2))
def test_counts_of_two_conversations_add_up(users: list[str], cut: int) -> None:
    parts = [measured(Newest, *users), measured(InPieces, *users[:cut])]
    whole = added(parts)
    assert all(whole[name] == sum(part[name] for part in parts) for name in whole)
    assert 0 <= whole["words_users_verbatim"] <= whole["words_users_findable"] <= whole["words_users"]


def test_a_changed_line_break_is_no_loss() -> None:
    message = said(0, "one two\n  three four")
    assert found(message, False, squeezed("x one two three\nfour y"), {}).verbatim
    assert not found(message, False, squeezed("x one two three y"), {}).findable
