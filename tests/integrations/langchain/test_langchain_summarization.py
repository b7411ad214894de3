"""``SummarizationMiddleware``: everything that LangChain's class promises, and none of its losses."""

from __future__ import annotations

import asyncio
import copy
import runpy
import warnings
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_scripted import SUMMARY, ScriptedModel, problems_of, talk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from contextfold import ContextOverflow, PolicyError, count_tokens
from contextfold.integrations.langchain import SummarizationMiddleware, layout
from contextfold.integrations.langchain.folding import Folding
from contextfold.integrations.langchain.models import profile_window
from contextfold.observe import Event
from effort import examples

ROOT = Path(__file__).resolve().parents[3]
PREFIX = "Here is a summary of the conversation to date:\n\n"
BOTH = pytest.mark.parametrize("middleware", [LangChains, SummarizationMiddleware], ids=["langchain", "contextfold"])


def writer(answer: Any = SUMMARY, **options: Any) -> ScriptedModel:
    return ScriptedModel(script=lambda messages, number: answer, **options)


def before(middleware: Any, messages: list[BaseMessage], **state: Any) -> list[BaseMessage] | None:
    update = middleware.before_model({"messages": messages, **state}, None)
    return None if update is None else list(update["messages"])


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages]


def told_more(middleware: Any, messages: list[BaseMessage], number: int, *, words: int) -> list[BaseMessage]:
    """The thread with three more turns, as the middleware leaves it."""
    messages = [*messages, *talk(3, words=words, start=3 * number)]
    return [message for message in before(middleware, messages) or messages if not isinstance(message, RemoveMessage)]


def prompts_of(model: ScriptedModel) -> str:
    return "\n".join(str(message.text) for sent in model.sent for message in sent)


# ---- what the original promises ----


@BOTH
def test_the_constructor_has_the_same_defaults_and_reads_back(middleware: type[Any]) -> None:
    """Attributes are those of LangChain's class."""
    model = writer()
    made = middleware(model)
    assert (made.model, made.trigger, made.keep) == (model, None, ("messages", 20))
    assert made.trim_tokens_to_summarize == 4000
    assert made.summary_prompt == LangChains(model).summary_prompt
    assert made.name == "SummarizationMiddleware"
    assert isinstance(made, LangChains)
    assert callable(made.token_counter)


@BOTH
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"trigger": ("fraction", 0.5)}, "Model profile information is required to use fractional token limits"),
        ({"keep": ("fraction", 0.5)}, "and is unavailable for the specified model"),
        ({"trigger": ("tokens", 0)}, "trigger thresholds must be greater than 0, got 0."),
        ({"keep": ("messages", 0)}, "keep thresholds must be greater than 0, got 0."),
        ({"trigger": ("fraction", 1.5)}, "Fractional trigger values must be between 0 and 1, got 1.5."),
        ({"keep": ("pages", 3)}, "Unsupported context size type pages for keep."),
    ],
)
def test_wrong_sizes_are_refused_in_the_same_words(
    middleware: type[Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        middleware(writer(), **options)


@pytest.mark.parametrize(
    "option",
    [
        {"summary": {"max_tokens": 300}},
        {"summary_prompt": None},
        {"instructions": 3},
        {"evidence": "no"},
        {"token_counter": 3},
        {"token_counter": asyncio.sleep},
        {"on_event": asyncio.sleep},
        {"trim_tokens_to_summarize": "4k"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_what_would_fail_in_the_middle_of_a_run_is_refused_when_it_is_made(option: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=next(iter(option))):
        SummarizationMiddleware(writer(), trigger=("messages", 5), **option)


@BOTH
def test_the_old_names_work_and_warn(middleware: type[Any]) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated") as told:
        made = middleware(writer(), max_tokens_before_summary=500, messages_to_keep=7)
    assert (made.trigger, made.keep) == (("tokens", 500), ("messages", 7))
    assert [str(warning.message).split(" is deprecated")[0] for warning in told] == [
        "max_tokens_before_summary",
        "messages_to_keep",
    ]
    assert {Path(warning.filename).name for warning in told} == {Path(__file__).name}, "it points at the caller"


@BOTH
def test_explicit_arguments_win_over_old_names(middleware: type[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = middleware(
            writer(), trigger=("tokens", 9), max_tokens_before_summary=500, keep=("messages", 3), messages_to_keep=7
        )
    assert (made.trigger, made.keep) == (("tokens", 9), ("messages", 3))


@BOTH
def test_the_update_has_the_same_layout(middleware: type[Any]) -> None:
    """RemoveMessage for all, the marked summary as a human message, and the newest messages as they are."""
    messages = talk(30)
    made = before(middleware(writer(), trigger=("messages", 50), keep=("messages", 20)), messages)
    assert made is not None
    assert isinstance(made[0], RemoveMessage)
    assert made[0].id == REMOVE_ALL_MESSAGES
    assert isinstance(made[1], HumanMessage)
    assert made[1].additional_kwargs == {"lc_source": "summarization"}
    assert str(made[1].content).startswith(PREFIX + SUMMARY)
    assert len(made) == 22
    assert all(kept is own for kept, own in zip(made[2:], messages[-20:], strict=True))


@BOTH
def test_sync_and_async_give_the_same(middleware: type[Any]) -> None:
    messages = talk(30)

    async def run() -> Any:
        return await middleware(writer(), trigger=("messages", 50)).abefore_model({"messages": messages}, None)

    expected = before(middleware(writer(), trigger=("messages", 50)), messages)
    assert expected is not None
    assert [m.content for m in anyio.run(run)["messages"]] == [m.content for m in expected]


@BOTH
@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        (None, False),
        (("messages", 60), True),
        (("messages", 61), False),
        (("tokens", 2_000), True),
        (("tokens", 100_000), False),
        (("fraction", 0.1), True),
        (("fraction", 1.0), False),
        ([("messages", 99), ("tokens", 2_000)], True),
    ],
)
def test_triggers_fire_alike(middleware: type[Any], trigger: Any, fires: bool) -> None:
    model = writer(profile={"max_input_tokens": 50_000})
    made = before(middleware(model, trigger=trigger, keep=("messages", 4)), talk(30))
    assert (made is not None) is fires


@pytest.mark.parametrize(("trigger", "fires"), [({"messages": 60, "tokens": 2_000}, True), ({"messages": 61}, False)])
def test_a_mapping_means_that_all_must_hold(trigger: Any, fires: bool) -> None:
    assert (before(SummarizationMiddleware(writer(), trigger=trigger), talk(30)) is not None) is fires
    both = [{"messages": 61, "tokens": 2_000}, trigger]
    assert (before(SummarizationMiddleware(writer(), trigger=both), talk(30)) is not None) is fires


def test_what_keep_names_is_above_a_mapping_only_where_all_of_it_is() -> None:
    told: list[Event] = []
    trigger: Any = {"tokens": 4_000, "messages": 6}
    middleware = SummarizationMiddleware(writer(), trigger=trigger, keep=("messages", 8), on_event=told.append)
    assert before(middleware, talk(40, words=100)) is not None
    assert "trigger_below_keep" not in [event.name for event in told]


@BOTH
def test_a_model_by_name_is_made_by_langchain(middleware: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain.agents.middleware.summarization.init_chat_model", lambda name: writer(name=name))
    assert middleware("provider:model").model.name == "provider:model"


@BOTH
def test_a_total_that_the_provider_reported_triggers_too(middleware: type[Any]) -> None:
    class Told(ScriptedModel):
        def _get_ls_params(self, stop: Any = None, **options: Any) -> Any:
            return {"ls_provider": "acme"}

    def messages(provider: str) -> list[BaseMessage]:
        told = AIMessage(
            "So it is.",
            id="told",
            usage_metadata={"input_tokens": 9_000, "output_tokens": 10, "total_tokens": 9_010},
            response_metadata={"model_provider": provider},
        )
        return [*talk(10, words=10), told]

    model = Told(script=lambda messages, number: SUMMARY)
    assert before(middleware(model, trigger=("tokens", 9_000), keep=("messages", 2)), messages("acme")) is not None
    assert before(middleware(model, trigger=("tokens", 9_000), keep=("messages", 2)), messages("other")) is None


def test_reported_usage_of_messages_that_are_gone_does_not_trigger_again() -> None:
    """The assistant message that stays reported the size of the prompt before the summary."""

    class Told(ScriptedModel):
        def _get_ls_params(self, stop: Any = None, **options: Any) -> Any:
            return {"ls_provider": "acme"}

    told = AIMessage(
        "So it is.",
        id="told",
        usage_metadata={"input_tokens": 9_000, "output_tokens": 10, "total_tokens": 9_010},
        response_metadata={"model_provider": "acme"},
    )
    model = Told(script=lambda messages, number: SUMMARY)
    middleware = SummarizationMiddleware(model, trigger=("tokens", 9_000), keep=("messages", 4))
    made = before(middleware, [*talk(10, words=10), told])
    assert made is not None
    assert made[-1] is told
    assert before(middleware, made[1:]) is None
    later = told.model_copy(update={"id": "later"})
    assert before(middleware, [*made[1:], *talk(3), later]) is not None


@BOTH
def test_reported_usage_counts_for_messages_without_ids(middleware: type[Any]) -> None:
    class Told(ScriptedModel):
        def _get_ls_params(self, stop: Any = None, **options: Any) -> Any:
            return {"ls_provider": "acme"}

    usage: Any = {"input_tokens": 7_500, "output_tokens": 2_501, "total_tokens": 10_001}
    told = AIMessage("hi", response_metadata={"model_provider": "acme"}, usage_metadata=usage)
    made = middleware(Told(), trigger=("tokens", 10_000), keep=("messages", 4))
    assert told.id is None
    assert made._should_summarize([HumanMessage("hello"), told], 0)


@BOTH
def test_a_result_without_a_call_never_leads_what_stays(middleware: type[Any]) -> None:
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    orphan = ToolMessage("nobody asked", tool_call_id="c2")
    messages = [HumanMessage("one"), call, ToolMessage("found", tool_call_id="c1"), orphan, HumanMessage("two")]
    cut = middleware(writer())._find_safe_cutoff_point
    assert [cut(messages, n) for n in (0, 1, 2, 3, 4, 5, 9)] == [0, 1, 1, 4, 4, 5, 9]


@BOTH
@pytest.mark.parametrize("answer", ["Summary", "Summary.", "ok"])
def test_the_short_answer_of_a_test_double_is_a_summary(middleware: type[Any], answer: str) -> None:
    replaced = before(middleware(writer(answer), trigger=("messages", 4), keep=("messages", 2)), talk(4))
    assert replaced is not None
    assert answer in str(replaced[1].content)


@pytest.mark.parametrize("keep", [("messages", 4), ("tokens", 300)])
@pytest.mark.parametrize("also", [[], [SystemMessage("Be brief.")]], ids=["alone", "instructed"])
def test_a_thread_that_begins_with_the_summary_of_another_one_and_nothing_else_goes_on(
    also: list[BaseMessage], keep: Any
) -> None:
    """It is larger than the window, and no message stands behind it."""
    told = HumanMessage(PREFIX + "The port is 8080. " * 600, additional_kwargs={"lc_source": "summarization"})
    model = writer(profile={"max_input_tokens": 1_500})
    made = before(SummarizationMiddleware(model, trigger=("tokens", 1_000), keep=keep), [*also, told])
    assert made is not None
    assert [layout.is_summary(message) for message in made[1:]] == [*(False for _ in also), True]
    assert count_tokens(made[1:]) < count_tokens([*also, told])


@BOTH
def test_a_test_double_that_answers_with_its_prompt_fails_no_suite(middleware: type[Any]) -> None:
    model = ScriptedModel(script=lambda messages, number: "-".join(str(message.content) for message in messages))
    little = [HumanMessage("1"), AIMessage("2"), HumanMessage("3"), AIMessage("4"), HumanMessage("5")]
    assert before(middleware(model, trigger=("messages", 4), keep=("messages", 2)), little) is not None


@BOTH
def test_asked_to_summarize_nothing_it_says_so_and_asks_no_model(middleware: type[Any]) -> None:
    model = writer()
    assert middleware(model)._create_summary([]) == "No previous conversation history."
    assert not model.sent


def test_after_an_overflow_at_most_twice_the_requests_of_langchains_class_are_made() -> None:
    """Its second and last request leaves the middle out; ours reads both halves, and makes one summary of the two."""

    def refusing(messages: list[BaseMessage], number: int) -> Any:
        return ContextOverflow("prompt is too long") if len(str(messages[-1].content)) > 25_000 else SUMMARY

    model = ScriptedModel(script=refusing)
    history: list[Any] = [HumanMessage(f"turn-{n} " * 500) for n in range(10)]
    assert SummarizationMiddleware(model, trim_tokens_to_summarize=None)._create_summary(history) == SUMMARY
    assert len(model.sent) == 4
    assert all(f"turn-{n} " in prompts_of(model) for n in range(10))


def test_messages_without_ids_get_one() -> None:
    messages = [message.model_copy(update={"id": None}) for message in talk(30)]
    made = before(SummarizationMiddleware(writer(), trigger=("messages", 50)), messages)
    assert made is not None
    assert all(message.id for message in made)


# ---- what is different: nothing is lost ----


@pytest.fixture(scope="module")
def side_by_side() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "side_by_side_langchain.py"))


def test_a_tool_loop_behind_one_request_is_summarized(side_by_side: dict[str, Any]) -> None:
    """LangChain's asks no model and writes a fixed text; ours reads every message."""
    theirs, ours = side_by_side["lost_tool_loop"]()
    assert (theirs.summary, theirs.summaries) == ("Previous conversation was too long to summarize.", 0)
    assert ours.evicted == ours.shown >= 190
    assert ours.summary.startswith(side_by_side["SUMMARY"])


def test_every_evicted_turn_reaches_the_summarizer(side_by_side: dict[str, Any]) -> None:
    """LangChain's shows a part of what it removes; ours all of it, in several requests."""
    theirs, ours = side_by_side["lost_turns"]()
    assert theirs.shown < theirs.evicted / 2
    assert ours.shown == ours.evicted == 190
    assert ours.summaries > 1


def test_a_blank_summary_changes_nothing(side_by_side: dict[str, Any]) -> None:
    """LangChain's puts it in place of the history."""
    theirs, ours = side_by_side["blank_summary"]()
    assert (theirs.evicted, theirs.summary) == (50, "")
    assert ours.evicted == 0


def test_no_result_is_parted_from_its_call(side_by_side: dict[str, Any]) -> None:
    """With a human message between parallel results and the cut behind it."""
    theirs, ours = side_by_side["orphan_result"]()
    assert any("orphan" in problem for problem in theirs.problems)
    assert not ours.problems
    assert ours.evicted == ours.shown


def test_scripts_and_media_are_counted_for_what_they_cost(side_by_side: dict[str, Any]) -> None:
    """10,000 Chinese characters are some 6,000 tokens; a PDF is not its base64."""
    found = side_by_side["counts"]()
    theirs, ours = found["10,000 Chinese characters"]
    assert theirs < 2_600
    assert 5_000 < ours < 8_500
    theirs, ours = found["a PDF of 300 kB"]
    assert theirs > 100_000
    assert ours < 20_000


def test_the_prefix_is_rewritten_only_by_passes(side_by_side: dict[str, Any]) -> None:
    """LangChain's clearing of tool results slides, and rewrites the prefix nearly every turn."""
    clearing = side_by_side["ContextEditingMiddleware"](
        edits=[side_by_side["ClearToolUsesEdit"](trigger=4_000, keep=3)]
    )
    compaction = side_by_side["CompactionMiddleware"](window=10_000, summarizer=side_by_side["Scripted"]())
    assert side_by_side["loop"](clearing)[0] > 20
    rewritten, in_thread, _ = side_by_side["loop"](compaction)
    assert 1 <= rewritten <= 6
    assert in_thread == 62


@pytest.mark.strict
def test_the_side_by_side_script_prints_its_report(
    side_by_side: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.disable", lambda level: None)
    side_by_side["main"]()
    assert capsys.readouterr().out.count("contextfold  ") >= 4


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"trigger": ("tokens", np.int64(4_000))}, {"trigger": ("tokens", 4_000)}),
        ({"trigger": ("tokens", np.float32(4_000.5))}, {"trigger": ("tokens", 4_000.5)}),
        ({"trigger": ("tokens", Fraction(8_001, 2))}, {"trigger": ("tokens", 4_000.5)}),
        ({"trigger": ("fraction", np.float32(0.5))}, {"trigger": ("fraction", 0.5)}),
        ({"keep": ("messages", np.int64(4))}, {"keep": ("messages", 4)}),
        ({"trim_tokens_to_summarize": np.int64(900)}, {"trim_tokens_to_summarize": 900}),
    ],
)
def test_numbers_of_other_libraries_are_taken_as_langchain_takes_them(
    given: dict[str, Any], plain: dict[str, Any]
) -> None:
    """And summaries come as they come for the same numbers of Python's own."""

    def threads(settings: dict[str, Any]) -> list[list[str]]:
        chosen = {"trigger": ("tokens", 4_000), "keep": ("messages", 6), **settings}
        middleware = SummarizationMiddleware(writer(profile={"max_input_tokens": 8_000}), **chosen)
        messages: list[BaseMessage] = []
        seen = []
        for number in range(8):
            messages = told_more(middleware, messages, number, words=160)
            seen.append([str(message.content) for message in messages])
        return seen

    LangChains(writer(profile={"max_input_tokens": 8_000}), **given)
    taken = threads(given)
    assert taken == threads(plain)
    assert "SUMMARY" in str(taken[-1])


@pytest.mark.parametrize("error", [TimeoutError("slow"), ValueError("no key"), ContextOverflow(limit=100)])
def test_a_summary_that_fails_changes_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread stays as it is, and an event says why."""
    events: list[str] = []
    middleware = SummarizationMiddleware(
        writer(error), trigger=("messages", 50), on_event=lambda event: events.append(event.name)
    )
    no_waiting(monkeypatch)
    messages = talk(30)
    untouched = copy.deepcopy(messages)
    assert before(middleware, messages) is None
    assert messages == untouched
    assert "summary_failed" in events


def test_a_summary_that_fails_never_ends_a_thread_that_no_longer_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the thread can be sent it stays as it is. Beyond the model's window the built-in summary stands in."""
    events: list[str] = []
    model = writer(ValueError("down"), profile={"max_input_tokens": 6_000})
    middleware = SummarizationMiddleware(
        model, trigger=("tokens", 3_000), keep=("messages", 6), on_event=lambda event: events.append(event.name)
    )
    no_waiting(monkeypatch)
    messages: list[BaseMessage] = []
    for number in range(12):
        messages = told_more(middleware, messages, number, words=160)
        assert count_tokens(messages) < 6_000
        if number == 3:
            assert "fallback_used" not in events
    assert "summary_failed" in events
    assert "fallback_used" in events


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_larger_than_the_window_is_sent_shortened_and_costs_no_known_fact(is_async: bool) -> None:
    """Nothing else can leave for it. The thread keeps it whole, and the summary quotes what it quoted before."""
    profile = {"max_input_tokens": 6_000}
    model = ScriptedModel(script=lambda messages, number: "ok", profile=profile)
    middleware = SummarizationMiddleware(writer(profile=profile), trigger=("tokens", 4_000), keep=("messages", 6))
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}

    def sent(*new: BaseMessage) -> list[BaseMessage]:
        given = {"messages": list(new)}
        anyio.run(agent.ainvoke, given, thread) if is_async else agent.invoke(given, thread)
        return model.sent[-1]

    for number in range(12):
        sent(*talk(2, words=160, start=2 * number), HumanMessage("And?", id=f"n{number}"))
    assert "src/item_3.py" in "\n".join(texts(model.sent[-1]))
    rows = "\n".join(f"row {row} of the table says {row * 7919 % 10_007}" for row in range(2_000))
    call = AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "t.csv"}, "id": "c"}], id="a")
    view = sent(HumanMessage("Read it.", id="u"), call, ToolMessage(rows, tool_call_id="c", id="r"))
    assert count_tokens(view) < 6_000
    assert problems_of(view) == []
    assert "src/item_3.py" in "\n".join(texts(view))
    result = next(message for message in view if isinstance(message, ToolMessage))
    assert str(result.text).startswith("row 0 of the table")
    kept = agent.get_state(thread).values["messages"]
    assert [str(message.text) for message in kept if message.id == "r"] == [rows]


def test_a_summarizer_that_says_again_what_it_reads_goes_on_for_ever() -> None:
    """It repeats the first line of the earlier summary each time; of two dozen of those no summary was taken."""

    def parrot(messages: list[BaseMessage]) -> str:
        return f"{str(messages[0].text)[:600]}\n{str(messages[-1].text)[:40]}"

    middleware = SummarizationMiddleware(writer(), trigger=("messages", 14), keep=("messages", 6), summarizer=parrot)
    messages: list[BaseMessage] = []
    for number in range(60):
        messages = told_more(middleware, messages, number, words=40)
        assert len(messages) < 14
    assert str(messages[0].text).count(PREFIX.strip()) == 1


def test_what_a_summary_quotes_is_not_read_and_paid_for_again() -> None:
    """Lines of evidence are quoted on by code; a summarizer reads the prose of the earlier summary, and what is new."""
    read: list[list[BaseMessage]] = []

    def summarize(messages: list[BaseMessage]) -> str:
        read.append(messages)
        return SUMMARY

    middleware = SummarizationMiddleware(writer(), trigger=("messages", 14), keep=("messages", 6), summarizer=summarize)
    messages: list[BaseMessage] = []
    for number in range(8):
        messages = told_more(middleware, messages, number, words=40)
    assert "<evidence>" in str(messages[0].text)
    assert len(read) > 1
    assert [str(given[0].text) for given in read[1:]] == [PREFIX + SUMMARY] * (len(read) - 1)


def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are not tried again, which would take seconds."""
    given = Folding._options
    update = {"retries_on_failure": 0}
    monkeypatch.setattr(Folding, "_options", lambda folding: given(folding).model_copy(update=update))


def test_an_interrupt_passes_through() -> None:
    """What steers a graph is not a failure of the summary."""
    middleware = SummarizationMiddleware(writer(GraphInterrupt()), trigger=("messages", 50))
    with pytest.raises(GraphInterrupt):
        before(middleware, talk(30))


def test_the_summarizers_own_overflow_is_bisected() -> None:
    """A model that takes 2,000 tokens reads everything all the same, though no one said so."""

    def small(messages: list[BaseMessage], number: int) -> Any:
        tokens = sum(len(str(message.text)) for message in messages) // 4
        return ContextOverflow(limit=2_000, used=tokens) if tokens > 2_000 else SUMMARY

    model = ScriptedModel(script=small)
    middleware = SummarizationMiddleware(model, trigger=("messages", 50), trim_tokens_to_summarize=None)
    messages = talk(30, words=160)
    made = before(middleware, messages)
    assert made is not None
    said = prompts_of(model)
    assert all(f"what about item-{turn}?" in said for turn in range(20))


def test_chunks_have_the_size_that_was_trimmed_to_before() -> None:
    """``trim_tokens_to_summarize`` is a chunk's size; nothing is discarded."""
    model = writer()
    before(SummarizationMiddleware(model, trigger=("messages", 50), trim_tokens_to_summarize=1_000), talk(30))
    few = len(model.sent)
    assert few > 4
    assert all(f"what about item-{turn}?" in prompts_of(model) for turn in range(20))
    whole = writer()
    before(SummarizationMiddleware(whole, trigger=("messages", 50), trim_tokens_to_summarize=None), talk(30))
    assert len(whole.sent) == 1


def test_an_earlier_summary_is_updated_and_not_nested() -> None:
    """After five rounds there is one summary, the prose was handed to be updated, evidence is merged."""
    messages = talk(30)
    for number in range(5):
        model = writer(f"STATE-{number} of things.")
        made = before(SummarizationMiddleware(model, trigger=("messages", 50)), messages)
        assert made is not None
        if number:
            assert f"STATE-{number - 1}" in prompts_of(model)
            assert "Update the previous summary" in prompts_of(model)
            assert "<evidence>" not in prompts_of(model)
        texts = [str(message.content) for message in made[1:]]
        assert sum(PREFIX in text for text in texts) == 1
        assert texts[0].count(f"STATE-{number}") == 1
        assert texts[0].count("<evidence>") == 1
        messages = [*made[1:], *talk(20, start=30 + 20 * number)]


def test_evidence_of_earlier_rounds_survives() -> None:
    """A fact of the first round is still quoted after four."""
    fact = "The deploy key is /srv/keys/deploy-7741.pem and must never be rotated."
    messages = [HumanMessage(fact, id="fact"), *talk(30, words=40)]
    for number in range(4):
        made = before(SummarizationMiddleware(writer("Prose."), trigger=("messages", 50)), messages)
        assert made is not None
        assert "/srv/keys/deploy-7741.pem" in str(made[1].content), f"lost in round {number}"
        messages = [*made[1:], *talk(20, words=40, start=30 + 20 * number)]
    bare = before(SummarizationMiddleware(writer("Prose."), trigger=("messages", 50), evidence=False), messages)
    assert bare is not None
    assert str(bare[1].content) == PREFIX + "Prose."


def test_a_thread_begun_with_langchains_class_goes_on() -> None:
    """Its summary message is read, updated and replaced."""
    begun = before(LangChains(writer("BEGUN-there."), trigger=("messages", 50)), talk(30))
    assert begun is not None
    model = writer()
    made = before(SummarizationMiddleware(model, trigger=("messages", 50)), [*begun[1:], *talk(20, start=30)])
    assert made is not None
    assert "BEGUN-there." in prompts_of(model)
    assert sum(layout.is_summary(message) for message in made) == 1


def test_the_newest_request_stays_word_for_word() -> None:
    """In a tool loop the only human message is older than everything that is kept."""
    messages: list[BaseMessage] = [HumanMessage("Rename every module.", id="h")]
    for number in range(40):
        call = {"name": "look", "args": {}, "id": f"c{number}"}
        messages += [
            AIMessage("", tool_calls=[call], id=f"a{number}"),
            ToolMessage("x " * 50, tool_call_id=f"c{number}"),
        ]
    made = before(SummarizationMiddleware(writer(), trigger=("messages", 50), keep=("messages", 6)), messages)
    assert made is not None
    assert made[2] is messages[0]
    assert not problems_of(made[1:])


def test_system_messages_of_the_thread_stay_in_front() -> None:
    messages = [SystemMessage("Be exact.", id="s"), *talk(30)]
    model = writer()
    made = before(SummarizationMiddleware(model, trigger=("messages", 50)), messages)
    assert made is not None
    assert made[1] is messages[0]
    assert layout.is_summary(made[2])
    assert "Be exact." not in prompts_of(model)


def test_what_keep_names_stays_where_the_trigger_is_below_it_and_no_message_pays_for_a_pass() -> None:
    """20 messages that take more than the trigger: all stay, that is said once, and a quarter more makes a pass."""
    messages, events = talk(30, words=480), list[Event]()
    model = writer()
    middleware = SummarizationMiddleware(
        model, trigger=("tokens", 6_000), keep=("messages", 20), on_event=events.append, trim_tokens_to_summarize=None
    )
    thread: list[Any] = list(messages)
    made = before(middleware, thread)
    assert made is not None
    assert made[2:] == messages[-20:]
    thread, passes = made[1:], 0
    assert middleware.token_counter(thread) > 6_000
    for message in talk(10, words=480, start=30):
        thread.append(message)
        made = before(middleware, thread)
        if made is not None:
            passes, thread = passes + 1, made[1:]
        assert len(thread) >= 21
    assert passes == 4, "one for five messages"
    assert [event.name for event in events].count("trigger_below_keep") == 1


def test_what_keep_names_is_cut_into_where_it_does_not_fit_the_window() -> None:
    messages = talk(30, words=480)
    model = writer(profile={"max_input_tokens": 4_000})
    made = before(SummarizationMiddleware(model, trigger=("fraction", 0.8), keep=("messages", 20)), messages)
    assert made is not None
    assert 4 <= len(made) - 2 < 20
    assert made[2:] == messages[2 - len(made) :]
    assert SummarizationMiddleware(model).token_counter(made[1:]) <= 0.95 * 4_000


@BOTH
@pytest.mark.parametrize("keep", [("fraction", 0.8), ("messages", 4), ("tokens", 820)], ids=str)
def test_what_keep_names_stays_whole_where_the_thread_fits_and_nothing_else_could_leave(
    middleware: type[Any], keep: Any
) -> None:
    """No room for a summary beside it is no reason to summarize what is to stay."""
    model = writer(profile={"max_input_tokens": 1_000})
    count = {"token_counter": lambda messages: 200 * len(list(messages))}
    assert before(middleware(model, trigger=("fraction", 0.8), keep=keep, **count), talk(2, words=480)) is None
    assert not model.sent


@pytest.mark.parametrize("keep", [4_600, 4_900])
def test_what_is_quoted_does_not_give_way_to_what_keep_names_where_the_window_is_full(keep: int) -> None:
    """A pass that only the earlier summary could pay for cuts into what is kept: else it would quote nothing more, and
    the next turn would not fit again.
    """
    model = writer(f"{SUMMARY} {talk(1, words=260)[1].text}", profile={"max_input_tokens": 6_000})
    middleware = SummarizationMiddleware(model, trigger=("tokens", 4_000), keep=("tokens", keep))
    thread: list[Any] = [HumanMessage("Rooms: " + " ".join(f"vault_{n}_{n * 37}" for n in range(12)), id="rooms")]
    quoted = [0]
    for turn in range(40):
        thread = [*thread, *talk(1, words=150 + turn % 7 * 40, start=turn)]
        thread = [m for m in before(middleware, thread) or thread if not isinstance(m, RemoveMessage)]
        quoted += [len(layout.evidence_of(message)) for message in thread if layout.is_summary(message)]
        assert middleware.token_counter(thread) <= 0.95 * 6_000
    assert len(quoted) > 10
    assert all(now >= 0.8 * most for now, most in zip(quoted[1:], accumulate(quoted, max), strict=False))


@pytest.mark.parametrize("color", ["sync", "async"])
def test_fractions_are_of_the_agents_window_once_a_call_has_shown_it(color: str) -> None:
    """A small model writes the summaries of an agent with a large one, and the other way round."""
    for own, agents, is_due in ((4_000, 100_000, False), (100_000, 4_000, True)):
        small = writer(profile={"max_input_tokens": own})
        middleware = SummarizationMiddleware(small, trigger=("fraction", 0.5), keep=("fraction", 0.2))
        main = writer("ok", profile={"max_input_tokens": agents})
        agent: Any = create_agent(main, middleware=[middleware], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        agent.invoke({"messages": talk(1)}, config)  # shows the window; the state remembers it
        added = {"messages": talk(10, start=1)}
        state = agent.invoke(added, config) if color == "sync" else anyio.run(agent.ainvoke, added, config)
        assert layout.is_summary(state["messages"][0]) is is_due


class Asking(ScriptedModel):
    """As LangChain's client for Claude: what it asks the API for stands beside its profile."""

    betas: list[str] | None = None
    default_headers: dict[str, str] | None = None


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"betas": ["context-1m-2025-08-07"]}, 1_000_000),
        ({"default_headers": {"anthropic-beta": "other-2025,context-1m-2025-08-07"}}, 1_000_000),
        ({"betas": ["other-2025"]}, 200_000),
        ({}, 200_000),
    ],
)
def test_a_model_that_asks_for_claudes_larger_window_has_it(given: dict[str, Any], window: int) -> None:
    assert profile_window(Asking(profile={"max_input_tokens": 200_000}, **given)) == window


def test_a_profile_that_says_zero_says_nothing() -> None:
    """Profiles of models that were not looked up have a 0 there: no window, and nothing is cut for its sake."""
    model = writer(profile={"max_input_tokens": 0})
    assert before(SummarizationMiddleware(model, trigger=("messages", 5)), talk(8)) is None
    assert not model.sent


def test_where_the_newest_message_alone_is_too_much_the_rest_is_still_summarized() -> None:
    messages = [*talk(30), HumanMessage("word " * 8_000, id="huge")]
    middleware = SummarizationMiddleware(writer(), trigger=("tokens", 6_000), keep=("messages", 4))
    made = before(middleware, messages)
    assert made is not None
    assert made[-1] is messages[-1]
    assert len(made) <= 7
    assert before(middleware, made[1:]) is None, "and an unchanged thread is left alone"


def test_system_prompt_and_tools_count() -> None:
    """The same messages trigger once what is sent beside them is known."""
    messages = talk(10)
    middleware = SummarizationMiddleware(writer(), trigger=("tokens", 4_500), keep=("messages", 4))
    assert 2_500 < middleware.token_counter(messages) < 4_000
    assert before(middleware, messages) is None
    assert before(middleware, messages, _contextfold_sending=[2_000, None]) is not None


def test_tools_larger_than_the_trigger_do_not_ask_for_a_summary_at_every_call() -> None:
    middleware = SummarizationMiddleware(writer(), trigger=("tokens", 4_000), keep=("messages", 4))
    assert before(middleware, talk(3), _contextfold_sending=[20_000, None]) is None
    assert before(middleware, talk(20), _contextfold_sending=[20_000, None]) is not None


def test_the_summary_prompt_is_honored_in_every_request() -> None:
    """For chunks, merges and updates, with ``{messages}`` in its place and doubled braces as in ``str.format``."""
    model = writer()
    middleware = SummarizationMiddleware(
        model,
        trigger=("messages", 50),
        summary_prompt="MINE {{json}}: {messages} END",
        trim_tokens_to_summarize=2_000,
        instructions="Name every ticket.",
    )
    before(middleware, talk(30))
    sent = [str(messages[0].content) for messages in model.sent]
    assert len(sent) > 2
    assert all(text.startswith("MINE {json}: ") and "END" in text and "Name every ticket." in text for text in sent)


def test_counting_as_langchain_does_is_one_option_away() -> None:
    class Claude(ScriptedModel):
        @property
        def _llm_type(self) -> str:
            return "anthropic-chat"

    messages = [HumanMessage("x" * 3_300, id="h")]
    for model in (writer(), Claude()):
        ours = SummarizationMiddleware(model, counting="langchain", trigger=("messages", 9))
        assert ours.token_counter(messages) == LangChains(model, trigger=("messages", 9)).token_counter(messages)
    with pytest.raises(ValueError, match="must be 'contextfold' or 'langchain'"):
        SummarizationMiddleware(writer(), counting="exact")  # type: ignore[arg-type]
    made = before(
        SummarizationMiddleware(writer(), counting="langchain", trigger=("tokens", 3_000), keep=("messages", 4)),
        talk(30),
    )
    assert made is not None
    assert len(made) == 6


@pytest.mark.parametrize("count", [lambda messages: 200 * len(list(messages)), lambda messages: 1_500])
def test_a_counter_of_the_users_own_decides(count: Any) -> None:
    """Also one that does not add up over parts of a list."""
    middleware = SummarizationMiddleware(writer(), trigger=("tokens", 1_500), keep=("messages", 3), token_counter=count)
    assert middleware.token_counter is count
    made = before(middleware, talk(10))
    assert made is not None
    assert len(made) == 5


def test_a_summarizer_that_reads_messages_gets_all_of_them() -> None:
    """Chunk by chunk, each behind the summary of those before it."""
    seen: list[list[BaseMessage]] = []

    def summarize(messages: list[BaseMessage]) -> str:
        seen.append(messages)
        return f"  part {len(seen)}  "

    model = writer()
    middleware = SummarizationMiddleware(model, trigger=("messages", 50), summarizer=summarize)
    messages = talk(30)
    made = before(middleware, messages)
    assert made is not None
    assert not model.sent
    read = [message for chunk in seen for message in chunk if not layout.is_summary(message)]
    assert all(one is other for one, other in zip(read, messages[:40], strict=True))
    assert len(seen) > 1
    assert "part 1" in str(seen[1][0].content)
    assert str(made[1].content).startswith(f"{PREFIX}part {len(seen)}\n")


def test_a_summarizer_that_reads_messages_may_be_async_overflow_and_begin_with_a_summary() -> None:
    seen: list[list[BaseMessage]] = []

    async def summarize(messages: list[BaseMessage]) -> str:
        if len(messages) > 12:
            raise ContextOverflow(limit=10)
        seen.append(messages)
        return "all read"

    middleware = SummarizationMiddleware(
        writer(), trigger=("messages", 50), summarizer=summarize, trim_tokens_to_summarize=None
    )
    old = HumanMessage(PREFIX + "OLD", additional_kwargs={"lc_source": "summarization"}, id="old")
    messages = talk(30)

    async def run() -> Any:
        return await middleware.abefore_model({"messages": [old, *messages]}, None)  # type: ignore[typeddict-item]

    made = anyio.run(run)["messages"]
    assert seen[0][0] is old
    read = [message.id for chunk in seen for message in chunk if not layout.is_summary(message)]
    assert read == [message.id for message in messages[:40]]
    assert len(made) == 22


def test_a_summarizer_that_returns_no_text_is_told_so() -> None:
    middleware = SummarizationMiddleware(writer(), trigger=("messages", 50), summarizer=lambda messages: 42)
    with pytest.raises(TypeError, match=r"`summarizer` must return a str, got int\."):
        before(middleware, talk(30))


def test_another_model_may_write_by_object_or_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = writer(), writer("By the other.")
    monkeypatch.setattr("langchain.agents.middleware.summarization.init_chat_model", lambda name: other)
    for summarizer in (other, "provider:other"):
        made = before(SummarizationMiddleware(model, trigger=("messages", 50), summarizer=summarizer), talk(30))
        assert made is not None
        assert "By the other." in str(made[1].content)
    assert not model.sent


def test_the_models_object_is_not_changed() -> None:
    model = writer()
    held = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    before(SummarizationMiddleware(model, trigger=("messages", 50)), talk(30))
    assert {name: value for name, value in vars(model).items() if not name.startswith("_")} == held


@st.composite
def threads(draw: st.DrawFn) -> list[BaseMessage]:
    """Conversations with parallel calls, human messages between results, and calls without results at the end."""
    messages: list[BaseMessage] = []
    for turn in range(draw(st.integers(3, 12))):
        messages.append(HumanMessage(f"question {turn} " + "word " * draw(st.integers(0, 60)), id=f"h{turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"c{turn}-{step}-{n}" for n in range(draw(st.integers(1, 3)))]
            calls = [{"name": "look", "args": {"path": f"src/{one}.py"}, "id": one} for one in ids]
            messages.append(AIMessage("looking", tool_calls=calls, id=f"a{turn}-{step}"))
            for one in ids:
                if draw(st.integers(0, 9)) == 0:
                    messages.append(HumanMessage("hurry", id=f"i{one}"))
                messages.append(ToolMessage("row " * draw(st.integers(1, 80)), tool_call_id=one, id=f"t{one}"))
        messages.append(AIMessage(f"answer {turn}", id=f"z{turn}"))
    return messages


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(threads(), st.integers(1, 12), st.sampled_from([("messages", 6), ("tokens", 600)]))
def test_any_thread_ends_valid_and_no_message_disappears_unread(
    messages: list[BaseMessage], keep: int, trigger: Any
) -> None:
    """What is not kept was in a request; what is kept can be sent; the input is not changed."""
    model = writer("Short.")
    untouched = copy.deepcopy(messages)
    made = before(SummarizationMiddleware(model, trigger=trigger, keep=("messages", keep)), messages)
    assert messages == untouched
    if made is None:
        return
    assert not problems_of(made[1:])
    kept = {message.id for message in made}
    said = prompts_of(model)
    for message in messages:
        if message.id not in kept:
            marks = [call["args"]["path"] for call in getattr(message, "tool_calls", ())] or [str(message.content)[:12]]
            assert all(mark in said for mark in marks), message
