"""The checkers of the laws are checked: a faultless outcome passes, and every kind of sabotage is noticed.

What belongs here: outcomes made by hand. What does not: outcomes of the engine (``test_laws_properties``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import laws
from contextfold import count_tokens
from contextfold.conversation.ledger import Entry
from contextfold.testing import render
from contextfold.testing.plots import (
    AssistantSays,
    Instruction,
    Plot,
    PlotCall,
    PlotWords,
    Result,
    ToolsAnswer,
    UserSays,
)

STORY: Plot = (
    Instruction(PlotWords("english", 1)),
    UserSays(PlotWords("english", 2)),
    AssistantSays(thinking=PlotWords("english", 1), calls=(PlotCall("c1"), PlotCall("c2"))),
    ToolsAnswer((Result("c1", PlotWords("log", 3)), Result("c2", PlotWords("code", 3)))),
    AssistantSays(PlotWords("english", 2)),
    UserSays(PlotWords("english", 1)),
    AssistantSays(thinking=PlotWords("english", 1), calls=(PlotCall("c3"),)),
    ToolsAnswer((Result("c3", PlotWords("log", 2)),)),
)
SUMMARY = {"role": "user", "content": "<conversation_summary>\nWhat was said before.\n</conversation_summary>"}
FORMATS = ("openai-chat", "openai-responses", "anthropic", "langchain", "gemini", "bedrock-converse")


class Outcome(SimpleNamespace):
    """What a compactor returns, as far as the laws look at it. ``fates`` become the ledger."""

    @property
    def ledger(self) -> Any:
        entries = [Entry(index, None, fate, reason) for index, (fate, reason) in enumerate(self.fates)]
        counts = {fate: sum(entry.fate == fate for entry in entries) for fate in laws.FATES}
        return _Ledger(entries, counts)

    @property
    def tokens_after(self) -> int:
        return count_tokens(self.messages)


class _Ledger(list[Any]):
    def __init__(self, entries: list[Any], counts: dict[str, int]) -> None:
        super().__init__(entries)
        self.counts = lambda: counts


def untouched(history: list[Any]) -> Outcome:
    """Nothing was done."""
    return Outcome(
        messages=list(history),
        fates=[("kept", "recent")] * len(history),
        compaction=None,
        changed=False,
        tokens_before=9_999,
    )


def summarized(history: list[Any], start: int, stop: int) -> Outcome:
    """Messages ``start`` to ``stop`` are in a summary after the first user message."""
    out = untouched(history)
    out.messages = [*history[:start], SUMMARY, *history[stop:]]
    out.fates = [("summarized", "covered") if start <= n < stop else fate for n, fate in enumerate(out.fates)]
    summary = SimpleNamespace(text="What was said before.")
    out.compaction = SimpleNamespace(summary=summary, tokens_after=out.tokens_after)
    out.changed = True
    return out


def found(format: str, history: list[Any], out: Outcome, **more: Any) -> set[str]:
    """The laws that are said to be violated."""
    return {
        text.partition(":")[0] for text in laws.violations(format, history, out, target=9_000, trigger=9_500, **more)
    }


@pytest.mark.parametrize("format", FORMATS)
def test_an_untouched_history_violates_nothing(format: str) -> None:
    history = render(STORY, format)
    assert found(format, history, untouched(history)) == set()


def test_a_proper_summary_violates_nothing() -> None:
    history = render(STORY, "openai-chat")
    prompts = [str(message) for message in history]
    assert found("openai-chat", history, summarized(history, 2, 6), accepted=prompts) == set()


def _without(place: int) -> Callable[[Outcome], None]:
    return lambda out: out.messages.pop(place)


def _fate(place: int, fate: str, reason: str = "because") -> Callable[[Outcome], None]:
    return lambda out: out.fates.__setitem__(place, (fate, reason))


def _swapped(one: int, other: int) -> Callable[[Outcome], None]:
    def swap(out: Outcome) -> None:
        out.messages[one], out.messages[other] = out.messages[other], out.messages[one]

    return swap


def _replaced(place: int, **fields: Any) -> Callable[[Outcome], None]:
    return lambda out: out.messages.__setitem__(place, {**out.messages[place], **fields})


SABOTAGE: dict[str, tuple[str, Callable[[Outcome], None]]] = {
    "a result is lost": ("integrity", _without(3)),
    "a call is lost and its result stays": ("integrity", _without(2)),
    "a result stands before its call": ("integrity", _swapped(2, 3)),
    "one of two parallel calls is lost": (
        "integrity",
        lambda out: _replaced(2, tool_calls=out.messages[2]["tool_calls"][:1])(out),
    ),
    "reasoning was rewritten": ("integrity", _replaced(7, reasoning_content="better")),
    "the reasoning of the newest turn is lost": ("integrity", _replaced(7, reasoning_content="")),
    "the newest message is summarized": ("integrity", _fate(8, "summarized")),
    "the view ends with the model": ("integrity", _without(8)),
    "the view begins with the model": ("integrity", _without(1)),
    "the system message is lost": ("verbatim", _without(0)),
    "the system message was rewritten": ("verbatim", _replaced(0, content="Be brief.")),
    "the newest user message was cut": ("verbatim", _replaced(6, content="note")),
    "the first user message is lost": ("verbatim", _without(1)),
    "a message has no fate": ("conservation", lambda out: out.fates.pop()),
    "a message has a fate that there is not": ("conservation", _fate(3, "lost")),
    "a drop has no reason": ("conservation", _fate(3, "dropped", "")),
    "a dropped message is still there": ("conservation", _fate(3, "dropped")),
    "a shortened message is as it was": ("conservation", _fate(3, "shortened")),
    "a kept message was cut": ("conservation", _replaced(3, content="note")),
    "a summary that no record knows": ("one-summary", lambda out: out.messages.append(SUMMARY)),
    "the caller's list is handed back": ("mutation", lambda out: setattr(out, "messages", out.given)),
}


@pytest.mark.parametrize("case", SABOTAGE)
def test_sabotage_is_noticed(case: str) -> None:
    law, harm = SABOTAGE[case]
    history = render(STORY, "openai-chat")
    out = untouched(history)
    out.given = history
    harm(out)
    assert law in found("openai-chat", history, out)


def test_a_text_that_no_prompt_had_is_noticed() -> None:
    history = render(STORY, "openai-chat")
    prompts = [str(message) for message in history if message.get("tool_call_id") != "c2"]
    assert "conservation" in found("openai-chat", history, summarized(history, 2, 6), accepted=prompts)
    assert found("openai-chat", history, summarized(history, 2, 6), accepted=prompts, told=frozenset({4})) == set()


def test_a_text_that_was_cut_on_its_way_to_the_summarizer_is_noticed() -> None:
    text = "".join(f"line {n} of the output; " for n in range(400))
    assert laws.was_read(text, laws.squeezed(f"before {text} after"))
    assert laws.was_read(text, laws.squeezed(text[:5_000]) + "segment 2" + laws.squeezed(text[5_000:]))
    assert not laws.was_read(text, laws.squeezed(text[: len(text) // 2]))


def test_two_summaries_are_noticed() -> None:
    history = render(STORY, "openai-chat")
    out = summarized(history, 2, 6)
    out.messages.insert(2, dict(SUMMARY))
    assert "one-summary" in found("openai-chat", history, out)


def test_a_rewritten_prefix_is_noticed() -> None:
    history = render(STORY, "openai-chat")
    before = copy.deepcopy(history[:6])
    assert found("openai-chat", history, untouched(history), previous_view=before) == set()
    before[2]["content"] = "something else"
    assert found("openai-chat", history, untouched(history), previous_view=before) == {"stability"}


@pytest.mark.parametrize(
    ("target", "trigger", "before"), [(10, 9_500, 9_999), (9_000, 8_000, 9_999), (9_000, 9_500, 9)]
)
def test_a_pass_that_misses_its_target_is_noticed(target: int, trigger: int, before: int) -> None:
    history = render(STORY, "openai-chat")
    out = summarized(history, 2, 6)
    out.tokens_before = before
    problems = laws.violations("openai-chat", history, out, target=target, trigger=trigger)
    assert {problem.partition(":")[0] for problem in problems} == {"progress"}


def test_parted_reasoning_items_are_noticed() -> None:
    """Responses: a reasoning item and the call that came of it."""
    history = render(STORY, "openai-responses")
    out = untouched(history)
    place = next(n for n, item in enumerate(history) if item.get("type") == "reasoning")
    item = out.messages.pop(place)
    out.messages.insert(1, item)
    assert "integrity" in found("openai-responses", history, out)


def test_lost_pending_calls_and_alternation_are_noticed() -> None:
    history = render(STORY[:-1], "anthropic")
    out = untouched(history)
    out.messages.pop()
    assert "integrity" in found("anthropic", history, out)
    out = untouched(history)
    out.messages.insert(2, {"role": "user", "content": "more"})
    assert "integrity" in found("anthropic", history, out)


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("anthropic", {"role": "user", "content": []}),
        ("anthropic", {"role": "user", "content": [{"type": "text", "text": " "}]}),
        ("anthropic", {"role": "system", "content": "Be brief."}),
        ("anthropic", {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}),
        ("openai-chat", {"role": "user", "content": None}),
        ("openai-chat", {"role": "assistant", "content": "yes", "tool_calls": []}),
        ("openai-responses", {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}),
    ],
)
def test_what_a_format_refuses_is_noticed(format: str, message: dict[str, Any]) -> None:
    history = [*render(STORY, format), message]
    problems = laws.violations(format, history, untouched(history), target=9_000, trigger=9_500)
    assert any("a provider refuses the view" in problem for problem in problems)


def test_a_history_that_begins_with_the_model_is_noticed() -> None:
    history = [{"role": "assistant", "content": "Hello."}, *render(STORY[1:], "anthropic")]
    assert "integrity" in found("anthropic", history, untouched(history))
