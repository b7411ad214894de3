"""What Letta writes of an agent (``.af``), and records with keys of one provider beside messages of another."""

from __future__ import annotations

from typing import Any

import pytest

from transcripts.files import one, roles


def _call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "send_message", "arguments": '{"message": "x"}'}}


def _row(role: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content), "tool_calls": None, "tool_returns": [], "id": "m", **fields}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_an_agents_file_of_lettas_is_read_with_calls_that_waited_for_a_word_and_all_their_results() -> None:
    """It was refused for its roles; read as chat messages, only the first of several results would have been there."""
    returns = [{"tool_call_id": id, "status": "success", "func_response": f"result of {id}"} for id in ("a", "b")]
    thought = {"type": "reasoning", "is_native": True, "reasoning": "Two at once.", "signature": "s"}
    messages = [
        _row("system", _text("Be brief.")),
        _row("user", _text("Look at both.")),
        _row("approval", thought, tool_calls=[_call("a"), _call("b")], tool_call_id="a"),
        _row("approval", approvals=returns),
        _row("tool", tool_call_id="a", tool_returns=returns),
        _row("approval", tool_calls=[_call("c")]),
        _row("approval", approvals=[{"tool_call_id": "c", "func_response": "run at home"}]),
        _row("assistant", thought, _text("Once more."), tool_calls=[_call("d")]),
        _row("tool", _text("found"), tool_call_id="d"),
        _row("assistant", _text("Done.")),
    ]
    agent = {"name": "x", "system": "Be brief.", "model": "m", "in_context_message_ids": [], "messages": messages}

    found = one({"agents": [agent], "blocks": [], "tools": []})

    assert (found.kind, found.format) == ("letta", "openai-chat")
    assert [(message["role"], message["content"]) for message in found.messages] == [
        ("system", "Be brief."),
        ("user", "Look at both."),
        ("assistant", None),
        ("tool", "result of a"),
        ("tool", "result of b"),
        ("assistant", None),
        ("tool", "run at home"),
        ("assistant", "Once more."),
        ("tool", "found"),
        ("assistant", "Done."),
    ]
    assert found.messages[2]["reasoning_content"] == "Two at once."
    assert [message.get("tool_call_id") for message in found.messages if message["role"] == "tool"] == list("abcd")


SAID = {"role": "user", "content": "Go."}


@pytest.mark.parametrize(
    "answer",
    [
        [
            {"role": "assistant", "content": None, "tool_calls": [_call("a")]},
            {"role": "tool", "tool_call_id": "a", "content": [_text("done")]},
        ],
        [
            {"role": "assistant", "content": "I go.", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "done"},
        ],
    ],
    ids=["calls", "functions"],
)
@pytest.mark.parametrize("extra", [{}, {"anthropic_version": "x"}])
def test_marks_of_the_messages_count_before_keys_that_stand_beside_them(
    answer: list[dict[str, Any]], extra: dict[str, str]
) -> None:
    """A record with ``system`` and ``model`` was taken for Anthropic's, and refused for the role of a result."""
    found = one({"model": "gpt-4", "system": "Be brief.", "messages": [SAID, *answer], **extra})

    assert found.format == "openai-chat"
    assert roles(found.messages) == ["system", "user", *(message["role"] for message in answer)]


def test_without_marks_the_keys_beside_the_messages_tell() -> None:
    talk = [SAID, {"role": "assistant", "content": "I go."}]
    assert one({"model": "claude", "system": "Be brief.", "messages": talk}).format == "anthropic"
