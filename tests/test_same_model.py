"""``summarizer="same"``: the model that a request goes to summarizes behind the very view it has just read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from emulator.wires.anthropic_rules import anthropic_problem
from langchain_core.messages import AIMessage

from building import calls, result, user
from contextfold import CompactionResult, Compactor, Policy, PolicyError
from contextfold.calls.same import answer_of
from contextfold.formats import get as format_named
from contextfold.messages import Message as Neutral
from contextfold.observe import Event
from contextfold.summary.summarizer import to_answer

Message = dict[str, Any]
WINDOW = 8_000
SUMMARY = "<summary>\nThe user asked for one module after the other, and all were read.\n</summary>"


def said(text: str, finish: str = "stop", calls: list[Any] | None = None) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text, "tool_calls": calls}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 6_000, "completion_tokens": 40},
    }


@dataclass
class Recorded:
    """What was sent: requests, those for a summary behind the view, and those with the text of what leaves."""

    sent: list[list[Any]]
    behind: list[list[Any]]
    alone: list[list[Any]]
    events: list[Event]


class Model:
    """A model that answers requests, and one behind a view with ``answers`` in turn, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[list[Message]] = []
        self.summaries: list[list[Message]] = []

    def send(self, view: list[Message]) -> Any:
        if "Pause the task" in str(view[-1]["content"]) or "<conversation>" in str(view[-1]["content"]):
            self.summaries.append(view)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer
        self.requests.append(view)
        return said("ok")


def turns(start: int, count: int) -> list[Message]:
    return [
        message
        for n in range(start, start + count)
        for message in (
            {"role": "user", "content": f"Please look at module_{n:04}.py and tell me what it does."},
            {"role": "assistant", "content": f"module_{n:04}.py sets limit_{n} and returns rows. " * 4},
        )
    ]


def conversation(compactor: Compactor, model: Model) -> Any:
    """Calls with growing messages until one has compacted; its result."""
    results: list[Any] = []
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for number in range(300):
        messages = [*messages, *turns(number, 1)]
        previous = results[-1].compaction if results else None
        compactor.call(
            model.send, [*messages, {"role": "user", "content": "go on"}], previous, on_result=results.append
        )
        if results[-1].changed:
            return results[-1]
    raise AssertionError("nothing was compacted")


def compactor(**policy: Any) -> Compactor:
    return Compactor(window=WINDOW, summarizer="same", policy=Policy(**policy))


def test_the_request_for_the_summary_is_the_view_with_one_instruction_behind_it() -> None:
    model = Model(said(SUMMARY))
    out = conversation(compactor(), model)
    (asked,) = model.summaries
    last_view = model.requests[-2]  # the one before the pass; the newest messages are behind what was sent then
    assert asked[: len(last_view) - 1] == last_view[:-1]
    assert asked[-1]["role"] == "user"
    assert "call no tool" in asked[-1]["content"]
    assert out.summary.text == "The user asked for one module after the other, and all were read."
    assert out.summary.calls == 1
    assert out.summary.input_tokens == 6_000
    assert not any("Pause the task" in str(message["content"]) for message in out.messages)


def test_a_reminder_at_the_end_of_a_view_does_not_stand_before_our_instruction() -> None:
    """Anthropic refuses a system message before the user's words."""
    answer = {"content": [{"type": "text", "text": SUMMARY}], "usage": {"input_tokens": 6_000, "output_tokens": 40}}
    model, asking, results = Model(answer), compactor(), list[Any]()
    messages: list[Message] = []
    while not (results and results[-1].changed):
        messages += [*turns(len(messages), 1), {"role": "user", "content": "go on"}]
        messages.append({"role": "system", "content": "The task list is stale."})
        previous = results[-1].compaction if results else None
        asking.call(model.send, messages, previous, format="anthropic-request", on_result=results.append)
        messages.append({"role": "assistant", "content": "Yes."})
    (asked,) = model.summaries
    assert anthropic_problem({"max_tokens": 9, "messages": asked}) is None
    assert results[-1].summary.calls == 1


@pytest.mark.parametrize(
    ("useless", "why"),
    [
        (said("I will look at the next module now."), "does not begin with <summary>"),
        (said("I write <b>the page</b>: <summary>More</summary>"), "does not begin with <summary>"),
        (said("I go on. " * 40 + SUMMARY), "does not begin with <summary>"),
        (
            said("", calls=[{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]),
            "calls a tool",
        ),
        (said(SUMMARY, finish="length"), "cut off (length)"),
        (said(""), "is blank"),
        ({"choices": [{"message": {"role": "assistant", "content": "No.", "refusal": "I cannot."}}]}, "was refused"),
        (RuntimeError("400: this endpoint takes no such request"), "no such request"),
    ],
)
def test_what_is_no_summary_is_none_and_the_usual_way_is_gone(useless: Any, why: str) -> None:
    model = Model(useless, said(SUMMARY))
    out = conversation(compactor(), model)
    behind, alone = model.summaries
    assert len(behind) > 5
    assert len(alone) == 1
    assert "<conversation>" in alone[0]["content"]
    assert "one module after the other" in out.summary.text
    assert out.summary.calls == (1 if isinstance(useless, Exception) else 2)
    assert any(why in event.message for event in out.events)


@pytest.mark.parametrize(
    "worded",
    [
        "{}",
        "<think>What was asked?</think>\n{}",
        "Here is the summary:\n\n{}",
        "```xml\n{}\n```",
        "<think>What was asked?</think>\nSure, I pause here.\n{}\nTell me when to go on.",
    ],
)
def test_a_summary_counts_with_a_word_before_it(worded: str) -> None:
    """It was asked for a second time then, at the full price. The words around it are no part of it."""
    model = Model(said(worded.format(SUMMARY)))
    out = conversation(compactor(), model)
    assert len(model.summaries) == out.summary.calls == 1
    assert out.summary.text == SUMMARY.removeprefix("<summary>").removesuffix("</summary>").strip()


def test_what_does_not_fit_is_asked_the_usual_way() -> None:
    model = Model(said(SUMMARY))
    results: list[Any] = []
    messages = [*turns(0, 200), {"role": "user", "content": "go on"}]
    compactor().call(model.send, messages, on_result=results.append)
    assert results[0].changed
    assert all(len(asked) == 1 for asked in model.summaries)


def test_a_model_that_only_fails_changes_nothing_while_the_view_fits() -> None:
    model = Model(RuntimeError("no credit left"))
    subject = compactor(on_failure="raise")
    with pytest.raises(RuntimeError, match="no credit"):
        conversation(subject, model)


def test_async_code_does_the_same() -> None:
    model = Model(said(SUMMARY))
    results: list[Any] = []

    async def send(view: list[Message]) -> Any:
        return model.send(view)

    async def main() -> None:
        subject = compactor()
        messages: list[Message] = []
        for number in range(300):
            messages = [*messages, *turns(number, 1)]
            previous = results[-1].compaction if results else None
            ask = [*messages, {"role": "user", "content": "go on"}]
            await subject.acall(send, ask, previous, on_result=results.append)
            if results[-1].changed:
                return

    asyncio.run(main())
    assert results[-1].summary.text.startswith("The user asked")
    assert len(model.summaries) == 1
    assert len(model.summaries[0]) > 5


def work(start: int, count: int, lines: int = 30) -> list[Neutral]:
    """An agent's steps: a call, its result of so many lines."""
    return [
        message
        for n in range(start, start + count)
        for message in (
            calls(f"call_{n}"),
            result(f"call_{n}", "\n".join(f"row {row} of table_{n} holds {row * n}" for row in range(lines))),
        )
    ]


def agent(
    format: str, steps: list[Neutral], mark: Callable[[list[Any]], list[Any]] = list, answer: Any = SUMMARY
) -> Recorded:
    """An agent's loop, a request before each of its messages, in this format. ``mark``: what the caller does to it."""
    known, told = format_named(format), Recorded([], [], [], [])
    subject = Compactor(window=WINDOW, summarizer="same", on_event=told.events.append)
    made: list[CompactionResult] = []

    def send(view: list[Any]) -> Any:
        told.sent.append(view)
        return said("ok")

    def ask(messages: list[Any], whole: bool, tokens: int) -> Any:
        (told.behind if whole else told.alone).append(messages)
        return answer

    for n, step in enumerate(steps):
        if step.role == "assistant" and n:
            wire = mark(known.encode([user("Read all tables."), *steps[:n]]))
            previous = made[-1].compaction if made else None
            subject.call(send, wire, previous, ask=ask, on_result=made.append)
    return told


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"])
def test_behind_newest_results_the_request_is_the_last_one_with_an_instruction(format: str) -> None:
    """All but the instruction is in the provider's cache."""
    told = agent(format, work(0, 60))
    assert told.behind
    assert not told.alone
    for *view, final in told.behind:
        if format == "bedrock-converse":  # there it stands in the last message, since roles must take turns
            *before, instruction = final["content"]
            view.append({**final, "content": before})
        else:
            instruction = final
        assert view in told.sent
        assert "Pause the task" in str(instruction)


def test_roles_take_turns_where_a_provider_insists() -> None:
    told = agent("bedrock-converse", work(0, 60))
    assert told.behind
    for asked in told.behind:
        assert all(one["role"] != other["role"] for one, other in pairwise(asked))


@pytest.mark.parametrize(
    ("format", "mark"),
    [
        ("anthropic", {"cache_control": {"type": "ephemeral"}}),
        ("bedrock-converse", {"cachePoint": {"type": "default"}}),
    ],
)
def test_a_mark_of_the_cache_on_the_newest_message_stands_behind_the_instruction(
    format: str, mark: dict[str, Any]
) -> None:
    """Without any, a provider would look for nothing in its cache."""

    def moved(wire: list[Any]) -> list[Any]:
        *before, newest = wire
        if not isinstance(newest["content"], list):
            return wire
        *blocks, last = newest["content"]
        end = [{**last, **mark}] if format == "anthropic" else [last, mark]
        return [*before, {**newest, "content": [*blocks, *end]}]

    told = agent(format, work(0, 60), moved)
    assert told.behind
    for asked in told.behind:
        *_, instruction = [block for block in asked[-1]["content"] if block != mark]
        assert "Pause the task" in str(instruction)
        assert (mark in asked[-1]["content"]) or mark.items() <= instruction.items()
        assert str(asked).count(next(iter(mark))) == 1


def test_what_stands_shortened_and_is_too_long_to_be_added_is_summed_up_apart() -> None:
    """No text counts as summarized that no request held, and the rest is read from the cache all the same."""
    told = agent("openai-chat", [*work(0, 4), *work(4, 1, lines=2_000), *work(5, 60)])
    assert told.alone
    text = " ".join(str(message) for asked in told.alone for message in asked)
    assert all(f"row {row} of table_4 holds {row * 4}" in text for row in range(2_000))
    assert "row 3 of table_2" not in text
    assert any("Summed up from its full text" in str(asked[-1]) for asked in told.behind)
    assert not [event for event in told.events if event.name == "summary_failed"]


def test_where_nothing_is_sent_it_is_refused() -> None:
    with pytest.raises(PolicyError, match="same"):
        compactor().compact(turns(0, 3))
    with pytest.raises(PolicyError, match="same"):
        asyncio.run(compactor().acompact(turns(0, 3)))


@pytest.mark.parametrize(
    ("response", "text", "called"),
    [
        (said("hello"), "hello", False),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", False),
        ({"content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}], "stop_reason": "tool_use"}, "", True),
        (
            {"output": [{"type": "message", "content": [{"type": "output_text", "text": "r"}]}, {"type": "reasoning"}]},
            "r",
            False,
        ),
        ({"output": [{"type": "function_call", "name": "n", "arguments": "{}"}]}, "", True),
        ("plain", "plain", False),
        (None, "", False),
    ],
)  # fmt: skip
def test_answers_of_all_providers_are_read(response: Any, text: str, called: bool) -> None:
    answer = answer_of(response)
    assert (answer.text, answer.has_tool_calls) == (text, called)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"stopReason": "max_tokens"}, "max_tokens"),
        ({"done_reason": "length"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": None}, "incomplete"),
        ({}, None),
    ],
    ids=str,
)
def test_how_an_answer_of_langchain_ended_is_read_alike_behind_a_view_and_from_text(
    told: dict[str, Any], reason: str | None
) -> None:
    message = AIMessage("The user asked, and", response_metadata=told)
    assert answer_of(message).finish_reason == to_answer(message).finish_reason == reason


REFUSED = [{"type": "text", "text": "The user asked, and"}, {"type": "refusal", "refusal": "I cannot go on."}]


@pytest.mark.parametrize(
    "response",
    [
        AIMessage(REFUSED, response_metadata={"status": "completed"}),
        AIMessage(
            "The user asked, and",
            additional_kwargs={"refusal": "I cannot go on."},
            response_metadata={"finish_reason": "stop"},
        ),
        {
            "choices": [
                {"message": {"content": "The user asked, and", "refusal": "I cannot go on."}, "finish_reason": "stop"}
            ]
        },
        {"status": "completed", "output": [{"type": "message", "content": REFUSED}]},
    ],
    ids=["LangChain's block", "LangChain's field", "openai-chat", "openai-responses"],
)
def test_a_refusal_beside_words_is_one_on_every_way_in(response: Any) -> None:
    """The words before it are the beginning of a summary, and the reason for which it ended says nothing."""
    assert answer_of(response).finish_reason == "refusal"
    if isinstance(response, AIMessage):
        assert to_answer(response).finish_reason == "refusal"


class Unread:
    """A block of an SDK's own whose kind cannot be told."""

    text = "The rooms were seen."

    @property
    def type(self) -> str:
        raise RuntimeError("not loaded")


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": {"content": [Unread()]}}]},
        {"output": [{"type": "message", "content": [Unread()]}]},
        {"content": [Unread()]},
        SimpleNamespace(content=[Unread()]),
    ],
    ids=["openai-chat", "openai-responses", "anthropic", "LangChain"],
)
def test_a_block_that_does_not_tell_its_kind_ends_no_summary(response: Any) -> None:
    assert answer_of(response).finish_reason is None
    if isinstance(response, SimpleNamespace):
        assert to_answer(response).finish_reason is None


def adk(**options: Any) -> Any:
    from contextfold.integrations.google_adk import CompactionPlugin

    return CompactionPlugin(**options)


def adk_events(**options: Any) -> Any:
    from contextfold.integrations.google_adk import EventsSummarizer

    return EventsSummarizer(**options)


def haystack(**options: Any) -> Any:
    from contextfold.integrations.haystack import ContextfoldCompactor

    return ContextfoldCompactor(**options)


def langgraph(**options: Any) -> Any:
    from contextfold.integrations.langgraph import Context

    return Context.of_window(**options)


def strands(**options: Any) -> Any:
    from contextfold.integrations.strands import CompactionManager

    return CompactionManager(**options)


@pytest.mark.parametrize("face", [adk, adk_events, haystack, langgraph, strands])
def test_a_face_that_sends_nothing_refuses_it_when_it_is_made(face: Callable[..., Any]) -> None:
    with pytest.raises(PolicyError, match="same"):
        face(window=20_000, summarizer="same")
    assert face(window=20_000, summarizer="extractive")


def test_a_node_that_is_given_no_compactor_says_so() -> None:
    from contextfold.integrations.langgraph import Context

    with pytest.raises(PolicyError, match="must be a Compactor"):
        Context("no compactor")  # type: ignore[arg-type]
