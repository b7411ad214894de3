"""What users said stays by its worth, long pastes with a visible cut, and the newest todo list stays whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextfold import Compaction, Compactor, Policy, count_tokens, evidence
from contextfold.messages import Message, ToolCall
from contextfold.summary.extractive_facts import Note
from contextfold.summary.plans import plan


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


@pytest.mark.parametrize("more", [{}, {"keep": ("messages", 20)}, {"keep": ("messages", 30)}], ids=str)
def test_a_trigger_that_counts_messages_is_obeyed_however_much_users_say(more: dict[str, Any]) -> None:
    """All that users said stayed, as there was room for it in tokens: after 150 turns the view had 189 messages."""
    most, rule = 40, "Never write to the production database of the shop."
    subject, record, longest = Compactor(window=100_000, policy=Policy(trigger=("messages", most), **more)), None, 0
    history = [entry | {"content": entry["content"][:60]} for entry in talk(100, {3: rule})]
    for stop in range(3, len(history) + 1, 2):
        out = subject.compact(history[:stop], record)
        record = out.compaction
        longest = max(longest, len(out.messages))
    assert longest < most
    assert rule in users(out.messages)


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


@pytest.mark.parametrize("name", ["write_todos", "todowrite", "SetTodoList", "manage_todo_list"])
@pytest.mark.parametrize("asked", [{}, {"todos": None}, {"operation": "read"}, {"operation": "read", "todoList": []}])
def test_a_call_that_asks_for_the_list_leaves_the_list_in_force(name: str, asked: dict[str, Any]) -> None:
    history = [*talk(4), *todo(1, todos("completed", "in_progress"), name), *talk(10)[1:], *todo(2, [], name)]
    history[-2]["tool_calls"][0]["function"]["arguments"] = json.dumps(asked)
    view = str(Compactor(window=8_000).compact([*history, *talk(40)[1:]]).messages)
    assert "'todo1'" in view
    assert "'todo2'" not in view


@pytest.mark.parametrize(
    ("status", "where"),
    [
        *(("completed", "done"), ("Done", "done"), ("已完成", "done"), ("erledigt", "done")),
        *(("incomplete", "open"), ("not_done", "open"), ("未完成", "open"), ("nicht erledigt", "open")),
        *(("partially done", "open"), ("almost done", "open"), ("to be completed", "open")),
        *(("cancelled", ""), ("Skipped", ""), ("已取消", "")),
        *(("完了", "done"), ("対応済み", "done"), ("已结束", "done"), ("已完畢", "done"), ("완료", "done")),
        *(("terminé", "done"), ("completado", "done"), ("concluído", "done"), ("completato", "done")),
        *(("voltooid", "done"), ("готово", "done"), ("ukończone", "done"), ("पूर्ण", "done"), ("مكتمل", "done")),
        *(
            ("進行中", "open"),
            ("未完了", "open"),
            ("미완료", "open"),
            ("pas terminé", "open"),
            ("da completare", "open"),
        ),
        *(("не готово", "open"), ("अपूर्ण", "open"), ("غير مكتمل", "open"), ("未结束", "open")),
        *(
            ("中止", ""),
            ("キャンセル", ""),
            ("终止", ""),
            ("취소", ""),
            ("annulé", ""),
            ("cancelado", ""),
            ("abandoned", ""),
        ),
    ],
)
def test_a_step_is_done_or_open_as_its_status_says_and_neither_where_it_was_given_up(status: str, where: str) -> None:
    facts = plan([Message("assistant", (ToolCall("1", "todo", json.dumps({"todos": todos(status)})),))], {"todo"})
    assert [fact.section for fact in facts] == [where][: bool(where)]


@pytest.mark.parametrize("key", ["done", "completed"])
def test_a_step_may_say_that_it_is_done_without_a_status(key: str) -> None:
    steps = [{"task": "first", key: True}, {"task": "second", key: False}]
    facts = plan([Message("assistant", (ToolCall("1", "todo", json.dumps({"todos": steps})),))], {"todo"})
    assert [(fact.section, fact.text) for fact in facts] == [("done", "first"), ("open", "second")]


@pytest.mark.parametrize(
    "steps",
    [
        "- [x] Read it\n- [-] Mend it\n- [ ] Test it",
        "[x] Read it\n[~] Mend it\n[ ] Test it",
        "# Plan\n1. [X] Read it\n2. [/] Mend it\n3. [ ] Test it\n",
        json.dumps([{"content": "Read it", "status": "completed"}, {"content": "Mend it"}, {"content": "Test it"}]),
        json.dumps([{"step": "Read it", "state": "done"}, {"step": "Mend it"}, {"step": "Test it"}]),
    ],
)
def test_steps_are_read_where_a_list_is_written_as_a_text(steps: str) -> None:
    """A checklist in Markdown, as Roo Code's tool takes it, or JSON within JSON, as some models write it."""
    call = ToolCall("c", "update_todo_list", json.dumps({"todos": steps}))
    found = plan([Message("assistant", (call,))], Policy().pins.plans)
    said = [(fact.section, fact.text.removesuffix(" (in progress)")) for fact in found]
    assert said == [("done", "Read it"), ("open", "Mend it"), ("open", "Test it")]


@pytest.mark.parametrize("text", ["Call a[0] and b[ ] then", "[x](https://example.com) says it", "[1, 2]", "[{"])
def test_a_text_that_is_no_list_has_no_steps(text: str) -> None:
    call = ToolCall("c", "update_todo_list", json.dumps({"todos": text}))
    assert not list(plan([Message("assistant", (call,))], Policy().pins.plans))


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


def task(n: int, name: str, answer: str, **arguments: str | None) -> list[dict[str, Any]]:
    call = {"id": f"task{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    result = {"role": "tool", "tool_call_id": f"task{n}", "content": answer}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def test_where_tasks_stand_that_were_written_down_one_by_one_is_told_as_their_last_change_left_it() -> None:
    """Where a change stays in the view, too. That a task was begun or written down told nothing of what it was."""
    names = ["Read the schema", "Write the parser", "Run the tests", "Ask for a logo", "Ship it"]
    adds = [
        entry
        for n, name in enumerate(names, 1)
        for entry in task(n, "TaskCreate", f"Task #{n} created successfully: {name}", subject=name, description="Soon")
    ]

    def change(n: int, key: int, status: str) -> list[dict[str, Any]]:
        return task(n, "TaskUpdate", f"Updated task #{key} status", taskId=str(key), status=status)

    changes = [*change(11, 1, "in_progress"), *change(12, 1, "completed"), *change(13, 2, "in_progress")]
    changes += [*change(14, 3, "in_progress"), *change(15, 4, "deleted")]
    history = [*talk(4), *adds, *talk(4)[1:], *changes, *talk(40)[1:], *change(16, 3, "completed")]
    out = Compactor(window=8_000, policy=Policy(budgets={"prose": 0.3})).compact(history)
    assert out.summary is not None
    done, _, is_open = out.summary.text.partition("## In progress or open")
    assert all(f"- {name}\n" in done for name in ("Read the schema", "Run the tests"))
    assert "- Write the parser (in_progress)\n- Ship it" in is_open
    assert "Task" not in out.summary.text
    assert "logo" not in out.summary.text
    assert "in_progress" not in out.summary.evidence


def test_a_change_of_a_task_that_says_nothing_of_a_field_leaves_it_as_it_was() -> None:
    adds = task(1, "TaskCreate", "Task #1 created successfully: Ship it", subject="Ship it")
    changes: list[dict[str, str | None]] = [
        {"taskId": "1", "status": "in_progress"},
        {"taskId": "1", "status": None, "subject": None},
    ]
    for n, arguments in enumerate(changes, 2):
        adds += task(n, "TaskUpdate", "Updated task #1", **arguments)
    out = Compactor(window=8_000).compact([*talk(4), *adds, *talk(40)[1:]])
    assert out.summary is not None
    assert "- Ship it (in_progress)" in out.summary.text
    assert "None" not in out.summary.text


def test_a_todo_list_that_changes_a_part_of_an_earlier_one_leaves_the_rest_of_it_in_force() -> None:
    """Cursor's: the newest call holds what changed and nothing else, at times not even in words."""
    whole = [{"id": str(n), **step} for n, step in enumerate(todos("in_progress", *["pending"] * 4), 1)]
    history = [*talk(4), *todo(1, whole, "todo_write"), *talk(10)[1:]]
    changes: list[list[dict[str, str]]] = [
        [{"id": "1", "status": "completed"}, {"id": "2", "status": "in_progress"}],
        [{"id": "2", "content": "migrate table_2", "status": "completed"}, {"id": "3", "status": "cancelled"}],
        [{"id": "6", "content": "tell Ana", "status": "pending"}, {"id": "4", "status": "in_progress"}],
    ]
    for n, change in enumerate(changes, 2):
        entries = todo(n, change, "todo_write")
        entries[0]["tool_calls"][0]["function"]["arguments"] = json.dumps({"merge": True, "todos": change})
        history += [*entries, *talk(4)[1:]]
    out = Compactor(window=8_000, policy=Policy(budgets={"prose": 0.3})).compact([*history, *talk(40)[1:]])
    assert out.summary is not None
    done, _, is_open = out.summary.text.partition("## In progress or open")
    assert all(f"- migrate table_{n}\n" in done for n in (1, 2))
    assert "- migrate table_4 (in_progress)\n- migrate table_5" in is_open
    assert "table_3" not in out.summary.text
    assert "tell Ana" in str(out.messages)
    again = todo(9, todos("in_progress"), "todo_write")
    out = Compactor(window=8_000).compact([*history, *again, *talk(40)[1:]])
    assert out.summary is not None
    assert "table_4" not in out.summary.text


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


RULES = [
    "Never rename a table of the warehouse without asking the people who load it every night, small as it may seem, "
    "since they read it by its name from programs that none of us has seen so far",
    "Always wait until the queue of outgoing letters is empty before you restart anything that writes or reads it, "
    "and look twice, because letters that were lost once cannot be found again",
    "Do not delete pictures that customers sent to us, even where two of them look the same to you or to a program, as "
    "long as the office for complaints has not told us in writing that it is done with them",
    "The figures of the last quarter must not be published anywhere before Friday, whoever may ask you for them today, "
    "be it in the newsletter, on the page for investors or in an answer to somebody from the press",
]
"""Longer than the lines that are quoted, and said in the middle of longer messages."""


def with_rules() -> list[dict[str, Any]]:
    """Rules of the user among remarks and outputs full of names, all of them long ago."""
    around = "I showed the page to two people this morning, and it looks good to them and to me. " * 3
    history = talk(60, {4 * n + 1: f"{around}{rule}. {around}" for n, rule in enumerate(RULES)})
    for n, entry in enumerate(history):
        if entry["role"] == "assistant":
            entry["content"] = "\n".join(
                f"src/part_{n}/file_{n}_{k}.py: max_{n}_{k} = {n * k + 1000}" for k in range(12)
            )
    return history


@pytest.mark.parametrize("written", ["They looked at one part after the other.", f"They looked around. {RULES[2]}."])
@pytest.mark.parametrize("trigger", [0.5, 0.8])
def test_rules_stand_word_for_word_and_once_under_their_mark_beside_a_models_summary(
    written: str, trigger: float
) -> None:
    policy = Policy(recent_users=0, trigger=("fraction", trigger))
    compactor = Compactor(window=4_000, summarizer=lambda _: written, policy=policy)
    history, previous = with_rules(), None
    for stop in range(20, len(history) + 1, 20):
        out = compactor.compact(history[:stop], previous)
        previous = out.compaction
    assert out.summary is not None
    assert written in out.summary.text
    assert all(rule in evidence.rules_in(out.summary.evidence) for rule in (f"{rule}." for rule in RULES))
    text = "\n".join(str(entry["content"]) for entry in out.messages).replace(written, "", 1)
    assert [text.count(rule) for rule in RULES] == [1] * len(RULES)


def test_a_rule_that_was_taken_back_has_no_room_of_its_own_beside_a_models_summary() -> None:
    history = with_rules()
    later = {
        "role": "user",
        "content": "Forget it: you may rename a table of the warehouse.",
    }
    compactor = Compactor(window=4_000, summarizer=lambda _: "They looked around.", policy=Policy(recent_users=0))
    out = compactor.compact([*history[:60], later, *history[60:]])
    assert out.summary is not None
    first = out.summary.evidence.split("[", 2)[1]
    assert RULES[1] in first
    assert RULES[0] not in first


LABELED = [f"HOUSE RULE: {text}." for text in ("Never touch table orders", "Only Mia may merge", "Ask before you pay")]


@pytest.mark.parametrize("summarizer", [None, lambda _: "They looked around."])
def test_rules_outlive_their_messages_where_a_summary_is_all_that_is_left_of_these(summarizer: Any) -> None:
    """Sessions of thousands of messages begin with one, as do histories of callers who store views."""
    compactor = Compactor(window=6_000, summarizer=summarizer, policy=Policy(recent_users=0))
    history = [*with_rules(), *talk(9, dict(enumerate(LABELED, start=1)))[1:]]
    for _ in range(4):
        view = compactor.compact([*history, *talk(40)[1:]]).messages
        text = "\n".join(str(entry["content"]) for entry in view)
        assert [text.count(rule) for rule in RULES] == [1] * len(RULES)
        assert all(rule.partition(": ")[2] in text for rule in LABELED)
        history = view
    lifted = {"role": "user", "content": "Forget it: you may rename a table of the warehouse."}
    view = compactor.compact([*history, lifted, *talk(40)[1:]]).messages
    rules = str(next(entry["content"] for entry in view if "<conversation_summary>" in str(entry["content"])))
    assert f"- {RULES[0]}" not in rules
    assert f"[user, rules]\n{RULES[0]}" not in rules


def files(history: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """A talk in which the assistant lists files, so that quoted lines are wanted."""
    for n, entry in enumerate(history):
        if entry["role"] == "assistant":
            entry["content"] = "\n".join(
                f"{folder}/part_{n}/file_{n}_{k}.py: max_{n}_{k} = {n * k + 1000}" for k in range(12)
            )
    return history


@pytest.mark.parametrize("summarizer", [None, lambda _: "They looked around."])
def test_what_was_taken_back_before_a_summary_is_no_rule_of_it(summarizer: Any) -> None:
    """Its line may be quoted as words of the user, and what took it back need not be."""
    rule = "Never rename the table warehouse_orders in db/schema.sql"
    around = "I showed the page to two people this morning, and it looks good to them and to me. " * 3
    history = files(talk(60, {1: rule, 4: f"{around}Forget it: you may rename the table as you like. {around}"}), "src")
    history[4]["content"] = history[6]["content"] = "Done."
    compactor = Compactor(window=4_000, summarizer=summarizer, policy=Policy(recent_users=0))
    for _ in range(3):
        view = compactor.compact(history).messages
        text = "\n".join(str(entry["content"]) for entry in view)
        assert "Constraints the user stated" not in text
        assert "[user, rules]" not in text
        assert text.count(f"\n{rule}\n") == 1
        history = [*view, *files(talk(40)[1:], "lib")]


@pytest.mark.parametrize("summarizer", [None, lambda _: "They looked around."])
@pytest.mark.parametrize(
    ("rule", "later", "beside"),
    [
        ("Never rename any table of the warehouse", "Forget it: you may rename the tables of the warehouse.", ""),
        ("Only use port 8443 for the gateway", "Use port 9000 for the gateway instead.", ""),
        ("不要修改数据库结构", "算了，数据库结构可以修改。", ""),
        (
            "Never rename any table of the warehouse",
            "Forget it: you may rename the tables of the warehouse.",
            "Ask Mia",
        ),
        ("Never rename any table of the warehouse", "Look at the charts again.", ""),
    ],
)
def test_a_rule_that_was_taken_back_is_quoted_for_what_it_names_alone(
    rule: str, later: str, beside: str, summarizer: Any
) -> None:
    """Unless another rule stands in the same line."""
    said = f"{rule}. You must ask Mia before you pay." if beside else f"{rule}."
    history = files(talk(120, {1: said, 2: later}), "src")
    for n, entry in enumerate(history):
        if entry["role"] == "assistant" and n % 3:
            entry["content"] = f"We decided to keep the lamp_{n}_brass at the door of house_{n}_north."
    compactor = Compactor(window=4_000, summarizer=summarizer, policy=Policy(recent_users=0))
    out = compactor.compact(history)
    assert out.summary is not None
    told = f"{out.summary.text}\n{out.summary.evidence}"
    assert (f"\n{said}\n" in f"{told}\n".replace("- ", "")) == (bool(beside) or later.startswith("Look"))


def test_short_rules_stand_once_beside_a_models_summary_that_is_made_of_an_earlier_one() -> None:
    """Read back as one message, they were other lines than those that stood there already."""
    rules = ["Always run make check-all before you push to origin/main.", "The budget is at most $900."]
    history = files(talk(60, dict(enumerate([*rules, "Never mention Project Albatross."], start=1))), "src")
    compactor = Compactor(window=8_000, summarizer=lambda _: "They looked around.", policy=Policy(recent_users=0))
    for _ in range(3):
        view = compactor.compact(history).messages
        text = "\n".join(str(entry["content"]) for entry in view)
        assert [text.count(rule) for rule in rules] == [1, 1]
        history = [*view, *files(talk(40)[1:], "lib")]


def writes(*answers: str) -> Any:
    """A summarizer with these answers, the last one again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"])
@pytest.mark.parametrize(
    "first",
    [
        None,
        writes(f"They looked around. {'. '.join(RULES)}."),
        writes(f"## Constraints the user stated\n{'. '.join(RULES)}.\n- You must be quick."),
    ],
    ids=["built-in", "word for word", "under our heading"],
)
def test_rules_outlive_the_summary_that_told_them_in_its_prose(first: Any, format: str) -> None:
    """A caller stores views as histories, and the next model writes another prose, without the rules."""
    policy = Policy(recent_users=0)
    history = Compactor(trigger=None).compact(with_rules(), to=format).messages
    later = Compactor(trigger=None).compact(talk(40)[1:], to=format).messages
    view = Compactor(window=8_000, summarizer=first, policy=policy).compact(history, format=format).messages
    for written in ("They looked around.", "They went on."):
        compactor = Compactor(window=8_000, summarizer=writes(written), policy=policy)
        out = compactor.compact([*view, *later], format=format)
        view = out.messages
        assert out.summary is not None
        told = evidence.rules_in(out.summary.evidence)
        assert [rule in told for rule in (f"{rule}." for rule in RULES)] == [True] * len(RULES)
        assert not any("be quick" in rule for rule in told)


@pytest.mark.parametrize("algorithm", [None, "bisect_v1", "behind_view", "extractive"])
def test_a_record_that_was_made_before_has_the_view_that_it_had(algorithm: str | None) -> None:
    """Its prose stands in the view as the record has it, or all that a provider has cached of the view is lost."""
    prose = "## Constraints the user stated\n- You must be quick.\n\n## Done\n- nothing"
    compactor = Compactor(window=8_000, summarizer=writes("They looked around."))
    history = with_rules()
    out = compactor.compact(history)
    assert out.compaction is not None
    before = json.loads(out.compaction.to_json())
    before["summary"] |= {"text": prose, "algorithm": algorithm}
    if algorithm is None:
        del before["summary"]["algorithm"]
    view = Compactor(window=8_000, trigger=None).compact(history, Compaction.from_json(json.dumps(before))).messages
    assert view == [
        {**entry, "content": entry["content"].replace("They looked around.", prose)} for entry in out.messages
    ]


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"])
def test_what_a_model_writes_under_our_heading_is_no_rule_of_the_user_when_its_view_is_read_back(format: str) -> None:
    """Also where the user set none, so that nothing else stands in its place."""
    policy = Policy(recent_users=0)
    history = Compactor(trigger=None).compact(talk(60), to=format).messages
    prose = "## Constraints the user stated\n- You must be quick."
    view = Compactor(window=4_000, summarizer=writes(prose), policy=policy).compact(history, format=format).messages
    later = Compactor(trigger=None).compact(talk(60)[1:], to=format).messages
    for summarizer in (None, writes("They went on.")):
        compactor = Compactor(window=4_000, summarizer=summarizer, policy=policy)
        summary = compactor.compact([*view, *later], format=format).summary
        assert summary is not None
        assert "be quick" not in summary.text.partition("## Constraints the user stated")[2].partition("## ")[0]
        assert not any("be quick" in rule for rule in evidence.rules_in(summary.evidence))


def test_rules_that_are_quoted_beside_a_models_summary_are_the_rules_where_the_built_in_one_follows() -> None:
    """What the model wrote under the heading of the built-in summary is not told in their place."""
    prose = "## Constraints the user stated\n- You must be quick."
    policy = Policy(recent_users=0)
    view = Compactor(window=6_000, summarizer=lambda _: prose, policy=policy).compact(with_rules()).messages
    text = str(Compactor(window=6_000, policy=policy).compact([*view, *talk(40)[1:]]).messages)
    constraints = text.partition("## Constraints the user stated")[2].partition("## ")[0]
    assert all(rule in constraints for rule in RULES)
    assert "be quick" not in constraints


def test_beside_a_models_summary_only_users_are_read_for_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else the built-in summary would say of messages is not asked: it took as long as the choice of all lines."""
    read: list[str] = []
    note_of = Note.of
    monkeypatch.setattr(Note, "of", lambda message: read.append(message.role) or note_of(message))
    out = Compactor(window=8_000, summarizer=lambda _: "They looked around.").compact(with_rules())
    assert out.changed
    assert set(read) == {"user"}
