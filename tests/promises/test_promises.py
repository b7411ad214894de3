"""Promises times faces: each cell of the table is executed, or says in words why its peer's contract forbids it.

A row is a function that is given a face; ``EXCUSED`` has the cells that cannot hold. ``docs/promises.md`` is made of
both: ``python tests/promises/test_promises.py`` writes it.
"""

from __future__ import annotations

import contextlib
import copy
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from promise_faces import FACES, SUMMARY, WINDOW, Model, Setting, Tell

from contextfold import ContextOverflow, Policy, PolicyError, count_tokens
from contextfold.calls.memory import KnownConversation
from contextfold.conversation.history import History
from contextfold.evidence import section
from contextfold.integrations.langchain.evicted import LeftMessages
from contextfold.record.view import ViewItem
from contextfold.summary.message import summary_text
from leftovers import close_loop, collected

Face = Callable[[Setting], Tell]


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:
    with collected():
        yield


@pytest.fixture(autouse=True)
def _without_a_loop() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close_loop()


DOCS = Path(__file__).resolve().parents[2] / "docs" / "promises.md"


def question(turn: int, words: int = 300) -> list[BaseMessage]:
    filling = " ".join(f"wall-{turn}-{word}" if word % 40 == 0 else "plain" for word in range(words))
    return [HumanMessage(f"[q{turn}] What about room {turn}? {filling} So much for room {turn}.", id=f"q{turn}")]


def work(turn: int) -> list[BaseMessage]:
    """A question, a call that the assistant made, its result, and the next question."""
    call_id = f"call_{turn}tJ7x4Vw9Kq2"
    made = AIMessage("", tool_calls=[{"name": "look", "args": {"room": turn}, "id": call_id}], id=f"a{turn}")
    text = f"[r{turn}] room {turn} is dry. {'plain ' * 200}This is all of room {turn}."
    result = ToolMessage(text, tool_call_id=call_id, id=f"r{turn}")
    return [*question(turn), made, result, HumanMessage(f"[n{turn}] And now?", id=f"n{turn}")]


def played(face: Face, setting: Setting, turns: int = 14, words: int = 300) -> list[list[BaseMessage]]:
    """What was told, turn by turn, all of it answered. ``words``: of a question."""
    tell, told = face(setting), list[list[BaseMessage]]()
    for turn in range(turns):
        new = work(turn) if turn % 3 == 1 else question(turn, words)
        told.append(new)
        tell(new)
    return told


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages]


def sent(messages: Sequence[BaseMessage]) -> list[tuple[Any, ...]]:
    """All that a model reads of messages: who speaks, words, calls, and what a result answers."""
    calls = [
        [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
        for message in messages
    ]
    answers = [getattr(message, "tool_call_id", None) for message in messages]
    said = [(message.type, message.text) for message in messages]
    return list(zip(said, calls, answers, strict=True))


def unnamed(view: Sequence[BaseMessage]) -> list[str]:
    """The texts without the name of the history file, which deepagents draws by chance for each thread."""
    return [re.sub(r"session_[0-9a-f]+", "session", text) for text in texts(view)]


def problems(view: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse."""
    found: list[str] = []
    waiting: set[str] = set()
    for message in view:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                found.append(f"a result without its call: {message.tool_call_id}")
            waiting.discard(message.tool_call_id)
        elif waiting:
            found.append(f"calls without results: {sorted(waiting)}")
            waiting = set()
        if isinstance(message, AIMessage):
            waiting = {str(call["id"]) for call in message.tool_calls}
    return [*found, *(["calls without results at the end"] if waiting else [])]


def summaries(view: Sequence[BaseMessage]) -> int:
    return sum(1 for message in view if "SUMMARYTOKEN" in str(message.text))


# ---- the promises ----


def conservation(face: Face) -> None:
    """Every message is in the last view word for word, or its text was in a request to the summarizer."""
    setting = Setting()
    told = played(face, setting)
    last, read = "\n".join(texts(setting.views[-1])), setting.read
    assert setting.writer.sent
    for message in (message for new in told for message in new if message.text):
        text = str(message.text)
        assert text in last or (text[:60] in read and text[-30:] in read), message.id


def valid_to_send(face: Face) -> None:
    """Calls and results stay together, and an interrupted call is answered by the message that shows it to be one."""
    setting = broken(face)
    assert summaries(setting.views[-1]) == 1
    for view in setting.views:
        assert problems(view) == []


def stray_results_are_shown(face: Face) -> None:
    """A result without its call, or for a call that was answered before, is shown as text."""
    setting = broken(face)
    somewhere = str(setting.views[-1]) + setting.read
    assert all(word in somewhere for word in ("[o] of a call", "[s1] one", "[s2] two"))


def broken(face: Face) -> Setting:
    """A conversation with an interrupted call, a result without a call, and one that comes twice."""
    setting = Setting()
    tell = face(setting)
    for turn in range(10):
        tell(work(turn))
    interrupted = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "lost"}], id="lost")
    tell([*question(90), interrupted, HumanMessage("[x] Still there?", id="x")])
    tell(question(91))
    tell([ToolMessage("[o] of a call that is lost", tool_call_id="nowhere", id="orphan"), *question(92)])
    twice = {"name": "look", "args": {}, "id": "twice"}
    tell(
        [
            AIMessage("", tool_calls=[twice], id="tw1"),
            ToolMessage("[s1] one", tool_call_id="twice", id="tw2"),
            ToolMessage("[s2] two", tool_call_id="twice", id="tw3"),
            HumanMessage("[z] And now?", id="z"),
        ]
    )
    return setting


def failure_changes_nothing(face: Face) -> None:
    """A summarizer that fails leaves the whole conversation in the view; the next call tries again."""
    failing = Model(script=lambda number: ValueError("no such model") if number < 3 else SUMMARY)
    setting = Setting(writer=failing)
    told = played(face, setting, 12)
    whole = [view for view in setting.views if summaries(view) == 0]
    sent = [text for new in told[: len(whole)] for text in texts(new)]
    assert [text for text in texts(whole[-1]) if text.startswith("[")] == [
        text for text in sent if text.startswith("[")
    ]
    assert summaries(setting.views[-1]) == 1


def append_only(face: Face) -> None:
    """Between two summaries each view is the last one and more."""
    setting = Setting()
    tell, before, grown = face(setting), 0, 0
    for turn in range(16):
        tell(work(turn) if turn % 4 == 1 else question(turn))
        if turn and len(setting.writer.sent) == before:
            earlier, later = setting.views[-2:]
            assert sent(later)[: len(earlier)] == sent(earlier)
            grown += 1
        before = len(setting.writer.sent)
    assert grown >= 8


def progress(face: Face) -> None:
    """A pass brings the view below what triggered it: the next one comes only when as much has been said again."""
    setting = Setting()
    played(face, setting, 20)
    assert 2 <= len(setting.writer.sent) <= 8


def no_mutation(face: Face) -> None:
    """What a caller tells is not changed."""
    setting = Setting()
    tell = face(setting)
    for turn in range(12):
        new = work(turn)
        as_told = copy.deepcopy(new)
        tell(new)
        assert new == as_told


def verbatim(face: Face) -> None:
    """The newest request is in every view word for word, also when the assistant has long been working on it."""
    setting = Setting()
    tell = face(setting)
    for turn in range(6):
        tell(question(turn))
    task = "[task] Mend the roof, and never touch the cellar."
    long: list[BaseMessage] = [HumanMessage(task, id="task")]
    for number in range(16):
        made = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": f"l{number}"}], id=f"l{number}")
        long += [made, ToolMessage(f"tile {number} " * 150, tool_call_id=f"l{number}", id=f"t{number}")]
    tell(long)
    assert summaries(setting.views[-1]) == 1
    # the message itself, maybe behind the summary in one turn: evidence may quote it too, and ends with a tag.
    # deepagents' contract leaves only the summary to carry it, where it is named as what it is
    named = f"<user_message>\n{task}\n</user_message>"
    assert any(text.endswith((task, named)) or text.startswith(task) for text in texts(setting.views[-1]))


def one_summary(face: Face) -> None:
    """However often it is compacted, there is one flat summary."""
    setting = Setting()
    played(face, setting, 24)
    assert len(setting.writer.sent) >= 3
    assert {summaries(view) for view in setting.views} == {0, 1}
    assert "\n".join(texts(setting.views[-1])).count("SUMMARYTOKEN") == 1


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def old_facts_stay(face: Face) -> None:
    """What the assistant found out early is still in the view after many summaries, though new names left each time."""
    keys = (
        "vault-7311",
        "relay-7890",
        "quota-1663",
        "shard-5242",
        "probe-9376",
        "lease-8961",
        "port-4127",
        "rack-6038",
    )
    facts = {3 * n + 2: key for n, key in enumerate(keys)}

    def found(number: int) -> str:
        return f"The key of ring {number} is held by {facts[number]} at 10.4.{number}.77." if number in facts else "ok"

    setting = Setting(main=Model(script=found), trigger=("tokens", 4_000))
    tell = face(setting)
    for turn in range(50):
        call = {"name": "read_file", "args": {"path": f"/srv/app/module_{turn}.py"}, "id": f"c{turn}"}
        made = AIMessage(f"Reading module {turn}.", tool_calls=[call], id=f"a{turn}")
        # Names in letters, each of its own: rows that differ in figures alone look alike, and count for less.
        name = LETTERS[turn % 26] + LETTERS[turn // 26]
        code = "\n".join(
            f"def step_{name}{LETTERS[row]}_of(value):\n    return value * {turn + row}" for row in range(20)
        )
        result = ToolMessage(code, tool_call_id=f"c{turn}", id=f"r{turn}")
        asked = HumanMessage(f"Look at module {turn}; the ticket is BILL-{4000 + turn}.", id=f"q{turn}")
        tell([asked, made, result, HumanMessage("And?", id=f"n{turn}")])
    assert len(setting.writer.sent) >= 4
    view = "\n".join(texts(setting.views[-1]))
    assert [key for key in keys if key not in view] == []


def determinism(face: Face) -> None:
    """The same conversation gives the same views."""
    views = []
    for _ in range(2):
        setting = Setting()
        played(face, setting)
        views.append([unnamed(view) for view in setting.views])
    assert views[0] == views[1]


def off_means_off(face: Face) -> None:
    """Without a trigger nothing is summarized, whatever the size."""
    setting = Setting(trigger=None)
    told = played(face, setting, words=2_500)
    assert setting.writer.sent == []
    assert 0.8 * WINDOW < count_tokens(setting.views[-1]) < WINDOW, "where the default trigger would fire"
    assert [text for new in told for text in texts(new)] == [
        text for text, view in zip(texts(setting.views[-1]), setting.views[-1], strict=True) if view.text != "ok"
    ]


def a_number_is_that_number(face: Face) -> None:
    """``keep`` names a number of messages: they stay word for word, although the trigger is below what they take."""
    setting = Setting(trigger=("tokens", 2_000), keep=("messages", 12))
    told = played(face, setting, 20)
    newest = [message for new in told for message in new][-6:]
    assert summaries(setting.views[-1]) == 1
    assert texts(setting.views[-1])[-1] == str(newest[-1].text)
    sizes = [len(view) for view in setting.views if summaries(view)]
    assert min(sizes) >= 13
    assert len(setting.writer.sent) <= 0.75 * len(sizes), "and not every turn pays for a pass"


def a_setting_is_honored_or_refused(face: Face) -> None:
    """A setting that a face does not know is refused by its name, when the face is made."""
    with pytest.raises((PolicyError, TypeError), match="kep"):
        face(Setting(extra={"kep": 3}))


def last_resort(face: Face) -> None:
    """A refusal for size is answered by a strictly smaller request."""
    refusing = Model(script=lambda number: ContextOverflow("prompt is too long") if number == 9 else "ok")
    setting = Setting(main=refusing, trigger=None)
    played(face, setting, 12)
    refused, again = setting.views[9:11]
    assert sum(map(len, texts(again))) < sum(map(len, texts(refused)))
    assert summaries(again) == 1


def never_paid_twice(face: Face) -> None:
    """The model fails behind a summary: the next attempt goes on with the summary that was paid for."""
    setting = Setting()
    tell = face(setting)
    setting.main.script = lambda number: ValueError("down") if setting.writer.sent else "ok"
    attempt = question(0)
    turn = 0
    while not setting.writer.sent:
        attempt = question(turn)
        with contextlib.suppress(ValueError):
            tell(attempt)
        turn += 1
    paid = len(setting.writer.sent)
    assert paid
    setting.main.script = lambda number: "ok"
    tell(attempt)
    assert len(setting.writer.sent) == paid
    assert summaries(setting.views[-1]) == 1


def a_window_of_the_clients(face: Face) -> None:
    """A client that drops its oldest messages, to save room, pays for no more summaries than one that keeps all, and
    what was found out in them is still told.
    """
    fact = "The key of ring 2 is held by vault-7311 at 10.4.2.77."
    paid = {}
    for newest in (None, 14):
        main = Model(script=lambda number: fact if number == 2 else "ok")
        setting = Setting(main=main, trigger=("tokens", 4_000), newest=newest)
        played(face, setting, 36)
        paid[newest] = len(setting.writer.sent)
        assert fact in "\n".join(texts(setting.views[-1])), newest
    assert paid[14] <= paid[None] + 1


def sync_equals_async(face: Face) -> None:
    """Both colors send the same views."""
    views = []
    for is_async in (False, True):
        setting = Setting(is_async=is_async)
        played(face, setting)
        views.append([unnamed(view) for view in setting.views])
    assert views[0] == views[1]


PROMISES: dict[str, Callable[[Face], None]] = {
    "conservation": conservation,
    "valid to send": valid_to_send,
    "stray results are shown": stray_results_are_shown,
    "failure changes nothing": failure_changes_nothing,
    "append-only": append_only,
    "progress": progress,
    "no mutation": no_mutation,
    "verbatim": verbatim,
    "one summary": one_summary,
    "old facts stay": old_facts_stay,
    "determinism": determinism,
    "switched off means off": off_means_off,
    "a number means that number": a_number_is_that_number,
    "a setting is honored or refused": a_setting_is_honored_or_refused,
    "last resort": last_resort,
    "never pay twice": never_paid_twice,
    "a client's own window": a_window_of_the_clients,
    "sync equals async": sync_equals_async,
}

MENDED_BEFORE = "the framework itself takes such results out of what it hands on"
KEEPS_ALL = "the conversation is kept here, and loses nothing"
EXCUSED: dict[tuple[str, str], str] = {
    ("a client's own window", "session"): KEEPS_ALL,
    ("a client's own window", "Google ADK"): KEEPS_ALL,
    ("a client's own window", "LangGraph on a session"): KEEPS_ALL,
    ("stray results are shown", "pydantic-ai"): MENDED_BEFORE,
    ("stray results are shown", "Google ADK"): MENDED_BEFORE,
    ("stray results are shown", "OpenAI Agents provider"): MENDED_BEFORE,
    ("last resort", "compact"): "it sends nothing: `call` does",
    ("never pay twice", "compact"): "its result is the caller's: pass `out.compaction` as `previous`",
    ("last resort", "LangChain drop-in"): "LangChain's class does not stand around the model call's errors",
    ("last resort", "LangGraph"): "the node sends by itself: use `Compactor.call` in it",
    ("last resort", "OpenAI Agents filter"): "a filter does not see what the model answers: "
    "`compaction(...).provider()` does",
    ("valid to send", "Haystack"): "the hook asks only when its threshold is reached: before that, what is sent is the "
    "agent's own list",
    ("a number means that number", "Haystack"): "the hook says how small the list is to be, and `keep` gives way to it",
    ("last resort", "Haystack"): "Haystack's hook runs before the model is asked, and sees no refusal",
    ("last resort", "LangGraph on a session"): "the node sends by itself: use `session.call` in it",
}


def cells() -> Iterator[Any]:
    """Every cell. A quick run tries each sixth: of each promise some faces, of each face some promises."""
    for row, promise in enumerate(PROMISES):
        for column, face in enumerate(FACES):
            yield pytest.param(promise, face, marks=() if (row + column) % 6 == 0 else pytest.mark.strict)


CELLS = list(cells())


@pytest.mark.filterwarnings(  # LiteLLM's logging outlives the event loop of each call
    "ignore:Exception ignored in. <coroutine object Logging:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize(("promise", "face"), CELLS)
def test_each_promise_holds_on_each_face(promise: str, face: str) -> None:
    if (promise, face) not in EXCUSED:
        PROMISES[promise](FACES[face])


# ---- the table itself can fail ----


def nothing_mended(items: Sequence[ViewItem], target: Any, *, sending: bool = False) -> list[ViewItem]:
    return list(items)


@pytest.mark.parametrize("face", [face for face in FACES if ("stray results are shown", face) not in EXCUSED])
def test_a_view_that_is_not_mended_fails_the_row_of_what_is_valid_to_send(
    face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextfold.record.view.ready", nothing_mended)
    with pytest.raises(AssertionError):
        valid_to_send(FACES[face])


def other_words(entry: BaseMessage) -> BaseMessage:
    return entry.model_copy(update={"content": f"{entry.content} "}) if isinstance(entry, HumanMessage) else entry


def other_arguments(entry: BaseMessage) -> BaseMessage:
    if not isinstance(entry, AIMessage) or not entry.tool_calls:
        return entry
    return entry.model_copy(update={"tool_calls": [{**call, "args": {"room": -1}} for call in entry.tool_calls]})


@pytest.mark.parametrize("face", ["compact", "call", "CompactionMiddleware"])
@pytest.mark.parametrize("changed", [other_words, other_arguments])
def test_a_view_whose_beginning_changes_without_a_summary_fails_the_row_of_what_is_append_only(
    changed: Callable[[BaseMessage], BaseMessage], face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message of the view is another one, from the seventh turn on."""
    append = KnownConversation.append

    def sabotaged(self: KnownConversation, wire: Sequence[Any]) -> None:
        append(self, wire)
        if len(self.history.wire) >= 13:
            entries = self.view.wire
            place = next((n for n, entry in enumerate(entries) if changed(entry) is not entry), None)
            if place is not None:
                entries[place] = changed(entries[place])

    monkeypatch.setattr(KnownConversation, "append", sabotaged)
    with pytest.raises(AssertionError):
        append_only(FACES[face])


def told_nothing(messages: Sequence[Any]) -> str:
    return "[user] something"


def from_no_one(message: Any) -> bool:
    return False


def marked_when_read(self: History, wire: Sequence[BaseMessage]) -> None:
    for message in wire:
        message.additional_kwargs["seen"] = True
    EXTEND(self, wire)


def with_the_time(*texts: Any, **more: Any) -> str:
    return f"{SUMMARY_TEXT(*texts, **more)}\n{time.perf_counter_ns()}"


def default_clauses(self: Policy, window: int, overhead: int = 0) -> Any:
    return CLAUSES(DEFAULT, window, overhead)


EXTEND, SUMMARY_TEXT, CLAUSES, DEFAULT = History.extend, summary_text, Policy.clauses, Policy()
SABOTAGE: dict[str, tuple[str, Any]] = {
    "conservation": ("contextfold.passes.material.render_group", told_nothing),
    "verbatim": ("contextfold.messages.Message.is_user_turn", property(from_no_one)),
    "no mutation": ("contextfold.conversation.history.History.extend", marked_when_read),
    "determinism": ("contextfold.record.compaction.summary_text", with_the_time),
    "switched off means off": ("contextfold.policy.Policy.clauses", default_clauses),
}
"""What each row must notice: a place in the engine, and what is put there."""


@pytest.mark.parametrize("face", ["call", "LangGraph", "CompactionMiddleware"])
@pytest.mark.parametrize("promise", SABOTAGE)
def test_an_engine_that_breaks_a_promise_fails_its_row(
    promise: str, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*SABOTAGE[promise])
    with pytest.raises(AssertionError):
        PROMISES[promise](FACES[face])


def as_a_tool(speaker: str, quoted: str) -> Any:
    return SAID("tool", quoted)


SAID = section._said


@pytest.mark.strict
def test_evidence_that_is_read_back_as_a_tools_fails_the_row_of_old_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeftMessages, "behind", lambda *_: None)  # as after a restart: it reads back what it quoted
    old_facts_stay(FACES["LangChain drop-in"])
    monkeypatch.setattr(section, "_said", as_a_tool)
    with pytest.raises(AssertionError, match="vault-7311"):
        old_facts_stay(FACES["LangChain drop-in"])


def test_the_table_in_the_docs_is_this_table() -> None:
    assert DOCS.read_text() == written(), "run: python tests/promises/test_promises.py"


def written() -> str:
    """The page: what each promise is, and the cells."""
    notes = {reason: number for number, reason in enumerate(dict.fromkeys(EXCUSED.values()), 1)}
    rows = [
        [promise, *(f"no ({notes[EXCUSED[promise, face]]})" if (promise, face) in EXCUSED else "yes" for face in FACES)]
        for promise in PROMISES
    ]
    lines = [
        "# Promises",
        "",
        "What contextfold promises, and where. Each cell is a test: the face is driven as its users drive it, with",
        "scripted chat models and nothing else in place of the real thing.",
        "",
        "| | " + " | ".join(FACES) + " |",
        "|---" * (len(FACES) + 1) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "The command line is `compact` over a file, one process a call: it keeps no record between them. The gateway",
        "is held to the same promises over real connections and SDKs, in `tests/gateway/`.",
        "",
        *(f"{number}. {reason[0].upper()}{reason[1:]}." for reason, number in notes.items()),
        "",
        "| promise | what it means |",
        "|---|---|",
        *(f"| {name} | {' '.join((check.__doc__ or '').split())} |" for name, check in PROMISES.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCS.write_text(written())
