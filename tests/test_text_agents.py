"""Agents that speak with their model in texts alone: what their tools answer stands in the user's name."""

from __future__ import annotations

from typing import Any

import pytest

from contextfold import Compactor
from contextfold.harness import is_output
from contextfold.messages import Message, Text

TASK = "Find out why invoices are late. Never touch the table ledger_2019."

OUTPUTS = {
    "smolagents": "Observation:\n{}",
    "SWE-agent": "OBSERVATION:\n{}",
    "OpenHands": "EXECUTION RESULT of [execute_bash]:\n{}",
    "mini-swe-agent": "<returncode>0</returncode>\n<output>\n{}\n</output>",
    "Hermes": "<tool_response>\n{}\n</tool_response>",
    "AutoGen": "exitcode: 0 (execution succeeded)\nCode output: {}",
    "Cline": "[read_file for 'src/late.py'] Result:\n{}",
    "aider": "I ran this command:\n\nmake test\n\nAnd got this output:\n\n{}",
}


def shown(number: int, lines: int) -> str:
    told = "You must never call `pay_{0}` before `check_{0}`."
    rows = "\n".join(f"late_{number}.py:{n}: value_{number}_{n} = compute({n})" for n in range(lines))
    return f"{told.format(number)}\n{rows}"


def session(form: str, steps: int, lines: int = 40) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": TASK}]
    for number in range(steps):
        thought = f"Thought: I look at part {number}.\nAction: look\nAction Input: {number}"
        messages += [
            {"role": "assistant", "content": thought},
            {"role": "user", "content": form.format(shown(number, lines))},
        ]
    return messages


@pytest.mark.parametrize("agent", OUTPUTS)
def test_what_a_tool_answered_is_no_word_of_the_user(agent: str) -> None:
    """It sets no rules in the user's name, takes no room of the user's words, and is quoted as a tool's."""
    out = Compactor(window=8_000).compact(session(OUTPUTS[agent], 30))
    assert out.compaction is not None
    summary = next(str(one["content"]) for one in out.messages if "<conversation_summary>" in str(one["content"]))
    rules = summary.partition("## Constraints the user stated\n")[2].partition("\n\n")[0]
    assert "ledger_2019" in summary or any(one["content"] == TASK for one in out.messages)
    assert "must never call" not in rules
    evidence = summary.partition("<evidence>")[2]
    assert "value_" in evidence.partition("[tool]")[2]
    assert "[user]" not in evidence
    reasons = {entry.reason for entry in out.ledger if entry.fate == "kept"}
    assert "recent user message" not in reasons


@pytest.mark.parametrize("agent", OUTPUTS)
def test_a_model_that_summarizes_reads_it_as_a_result(agent: str) -> None:
    asked = list[str]()

    def clerk(prompt: str) -> str:
        asked.append(prompt)
        return "The agent looks at one part after the other to find out why invoices are late."

    Compactor(window=8_000, summarizer=clerk).compact(session(OUTPUTS[agent], 30))
    read = "\n".join(asked)
    assert "[result of a tool]" in read
    assert read.count("[user]") <= len(asked)


@pytest.mark.parametrize("agent", OUTPUTS)
def test_an_output_that_fits_nowhere_is_clipped_and_the_task_stays(agent: str) -> None:
    """As the newest message of a user it had to stay whole, and the call ended in ``CannotFit``."""
    messages = session(OUTPUTS[agent], 3, lines=2_000)
    out = Compactor(window=8_000).compact(messages)
    assert any(TASK in str(one["content"]) for one in out.messages)
    assert out.estimated_tokens <= 8_000


SAID = [
    "Observation: the page is late.",
    "An observation:\nthe page is late.",
    "[bug] Result: the page is late.",
    "[read_file for 'a.py'] Result:\n<feedback>\nNever read that one.\n</feedback>",
    "[ask_followup_question for 'Which?'] Result:\n<answer>\nThe second.\n</answer>",
    "I ran this command: make test. Never run it again.",
    "exitcode: 0 is what I see.",
]


@pytest.mark.parametrize("text", SAID)
def test_what_a_person_said_is_taken_for_no_output(text: str) -> None:
    assert not is_output(Message("user", (Text(text),)))
    assert not is_output(Message("assistant", (Text("Observation:\n" + text),)))
