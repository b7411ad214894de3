"""What clients change from turn to turn in messages that were sent before, and what it costs.

A record speaks of what left the view. What stands there word for word may say something else each time, and what left
it may be written in another form: neither costs a summary. Something else in what left it gets a new one.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.building import conversation

from contextfold import Compaction, Compactor, formats
from contextfold.conversation.history import History
from contextfold.integrations.known_lists import KnownLists
from contextfold.tokens import TokenCounter
from effort import crossed

WINDOW = 6_000
Wire = list[dict[str, Any]]
Habit = Callable[[int, Wire], object]


def talk() -> Wire:
    """An agent's session in which the user speaks now and then."""
    wire: Wire = conversation(60)
    for place in range(len(wire), 2, -8):
        wire.insert(place, {"role": "user", "content": f"Then go on behind {place}, please."})
    for n, message in enumerate(wire):
        if message["role"] == "assistant":
            message["reasoning_content"] = f"I think about {n}."
    return wire


def paid(habit: Habit) -> tuple[int, int]:
    """(how many summaries a conversation costs, how often its record was set aside)."""
    asked = list[str]()

    def clerk(prompt: str) -> str:
        asked.append(prompt)
        return "The agent reads one module after the other to find out why invoices are late."

    compactor, record, aside, whole = Compactor(window=WINDOW, summarizer=clerk), None, 0, talk()
    for turn in range(2, len(whole) + 1):
        if whole[turn - 1]["role"] != "assistant":
            wire = copy.deepcopy(whole[:turn])
            habit(turn, wire)
            result = compactor.compact(wire, record, format="openai-chat")
            # as a program that keeps it elsewhere
            record = Compaction.from_json(result.compaction.to_json()) if result.compaction else None
            aside += sum(event.name == "compaction_set_aside" for event in result.events)
            assert len(result.messages) < 60
    return len(asked), aside


def newest(wire: Wire) -> int:
    return max(n for n, message in enumerate(wire) if message["role"] == "user")


def task(turn: int, wire: Wire) -> None:
    wire[1]["content"] = f"<open_files>module_{turn}.py</open_files>\n{wire[1]['content']}"


def instruction_in_the_middle(turn: int, wire: Wire) -> None:
    if len(wire) > 6:
        wire.insert(6, {"role": "system", "content": f"Memory: {turn} notes."})


def reminder(turn: int, wire: Wire) -> None:
    wire[newest(wire)]["content"] += f"\n<system-reminder>It is turn {turn}.</system-reminder>"


def messages_behind(turn: int, wire: Wire) -> None:
    wire += [{"role": "user", "content": f"<todo>{turn}</todo>"}, {"role": "system", "content": f"Turn {turn}."}]


def arguments(turn: int, wire: Wire) -> None:
    for call in calls(wire):
        said = {"é": "ü", **json.loads(call["arguments"])}
        written = {"sort_keys": True} if turn % 3 else {"separators": (",", ":"), "ensure_ascii": False}
        call["arguments"] = json.dumps(said, **written)


def calls(wire: Wire) -> Wire:
    return [call["function"] for message in wire for call in message.get("tool_calls", ())]


def ids(turn: int, wire: Wire) -> None:
    for message in wire:
        message["id"] = f"message_{turn}"
        for call in message.get("tool_calls", ()):
            call["id"] = f"{call['id']}_{turn}"
        if "tool_call_id" in message:
            message["tool_call_id"] += f"_{turn}"


def thinking(turn: int, wire: Wire) -> None:
    for message in wire[: newest(wire)]:
        message.pop("reasoning_content", None)


def parts(turn: int, wire: Wire) -> None:
    for message in wire if turn % 3 else ():
        message["content"] = [{"type": "text", "text": message["content"] + "\n"}, {"type": "text", "text": ""}]


def cleared(turn: int, wire: Wire) -> None:
    """As agents do to save room, all but the newest results."""
    for message in [one for one in wire if one["role"] == "tool"][:-24]:
        message["content"] = "[Old tool result content cleared]"


def shown_in_part(turn: int, wire: Wire) -> None:
    for message in [one for one in wire if one["role"] == "tool"][:-24]:
        message["content"] = f"[Trimmed: 900 characters, the first 20 follow]\n{message['content'][:20]}"


def cut_in_the_middle(turn: int, wire: Wire) -> None:
    for message in [one for one in wire if one["role"] == "tool"][:-24]:
        told = message["content"]
        message["content"] = f"{told[:40]}\n...(900 characters truncated)...\n{told[-40:]}"


def cut_without_a_word(turn: int, wire: Wire) -> None:
    for n, message in enumerate([one for one in wire if one["role"] == "tool"][:-24]):
        message["content"] = message["content"][:100] + ("..." if n % 2 else "…")


def said_again_later(turn: int, wire: Wire) -> None:
    for message in [one for one in wire if one["role"] == "tool"][:-24]:
        message["content"] = "[see newer read below]"


def arguments_left_out(turn: int, wire: Wire) -> None:
    for n, call in enumerate(calls(wire)[:-24]):
        call["arguments"] = "{}" if n % 2 else '{"path": "/srv/app...(argument truncated)"}'


def images(turn: int, wire: Wire) -> None:
    """Some stand beside words, and some alone."""
    shown = [message for message in wire if message["role"] == "tool"][::6]
    for n, message in enumerate(shown):
        mark = "[screenshot]" if n % 4 == 1 else "[Image removed to save context]"
        image = of_image("red") if n >= len(shown) - 3 else {"type": "text", "text": mark}
        told = [{"type": "text", "text": message["content"]}] if n % 4 != 1 else []
        message["content"] = [*told, *([image] if n % 2 else [])]


HABITS = (
    task,
    cleared,
    shown_in_part,
    cut_in_the_middle,
    cut_without_a_word,
    said_again_later,
    arguments_left_out,
    images,
    instruction_in_the_middle,
    reminder,
    messages_behind,
    arguments,
    ids,
    thinking,
    parts,
)


@functools.cache
def usual() -> int:
    return paid(lambda turn, wire: None)[0]


@crossed(habit=HABITS, quick=4)
def test_what_clients_change_at_each_turn_costs_no_summary(habit: Habit) -> None:
    often, aside = paid(habit)
    assert aside == 0
    assert usual() > 2
    assert often <= usual() + 2  # what stands beside it takes room


LIST_HABITS = [task, instruction_in_the_middle, reminder, messages_behind, thinking, images]
LIST_HABITS += [cleared, shown_in_part, cut_in_the_middle, cut_without_a_word, said_again_later, arguments_left_out]


@pytest.mark.parametrize("habit", LIST_HABITS, ids=lambda habit: habit.__name__)
def test_a_list_that_a_framework_copies_is_known_again(habit: Habit) -> None:
    """Haystack's and the Agents SDK's tell no conversation: another task at each turn counted as another one."""
    often, usual = asked_for_lists(habit), asked_for_lists(none)
    assert usual > 2
    assert often <= usual + 2


def none(turn: int, wire: Wire) -> None:
    """Nothing is changed: what such a client pays is worked out once for all habits."""


@functools.cache
def asked_for_lists(habit: Habit, beside: int = 0) -> int:
    """``beside``: so many first messages come behind each turn, as those of another conversation."""
    lists, asked, whole = KnownLists(formats.get("openai-chat")), 0, talk()
    compactor = Compactor(window=WINDOW)
    for turn in range(2, len(whole) + 1):
        if whole[turn - 1]["role"] != "assistant":
            wire = copy.deepcopy(whole[:turn])
            habit(turn, wire)
            known = lists.of(wire)
            result = compactor.compact(known.items, known.record, format="openai-chat")
            assert result.messages[-1] == wire[-1]
            lists.keep(replace(known, record=result.compaction))
            asked += result.changed
            if 0 < beside < turn:
                other = lists.of(copy.deepcopy(wire[:beside]))
                assert other.record is None
                lists.keep(other)
    return asked


def dropped(turn: int, wire: Wire) -> None:
    """As agents do to save room, all between the first and the newest, with ids of calls as providers make them."""
    for message in wire:
        for call in message.get("tool_calls", ()):
            call["id"] = own_id(call["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = own_id(message["tool_call_id"])
    del wire[4:-60]
    while len(wire) > 4 and wire[4]["role"] == "tool":
        del wire[4]


def own_id(name: str) -> str:
    return f"call_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("beside", [2, 4])
@pytest.mark.parametrize("habit", [dropped, cleared, shown_in_part, task], ids=lambda habit: habit.__name__)
def test_other_runs_of_the_same_task_cost_a_list_that_changes_no_summary(habit: Habit, beside: int) -> None:
    """One that begins, or a fork of the first turns, was taken for what a longer one goes on with: each turn paid."""
    often, alone = asked_for_lists(habit, beside), asked_for_lists(habit)
    assert alone > 1
    assert often <= alone


def of_image(color: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"https://images.test/{color}.png"}}


SAID_ANEW = [
    "It never ran.",
    "[redacted]",
    "[removed]",
    "",
    "The table was truncated.\n" + "Rows follow.\n" * 200,
    "Error: duplicate key, see the newest row.",
    "Nothing was found.\n[... 900 lines truncated ...]",
    "Nothing was found...",
]


@pytest.mark.parametrize("what", ["text", "name", "arguments", "result", "image", "role", *SAID_ANEW])
def test_something_else_in_what_left_the_view_gets_a_new_summary(what: str) -> None:
    """A record that stood would make it vanish."""
    wire = talk()
    role = "tool" if what in ("result", "image", *SAID_ANEW) else "assistant"
    if what == "image":
        for message in wire:
            if message["role"] == role:
                message["content"] = [{"type": "text", "text": message["content"]}, of_image("red")]
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    place = next(n for n in sorted(record.gone()) if wire[n]["role"] == role)
    if what in ("text", "result"):
        wire[place]["content"] += " It never ran."
    elif what in SAID_ANEW:
        wire[place]["content"] = what
    elif what == "image":
        wire[place]["content"][1] = of_image("blue")
    elif what == "role":
        wire[place] = {"role": "user", "content": wire[place]["content"]}
    elif what == "name":
        calls(wire[place : place + 1])[0]["name"] = "delete_file"
    else:
        calls(wire[place : place + 1])[0]["arguments"] = '{"path": "/srv/app/other.py"}'
    again = Compactor(window=WINDOW).compact(wire, record)
    assert "compaction_set_aside" in [event.name for event in again.events]


CUT_BY_TOOLS = [
    "Report of the deploy\n{} orders failed\n[... 900 lines truncated ...]\nend",
    "[Output truncated, the end follows]\n{} orders failed",
    "Cache cleared: {} entries",
    "orders: {} (3 rows omitted)",
]
"""What looks as if a client had cleared some, and a tool has answered."""


@pytest.mark.parametrize("told", CUT_BY_TOOLS)
def test_what_a_tool_has_cut_and_tells_otherwise_now_gets_a_new_summary(told: str) -> None:
    """It was taken for what a client leaves of an old result, so the new number was nowhere; a placeholder is known."""
    wire = talk()
    result = next(message for message in wire if message["role"] == "tool")
    result["content"] = told.format(42)
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    assert wire.index(result) in record.gone()
    cases = {told.format(42): False, told.format(43): True}
    cases |= dict.fromkeys(["[Old tool result content cleared]", "Old environment output: (9 lines omitted)"], False)
    for content, is_new in cases.items():
        result["content"] = content
        again = Compactor(window=WINDOW).compact(wire, record)
        assert ("compaction_set_aside" in [event.name for event in again.events]) is is_new


REDACTED_OR_OTHER = {
    "a secret": ("The password is hunter2.", "The password is <masked>."),
    "a secret in brackets": ("The password is hunter2.", "The password is [masked]."),
    "a secret behind dots": ("The password is hunter2.", "The password is ..."),
    "a secret in arguments": ('{"command": "psql --password hunter2"}', '{"command": "psql --password <masked>"}'),
    "an image": ([{"type": "text", "text": "Seen."}, of_image("red")], [{"type": "text", "text": "Seen.[redacted]"}]),
    "an image in brackets": ([of_image("red")], [{"type": "text", "text": "[image redacted]"}]),
    "a list of images": ('[{"type": "image", "of": "Anna"}]', '[{"type": "image", "of": "Bert"}]'),
    "a word on an image": ("[I saw an image: the server burns.]", "[I saw an image: all is well.]"),
}


@pytest.mark.parametrize("what", REDACTED_OR_OTHER)
def test_what_is_redacted_or_tells_of_an_image_otherwise_gets_a_new_summary(what: str) -> None:
    """The old one would go on telling it."""

    def wire(content: Any) -> Wire:
        given = talk()
        place = next(n for n, message in enumerate(given) if n > 8 and message["role"] == "tool")
        if what == "a secret in arguments":
            calls(given[place - 1 : place])[0]["arguments"] = content
        else:
            given[place - (what == "a word on an image")]["content"] = content
        return given

    before, after = map(wire, REDACTED_OR_OTHER[what])
    again = Compactor(window=WINDOW).compact(after, Compactor(window=WINDOW).compact(before).compaction)
    assert "compaction_set_aside" in [event.name for event in again.events]


def test_a_cleared_result_that_is_there_again_gets_a_new_summary() -> None:
    """The summary knew nothing of it."""
    wire = talk()
    result = next(message for message in wire if message["role"] == "tool")
    told, result["content"] = result["content"], "[cleared]"
    record = Compactor(window=WINDOW).compact(wire).compaction
    result["content"] = told
    again = Compactor(window=WINDOW).compact(wire, record)
    assert "compaction_set_aside" in [event.name for event in again.events]


def test_a_record_does_not_grow_with_the_images_of_a_long_conversation() -> None:
    """As of an agent that uses a browser, to whom each screenshot is given in a message of its own."""

    def outline(turns: int) -> str:
        wire: Wire = [{"role": "user", "content": "Look around."}]
        for n in range(turns):
            image = {"type": "image_url", "image_url": {"url": f"https://images.test/{n}.png"}}
            wire += [{"role": "assistant", "content": f"I click {n}."}, {"role": "user", "content": [image]}]
        record = Compactor(window=30_000).compact(wire).compaction
        assert record is not None
        return record.outline

    assert 1_000 < len(outline(1_200)) <= len(outline(600))


def test_results_of_other_calls_get_a_new_summary_and_other_ids_none() -> None:
    """Two calls of one tool at a time: results that change places say the same, and mean something else."""

    def wire(mark: str, *, swapped: bool = False, is_late: bool = False) -> Wire:
        said: Wire = [{"role": "user", "content": "Measure all rooms."}]
        for n in range(60):
            names = [f"{mark}{n}_{place}" for place in range(2)]
            asked = [{"name": "measure", "arguments": f'{{"room": "{n}.{place}"}}'} for place in range(2)]
            made = [{"id": name, "type": "function", "function": call} for name, call in zip(names, asked, strict=True)]
            answers = names[::-1] if swapped and n == 5 else names
            results = [
                {"role": "tool", "tool_call_id": name, "content": f"{n} degrees at place {place} " + "of it " * 24}
                for place, name in enumerate(answers)
            ]
            said += [{"role": "assistant", "content": None, "tool_calls": made}, *results[:: -1 if is_late else 1]]
        return said

    def is_set_aside(record: Compaction | None, given: Wire) -> bool:
        events = Compactor(window=WINDOW).compact(given, record).events
        return "compaction_set_aside" in [event.name for event in events]

    for is_late in (False, True):
        record = Compactor(window=WINDOW).compact(wire("a", is_late=is_late)).compaction
        assert record is not None
        assert set(range(16, 19)) <= record.gone()
        assert not is_set_aside(record, wire("b", is_late=is_late))
        assert is_set_aside(record, wire("a", is_late=is_late, swapped=True))


def test_a_record_of_before_holds_for_the_messages_that_it_was_made_from() -> None:
    wire = talk()
    compactor = Compactor(window=WINDOW)
    out = compactor.compact(wire)
    assert out.compaction is not None
    history = History(formats.get("openai-chat"), TokenCounter())
    history.extend(wire)
    old = out.compaction.changed(fingerprint=history.fingerprint(out.compaction.covers))
    assert compactor.compact(wire, old).messages == out.messages


@crossed(name=[*formats.FORMATS, "haystack", "pydantic-ai"], quick=3)
def test_another_task_at_each_turn_costs_no_summary_in_any_format(name: str) -> None:
    """Encoded anew at each turn, as by a client that keeps its messages in a form of its own."""
    pytest.importorskip({"haystack": "haystack", "pydantic-ai": "pydantic_ai"}.get(name, "langchain_core"))

    def asked(habit: Habit) -> int:
        source, chat = formats.get(name), formats.get("openai-chat")
        subject, record, passes = Compactor(window=WINDOW), None, 0
        whole = talk()
        for turn in range(2, len(whole) + 1):
            if whole[turn - 1]["role"] != "assistant":
                wire = copy.deepcopy(whole[1:turn])  # a system message has no place in some formats
                habit(turn, [whole[0], *wire])
                result = subject.compact(source.encode(formats.decode(wire, chat)), record, format=name)
                record, passes = result.compaction, passes + result.changed
        return passes

    often, usual = asked(task), asked(lambda turn, wire: None)
    assert usual > 2
    assert often <= usual + 2
