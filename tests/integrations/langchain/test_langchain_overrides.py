"""Parity with LangChain's class: what subclasses override decides, what they call is whole, what stays is the same."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from random import Random
from typing import Any, NotRequired

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_scripted import SUMMARY, ScriptedModel, calling, is_ours, problems_of, talk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentState
from langchain.agents.middleware import SummarizationMiddleware as LangChains

from contextfold.errors import SummaryFailed
from contextfold.integrations.langchain import CompactionMiddleware, SummarizationMiddleware

WORDS = "the ledger of the third quarter does not add up " * 6

PRIVATE = [
    name
    for name, value in vars(LangChains).items()
    if name.startswith("_") and not name.startswith("__") and callable(getattr(LangChains, name)) and value is not None
]


def writer(answer: Any = SUMMARY, **options: Any) -> ScriptedModel:
    return ScriptedModel(script=lambda messages, number: answer, **options)


def before(middleware: Any, messages: list[Any], is_async: bool = False) -> list[Any] | None:
    """What ``before_model`` puts in place of the messages."""
    state: Any = {"messages": messages}
    update = asyncio.run(middleware.abefore_model(state, None)) if is_async else middleware.before_model(state, None)
    return None if update is None else update["messages"][1:]


def asked(model: ScriptedModel) -> str:
    return "\n".join(str(message.content) for sent in model.sent for message in sent)


def test_every_private_method_of_langchains_class_is_there_with_its_arguments() -> None:
    """A subclass that calls one finds it, whatever the release."""
    for name in PRIVATE:
        theirs = inspect.signature(getattr(LangChains, name)).parameters
        ours = inspect.signature(getattr(SummarizationMiddleware, name)).parameters
        assert list(ours) == list(theirs), name


both = pytest.mark.parametrize("base", [LangChains, SummarizationMiddleware])
colors = pytest.mark.parametrize("is_async", [False, True])


@both
@colors
def test_a_summary_of_the_subclass_takes_the_place_of_the_models(base: type[Any], is_async: bool) -> None:
    """``_create_summary`` and ``_acreate_summary``, each in its own color."""

    class Own(base):  # type: ignore[misc]
        def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return f"sync summary, {len(messages_to_summarize)} read"

        async def _acreate_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return f"async summary, {len(messages_to_summarize)} read"

    model = writer()
    after = before(Own(model, trigger=("messages", 50), trim_tokens_to_summarize=None), talk(30), is_async)
    assert after is not None
    assert ("async" if is_async else "sync") + " summary, 40 read" in after[0].content
    assert model.sent == []


@pytest.mark.parametrize("method", ["_create_summary", "_acreate_summary"])
@colors
def test_one_overridden_writer_serves_both_colors(method: str, is_async: bool) -> None:
    """LangChain's would silently ask the model in the other color."""

    def create(self: Any, messages: list[AnyMessage]) -> str:
        return f"mine, {len(messages)} read"

    async def acreate(self: Any, messages: list[AnyMessage]) -> str:
        return create(self, messages)

    own = type("Own", (SummarizationMiddleware,), {method: acreate if method == "_acreate_summary" else create})
    after = before(own(writer(), trigger=("messages", 50), trim_tokens_to_summarize=None), talk(30), is_async)
    assert after is not None
    assert "mine, 40 read" in after[0].content


@pytest.mark.skipif(not hasattr(LangChains(writer()), "_summary_model"), reason="newer than this release's class")
@both
@colors
@pytest.mark.parametrize(
    "bound", [lambda m: m, lambda m: m.with_retry(), lambda m: m.with_retry().with_config(tags=["t"])]
)
def test_a_subclass_may_have_another_model_write(base: type[Any], is_async: bool, bound: Callable[[Any], Any]) -> None:
    """A cheaper one, or one with retries or tags of its own; its window is the size of a request."""
    main, cheap = (
        writer("From the model of the agent."),
        writer("From the cheap model.", profile={"max_input_tokens": 90_000}),
    )

    class Own(base):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._summary_model = bound(cheap)

    kept = before(Own(main, trigger=("messages", 10), keep=("messages", 4)), talk(60), is_async)
    assert kept is not None
    assert "From the cheap model." in str(kept[0].content)
    assert main.sent == []
    assert len(cheap.sent) == 1


def test_a_subclass_that_adds_to_the_summary_may_call_ours() -> None:
    """``super()._create_summary`` reads everything, in chunks, and answers with prose."""

    class Signed(SummarizationMiddleware):
        def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            return super()._create_summary(messages_to_summarize) + "\n-- signed"

    model = writer()
    after = before(Signed(model, trigger=("messages", 50), keep=("messages", 4)), talk(30))
    assert after is not None
    assert "-- signed" in after[0].content
    assert all(f"Question {turn}:" in asked(model) for turn in range(28))


@both
@colors
def test_a_subclass_decides_when_a_summary_is_due(base: type[Any], is_async: bool) -> None:
    seen: list[int] = []

    class Always(base):  # type: ignore[misc]
        def _should_summarize(self, messages: list[AnyMessage], total_tokens: int) -> bool:
            seen.append(total_tokens)
            return len(messages) == 20

    middleware = Always(writer(), keep=("messages", 4))
    assert before(middleware, talk(10), is_async) is not None
    assert before(middleware, talk(30), is_async) is None
    assert min(seen) > 1_000


@both
def test_a_subclass_may_switch_a_trigger_off(base: type[Any]) -> None:
    class Never(base):  # type: ignore[misc]
        def _should_summarize(self, messages: list[AnyMessage], total_tokens: int) -> bool:
            return super()._should_summarize(messages, total_tokens) and len(messages) > 80

    middleware = Never(writer(), trigger=("messages", 50), keep=("messages", 4))
    assert before(middleware, talk(30)) is None
    assert before(middleware, talk(50)) is not None


@both
def test_a_subclass_decides_where_the_kept_part_begins(base: type[Any]) -> None:
    class Cut(base):  # type: ignore[misc]
        def _determine_cutoff_index(self, messages: list[AnyMessage]) -> int:
            return len(messages) - 7 if len(messages) > 50 else 0

    middleware = Cut(writer(), trigger=("messages", 10))
    messages = talk(30)
    after = before(middleware, messages)
    assert after is not None
    assert after[-7:] == messages[-7:]
    assert len([message for message in after if message in messages]) <= 8  # ours also keeps the newest request
    assert before(middleware, talk(20)) is None


@both
def test_a_subclass_may_rescue_older_messages(base: type[Any]) -> None:
    """As DeerFlow keeps the skill files that were read last: ``_partition_messages`` says what stays."""

    class Rescue(base):  # type: ignore[misc]
        @staticmethod
        def _partition_messages(
            conversation_messages: list[AnyMessage], cutoff_index: int
        ) -> tuple[list[AnyMessage], list[AnyMessage]]:
            old = conversation_messages[:cutoff_index]
            skill = [m for m in old if isinstance(m, ToolMessage) or getattr(m, "tool_calls", None)]
            rest = [m for m in old if m not in skill]
            return rest, [*skill, *conversation_messages[cutoff_index:]]

    skill = [calling("skills/pdf.md", "c1"), ToolMessage("How to read a PDF.", tool_call_id="c1", id="t1")]
    messages = [*talk(2), *skill, *talk(28, start=2)]
    after = before(Rescue(writer(), trigger=("messages", 50), keep=("messages", 6)), messages)
    assert after is not None
    assert is_ours(after[0])
    assert [m.id for m in after[1:3]] == [m.id for m in skill]
    assert after[-6:] == messages[-6:]
    assert problems_of(after) == []


@both
@pytest.mark.parametrize("kind", [HumanMessage, SystemMessage])
def test_a_subclass_words_the_summary_message(base: type[Any], kind: type[BaseMessage]) -> None:
    """``_build_new_messages``, with several messages or another role. The next pass knows it and nests nothing."""

    class Worded(base):  # type: ignore[misc]
        @staticmethod
        def _build_new_messages(summary: str) -> list[Any]:
            return [kind(content=f"至此的对话摘要：\n{summary}")]

    middleware = Worded(writer(), trigger=("messages", 50), keep=("messages", 4))
    after = before(middleware, talk(30))
    assert after is not None
    assert type(after[0]) is kind
    assert after[0].content.startswith("至此的对话摘要：\nSUMMARYTOKEN")
    if base is SummarizationMiddleware:
        again = before(middleware, [*after, *talk(30, start=30)])
        assert again is not None
        assert [str(m.content).count("SUMMARYTOKEN") for m in again if is_ours(m)] == [1]


@both
def test_a_subclass_knows_the_window_of_its_model(base: type[Any]) -> None:
    class Knowing(base):  # type: ignore[misc]
        def _get_profile_limits(self, model: Any = None) -> int:
            return 4_000

    middleware = Knowing(writer(), trigger=("fraction", 0.5), keep=("messages", 4))
    assert before(middleware, talk(3)) is None
    assert before(middleware, talk(30)) is not None


@both
@colors
def test_a_method_replaced_on_the_object_counts_too(base: type[Any], is_async: bool) -> None:
    middleware = base(writer(), trigger=("messages", 50))
    middleware._should_summarize = lambda messages, total_tokens: False
    assert before(middleware, talk(30), is_async) is None


@pytest.mark.parametrize("name", ["_trim_messages_for_summary", "_format_summary_prompt", "_overflow_retry_prompt"])
def test_what_decides_nothing_is_said(name: str) -> None:
    own = type("Own", (SummarizationMiddleware,), {name: lambda self, messages: messages})
    with pytest.warns(UserWarning, match=f"Own overrides {name}: .* never calls"):
        own(writer())


# ---- a subclass with hooks of its own, which calls the private methods ----


def deerflow(base: type[Any]) -> type[Any]:
    """As DeerFlow's: its own ``before_model``, built from LangChain's private methods, with hooks before a summary."""

    class Flow(base):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any, before_summarization: Callable[[Any], None], **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.before_summarization = before_summarization

        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            messages = state["messages"]
            self._ensure_message_ids(messages)
            if not self._should_summarize(messages, self.token_counter(messages)):
                return None
            cutoff = self._determine_cutoff_index(messages)
            if cutoff <= 0:
                return None
            leaving, kept = self._partition_messages(messages, cutoff)
            self.before_summarization(leaving)
            summary = self._build_new_messages(self._create_summary(leaving))
            return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *summary, *kept]}

    return Flow


def test_a_subclass_with_its_own_hook_loses_nothing_any_more() -> None:
    """The same subclass on LangChain's class and on ours: 100 tool calls behind one request."""
    loop: list[Any] = [HumanMessage("Repair the ledger.", id="task")]
    for number in range(100):
        loop += [
            calling(f"src/m{number}.py", f"c{number}"),
            ToolMessage(f"row {number}: {WORDS}", tool_call_id=f"c{number}"),
        ]
    told: list[Any] = []
    results = {}
    for base in (LangChains, SummarizationMiddleware):
        model = writer()
        middleware = deerflow(base)(
            model, trigger=("messages", 50), keep=("messages", 5), before_summarization=told.append
        )
        after = before(middleware, [message.model_copy() for message in loop])
        assert after is not None
        results[base] = after, asked(model)
    theirs, ours = results[LangChains], results[SummarizationMiddleware]
    assert "too long to summarize" in theirs[0][0].content
    assert theirs[1] == ""
    assert "SUMMARYTOKEN" in ours[0][0].content
    assert all(f"row {number}:" in ours[1] for number in range(97))
    assert [len(leaving) for leaving in told] == [195, 195]


def test_its_own_hook_is_the_only_one_that_summarizes() -> None:
    """In an agent with tools: no second summary is made around the model call, behind the subclass's back."""
    told: list[Any] = []
    model, scribe = writer("ok"), writer()
    flow = deerflow(SummarizationMiddleware)
    middleware = flow(scribe, trigger=("tokens", 3_000), keep=("messages", 4), before_summarization=told.append)
    agent = create_agent(model, middleware=[middleware], system_prompt="word " * 2_900)
    agent.invoke({"messages": talk(3)})
    assert told == []
    assert scribe.sent == []


def test_a_cut_of_the_inherited_methods_parts_no_call_from_its_results() -> None:
    """A human message between parallel results; LangChain's cut falls behind it."""
    call = calling("a.py", "c1")
    call.tool_calls.append({"name": "read_file", "args": {"path": "b.py"}, "id": "c2", "type": "tool_call"})
    messages = [
        *talk(2),
        call,
        ToolMessage("a", tool_call_id="c1"),
        HumanMessage("Hurry up."),
        ToolMessage("b", tool_call_id="c2"),
        HumanMessage("And?"),
    ]
    theirs, ours = LangChains(writer(), keep=("messages", 3)), SummarizationMiddleware(writer(), keep=("messages", 3))
    assert problems_of(messages[theirs._determine_cutoff_index(messages) :]) != []
    assert ours._determine_cutoff_index(messages) == 4


def test_a_summary_asked_for_directly_updates_an_earlier_one_and_fails_loudly() -> None:
    """``_create_summary`` of ours, as a subclass calls it: evidence beside the prose, and refused where it is blank."""
    model = writer()
    middleware = deerflow(SummarizationMiddleware)(model, before_summarization=print)
    first = middleware._build_new_messages(middleware._create_summary(talk(20)))[0]
    assert "<evidence>" in first.content
    assert "<evidence>" not in SummarizationMiddleware(model)._create_summary(talk(20))  # the pass puts it there
    again = asyncio.run(middleware._acreate_summary([first, *talk(10, start=20)]))
    assert again.count("SUMMARYTOKEN") == 1
    assert "SUMMARYTOKEN" in asked(model)  # it was handed over to be updated
    with pytest.raises(SummaryFailed):
        SummarizationMiddleware(writer(" "))._create_summary(talk(5))
    reader = SummarizationMiddleware(writer(), summarizer=lambda messages: f"{len(messages)} read", evidence=False)
    assert reader._create_summary(talk(2)) == "4 read"


# ---- attributes ----


def test_attributes_may_be_set_later() -> None:
    """As with LangChain's class, what counts is what they are when a summary is made."""
    model = writer()
    middleware = SummarizationMiddleware(model, trigger=("messages", 50))
    middleware.keep = ("messages", 3)
    middleware.summary_prompt = "Sum up in French: {messages}"
    middleware.trim_tokens_to_summarize = None
    after = before(middleware, talk(30))
    assert after is not None
    assert len(after) in (4, 5)  # the summary, three messages, and the request that they answer
    assert len(model.sent) == 1
    assert str(model.sent[0][0].content).startswith("Sum up in French: ")


def test_a_counter_may_be_set_later() -> None:
    middleware = SummarizationMiddleware(writer(), trigger=("tokens", 1_000), keep=("messages", 4))
    assert before(middleware, talk(2)) is None
    middleware.token_counter = lambda messages: 600 * len(messages)
    assert before(middleware, talk(2)) is None  # nothing but what stays
    assert before(middleware, talk(6)) is not None


@both
def test_tokens_may_be_a_product_with_a_fraction(base: type[Any]) -> None:
    """``("tokens", 0.8 * window)`` is what people write."""
    middleware = base(writer(), trigger=("tokens", 0.8 * 1_311), keep=("tokens", 0.1 * 1_311))
    assert middleware.trigger == ("tokens", 0.8 * 1_311)
    assert before(middleware, talk(30)) is not None
    assert before(base(writer(), trigger=[("tokens", 1e6 + 0.5)]), talk(30)) is None


class Counted(AgentState[Any]):
    """A state with a key of the application's own."""

    seen: NotRequired[int]


@pytest.mark.parametrize("kind", [SummarizationMiddleware, CompactionMiddleware])
def test_a_subclass_may_have_a_state_of_its_own(kind: type[Any]) -> None:
    """Its keys and ours are both in the thread."""
    own = type("Own", (kind,), {"state_schema": Counted})
    options: Any = {"window": 3_000} if kind is CompactionMiddleware else {"trigger": ("tokens", 3_000)}
    middleware = own(**options) if kind is CompactionMiddleware else own(writer(), keep=("messages", 4), **options)
    agent = create_agent(writer("ok"), middleware=[middleware], system_prompt="Be exact.", checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    answered = agent.invoke({"messages": talk(20), "seen": 3}, thread)
    assert answered["seen"] == 3
    assert {name for name in agent.get_state(thread).values if name.startswith("_contextfold")}


# ---- what stays ----


def exchanges(random: Random) -> list[Any]:
    """Questions, each with up to three rounds of one or two tool calls, and an answer."""
    messages: list[Any] = []
    for turn in range(random.randint(2, 12)):
        messages.append(HumanMessage(f"Question {turn} " + "word " * random.randint(1, 80), id=f"h{turn}"))
        for step in range(random.randint(0, 3)):
            message = calling(f"m{turn}.py", f"c{turn}.{step}.0")
            if random.random() < 0.5:
                message.tool_calls.append({**message.tool_calls[0], "id": f"c{turn}.{step}.1"})
            messages.append(message.model_copy(update={"id": f"a{turn}.{step}"}))
            for call in message.tool_calls:
                text = "row " * random.randint(1, 60)
                messages.append(ToolMessage(text, tool_call_id=str(call["id"]), id=f"r{call['id']}"))
        messages.append(AIMessage(f"Answer {turn} " + "word " * random.randint(1, 80), id=f"a{turn}"))
    return messages


@pytest.mark.parametrize("seed", range(60))
def test_what_stays_is_what_langchains_class_keeps(seed: int) -> None:
    """The same messages, counted the same way; the newest request besides, where it is older than that."""
    random = Random(seed)
    messages = exchanges(random)
    options: Any = {"trigger": ("messages", random.randint(5, 30)), "keep": ("messages", random.randint(1, 10))}
    theirs = before(LangChains(writer(), **options), [message.model_copy() for message in messages])
    ours = before(SummarizationMiddleware(writer(), **options), [message.model_copy() for message in messages])
    assert (theirs is None) == (ours is None)
    if theirs is not None and ours is not None:
        kept = [[message.id for message in after[1:]] for after in (theirs, ours)]
        newest = next(message.id for message in reversed(messages) if message.type == "human")
        assert kept[1] == kept[0] or kept[1] == [newest, *kept[0]]
        assert problems_of(ours) == []
