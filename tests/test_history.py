"""``History``: what is known of messages follows from them alone, however they came into it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contextfold import formats
from contextfold.conversation.history import History
from contextfold.tokens import TokenCounter

TEXTS = st.text(max_size=60) | st.sampled_from(["see /srv/a_1.py and id 7741", "never use port 9000", "naïve 表 x_2"])
MESSAGES = st.lists(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), TEXTS),
    min_size=1,
    max_size=12,
)


def history_of(messages: list[dict[str, Any]]) -> History:
    history = History(formats.get("openai-chat"), TokenCounter())
    history.extend(messages)
    return history


@given(MESSAGES, st.data())
def test_a_part_that_grows_is_as_if_it_was_read_anew_and_the_whole_stays_as_it_was(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    whole, count = history_of(messages), len(messages)
    read = data.draw(st.integers(0, count))
    for n in range(read):
        whole.block(n)
    whole.fingerprint(data.draw(st.integers(0, count)))
    chosen = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    part = whole.part(chosen)
    part.extend(messages[:2])
    anew = history_of([*(messages[n] for n in chosen), *messages[:2]])
    for history, same in ((part, anew), (whole, history_of(messages))):
        length = len(same.messages)
        assert (history.messages, history.sizes, history.wire) == (same.messages, same.sizes, same.wire)
        assert history.fingerprint(length) == same.fingerprint(length)
        assert history.refresh() is False
        assert [history.block(n).texts for n in range(length)] == [same.block(n).texts for n in range(length)]
