"""The laws over random conversations: every format, whole and broken, one pass and many.

``laws`` holds the checks, ``driver`` grows a conversation through them, ``contextfold.testing`` makes them up.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from emulator.wires.anthropic_rules import anthropic_problem
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import wire
from contextfold import Compactor, Policy
from contextfold.errors import SummaryFailed
from contextfold.testing import (
    FailingSummarizer,
    LimitedSummarizer,
    ProviderError,
    ScriptedSummarizer,
    plots,
    render,
)
from contextfold.testing.plots import (
    AssistantSays,
    Blank,
    Instruction,
    Plot,
    PlotCall,
    PlotWords,
    ProviderCompaction,
    Result,
    ToolsAnswer,
    UserSays,
)
from driver import Session
from effort import FULL, crossed

FORMATS = ("openai-chat", "openai-responses", "anthropic", "langchain", "gemini", "bedrock-converse")
SEARCHED = os.environ.get("CONTEXTFOLD_EXAMPLES")
EXAMPLES = int(SEARCHED or ("5" if FULL else "3"))
"""Per test and format, the same in each run; with the variable as many as it says, and others each time."""

law = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not SEARCHED,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Hundreds of conversations would log thousands of warnings into the report of a failure."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@st.composite
def compactors(draw: st.DrawFn) -> dict[str, Any]:
    """Settings of a compactor: windows that the histories overflow, targets and tails of all kinds."""
    window = draw(st.sampled_from([4_000, 6_000, 9_000]))
    trigger = draw(st.sampled_from([0.6, 0.8, 1.0]))
    target = draw(st.sampled_from([0.3, 0.5]))
    keep = draw(st.sampled_from([None, ("messages", 1), ("messages", 6), ("fraction", 0.1), ("tokens", 500)]))
    return {
        "window": window,
        "trigger": ("fraction", trigger),
        "target": ("fraction", target),
        **({"keep": keep} if keep else {}),
    }


def session(format: str, chosen: dict[str, Any], recorder: Any = None, **more: Any) -> Session:
    window = chosen["window"]
    return Session(
        format,
        lambda: Compactor(**chosen, summarizer=recorder),
        target=int(chosen["target"][1] * window),
        trigger=int(chosen["trigger"][1] * window),
        recorder=recorder,
        **more,
    )


def summarizers() -> st.SearchStrategy[Callable[[], Any]]:
    return st.sampled_from(
        [
            lambda: None,
            lambda: LimitedSummarizer(2_000),
            lambda: LimitedSummarizer(8_000, error="openai"),
            lambda: LimitedSummarizer(100_000, error="anthropic"),
        ]
    )


def stories(format: str, *, broken: bool) -> st.SearchStrategy[Plot]:
    return plots(format, broken=broken, max_turns=5, max_units=7, huge_units=250)


def renumbered(plot: Plot, number: int) -> Plot:
    """The same events with call ids of their own, so that a plot can be told again."""

    def call(one: PlotCall) -> PlotCall:
        return replace(one, id=f"{one.id}_{number}")

    def event(one: Any) -> Any:
        if isinstance(one, AssistantSays):
            return replace(one, calls=tuple(call(c) for c in one.calls), row=one.row and f"{one.row}_{number}")
        if isinstance(one, ToolsAnswer):
            return ToolsAnswer(tuple(replace(r, call_id=f"{r.call_id}_{number}") for r in one.results))
        return one

    return tuple(event(one) for one in plot)


@crossed(format=FORMATS, broken=(False, True), quick=4)
class TestAnyHistory:
    @law
    @given(data=st.data())
    def test_one_call_keeps_all_laws(self, format: str, broken: bool, data: st.DataObject) -> None:
        """For one history, whatever is in it."""
        history = render(data.draw(stories(format, broken=broken)), format)
        one = session(format, data.draw(compactors()), data.draw(summarizers())())
        assert one.step(history) == []

    @settings(law, max_examples=max(2, EXAMPLES // 2))
    @given(data=st.data())
    def test_many_passes_keep_all_laws(self, format: str, broken: bool, data: st.DataObject) -> None:
        """A conversation is told again and again until it was compacted five times."""
        plot = data.draw(stories(format, broken=broken))
        chosen = data.draw(compactors())
        one = session(format, chosen, data.draw(summarizers())(), thorough=False)
        told: Plot = ()
        history: list[Any] = []
        for round in range(8):
            told += renumbered(plot, round)
            history += render(told, format)[len(history) :]
            for stop in stops(history, since=one.length):
                assert one.step(history[:stop]) == []
            if one.passes >= 5 or one.gave_up:
                break
        note(f"{one.passes} passes, {one.gave_up} times given up")

    @law
    @given(data=st.data())
    def test_an_edited_or_rewound_history_never_gets_the_view_of_another(
        self, format: str, broken: bool, data: st.DataObject
    ) -> None:
        """The record is set aside, and that is said, where what left the view says something else; else it still holds.
        The laws hold either way.
        """
        plot = data.draw(stories(format, broken=broken))
        one = session(format, data.draw(compactors()), data.draw(summarizers())())
        assert one.step(render(plot, format)) == []
        assume(one.record is not None)
        place = data.draw(st.integers(0, len(plot) - 1))
        other = data.draw(st.sampled_from([edited, rewound, without_one, with_one_more]))(plot, place)
        history = render(other, format)
        assume(history)
        one.view = None  # not a longer history: its view need not be longer either
        entries = wire.read(format, history)
        users = [index for index, entry in enumerate(entries) if entry.is_person]
        shown_otherwise = one.record.gone() | {edit.index for edit in one.record.edits}
        spoken = [index for index, entry in enumerate(entries) if entry.role == "assistant"]
        waiting = {index for index in spoken[-1:] if entries[index].call_ids}
        hides = bool(one.record.gone() & {len(history) - 1, *waiting} or shown_otherwise & set(users[-1:]))
        before, covers = render(plot, format), one.record.covers
        places = sorted(shown_otherwise) or range(covers)
        is_there = len(history) >= covers
        is_same = is_there and all(wire.canonical(history[n]) == wire.canonical(before[n]) for n in places)
        others = wire.read(format, before)
        is_other = not is_there or any(gist(entries[n]) != gist(others[n]) for n in places)
        assert one.step(history) == []
        said = one.last is not None and any(event.name == "compaction_set_aside" for event in one.last.events)
        assert one.gave_up or said or not is_other
        # A rewound history may end with a message that the record hides: then it is set aside as well, and only then.
        assert one.gave_up or not said or not is_same or hides


SAYS = PlotWords("english", 1)
SHORT = (
    Instruction(SAYS),
    UserSays(SAYS),
    UserSays(PlotWords(units=0)),
    AssistantSays(SAYS),
    AssistantSays(SAYS, thinking=SAYS, server_tool=True),
    AssistantSays(calls=(PlotCall("call"),)),
    ToolsAnswer((Result("call", SAYS),)),
    ToolsAnswer((Result("call_of_nobody", SAYS, blocks=True),)),
    Blank("user"),
    Blank("assistant"),
    ProviderCompaction(),
)
"""An event of each kind."""


@pytest.mark.parametrize("format", FORMATS)
def test_every_short_list_is_the_same_told_turn_by_turn_and_at_once(format: str) -> None:
    """All lists of two events (three in a strict run) and the next words: the laws hold at each of their messages."""
    small = {"window": 4_000, "trigger": ("fraction", 0.9), "target": ("fraction", 0.3)}
    at_once: dict[str, list[Any]] = {}  # lists that begin alike have beginnings in common
    for plot in itertools.product(SHORT, repeat=3 if FULL else 2):
        history = render((*plot, UserSays(SAYS)), format)
        one = session(format, small, thorough=False, named=True)
        for stop in range(1, len(history) + 1):
            beginning = history[:stop]
            assert one.step(beginning) == [], beginning
            if (said := repr(beginning)) not in at_once:
                at_once[said] = list(Compactor(**small).compact(beginning, format=format).messages)
            assert one.view == at_once[said], beginning


def _turn(kind: str, calls: int, number: int) -> list[dict[str, Any]]:
    """Messages of one turn of Anthropic's API: ``talk``, a ``tool`` of the caller's, ``code`` of the provider's that
    makes so many calls of it, or the same ``paused``, with its result in an answer of its own.
    """
    said = f"value_{number * 37} stands in m{number}.py. " * 15
    asked = {"role": "user", "content": f"Read m{number}.py. {said}"}
    if kind == "talk":
        return [asked, {"role": "assistant", "content": said}]
    run, caller = f"srvtoolu_{number}", {}
    messages, blocks = [asked], list[dict[str, Any]]()
    if kind != "tool":
        blocks.append(
            {"type": "server_tool_use", "id": run, "name": "code_execution", "input": {"code": f"r({number})"}}
        )
        caller = {"caller": {"type": "code_execution", "tool_id": run}}
    for call in range(calls):
        use = {"type": "tool_use", "id": f"toolu_{number}_{call}", "name": "r", "input": {}, **caller}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": said}
        messages += [{"role": "assistant", "content": [*blocks, use]}, {"role": "user", "content": [result]}]
        blocks = []
    if kind != "tool":
        output = {"type": "code_execution_result", "stdout": said, "stderr": "", "return_code": 0, "content": []}
        ended = {"type": "code_execution_tool_result", "tool_use_id": run, "content": output}
        if kind == "paused" and not calls:
            messages.append({"role": "assistant", "content": blocks})
            blocks = []
        blocks.append(ended)
    return [*messages, {"role": "assistant", "content": [*blocks, {"type": "text", "text": "It is read."}]}]


@law
@given(
    st.lists(
        st.tuples(st.sampled_from(["talk", "tool", "code", "paused"]), st.integers(0, 3)), min_size=8, max_size=30
    ),
    compactors(),
)
def test_the_provider_takes_every_view_of_a_conversation_in_which_it_runs_code_itself(
    turns: list[tuple[str, int]], chosen: dict[str, Any]
) -> None:
    """Turn by turn, with one record going on; and no run that is over stands in a view in part."""
    history = [message for n, (kind, calls) in enumerate(turns) for message in _turn(kind, calls, n)]
    compactor, record = Compactor(**chosen), None
    for stop in range(1, len(history) + 1):
        out = compactor.compact(history[:stop], record)
        record = out.compaction
        if history[stop - 1]["role"] == "user":
            for messages in (history[:stop], out.messages):
                problem = anthropic_problem({"model": "claude-opus-4-8", "max_tokens": 9, "messages": messages})
                assert problem is None, problem
        told = str(out.messages)
        for n, (kind, _) in enumerate(turns):
            begins, ends = (f"'{name}': 'srvtoolu_{n}'" for name in ("id", "tool_use_id"))
            is_over = kind in ("code", "paused") and ends in str(history[:stop])
            assert not is_over or (begins in told) == (ends in told)


@pytest.mark.parametrize("blank", ["", " ", "\n"])
@pytest.mark.parametrize("format", ["anthropic", "gemini", "bedrock-converse"])
def test_a_blank_text_behind_a_call_gives_the_same_view_turn_by_turn_and_at_once(format: str, blank: str) -> None:
    """It is left out as an empty message is, and what the user says next meets the placeholder of the result."""
    plot = (
        UserSays(SAYS),
        AssistantSays(calls=(PlotCall("call"),)),
        AssistantSays(SAYS),
        UserSays(SAYS),
        UserSays(SAYS),
    )
    history = render(plot, format)
    key = "parts" if format == "gemini" else "content"
    history[2][key] = [{"type": "text", "text": blank} if format == "anthropic" else {"text": blank}]
    one = Compactor(window=4_000)
    for stop in range(1, len(history) + 1):
        fresh = Compactor(window=4_000).compact(history[:stop], format=format).messages
        assert one.compact(history[:stop], format=format).messages == fresh


def stops(history: list[Any], since: int) -> list[int]:
    """Four places up to the end where a caller might compact."""
    new = len(history) - since
    return sorted({since + new * quarter // 4 for quarter in range(1, 5)} - {0})


def edited(plot: Plot, place: int) -> Plot:
    """Another text where there was one."""
    return (*plot[:place], UserSays(PlotWords("log", 7)), *plot[place + 1 :])


def rewound(plot: Plot, place: int) -> Plot:
    return plot[: place + 1]


def without_one(plot: Plot, place: int) -> Plot:
    return plot[:place] + plot[place + 1 :]


def with_one_more(plot: Plot, place: int) -> Plot:
    return (*plot[:place], UserSays(PlotWords("english", 2)), *plot[place:])


def gist(entry: wire.Entry) -> object:
    """What a message says, in whatever form."""
    texts = [text.strip() for text in entry.texts if text.strip()]
    calls = [name for _, name in entry.calls]
    results = [[text.strip() for text in told] for _, told in entry.results]
    return entry.role, texts, calls, entry.arguments, results, entry.others, entry.shown


# ---- failure changes nothing --------------------------------------------------------------------------------

AT_ONCE = {"retries_on_failure": 0}
"""Nothing is asked again after a pause: a hundred examples would wait for minutes."""

TROUBLE = "TROUBLE-7f3a: the summarizer is down"
FAILURES: dict[str, Callable[[], Any]] = {
    "unavailable": lambda: FailingSummarizer(ProviderError(TROUBLE, status_code=503)),
    "rate limit": lambda: FailingSummarizer(ProviderError(TROUBLE, status_code=429, code="rate_limit_exceeded")),
    "no key": lambda: FailingSummarizer(ProviderError(TROUBLE, status_code=401)),
    "timeout": lambda: FailingSummarizer(TimeoutError(TROUBLE)),
    "cut connection": lambda: FailingSummarizer(ConnectionError(TROUBLE)),
    "after one": lambda: FailingSummarizer(RuntimeError(TROUBLE), after=1),
    "after three": lambda: FailingSummarizer(RuntimeError(TROUBLE), after=3),
    "blank": lambda: ScriptedSummarizer(lambda prompt: "  \n"),
    "longer than its input": lambda: ScriptedSummarizer(lambda prompt: prompt + prompt + TROUBLE),
    "always too long": lambda: FailingSummarizer(ProviderError(f"prompt is too long: 9 tokens > 1 maximum {TROUBLE}")),
}


@crossed(failure=FAILURES, quick=4)
@law
@given(data=st.data())
def test_a_failing_summarizer_changes_nothing(failure: str, data: st.DataObject) -> None:
    """The old view, the fallback (said), or a typed error; no error text in any view."""
    format = data.draw(st.sampled_from(FORMATS))
    plot = data.draw(stories(format, broken=data.draw(st.booleans())))
    chosen = data.draw(compactors())
    history = render(plot + renumbered(plot, 1), format)
    half = render(plot, format)
    one = session(format, chosen, LimitedSummarizer(100_000), thorough=False)
    assert one.step(half) == []
    record = one.record
    failing = FAILURES[failure]()
    policy = Policy(**{name: value for name, value in chosen.items() if name != "window"}, summary=AT_ONCE)
    one.compactor = Compactor(window=chosen["window"], policy=policy, summarizer=failing)
    one.recorder = None
    before = wire.as_json(history)
    try:
        assert one.step(history) == []
    except SummaryFailed as error:
        note(f"refused: {error}")
        return
    finally:
        assert wire.as_json(history) == before
    if one.gave_up:
        return
    out = one.last
    names = [event.name for event in out.events]
    assert TROUBLE not in wire.as_json(out.messages)
    if "summary_failed" in names and not out.changed:
        assert (out.compaction and out.compaction.to_json()) == (record and record.to_json())
        assert out.tokens_after <= chosen["window"]
    if failing.prompts and not failing.accepted and out.changed:
        assert "fallback_used" in names


@pytest.mark.strict
@pytest.mark.parametrize(
    "format", [*FORMATS[:2], *(pytest.param(name, marks=pytest.mark.strict) for name in FORMATS[2:])]
)
def test_five_compactions_of_one_long_conversation(format: str) -> None:
    """A conversation of 90 rounds, compacted at least five times by a summarizer of 2,000 tokens."""
    rounds: Plot = ()
    for number in range(90):
        calls = tuple(PlotCall(f"c{number}_{n}", "read_file", PlotWords("code", 3)) for n in range(1 + number % 3))
        results = tuple(Result(call.id, PlotWords("log", 10 + number % 7), "read_file") for call in calls)
        says = (UserSays(PlotWords("english", 2)),) if number % 5 == 0 else ()
        rounds += (*says, AssistantSays(PlotWords("english", 1), calls=calls), ToolsAnswer(results))
        if number % 5 == 4:
            rounds += (AssistantSays(PlotWords("english", 2)),)
    history = render(rounds, format)
    chosen = {"window": 8_000, "trigger": ("fraction", 0.8), "target": ("fraction", 0.5)}
    one = session(format, chosen, LimitedSummarizer(2_000), thorough=False)
    for stop in range(1, len(history) + 1, 3):
        assert one.step(history[:stop]) == []
    assert one.passes >= 5
    assert one.gave_up == 0


@crossed(format=FORMATS, quick=2)
def test_a_message_larger_than_the_summarizers_window_is_read_to_its_end(format: str) -> None:
    """One output of many thousand tokens reaches a summarizer of 2,000 tokens in segments."""
    plot: Plot = (
        UserSays(PlotWords("english", 1)),
        AssistantSays(calls=(PlotCall("big"),)),
        ToolsAnswer((Result("big", PlotWords("log", 900)),)),
        *(
            event
            for n in range(6)
            for event in (AssistantSays(PlotWords("english", 9)), UserSays(PlotWords("english", 9)))
        ),
    )
    chosen = {"window": 12_000, "trigger": ("fraction", 0.8), "target": ("fraction", 0.3)}
    one = session(format, chosen, LimitedSummarizer(2_000, error="openai"))
    assert one.step(render(plot, format)) == []
    assert one.passes == 1
