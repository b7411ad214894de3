"""Calls of the Responses API's built-in tools that the caller runs: their outputs keep the shape that the API takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openai
import pytest
from emulator import ProviderServer

from contextfold import CompactionResult, Compactor, formats
from contextfold.formats import local_tools
from contextfold.messages import Text, ToolCall, ToolResult
from contextfold.tiers import TIERS

RESPONSES = formats.get("openai-responses")
ASK: dict[str, Any] = {"type": "message", "role": "user", "content": "List the files."}
NEXT: dict[str, Any] = {"type": "message", "role": "user", "content": "Never mind. What next?"}
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
EXIT = {"type": "exit", "exit_code": 0}

CALLS: dict[str, dict[str, Any]] = {
    "local_shell_call": {
        "id": "l",
        "call_id": "c",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"]},
    },
    "shell_call": {"call_id": "c", "action": {"commands": ["ls"]}},
    "apply_patch_call": {"call_id": "c", "operation": {"type": "delete_file", "path": "a.py"}},
    "computer_call": {"id": "k", "call_id": "c", "action": {"type": "click", "x": 1, "y": 2}},
    "tool_search_call": {"call_id": "c", "execution": "client", "arguments": {"query": "weather"}},
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "local_shell_call": {"type": "local_shell_call_output", "id": "c", "output": "a.py"},
    "shell_call": {
        "type": "shell_call_output",
        "call_id": "c",
        "output": [{"stdout": "a.py", "stderr": "warned", "outcome": EXIT}],
    },
    "apply_patch_call": {"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "Done."},
    "computer_call": {"type": "computer_call_output", "call_id": "c", "output": SCREENSHOT},
    "tool_search_call": {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": []},
}
KINDS = sorted(CALLS)


def call_of(kind: str) -> dict[str, Any]:
    return {"type": kind, **CALLS[kind]}


def refused_and_mended(wire: list[Any]) -> tuple[list[dict[str, Any]], CompactionResult]:
    """What reached the provider of a history that it refuses as it stands, and the result of the call."""
    results: list[CompactionResult] = []
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:

        def send(view: list[Any]) -> Any:
            return client.responses.create(model="m", input=view)

        with pytest.raises(openai.BadRequestError, match="No tool output found"):
            send(wire)
        assert Compactor(window=8_000).call(send, wire, on_result=results.append).output_text
        return list(server.requests[-1].body["input"]), results[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_was_never_answered_gets_an_output_of_its_own_type(kind: str) -> None:
    """Only a computer's call cannot: its output is a screenshot, so it becomes text, and the ledger says so."""
    sent, result = refused_and_mended([ASK, call_of(kind), NEXT])
    if kind == "computer_call":
        assert [item["type"] for item in sent] == ["message", "message", "message"]
        assert '"x": 1' in sent[1]["content"]
        assert "screenshot" in next(entry.reason for entry in result.ledger if entry.index == 1)
        return
    assert [item["type"] for item in sent] == ["message", kind, local_tools.OUTPUT_OF[kind], "message"]
    assert local_tools.answered_id(sent[2]) == "c"


@pytest.mark.parametrize("kind", KINDS)
def test_an_answered_call_is_sent_as_it_is(kind: str) -> None:
    wire = [ASK, call_of(kind), OUTPUTS[kind], NEXT]
    sent: list[Any] = []
    Compactor(window=8_000).call(sent.append, wire)
    assert all(new is old for new, old in zip(sent[0], wire, strict=True))


def test_codex_answers_its_shell_as_a_function_and_that_is_left_alone() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "a.py"}
    wire = [ASK, call_of("local_shell_call"), output, NEXT]
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:
        Compactor(window=8_000).call(lambda view: client.responses.create(model="m", input=view), wire)
        assert server.requests[-1].body["input"] == wire


def test_what_a_provider_ran_itself_needs_no_answer() -> None:
    search: dict[str, Any] = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
    found: dict[str, Any] = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    program = {"type": "program_output", "id": "p", "call_id": "p1", "output": "4"}
    wire = [ASK, search, found, program, NEXT]
    assert not any(message.tool_calls or message.tool_results for message in map(RESPONSES.decode, wire))
    sent: list[Any] = []
    Compactor(window=8_000).call(sent.append, wire)
    assert sent[0] == wire


def test_a_shells_output_is_text_that_can_be_shortened() -> None:
    chunks = [{"stdout": f"line {n}\n" * 400, "stderr": "", "outcome": EXIT} for n in range(2)]
    item = {"type": "shell_call_output", "call_id": "c", "max_output_length": 9_000, "output": chunks}
    message = RESPONSES.decode(item)
    (result,) = message.tool_results
    assert result.text.startswith("line 0\nline 0")
    shorter = TIERS["tool_outputs"].reduce(result, 50)
    assert shorter is not None
    (encoded,) = RESPONSES.encode([message.with_parts((shorter,))])
    assert {key: encoded[key] for key in ("type", "call_id", "max_output_length")} == {
        key: item[key] for key in ("type", "call_id", "max_output_length")
    }
    assert len(str(encoded["output"])) < len(str(chunks)) / 4
    assert all(
        chunk["outcome"] == EXIT and set(chunk) == {"stdout", "stderr", "outcome"} for chunk in encoded["output"]
    )


def test_a_chunk_that_was_not_edited_keeps_its_stderr() -> None:
    message = RESPONSES.decode(OUTPUTS["shell_call"])
    (result,) = message.tool_results
    added = replace(result, content=(*result.content, Text("[more]", edited=True)), edited=True)
    (encoded,) = RESPONSES.encode([message.with_parts((added,))])
    assert encoded["output"] == [
        *OUTPUTS["shell_call"]["output"],
        {"stdout": "[more]", "stderr": "", "outcome": EXIT},
    ]


def test_a_screenshot_that_is_removed_leaves_a_blank_one() -> None:
    """The API takes no words there."""
    message = RESPONSES.decode(OUTPUTS["computer_call"])
    (result,) = message.tool_results
    reduced = TIERS["media"].reduce(result, 0)
    assert reduced is not None
    (encoded,) = RESPONSES.encode([message.with_parts((reduced,))])
    assert encoded == {**OUTPUTS["computer_call"], "output": dict(local_tools.BLANK_SCREENSHOT)}
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:
        wire: Any = [ASK, call_of("computer_call"), encoded, NEXT]
        assert client.responses.create(model="m", input=wire).output_text


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_under_another_id_keeps_its_shape(kind: str) -> None:
    message = RESPONSES.decode(OUTPUTS[kind])
    (result,) = message.tool_results
    (encoded,) = RESPONSES.encode([message.with_parts((replace(result, call_id="d", edited=True),))])
    named = "id" if kind == "local_shell_call" else "call_id"
    assert encoded == {**OUTPUTS[kind], named: "d"}


@pytest.mark.parametrize("kind", KINDS)
def test_in_other_formats_they_are_calls_like_any_other(kind: str) -> None:
    out = Compactor(window=8_000).compact([ASK, call_of(kind), OUTPUTS[kind]], to="openai-chat")
    (call,) = out.messages[1]["tool_calls"]
    assert call["function"]["name"] == kind.removesuffix("_call")
    assert out.messages[2]["tool_call_id"] == call["id"]


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"type": "computer_call_output", "call_id": "c", "output": "a picture"}, "input[2].output"),
        ({"type": "shell_call_output", "call_id": "c", "output": "words"}, "input[2].output"),
        ({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x"}]}, "input[2].output"),
        ({"type": "apply_patch_call_output", "call_id": "c"}, "input[2]"),
        ({"type": "local_shell_call_output", "id": "c", "output": ["x"]}, "input[2].output"),
        ({"type": "tool_search_output", "call_id": "c"}, "input[2]"),
        (
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            "No tool call found for function call output",
        ),
    ],
)
def test_the_provider_on_loopback_refuses_other_shapes(item: dict[str, Any], problem: str) -> None:
    call = local_tools.CALL_OF.get(item["type"], "shell_call")
    with ProviderServer() as server, openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:
        wire: Any = [ASK, call_of(call), item, NEXT]
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="m", input=wire)
        assert problem in str(refused.value)


def test_a_result_for_a_call_of_no_built_in_tool_is_built_elsewhere() -> None:
    assert local_tools.built(ToolResult("c", (Text("x"),)), "x") is None
    assert ToolCall("c", "f", "").local is None
