"""``Session.call``: prevention, recovery after a refusal, the last resort and persistence in one; ``Session.due``.

The provider is a function that counts tokens as the engine does and refuses what exceeds its window in the words of a
real one; the emulator on loopback stands in for streams and SDKs.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from anyio import to_thread
from conversations import SYSTEM, said, turns

from contextfold import CompactionResult, Compactor, Event, Policy, StillTooLong, count_tokens
from contextfold.errors import InputError, StoreUnavailable
from contextfold.store import Session, open_store
from contextfold.store.sql import SQLStore
from contextfold.testing import ProviderError
from contextfold.testing.dict_store import DictStore

ANSWER = {"role": "assistant", "content": "Done."}


class Provider:
    """Takes ``window`` tokens. Notes what it is sent; with ``says_limit`` its refusals name the window."""

    def __init__(self, window: int, *, says_limit: bool = True) -> None:
        self.window = window
        self.says_limit = says_limit
        self.sent: list[list[Any]] = []

    def __call__(self, view: list[Any]) -> dict[str, Any]:
        self.sent.append(view)
        self.check(view)
        return ANSWER

    def check(self, view: list[Any]) -> None:
        tokens = count_tokens(view)
        if tokens > self.window:
            named = (
                f"maximum context length is {self.window} tokens. However, your messages resulted in {tokens} tokens."
            )
            text = f"This model's {named}" if self.says_limit else "prompt is too long"
            raise ProviderError(text, code="context_length_exceeded")

    @property
    def sizes(self) -> list[int]:
        return [count_tokens(view) for view in self.sent]


async def in_color(color: str, session: Session, send: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """``call`` or ``acall``, with a ``send`` of that color."""
    if color == "sync":
        return await asyncio.to_thread(lambda: session.call(send, *arguments, **named))

    async def asend(*view: Any) -> Any:
        return send(*view)

    return await session.acall(asend if color == "async" else send, *arguments, **named)


COLORS = pytest.mark.parametrize("color", ["sync", "async", "async with a blocking send"])


def opened(store: Any, window: int = 64_000, policy: Policy | None = None, **options: Any) -> Session:
    compactor = Compactor(window=window, policy=policy or Policy(), on_event=options.pop("on_event", None))
    return compactor.session("thread", store, **options)


# ---- due ----


def test_due_says_whether_a_pass_is_due_and_why() -> None:
    session = opened(DictStore(), window=128_000)
    assert session.due() is None
    session.append(said(40, 1_000))
    assert session.due() is None
    session.append(said(20, 1_000, 40))
    assert session.due() == "tokens:50000"
    assert session.summaries() == []  # it only says so
    session.view()
    assert session.due() is None
    assert session.summaries()[0].reason == "tokens:50000"


def test_due_counts_what_is_sent_besides_and_is_silent_after_undo_and_where_all_is_off() -> None:
    session = opened(DictStore(), window=16_000)
    session.append(said(8, 1_000))
    assert session.due() is None
    assert session.due(system="word " * 6_000) == "fraction:0.8"
    session.append(said(8, 1_000, 8))
    assert asyncio.run(session.adue()) == session.due() == "fraction:0.8"
    session.view()
    session.undo()
    assert session.due() is None
    off = opened(DictStore(), window=16_000, options={"enable_context_optimization": False})
    off.append(said(40, 1_000))
    assert off.due() is None


# ---- what is undone may not fit ----


def test_a_view_that_does_not_fit_after_undo_comes_with_a_word_for_it() -> None:
    told: list[Event] = []
    session = opened(DictStore(), window=16_000, on_event=told.append)
    session.append(said(30, 1_000))
    view = session.view()
    assert not view.over_window
    session.undo()
    view = session.view()
    assert view == said(30, 1_000)  # the exact earlier view
    assert view.over_window
    assert view.result.tokens_after > view.result.window == 16_000
    (event,) = [event for event in told if event.name == "view_over_window"]
    assert "Go on with compact(), or with call()" in event.message
    result = session.compact()
    assert not result.over_window


def test_a_call_after_undo_is_sent_a_view_that_fits() -> None:
    provider = Provider(16_000)
    session = opened(DictStore(), window=16_000)
    session.append(said(30, 1_000))
    session.view()
    session.undo()
    assert session.call(provider) == ANSWER
    assert [size <= 16_000 for size in provider.sizes] == [True]


# ---- call ----


@COLORS
def test_a_call_prevents_what_would_be_refused(color: str) -> None:
    provider, session = Provider(16_000), opened(DictStore(), window=16_000)
    session.append([SYSTEM, *turns(60)])
    assert asyncio.run(in_color(color, session, provider)) == ANSWER
    assert len(provider.sent) == 1
    (summary,) = session.summaries()
    assert summary.trigger == "proactive"


@COLORS
@pytest.mark.parametrize("says_limit", [True, False])
def test_a_refusal_is_answered_by_a_smaller_view_that_is_in_force(
    color: str, says_limit: bool, sqlite_store: SQLStore
) -> None:
    provider, results = Provider(9_000, says_limit=says_limit), []
    session = opened(sqlite_store)
    session.append([SYSTEM, *turns(50)])
    before = session.history()
    assert asyncio.run(in_color(color, session, provider, on_result=results.append)) == ANSWER
    assert [size <= 9_000 for size in provider.sizes] == [False, True]
    (summary,) = session.summaries()
    assert (summary.trigger, summary.used_at is not None) == ("overflow_retry", True)
    assert session.state().summary_id == summary.id
    (result,) = results
    assert isinstance(result, CompactionResult)
    assert result.changed
    assert result.compaction is not None
    assert [event.name for event in result.events if event.name.startswith("request_")] == [
        "request_overflowed",
        "request_resent",
    ]
    assert session.history() == before
    # another process knows the view, and sends the very same
    other = opened(open_store(str(sqlite_store.database.url)), window=64_000)
    assert list(other.view()) == provider.sent[-1]
    assert len(other.ledger()) == len(before)


@COLORS
def test_the_last_resort_drops_the_older_half_and_is_recorded(color: str, sqlite_store: SQLStore) -> None:
    provider = Provider(2_500, says_limit=False)
    session = opened(sqlite_store, policy=Policy(on_overflow="drop_oldest"))
    session.append([SYSTEM, *turns(50, lines=60)])
    assert asyncio.run(in_color(color, session, provider)) == ANSWER
    assert provider.sizes[-1] <= 2_500
    assert all(later < earlier for earlier, later in zip(provider.sizes, provider.sizes[1:], strict=False))
    counts = session.ledger().counts()
    assert counts["dropped"] > 0
    assert sum(counts.values()) == 201
    other = opened(open_store(str(sqlite_store.database.url)), window=64_000)
    assert list(other.view()) == provider.sent[-1]
    assert len(session.history()) == 201


def test_without_the_last_resort_every_view_that_was_refused_is_named() -> None:
    session = opened(DictStore())
    session.append([SYSTEM, *turns(50)])
    with pytest.raises(StillTooLong) as refused:
        session.call(Provider(100, says_limit=False))
    assert len(refused.value.sent) == 2
    assert len(session.history()) == 201


@pytest.mark.parametrize("off", [{"enable_context_optimization": False}, None])
def test_off_means_that_a_refusal_is_the_callers(off: dict[str, Any] | None) -> None:
    policy = Policy(enabled=off is not None)
    session = opened(DictStore(), policy=policy, options=off)
    session.append(turns(50))
    provider = Provider(4_000)
    with pytest.raises(ProviderError):
        session.call(provider)
    assert len(provider.sent) == 1
    assert session.summaries() == []


def test_other_errors_and_what_send_returns_are_the_callers() -> None:
    session = opened(DictStore())
    session.append(turns(2))

    def failing(view: list[Any]) -> Any:
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        session.call(failing)
    assert session.call(len) == 8


def test_messages_and_answer_are_appended_around_the_call() -> None:
    session = opened(DictStore())
    response = session.call(Provider(64_000), turns(1)[:1], answer=lambda response: [response])
    assert response == ANSWER
    assert session.history() == [*turns(1)[:1], ANSWER]
    asyncio.run(session.acall(Provider(64_000), turns(2)[4:5], answer=lambda response: [response]))
    assert len(session.history()) == 4


def test_one_message_that_answer_returns_is_appended_as_a_list_of_it_is() -> None:
    """The answer is paid for by then: an error would lose it."""
    session = opened(DictStore())
    assert session.call(Provider(64_000), turns(1)[:1], answer=lambda response: response) == ANSWER
    assert asyncio.run(session.acall(Provider(64_000), turns(2)[4:5], answer=dict)) == ANSWER
    assert [message["role"] for message in session.history()] == ["user", "assistant"] * 2
    with pytest.raises(InputError):
        session.call(Provider(64_000), answer=lambda _: None)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_an_answer_that_cannot_be_appended_is_not_lost_with_it(color: str, sqlite_store: SQLStore) -> None:
    session = Compactor(window=8_000).session("one", sqlite_store)
    question = [{"role": "user", "content": "Where is the harbor?"}]
    with pytest.raises(InputError, match="answer returned None: it must return the messages to append") as told:
        asyncio.run(in_color(color, session, lambda view: ANSWER, question, answer=lambda response: None))
    assert told.value.response == ANSWER
    assert session.history() == question

    def fails(response: Any) -> list[Any]:
        sqlite_store.append = unavailable  # type: ignore[method-assign]
        return [ANSWER]

    def unavailable(*arguments: Any, **named: Any) -> int:
        raise StoreUnavailable("the database is gone")

    held = (piece for piece in "a stream cannot be sent to another process")
    with pytest.raises(StoreUnavailable) as lost:
        asyncio.run(in_color(color, session, lambda view: {**ANSWER, "raw": held}, answer=fails))
    assert lost.value.response == {**ANSWER, "raw": held}
    assert pickle.loads(pickle.dumps(lost.value)).response is None


@pytest.mark.parametrize("color", ["sync", "async"])
def test_an_answer_that_tables_of_ones_own_do_not_take_is_not_lost_with_it(
    color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They raise what their database raises; an error that has a response of its own keeps that."""

    class DriverError(Exception):
        pass

    class HttpError(Exception):
        response = "503"

    store = DictStore()
    session = Compactor(window=8_000).session("one", store)
    for error, found in ((DriverError("gone"), ANSWER), (HttpError("gone"), "503")):

        def fails(*arguments: Any, error: Exception = error, **named: Any) -> int:
            raise error

        def answer(response: Any, fails: Any = fails) -> list[Any]:
            monkeypatch.setattr(store, "append", fails)
            return [response]

        with pytest.raises(type(error)) as lost:
            asyncio.run(in_color(color, session, lambda view: ANSWER, turns(1)[:1], answer=answer))
        assert lost.value.response == found  # type: ignore[attr-defined]
        monkeypatch.undo()


def test_answers_that_take_long_keep_no_other_session_waiting_for_a_thread(sqlite_store: SQLStore) -> None:
    """Blocking clients in async code: a process has forty threads for short work, and more conversations than that."""
    gate = threading.Event()

    def send(view: list[Any]) -> dict[str, Any]:
        assert gate.wait(60)
        return ANSWER

    async def work() -> None:
        to_thread.current_default_thread_limiter().total_tokens = 2
        calls = [
            asyncio.create_task(Compactor(window=64_000).session(f"busy-{n}", sqlite_store).acall(send, turns(1)))
            for n in range(4)
        ]
        try:
            await asyncio.sleep(0.2)
            other = Compactor(window=64_000).session("other", sqlite_store)
            await asyncio.wait_for(other.aappend(turns(1)), 20)
            assert await asyncio.wait_for(other.aview(), 20) == turns(1)
            assert not any(call.done() for call in calls)
        finally:
            gate.set()
        assert await asyncio.gather(*calls) == [ANSWER] * 4

    asyncio.run(work())


def test_the_view_is_a_copy() -> None:
    session = opened(DictStore())
    session.append(turns(2))
    session.call(lambda view: [entry.clear() for entry in view])
    assert session.history() == turns(2)


def test_the_answer_limit_is_lowered_where_prompt_and_answer_do_not_fit() -> None:
    session, limits = opened(DictStore()), []
    session.append(turns(10))

    def send(view: list[Any], max_tokens: int) -> str:
        limits.append(max_tokens)
        if len(limits) == 1:
            raise ProviderError(
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the "
                "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
                code="context_length_exceeded",
            )
        return "answer"

    assert session.call(send, max_tokens=4_000) == "answer"
    assert limits[1] < limits[0]
    assert session.summaries() == []


def test_a_call_that_was_interrupted_is_sent_with_a_word_for_the_missing_result() -> None:
    session = opened(DictStore())
    session.append(turns(1)[:2])  # the call, and no result
    provider = Provider(64_000)
    session.call(provider)
    assert [entry["role"] for entry in provider.sent[0]] == ["user", "assistant", "tool"]
    assert session.history() == turns(1)[:2]


def test_a_refused_shape_is_read_again_and_sent_with_roles_taking_turns() -> None:
    session = opened(DictStore())
    session.append([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    sent: list[Any] = []

    def send(view: list[Any]) -> str:
        sent.append(view)
        if len(view) > 1:
            raise ProviderError("roles must alternate between 'user' and 'assistant'")
        return "answer"

    assert session.call(send) == "answer"
    assert [len(view) for view in sent] == [2, 1]
    assert len(session.view()) == 1


def test_a_summary_that_was_paid_for_is_not_asked_for_again(sqlite_store: SQLStore) -> None:
    """The provider fails behind it for another reason: the record is in force all the same."""
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "They went through the modules."

    session = Compactor(window=16_000, summarizer=summarizer).session("thread", sqlite_store)
    session.append([SYSTEM, *turns(60)])
    for _ in range(3):
        with pytest.raises(ConnectionError):
            session.call(lambda view: (_ for _ in ()).throw(ConnectionError("gone")))
    calls = len(asked)
    assert calls > 0
    assert session.call(Provider(16_000)) == ANSWER
    assert len(asked) == calls


# ---- streams ----


def events(refused: bool) -> list[dict[str, Any]]:
    said_no = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 18800 tokens > 9000 maximum"},
    }
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Done."}}
    return [start, said_no] if refused else [start, delta, {"type": "message_stop"}]


def test_a_refusal_inside_a_stream_counts_as_one_in_both_colors() -> None:
    for color in ("sync", "async"):
        session = opened(DictStore())
        session.append([SYSTEM, *turns(50)])
        sent: list[int] = []

        def send(view: list[Any], sent: list[int] = sent) -> Iterator[Any]:
            sent.append(len(view))
            yield from events(refused=len(sent) == 1)

        async def asend(view: list[Any], sent: list[int] = sent) -> AsyncIterator[Any]:
            sent.append(len(view))
            for event in events(refused=len(sent) == 1):
                yield event

        async def heard(session: Session = session, asend: Any = asend) -> list[Any]:
            return [event async for event in await session.acall(asend)]

        got = list(session.call(send)) if color == "sync" else asyncio.run(heard())
        assert got == events(refused=False)
        assert sent[1] < sent[0]
        assert [summary.trigger for summary in session.summaries()] == ["overflow_retry"]


def test_a_stream_of_texts_is_handed_out_at_its_first_piece() -> None:
    session, yielded = opened(DictStore()), []
    session.append(turns(1))

    def send(view: list[Any]) -> Iterator[str]:
        for text in ("a", "b", "c"):
            yielded.append(text)
            yield text

    stream = session.call(send)
    assert yielded == ["a"]
    assert list(stream) == ["a", "b", "c"]


def test_a_refusal_behind_the_first_content_is_the_callers() -> None:
    session = opened(DictStore())
    session.append(turns(1))

    def send(view: list[Any]) -> Iterator[Any]:
        yield from [*events(refused=False)[:2], *events(refused=True)[1:]]

    stream = session.call(send)
    assert len([next(stream) for _ in range(3)]) == 3


WRONG: list[dict[str, Any]] = [
    *({"send": 3}, {"answer": 3}, {"on_result": 3}, {"cancel": 3}),
    *({"system": ["x"]}, {"tools": {"name": "f"}}),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_is_refused_before_the_question_is_stored_and_the_answer_paid_for(wrong: Any) -> None:
    session, provider = opened(DictStore()), Provider(64_000)
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        session.call(messages=turns(1)[:1], **({"send": provider} | wrong))
    assert (session.history(), provider.sent) == ([], [])


def test_instructions_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="instructions must be a text"):
        opened(DictStore()).compact(3)  # type: ignore[arg-type]
