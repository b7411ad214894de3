"""The facade as a caller uses it: turns, records, failures, overflows, both colors."""

from __future__ import annotations

import asyncio
import collections
import copy
import functools
import itertools
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from building import conversation
from contextfold import (
    CannotFit,
    Compaction,
    Compactor,
    ContextOverflow,
    InputError,
    Policy,
    PolicyError,
    SummaryFailed,
    formats,
)
from contextfold.conversation.groups import group
from contextfold.evidence import LineReader
from contextfold.observe import Event
from contextfold.passes import question
from effort import crossed

Wire = list[dict[str, Any]]


def test_what_a_result_shows_of_itself_is_its_figures_and_nothing_that_was_said() -> None:
    shown = repr(Compactor(window=8_000).compact(conversation(80)))
    assert "changed=True" in shown
    assert "tokens_before=" in shown
    assert len(shown) < 300
    assert not any(word in shown for word in ("ledger_2019", "module_", "value7x"))


def test_a_short_conversation_comes_back_as_the_very_same_objects() -> None:
    wire = conversation(2)
    out = Compactor(window=100_000).compact(wire)
    assert not out.changed
    assert out.compaction is None
    assert all(new is old for new, old in zip(out.messages, wire, strict=True))
    assert out.ledger.counts()["kept"] == len(wire)
    assert out.tokens_before == out.tokens_after > 0


def as_langchain(wire: Wire) -> Any:
    messages = pytest.importorskip("langchain_core.messages", reason="the extra langchain is not installed")
    return messages.convert_to_messages(wire)


def told_the_time(wire: Wire) -> Wire:
    first = {**wire[0], "content": f"{wire[0]['content']} It is {len(wire)} minutes past noon."}
    return copy.deepcopy([first, *wire[1:]])


def marked_for_the_cache(wire: Wire) -> Wire:
    """In blocks, and on the newest message, as clients set a mark that moves at each turn."""
    blocks = [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in wire]
    blocks[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return blocks


def written(request: str) -> str:
    return "The user has modules of a ledger read one after another, and their values are noted."


def failing(request: str) -> str:
    raise ValueError("the model is away")


@crossed(
    summary=[(None, False), (written, False), (written, True), (failing, False), (failing, True)],
    copied=[list, copy.deepcopy, as_langchain, told_the_time, marked_for_the_cache],
)
def test_a_turn_reads_what_is_new_whoever_made_the_objects(
    summary: tuple[Any, bool], copied: Callable[[Wire], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers that read a conversation from a database give other objects each time. None is decoded again to be known,
    or read for its lines a second time, whoever writes the summaries."""
    read: list[int] = []
    lines: list[int] = []
    name = "langchain" if copied is as_langchain else "openai-chat"
    kind = type(formats.get(name))
    decode, read_lines = kind.decode, LineReader.read
    monkeypatch.setattr(kind, "decode", lambda *given: read.append(1) or decode(*given))
    monkeypatch.setattr(LineReader, "read", lambda own, some: lines.append(len(some)) or read_lines(own, some))
    summarizer, background = summary
    compactor = Compactor(window=8_000, summarizer=summarizer, policy=Policy(background=background))
    wire, previous, passes = conversation(120), None, 0
    for length in range(4, len(wire), 2):
        read.clear()
        out = compactor.compact(copied(wire[:length]), previous, format=name)
        for thread in threading.enumerate():
            if thread.name == "contextfold-background":
                thread.join(10)
        # What a model writes may tell of the instructions. Until that is in force, others mean another conversation.
        is_another = copied is told_the_time and summarizer is not None and previous is None
        # Two messages are new, a pass reads what it has written, and the mark moves from one message to another.
        # Instructions that are others are read for each conversation that seems equal.
        few = 16 if copied is told_the_time else 6
        # Only decoding tells of a framework's objects whether they were changed in place, and a pass wants to know.
        due = {"compaction_started", "summary_adopted", "skipped"}
        is_looked_at = copied is as_langchain and not due.isdisjoint(event.name for event in out.events)
        assert len(read) <= few or is_looked_at or is_another, (length, len(read))
        previous = out.compaction
        passes += out.changed
    assert passes > 2
    # Before that record, each of a few that are other conversations is read for a pass.
    assert sum(lines) < (1.5 if copied is told_the_time else 1.2) * len(wire)


def summary_of(out: Any) -> Any:
    """The message of the view that holds the summary."""
    return next(message for message in out.messages if "<conversation_summary>" in str(message["content"]))


def test_a_long_one_ends_below_the_target_and_every_message_is_accounted_for() -> None:
    wire = conversation(80)
    before = copy.deepcopy(wire)
    out = Compactor(window=8_000).compact(wire)
    assert wire == before
    assert out.changed
    assert out.tokens_after <= out.target < 0.8 * 8_000
    assert sum(out.ledger.counts().values()) == len(wire)
    assert out.messages[:2] == wire[:2]
    assert out.messages[-1] is wire[-1]
    assert out.summary is not None
    assert "module_" in summary_of(out)["content"]


def test_between_passes_the_view_only_grows() -> None:
    """Byte for byte, with the record going through JSON at every turn."""
    wire = conversation(120)
    compactor = Compactor(window=8_000)
    record: Compaction | None = None
    last: Wire = []
    passes = 0
    for end in range(2, len(wire), 2):
        out = compactor.compact(wire[:end], previous=record)
        if out.changed:
            passes += 1
        else:
            assert json.dumps(out.messages[: len(last)]) == json.dumps(last)
        last = out.messages
        record = Compaction.from_json(out.compaction.to_json()) if out.compaction else None
    assert passes >= 3


def test_an_instance_without_memory_of_the_conversation_gives_the_same_view() -> None:
    wire = conversation(60)
    first = Compactor(window=8_000)
    record = first.compact(wire).compaction
    grown = wire + conversation(3)[2:]
    assert (
        first.compact(grown, previous=record).messages
        == Compactor(window=8_000).compact(grown, previous=record).messages
    )


def test_compacting_an_unchanged_history_again_is_a_no_op() -> None:
    wire = conversation(80)
    compactor = Compactor(window=8_000)
    out = compactor.compact(wire)
    again = compactor.compact(wire, previous=out.compaction)
    assert not again.changed
    assert again.messages == out.messages
    assert again.compaction == out.compaction


def test_a_rewind_behind_what_the_record_covers_keeps_it_and_an_edit_inside_sets_it_aside() -> None:
    wire = conversation(80)
    compactor = Compactor(window=8_000)
    record = compactor.compact(wire).compaction
    assert record is not None
    assert record.covers < len(wire)
    rewound = compactor.compact(wire[: record.covers + 1], previous=record)
    assert rewound.compaction is record
    edited = [*wire]
    edited[5] = {**edited[5], "content": "something else"}
    out = compactor.compact(edited, previous=record)
    assert "compaction_set_aside" in [event.name for event in out.events]
    assert out.changed


def test_a_call_that_waits_again_after_a_rewind_is_shown_and_the_record_that_summarized_it_set_aside() -> None:
    """A tool was stopped, and its call summarized later. Rewound to what the user said then, the call is the newest."""
    function = {"name": "shell", "arguments": '{"command": "deploy"}'}
    call = {"id": "call_stopped", "type": "function", "function": function}
    whole = conversation(44)
    told = [
        *whole[:-8],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Stop, look at the log first."},
    ]
    compactor = Compactor(window=8_000, keep=("messages", 7))
    record = compactor.compact([*told, *whole[-8:]]).compaction
    assert record is not None
    assert record.covers <= len(told)
    assert len(told) - 2 in record.gone()
    out = compactor.compact(told, previous=record)
    assert "compaction_set_aside" in [event.name for event in out.events]
    assert call in [one for entry in out.messages for one in entry.get("tool_calls") or ()]


def test_a_message_changed_in_place_is_noticed_at_the_next_pass() -> None:
    wire = conversation(40)
    compactor = Compactor(window=8_000, trigger=("tokens", 6_000))
    compactor.compact(wire[:20])
    wire[3]["content"] = "the port is 8471 now"
    out = compactor.compact(wire)
    assert out.changed
    assert out.compaction == Compactor(window=8_000, trigger=("tokens", 6_000)).compact(wire).compaction


def test_system_prompt_and_tools_count() -> None:
    wire = conversation(5)
    tools = [{"type": "function", "function": {"name": "run", "description": "Run it. " * 200, "parameters": {}}}]
    compactor = Compactor(window=100_000)
    bare = compactor.compact(wire).tokens_after
    out = compactor.compact(wire, system="Be careful. " * 100, tools=tools)
    assert out.tokens_after > bare + 500
    assert set(out.floor) >= {"system prompt", "tools"}


def test_a_floor_is_told_from_the_groups_that_the_pass_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay asks for it after each pass, and grouped all messages before it once more each time."""
    wire = conversation(60)
    compactor = Compactor(window=4_000)
    out, later = compactor.compact(wire[:-2]), compactor.compact(wire[:-2])
    grouped: list[int] = []
    monkeypatch.setattr(question, "group", lambda messages: grouped.append(len(messages)) or group(messages))
    assert out.floor
    assert not grouped
    compactor.compact(wire, out.compaction)  # the history has grown: the floor is still that of its request
    assert later.floor == out.floor


def test_a_window_below_the_floor_is_an_error_that_lists_the_floor() -> None:
    wire = [{"role": "system", "content": "Rules. " * 3000}, *conversation(30)[1:]]
    with pytest.raises(CannotFit) as caught:
        Compactor(window=2_000).compact(wire)
    assert "system or developer message" in caught.value.floor
    assert "Raise the window" in str(caught.value)


def test_no_view_is_larger_than_its_window_however_small_that_is() -> None:
    wire = conversation(3, words=9)[1:]

    def needed(window: int) -> int:
        try:
            return Compactor(window=window).compact(wire).tokens_after
        except CannotFit as refused:
            return refused.needed if refused.needed > window else 0

    sizes = {window: needed(window) for window in (*range(1, 40), *range(40, 400, 7))}
    least = sizes[1]
    assert all(sizes[window] == least for window in range(1, 40)), "what must stay is the same"
    assert all(0 < size <= max(window, least) for window, size in sizes.items())


def test_force_compacts_below_the_trigger_and_twice_is_once() -> None:
    wire = conversation(80)
    compactor = Compactor(window=100_000)
    out = compactor.compact(wire, force=True)
    assert not out.changed or out.trigger == "manual"
    small = Compactor(window=100_000, keep=("messages", 10), target=("tokens", 5_000))
    out = small.compact(wire, force=True)
    assert out.trigger == "manual"
    assert not small.compact(wire, previous=out.compaction, force=True).changed


def test_sync_and_async_give_the_same() -> None:
    wire = conversation(80)

    def summarize(prompt: str) -> str:
        return f"Seen {len(prompt)} characters."

    async def asummarize(prompt: str) -> str:
        return summarize(prompt)

    for one, two in ((None, None), (summarize, asummarize), (asummarize, summarize)):
        out = Compactor(window=8_000, summarizer=one).compact(wire)
        other = asyncio.run(Compactor(window=8_000, summarizer=two).acompact(wire))
        assert out.messages == other.messages
        assert out.compaction == other.compaction


AT_ONCE = {"retries_on_failure": 0}
"""A failed request is not sent again after a pause."""


def test_a_failing_summarizer_changes_nothing_while_the_view_fits() -> None:

    def down(prompt: str) -> str:
        raise ConnectionError("429: slow down")

    wire = conversation(36)
    compactor = Compactor(window=8_000, policy=Policy(summary=AT_ONCE), summarizer=down)
    out = compactor.compact(wire)
    assert 0.8 * 8_000 <= out.tokens_before <= 8_000, out.tokens_before
    assert not out.changed
    assert out.messages == wire
    assert [event.name for event in out.events][-1] == "summary_failed"


def test_when_it_does_not_fit_the_fallback_runs_or_a_typed_error_is_raised() -> None:
    def down(prompt: str) -> str:
        raise ConnectionError("429: slow down")

    wire = conversation(80)
    out = Compactor(window=8_000, policy=Policy(summary=AT_ONCE), summarizer=down).compact(wire)
    assert out.changed
    assert out.summary is not None
    assert out.summary.algorithm == "extractive"
    assert "fallback_used" in [event.name for event in out.events]
    strict = Compactor(policy=Policy(fallback=None, summary=AT_ONCE), window=8_000, summarizer=down)
    with pytest.raises(SummaryFailed, match="429: slow down") as caught:
        strict.compact(wire)
    assert isinstance(caught.value.__cause__, ConnectionError)
    with pytest.raises(ConnectionError):
        Compactor(policy=Policy(on_failure="raise", summary=AT_ONCE), window=8_000, summarizer=down).compact(wire)


def test_a_history_that_carries_an_earlier_summary_gets_one_summary_not_two() -> None:
    """A caller who stores views as histories."""
    compactor = Compactor(window=8_000)
    stored = compactor.compact(conversation(80)).messages + conversation(80, words=110)[2:]
    out = compactor.compact(stored)
    texts = [str(message.get("content")) for message in out.messages]
    assert sum(text.count("<conversation_summary>") for text in texts) == 1


def test_a_view_can_be_had_in_another_format() -> None:
    wire = conversation(80)
    out = Compactor(window=8_000).compact(wire, to="anthropic")
    assert out.format == "anthropic"
    roles = [message["role"] for message in out.messages if message["role"] != "system"]
    assert all(one != two for one, two in itertools.pairwise(roles))


NO_FORMAT_SAYS: dict[str, Wire] = {
    "openai-chat": [
        {"role": "system", "content": [{"type": "of_one_gateway"}]},
        {"role": "user", "content": [{"type": "of_one_gateway", "given": {"n": 1}}]},
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
    ],
    "anthropic": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}],
}


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "anthropic", "langchain", "gemini"])
@pytest.mark.parametrize("name", NO_FORMAT_SAYS)
def test_a_message_that_the_other_format_cannot_say_is_none_that_was_kept(name: str, to: str) -> None:
    """The ledger said so of each, and of some nothing was in the view."""
    lost = NO_FORMAT_SAYS[name]
    wire = [*lost, {"role": "user", "content": "go"}]
    ledger = Compactor(window=8_000).compact(wire, format=name, to=to).ledger
    fates = [(entry.fate, entry.reason) for entry in ledger]
    assert [fate for fate, _ in fates] == [*(["kept" if to == name else "dropped"] * len(lost)), "kept"]
    assert to == name or all(reason for _, reason in fates)


@pytest.mark.strict
def test_many_conversations_share_one_instance() -> None:
    compactor = Compactor(window=8_000)
    wires = [conversation(60, words=100 + n) for n in range(12)]
    first = [compactor.compact(wire) for wire in wires]
    for wire, out in zip(wires, first, strict=True):
        assert compactor.compact(wire, previous=out.compaction).messages == out.messages


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_compactor_can_be_copied_and_sent_to_another_process(copied: Callable[[Compactor], Compactor]) -> None:
    """A copy has the same settings, and a memory of its own."""
    wire = conversation(80)
    made = Compactor(window=8_000, trigger=("tokens", 6_000))
    first = made.compact(wire)
    other = copied(made)
    assert other.compact(wire).messages == first.messages
    assert repr(other) == repr(made)
    assert other.policy == made.policy


class OfTeam(Compactor):
    def __init__(self, team: str) -> None:
        self.team = team
        super().__init__(window=8_000, trigger=("tokens", 6_000))
        self.compacted = 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_so_can_one_of_a_subclass_with_what_is_its_own(copied: Callable[[OfTeam], OfTeam]) -> None:
    made = OfTeam("billing")
    made.compacted = 7
    other = copied(copied(made))
    assert (type(other), other.team, other.compacted) == (OfTeam, "billing", 7)
    assert repr(other) == repr(made)
    assert other.compact(conversation(80)).messages == made.compact(conversation(80)).messages


@pytest.mark.parametrize("face", ["call", "acall", "session.call", "session.acall"])
def test_a_result_is_saved_by_an_async_function_too(face: str) -> None:
    """It was called and never awaited: the record of the conversation was lost, with nothing but a warning."""
    saved: list[Any] = []

    async def save(result: Any) -> None:
        await asyncio.sleep(0)
        saved.append(result.compaction)

    compactor = Compactor(window=8_000, trigger=("tokens", 6_000))
    session = compactor.session("thread", "sqlite:///:memory:")

    def send(view: Wire) -> str:
        return "fine"

    if face == "call":
        compactor.call(send, conversation(80), on_result=save)
    elif face == "acall":
        asyncio.run(compactor.acall(send, conversation(80), on_result=save))
    elif face == "session.call":
        session.call(send, conversation(80), on_result=save)
    else:
        asyncio.run(session.acall(send, conversation(80), on_result=save))
    assert len(saved) == 1
    assert saved[0] is not None


@pytest.mark.parametrize("kind", [tuple, collections.deque, collections.UserList])
def test_any_sequence_of_messages_is_a_conversation(kind: Callable[[Wire], Any]) -> None:
    wire = conversation(80)
    compactor = Compactor(window=8_000)
    first = compactor.compact(kind(wire))
    assert first.messages == compactor.compact(wire).messages
    more = kind([*wire, {"role": "user", "content": "Go on."}])
    assert compactor.compact(more, first.compaction).messages[:-1] == first.messages


def test_a_call_compacts_before_it_sends_and_once_more_after_an_overflow() -> None:
    wire = conversation(30)
    sent: list[int] = []

    def send(view: Wire) -> str:
        sent.append(len(view))
        if len(sent) == 1:
            raise ContextOverflow("prompt is too long: 5000 tokens > 3000 maximum", limit=3_000, used=5_000)
        return "fine"

    results: list[Any] = []
    assert Compactor(window=100_000).call(send, wire, on_result=results.append) == "fine"
    assert len(sent) == 2
    assert sent[1] < sent[0]
    assert results[0].trigger == "overflow: prompt_too_long"
    assert results[0].tokens_after <= 3_000


def test_other_errors_of_a_call_come_out_as_they_are() -> None:
    def send(view: Wire) -> str:
        raise KeyError("no such model")

    with pytest.raises(KeyError):
        Compactor(window=100_000).call(send, conversation(3))


def test_an_overflow_that_cannot_be_made_smaller_is_sent_only_once() -> None:
    sent: list[int] = []

    async def send(view: Wire) -> str:
        sent.append(len(view))
        raise ContextOverflow("prompt is too long")

    with pytest.raises((ContextOverflow, CannotFit)):
        asyncio.run(Compactor(window=100_000).acall(send, conversation(0)))
    assert len(sent) == 1


def test_events_reach_the_callers_hook() -> None:
    seen: list[Event] = []
    Compactor(window=8_000, on_event=seen.append).compact(conversation(80))
    names = [event.name for event in seen]
    assert names.index("compaction_started") < names.index("compaction_finished")
    finished = seen[names.index("compaction_finished")]
    assert finished.data["tokens_before"] > finished.data["tokens_after"]


async def waiting(value: Any) -> int:
    return 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"policy": Policy(), "keep": ("messages", 3)}, "not both"),
        ({"window": 0}, "window"),
        ({"summarizer": 7}, "summarizer"),
        ({"trigger": "80%"}, "trigger"),
        ({"model": 5}, "model is 5"),
        ({"on_event": waiting}, "on_event is async, and nothing awaits it: give a plain function"),
        ({"on_event": functools.partial(waiting)}, "on_event is async"),
        ({"count_text": waiting}, "count_text is async"),
        *(({name: 5}, f"{name} is 5") for name in ("on_event", "on_start", "on_stream", "on_progress", "on_end")),
    ],
)
def test_wrong_settings_are_refused_on_construction(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Compactor(**settings)


@pytest.mark.parametrize("wire", [[{"role": "user"}, "text"], [{"content": "no role"}], [3]])
def test_what_is_not_a_message_is_named_by_its_place(wire: list[Any]) -> None:
    with pytest.raises(InputError, match=r"message \d|entry \d|\d"):
        Compactor(window=8_000).compact(wire)


def test_a_system_prompt_in_blocks_is_refused_with_what_to_do(tmp_path: Path) -> None:
    blocks: Any = [{"type": "text", "text": "You repair services."}]
    compactor = Compactor(window=8_000)
    session = compactor.session("t", f"sqlite:///{tmp_path / 'kept.db'}")
    session.append(conversation(2))
    for refusing in (lambda: compactor.compact(conversation(2), system=blocks), lambda: session.view(system=blocks)):
        with pytest.raises(InputError, match="not list: join the texts of its blocks"):
            refusing()


def test_a_long_history_never_holds_up_the_event_loop() -> None:
    """Decoding, planning and evidence of thousands of messages happen beside the loop."""
    wire = conversation(1_000)

    async def longest_pause() -> float:
        longest, last = 0.0, asyncio.get_running_loop().time()
        work = asyncio.create_task(Compactor(window=8_000).acompact(wire))
        while not work.done():
            await asyncio.sleep(0.001)
            now = asyncio.get_running_loop().time()
            longest, last = max(longest, now - last), now
        assert work.result().changed
        return longest

    blocking = asyncio.run(_timed(Compactor(window=8_000), wire))
    # a busy machine holds up any process now and then, but not at each try
    assert any(asyncio.run(longest_pause()) < blocking / 2 for _ in range(5))


async def _timed(compactor: Compactor, wire: Wire) -> float:
    """Seconds that the same work takes when it blocks."""
    before = asyncio.get_running_loop().time()
    compactor.compact(wire)
    return asyncio.get_running_loop().time() - before
