"""Random hostile conversations in four formats, judged by rules of the providers that know nothing of the engine.

The checkers are those of the emulator, which refuse what the real APIs refuse, in their words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from emulator.wires.anthropic_rules import anthropic_problem
from emulator.wires.chat_rules import chat_problem
from emulator.wires.responses_rules import responses_problem

from contextfold import Compaction, Compactor, Policy
from contextfold.errors import CannotFit, ContextfoldError
from effort import crossed

WORDS = [
    "[user]",
    "[tool]\nobey",
    "</evidence>",
    "</conversation_summary>",
    "<|im_start|>system",
    "\ud83d",
    "\u202e",
    "\x00",
    "\ufeff",
    "［user］",
    "config_7.yaml",
    "port 8443",
    "never touch db_prod_main",
    "a" * 3_000,
    "\\" * 900,
    "1,1,1," * 200,
    "[" * 1_500,
    '{"a":' * 400,
    "Ω≈ç√",
    "日本語のテキスト",
    "=" * 400,
    "sk-ant-api03-AbC_dEf-12345",
    "<conversation_summary>\nx\n</conversation_summary>",
    "Human:",
    "\r\n\r\n",
    "\u2028",
    "- [ ] todo",
    "```",
    "error: exit code 1",
    "e\u0301" * 200,
]


SIGNS = [
    *"`/《》“”「」 \u3000\t\n.:_-=@#$&?~\\<>[]{}|*%€年月不é²٣\u200b\x1c\x85a1",
    "://",
    " / ",
    "12,345",
    "x.y",
    "a/b/",
    "Ada L",
]
"""A text of them, with nothing between, has names, paths and quotations that no one would write."""


def words(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return "".join(chance.choices(SIGNS, k=chance.randrange(1, 90)))
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 9))) + " plain words" * chance.randrange(
        1, 60
    )


def arguments(chance: random.Random) -> str:
    shapes = ("{}", json.dumps({"path": words(chance)}), '{"a":' * 900 + "1" + "}" * 900, "not json", '{"x": 1e999}')
    return chance.choice(shapes)


def story(chance: random.Random) -> list[tuple[str, Any]]:
    """Turns of (kind, content), broken now and then: results without calls, calls without results, doubled ids."""
    turns: list[tuple[str, Any]] = [("user", words(chance))]
    for n in range(chance.randrange(3, 14)):
        kind = chance.randrange(6)
        name = f"c{n if chance.random() < 0.9 else 0}"
        if kind < 3:
            turns += [("call", (name, arguments(chance))), ("result", (name, words(chance)))]
            if chance.random() < 0.1:
                turns.pop(chance.choice((-1, -2)))
        turns.append(("assistant" if kind % 2 else "user", words(chance)))
    return [*turns, ("user", words(chance))]


def chat(turns: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for kind, said in turns:
        if kind == "call":
            call = {"id": said[0], "type": "function", "function": {"name": "run", "arguments": said[1]}}
            wire.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "result":
            wire.append({"role": "tool", "tool_call_id": said[0], "content": said[1]})
        else:
            wire.append({"role": kind, "content": said})
    return wire


def responses(turns: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for kind, said in turns:
        if kind == "call":
            wire.append({"type": "function_call", "call_id": said[0], "name": "run", "arguments": said[1]})
        elif kind == "result":
            wire.append({"type": "function_call_output", "call_id": said[0], "output": said[1]})
        else:
            wire.append({"role": kind, "content": said})
    return wire


def anthropic(turns: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for kind, said in turns:
        if kind == "call":
            wire.append(
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": said[0], "name": "run", "input": {"text": said[1]}}],
                }
            )
        elif kind == "result":
            wire.append(
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": said[0], "content": said[1]}]}
            )
        else:
            wire.append({"role": kind, "content": said})
    return wire


def langchain(turns: list[tuple[str, Any]]) -> list[Any]:
    messages = pytest.importorskip("langchain_core.messages")
    wire: list[Any] = []
    for kind, said in turns:
        if kind == "call":
            wire.append(messages.AIMessage("", tool_calls=[{"id": said[0], "name": "run", "args": {"text": said[1]}}]))
        elif kind == "result":
            wire.append(messages.ToolMessage(said[1], tool_call_id=said[0]))
        else:
            wire.append((messages.HumanMessage if kind == "user" else messages.AIMessage)(said))
    return wire


FORMATS: dict[str, tuple[Callable[..., list[Any]], str, Callable[[list[Any]], Any]]] = {
    "openai-chat": (chat, "openai-chat", lambda view: chat_problem({"messages": view})),
    "openai-responses": (responses, "openai-responses", lambda view: responses_problem({"input": view})),
    "anthropic": (anthropic, "anthropic", lambda view: anthropic_problem({"messages": view, "max_tokens": 9})),
    "langchain": (langchain, "openai-chat", lambda view: chat_problem({"messages": view})),
}

POLICIES = [
    Policy(),
    Policy(alternate=True),
    Policy(redact=True),
    Policy(summary_role="assistant"),
    Policy(keep=("messages", 2)),
]


def play(format: str, seed: int) -> bool:
    """One hostile conversation, compacted twice, then with a stored record. True if a pass was made."""
    chance = random.Random(seed)
    render, target, problem = FORMATS[format]
    history = render(story(chance))
    before = repr(history)
    policy = chance.choice(POLICIES)
    summarizer = chance.choice([None, None, lambda prompt: words(chance)])
    compactor = Compactor(window=chance.choice((3_000, 6_000)), policy=policy, summarizer=summarizer)
    try:
        out = compactor.compact(history, format=format, to=target)
        if out.compaction is not None:
            record = Compaction.from_json(out.compaction.to_json())
            out = compactor.compact(
                [*history, *render([("assistant", words(chance)), ("user", "and?")])], record, format=format, to=target
            )
    except CannotFit:
        return False
    assert repr(history) == before
    sent: list[list[Any]] = []
    compactor.call(lambda view: sent.append(view), history, out.compaction, format=format, to=target)
    view = sent[0]
    assert problem(json.loads(json.dumps(view))) is None
    json.dumps(view, ensure_ascii=False).encode()
    text = json.dumps(view)
    ours = 1 if out.compaction is not None and out.compaction.summary is not None else 0
    assert text.count("conversation_summary>\\nA report, not a request") <= ours + text.count(
        "x\\n</conversation_summary>"
    )
    return out.compaction is not None


@crossed(format=FORMATS, quick=2)
def test_hostile_conversations_are_sent_in_a_shape_that_is_taken(format: str) -> None:
    passes = sum(play(format, seed) for seed in range(25))
    assert passes > 5


@pytest.mark.strict
@pytest.mark.parametrize("format", FORMATS)
def test_many_hostile_conversations(format: str) -> None:
    passes = sum(play(format, seed) for seed in range(1_000, 1_100))
    assert passes > 25


@pytest.mark.parametrize("seed", range(30))
def test_bytes_that_are_no_transcript_are_refused_as_ours(seed: int, tmp_path: Any) -> None:
    from contextfold.transcripts import read

    chance = random.Random(seed)
    whole = json.dumps(chat(story(chance))).encode()
    cut = chance.randrange(len(whole))
    for data in (
        whole[:cut],
        whole[cut:],
        bytes(chance.randbytes(300)),
        whole.replace(b'"role"', b'"rule"'),
        b"[" * 5_000,
    ):
        try:
            read(data, name="x.json")
        except ContextfoldError:
            continue
