"""What users said stays by its worth, long pastes with a visible cut, and the newest todo list stays whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextfold import Compactor, Policy, count_tokens


def talk(turns: int, said: dict[int, str] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    for n in range(turns):
        text = (said or {}).get(n, f"Look at part {n}.")
        found += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"Part {n}: " + f"word{n} " * 150},
        ]
    return found


def todo(n: int, steps: list[dict[str, str]], name: str = "write_todos") -> list[dict[str, Any]]:
    call = {"id": f"todo{n}", "type": "function", "function": {"name": name, "arguments": json.dumps({"todos": steps})}}
    result = {"role": "tool", "tool_call_id": f"todo{n}", "content": "ok"}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def users(view: list[dict[str, Any]]) -> list[str]:
    return [entry["content"] for entry in view if entry["role"] == "user"]


def test_a_rule_stays_before_newer_chatter() -> None:
    rule = "Never write to the production database of the shop, whatever the ticket says about it."
    chatter = {n: f"Remark {n}: this is only how I see it, with some more words around it." for n in range(4, 56)}
    view = users(Compactor(window=8_000).compact(talk(60, {**chatter, 3: rule})).messages)
    assert rule in view
    assert chatter[4] not in view


def test_newer_words_that_stand_above_the_summary_hold_against_it() -> None:
    """Where roles need not alternate, what users said stands there: "later messages" would let the old value win."""
    said = {3: "Use port 8000 for the gateway.", 18: "Use port 9000 instead."}
    history = [entry | {"content": entry["content"][:60]} for entry in talk(400, said)]
    texts = [entry["content"] for entry in Compactor(window=8_000).compact(history).messages]
    (place,) = [n for n, text in enumerate(texts) if text.startswith("<conversation_summary>")]
    assert said[18] in texts[:place]
    assert said[3] in texts[place]
    assert "newer messages take precedence" in texts[place].splitlines()[1]


def test_a_long_paste_stays_with_a_visible_cut() -> None:
    paste = (
        "Here is the log.\n" + "".join(f"line {n} of the paste says nothing new\n" for n in range(400)) + "What now?"
    )
    out = Compactor(window=16_000, policy=Policy(recent_users=0.2)).compact(talk(70, {50: paste}))
    (shown,) = [text for text in users(out.messages) if text.startswith("Here is the log.")]
    assert len(shown) < len(paste) // 2
    assert shown.rstrip().endswith("What now?")
    (entry,) = [entry for entry in out.ledger if entry.index == 101]
    assert entry.fate == "shortened"


def test_the_newest_todo_list_stays_whole_and_earlier_ones_go() -> None:
    old = [{"content": "read the old plan", "status": "in_progress"}]
    new = [{"content": "write the parser", "status": "in_progress"}, {"content": "run it", "status": "pending"}]
    history = [*talk(10), *todo(1, old), *talk(10)[1:], *todo(2, new), *talk(40)[1:]]
    view = Compactor(window=8_000).compact(history).messages
    calls = [entry["tool_calls"][0]["function"]["arguments"] for entry in view if entry.get("tool_calls")]
    assert calls == [json.dumps({"todos": new})]


def test_where_the_work_stands_is_told_where_the_list_itself_has_no_room() -> None:
    steps = [
        {"content": "read the schema", "status": "completed"},
        {"content": "write the parser", "status": "in_progress"},
        {"content": "run the tests", "status": "pending"},
    ]
    history = [
        *talk(4),
        *todo(1, [*steps, *({"content": "x" * 3_000, "status": "pending"} for _ in range(4))]),
        *talk(40)[1:],
    ]
    policy = Policy(pins={"plans": ["write_todos"]}, budgets={"prose": 0.3})
    text = "\n".join(users(Compactor(window=8_000, policy=policy).compact(history).messages))
    assert "- write the parser (in_progress)" in text
    assert "- run the tests\n" in text


def todos(*states: str) -> list[dict[str, str]]:
    return [{"content": f"migrate table_{n}", "status": status} for n, status in enumerate(states, 1)]


@pytest.mark.parametrize("kept", [True, False])
def test_an_earlier_todo_list_is_quoted_nowhere(kept: bool) -> None:
    """What it calls open was done when the next one was written, also where that one stands in the view itself."""
    new = todos("completed", "completed", "in_progress") + ([] if kept else todos(*["pending" + "x" * 900] * 12))
    history = [*talk(4), *todo(1, todos("in_progress", "pending", "pending")), *talk(20)[1:], *todo(2, new)]
    out = Compactor(window=8_000).compact([*history, *talk(40)[1:]])
    assert any(entry.get("tool_calls") for entry in out.messages) == kept
    assert out.summary is not None
    told = f"{out.summary.text}\n{out.summary.evidence}"
    assert "table_1 (in_progress)" not in told
    assert "table_1 status: in_progress" not in told
    assert ("table_3 (in_progress)" in told) == (not kept)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_a_todo_list_that_its_tool_refused_is_not_where_the_work_stands(format: str) -> None:
    good = todo(1, todos("completed", "in_progress"))
    bad = todo(2, "[{'content': 'migrate")  # type: ignore[arg-type]
    bad[-1]["content"] = "Error: todos must be an array"
    history = [*talk(4), *good, *talk(10)[1:], *bad, *talk(40)[1:]]
    if format == "anthropic":
        history = Compactor(trigger=None).compact(history, to=format).messages
        results = [block for entry in history for block in entry["content"] if isinstance(block, dict)]
        (refused,) = [block for block in results if block.get("tool_use_id") == "todo2"]
        refused.update(content="todos must be an array", is_error=True)
    view = str(Compactor(window=8_000).compact(history).messages)
    assert "'todo1'" in view
    assert "migrate table_2" in view
    assert "'todo2'" not in view


def test_tools_that_write_plans_can_be_named() -> None:
    new = [{"content": "write the parser", "status": "in_progress"}]
    history = [*talk(10), *todo(1, new, "my_plan"), *talk(40)[1:]]
    named = Compactor(window=8_000, policy=Policy(pins={"plans": ["my_plan"]})).compact(history).messages
    assert any(entry.get("tool_calls") for entry in named)
    assert not any(entry.get("tool_calls") for entry in Compactor(window=8_000).compact(history).messages)


def test_short_words_of_users_stay_together_rather_than_a_few_long_ones() -> None:
    said = {n: f"Answer {n}: yes." if n % 2 else f"Story {n}: " + f"once upon a time {n} " * 30 for n in range(1, 60)}
    view = users(Compactor(window=8_000).compact(talk(60, said)).messages)
    short = [text for n, text in said.items() if n % 2]
    assert sum(text in view for text in short) >= 0.8 * len(short)


def test_what_users_said_never_takes_more_than_its_share() -> None:
    said = {n: f"Story {n}: " + f"once upon a time {n} " * 10 for n in range(1, 120)}
    for share in (0.05, 0.1, 0.2):
        policy = Policy(recent_users=share)
        out = Compactor(window=8_000, policy=policy).compact(talk(120, said))
        kept = [e.index for e in out.ledger if e.reason == "recent user message"]
        assert kept
        texts = [{"role": "user", "content": talk(120, said)[n]["content"]} for n in kept]
        assert count_tokens(texts) <= share * 8_000 + 10


def test_a_summary_never_parts_calls_from_their_results() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{}"}}
    late = {"role": "tool", "tool_call_id": "c1", "content": "done at last"}
    start = [*talk(3), {"role": "assistant", "content": None, "tool_calls": [call]}]
    for history in ([*start, *talk(60)[1:], late], [*start, *talk(60)[1:], late, *talk(60)[1:]]):
        view = Compactor(window=8_000).compact(history).messages
        for n, entry in enumerate(view):
            if entry["role"] == "tool":
                assert view[n - 1].get("tool_calls")


def test_what_users_said_stands_before_the_summary_and_is_cached_after_the_next_pass() -> None:
    """Where roles must alternate only the first message does: joined to it, the others could not be told from it."""
    history = talk(60)
    for policy in (Policy(), Policy(alternate=True)):
        compactor, previous = Compactor(window=16_000, policy=policy), None
        views: list[Any] = []
        for turn in (80, 120):
            out = compactor.compact([*history, *talk(turn)[1:]], previous)
            assert out.changed
            views.append(out.messages)
            previous = out.compaction
        places = [next(n for n, m in enumerate(view) if "<conversation_summary>" in m["content"]) for view in views]
        if policy.alternate:
            assert places == [1, 1]
        else:
            assert 3 < places[0] <= places[1]
            assert views[1][: places[0]] == views[0][: places[0]]
            assert {m["role"] for m in views[0][1 : places[0]]} == {"user"}


def test_a_summary_stands_behind_the_only_thing_that_was_asked() -> None:
    history = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Read all parts."}]
    history += [{"role": "assistant", "content": f"Part {n}: " + f"word{n} " * 150} for n in range(60)]
    view = Compactor(window=8_000).compact(history).messages
    assert view[1] == history[1]
    assert view[2]["content"].startswith("<conversation_summary>")
