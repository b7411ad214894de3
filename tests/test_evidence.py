"""Exact lines of what left the view survive, with the words around them, in a bounded section."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import plain_choice
from contextfold import Compactor, evidence
from contextfold.evidence import Block, EstimatedSizes, Line, Sizes, Vocabulary, choice, greedy, lines_of, select
from contextfold.evidence import clips as parts_of_lines
from contextfold.evidence.blocks import Blocks, Floats, Numbers
from contextfold.evidence.clips import clips
from contextfold.evidence.greedy import Choice
from contextfold.evidence.lines import WIDTH
from contextfold.evidence.section import PARTS
from contextfold.evidence.tables import exceptions, head_of
from contextfold.evidence.told import dates_of
from contextfold.messages import Media, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from contextfold.quoting import readable
from contextfold.recall import search
from contextfold.summary.render import render_group
from contextfold.tokens import estimate
from effort import examples

MARKS = {"[user]", "[assistant]", "[tool]"}
MARK = re.compile(evidence.MARK)
NOUNS = ["amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heron"]


def count(text: str) -> int:
    """A stand-in for a tokenizer: short, additive enough, and never zero for a text."""
    return -(-len(text) // 4)


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def called(name: str, arguments: object) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Message("assistant", (ToolCall("call_1", name, text),))


def answered(text: str) -> Message:
    return Message("tool", (ToolResult("call_1", (Text(text),)),))


def texts(message: Message) -> list[str]:
    return [line.text for line in lines_of(message)]


def chosen(messages: Sequence[Message], budget: int = 400, already: frozenset[str] = frozenset()) -> str:
    """Evidence of messages of 100 tokens each."""
    candidates = [(100 * (n + 1), lines_of(message)) for n, message in enumerate(messages)]
    return select(candidates, budget=budget, already=already, count=count, now=100 * len(messages))


def parted(text: str) -> tuple[list[str], list[str]]:
    """The whole lines and the parts of lines of a section, with the marks above them."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if MARK.fullmatch(line) and PARTS in line), len(lines))
    return lines[:first], lines[first:]


# ---- lines ----


def test_lines_are_word_for_word_without_indentation_and_line_numbers() -> None:
    message = answered("     1→import os\n     2→\n\tvalue = compute_total(x)\n   17 | return value_of\n   18 |\n")
    assert texts(message) == ["import os", "value = compute_total(x)", "return value_of"]


def test_a_call_reads_as_its_tool_with_its_short_arguments_and_then_the_long_ones() -> None:
    message = called("edit", {"path": "src/a.py", "count": 2, "new": "def total():\n    return sum_all", "dry": True})
    assert texts(message) == ["edit path: src/a.py count: 2", "def total():", "return sum_all"]


def test_messages_that_are_read_together_or_again_have_the_lines_that_each_has_alone() -> None:
    log = "\n".join(f"{n:4}→worker_{n} failed at src/part_{n}.py" for n in range(30))
    long = "Then I read more of it. " * 40 + log
    messages = [
        said("system", "Use /etc/config.yaml."),
        said("user", f"Fix worker_3.\nNever touch src/part_9.py.\n{log}"),
        Message("assistant", (Text(long), ToolCall("call_1", "run", json.dumps({"a": "x_1", "b": log, "c": "x_2"})))),
        answered(log),
        answered(f"{log}\n{log}\n日本 `a title`\n\n--"),
        said("assistant", "worker_3 is done."),
        said("user", "worker_3 is done."),
        answered(""),
    ]
    alone = [tuple(evidence.LineReader().read([message])[0].each()) for message in messages]
    reader = evidence.LineReader()
    assert [tuple(lines.each()) for lines in reader.read(messages)] == alone
    assert [tuple(lines.each()) for lines in reader.read(messages[::-1])] == alone[::-1]
    assert alone == list(map(lines_of, messages))


def test_many_short_arguments_take_several_lines() -> None:
    message = called("book", {f"passenger_{n}": f"guest_{n:04}" for n in range(20)})
    assert len(texts(message)) > 1
    assert all(len(text) <= WIDTH + 30 for text in texts(message))
    assert [name for line in lines_of(message) for name in line.names] == [f"guest_{n:04}" for n in range(20)]


@pytest.mark.parametrize(
    "arguments", ["*** Begin Patch\n*** Update File: src/a.py", '"src/a.py"', '{"path": "src/a.py']
)
def test_arguments_that_are_no_json_object_are_read_as_text(arguments: str) -> None:
    assert any("src/a.py" in line.names for line in lines_of(called("patch", arguments)))


def test_keys_and_tool_names_name_nothing() -> None:
    (line,) = lines_of(called("read_file", {"file_path": "/etc/hosts"}))
    assert line.text == "read_file file_path: /etc/hosts"
    assert line.names == ("/etc/hosts",)


def test_reasoning_media_instructions_and_encoded_data_give_no_lines() -> None:
    hidden = Message("assistant", (Reasoning("secret_plan.md"), Media("image", data="QUJD" * 500), Text("see plan.md")))
    assert texts(hidden) == ["see plan.md"]
    assert lines_of(said("system", "use /etc/config.yaml")) == ()
    assert texts(answered("before\n" + "iVBORw0KGgo" * 80 + "\nafter")) == ["before", "after"]


def test_what_a_harness_wrote_gives_no_lines() -> None:
    reminder = "<system-reminder>\nWhenever you read a file, look at src/rules.md.\n</system-reminder>"
    assert texts(answered(f"port 8443{reminder}of the gateway{reminder}")) == ["port 8443", "of the gateway"]
    assert texts(answered("<system-reminder>port 8443")) == ["<system-reminder>port 8443"], "the output ends there"
    for note in (
        "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>",
        "<local-command-stdout>See you at 8443.</local-command-stdout>",
        "<local-command-caveat>Caveat: generated while running local commands.</local-command-caveat>",
    ):
        assert texts(said("user", note)) == []
    # words behind a command, and rules of a project, are someone's
    typed = "<command-name>/review</command-name>\n<command-args>the gateway</command-args>"
    assert "the gateway" in texts(said("user", typed))[0]
    assert texts(said("user", "# AGENTS.md\nNever touch ledger_2019."))


def test_text_of_blocks_that_are_not_understood_is_read() -> None:
    assert texts(Message("assistant", (Opaque("refusal", "not in /etc/shadow"),))) == ["not in /etc/shadow"]


def test_a_long_line_is_cut_between_words_and_no_identifier_is_cut() -> None:
    names = [f"/var/lib/service-{n}/data_{n}.json" for n in range(60)]
    for separator in (" and then ", "，然后", ", "):
        message = answered(separator.join(names))
        lines = lines_of(message)
        assert all(len(line.text) <= WIDTH + 60 for line in lines)
        assert [name for line in lines for name in line.names if name.startswith("/")] == names


def test_json_inside_a_string_is_cut_at_its_escaped_line_breaks() -> None:
    message = answered(json.dumps({"stdout": "\n".join(f"step {n} wrote out_{n}.csv" for n in range(40))}))
    assert "step 7 wrote out_7.csv" in texts(message)


def test_a_progress_bar_is_one_line_in_its_last_state() -> None:
    states = (f"Epoch 3: {n:3}%|{'█' * (n // 10):10}| {n}/100 [00:{n % 60:02}, loss={1 - n / 200}]" for n in range(101))
    bar = "\r" + "\r".join(states)
    message = answered(f"$ python train.py\r\n{bar}\rWarning: disk low\rsaved to runs/a41f\r\ndone in 41 s\r\n")
    last = f"Epoch 3: 100%|{'█' * 10}| 100/100 [00:40, loss=0.5]"
    assert texts(message) == ["$ python train.py", last, "Warning: disk low", "saved to runs/a41f", "done in 41 s"]
    assert texts(answered("1.5\r2.5\r3.5")) == ["1.5", "2.5", "3.5"], "here it ends lines"
    from_windows = answered("rows\r\n48213\r\n10%\r20%\r\nport\r\r\n8443\r\n")
    assert texts(from_windows) == ["rows", "48213", "20%", "port", "8443"]


SCREENS = "".join(
    "\x1b[H\x1b[2J\x1b[7mPID   %CPU  COMMAND\x1b[0m\x1b[K\n"
    f"812   {n}.4   worker-a\x1b[K\n813   0.{n}   worker-a\x1b[K\n"
    for n in range(9)
)
LAYERS = "app:2.1: Pulling\n" + "".join(
    f"\x1b[{up}A\x1b[2K\r{layer}: Downloading [{'=' * n:9}] {n}MB/9MB\r\x1b[{up}B"
    for n in range(1, 10)
    for up, layer in ((2, "fa1"), (1, "cb2"))
)
PULLED = ["app:2.1: Pulling", f"fa1: Downloading [{'=' * 9}] 9MB/9MB", f"cb2: Downloading [{'=' * 9}] 9MB/9MB"]


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        (SCREENS, ["PID   %CPU  COMMAND", "812   8.4   worker-a", "813   0.8   worker-a"]),
        (
            "\x1b[?1049h\x1b[Hfirst page\n7\n\x1b[H\x1b[2Jsecond page\n8\n\x1b[?1049l",
            ["first page", "7", "second page", "8"],
        ),
        (LAYERS, PULLED),
        (f"\x1b[2J{LAYERS}\n" + "\r".join(f"{n}% done" for n in range(9)) + "\nend", [*PULLED, "8% done", "end"]),
        (
            json.dumps({"stdout": f"{LAYERS}\nno space left"}),
            ['{"stdout": "app:2.1: Pulling', *PULLED[1:], 'no space left"}'],
        ),
    ],
    ids=["a screen", "pages", "bars above each other", "a bar on a screen", "inside JSON"],
)
def test_a_later_screen_takes_the_place_of_the_one_before(shown: str, read: list[str]) -> None:
    assert texts(answered(shown)) == read


CUSTOMERS = [{"id": f"cus_{n:08}", "city": "Port Elizabeth " * (n % 4), "name": f"Ada Lovelace {n}"} for n in range(30)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CUSTOMERS),
        json.dumps(CUSTOMERS, separators=(",", ":")),
        json.dumps({"text": json.dumps(CUSTOMERS)}),
        "".join("<tr><td>{id}</td><td>{city}</td><td>{name}</td></tr>".format_map(one) for one in CUSTOMERS),
    ],
)
def test_an_object_in_one_long_line_of_json_or_xml_stands_whole(text: str) -> None:
    lines = texts(answered(text))
    for one in CUSTOMERS:
        (line,) = (line for line in lines if one["id"] in line)
        assert re.search(rf"{one['name']}\b", line)


@given(st.text(max_size=600))
def test_every_line_stands_in_the_message(text: str) -> None:
    for line in lines_of(said("user", text)):
        assert line.text in text
        assert len(line.names) == len(line.worths) == len(set(line.names))
        assert all(0 <= worth <= 1 for worth in line.worths)


def test_lines_of_a_large_output_come_quickly() -> None:
    rows = "\n".join(
        f"{n:05} GET /api/v2/users/{n}?page={n % 7} 200 {n * 13 % 999}ms worker-{n % 8}" for n in range(20_000)
    )
    started = time.process_time()
    assert len(lines_of(answered(rows))) == 20_000
    assert time.process_time() - started < 5 * len(rows) / 1_000_000


# ---- choice ----


def test_lines_come_in_their_order_under_marks_of_who_said_them() -> None:
    text = chosen(
        [
            said("user", "Please look at src/login.py first"),
            called("read", {"path": "src/login.py"}),
            said("assistant", "The bug sits in check_password of that file"),
            answered("tests/test_login.py passed entirely"),
        ]
    )
    assert text.splitlines() == [
        "[user]",
        "Please look at src/login.py first",
        "[assistant]",
        "The bug sits in check_password of that file",
        "[tool]",
        "tests/test_login.py passed entirely",
    ]


def test_what_stands_in_the_view_already_is_not_repeated() -> None:
    messages = [said("assistant", "I wrote src/login.py today"), said("assistant", "I wrote src/logout.py today")]
    assert "login.py" not in chosen(messages, already=frozenset({"src/login.py", "login.py"}))
    assert "logout.py" in chosen(messages, already=frozenset({"src/login.py", "login.py"}))


@pytest.mark.parametrize(
    ("line", "shown", "is_said"),
    [
        ("use port 80", "They said: use port 80.", True),
        ("use port 80", "They use port 8080.", False),
        ("use port 80", "They use port 80.5 of it.", False),
        ("use port 80", "They use port 8080, then use port 80, as told.", True),
        ("push to main", "They must not push to main-2.", False),
        ("commit to main", "They pre-commit to main.", False),
        ("keep it in src/app", "They keep it in src/app.py.", False),
        ("nur mit Ruhe", "Das geht nur mit Ruhezeit.", False),
        ("не трогай базу", "Он сказал: не трогай базуку.", False),
        ("请用端口80", "他说：请用端口80。", True),
        ("请用端口80", "他说：请用端口8080。", False),
        ("不要修改数据库", "他说：不要修改数据库，只看日志。", True),
        ("不要修改数据库", "他说：不要修改数据库结构。", False),
        ("本番に書かない", "「本番に書かない」と言った。", True),
        ("本番に書かない", "本番に書かないで。", False),
        ("배포하지 마", "사용자: 배포하지 마세요.", False),
    ],
)
def test_words_of_a_user_stand_in_a_text_where_they_end_in_it(line: str, shown: str, is_said: bool) -> None:
    """Else they are quoted: a longer word, number, name or clause says something else."""
    lines = [(50, lines_of(said("user", line)))]
    text = select(lines, budget=100, already=frozenset(), count=count, now=100, shown=shown)
    assert (line not in text.splitlines()) == is_said


def test_a_name_that_a_longer_path_shows_needs_no_line_of_its_own() -> None:
    messages = [answered("open /srv/shop/src/cart.py for this"), answered("then src/cart.py it is")]
    assert chosen(messages).count("cart.py") == 1


def test_the_words_of_the_assistant_go_before_output_of_tools() -> None:
    noise = [answered(f"row {n} holds value_{n:05} here") for n in range(200)]
    text = chosen([said("assistant", "We decided to keep retry_limit at three"), *noise], budget=60)
    assert "retry_limit" in text


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            "req_id={0:08x}a1 method=GET path=/api/v2/orders status=200 dur_ms={0}",
            "the upstream of the search pool did not answer within the time it has: trace=77ab12cd34ef",
        ),
        (
            '[{0}] link "Hotel {1} opens" url=https://stays.test/pt/{1}-{0}.html',
            "Your booking for three nights in the old town is confirmed, with number 128.923.335",
        ),
        (
            "checkout-7f{0:05x}d9b-x{0:04x}   1/1   Running   0   {0}h",
            "rolled back by the operator to what ran before the weekend, shop/cart:3.1.5-1df7f16",
        ),
    ],
)
def test_one_line_of_its_own_goes_before_newer_lines_that_all_look_alike(row: str, told: str) -> None:
    def listing(n: int) -> str:
        return "\n".join(row.format(100 * n + k, "abcdefghij"[k % 10] * (3 + k)) for k in range(40))

    once = answered(f"{listing(0)}\n{told}")
    assert told in chosen([once, *(answered(listing(n)) for n in range(1, 8))], budget=300)


def test_the_row_that_differs_from_the_others_of_its_list_is_quoted_whole() -> None:
    def pods(n: int) -> list[str]:
        return [f"cart-{n}{k}f4-x{k}z   1/1   Running   {k}   {k}d   10.0.{n}.{k}" for k in range(30)]

    crashed = "cart-7b1f4-q2zk8   0/1   CrashLoopBackOff   41   9d   10.0.9.77"
    messages = [answered("\n".join(pods(n))) for n in range(8)]
    messages[2] = answered("\n".join([*pods(2)[:12], crashed, *pods(2)[12:]]))
    code = [f"return cache_{name} of the {name}_store" for name in map("".join, permutations("abcde", 3))]
    assert crashed in chosen([*messages, answered("\n".join(code))], budget=300)


def _rows(*lines: str) -> list[str]:
    return [line.replace("@", f"{n:04}") for n in range(20) for line in lines]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("| Project | Budget | Phone |", "| lobby x@ | 1@ EUR | 55-@ |"),
        (" order_id  | refund_total | tax", " ord-x@ | 3@ | 7@"),
        ("sku,price_net,stock", "SKU-X@,12@,3@"),
        ("NAME           READY   STATUS    RESTARTS", "cart-x@   1/1     Running   4@"),
        ("USER         PID %CPU    RSS COMMAND", "root      1@  0.1  7@ /usr/bin/svc_x@ --fork"),
        ("                 Q1 2026   Q2 2026   Q3 2026", "Revenue_x@     1@,000   2@,000   3@,000"),
    ],
)
def test_rows_of_a_table_are_quoted_below_what_names_their_columns(head: str, row: str) -> None:
    other = "tag\tseen_at\n" + "\n".join(_rows("tag_y@\t9@"))
    below = map("".join, permutations("abcde", 2))  # so many that the head does not stand out as the one that differs
    outputs = [answered("\n".join([head, "---", *_rows(row), *below])), answered(other)]
    text = chosen(outputs, budget=200, already=frozenset(re.split(r"[\s|,]+", head)))
    whole, _, _ = text.partition(f"[{PARTS}]")
    lines = whole.splitlines()
    first = next(n for n, line in enumerate(lines) if "@" not in line and "x00" in line.lower())
    assert lines[first - 1] == head.strip()
    assert lines.count(head.strip()) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["Starting up", *(f"{n} served page_{n}  in  {n} ms" for n in range(9))],
        ["So we went home, had tea, and slept.", *(f"In {n} days, we said, all is done." for n in range(9))],
        ["--quiet    say nothing", "--jobs N   at most 8", "--all      take all"],
        ["12 | a | b", "13 | c | d", "14 | e | f"],
    ],
    ids=["a log", "sentences", "a help text", "rows alone"],
)
def test_what_is_no_table_has_no_head(lines: list[str]) -> None:
    assert all(head_of(lines, n, {}) is None for n in range(len(lines)))


def test_of_prose_a_sentence_with_a_figure_is_quoted_though_it_names_nothing() -> None:
    def letter(n: int, fact: str = "") -> Message:
        body = ["We were pleased with the garden and would like to come back.", fact, "Nobody wants to paint it."]
        return answered(f"From: ada{n}@example.com\nDear friends,\n{' '.join(filter(None, body * 2))}")

    facts = ("The meeting about the roof moves to room 512.", "Залог за склад составил 340 тысяч рублей, как и было.")
    text = chosen([letter(n, facts[n // 20] if n % 20 == 3 else "") for n in range(40)], budget=400)
    assert all(fact in text for fact in facts)


def test_what_was_met_lately_and_often_goes_before_what_was_met_long_ago_and_once() -> None:
    messages = [said("assistant", f"step {n} is about module_{n:04} alone") for n in range(300)]
    messages[150] = messages[200] = messages[280] = said("assistant", "back to module_often again")
    text = chosen(messages, budget=120)
    assert "module_often" in text
    assert "module_0299" in text
    assert "module_0001" not in text


@pytest.mark.parametrize(
    "rule",
    [
        "You must never push to the main branch",
        "绝对不要修改数据库结构",
        "絶対に本番環境を変更しないでください",
        "Niemals ohne Tests ausliefern",
    ],
)
def test_constraints_of_users_stay_however_old_they_are_and_without_any_name_in_them(rule: str) -> None:
    noise = [said("assistant", f"step {n} is about module_{n:04} alone") for n in range(300)]
    assert rule in chosen([said("user", rule), *noise], budget=200)


def test_a_name_alone_on_its_line_brings_its_neighbor_along() -> None:
    text = chosen(
        [
            answered("first line of the output\nThe session token expires because of\nmax_session_age\n"),
            said("user", "ok"),
        ]
    )
    assert "The session token expires because of\nmax_session_age" in text


def test_nothing_to_say_gives_nothing() -> None:
    assert select([], budget=100, already=(), count=count, now=0) == ""
    assert chosen([answered("hello there, how are you today?"), said("user", "...")]) == ""
    assert chosen([said("user", "open src/login.py")], budget=0) == ""


@given(
    st.lists(
        st.lists(st.sampled_from(["see a_b.py", "max_len = 5000", "go on", "err E501", "数据_表 在这里"]), max_size=6)
    ),
    st.integers(min_value=0, max_value=200),
)
def test_it_never_exceeds_its_budget_and_quotes_only_what_was_said(groups: list[list[str]], budget: int) -> None:
    messages = [said("user" if n % 2 else "assistant", "\n".join(lines)) for n, lines in enumerate(groups)]
    text = chosen(messages, budget=budget)
    assert count(text) <= budget
    said_lines = {line for lines in groups for line in lines}
    lines, parts = parted(text)
    assert all(line in MARKS or line in said_lines for line in lines)
    assert all(MARK.fullmatch(part) or any(part in line for line in said_lines) for part in parts)
    assert text == chosen(messages, budget=budget)


@settings(max_examples=examples(20))
@given(st.integers(min_value=20, max_value=3000))
def test_more_budget_never_shows_fewer_names(budget: int) -> None:
    messages = [said("assistant", f"step {n} is about module_{n:04} alone") for n in range(120)]
    assert chosen(messages, budget).count("module_") <= chosen(messages, budget + 40).count("module_")


# ---- parts of lines ----

LONG = "so the handler for step {n} hands its result over to module_{n:04} and then goes on with what is left of it"


def test_names_that_no_line_has_room_for_stand_in_parts_of_lines_with_words_beside_them() -> None:
    messages = [said("assistant", LONG.format(n=n)) for n in range(120)]
    lines, parts = parted(chosen(messages, budget=1000))
    assert sum("module_" in line for line in lines) > 15
    assert sum("module_" in part for part in parts) > 30
    assert all(re.fullmatch(r"over to module_\d{4}|module_\d{4} and then", part) for part in parts[1:])


def test_parts_of_lines_stand_under_who_said_them() -> None:
    """A part of an assistant's line that is carried on was taken for a tool's, and soon gave way to newer lines."""
    messages = [said("user", "and the ask_one was mine"), said("assistant", "then reply_one said so")]
    messages.append(answered("then row_one came"))
    text = parts(["ask_one", "reply_one", "row_one"], messages, 60)
    assert text == (
        "[user, parts of lines]\nand the ask_one\n[assistant, parts of lines]\nthen reply_one said\n"
        "[parts of lines]\nthen row_one came"
    )
    assert [(line.source, line.text) for line in evidence.read(text)] == [
        ("user", "and the ask_one"),
        ("assistant", "then reply_one said"),
        ("tool", "then row_one came"),
    ]


@pytest.mark.parametrize("heaviest", range(4))
def test_parts_of_lines_stand_in_the_order_of_their_lines_whatever_they_are_worth(heaviest: int) -> None:
    """By worth, a name without words beside it stood among names that it has nothing to do with."""
    names = ["CacheWriter", "read_cache", "MaxEntries", "evict_oldest"]
    output = "class CacheWriter:\ndo read_cache(), then stop\nin MaxEntries: if full {\ndef evict_oldest()"
    weights = {name: 1.0 + (n == heaviest) for n, name in enumerate(names)}
    text = parts(names, [answered(output)], 80, weights)
    assert re.findall("|".join(names), text) == names
    # and so they do where the least worth give way
    few = re.findall("|".join(names), parts(names, [answered(output)], 14, weights))
    assert few == [name for name in names if name in few]
    assert names[heaviest] in few
    assert len(few) < len(names)


def test_a_part_that_stands_in_another_one_gives_way() -> None:
    messages = [said("assistant", "the key is held by vault-7731 at 10.4.19.77, no more")]
    for names in (["vault-7731", "10.4.19.77"], ["10.4.19.77", "vault-7731"]):
        text = parts(names, messages, 60)
        assert text.count("vault-7731") == text.count("10.4.19.77") == 1


def test_what_is_left_of_a_users_sentence_sets_no_rule() -> None:
    whole, part = evidence.read("[user]\nnever touch src/login.py\n[user, parts of lines]\nnever touch src/login.py")
    assert whole.bonus > 0
    assert part == whole._replace(bonus=0.0)


def test_no_name_stands_both_in_a_line_and_in_a_part_of_another() -> None:
    text = chosen([said("assistant", LONG.format(n=n)) for n in range(120)], budget=1000)
    names = re.findall(r"module_\d{4}", text)
    assert len(names) == len(set(names))


def test_there_are_no_parts_where_every_name_has_a_line() -> None:
    text = chosen([said("assistant", LONG.format(n=n)) for n in range(10)], budget=1000)
    assert text.count("module_") == 10
    assert not parted(text)[1]


def test_a_part_is_the_newest_line_that_has_words_beside_the_name() -> None:
    old, new, bare = "it reads conf_value first", "it writes conf_value last", "conf_value"
    messages = [said("assistant", text) for text in (old, new, bare)]
    assert parts(["conf_value"], messages, 40) == "[assistant, parts of lines]\nwrites conf_value last"
    assert parts(["conf_value"], messages[2:], 40) == "[assistant, parts of lines]\nconf_value"


def parts(
    names: Sequence[str], messages: Sequence[Message], room: int, weights: Mapping[str, float] = MappingProxyType({})
) -> str:
    """Parts of the lines of messages for these names, all of the same weight unless another one is given."""
    words = Vocabulary()
    blocks = [Block(lines_of(message), words) for message in messages]
    missing = np.array(words.numbers(names))
    each = np.array([weights.get(text, 1.0) for text in words.texts])
    return clips(missing, each, Blocks(blocks), words, room, Sizes(count))


@given(st.integers(min_value=0, max_value=60))
def test_parts_never_exceed_their_room(room: int) -> None:
    names = ["a_b/c_d.py", "数据_表", "e_f", "https://example.org/x?y=1", "ghi_jkl_mno"]
    messages = [said("user", f"we look at {name} and 看一下 {name} again") for name in names]
    text = parts(names, messages, room)
    assert count(text) <= room
    lines = [line for message in messages for line in lines_of(message)]
    assert all(any(part in line.text for line in lines) for part in text.split("\n")[1:])


def test_planted_facts_are_still_there_after_many_passes() -> None:
    """The originals are read again at each pass, so nothing decays."""
    facts = [
        "The staging host is stage-17.internal.example",
        "Release ticket is REL-4471 for Friday",
        "合同编号为 HT-2024-0193",
    ]
    history = [said("user", fact) for fact in facts]
    for _ in range(5):
        history += [said("assistant", f"part {len(history)} covers handler_{len(history):04} now") for _ in range(60)]
        assert all(fact in chosen(history, budget=900) for fact in facts)


def test_a_line_holds_names_worths_and_words() -> None:
    (line,) = lines_of(said("assistant", "set max_retries in src/app.py to 5000"))
    assert line == Line(
        text="set max_retries in src/app.py to 5000",
        source="assistant",
        names=("max_retries", "src/app.py", "app.py", "5000"),
        worths=(1.0, 1.0, pytest.approx(5 / 6), pytest.approx(0.3 * 3 / 6)),  # type: ignore[arg-type]
        words=1,
    )


@pytest.mark.strict
def test_a_real_transcript_keeps_its_budget_and_takes_seconds_at_most(transcripts: Path) -> None:
    rows = (transcripts / "entire-cli-claude-code" / "6113e919.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [answered(json.dumps(json.loads(row).get("message", {}), ensure_ascii=False)) for row in rows]
    started = time.process_time()
    candidates = [(500 * (n + 1), lines_of(message)) for n, message in enumerate(messages)]
    text = select(candidates, budget=4000, already=(), count=count, now=500 * len(messages))
    assert time.process_time() - started < 20  # about one second on an idle machine
    assert 3000 < count(text) <= 4000
    assert text == select(candidates, budget=4000, already=(), count=count, now=500 * len(messages))


@pytest.mark.parametrize(
    "decision",
    [
        "So the importer gets one writer for every customer and nothing more",
        "Die Warteschlange bleibt vorerst im Speicher und wandert später in eine Datenbank",
        "导入的部分先按客户逐个处理其余交给队列",
        "取り込みは顧客ごとに一つずつ処理して残りは後回しにします",
    ],
)
def test_a_statement_that_names_nothing_is_known_by_words_that_nothing_else_says(decision: str) -> None:
    noise = [said("assistant", "Now let me have another look at the next file here") for _ in range(40)]
    text = chosen([*noise, said("assistant", decision), *noise], budget=80)
    assert decision in text
    assert text.count("another look") <= 1, "what is said everywhere is worth next to nothing"


@given(st.text(alphabet="ab. \nü数", max_size=evidence.lines.WHOLE))
def test_a_short_message_of_a_user_is_one_line_word_for_word(text: str) -> None:
    lines = texts(said("user", text))
    assert lines == ([text.strip()] if any(map(str.isalnum, text)) else [])


def test_a_long_message_of_a_user_is_cut_like_any_other() -> None:
    assert len(texts(said("user", "This goes on and on. " * 60))) > 5


def test_users_words_go_before_those_of_the_assistant() -> None:
    wish = "Tea rather than coffee for the visitors on Tuesday"
    talk = [said("assistant", f"Thought number {word} about gardens and weather") for word in "abcdefghij"]
    assert wish in chosen([*talk, said("user", wish), *talk], budget=40)


@pytest.mark.parametrize(
    "line",
    [
        "ERROR cannot reach the mirror",
        "the lease timed out while merging",
        "12 passed, 3 skipped",
        "backup finished",
        "disk usage grew to 48 GiB",
        "耗时 350 毫秒",
    ],
)
def test_a_tools_line_with_an_outcome_an_amount_or_a_failure_counts_by_itself(line: str) -> None:
    noise = [answered("nothing to see on this row") for _ in range(30)]
    assert line in chosen([*noise, answered(f"header row\n{line}\nfooter row"), *noise], budget=60)


def test_lines_of_tools_that_differ_in_figures_alone_count_once() -> None:
    text = chosen([answered("\n".join(f"step took {n} ms" for n in range(50)))], budget=400)
    assert text.count("step took") == 1


# ---- the section, read back ----


def test_a_section_that_is_read_back_has_the_lines_it_was_made_of() -> None:
    """Where the originals are out of reach, a carried line is worth what it was worth: it depends on who said it."""
    messages = [said("user", "Never touch src/login.py."), answered("port = 8080 in app_config.yaml")]
    messages += [said("assistant", LONG.format(n=n)) for n in range(60)]
    text = chosen(messages, budget=600)
    found = evidence.read(text)
    assert parted(text)[1]
    assert [line.text for line in found] == [line for line in text.split("\n") if not MARK.fullmatch(line)]
    whole = {line.text: line for message in messages for line in lines_of(message)}
    assert all(whole.get(line.text, line) == line for line in found)
    assert {line.source for line in found if line.text not in whole} == {"assistant"}


def test_an_earlier_summary_in_a_history_is_carried_on_by_who_said_what() -> None:
    text = "[user]\nkeep the cache_dir\n[tool]\nE501 in a_b.py\n[parts of lines]\nopens c_d.py again"
    assert [(line.source, line.text) for line in evidence.read(f"an older note\n{text}")] == [
        ("assistant", "an older note"),
        ("user", "keep the cache_dir"),
        ("tool", "E501 in a_b.py"),
        ("tool", "opens c_d.py again"),
    ]


# ---- the choice in arrays and the plain one ----

WORDS = st.sampled_from(
    [
        *["the", "is", "at", "of", "for", "we", "must", "never", "run", "ERROR", "failed:", "3", "passed", "/", "(x);"],
        *["src/app/views.py", "views.py", "app/views.py", "max_age", "conf_value", "REL-4471", "`a b c`", "1,250"],
        *[
            "Ada Lovelace",
            "12 ms",
            "不要",
            "数据_表",
            "[tool]",
            "/etc/hosts",
            "https://example.org/a/b?c=d",
            "<evidence>",
        ],
        *["<evidence>", "Привет", "don't", "v1.2.3", "a" * 40],
    ]
)
LINES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=12).map("\n".join)
SPOKEN = st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS)


def message_of(role: str, text: str) -> Message:
    return answered(text) if role == "tool" else said(cast(Any, role), text)


@example([("user", "must never ERROR"), ("user", "must never ERROR views.py")], 20, set())
@settings(max_examples=examples(100))
@given(st.lists(SPOKEN, max_size=25), st.integers(20, 600), st.sets(WORDS, max_size=4))
def test_the_choice_in_arrays_equals_the_plain_one(
    conversation: list[tuple[str, str]], budget: int, already: set[str]
) -> None:
    """Also where a history grows and all that is known of its messages is kept from pass to pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "_AT_ONCE", 1)
        patch.setattr(greedy, "_NEAR", 2)
        patch.setattr(greedy, "_FALLEN", 2)
        patch.setattr(parts_of_lines, "_AT_ONCE", 2)
        patch.setattr(parts_of_lines, "_TOGETHER", 3)
        words, sizes = Vocabulary(), EstimatedSizes(estimate)
        blocks: list[Block] = []
        for role, text in conversation:
            blocks.append(Block(lines_of(message_of(role, text)), words))
            if len(blocks) % 8 and len(blocks) < len(conversation):
                continue
            now = 40 * len(blocks) + 300
            plain = plain_choice.select(
                [(40 * n, lines_of(message_of(*said))) for n, said in enumerate(conversation[: len(blocks)])],
                budget=budget,
                already=already,
                count=estimate,
                now=now,
            )
            kept = [(40 * n, block) for n, block in enumerate(blocks)]
            assert plain == select(
                kept, budget=budget, already=already, count=estimate, now=now, sizes=sizes, words=words
            )


@given(st.lists(LINES, min_size=1, max_size=30))
def test_the_size_of_lines_is_that_of_their_text(lines: list[str]) -> None:
    assert EstimatedSizes(estimate).joined(lines) == estimate("\n".join(lines))


def test_a_choice_among_lines_that_are_not_all_put_in_order_equals_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = [
        said("assistant", f"step {n % 97} sets module_{n % 211:04} to value_{n % 13} again") for n in range(600)
    ]
    plain = plain_choice.select(
        [(30 * n, lines_of(message)) for n, message in enumerate(messages)],
        budget=900,
        already=(),
        count=count,
        now=20_000,
    )
    for at_once, near, fallen in ((1, 2, 1), (1, 300, 2), (40, 2, 3), (40, 100, 1), (1000, 2, 5)):
        monkeypatch.setattr(greedy, "_FALLEN", fallen)
        monkeypatch.setattr(greedy, "_AT_ONCE", at_once)
        monkeypatch.setattr(greedy, "_NEAR", near)
        candidates = [(30 * n, lines_of(message)) for n, message in enumerate(messages)]
        assert select(candidates, budget=900, already=(), count=count, now=20_000) == plain


def test_lines_for_which_no_room_is_left_are_not_weighed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a choice that is all lines of a conversation but those that were taken."""
    weighed: list[int] = []
    gains = Choice._gains

    def counted(self: Choice, spans: Numbers) -> Floats:
        weighed.append(len(spans))
        return gains(self, spans)

    monkeypatch.setattr(Choice, "_gains", counted)
    messages = [said("assistant", f"step {n} sets module_{n % 311:04} to value_{n:05} again") for n in range(9_000)]
    assert chosen(messages, budget=900)
    assert 0 < sum(weighed) < 9_000


def test_lines_that_come_again_are_weighed_together_once_one_of_them_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Agents read the same files and run the same tests again and again: one by one, such lines took most of the time
    of a choice.
    """
    weighed: list[int] = []
    gain = Choice._gain

    def counted(self: Choice, span: int) -> float:
        weighed.append(span)
        return gain(self, span)

    monkeypatch.setattr(Choice, "_gain", counted)
    lines = [f"check {n} of module_{n:04} gave value_{n:05} today" for n in range(60)]
    messages = [said("assistant", "\n".join(lines)) for _ in range(30)]
    assert all(f"module_{n:04}" in chosen(messages, budget=3_000) for n in range(0, 60, 20))
    assert len(weighed) < 20 * len(lines)


def test_what_is_no_user_s_is_looked_at_once_for_what_users_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both where rules were withdrawn and where users said the same again: nearly all messages are an agent's."""
    asked = Counter[bytes]()
    given = Block.said.fget

    def said_in(block: Block) -> Any:
        asked[block.speakers] += 1
        return given(block) if given else []

    monkeypatch.setattr(Block, "said", property(said_in))
    rule = "Never deploy billing_eu on a Friday."
    messages = [said("user", rule), *(answered(f"module_{n:04} failed") for n in range(500))]
    candidates = [(30 * n, lines_of(message)) for n, message in enumerate(messages)]
    assert select(candidates, budget=300, already=(), count=count, now=20_000, taken_back=[rule])
    assert asked[b"\2"] == 500


def test_a_line_is_read_for_its_rules_once_and_only_where_they_may_hold_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where rules were withdrawn and others replaced, all of a long history were read: a page of 50,000 rules that a
    user pasted took a hundred times as long as to count it.
    """
    read: list[str] = []
    plain = choice.statements_of

    def counted(sentences: Sequence[str]) -> Any:
        read.extend(sentences)
        return plain(sentences)

    monkeypatch.setattr(choice, "statements_of", counted)
    rules = [f"Do not edit src/part_{n}.py before the review, ever." for n in range(4_200)]
    candidates = [(n, lines_of(said("user", rule))) for n, rule in enumerate(rules)]
    given: dict[str, Any] = {"budget": 300, "already": (), "count": count, "now": len(rules)}
    select(candidates, **given, taken_back=[rules[1]], replaced=[rules[2]])
    assert read == rules[1:3]


def test_no_line_counts_more_than_64_bits_hold() -> None:
    """A name that a hundred thousand messages mention would: the line with most of them would count below nothing."""
    names = [f"n{n}" for n in range(100)]
    candidates = [(0, lines_of(said("user", " ".join(names)))), (0, lines_of(said("user", "please keep n7 as it is")))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice._Material, "weights", lambda material, *_: np.full(len(material.vocabulary), 1e9))
        assert " ".join(names) in select(candidates, budget=2_000, already=(), count=count, now=0)


@pytest.mark.parametrize("form", ["json", "nested json", "yaml", "nested yaml", "csv", "quoted csv"])
def test_the_one_record_that_differs_is_quoted_with_what_names_it(form: str) -> None:
    """Of thirty orders the one that was not paid: its field stood alone, or gave way to the names of customers."""
    people = [f"{first} {last}" for first in ("Ada", "Bo", "Cleo", "Dina", "Eve", "Finn") for last in ("Lee", "Moss")]
    outputs = []
    for page in range(3):
        orders = [{"id": f"ord_{page}{n:02}", "buyer": people[(n + page) % 12], "state": "paid"} for n in range(30)]
        orders[7 + page]["state"] = "charged twice"
        if form == "quoted csv":
            for order in orders[::2]:
                order["buyer"] = f'"{", ".join(reversed(order["buyer"].split()))}"'
        if form == "json":
            outputs.append(json.dumps(orders, indent=2))
        elif form == "nested json":
            nested = [{"id": o["id"], "of": {"buyer": o["buyer"]}, "state": o["state"]} for o in orders]
            outputs.append(json.dumps(nested, indent=2))
        elif form == "nested yaml":
            rows = [f"- id: {o['id']}\n  items:\n  - sku: lamp\n    many: 2\n  state: {o['state']}" for o in orders]
            outputs.append("\n".join(rows))
        elif form == "yaml":
            outputs.append("\n".join(f"- id: {o['id']}\n  buyer: {o['buyer']}\n  state: {o['state']}" for o in orders))
        else:
            outputs.append("\n".join(["id,buyer,state", *[",".join(o.values()) for o in orders]]))
    lines = chosen([answered(output) for output in outputs], budget=150).splitlines()
    for page in range(3):
        state = [n for n, line in enumerate(lines) if "charged twice" in line][page]
        assert f"ord_{page}{7 + page:02}" in "".join(lines[max(0, state - 2) : state + 1])


@pytest.mark.parametrize("start", [0, 1])
def test_no_record_is_named_by_the_one_before(start: int) -> None:
    """Also where the first one is cut off."""
    orders = [{"state": "late" if n == 8 else "paid", "id": f"ord_{n}", "of": {"buyer": "Ada"}} for n in range(20)]
    lines = [line.strip() for line in json.dumps(orders, indent=1).splitlines() if len(line.strip()) > 2]
    assert exceptions(lines[start:], {}) == {}
    shop = [f"mode: {'debug' if n == 8 else 'plain'}\nkind: shop\nname: shop-{n}\nplace: here" for n in range(14)]
    read = Block(lines_of(answered("\n".join("\n".join(shop).splitlines()[start:]))), Vocabulary())
    assert read.head_of(read.texts.index("mode: debug")) is None


def test_no_document_is_named_by_an_item_of_the_one_before() -> None:
    carts = [f"state: {'late' if n == 8 else 'paid'}\nof:\n- item: tea-{n}\n  many: {n}" for n in range(20)]
    assert exceptions([line.strip() for cart in carts for line in cart.splitlines()], {}) == {}


def test_of_several_documents_the_one_that_differs_is_quoted_with_its_name() -> None:
    """Each line of them comes again and again, so they were taken for a log."""
    maps = [f"kind: Map\nname: cm-{n}\nplace: eu\nmode: {'debug' if n == 7 else 'plain'}" for n in range(14)]
    read = Block(lines_of(answered("\n---\n".join(maps))), Vocabulary())
    name = read.head_of(read.texts.index("mode: debug"))
    assert name is not None
    assert read.texts[name] == "name: cm-7"


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ("commit {id}\nAuthor: Ada Lee <ada@example.com>\nDate:   May {n} 2026\n\n    {text}\n", "commit {id}"),
        (
            "[{n}] Title: {word} for beginners\nURL: https://example.com/{id}\nSnippet: {text}\n",
            "URL: https://example.com/{id}",
        ),
        (
            "From: {word} <{word}@{site}>\nTo: all@{site}\nDate: 2026-05-{n}\n\nHi,\n{text}\n",
            "From: {word} <{word}@{site}>",
        ),
    ],
)
def test_what_one_record_of_several_lines_says_is_quoted_with_what_names_it(record: str, name: str) -> None:
    """A message without its commit, a finding without its link, and a decision without who wrote it."""
    outputs, named = [], []
    for page in range(3):
        said = [f"Nothing to tell about the {word}, nor of the rest of them." for word in NOUNS]
        said[3 + page] = (
            f"We agreed on {470 + page} requests in {7 + page} seconds for each of the {NOUNS[page]} clients."
        )
        of = [
            {"id": f"{page}{n}c4f3a9e", "n": 10 + n, "word": word, "site": "example.com"}
            for n, word in enumerate(NOUNS)
        ]
        outputs.append("\n".join(record.format(text=text, **one) for text, one in zip(said, of, strict=True)))
        named.append(name.format(**of[3 + page]))
    lines = chosen([answered(output) for output in outputs], budget=150).splitlines()
    for page in range(3):
        place = next(n for n, line in enumerate(lines) if f"{470 + page} requests" in line)
        assert [line for line in lines[:place] if line.startswith(name.partition("{")[0])][-1] == named[page]


@pytest.mark.parametrize(
    ("library", "own"),
    [
        (
            "    at {word}Call (/app/node_modules/{word}/lib/{word}.js:{n}:9)",
            "    at charge (/app/src/pay{page}.ts:{n}:17)",
        ),
        (
            "\tat org.junit.{word}.Runner.run({word}Runner.java:{n})",
            "\tat com.acme.Pay{page}.charge(Pay{page}.java:{n})",
        ),
        (
            "{word}.Run(0xc00{n})\n\t/go/pkg/mod/{word}@v1.2/{word}.go:{n} +0x2d",
            "main.charge(0x0)\n\t/app/pay{page}.go:{n} +0x1d",
        ),
    ],
)
def test_of_a_stack_trace_the_frame_outside_of_libraries_is_quoted(library: str, own: str) -> None:
    """Where one's own code failed gave way to the names in frames of libraries."""
    outputs = []
    for page in range(3):
        frames = [library.format(word=f"{word}{page}", n=70 + n) for n, word in enumerate(NOUNS * 2)]
        frames.insert(2, own.format(page=page, n=4101))
        outputs.append("\n".join(["the request came to nothing", *frames]))
    lines = chosen([answered(output) for output in outputs], budget=120).splitlines()
    for page in range(3):
        assert set(map(str.strip, own.format(page=page, n=4101).splitlines())) <= set(lines)


@pytest.mark.parametrize(
    ("one", "other"), [("Expected: 1990", "Received: 2985"), ("expected: 3", "got: 4"), ("left: 2985", "right: 1990")]
)
def test_what_a_failed_test_compares_is_quoted_before_the_names_of_others(one: str, other: str) -> None:
    """What a plan expects of a step says nothing of what came, and stands by itself; so do places in a style sheet."""
    tests = [f"    the {first}_{second} adds to it" for first, second in permutations(NOUNS, 2)]
    compared = chosen([answered("\n".join([*tests, f"    {one}", f"    {other}", *tests]))], budget=60).splitlines()
    assert {one, other} <= set(compared)
    for apart in ([f"{one};", f"{other};"], [one, *tests, other], [one, one]):
        assert not any(Block(lines_of(answered("\n".join(apart))), Vocabulary()).bonuses)


@pytest.mark.parametrize(
    ("said", "frame"),
    [
        ("Unhandled exception. Acme.LateException: no refund", "   at Acme.{word}.Run(Int32 n)"),
        (
            "/gems/orm/save.rb:84:in `save!': Amount too high (Orm::Bad)",
            "\tfrom /gems/{word}.rb:{n}:in `run'",
        ),
        (
            "PHP Fatal error:  Uncaught App\\Late: refund exceeds total",
            "#{n} /app/{word}.php({n}): {word}->run()",
        ),
        ("thread 'main' panicked at src/pay.rs:9:5:", "  {n}: {word}::run\n             at ./src/{word}.rs:{n}:14"),
        ("Plan: 1 to add, 1 to destroy.", '  ~ resource "aws_instance" "{word}_{n}" {{'),
    ],
)
def test_what_went_wrong_is_quoted_before_the_names_below_it(said: str, frame: str) -> None:
    """An error whose class stands behind other words was no failure, and gave way to the names of its frames."""
    frames = [frame.format(word=word, n=70 + n) for n, word in enumerate(NOUNS)]
    assert said in chosen([answered("\n".join([said, *frames]))], budget=90).splitlines()


@pytest.mark.parametrize("between", [",", '","', " | ", "\t", "   "])
def test_a_row_of_a_wide_table_stands_whole_below_what_names_its_columns(between: str) -> None:
    """Rows of more than 160 characters were cut: no piece of one had a head, and the last one no id."""
    columns = ["ticket", "customer", "owner", "team", "plan", "region", "origin", "product", "channel", "outcome"]
    rows = [[f"T{4000 + n}", "Ada Lovelace-Byron", *["some longer value here"] * 7, "closed"] for n in range(20)]
    rows[11][2:] = ["an entirely different value"] * 7 + ["refunded"]
    end = '"' if between == '","' else ""
    table = [f"{end}{between.join(row)}{end}" for row in [columns, *rows]]
    lines = chosen([answered("\n".join(table))], budget=150).splitlines()
    assert table[12] in lines[lines.index(table[0]) :]


@pytest.mark.parametrize(
    ("output", "quoted"),
    [
        (" id   | name\n------+-----\n 4512 | Ada\n 7001 | Bo", ["4512 | Ada", "7001 | Bo"]),
        (" id | name\n----+-----\n  1 | Ada\n  2 | Bo\n(2 rows)", ["1 | Ada", "2 | Bo"]),
        ("order\titem\n77\tlamp\n78\tdesk", ["77\tlamp", "78\tdesk"]),
        ("   12\tdef pay():\n   13\t\n   14\t    return 3", ["def pay():", "return 3"]),
        (" 1 | import os\n 2 |\n 3 | import re", ["import os", "import re"]),
        ("    7→x = 3", ["x = 3"]),
    ],
)
def test_only_the_numbers_of_a_listing_are_left_out(output: str, quoted: list[str]) -> None:
    """The first cell of a row of psql or of tab-separated values, which is what it is called by, was taken for one."""
    assert [line for line in texts(answered(output)) if not line.startswith(("id", "order", "("))] == quoted


def test_of_a_very_long_output_both_ends_and_a_sample_are_read() -> None:
    rows = [f"row {n} holds value_{n} here" for n in range(90_000)]
    found = texts(answered("\n".join(rows)))
    assert found[0] == rows[0]
    assert found[-1] == rows[-1]
    assert set(found) <= set(rows)
    assert 20_000 < len(found) < 50_000
    assert any(rows[45_000] <= line for line in found[14_000:-14_000])
    assert len(texts(answered("value_1, " * 200_000))) < 5_000


# ---- dialogue ----

SMALL_TALK = [
    "Wow, that sounds amazing! Keep it up!",
    "Thanks! Your kind words really mean a lot.",
    "What made someone think of such a lovely thing?",
    "Great to hear, what a nice idea!",
    "How exciting! What was the best part of it?",
]
TOLD = [
    "I moved here from Gothenburg with my sister in May 2019.",
    "Wir haben letzte Woche unser Auto an einen Nachbarn verkauft.",
    "Mi hermana y yo vamos a abrir nuestra tienda en Sevilla en octubre.",
    "我去年在杭州开了自己的面包店。",
]


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_in_a_dialogue_what_people_tell_of_themselves_goes_before_praise_and_questions(role: Role, told: str) -> None:
    chatter = [said(speaker, text) for text in SMALL_TALK for speaker in ("user", "assistant")]
    messages = [*chatter[:3], said(role, told), *chatter[3:]]
    candidates = [(40 * (n + 1), lines_of(message)) for n, message in enumerate(messages)]
    text = select(candidates, budget=40, already=(), count=estimate, now=400, is_talk=True)
    assert told in text


def test_what_an_assistant_says_without_calling_a_tool_is_one_line() -> None:
    text = "I started with pottery in spring, " * 6
    assert texts(said("assistant", text)) == [text.strip()]
    beside_a_call = Message("assistant", (Text(text), ToolCall("call_1", "read", "{}")))
    assert text.strip() not in texts(beside_a_call)


def test_the_words_of_a_dialogue_that_stay_are_those_that_tell_something() -> None:
    history: list[dict[str, Any]] = [{"role": "system", "content": "You are a friend."}]
    for n in range(120):
        history.append({"role": "user", "content": _own(n) if n % 3 == 0 else _praise(n)})
        history.append({"role": "assistant", "content": "Sure, tell me more about all of that, please. " * 2})
    stayed = [entry["content"] for entry in Compactor(window=4_000).compact(history).messages[:-12]]
    assert sum(_own(n) in stayed for n in range(120)) > sum(_praise(n) in stayed for n in range(120))


def _praise(n: int) -> str:
    return f"Wow, that {'abcdefghij'[n // 12]}o{'bdfglmnprstv'[n % 12]}a thing sounds great!"


def _own(n: int) -> str:
    return f"Last week I took my brother to the market hall in Port{n}berg, and we stayed until ten in the evening."


def test_a_relative_date_stands_with_the_day_of_its_session_once_for_a_stretch_and_is_read_back() -> None:
    days = ("(1:56 pm on 8 May, 2023) ", "(7:55 pm on 9 June, 2023) ")
    messages = [
        said("user", f"{days[0]}I went to the support group in Malmo yesterday."),
        said("assistant", "My sister and I are moving to Oslo next month."),
        said("user", "I have two cats named Pelle and Olga."),
        said("user", f"{days[1]}I painted my boat blue last week."),
    ]
    text = "\n".join(_evidence_of_talk(messages))
    marks = [line for line in text.splitlines() if line.startswith("[")]
    assert marks == ["[user, 8 May, 2023]", "[assistant]", "[user]", "[user, 9 June, 2023]"]
    read = [(line.source, line.text, line.date) for line in evidence.read(text)]
    assert ("assistant", "My sister and I are moving to Oslo next month.", "8 May, 2023") in read
    again = select([(100, evidence.read(text))], budget=400, already=(), count=count, now=100)
    assert "[assistant, 8 May, 2023]" in again or "[user, 8 May, 2023]" in again
    assert "[user, 9 June, 2023]" in again


@pytest.mark.parametrize(
    "messages",
    [
        [said("user", "I went there yesterday with my brother."), said("assistant", "(8 friends) came to us today.")],
        [said("user", "(8 May, 2023) I went to Malmo yesterday."), said("assistant", "We leave for Oslo tomorrow.")],
        [said("user", "(8 May, 2023) I live in Malmo."), said("user", "(9 May, 2023) My cat is named Pelle.")],
    ],
    ids=["no dates", "one date says nothing of what comes long after", "nothing that needs a date"],
)
def test_no_date_stands_where_none_is_known_or_needed(messages: list[Message]) -> None:
    assert not [line for line in _evidence_of_talk(messages) if line.startswith("[") and "," in line]


def test_metadata_tells_the_day_too() -> None:
    messages = [
        replace(said("user", "I saw my dentist today."), metadata={"timestamp": "2031-03-11T09:30:00Z"}),
        replace(said("user", "I bought my boat yesterday."), metadata={"timestamp": "2031-04-02T09:30:00Z"}),
    ]
    assert _evidence_of_talk(messages)[0] == "[user, 2031-03-11]"


def _evidence_of_talk(messages: Sequence[Message]) -> list[str]:
    candidates = [(100 * (n + 1), lines_of(message)) for n, message in enumerate(messages)]
    dates = dates_of(messages)
    text = select(candidates, budget=400, already=(), count=count, now=400, is_talk=True, dates=dates)
    return text.splitlines()


@pytest.mark.parametrize("in_json", [False, True])
def test_what_colors_a_terminal_is_no_word_of_what_is_quoted_summed_up_or_searched(in_json: bool) -> None:
    """``ESC[36mtest_total`` named ``36mtest_total``: failures were neither told nor quoted nor found."""

    sent: list[str] = []

    def told(prompt: str) -> str:
        sent.append(prompt)
        return "They ran them."

    def session(red: str, bold: str, off: str, wiped: str, in_json: bool) -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = [{"role": "user", "content": "Run the tests."}]
        for n in range(40):
            call = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": '{"do": "pytest"}'}}
            output = f"{red}FAILED{off} {bold}tests/test_{n}.py{off}::{red}test_total_{n}{off} - got {n * 37}\n"
            output += f"{wiped}{n}% of module_{n}.py\n" * 20
            said += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps([output]) if in_json else output},
            ]
        return [*said, {"role": "user", "content": f"{red}Error{off}: and now?"}, {"role": "user", "content": "Go on."}]

    plain = session("", "", "", "", in_json)
    colored = session("\x1b[31m", "\x1b[1;38;5;214m", "\x1b(B\x1b[m", "\x1b[2K\x1b[1G", in_json)
    compactor = Compactor(window=4_000)
    views = [compactor.compact(messages).messages[1]["content"] for messages in (plain, colored)]
    assert "test_total_7" in views[0]
    assert in_json or "## Errors met" in views[0]
    assert views[1] == views[0]
    for messages in (plain, colored):
        Compactor(window=4_000, summarizer=told).compact(messages)
    assert sent[0] == sent[1]
    found = search(colored, "test_total_7")
    assert "FAILED tests/test_7.py::test_total_7 - got 259" in found[0].snippet


def test_code_that_speaks_of_a_terminals_codes_is_quoted_as_it_is_and_a_link_with_its_address() -> None:
    """What a tool writes before a file's lines, ``[main.ts]``, makes no JSON of them; GCC and ls write links."""
    code = '[main.ts]\nexport const BRIGHT_RED_9 = "\\u001b[31m" + BASE_CODE_9;'
    link = "main_9.c:10: \x1b]8;;https://gcc.test/W9\x1b\\-Wunused_9\x1b]8;;\x1b\\ warning\x1b]0;title_9\x07"
    assert [line.text for line in lines_of(Message("tool", (ToolResult("c", (Text(code),)),)))] == [
        "[main.ts]",
        'export const BRIGHT_RED_9 = "\\u001b[31m" + BASE_CODE_9;',
    ]
    (line,) = lines_of(Message("tool", (ToolResult("c", (Text(link),)),)))
    assert line.text == "main_9.c:10: https://gcc.test/W9 -Wunused_9 warning"


ROWS = [{"订单": f"ORD-{n}", "状态": "失败：库存不足", "メモ": f"東京、{n}日 😀", "où": "café"} for n in range(3)]
WAYS: dict[str, Callable[[bool], str]] = {
    "a list": lambda ascii: json.dumps(ROWS, ensure_ascii=ascii),
    "lines": lambda ascii: "\n".join(json.dumps(row, ensure_ascii=ascii) for row in ROWS),
    "indented": lambda ascii: json.dumps(ROWS, ensure_ascii=ascii, indent=2),
    "a string of JSON": lambda ascii: json.dumps(
        [json.dumps({**row, "où": ""}, ensure_ascii=ascii) for row in ROWS], ensure_ascii=ascii
    ),
    "behind words": lambda ascii: "Found:\n" + json.dumps([{**row, "où": ""} for row in ROWS], ensure_ascii=ascii),
}


@pytest.mark.parametrize("way", WAYS)
def test_letters_that_json_spells_by_their_numbers_are_read_as_letters(way: str) -> None:
    """Python writes JSON so: evidence and summarizers' requests held six signs in the place of each letter."""
    plain, spelled = ([Message("tool", (ToolResult("c", (Text(WAYS[way](ascii)),)),))] for ascii in (False, True))
    assert render_group(spelled) == render_group(plain)
    assert [line.text for line in lines_of(spelled[0])] == [line.text for line in lines_of(plain[0])]
    assert "失败：库存不足" in render_group(spelled)


@pytest.mark.parametrize(
    "text",
    [
        'CJK = re.compile("[\\u4e00-\\u9fff]")',  # code, which speaks of numbers
        '{"pattern": "[\\\\u4e00-\\\\u9fff]", "path": "C:\\\\uface"}',
        '{"unseen": "\\u202e\\u200b", "half": "\\ud83d", "bell": "\\u0007"}',
    ],
)
def test_numbers_that_spell_no_letters_stay(text: str) -> None:
    assert readable(text) == text


def test_which_line_names_the_columns_does_not_hang_on_what_was_asked_before() -> None:
    """A view is the same in any process, and in none of them were the same rows asked of in the same order."""
    lines = [
        "ID  NAME  KG  EUR",
        "1  apple  30  5",
        "2  pear  40  6",
        "in  all  70",
        "3  plum  50  7",
        "",
        "4  fig  9  8",
    ]
    found = set()
    for order in permutations(range(1, len(lines))):
        known: dict[tuple[str, int], int | None] = {}
        heads = {row: head_of(lines, row, known) for row in order}
        found.add(tuple(sorted(heads.items())))
    assert found == {((1, 0), (2, 0), (3, None), (4, 0), (5, None), (6, None))}


def test_an_answer_of_many_parts_is_looked_through_a_few_times_and_not_once_for_each_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twice as many parts took four times as long: each asked whether the message calls tools."""
    asked, calls = list[int](), vars(Message)["tool_calls"].fget
    monkeypatch.setattr(Message, "tool_calls", property(lambda own: asked.append(len(own.parts)) or calls(own)))
    said = [{"type": "text", "text": f"Part {n} tells of table_{n}."} for n in range(3_000)]
    rest = [{"role": role, "content": f"step {n}"} for n in range(8) for role in ("user", "assistant")]
    Compactor(window=8_000).compact(
        [{"role": "user", "content": "Go."}, {"role": "assistant", "content": said}, *rest], format="openai-chat"
    )
    assert 0 < asked.count(len(said)) < 60
