"""Headings and notes of a harness say nothing by themselves, and no line of a small summary is spent on them."""

from __future__ import annotations

import pytest

from contextfold.messages import Message, Text
from contextfold.summary import extractive
from contextfold.tokens import estimate


def summary(*said: tuple[str, str]) -> str:
    messages = [Message(role, (Text(text),)) for role, text in said]  # type: ignore[arg-type]
    return extractive.summarize(messages, budget=400, count=estimate)


@pytest.mark.parametrize("heading", ["## Root cause found", "**Found it!**", "### Summary of Investigation:"])
def test_a_heading_of_the_assistant_is_no_finding(heading: str) -> None:
    made = summary(("user", "Why does it fail?"), ("assistant", f"{heading}\n\nThe cause is a race in src/pool.py."))
    assert "race in src/pool.py" in made
    assert heading.strip("#*: ") not in made


@pytest.mark.parametrize(
    "bare",
    ["Found it!", "The problem is clear.", "Yep, agreed.", "I found the issue!", "Gefunden!", "So is the fix it?"],
)
def test_a_sentence_that_tells_of_a_finding_without_it_is_none(bare: str) -> None:
    made = summary(("user", "Why does it fail?"), ("assistant", f"{bare} We decided on Redis."), ("user", "Go on."))
    assert "decided on Redis" in made
    assert bare not in made


def test_a_heading_that_names_something_exact_is_kept() -> None:
    made = summary(("user", "Why does it fail?"), ("assistant", "## Decided on src/queue/worker_7.py\n\nNothing else."))
    assert "src/queue/worker_7.py" in made


@pytest.mark.parametrize("heading", ["**`src/pool.py`**", "`src/pool.py`:", "**src/pool.py**:"])
def test_a_name_alone_is_the_heading_of_what_follows_and_no_finding(heading: str) -> None:
    made = summary(("user", "What changed?"), ("assistant", f"{heading}\n- Decided on a lock around `take` in it."))
    assert "Decided on a lock" in made
    assert f"- {heading}" not in made


@pytest.mark.parametrize(
    "leading",
    [
        *("Here is a summary of the changes on `main`:", "Key trade-offs", "根本原因是："),
        *("Now let me look at how `take` is resolved.", "文件较大，让我看几个关键的 API endpoint。"),
        *('"description": "收集关键数据",', '"step_type": "research_2"'),
    ],
)
def test_what_leads_on_to_something_is_no_finding(leading: str) -> None:
    said = f"{leading}\n\n- We decided on a lock around the pool."
    made = summary(("user", "What changed?"), ("assistant", said), ("user", "Go on."), ("assistant", "Ready."))
    assert "decided on a lock" in made
    assert leading not in made


@pytest.mark.parametrize(
    "state",
    [
        *("The build is failing because the package exports no theme.", "The issue is still not fixed."),
        *(
            "The cause is in L003, but I can't find the place.",
            "问题是还是报错。",
            "Die Ursache ist noch nicht behoben.",
        ),
    ],
)
def test_a_state_that_the_work_is_there_to_end_is_told_only_as_the_last_word(state: str) -> None:
    made = summary(
        ("user", "Why does it fail?"), ("assistant", state), ("user", "Go on."), ("assistant", "Decided on A.")
    )
    assert "Decided on A." in made
    assert state not in made
    assert state in summary(("user", "Why does it fail?"), ("assistant", "Decided on A."), ("assistant", state))


@pytest.mark.parametrize("assent", ["yes", "Continue.", "1", "ok, go ahead", "继续", "ja bitte", "/theme", "/"])
def test_a_word_that_lets_the_agent_go_on_or_is_meant_for_the_program_is_no_request(assent: str) -> None:
    said = [("user", "Port the loader."), ("assistant", "Shall I?"), ("user", assent), ("assistant", "Done.")]
    made = summary(*said, ("user", "Port the saver, too."))
    assert "Port the loader." in made
    assert "Port the saver, too." in made
    assert f"- {assent}\n" not in made


@pytest.mark.parametrize("note", ["[Request interrupted by user]", "Caveat: The messages below were generated."])
def test_a_note_of_a_harness_is_no_request_of_the_user(note: str) -> None:
    made = summary(("user", "Port the loader."), ("assistant", "I begin."), ("user", note), ("user", "Use tabs."))
    assert note not in made
    assert "Port the loader." in made


@pytest.mark.parametrize(
    "inserted",
    [
        "Base directory for this skill: /srv/skills/plan\n\n# Planning\n\n- `plan`\n\nWrite the plan first.",
        "<task-notification>\nThe build has ended.",
    ],
)
def test_what_a_harness_inserts_is_no_request_of_the_user(inserted: str) -> None:
    made = summary(("user", "Port the loader."), ("assistant", "Yes."), ("user", inserted), ("user", "Use tabs."))
    goals = made.partition("user's words")[2].partition("##")[0]
    assert "Port the loader." in goals
    assert not any(line in goals for line in ("Write the plan first.", "Planning", "The build"))


def test_lines_of_a_diagram_are_no_statements_and_marks_of_lists_no_part_of_them() -> None:
    drawn = 'flowchart TD\n  ALL --> L["push only:<br/>handlePush (agents)"]\n- - Never touch handlePush itself.'
    made = summary(("user", "Draw it."), ("assistant", "Done."), ("user", drawn), ("user", "Go on."))
    assert "- Never touch handlePush itself." in made
    assert "- - " not in made
    assert "-->" not in made


def test_no_statement_stands_under_a_label_that_its_speaker_did_not_give_it() -> None:
    what = ["database", "gateway", "invoice", "ledger", "calendar", "printer", "payroll", "archive", "mirror", "proxy"]
    said = [f"FACT: The {name} of the {name}s is {name}-{n}." for n, name in enumerate(what)]
    said.insert(6, "The cache serves only as a backstop.")
    messages = [Message("user", (Text(text),)) for text in said]
    made = extractive.summarize(messages, budget=150, count=estimate, for_rules=120)
    assert "FACT:\n" in made, "labels are told once"
    labeled = made.partition("FACT:\n")[2]
    assert "backstop" not in labeled


def test_a_statement_that_is_labeled_goes_before_words_that_may_be_no_rule() -> None:
    """An "only" in passing is worth less than what someone marked."""
    passing = [Message("user", (Text(f"The cache of part {n} serves only as a backstop."),)) for n in range(9)]
    marked = [Message("user", (Text("FACT: The staging database is db-staging-4711.internal."),))]
    made = extractive.summarize([*marked, *passing], budget=60, count=estimate, for_rules=40)
    assert "db-staging-4711.internal" in made
