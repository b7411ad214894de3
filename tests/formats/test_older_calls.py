"""OpenAI's calls of before there were tools: ``function_call``, which the role ``function`` answers, without ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage, message_to_dict

from contextfold import Compactor

SHAPES = ("chat", "langchain", "langchain dumps")


def asked(shape: str, name: str, arguments: str) -> Any:
    call = {"name": name, "arguments": arguments}
    if shape == "chat":
        return {"role": "assistant", "content": None, "function_call": call}
    message = AIMessage("", additional_kwargs={"function_call": call})
    return message if shape == "langchain" else message_to_dict(message)


def answered(shape: str, name: str, text: str) -> Any:
    if shape == "chat":
        return {"role": "function", "name": name, "content": text}
    message = FunctionMessage(text, name=name)
    return message if shape == "langchain" else message_to_dict(message)


def said(shape: str, text: str) -> Any:
    if shape == "chat":
        return {"role": "user", "content": text}
    return HumanMessage(text) if shape == "langchain" else message_to_dict(HumanMessage(text))


def dialogue(shape: str, steps: int) -> list[Any]:
    wire = [said(shape, "Find out why it fails.")]
    for step in range(steps):
        name = ("read_file", "grep")[step % 2]
        wire.append(asked(shape, name, json.dumps({"path": f"/srv/m{step}.py", "text": f"line {step} " * 60})))
        wire.append(answered(shape, name, f"output {step} " * 90))
    return wire


def fields(entry: Any) -> dict[str, Any]:
    """Kind, call and name of a message in any of the shapes."""
    if not isinstance(entry, dict):
        entry = message_to_dict(entry)
    inner = entry.get("data", entry)
    call = inner.get("function_call") or inner.get("additional_kwargs", {}).get("function_call")
    return {"kind": entry.get("role") or entry["type"], "call": call, "name": inner.get("name")}


def pairs(view: list[Any]) -> None:
    """Each result of a function stands behind its call, each call has one, and there is no result of today's kind."""
    waiting = None
    for entry in map(fields, view):
        assert entry["kind"] != "tool"
        assert (entry["kind"] == "function") == (waiting is not None)
        assert waiting is None or entry["name"] == waiting["name"]
        waiting = entry["call"]
    assert waiting is None


@pytest.mark.parametrize("shape", SHAPES)
def test_what_fits_is_sent_as_it_came(shape: str) -> None:
    wire = dialogue(shape, 4)
    out = Compactor(window=100_000).compact(wire)
    assert all(new is old for new, old in zip(out.messages, wire, strict=True))
    assert out.ledger.counts()["kept"] + out.ledger.counts()["pinned"] == len(wire)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keep", [0.1, 0.6])
def test_calls_are_summarized_or_shortened_with_their_results_and_none_is_dropped(shape: str, keep: float) -> None:
    wire = dialogue(shape, 40)
    out = Compactor(window=16_000, target=("fraction", 0.75), keep=("fraction", keep)).compact(wire)
    assert out.changed
    assert out.ledger.counts()["dropped"] == 0
    assert not any(event.name == "history_repaired" for event in out.events)
    pairs(out.messages)
    kept = [entry["call"] for entry in map(fields, out.messages) if entry["call"]]
    assert all(json.loads(call["arguments"]).keys() == {"path", "text"} for call in kept)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_without_an_answer_gets_one_of_its_own_kind(shape: str) -> None:
    """Of the role ``tool`` it would be refused: none of its calls stands before it."""
    wire = [*dialogue(shape, 3), asked(shape, "grep", "{}"), said(shape, "Stop. What have you got?")]
    sent: list[list[Any]] = []
    Compactor(window=100_000).call(sent.append, wire)
    pairs(sent[0])
    assert len(sent[0]) == len(wire) + 1


def test_beside_a_call_of_today_the_older_one_is_the_same() -> None:
    """Google's integration of LangChain writes both."""
    call = {"name": "grep", "args": {}, "id": "c", "type": "tool_call"}
    older = {"function_call": {"name": "grep", "arguments": "{}"}}
    message = AIMessage("", tool_calls=[call], additional_kwargs=older)
    sent: list[list[Any]] = []
    Compactor(window=100_000).call(sent.append, [HumanMessage("Look."), message, HumanMessage("Stop.")])
    assert [entry.type for entry in sent[0]] == ["human", "ai", "tool", "human"]
