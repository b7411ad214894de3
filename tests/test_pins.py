"""Pins: what counts as a person's words beside what a harness puts around them."""

from __future__ import annotations

import pytest
from tests.building import conversation

from contextfold import Compactor, Policy, PolicyError
from contextfold.conversation import pins
from contextfold.conversation.groups import Walk
from contextfold.messages import Media, Message, Text, ToolResult
from contextfold.policy import Pins
from contextfold.record.compaction import SummaryRecord, summary_message

REMINDER = "<system-reminder>\nAs you answer, use this context: never commit to main.\n</system-reminder>"
TEXTS = {
    "Move the database to eu-west-2.": True,
    REMINDER: False,
    f"{REMINDER}\n\n{REMINDER}": False,
    f"{REMINDER}\nMove the database to eu-west-2.": True,
    "<system-reminder>without an end, Move the database": False,
    "<environment_context>\n<cwd>/srv</cwd>\n</environment_context>": False,
    "<environment_context>\n<cwd>/srv</cwd>\n</environment_context>\nMove it.": True,
    "<command-name>/clear</command-name>\n<command-args></command-args>": False,
    "<local-command-stdout>ok</local-command-stdout>": False,
    "# AGENTS.md instructions for /srv": False,
    "Caveat: the messages below were generated": False,
    "[Request interrupted by user]": False,
    "[Request interrupted by user for tool use]": False,
    "What does [Request interrupted by user] mean?": True,
}


@pytest.mark.parametrize("order", [("name", "message"), ("message", "name"), ("name",)])
def test_what_stands_behind_a_command_is_a_persons(order: tuple[str, ...]) -> None:
    """``/review the gateway``, as Claude Code writes it down."""
    named = "\n".join(f"<command-{kind}>/review</command-{kind}>" for kind in order)
    message = Message("user", (Text(f"{named}\n<command-args> the gateway, not the store </command-args>"),))
    assert pins.is_person(message)
    assert pins.own_text(message) == "the gateway, not the store"


@pytest.mark.parametrize(("text", "is_persons"), TEXTS.items())
def test_words_are_a_persons_unless_a_harness_wrote_them(text: str, is_persons: bool) -> None:
    assert pins.is_person(Message("user", (Text(text),))) is is_persons


@pytest.mark.parametrize("note", [text for text, is_persons in TEXTS.items() if not is_persons])
def test_a_note_beside_words_or_a_picture_does_not_hide_them(note: str) -> None:
    """Claude Code sends its reminders and the prompt as blocks of one message."""
    words, picture = Text("Move the database to eu-west-2."), Media("image", "image/png", data="aGk=")
    result = ToolResult("c1", (Text("ok"),))
    for parts in ((Text(note), words), (words, Text(note)), (Text(note), picture), (result, Text(note), words)):
        assert pins.is_person(Message("user", parts))
    assert not pins.is_person(Message("user", (result, Text(note))))


def test_what_a_person_says_is_read_without_the_notes_around_it() -> None:
    words = "Move the database to eu-west-2."
    for text, is_persons in TEXTS.items():
        both = Message("user", (Text(text), Text(f"  {REMINDER}\n{words}")))
        said = [text.removeprefix(REMINDER).partition("</environment_context>")[2] or text.removeprefix(REMINDER)]
        assert pins.own_text(both).split("\n") == ([said[0].strip()] if is_persons else []) + [words]


def test_a_reminder_beside_the_prompt_asks_for_nothing_to_be_recalled() -> None:
    """What it names would be brought back at every turn."""
    talk = [
        {"role": "assistant" if n % 2 else "user", "content": f"step {n} went as planned, nothing else. " * 60}
        for n in range(41)
    ]
    talk[3] = {"role": "assistant", "content": "The token of the gateway is GATE-4711, keep it."}
    compactor = Compactor(window=16_000, policy=Policy(recall=True, evidence=False, first_user=False))
    first = compactor.compact(talk)
    assert "GATE-4711" not in str(first.messages)
    note = "<system-reminder>\nThe token of the gateway?\n</system-reminder>"
    for question, comes_back in ((f"{note}\nThanks.", False), (f"{note}\nWhat is the token of the gateway?", True)):
        asked = [*talk, {"role": "assistant", "content": "Done."}, {"role": "user", "content": question}]
        out = compactor.compact(asked, previous=first.compaction)
        assert any(event.name == "recalled" for event in out.events) is comes_back
        assert ("GATE-4711" in str(out.messages)) is comes_back


def test_a_prompt_behind_a_reminder_stays_as_the_first_user_message() -> None:
    reminder = {"type": "text", "text": REMINDER}
    asked = [
        {"role": "user", "content": [reminder, {"type": "text", "text": "Move the database to eu-west-2."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look at the plan first."}]},
    ]
    work = [
        {"role": "assistant" if n % 2 else "user", "content": [{"type": "text", "text": f"step {n} of it " * 200}]}
        for n in range(60)
    ]
    out = Compactor(window=16_000).compact([*asked, *work, {"role": "user", "content": "Go on."}], format="anthropic")
    assert len(out.messages) < 40
    assert out.messages[0]["content"][:2] == asked[0]["content"]


def test_what_a_client_puts_right_before_the_newest_prompt_stays_beside_it() -> None:
    """Open files and reminders say something else at each turn: in the summary they would cost one each time."""
    wire = [*conversation(60), {"role": "user", "content": "Open files: billing.py"}]
    wire.append({"role": "user", "content": "What is in it?"})
    out = Compactor(window=6_000, keep=("messages", 1)).compact(wire)
    assert out.changed
    assert out.messages[-2:] == wire[-2:]


def test_an_earlier_summary_right_before_the_newest_prompt_becomes_part_of_the_next_one() -> None:
    earlier = summary_message(SummaryRecord(text="It was about invoices.", role="user"))
    said = [Message("user", (Text(text),)) for text in ("Find out why.", "Open files: billing.py", "Go on.")]
    held = [pins.held(wire, Walk(wire).result(), Policy()) for wire in ([said[0], earlier, said[2]], said)]
    assert [sorted(places) for places in held] == [[0, 2], [0, 1, 2]]


def test_an_async_predicate_is_refused_for_its_coroutine_would_pin_every_message() -> None:
    async def is_pinned(message: object) -> bool:
        return False

    with pytest.raises(PolicyError, match=r"pins\.predicate: this function is async"):
        Policy(pins={"predicate": is_pinned})


def test_a_predicate_that_raises_is_told_with_the_message_it_was_asked_about() -> None:
    talk = [{"role": "assistant" if n % 2 else "user", "content": f"step {n} of it " * 200} for n in range(9)]
    policy = Policy(pins={"predicate": lambda message: message.text[99_999] == "x"})
    with pytest.raises(PolicyError, match=r"pins\.predicate raised IndexError: .*asked about message \d") as told:
        Compactor(window=2_000, policy=policy).compact(talk)
    assert isinstance(told.value.__cause__, IndexError)


class Odd:
    """What raises when it is compared, or answers with something that is no truth: an array of numbers."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of this is ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("key", ["lc_source", "keep"])
def test_what_stands_in_a_messages_metadata_ends_no_pass(key: str) -> None:
    messages = [Message("user", (Text("Task."),), metadata={key: Odd()}), Message("assistant", (Text("Done."),))]
    assert pins.is_person(messages[0])
    policy = Policy(pins=Pins(metadata={"keep": True}))
    assert not pins._pinned([0], messages, policy.pins)
