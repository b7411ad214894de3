"""Clients that keep a window of their own: they drop their oldest messages, and the summary of them goes on.

Only where that is all that differs. Anything else in what left the view is another conversation, or was edited.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import string
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.building import conversation

from contextfold import Compaction, Compactor, Policy, formats
from contextfold.conversation import recognized
from contextfold.conversation.history import History
from contextfold.conversation.recognized import brought_back, has_own_id
from contextfold.formats.base import Format
from contextfold.messages import Message, ToolCall
from contextfold.record.compaction import Recalled
from contextfold.record.view import build
from contextfold.tokens import TokenCounter
from effort import crossed

WINDOW = 6_000
Wire = list[dict[str, Any]]
SAID = "The agent reads one module after the other to find out why invoices are late."
CHAT = formats.get("openai-chat")


def agent() -> Wire:
    """An agent's session in which the user speaks now and then."""
    wire: Wire = conversation(60)
    for place in range(len(wire), 2, -8):
        wire.insert(place, {"role": "user", "content": f"Then go on behind {place}, please."})
    return wire


def talk() -> Wire:
    """Without any call."""
    rng = random.Random(0)
    words = ["invoice", "module", "river", "table", "lamp", "cargo", "field", "north", "paper", "stone"]
    wire: Wire = [{"role": "system", "content": "You help."}]
    for n in range(60):
        wire.append({"role": "user", "content": f"Question {n}: {' '.join(rng.choices(words, k=50))}?"})
        wire.append({"role": "assistant", "content": f"Answer {n}: {' '.join(rng.choices(words, k=100))}."})
    return wire


def in_format(wire: Wire, format: Format) -> Wire:
    return wire if format is CHAT else format.encode(formats.decode(wire[1:], CHAT))


class Reader:
    """Decodes each message once: clients hand on the same objects at each turn."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self._known: dict[int, tuple[Any, Message, int]] = {}

    def _of(self, message: Any) -> tuple[Any, Message, int]:
        if (found := self._known.get(id(message))) is None:  # kept with it, or another one might have its id
            found = self._known[id(message)] = (message, self.format.decode(message), len(json.dumps(message)))
        return found

    def __call__(self, message: Any) -> Message:
        return self._of(message)[1]

    def size(self, group: Wire) -> int:
        return sum(self._of(message)[2] for message in group)


def is_answer(message: Any, reader: Reader) -> bool:
    return reader(message).role == "assistant"


def groups(wire: Wire, reader: Reader) -> list[Wire]:
    """Each message with the results that follow it."""
    found: list[Wire] = []
    for message in wire:
        read = reader(message)
        if found and (read.tool_results or (read.tool_calls and is_answer(found[-1][-1], reader))):
            found[-1].append(message)
        else:
            found.append([message])
    return found


class Client:
    """Keeps its messages, and drops the oldest where they are more than fit in, behind as many first ones."""

    def __init__(self, format: Format, most: int, *, keeps_first: int, to_half: bool) -> None:
        self.read = Reader(format)
        self.most = most
        self.keeps_first = keeps_first
        self.to_half = to_half
        self.messages: Wire = []

    def add(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        found = groups(self.messages, self.read)
        opening = formats.opening(self.messages) + self.keeps_first
        head, rest = found[:opening], found[opening:]
        size = sum(map(self.read.size, rest))
        most = self.most // 2 if self.to_half and size > self.most else self.most
        while len(rest) > 1 and size > most:
            size -= self.read.size(rest.pop(0))
        self.messages = [message for group in [*head, *rest] for message in group]


def paid(whole: Wire, format: Format, client: Client, *, background: bool) -> tuple[int, int]:
    """(how many summaries a conversation costs, how often its record was set aside)."""
    asked = list[str]()

    def clerk(prompt: str) -> str:
        asked.append(prompt)
        return SAID

    def compactor() -> Compactor:
        return Compactor(window=WINDOW, summarizer=clerk, policy=Policy(background=background))

    subject, record, aside = compactor(), None, 0
    for message in whole:
        client.add(message)
        if is_answer(message, client.read):
            continue
        # as a program that keeps its record elsewhere, and without a background in another process at each turn
        subject = subject if background else compactor()
        out = subject.compact(copy.deepcopy(client.messages), record, format=format.name)
        record = Compaction.from_json(out.compaction.to_json()) if out.compaction else None
        aside += sum(event.name == "compaction_set_aside" for event in out.events)
        read = [client.read(one) for one in client.messages]
        assert [entry.index for entry in out.ledger] == list(range(len(read)))
        for entry in out.ledger:
            if entry.fate == "summarized":
                told = read[entry.index].text or "".join(one.text for one in read[entry.index].tool_results)
                assert any(told[:40] in prompt for prompt in asked)
            elif record is not None and entry.index >= record.covers and format is CHAT:
                assert client.messages[entry.index] in out.messages
        assert record is None or SAID in str(out.messages)
        for thread in threading.enumerate():
            if thread.name == "contextfold-background":
                thread.join(10)
    return len(asked), aside


@functools.cache
def usual(of: Callable[[], Wire], name: str, *, background: bool) -> int:
    """How many summaries a client pays for that drops nothing."""
    format = formats.get(name)
    client = Client(format, 10**9, keeps_first=0, to_half=False)
    return paid(in_format(of(), format), format, client, background=background)[0]


CASES: dict[str, tuple[Callable[[], Wire], str, bool]] = {
    "agent, openai-chat": (agent, "openai-chat", False),
    "agent, openai-responses": (agent, "openai-responses", False),
    "agent, anthropic": (agent, "anthropic", False),
    "agent, gemini": (agent, "gemini", False),
    "agent, openai-chat, background": (agent, "openai-chat", True),
    "agent, anthropic, background": (agent, "anthropic", True),
    "talk, openai-chat": (talk, "openai-chat", False),
}


@crossed(case=CASES, keeps_first=(0, 1, 3), drops=("one at a time", "to half"))
def test_a_client_that_drops_its_oldest_messages_pays_for_no_more_summaries(
    case: str, keeps_first: int, drops: str
) -> None:
    """It paid at each turn in which it dropped some, as long as what it kept was above the trigger."""
    of, name, background = CASES[case]
    format, to_half = formats.get(name), drops == "to half"
    whole = in_format(of(), format)
    client = Client(format, int(WINDOW * (6.5 if of is talk else 4.5)), keeps_first=keeps_first, to_half=to_half)
    often, aside = paid(whole, format, client, background=background)
    assert len(client.messages) < 0.8 * len(whole)
    assert 1 < often <= usual(of, name, background=background) + 1
    assert aside == 0


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("keeps_first", [0, 1, 2, 3], ids=["", "keeps the first", "keeps two", "keeps three"])
def test_a_client_that_keeps_its_last_messages_pays_no_more_where_that_parts_results_from_their_calls(
    keeps_first: int, name: str
) -> None:
    """Also where each of the calls that are made at a time is an item of its own, and some of them are gone."""
    asked, kept, record, format = list[str](), Wire(), None, formats.get(name)
    for message in in_format(ided(), format):
        kept.append(message)
        if format.decode(message).role == "assistant":
            continue
        head = formats.opening(kept) + keeps_first
        kept = [*kept[:head], *kept[head:][-75:]]
        subject = Compactor(window=WINDOW, summarizer=lambda prompt: asked.append(prompt) or SAID)
        out = subject.compact(kept, record, format=name)
        record = out.compaction
        assert "compaction_set_aside" not in [event.name for event in out.events]
        assert [entry.index for entry in out.ledger] == list(range(len(kept)))
    assert 1 < len(asked) < 12


COVERED = 24
"""Messages of those that a record covers that the client still has."""


def _edited(wire: Wire) -> Wire:
    wire[12]["content"] += " It never ran."
    return wire


def _middle_dropped(wire: Wire) -> Wire:
    return [*wire[:10], *wire[12:]]


def _reordered(wire: Wire) -> Wire:
    return [*wire[:9], *wire[11:13], *wire[9:11], *wire[13:]]


def _another_task(wire: Wire) -> Wire:
    return [wire[0], {"role": "user", "content": "Find out why the mail is late."}, *wire[2:]]


def _another_call(wire: Wire) -> Wire:
    call = next(message for message in wire[8:] if "tool_calls" in message)["tool_calls"][0]
    call["function"]["arguments"] = '{"path": "/srv/app/other.py"}'
    return wire


def _another_id(wire: Wire) -> Wire:
    """Of a call that no two conversations share."""
    call = next(n for n in range(8, len(wire)) if "tool_calls" in wire[n])
    wire[call]["tool_calls"][0]["id"] = wire[call + 1]["tool_call_id"] = "call_hJ4kL9pQ2xZ7"
    return wire


def _results_swapped(wire: Wire) -> Wire:
    """Of two calls at a time: they say the same, and mean something else."""
    place = next(n for n in range(8, len(wire)) if len(wire[n].get("tool_calls", ())) > 1)
    one, other = wire[place + 1 : place + 3]
    one["tool_call_id"], other["tool_call_id"] = other["tool_call_id"], one["tool_call_id"]
    return wire


def _put_before(wire: Wire) -> Wire:
    return [*wire[:2], {"role": "user", "content": "One more thing."}, *wire[2:]]


def _another_first_answer(wire: Wire) -> Wire:
    """Of the first messages that a client keeps; of a window, where it keeps only the task."""
    wire[4]["content"] = "The ledger has no entry of that name."
    return wire


def _without_instructions(wire: Wire) -> Wire:
    return wire[1:]


def ided() -> Wire:
    """With calls that are made two at a time, and ids of their own."""
    rng, wire = random.Random(1), agent()
    pairs: Wire = []
    for n, message in enumerate(wire):
        if "tool_calls" not in message:
            pairs += [message] if message["role"] != "tool" else []
            continue
        names = [f"call_{''.join(rng.choices('abcdefgh23456789XYZ', k=12))}" for _ in range(2)]
        made = [{**message["tool_calls"][0], "id": name} for name in names]
        answers = [
            {"role": "tool", "tool_call_id": one, "content": f"{one}: {wire[n + 1]['content']}"} for one in names
        ]
        pairs += [{**message, "tool_calls": made}, *answers]
    return pairs


OTHER = [
    _edited,
    _middle_dropped,
    _reordered,
    _another_task,
    _another_call,
    _another_id,
    _results_swapped,
    _put_before,
    _without_instructions,
    _another_first_answer,
]


def window_of(wire: Wire, record: Compaction, left: int, first: int = 2) -> Wire:
    """The first messages, and of what the record covers the newest ones, by whole groups."""
    start = record.covers - left
    while wire[start]["role"] == "tool":
        start += 1
    return copy.deepcopy([*wire[:first], *wire[start:]])


@pytest.mark.parametrize("first", [2, 5], ids=["", "keeps more of the oldest"])
@pytest.mark.parametrize("other", [None, *OTHER], ids=lambda one: one.__name__ if one else "a window")
def test_anything_else_than_dropped_messages_gets_a_new_summary(
    other: Callable[[Wire], Wire] | None, first: int
) -> None:
    """The old one would tell what is not there, or what another one said."""
    wire = ided()
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    assert record.summary is not None
    given = window_of(wire, record, COVERED, first)
    out = Compactor(window=WINDOW).compact(given if other is None else other(given), record)
    is_set_aside = "compaction_set_aside" in [event.name for event in out.events]
    assert is_set_aside is (other is not None)
    if other is None:
        assert any(record.summary.text in str(message["content"]) for message in out.messages)


@pytest.mark.parametrize(("place", "is_window"), [(2, True), (6, True), (14, False), (40, False)])
def test_of_messages_that_someone_deleted_farther_on_no_summary_goes_on_telling(place: int, is_window: bool) -> None:
    """Clients keep a few of the oldest. Who takes out what stands in the middle does not want it told."""
    wire = ided()
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    assert place + 20 < record.covers

    def behind(n: int) -> int:
        return next(one for one in range(n, len(wire)) if wire[one]["role"] != "tool")

    given = copy.deepcopy([*wire[: behind(place)], *wire[behind(place + 9) :]])
    out = Compactor(window=WINDOW).compact(given, record)
    assert ("compaction_set_aside" in [event.name for event in out.events]) is not is_window


@pytest.mark.parametrize("place", [1, 40, 90])
@pytest.mark.parametrize("keeps_first", [0, 1, 2, 3], ids=["", "keeps the first", "keeps two", "keeps three"])
def test_the_view_of_a_client_that_drops_messages_is_the_one_of_before_without_them(
    place: int, keeps_first: int
) -> None:
    """Wherever the summary stands, and something that was quoted again."""
    whole = ided()
    record = Compactor(window=WINDOW).compact(whole).compaction
    assert record is not None
    head, gone = 1 + keeps_first, 60
    while whole[gone]["role"] == "tool":
        gone += 1
    left = [*whole[:head], *whole[gone:]]
    kept = [n for n in range(gone, record.covers) if n not in record.gone()]
    quoted = [
        Recalled(after=n, digest=history(whole).digest_at(n).hex(), text=f"Again {n}.", indices=(4, gone + 1))
        for n in (kept[0], kept[-1])
    ]
    record = record.changed(summary_after=place, recalled=tuple(quoted)).fitted(history(whole))
    moved = record.moved(history(left))
    assert moved is not None
    before = [one for one in view(whole, record) if one in left or one not in whole]
    assert view(left, moved) == before
    assert sum("Again" in str(one["content"]) for one in before) == len(quoted)
    assert [one.indices for one in moved.recalled] == [(head + 1,)] * len(quoted)


def test_a_record_knows_itself_however_often_its_client_has_dropped_messages() -> None:
    """And how many it lacks by now, none of which may be told in another conversation."""
    whole = ided()
    record = Compactor(window=WINDOW).compact(whole).compaction
    starts = [n for n in range(10, 60) if whole[n]["role"] == "user"]
    for start in starts[:3]:
        assert record is not None
        moved = record.moved(history([whole[0], *whole[start:]]))
        assert moved is not None
        assert moved.lacks == start - 1
        assert record.is_moved_to(moved)
        assert not moved.is_moved_to(record)
        record = moved


def history(wire: Wire) -> History:
    made = History(CHAT, TokenCounter())
    made.extend(wire)
    return made


def view(wire: Wire, record: Compaction) -> Wire:
    return build(history(wire), record).wire


SMALL, LETTERS = string.ascii_lowercase + string.digits, string.ascii_letters + string.digits
MADE = {
    "OpenAI": ("call_", LETTERS, 24, 0.99),
    "Anthropic": ("toolu_01", LETTERS, 22, 0.99),
    "Bedrock": ("tooluse_", LETTERS + "_-", 22, 0.95),
    "vLLM": ("chatcmpl-tool-", "0123456789abcdef", 32, 0.99),
    "Mistral": ("", LETTERS, 9, 0.77),
    "Ollama": ("call_", SMALL, 8, 0.77),
}
"""What ids begin with, their characters, how many of these, and the share that has to be told from numbered ones."""


@pytest.mark.parametrize("maker", MADE)
def test_ids_as_providers_make_them_are_known_to_be_of_one_conversation(maker: str) -> None:
    """A window whose newest call has another one pays for a summary at that turn."""
    before, characters, count, share = MADE[maker]
    rng = random.Random(0)
    ids = [before + "".join(rng.choices(characters, k=count)) for _ in range(1_000)]
    assert sum(map(is_own, ids)) >= share * len(ids)


NUMBERED = ["0", "call_0_12", "call_12345678", "call_readfile", "call_step0012", "call_000000017", "functions.bash:17"]
NAMED = ["toolCall12", "readFileFromDisk", "XMLHttpRequest", "read_file_3", "step_1_of_12", "tool-call-000000001"]


@pytest.mark.parametrize("name", [*NUMBERED, *NAMED])
def test_names_and_numbers_are_no_ids_of_one_conversation(name: str) -> None:
    """Another run of the same job has the same."""
    assert not is_own(name)


def is_own(name: str) -> bool:
    return has_own_id(Message("assistant", (ToolCall(id=name, name="read", arguments="{}"),)))


def test_where_nothing_is_left_that_it_covers_a_record_is_set_aside() -> None:
    """Nothing tells then whose summary it is."""
    wire = ided()
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    given = [*wire[:2], *wire[record.covers :]]
    out = Compactor(window=WINDOW).compact(given, record)
    assert "compaction_set_aside" in [event.name for event in out.events]


def test_where_no_answer_of_the_model_is_left_that_it_covers_a_record_is_set_aside() -> None:
    """What a person wrote alone may stand in any conversation of that person."""
    notes = [{"role": "user", "content": f"Note {n}: the lamp of field {n} is out. " * 9} for n in range(40)]
    wire = [*talk()[1:], *notes]
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    assert len(wire) - 35 < record.covers < len(wire)
    out = Compactor(window=WINDOW).compact(wire[-35:], record)
    assert "compaction_set_aside" in [event.name for event in out.events]


def test_a_client_that_has_dropped_messages_and_undone_the_newest_gets_a_new_summary() -> None:
    """What its user has said last would be in the summary alone."""
    wire, policy = ided(), Policy(recent_users=0)
    record = Compactor(window=WINDOW, policy=policy).compact(wire).compaction
    assert record is not None
    newest = max(n for n in record.gone() if wire[n]["role"] == "user")
    given = window_of(wire[: record.covers], record, record.covers - newest + 20)
    assert given[-1] == wire[record.covers - 1]
    out = Compactor(window=WINDOW, policy=policy).compact(given, record)
    assert wire[newest] in out.messages


@pytest.mark.parametrize("ids", ["numbered", "its own"])
def test_what_was_prepared_of_messages_that_are_gone_is_for_no_other_run_of_a_job(ids: str) -> None:
    """Where no record says which conversation it is, ids of calls do."""

    asked = list[str]()

    def clerk(prompt: str) -> str:
        asked.append("Anna asked for it." if "Anna" in prompt else "Bert asked for it.")
        return asked[-1]

    run = ided() if ids == "its own" else agent()
    place = next(n for n, message in enumerate(run) if message["role"] == "tool")
    whole = [*run[:place], {**run[place], "content": f"I am Anna. {run[place]['content']}"}, *run[place + 1 :]]
    compactor = Compactor(window=WINDOW, summarizer=clerk, policy=Policy(background=True))

    def given(wire: Wire) -> Wire:
        out = compactor.compact(copy.deepcopy(wire))
        for thread in threading.enumerate():
            if thread.name == "contextfold-background":
                thread.join(10)
        return out.messages

    until = next(n for n in range(2, len(whole)) if given(whole[:n]) and asked)
    assert asked == ["Anna asked for it."]
    start = next(n for n in range(place, len(whole)) if whole[n]["role"] == "assistant")
    views = (str(given([whole[0], *whole[start:n]])) for n in range(until, len(whole)))
    seen = next(view for view in views if "asked for it" in view)
    assert ("Anna asked" in seen) is (ids == "its own")


@pytest.mark.parametrize("count", [200, 400], ids=["in the trail", "longer than the trail"])
def test_messages_of_which_it_is_not_certain_which_are_gone_get_a_new_summary(count: int) -> None:
    told = {"role": "assistant", "content": "Nothing new. " * 20}
    wire = [{"role": "user", "content": "Watch."}, *[told] * count, {"role": "user", "content": "And now?"}]
    record = Compactor(window=WINDOW).compact(wire).compaction
    assert record is not None
    out = Compactor(window=WINDOW).compact([wire[0], *wire[40:]], record)
    assert "compaction_set_aside" in [event.name for event in out.events]


def test_a_turn_in_which_nothing_is_dropped_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the caller takes the record that comes back, or goes on giving the one of before."""
    wire, compactor = ided(), Compactor(window=WINDOW)
    record = compactor.compact(wire).compaction
    assert record is not None
    given = window_of(wire, record, COVERED)
    moved = compactor.compact(given, record).compaction
    assert moved is not None
    assert moved.pass_id == record.pass_id
    monkeypatch.setattr(Compaction, "moved", None)
    for n, force in enumerate((record, moved)):
        given.append({"role": "user", "content": f"And {n}?"})
        assert compactor.compact(given, force).compaction == moved


def test_a_record_of_a_long_conversation_grows_no_more_than_that_of_a_short_one() -> None:
    def trail(steps: int) -> str:
        record = Compactor(window=WINDOW).compact(conversation(steps)).compaction
        assert record is not None
        return record.trail

    assert 0 < len(trail(300)) == len(trail(600))


@pytest.mark.parametrize("summarizer", [None, lambda prompt: SAID], ids=["built-in", "a model"])
def test_what_a_user_demanded_stays_when_the_client_has_dropped_it(summarizer: Any) -> None:
    """The passes that follow have no message to read it from."""
    policy = Policy(recent_users=0)  # what users say leaves the view with all else
    compactor, record, passes = Compactor(window=WINDOW, summarizer=summarizer, policy=policy), None, 0
    client, rule = Client(CHAT, int(WINDOW * 4.5), keeps_first=0, to_half=False), "Never write into `orders_1993`."
    for n, message in enumerate(agent()):
        client.add({**message, "content": rule} if n == 10 else message)
        if n >= 10 and message["role"] != "assistant":
            out = compactor.compact(client.messages, record)
            record, passes = out.compaction, passes + out.changed
            assert rule in str(out.messages)
    assert rule not in str(client.messages)
    assert passes > 2


def test_a_list_that_says_one_thing_time_and_again_is_not_tried_at_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try looks at all that is known: a conversation of thousands took ten times as long."""
    tried: list[int] = []
    dropped = recognized.dropped

    def counted(told: Any, now: Any, *more: Any, **options: Any) -> range | None:
        tried.append(len(now))
        return dropped(told, now, *more, **options)

    monkeypatch.setattr(recognized, "dropped", counted)
    told = ["task", *["ok", "go on"] * 50]
    assert brought_back(told, ["another task", *["ok", "go on"] * 5_000], 0, 0) is None
    assert len(tried) <= 20
    told = list("tabcdefgh")
    assert brought_back(told, ["t", "older", "answer", *told[1:], "i"], 0, 0) == range(1, 3)
