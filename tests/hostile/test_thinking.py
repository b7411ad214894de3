"""Thinking that is bound to what stood before it, and a provider's own compaction: never sent under another view."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from contextfold import Compaction, Compactor, Policy
from contextfold.overflow import classify

REFUSAL = "Invalid signature in thinking block. The block is bound to a different conversation prefix."


def signed(prefix: list[Any]) -> str:
    return hashlib.sha256(json.dumps(prefix, sort_keys=True).encode()).hexdigest()


def bare(blocks: list[Any]) -> list[Any]:
    return [{k: v for k, v in block.items() if k != "signature"} for block in blocks]


def invalid(messages: list[Any]) -> list[int]:
    """An independent checker of the provider's rule: messages whose thinking is not bound to what stands before it."""
    wrong = []
    for place, message in enumerate(messages):
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "thinking" and block["signature"] != signed(messages[:place]):
                wrong.append(place)
    return wrong


class Refused(Exception):
    status_code = 400


def answer(view: list[Any], n: int) -> dict[str, Any]:
    if invalid(view):
        raise Refused(REFUSAL)
    thought = {"type": "thinking", "thinking": f"thought {n} " * 20, "signature": signed(view)}
    call = {"type": "tool_use", "id": f"c{n}", "name": "run", "input": {"n": n}}
    return {"role": "assistant", "content": [thought, call]}


def result(n: int) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"log_{n}.txt " * 80}],
    }


@pytest.mark.parametrize("previous_is_stored", [True, False])
def test_no_thinking_is_sent_under_another_view_than_it_was_made_under(previous_is_stored: bool) -> None:
    compactor = Compactor(window=4_000)
    history: list[Any] = [{"role": "user", "content": "read all logs"}]
    record, passes, kept, refused, before = None, 0, 0, 0, []
    for n in range(60):
        out = compactor.compact(history, previous=record, format="anthropic")
        if previous_is_stored and out.compaction:
            out_record = Compaction.from_json(out.compaction.to_json())
            again = Compactor(window=4_000).compact(history, previous=out_record, format="anthropic")
            assert again.messages == out.messages
        passes += out.changed
        if before and not out.changed:
            assert out.messages[: len(before)] == before
        record, before = out.compaction, out.messages
        refused += bool(invalid(out.messages))
        kept += any(b.get("type") == "thinking" for m in out.messages for b in m["content"] if isinstance(b, dict))
        if out.changed:
            assert any("earlier view" in entry.reason for entry in out.ledger)
        history += [answer(out.messages, n), result(n)]
    assert passes > 3
    assert kept > 20
    assert refused == 0


def test_a_refusal_is_answered_without_thinking_once_and_for_good() -> None:
    history: list[Any] = [{"role": "user", "content": "go"}]
    for n in range(3):
        history += [answer(history, n), result(n)]
    history[0] = {"role": "user", "content": "go, and the caller changed it"}
    sent: list[list[Any]] = []

    def send(view: list[Any]) -> dict[str, Any]:
        sent.append(view)
        return answer(view, 9)

    compactor = Compactor(window=50_000)
    results: list[Any] = []
    answered = compactor.call(send, history, format="anthropic", on_result=results.append)
    assert len(sent) == 2
    assert not [b for m in sent[1] for b in m["content"] if isinstance(b, dict) and b.get("type") == "thinking"]
    history += [answered, result(9)]
    record = results[0].compaction
    later = compactor.compact(history, previous=Compaction.from_json(record.to_json()), format="anthropic")
    assert not invalid(later.messages)
    assert later.messages[: len(sent[1])] == sent[1]
    assert any(b.get("type") == "thinking" for b in later.messages[-2]["content"])


def test_older_models_keep_the_thinking_of_the_turn_that_goes_on() -> None:
    history: list[Any] = [{"role": "user", "content": "go"}]
    for n in range(20):
        call = {"type": "tool_use", "id": f"c{n}", "name": "run", "input": {}}
        thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
        history += [{"role": "assistant", "content": [thought, call]}, result(n)]
    out = Compactor(window=4_000, policy=Policy(bound_thinking=False)).compact(history, format="anthropic")
    assert out.changed
    assert out.messages[-2]["content"][0]["type"] == "thinking"


def test_the_refusals_are_told_apart() -> None:
    assert classify(status=400, message=REFUSAL).about == "thinking"
    assert classify(status=400, code="invalid_encrypted_content", message="could not be verified").about == "thinking"
    missing = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    assert classify(status=400, message=missing).about == "no_thinking"


@pytest.mark.parametrize("kind", ["openai-responses", "anthropic"])
def test_nothing_before_a_providers_own_compaction_is_summarized(kind: str) -> None:
    prompts: list[str] = []

    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "They read the later logs."

    old = [{"role": "user", "content": f"SECRETOLD {n} " + "early words " * 40} for n in range(8)]
    if kind == "anthropic":
        native: Any = {"role": "assistant", "content": [{"type": "compaction", "content": "what was", "id": "cmp_1"}]}
    else:
        native = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    new = [
        {"role": role, "content": f"{role} {n} " + "later words " * 60}
        for n in range(14)
        for role in ("user", "assistant")
    ]
    history = [*old, native, *new, {"role": "user", "content": "go on"}]
    out = Compactor(window=4_000, summarizer=summarize).compact(history, format=kind)
    assert out.changed
    assert any(entry is native for entry in out.messages)
    assert prompts
    assert "SECRETOLD 3" not in "".join(prompts)
    assert "SECRETOLD 3" not in json.dumps(out.messages)
    reasons = {entry.index: (entry.fate, entry.reason) for entry in out.ledger}
    assert reasons[3] == ("dropped", "the provider's own compaction item stands for it")


def test_a_compaction_that_the_provider_cannot_read_gives_way_to_the_originals() -> None:
    native = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    history: list[Any] = [{"role": "user", "content": f"old {n}"} for n in range(5)]
    history += [native, {"role": "assistant", "content": "hm"}, {"role": "user", "content": "go on"}]
    sent: list[list[Any]] = []

    def send(view: list[Any]) -> dict[str, Any]:
        sent.append(view)
        if native in view:
            error = Refused("The encrypted content for item cmp_1 could not be verified.")
            error.code = "invalid_encrypted_content"  # type: ignore[attr-defined]
            raise error
        return {"output": []}

    Compactor(window=50_000).call(send, history, format="openai-responses")
    assert len(sent) == 2
    assert sent[1] == [entry for entry in history if entry is not native]
