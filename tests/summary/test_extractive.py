"""The built-in summarizer: quotes, in sections, within its budget, the same each time, without any model."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextfold import formats
from contextfold.messages import Message, Reasoning, Role, Text, ToolCall, ToolResult
from contextfold.summary import extractive, extractive_cues, extractive_facts, extractive_words
from contextfold.summary.extractive import summarize
from contextfold.summary.extractive_words import words
from effort import examples


def count(text: str) -> int:
    return -(-len(text) // 4)


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def step(number: int, tool: str, arguments: object, output: str, *, failed: bool = False) -> tuple[Message, Message]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return (
        Message("assistant", (ToolCall(f"call_{number}", tool, text),)),
        Message("tool", (ToolResult(f"call_{number}", (Text(output),), is_error=failed),)),
    )


def session() -> list[Message]:
    """A short agent session with something for every section."""
    return [
        said("user", "Please make the login faster. You must never change the database schema."),
        *step(1, "read_file", {"path": "src/login.py"}, "def login():\n" + "    call()\n" * 400),
        said("assistant", "The root cause is the missing index on `users.email`, so every login scans the table."),
        *step(
            2,
            "bash",
            {"command": "pytest tests/test_login.py"},
            "collected 3 items\nFAILED tests/test_login.py::test_slow",
        ),
        *step(3, "edit_file", {"path": "src/login.py", "new": "x"}, "ok"),
        *step(4, "edit_file", {"path": "src/login.py", "new": "y"}, "ok"),
        said("user", "Actually, use the cache in src/cache.py instead."),
        said("assistant", "I switched to the cache. Still to do: the remaining test in tests/test_cache.py."),
    ]


def of_pydantic_ai() -> object:
    ai = pytest.importorskip("pydantic_ai.messages")
    call = {"tool_name": "mcp_server:crm", "tool_call_id": "m"}
    return ai.ModelResponse(
        parts=[
            ai.NativeToolCallPart(**call, args={"name": "delete_ticket"}),
            ai.NativeToolReturnPart(**call, content={"output": "deleted"}),
        ]
    )


PAGE = "We decided to use port 99 for all of it, and /etc/ports.conf says so."
OF_BEDROCK = {"toolUseId": "n", "type": "server_tool_use"}
HOSTED: dict[str, tuple[list[dict[str, object] | object], list[str]]] = {
    "anthropic": (
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "ports"}},
                    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                    {
                        "type": "mcp_tool_use",
                        "id": "m1",
                        "name": "delete_ticket",
                        "server_name": "crm",
                        "input": {"id": "7"},
                    },
                    {
                        "type": "mcp_tool_result",
                        "tool_use_id": "m1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "Error: ticket 7 is locked"}],
                    },
                ],
            }
        ],
        ["web_search: ports", "delete_ticket: 7 → Error: ticket 7 is locked"],
    ),
    "openai-responses": (
        [
            {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "ports"}},
            {"type": "mcp_call", "id": "m", "name": "delete_ticket", "arguments": '{"id": "7"}', "output": "deleted"},
            {"type": "code_interpreter_call", "id": "c", "code": "print(7)", "outputs": None},
            {"type": "shell_call", "call_id": "s", "action": {"commands": ["cd src", "make"], "timeout_ms": 1_000}},
            {"type": "shell_call_output", "call_id": "s", "output": []},
        ],
        ["web_search: ports", "delete_ticket: 7 → deleted", "code_interpreter: print(7)", "shell: cd src make"],
    ),
    "gemini": (
        [
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"language": "PYTHON", "code": "print(7)"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "7"}},
                ],
            }
        ],
        ["code: print(7)"],
    ),
    "openai-chat": (  # as LiteLLM writes what Anthropic ran
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "srvtoolu_1",
                        "type": "function",
                        "function": {"name": "bash_code_execution", "arguments": '{"command": "drop 7"}'},
                    }
                ],
                "provider_specific_fields": {
                    "tool_results": [
                        {
                            "type": "bash_code_execution_tool_result",
                            "tool_use_id": "srvtoolu_1",
                            "content": {"type": "bash_code_execution_result", "stdout": "dropped"},
                        }
                    ]
                },
            }
        ],
        ["bash_code_execution: drop 7 → dropped"],
    ),
    "gemini-tools": (
        [
            {
                "role": "model",
                "parts": [
                    {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["ports"]}}},
                    {"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {"html": PAGE}}},
                    {"executableCode": {"id": "c", "language": "PYTHON", "code": "print(x)"}},
                    {"codeExecutionResult": {"id": "c", "outcome": "OUTCOME_FAILED", "output": "NameError: x"}},
                ],
            }
        ],
        ["GOOGLE_SEARCH_WEB: ports", "code: print(x) → NameError: x"],
    ),
    "bedrock-converse": (
        [
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {**OF_BEDROCK, "name": "nova_code_interpreter", "input": {"snippet": "drop(7)"}}},
                    {
                        "toolResult": {
                            "toolUseId": "n",
                            "type": "nova_code_interpreter_result",
                            "status": "error",
                            "content": [{"text": "Error: table 7 is locked"}],
                        }
                    },
                    {
                        "toolUse": {
                            **OF_BEDROCK,
                            "toolUseId": "m",
                            "name": "nova_code_interpreter",
                            "input": {"snippet": "7"},
                        }
                    },
                    {
                        "toolResult": {
                            "toolUseId": "m",
                            "type": "nova_code_interpreter_result",
                            "content": [{"json": {"stdOut": "seven"}}],
                        }
                    },
                    {
                        "toolUse": {
                            **OF_BEDROCK,
                            "toolUseId": "g",
                            "name": "nova_grounding",
                            "input": {"query": "ports"},
                        }
                    },
                    {"toolResult": {"toolUseId": "g", "type": "nova_grounding_result", "content": [{"text": PAGE}]}},
                ],
            }
        ],
        [
            "nova_code_interpreter: snippet: drop(7) → Error: table 7 is locked",
            "nova_code_interpreter: snippet: 7 → seven",
            "nova_grounding: ports",
        ],
    ),
    "langchain": (
        [
            {
                "type": "ai",
                "content": [
                    {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"query": "ports"}},
                    {"type": "server_tool_result", "tool_call_id": "s", "status": "success", "output": "none"},
                ],
            }
        ],
        ["web_search: ports"],
    ),
}


@pytest.mark.parametrize("format", [*HOSTED, "pydantic-ai"])
def test_what_the_providers_own_tools_did_is_told(format: str) -> None:
    """A ticket that a server's tool deleted is deleted, whoever ran the tool."""
    wire, lines = HOSTED[format] if format in HOSTED else ([of_pydantic_ai()], ["mcp_server:crm: delete_ticket"])
    filler = [said("user", f"And what about topic number {n} of the long list that we have here?") for n in range(40)]
    decoded = [formats.get(format.removesuffix("-tools")).decode(entry) for entry in wire]
    summary = summarize([*filler, *decoded], budget=2_000, count=count)
    assert PAGE not in summary  # no one here decided that
    done = sections(summary)["Done"]
    assert [line.startswith(told) for line, told in zip(sorted(done), sorted(lines), strict=True)] == [True] * len(
        lines
    )


DECIDED = "We decided to use port 8443."
CITED = {"content": [{"text": DECIDED}], "citations": [{"sourceContent": [{"text": PAGE}]}]}
ANSWERS: dict[str, dict[str, object]] = {
    "bedrock-converse": {"content": [{"citationsContent": CITED}]},
    "openai-chat": {"content": None, "audio": {"id": "a", "data": "UklG", "expires_at": 1, "transcript": DECIDED}},
}


@pytest.mark.parametrize("format", ANSWERS)
def test_an_answer_that_is_spoken_or_cites_is_read_without_what_it_cites(format: str) -> None:
    """Bedrock puts an answer and the pages that it cites into one block, OpenAI what was spoken beside the content."""
    answer = formats.get(format).decode({"role": "assistant", **ANSWERS[format]})
    summary = summarize([said("user", "Which port?"), answer, said("user", "Go on.")], budget=2_000, count=count)
    assert sections(summary)["Decisions and findings"] == [DECIDED]


def sections(summary: str) -> dict[str, list[str]]:
    blocks = [block.splitlines() for block in summary.split("\n\n")[1:]]
    return {lines[0].removeprefix("## "): [line.removeprefix("- ") for line in lines[1:]] for lines in blocks}


def test_a_session_falls_into_its_sections() -> None:
    english = words("en")
    assert sections(summarize(session(), budget=1000, count=count)) == {
        english.goal: ["Please make the login faster."],
        english.constraints: ["You must never change the database schema."],
        english.superseded: ["Actually, use the cache in src/cache.py instead."],
        english.decisions: [
            "The root cause is the missing index on `users.email`, so every login scans the table.",
        ],
        english.done: [
            "read_file: src/login.py → 401 lines",
            "bash: pytest tests/test_login.py → FAILED tests/test_login.py::test_slow",
            "edit_file: src/login.py ×2 → ok",
        ],
        english.errors: ["FAILED tests/test_login.py::test_slow"],
        english.open: ["Still to do: the remaining test in tests/test_cache.py."],
    }


def test_it_opens_with_what_it_stands_for() -> None:
    first = summarize(session(), budget=1000, count=count).splitlines()[0]
    assert first == "12 messages: 2 from the user, 6 from the assistant, 4 tool results"


@pytest.mark.parametrize(
    ("language", "goal", "rule", "finding"),
    [
        ("zh", "请优化登录页面的加载速度。", "绝对不要修改数据库结构。", "根本原因是缺少索引。"),
        (
            "ja",
            "ログイン画面の表示を速くしてください。",
            "データベースは絶対に変更しないでください。",
            "原因はインデックスの不足です。",
        ),
        (
            "de",
            "Bitte mach die Anmeldung schneller.",
            "Das Schema darf nicht geändert werden.",
            "Die Ursache ist ein fehlender Index.",
        ),
    ],
)
def test_headings_and_sections_speak_the_language_of_the_users(
    language: str, goal: str, rule: str, finding: str
) -> None:
    messages = [
        said("user", f"{goal}{rule}" if language in ("zh", "ja") else f"{goal} {rule}"),
        said("assistant", finding),
    ]
    found = sections(summarize(messages, budget=600, count=count))
    wording = words(language)
    assert found[wording.goal] == [goal]
    assert found[wording.constraints] == [rule]
    assert found[wording.decisions] == [finding]


def test_the_language_can_be_named() -> None:
    assert words("fr").goal in summarize(session(), budget=1000, count=count, language="fr")
    assert words("fr").goal in summarize(session(), budget=1000, count=count, language="fr-CA")
    assert words("en").goal in summarize(session(), budget=1000, count=count, language="tlh")


def test_every_language_has_all_words_and_its_numbers() -> None:
    for wording in extractive_words._WORDS.values():
        assert all(getattr(wording, field.name) for field in fields(wording))
        assert {name for name in ("total", "user", "assistant", "tool") if f"{{{name}}}" in wording.scope} == {
            *("total", "user", "assistant", "tool")
        }
        assert "{n}" in wording.lines


def test_hidden_reasoning_is_never_quoted() -> None:
    thought = Reasoning("I decided to use secret_plan.md because it is the root cause.")
    summary = summarize([said("user", "Hi"), Message("assistant", (thought, Text("Done.")))], budget=500, count=count)
    assert "secret_plan" not in summary


def test_no_heading_orders_anyone_to_go_on() -> None:
    """Done, in progress and superseded are told apart, and nothing is a request."""
    english = words("en")
    headings = [getattr(english, section) for section in extractive.SHARES]
    assert not any(re.match(r"(?i)(continue|resume|next|please|do|you)\b", heading) for heading in headings)
    assert len(set(headings)) == len(headings)


def test_code_pasted_logs_tables_and_announcements_are_no_sentences() -> None:
    text = "Summary:\n| a | b |\n```\nthe issue is in here\n```\n"
    text += "<system-reminder>must never</system-reminder>\n- One. Two!"
    assert list(extractive_facts.sentences(text)) == ["One.", "Two!"]


def test_of_a_long_paste_only_both_ends_are_taken_for_the_users_words() -> None:
    paste = (
        "Please read this log.\n" + "you must never see this line in a summary\n" * 100 + "Only fix the first error."
    )
    found = sections(summarize([said("user", "x" * 40 + paste)], budget=2000, count=count))
    assert "Only fix the first error." in found[words("en").constraints]


def actions_of(messages: Sequence[Message]) -> list[extractive_facts.Action]:
    notes = [extractive_facts.Note.of(message) for message in messages]
    return list(extractive_facts.actions(extractive_facts.paired(notes)))


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ({"path": "a.py", "text": "long"}, "a.py"),
        ({"limit": 5, "flag": True, "note": "hi"}, "limit: 5, flag: True, note: hi"),
        ("*** Begin Patch", "*** Begin Patch"),
        ("[1, 2]", "[1, 2]"),
        ({}, ""),
    ],
)
def test_an_action_names_what_it_worked_on(arguments: object, target: str) -> None:
    (action,) = actions_of(step(1, "tool", arguments, "")[:1])
    assert (action.target, action.outcome, action.lines) == (target, "", 0)


def test_a_failure_is_named_by_its_line_wherever_it_stands_in_the_output() -> None:
    output = "\n".join(["starting"] * 900 + ["ValueError: limit must be positive"])
    messages = step(1, "run", {"command": "make"}, output)
    assert sections(summarize(messages, budget=500, count=count))[words("en").errors] == [
        "ValueError: limit must be positive"
    ]
    (action,) = actions_of(step(1, "run", {"command": "make"}, "\nboom happened\nmore", failed=True))
    assert (action.failure, action.outcome) == ("boom happened", "boom happened")


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ('Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no palette', "ValueError: no palette"),
        ("Exit code 1\nrunning\nerror: cannot find module 'x'", "error: cannot find module 'x'"),
        ("<returncode>1</returncode>\n<output>\nKeyError: 'a'\n</output>", "KeyError: 'a'"),
        ("ERROR:\n\nInvalid `path`: the file is there.\nTry another.", "ERROR: Invalid `path`: the file is there."),
    ],
)
def test_an_error_is_told_by_the_line_that_names_it(output: str, told: str) -> None:
    messages = [said("user", "Draw it."), *step(1, "bash", {"command": "python a.py"}, output)]
    assert sections(summarize(messages, budget=500, count=count))[words("en").errors] == [told]


@pytest.mark.parametrize(
    "output",
    [
        "Command exited with code 2",
        "[Command finished with exit code 1]",
        "<returncode>1</returncode>",
        "Traceback (most recent call last):\n  ...",
    ],
)
def test_a_line_that_only_says_that_something_failed_is_told_beside_what_did(output: str) -> None:
    """Under *Errors met* it said of nothing that it had failed."""
    messages = [said("user", "Draw it."), *step(1, "bash", {"command": "python a.py"}, output)]
    told = sections(summarize(messages, budget=500, count=count))
    assert told[words("en").done] == [f"bash: python a.py → {output.splitlines()[0]}"]
    assert words("en").errors not in told


@pytest.mark.parametrize("ids", [(1, 2), (1, 1)], ids=["own ids", "an id comes again"])
@pytest.mark.parametrize("again", ["make test", "make test 2>&1 | tail -30"])
def test_an_error_that_was_overcome_is_no_longer_told(again: str, ids: tuple[int, int]) -> None:
    """A test that passes is not told as failing, however much of its output was shown; one that fails again is."""
    fails = step(ids[0], "bash", {"command": "make test | tail -40"}, "one\ntwo\n--- FAIL: TestSplit (0.05s)")
    passes = step(ids[1], "bash", {"command": again}, "one\n3 passed")
    other = step(3, "bash", {"command": "make lint"}, "1\nerror: unused import")
    told = sections(summarize([said("user", "Fix it."), *fails, *other, *passes], budget=500, count=count))
    assert told[words("en").errors] == ["error: unused import"]
    assert f"bash: {again} ×2 → 2 lines" in told[words("en").done]
    told = sections(summarize([said("user", "Fix it."), *passes, *other, *fails], budget=500, count=count))
    assert "--- FAIL: TestSplit (0.05s)" in told[words("en").errors]


OF_QWEN = "Command: make\nDirectory: (root)\nOutput: red\nError: {}\nExit Code: {}\nSignal: 0"
"""As Gemini CLI and Qwen Code write what a command did."""
THEME = '{\n"error": "red",\n"warning": "yellow"\n}\n' + "// permission denied: told to the user\n" * 9


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "is_error"),
    [
        ("Read", {"file_path": "src/dark.json"}, THEME, False),
        ("read_file", {"path": "docs/catalog.md"}, THEME, False),
        ("edit", {"command": "view", "path": "src/dark.json"}, THEME, False),
        ("bash", {"command": "cd /repo && sed -n '1,80p' src/dark.json"}, THEME, False),
        ("lookup", {"id": "7"}, '{"error": null, "user": "a"}', False),
        ("lookup", {"id": "7"}, '{\n  "errors": [],\n  "user": "a"\n}', False),
        ("run_shell_command", {"command": "make"}, OF_QWEN.format("(none)", 0), False),
        ("run_shell_command", {"command": "make"}, OF_QWEN.format("spawn make ENOENT", 1), True),
        ("bash", {"command": "python a.py"}, "Traceback (most recent call last):\n\nKeyError: None", True),
        ("Read", {"file_path": "src/dark.json"}, "error: no such file", True),
        ("bash", {"command": "cat src/dark.json"}, "cat: src/dark.json: No such file or directory", True),
        ("bash", {"command": "cat app.log"}, THEME, True),
        ("bash", {"command": "cat > a.py << EOF && python a.py"}, THEME, True),
        ("bash", {"command": "make"}, THEME, True),
        ("lookup", {"id": "7"}, '{"error": "unknown id", "user": null}', True),
    ],
)
def test_what_stands_in_a_file_that_was_read_is_no_error(
    tool: str, arguments: object, output: str, is_error: bool
) -> None:
    messages = [said("user", "Look."), *step(1, tool, arguments, output)]
    told = sections(summarize(messages, budget=500, count=count))
    assert (words("en").errors in told) == is_error
    assert any("red" in line or "denied" in line for line in told[words("en").done]) <= is_error


@pytest.mark.parametrize(
    ("error", "code", "outcome"),
    [("(none)", 0, "6 lines"), ("(none)", 2, "Exit Code: 2"), ("spawn ENOENT", 1, "Error: spawn ENOENT")],
)
def test_a_command_is_told_with_its_error_else_with_its_exit_code(error: str, code: int, outcome: str) -> None:
    """Each command of Qwen Code's that went well was told as `Error: (none)`."""
    output = OF_QWEN.format(error, code)
    messages = [said("user", "Make it."), *step(1, "run_shell_command", {"command": "make"}, output)]
    done = sections(summarize(messages, budget=500, count=count))[words("en").done]
    assert done == [f"run_shell_command: make → {outcome}"]


def test_many_actions_give_way_to_the_newest_and_those_that_change_something() -> None:
    messages = [said("user", "Tidy up please.")]
    for number in range(200):
        messages += step(number, "read_file", {"path": f"src/module_{number}.py"}, "one\ntwo")
    messages += step(200, "write_file", {"path": "src/result.py"}, "ok")
    done = sections(summarize(messages, budget=300, count=count))[words("en").done]
    assert "write_file: src/result.py → ok" in done
    assert "read_file: src/module_199.py → 2 lines" in done
    assert "read_file: src/module_0.py → 2 lines" not in done


def test_an_action_that_names_what_the_tool_is_to_do_tells_what_it_was_done_to() -> None:
    """Of an editor with a command for each thing it does, it said *create* and no file."""
    messages = [said("user", "Tidy up please."), *step(1, "edit", {"command": "create", "path": "src/a.py"}, "ok")]
    messages += step(2, "bash", {"command": "make test", "path": "src"}, "3 passed")
    messages += step(3, "bash", {"command": "ls", "description": "List the files"}, "a.py\nb.py")
    done = sections(summarize(messages, budget=300, count=count))[words("en").done]
    assert "edit: create src/a.py → ok" in done
    assert "bash: ls → 2 lines" in done
    assert any(line.startswith("bash: make test →") for line in done)


CODEX = "Chunk ID: fca29f\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 18\nOutput:\n"


@pytest.mark.parametrize("frame", [CODEX + "{}", "<returncode>0</returncode>\n<output>\n{}</output>"])
@pytest.mark.parametrize(
    ("output", "told"),
    [("2026-11-26\n", " → 2026-11-26"), ("", ""), ("a.py\nb.py\n", " → 2 lines")],
)
def test_what_came_of_a_command_is_told_without_the_lines_that_a_harness_puts_around_it(
    frame: str, output: str, told: str
) -> None:
    messages = [said("user", "Look."), *step(1, "bash", {"command": "date +%F"}, frame.format(output))]
    assert sections(summarize(messages, budget=300, count=count))[words("en").done] == [f"bash: date +%F{told}"]


def test_of_a_call_no_more_arguments_are_read_than_its_line_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has thousands of calls, and each of them is read in a pass."""
    read: list[object] = []
    words_of = extractive_facts._words_of
    monkeypatch.setattr(extractive_facts, "_words_of", lambda value: read.append(value) or words_of(value))
    arguments = {"timeout": 9, "path": "src/a.py", "command": "view", "text": "x" * 5_000}
    note = extractive_facts.Note.of(step(1, "editor", arguments, "done")[0])
    assert [call.target for call in note.calls] == ["view src/a.py"]
    assert read == ["view"]


def test_an_action_without_target_or_outcome_is_not_worth_a_line() -> None:
    assert words("en").done not in summarize(step(1, "wait", {}, ""), budget=300, count=count)


@pytest.mark.parametrize(
    ("cue", "yes", "no"),
    [
        (extractive_cues.CONSTRAINT, "Do not touch the tests", "I do not see it"),
        (extractive_cues.CONSTRAINT, "不要动测试", "测试通过了"),
        (extractive_cues.CONSTRAINT, "Next step: the importer", "Fine. Next step."),
        (extractive_cues.CORRECTION, "No, that was wrong", "Nothing else"),
        (extractive_cues.CORRECTION, "Actually, use the cache.", "How do I actually use them?"),
        (extractive_cues.CORRECTION, "no, actually it's the background", "A real godsend, actually."),
        (extractive_cues.CORRECTION, "Please use yarn instead of npm.", "I'll have one of these instead of the tea."),
        (extractive_cues.CORRECTION, "no console logs!", "No worries!"),
        (extractive_cues.CORRECTION, "You took the wrong branch.", "It's good to have a plan if something goes wrong."),
        (extractive_cues.CORRECTION, "这里写错了", "运行之后报错了"),
        (extractive_cues.CORRECTION, "算了，先这样", "价格都计算了"),
        (extractive_cues.CORRECTION, "それは間違いです", "間違いなく速い"),
        (extractive_cues.DECISION, "We decided to wait", "We wait"),
        *(
            (extractive_cues.PASSING, passing, "The build is green, and not slow")
            for passing in (
                *(
                    "It still fails",
                    "The tests aren't passing",
                    "They haven’t been fixed",
                    "That isn't solved",
                    "not yet fixed",
                ),
                *(
                    "The job keeps failing",
                    "I can't find it",
                    "I cannot find it",
                    "Noch immer rot",
                    "Das geht noch nicht",
                ),
                *("构建仍然失败", "还没有解决", "まだ直っていない"),
            )
        ),
        (extractive_cues.OPEN, "まだ確認していません", "確認しました"),
        (extractive_cues.ERROR, "npm ERR! missing script", "the error handling is fine"),
        (
            extractive_cues.ERROR,
            "2026-03-04 09:12:59,123 - app.db - ERROR - no pool",
            "2026-03-04 INFO again, as ERROR 5",
        ),
        (extractive_cues.ERROR, "Mar  4 09:12:59 web-1 app[12]: FATAL no pool", "12:ERROR = re.compile(x)"),
        (extractive_cues.ERROR, 'ts=1 level=error msg="no pool"', "3.1 ERROR handling is fine"),
        (extractive_cues.ERROR, '{"level": "error", "msg": "no pool"}', '{"level": "info", "error": 0}'),
        (extractive_cues.ERROR, "process exited with code 2", "process exited with code 0"),
        (extractive_cues.ERROR, "    ✕ adds two prices (12 ms)", "    ✓ adds two prices (12 ms)"),
        (extractive_cues.ERROR, "tests/test_a.py::test_sum FAILED [ 50%]", "tests/test_a.py::test_sum PASSED [ 50%]"),
        (extractive_cues.ERROR, "test prices::sum ... FAILED", "FAILED_STATES is a list of states"),
        (extractive_cues.ERROR, "Caused by: java.sql.SQLException: no lease", "Caused by: a cable"),
        (extractive_cues.ERROR, "Unhandled exception. Acme.PayException: late", "Unhandled exceptions are rare"),
        (extractive_cues.ERROR, "PHP Fatal error:  Uncaught App\\Late: no", "PHP has a fatal error type"),
        (extractive_cues.ERROR, "a/b.rb:84:in `save!': Amount is too high (A::B)", "from a/b.rb:84:in `save!'"),
        (extractive_cues.ERROR, "thread 'main' (41) panicked at src/a.rs:9:5:", "a thread panicked at noon"),
        (extractive_cues.ERROR, "E       assert 2985 == 1990", "assert 2985 == 1990"),
        (extractive_cues.ERROR, "  ● refund › reduces the total", "● nginx.service - a web server"),
        (extractive_cues.ERROR, "CONFLICT (content): Merge conflict in a.py", "a CONFLICT (of two)"),
        (extractive_cues.OUTCOME, "Plan: 1 to add, 2 to destroy.", "a plan to add one"),
        (extractive_cues.OUTCOME, '~ engine = "14.7" -> "15.3" # forces replacement', "a replacement of the forces"),
        (extractive_cues.ERROR, "not ok 3 - adds two prices", "whether it is not ok is left open"),
    ],
)
def test_a_cue_tells_apart(cue: re.Pattern[str], yes: str, no: str) -> None:
    assert cue.search(yes)
    assert not cue.search(no)


SAYINGS = [
    "Never do that.",
    "ok",
    "I decided on a_b.py because it works.",
    "原因是缓存。",
    "x" * 700,
    "",
    "Error: no",
    "- [ ] rest",
]
ROLES: list[Role] = ["user", "assistant", "tool"]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    rows = draw(st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from(SAYINGS)), min_size=1, max_size=30))
    return [
        Message(role, (ToolResult("c", (Text(text),)),)) if role == "tool" else said(role, text) for role, text in rows
    ]


@settings(max_examples=examples(200))
@given(histories(), st.integers(min_value=1, max_value=600))
def test_it_is_never_empty_never_over_budget_and_always_the_same(messages: list[Message], budget: int) -> None:
    summary = summarize(messages, budget=budget, count=count)
    assert summary.strip()
    assert count(summary) <= budget
    assert summary == summarize(messages, budget=budget, count=count)


@given(histories())
def test_nothing_but_quotes_stands_under_the_headings(messages: list[Message]) -> None:
    source = " ".join(" ".join(m.text + "".join(r.text for r in m.tool_results) for m in messages).split())
    for lines in sections(summarize(messages, budget=2000, count=count, language="en")).values():
        assert all(line.removesuffix("…") in source for line in lines)


def test_nothing_gives_nothing() -> None:
    assert summarize([], budget=100, count=count) == ""


def test_a_counter_that_charges_more_for_the_whole_than_for_its_parts_is_obeyed() -> None:
    def strict(text: str) -> int:
        return count(text) * (2 if "\n\n" in text else 1)

    assert strict(summarize(session(), budget=120, count=strict)) <= 120


def _messages(rows: Sequence[str]) -> list[Message]:
    """A Claude Code session, read just well enough."""
    found = []
    for row in rows:
        entry = json.loads(row).get("message") or {}
        blocks = entry.get("content") or []
        parts: list[Text | ToolCall | ToolResult] = [Text(blocks)] if isinstance(blocks, str) else []
        for block in blocks if isinstance(blocks, list) else []:
            if block["type"] == "text":
                parts.append(Text(block["text"]))
            elif block["type"] == "tool_use":
                parts.append(ToolCall(block["id"], block["name"], json.dumps(block["input"])))
            elif block["type"] == "tool_result":
                parts.append(ToolResult(block["tool_use_id"], (Text(str(block["content"])),)))
        if parts:
            found.append(Message(entry["role"], tuple(parts)))
    return found


@pytest.mark.parametrize("file", ["entire-cli-claude-code/6113e919.jsonl", "kimi-cli-claude-code-zh/629b7931.jsonl"])
@pytest.mark.parametrize("budget", [200, 1000, 4000])
def test_a_real_session_is_summed_up_in_seconds_and_shorter(transcripts: Path, file: str, budget: int) -> None:
    messages = _messages((transcripts / file).read_text(encoding="utf-8").splitlines())
    started = time.process_time()
    summary = summarize(messages, budget=budget, count=count)
    assert time.process_time() - started < 10  # well under a second on an idle machine
    assert min(budget * 0.6, 1000) < count(summary) <= budget
    assert len(sections(summary)) >= 3
    assert sections(summary).keys() <= {getattr(words(w), s) for w in ("en", "zh") for s in extractive.SHARES}


def test_a_long_answer_is_read_once_though_it_tells_more_as_the_newest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of prose was read sentence by sentence for its note, and again as the newest answer."""
    from contextfold import Compactor

    answer = "".join(
        f"I decided to keep table_{n} because test_{n} failed. TODO: rename rows_{n}. " for n in range(2_000)
    )
    read, sentences = list[str](), extractive_facts.sentences
    monkeypatch.setattr(
        extractive_facts, "sentences", lambda text, *given, **more: read.append(text) or sentences(text, *given, **more)
    )
    asked = [{"role": "user", "content": f"Go on with step {n}."} for n in range(8)]
    talk = [asked[0], {"role": "assistant", "content": answer}, *asked[1:]]
    out = Compactor(window=16_000).compact(talk)
    assert out.changed
    assert sum(text == answer for text in read) == 1
    assert "TODO: rename rows_" in str(out.messages), "the newest answer tells what is open"
