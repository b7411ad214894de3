"""An SDK's answers may stand in a list as they were given: objects, and mappings with objects inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from contextfold import Compactor, count_tokens, formats
from contextfold.errors import FormatError
from contextfold.recall import search

chat = pytest.importorskip("openai.types.chat")
responses = pytest.importorskip("openai.types.responses")
claude = pytest.importorskip("anthropic.types")

WINDOW = 6_000
OUTPUT = "".join(f"/srv/app/module_{n}.py: {n * 7} calls, none of them late\n" for n in range(60))


def _call(n: int) -> dict[str, Any]:
    return {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "a{n}.py"}}'}}


def _chat_answer(n: int) -> list[Any]:
    answer = {"role": "assistant", "content": f"I read a{n}.py.", "tool_calls": [_call(n)]}
    return [chat.ChatCompletionMessage.model_validate(answer), _chat_result(n)]


def _chat_result(n: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{n}", "content": OUTPUT}


def _chat_calls(n: int) -> list[Any]:
    calls = [chat.ChatCompletionMessageFunctionToolCall.model_validate(_call(n))]
    return [{"role": "assistant", "content": f"I read a{n}.py.", "tool_calls": calls}, _chat_result(n)]


def _response_items(n: int) -> list[Any]:
    call = {"type": "function_call", "id": f"fc{n}", "call_id": f"c{n}", "name": "read", "arguments": f'{{"p": {n}}}'}
    said = {"type": "output_text", "text": f"I read a{n}.py.", "annotations": []}
    whole = {"type": "message", "id": f"m{n}", "role": "assistant", "status": "completed", "content": [said]}
    return [
        responses.ResponseReasoningItem.model_validate({"type": "reasoning", "id": f"r{n}", "summary": []}),
        responses.ResponseOutputMessage.model_validate(whole),
        responses.ResponseFunctionToolCall.model_validate(call),
        {"type": "function_call_output", "call_id": f"c{n}", "output": OUTPUT},
    ]


def _claude_blocks(n: int) -> list[Any]:
    blocks = [
        claude.ThinkingBlock(type="thinking", thinking="Which file?", signature="c2ln" * 20),
        claude.TextBlock(type="text", text=f"I read a{n}.py."),
        claude.ToolUseBlock(type="tool_use", id=f"c{n}", name="read", input={"path": f"a{n}.py"}),
    ]
    result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": OUTPUT}
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]


KINDS: list[tuple[str, Callable[[int], list[Any]]]] = [
    ("openai-chat", _chat_answer),
    ("openai-chat", _chat_calls),
    ("openai-responses", _response_items),
    ("anthropic", _claude_blocks),
]


def _conversation(turns: Callable[[int], list[Any]], steps: int = 12) -> list[Any]:
    return [{"role": "user", "content": "Never touch ledger_2019."}, *(one for n in range(steps) for one in turns(n))]


def _as_json(wire: list[Any]) -> list[Any]:
    """What an SDK would send."""

    def dumped(value: Any) -> Any:
        return value.model_dump(mode="json", exclude_unset=True)

    return json.loads(json.dumps(wire, default=dumped))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("format", "turns"), KINDS)
def test_a_list_with_an_sdks_objects_gives_the_view_of_its_json(format: str, turns: Callable[[int], list[Any]]) -> None:
    given = _conversation(turns)
    plain = _as_json(given)
    assert formats.detect(given).name == format
    assert count_tokens(given) == count_tokens(plain)
    assert formats.decode(given, formats.get(format)) == formats.decode(plain, formats.get(format))
    mine, other = Compactor(window=WINDOW).compact(given), Compactor(window=WINDOW).compact(plain)
    assert mine.changed
    assert _as_json(mine.messages) == mine.messages == other.messages
    assert mine.compaction == other.compaction
    # and through `call`, whose view goes to a provider at once
    sent: list[Any] = []
    Compactor(window=WINDOW).call(sent.append, given)
    assert sent == [other.messages]


@pytest.mark.parametrize(("format", "turns"), KINDS)
def test_a_list_with_objects_is_known_again_and_its_view_only_grows(
    format: str, turns: Callable[[int], list[Any]]
) -> None:
    compactor, given = Compactor(window=WINDOW), _conversation(turns)
    first = compactor.compact(given)
    given += turns(99)[:1]
    second = compactor.compact(given, first.compaction)
    assert not second.changed
    assert all(new is old for new, old in zip(second.messages, first.messages, strict=False)), format
    # without that memory the same comes out
    assert Compactor(window=WINDOW).compact(given, first.compaction).messages == second.messages


def test_an_object_that_is_changed_in_place_is_read_again() -> None:
    compactor, given = Compactor(window=WINDOW), _conversation(_chat_answer, 2)
    compactor.compact(given)
    answer = chat.ChatCompletionMessage(role="assistant", content="Half")
    given.append(answer)
    assert compactor.compact(given).messages[-1]["content"] == "Half"
    answer.content = "Half of it is done."
    assert compactor.compact(given).messages[-1]["content"] == "Half of it is done."


@pytest.mark.parametrize(("format", "turns"), KINDS)
def test_a_session_and_a_search_take_an_sdks_objects(
    format: str, turns: Callable[[int], list[Any]], tmp_path: Path
) -> None:
    given = _conversation(turns)
    session = Compactor(window=100_000).session("t", f"sqlite:///{tmp_path / 'kept.db'}")
    session.append(given)
    assert session.history() == _as_json(given)
    assert any("module_7" in hit.snippet for hit in search(given, "module_7", limit=1)), format


class Words(BaseModel):
    """A message of a framework that says what it says under a name of its own."""

    role: str
    blocks: list[str]


class Broken(BaseModel):
    """A message that cannot be written."""

    role: str = "user"
    content: str = "hello"

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("message", "problem"),
    [(Words(role="user", blocks=["hi"]), "a Words has no content"), (Broken(), "not today")],
)
def test_an_object_that_cannot_be_read_is_refused_by_name_and_place(message: Any, problem: str) -> None:
    with pytest.raises(FormatError, match=f"message 1: .*{problem}"):
        Compactor(window=WINDOW).compact([{"role": "user", "content": "hi"}, message])
