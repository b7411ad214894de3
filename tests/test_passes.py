"""What a pass does under each knob of the policy, seen from the outside: the view, the ledger, the events."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from building import conversation
from contextfold import (
    CannotFit,
    Compaction,
    CompactionResult,
    Compactor,
    ContextOverflow,
    InputError,
    Policy,
    SummaryFailed,
    count_tokens,
)
from contextfold.messages import Message
from contextfold.policy import Budgets, Oversized, Pins, ToolOutputs
from contextfold.testing import LimitedSummarizer, ScriptedSummarizer
from effort import crossed, examples
from test_compactor import Wire, summary_of


def fates(out: CompactionResult) -> dict[int, tuple[str, str]]:
    return {entry.index: (entry.fate, entry.reason) for entry in out.ledger}


def grown(wire: Wire, steps: int, start: int = 1000) -> Wire:
    """The conversation with more steps behind it."""
    more = (
        json.dumps(conversation(steps)[2:])
        .replace('"call_', f'"call_{start}_')
        .replace("Step ", f"Round {start}, step ")
    )
    return [*wire, *json.loads(more)]


def after_passes(compactor: Compactor, wire: Wire, passes: int) -> tuple[CompactionResult, Wire]:
    out = compactor.compact(wire)
    for number in range(passes - 1):
        wire = grown(wire, 45, start=number)
        out = compactor.compact(wire, previous=out.compaction)
        assert out.changed
    return out, wire


def test_pins_survive_any_number_of_passes_with_their_whole_group() -> None:
    """By id, by tool, by metadata, by predicate."""
    wire = conversation(80)
    wire[4] = {**wire[4], "id": "keep-me"}
    call = {"id": "plan_1", "type": "function", "function": {"name": "save_plan", "arguments": '{"text": "port 8471"}'}}
    wire[20:20] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "plan_1", "content": "saved"},
    ]
    pins = Pins(ids={"keep-me"}, tools={"save_plan"}, predicate=lambda message: "Step 30" in message.text)
    compactor = Compactor(window=8_000, policy=Policy(pins=pins))
    out, grown_wire = after_passes(compactor, wire, 5)
    for index in (4, 5, 20, 21, 64, 65):
        assert fates(out)[index] == ("pinned", "pinned by policy")
        assert any(message is grown_wire[index] for message in out.messages)


def test_a_message_can_be_pinned_by_its_metadata() -> None:
    wire = [
        {"type": "human", "content": "word " * 900, "additional_kwargs": {"pin": True} if n == 3 else {}}
        for n in range(9)
    ]
    out = Compactor(window=8_000, policy=Policy(pins=Pins(metadata={"pin": True}))).compact(wire)
    assert fates(out)[3][0] == "pinned"
    assert fates(out)[2][0] == "summarized"


def test_pins_larger_than_the_window_are_an_error_that_says_so() -> None:
    with pytest.raises(CannotFit, match="pinned by policy"):
        Compactor(window=8_000, policy=Policy(pins=Pins(tools={"read_file"}))).compact(conversation(80))


def test_the_first_user_message_stays_by_default_and_goes_when_told() -> None:
    wire = conversation(80)
    wire[30:30] = [{"role": "user", "content": "Now look at the ledger, too. " * 40}]
    assert fates(Compactor(window=8_000).compact(wire))[1] == ("pinned", "first user message")
    out = Compactor(window=8_000, policy=Policy(first_user=False, recent_users=0)).compact(wire)
    assert fates(out)[1][0] == "summarized"
    assert out.messages[1]["content"].startswith("<conversation_summary>")


def test_recent_user_messages_stay_beyond_the_tail_within_their_budget() -> None:
    wire = conversation(80)
    for place in range(150, 10, -20):
        wire[place:place] = [{"role": "user", "content": f"Remark {place}: " + "mind the totals. " * 12}]
    few = Compactor(window=8_000, policy=Policy(recent_users=0.02)).compact(wire)
    more = Compactor(window=8_000).compact(wire)
    kept = [[n for n, (_, why) in fates(out).items() if "recent user" in why] for out in (few, more)]
    assert 0 < len(kept[0]) < len(kept[1]) < 8
    none = Compactor(window=8_000, policy=Policy(recent_users=0)).compact(wire)
    assert not any("recent user" in why for _, why in fates(none).values())


@pytest.mark.parametrize("keep", [("messages", 6), ("tokens", 1_500), ("fraction", 0.2)])
def test_keep_sets_the_verbatim_tail(keep: Any) -> None:
    wire = conversation(80)
    out = Compactor(window=8_000, keep=keep).compact(wire)
    tail = [index for index, (fate, _) in fates(out).items() if fate == "kept"]
    assert tail == list(range(len(wire) - len(tail), len(wire)))
    if keep[0] == "messages":
        assert len(tail) in (6, 7)
    else:
        assert 600 < sum(len(json.dumps(wire[index])) for index in tail) / 2.2 < 2_600


def test_a_trigger_by_messages_fires_on_their_number_and_ends_below_it() -> None:
    wire = conversation(30)
    compactor = Compactor(window=1_000_000, trigger=("messages", 50))
    assert not compactor.compact(wire[:49]).changed
    out = compactor.compact(wire[:50])
    assert out.trigger == "messages:50"
    assert len(out.messages) < 50
    assert not compactor.compact(wire[:50], previous=out.compaction).changed


def test_clauses_are_any_of_and_within_one_all_of() -> None:
    wire = conversation(30)
    both = Compactor(window=1_000_000, trigger={"messages": 40, "tokens": 500_000})
    assert not both.compact(wire).changed
    either = Compactor(window=1_000_000, trigger=[{"messages": 40, "tokens": 500_000}, ("messages", 60)])
    assert either.compact(wire).trigger == "messages:60"


def test_off_means_off_and_a_trigger_in_tokens_holds_beside_another() -> None:
    wire = conversation(80)
    assert not Compactor(window=8_000, trigger=None).compact(wire).changed
    out = Compactor(window=100_000, trigger=[("fraction", 0.8), ("tokens", 6_000)]).compact(wire)
    assert out.trigger == "tokens:6000"
    assert out.tokens_after < 6_000


def test_an_explicit_target_is_met_or_refused_and_a_default_one_gives_way() -> None:
    wire = [{"role": "system", "content": "Rule. " * 2_150}, *conversation(40)[1:]]
    with pytest.raises(CannotFit) as caught:
        Compactor(window=8_000, target=("fraction", 0.5)).compact(wire)
    assert caught.value.limit == 4_000
    out = Compactor(window=8_000).compact(wire)
    assert 4_000 < out.tokens_after <= out.target < 6_400


def test_a_pass_that_frees_too_little_is_not_made_while_the_view_fits() -> None:
    """A rewrite has to pay."""
    wire = [{"role": "system", "content": "Rule. " * 2_750}, *conversation(6)[1:]]
    out = Compactor(window=8_000, policy=Policy(minimum_gain=0.3)).compact(wire)
    assert not out.changed
    assert "less than the minimum" in out.events[-1].message


def test_with_a_summarizer_that_costs_something_the_cheap_tiers_come_first() -> None:
    wire = conversation(40, words=600)
    summarizer = ScriptedSummarizer(lambda prompt: "never asked")
    policy = Policy(tool_outputs=ToolOutputs(limit=50), budgets=Budgets(summary=0.2, recent=0.3))
    out = Compactor(window=30_000, policy=policy, summarizer=summarizer).compact(wire)
    assert out.changed
    assert summarizer.prompts == []
    assert out.ledger.counts()["shortened"] > 5
    assert out.ledger.counts()["summarized"] == 0
    assert any(event.name == "tier_applied" and event.data["saved"] > 0 for event in out.events)
    assert out.tokens_after <= out.target


def test_an_oversized_newest_result_is_clipped_with_a_marker_and_stays_a_result() -> None:
    wire = conversation(3)
    wire[-1] = {**wire[-1], "content": "\n".join(f"line {n} of the log with value {n * 7}" for n in range(9_000))}
    out = Compactor(window=8_000).compact(wire)
    assert out.tokens_after <= out.target
    assert fates(out)[len(wire) - 1] == ("shortened", "oversized")
    assert out.messages[-1]["tool_call_id"] == wire[-1]["tool_call_id"]
    assert "shortened]" in out.messages[-1]["content"]
    with pytest.raises(CannotFit, match="clipped"):
        Compactor(window=8_000, policy=Policy(oversized=Oversized(enabled=False))).compact(wire)


def test_a_large_result_beside_a_pending_call_is_clipped_and_the_call_is_not() -> None:
    wire = conversation(3)
    second = {
        "id": "waits",
        "type": "function",
        "function": {"name": "deploy", "arguments": json.dumps({"x": "y" * 900})},
    }
    wire[-2] = {**wire[-2], "tool_calls": [*wire[-2]["tool_calls"], second]}
    wire[-1] = {**wire[-1], "content": "many words of output here " * 9_000}
    out = Compactor(window=8_000).compact(wire)
    assert out.messages[-2] is wire[-2]
    assert "shortened]" in out.messages[-1]["content"]


def test_a_large_call_that_the_user_interrupted_does_not_end_the_conversation() -> None:
    """Nobody answers it any more, and the agent, who would show that, is never asked again where no view can be had."""
    wire = conversation(3)
    code = "\n".join(f"row {n} of the module with value {n * 7}" for n in range(9_000))
    call = {"id": "waits", "type": "function", "function": {"name": "write", "arguments": json.dumps({"text": code})}}
    wire.append({"role": "assistant", "content": "I write it.", "tool_calls": [call]})
    with pytest.raises(CannotFit, match="clipped"):  # about to run: it stays as it was asked for
        Compactor(window=8_000).compact(wire)
    wire.append({"role": "user", "content": "Stop, write it in Go."})
    out = Compactor(window=8_000).compact(wire)
    assert out.tokens_after <= out.target
    assert fates(out)[len(wire) - 2] == ("shortened", "oversized")
    written, answer, said = out.messages[-3:]
    assert (written["tool_calls"][0]["id"], answer["tool_call_id"], said) == ("waits", "waits", wire[-1])
    again = Compactor(window=1_000_000).compact(wire[:-1], previous=out.compaction)
    assert again.messages[-1] is wire[-2], "the user took the interruption back: the call is about to run"
    assert again.compaction is None


@pytest.mark.parametrize(("role", "place"), [("system", "after_system"), ("user", "after_first_user")])
def test_the_summary_has_the_role_and_the_place_it_was_given(role: Any, place: Any) -> None:
    out = Compactor(window=8_000, policy=Policy(summary_role=role, summary_place=place)).compact(conversation(80))
    summary = summary_of(out)
    assert summary["role"] == role
    before = [message["role"] for message in out.messages[: out.messages.index(summary)]]
    assert set(before) == ({"system"} if place == "after_system" else {"system", "user"})


def test_evidence_can_be_switched_off() -> None:
    out = Compactor(window=8_000, policy=Policy(evidence=False)).compact(conversation(80))
    assert out.summary is not None
    assert out.summary.evidence == ""
    assert out.summary.text


def test_neighbors_are_joined_where_roles_must_alternate_and_only_there() -> None:
    wire = conversation(80)
    roles = [m["role"] for m in Compactor(window=8_000, policy=Policy(alternate=True)).compact(wire).messages]
    assert not any(one == two == "user" for one, two in itertools.pairwise(roles))
    apart = Compactor(window=8_000).compact(wire).messages
    assert [message["role"] for message in apart[1:3]] == ["user", "user"]


def test_instructions_reach_the_summarizer_and_the_language_is_the_users() -> None:
    wire = conversation(80)
    wire[1] = {"role": "user", "content": "请找出发票延迟的原因，绝对不要修改 ledger_2019 表。"}
    summarizer = ScriptedSummarizer(lambda prompt: "发票延迟的原因尚未找到。")
    compactor = Compactor(window=8_000, summarizer=summarizer)
    out = compactor.compact(wire, instructions="Mention every port.")
    assert all("Mention every port." in prompt for prompt in summarizer.prompts)
    assert "Chinese" in summarizer.prompts[0]
    assert out.summary is not None
    assert out.summary.language == "zh"


def test_a_second_pass_updates_the_summary_instead_of_asking_about_everything_again() -> None:
    summarizer = ScriptedSummarizer(lambda prompt: f"Summary number {len(summarizer.prompts)}.")
    compactor = Compactor(window=8_000, summarizer=summarizer)
    out, _ = after_passes(compactor, conversation(80), 2)
    assert "Summary number 1." in summarizer.prompts[-1]
    assert "Step 3:" in summarizer.prompts[0]
    assert "Step 3:" not in summarizer.prompts[-1]
    assert out.summary is not None
    assert "<conversation_summary>" not in out.summary.text


def test_a_window_that_a_refusal_taught_is_respected_at_all_later_passes() -> None:
    """Also behind a pass in which nothing was refused."""
    summarizer = LimitedSummarizer(2_500)
    compactor = Compactor(window=16_000, summarizer=summarizer)
    wire = conversation(160)
    out = compactor.compact(wire)
    refused = sum(event.name == "summary_overflowed" for event in out.events)
    assert refused
    record = Compaction.from_json(out.compaction.to_json()) if out.compaction else None
    for more in (90, 180, 270):
        again = Compactor(window=16_000, summarizer=summarizer).compact(grown(wire, more), previous=record)
        assert again.changed
        assert not any(event.name == "summary_overflowed" for event in again.events)
        record = again.compaction


def test_a_failed_summary_is_not_asked_for_again_until_something_changed() -> None:
    asked = 0

    def down(prompt: str) -> str:
        nonlocal asked
        asked += 1
        raise TimeoutError("too slow")

    wire = conversation(36)
    compactor = Compactor(window=8_000, policy=Policy(summary={"retries_on_failure": 0}), summarizer=down)
    first = compactor.compact(wire)
    assert not first.changed
    assert asked
    before = asked
    assert compactor.compact(wire).messages == first.messages
    assert asked == before
    compactor.compact(grown(wire, 1))
    assert asked > before


def test_what_a_framework_raises_to_steer_a_program_passes_through() -> None:
    class GraphBubbleUp(Exception):
        pass

    def interrupted(prompt: str) -> str:
        raise GraphBubbleUp

    with pytest.raises(GraphBubbleUp):
        Compactor(window=8_000, summarizer=interrupted).compact(conversation(80))


@pytest.mark.parametrize("answer", ["", "   ", "Previous conversation was too long to summarize."])
def test_no_blank_or_placeholder_answer_ever_becomes_a_summary(answer: str) -> None:
    strict = Policy(fallback=None)
    with pytest.raises(SummaryFailed) as caught:
        Compactor(window=8_000, policy=strict, summarizer=lambda prompt: answer).compact(conversation(80))
    assert len(caught.value.attempts) >= 2


def test_a_summary_longer_than_its_room_is_cut_and_said() -> None:
    out = Compactor(window=8_000, summarizer=lambda prompt: "A finding about module_7. " * 500).compact(
        conversation(120)
    )
    assert out.tokens_after <= out.target


@given(st.integers(0, 30))
@settings(max_examples=examples(10), deadline=None)
def test_tools_and_system_prompt_never_push_a_pass_over_its_target(copies: int) -> None:
    tools = [{"name": f"tool_{n}", "description": "does things " * 10, "input_schema": {}} for n in range(copies)]
    out = Compactor(window=8_000).compact(conversation(80), system="Be brief. " * copies, tools=tools)
    assert out.tokens_after <= out.target


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((None,), "must be a list of messages, not NoneType"),
        (({"messages": []},), "pass the list inside it"),
        (("text",), "not str"),
        (([], "record"), "previous must be the compaction"),
        (([], {"version": 1}), "Compaction.from_json"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_in_one_line(arguments: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Compactor(window=8_000).compact(*arguments)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not a compaction record"),
        ("[]", "expected a JSON object"),
        ('{"version": 99}', "version 99"),
        ('{"version": 1}', "format"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Compaction.from_json(text)


def test_a_record_is_small_however_long_the_history() -> None:
    """It grows with what the view holds, not with the history."""
    long = Compactor(window=8_000).compact(conversation(800)).compaction
    short = Compactor(window=8_000).compact(conversation(100)).compaction
    assert long is not None
    assert short is not None
    assert len(long.to_json()) < 2 * len(short.to_json()) < 60_000


def test_an_orphan_at_the_end_does_not_push_the_newest_turn_out() -> None:
    wire = [*conversation(80), {"role": "tool", "tool_call_id": "of nobody", "content": "late words"}]
    out = Compactor(window=8_000, keep=("messages", 1)).compact(wire)
    assert any(message is wire[-3] for message in out.messages)
    assert any(message is wire[-2] for message in out.messages)
    assert "late words" in out.messages[-1]["content"]


def unread(characters: int) -> Wire:
    """A conversation just below the trigger of 0.8 of 8,000 tokens, and a result that the model has not read."""
    call = {"id": "big_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
    text = "".join(f"row {n} says nothing\n" for n in range(characters // 20))
    return [
        *conversation(60)[:100],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "big_1", "content": text},
    ]


@pytest.mark.parametrize("trigger", [None, ("fraction", 0.8)])
def test_a_default_trigger_waits_for_large_results_to_be_read_and_an_explicit_one_does_not(trigger: Any) -> None:
    """Until then they cannot leave, and would take the place of what could be carried."""
    wire = unread(3_000)
    size = count_tokens(wire)
    window = int(size / 0.87)  # above the trigger, below the window
    own = {} if trigger is None else {"trigger": trigger}
    compactor = Compactor(window=window, **own)
    first = compactor.compact(wire)
    assert first.changed is (trigger is not None)
    wire += [{"role": "assistant", "content": "Read."}, {"role": "user", "content": "Go on."}]
    assert compactor.compact(wire, previous=first.compaction).changed is (trigger is None)


def test_a_default_trigger_waits_no_longer_than_the_view_fits() -> None:
    wire = unread(3_000)
    out = Compactor(window=int(count_tokens(wire) / 0.99)).compact(wire)
    assert out.changed
    assert out.tokens_after <= out.target


@crossed(kept=(200, 4_000, 8_000), quick=1)
def test_evidence_keeps_its_room_beside_long_results_that_stay(kept: int) -> None:
    """What a pass leaves grows with what must stay, so that a long result does not push out what is known."""
    wire = [*conversation(400)[:-1], *unread(kept)[-2:]]
    out = Compactor(window=16_000).compact(wire, force=False)
    assert out.changed
    assert out.summary is not None
    assert count_tokens([{"role": "user", "content": out.summary.evidence}]) > 0.25 * 16_000
    assert out.tokens_after <= out.target <= 0.68 * 16_000


def test_where_nothing_is_left_to_evict_a_refused_view_quotes_less() -> None:
    compactor = Compactor(window=16_000, policy=Policy(oversized=Oversized(enabled=False)))
    wire = [*conversation(400)[:-1], *unread(8_000)[-2:]]
    out = compactor.compact(wire)
    views: list[Wire] = []
    results: list[CompactionResult] = []

    def send(view: Wire) -> str:
        views.append(view)
        if len(views) == 1:
            raise ContextOverflow(f"maximum context length is {count_tokens(view) - 1_500} tokens")
        return "ok"

    assert compactor.call(send, wire, previous=out.compaction, on_result=results.append) == "ok"
    (sent,) = results
    assert sent.summary is not None
    assert out.summary is not None
    assert fates(sent) == fates(out), "every message stays where it was"
    assert 0 < len(sent.summary.evidence) < len(out.summary.evidence)
    assert count_tokens(views[1]) < count_tokens(views[0])


# ---- what a caller says with a number or by name ----


def answered(prompts: list[str]) -> Any:
    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "The user asks about rooms, one after the other."

    return summarize


def test_what_keep_names_stays_word_for_word_and_no_message_pays_for_a_pass_of_its_own() -> None:
    """A trigger below what ``keep`` holds: said once, a pass for a quarter more, and nothing of the 20 is cut."""
    prompts, events = list[str](), list[Any]()
    compactor = Compactor(
        window=64_000,
        trigger=("tokens", 3_000),
        keep=("messages", 20),
        summarizer=answered(prompts),
        on_event=events.append,
    )
    wire: list[dict[str, Any]] = []
    out, passes = None, 0
    for turn in range(60):
        role = "assistant" if turn % 2 else "user"
        wire.append({"role": role, "content": f"Room {turn}: " + f"the wall {turn} is dry and the roof holds. " * 25})
        out = compactor.compact(wire, previous=out.compaction if out else None)
        passes += out.changed
        assert out.messages[-20:] == wire[-20:]
    assert 4 <= passes <= 8
    assert len(prompts) == passes
    assert [event.name for event in events].count("trigger_below_keep") == 1


@pytest.mark.parametrize("summarizer", ["model", None])
def test_outputs_compressed_by_name_are_seen_to_spare_the_summary(summarizer: str | None) -> None:
    prompts: list[str] = []
    log = "".join(f"line {number}: compiled module_{number}.c without warnings\n" for number in range(300))
    wire: list[dict[str, Any]] = [{"role": "user", "content": "Build it."}]
    for number in range(6):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "make", "arguments": "{}"}}
        wire.append({"role": "assistant", "content": None, "tool_calls": [call]})
        wire.append({"role": "tool", "tool_call_id": f"c{number}", "content": log})
    wire += [{"role": "assistant", "content": "Built."}, {"role": "user", "content": "Thanks. And now?"}]
    policy = Policy(trigger=("tokens", 20_000), keep=("messages", 4), tool_outputs={"limit": 300})
    out = Compactor(window=64_000, policy=policy, summarizer=answered(prompts) if summarizer else None).compact(wire)
    assert out.changed
    assert prompts == []
    assert [entry.fate for entry in out.ledger if entry.fate == "summarized"] == []
    assert [entry.index for entry in out.ledger if entry.fate == "shortened"] == [2, 4, 6, 8, 10]
    assert out.tokens_after <= out.target


@pytest.mark.parametrize("summarized_before", [False, True])
def test_no_summary_is_asked_for_where_leaving_out_what_the_provider_compacted_is_enough(
    summarized_before: bool,
) -> None:
    """What stands before its item is not read, so it takes no room; and what follows it stays word for word."""

    def turns(count: int, start: int) -> Wire:
        asked = [{"role": "user", "content": f"Question {n}: " + "word " * 100} for n in range(start, start + count)]
        told = [{"role": "assistant", "content": f"Answer {n}: " + "reply " * 150} for n in range(start, start + count)]
        return [message for pair in zip(asked, told, strict=True) for message in pair]

    model = ScriptedSummarizer(lambda _: "They asked, and were answered.")
    compactor = Compactor(window=6_000, summarizer=model)
    first = compactor.compact(turns(19, 0), format="anthropic") if summarized_before else None
    assert first is None or summary_of(first)
    known = turns(19, 0) if summarized_before else []
    asked = len(model.prompts)
    native = {"role": "assistant", "content": [{"type": "compaction", "content": "All of it."}]}
    wire = [*known, *turns(8, 100), {"role": "user", "content": "Go on."}, native]
    record, behind = first.compaction if first else None, turns(20, 200)
    for seen in range(1, len(behind), 2):
        out = compactor.compact([*wire, *behind[:seen]], record, format="anthropic")
        record = out.compaction
        if out.changed:
            break
    assert out.changed
    assert len(model.prompts) == asked
    assert "the provider's own compaction item stands for it" in {reason for _, reason in fates(out).values()}
    sent = json.dumps(out.messages)
    assert all(json.dumps(message["content"]) in sent for message in [native, *behind[:seen]])
    assert sent.count("<conversation_summary>") == summarized_before


def test_a_pass_asks_each_message_for_its_calls_no_more_than_some_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it looks for in all that was ever said takes the longer the older a conversation is."""
    wire = conversation(160)
    compactor = Compactor(window=16_000)
    out = compactor.compact(wire)
    more = grown(wire, 40)
    asked = Counter[str]()

    def counted(name: str) -> property:
        given = getattr(Message, name).fget

        def get(message: Message) -> Any:
            asked[name] += 1
            return given(message)

        return property(get)

    for name in ("tool_calls", "is_bound"):
        monkeypatch.setattr(Message, name, counted(name))
    assert compactor.compact(more, out.compaction).changed
    assert asked["tool_calls"] < 3 * len(more)
    assert asked["is_bound"] < 1.2 * len(more)
