"""Thinking that is bound to what stood before it, and a provider's own compaction: never sent under another view."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from emulator import ProviderServer

from contextfold import Compaction, Compactor, Policy, count_tokens
from contextfold.integrations.anthropic import BETA, with_compaction
from contextfold.overflow import classify
from contextfold.store import Session, open_store
from effort import crossed

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


def test_what_is_thought_after_a_rewind_stays_in_the_views_of_all_processes() -> None:
    """Also where the history went back to before the view changed: what comes now is thought under that view."""
    compactor = Compactor(window=4_000)
    history: list[Any] = [{"role": "user", "content": "read all logs"}]
    out = compactor.compact(history, format="anthropic")
    for n in range(20):
        history += [answer(out.messages, n), result(n)]
        out = compactor.compact(history, previous=out.compaction, format="anthropic")
        if out.changed:
            break
    assert out.changed
    adopted_later = out.compaction.changed(thinking_from=len(history) + 4)
    out = compactor.compact(history, previous=adopted_later, format="anthropic")
    for n in range(100, 103):
        history += [answer(out.messages, n), result(n)]
        out = compactor.compact(history, previous=out.compaction, format="anthropic")
        stored = Compaction.from_json(out.compaction.to_json())
        assert Compactor(window=4_000).compact(history, previous=stored, format="anthropic").messages == out.messages
        assert not invalid(out.messages)
        assert str(out.messages).count("'thinking':") == n - 99


@crossed(prepared_elsewhere=(True, False), quick=1)
def test_a_session_that_adopts_a_prepared_summary_sends_no_thinking_of_the_view_before(
    tmp_path: Path, prepared_elsewhere: bool
) -> None:
    """What is thought while a summary waits was thought under the view that it replaces."""
    store = open_store(f"sqlite:///{tmp_path / 'talk.db'}")
    options = {"upper_threshold": 3_000, "lower_threshold": 1_500, "min_messages": 4, "min_new_messages": 2}
    told: list[str] = []

    def opened(background: bool) -> Session:
        compactor = Compactor(window=64_000, on_event=lambda event: told.append(event.name))
        switched = {**options, "background": background, "soft_ratio": 0.5}
        return compactor.session("thread", store, format="anthropic", options=switched)

    session, worker = opened(not prepared_elsewhere), opened(True)
    session.append([{"role": "user", "content": "read all logs"}])
    views: list[list[Any]] = []
    for n in range(60):
        view = session.view()
        assert not invalid(view), f"turn {n}: {told[-3:]}"
        views.append(view)
        if prepared_elsewhere:
            worker.view()
        worker.join()
        session.join()  # what is prepared now is adopted some turns later
        session.append([answer(view, n), result(n)])
    assert told.count("summary_adopted") > 3
    thoughts = [sum("thinking" in str(message) for message in view) for view in views]
    assert sum(map(bool, thoughts)) > 20
    grown = [later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(views)]
    assert grown.count(False) <= told.count("summary_adopted")
    before = session.view()
    assert session.undo() is not None
    assert session.view() != before
    assert all(summary.trigger == "background" for summary in session.summaries())


def test_a_session_that_adopts_a_prepared_summary_leaves_thinking_that_was_asked_back(tmp_path: Path) -> None:
    """Else each summary that comes into force is refused, and its view made once more."""
    options = {"upper_threshold": 3_000, "lower_threshold": 1_500, "min_messages": 4, "min_new_messages": 2}
    told: list[str] = []
    refused: list[list[Any]] = []
    session = Compactor(window=64_000, on_event=lambda event: told.append(event.name)).session(
        "thread",
        open_store(f"sqlite:///{tmp_path / 'talk.db'}"),
        format="anthropic",
        options={**options, "background": True, "soft_ratio": 0.5},
    )

    def send(view: list[Any]) -> list[Any]:
        firsts = [message["content"][0]["type"] for message in view if message["role"] == "assistant"]
        if "tool_use" in firsts:
            refused.append(view)
            raise Refused("messages.1.content.0.type: Expected `thinking`, but found `tool_use`.")
        return view

    session.append([{"role": "user", "content": "read all logs"}])
    for n in range(60):
        session.call(send)
        session.join()  # what is prepared now is adopted some turns later
        session.append([answer([], n), result(n)])
    assert told.count("summary_adopted") > 3
    assert len(refused) == 1


@pytest.mark.parametrize("thought_before", [True, False], ids=["thinking before", "no thinking before"])
def test_what_another_worker_appends_during_a_pass_was_thought_under_the_view_before_it(
    tmp_path: Path, thought_before: bool
) -> None:
    """A summary by a model takes seconds, and no lock keeps other workers from answering meanwhile."""
    store = open_store(f"sqlite:///{tmp_path / 'talk.db'}")
    options = {"upper_threshold": 3_000, "lower_threshold": 1_500, "min_messages": 4, "min_new_messages": 2}
    other = Compactor(window=64_000).session(
        "thread", store, format="anthropic", options={**options, "enable_context_optimization": False}
    )
    passes: list[int] = []
    views: list[list[Any]] = []

    def summarize(prompt: str) -> str:
        number = 1_000 + len(passes)
        passes.append(number)
        other.append([answer(views[-1], number), result(number)])  # under the view that is in force until now
        return "The logs were read."

    session = Compactor(window=64_000, summarizer=summarize).session(
        "thread", store, format="anthropic", options={**options, "background": False}
    )
    session.append([{"role": "user", "content": "read all logs"}])
    for n in range(40):
        views.append(other.view())
        view = session.view()
        assert not invalid(view), f"turn {n}, after {len(passes)} passes"
        views.append(view)
        said = answer(view, n)
        if not thought_before and not passes:
            said = {**said, "content": [block for block in said["content"] if block.get("type") != "thinking"]}
        session.append([said, result(n)])
    assert len(passes) > 2


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
    missing = "messages.1.content.0.type: Expected `thinking`, but found `tool_use`."
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


@pytest.mark.parametrize("kind", ["openai-responses", "anthropic"])
def test_another_model_gets_the_originals_of_a_providers_own_compaction(kind: str) -> None:
    if kind == "anthropic":
        native: Any = {"role": "assistant", "content": [{"type": "compaction", "content": "what was", "id": "cmp_1"}]}
    else:
        native = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    old = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"old {n}"} for n in range(5)]
    history: list[Any] = [*old, native, {"role": "user", "content": "go on"}]
    compactor = Compactor(window=4_000)
    first = compactor.compact(history, format=kind, model="gpt-a")
    assert first.messages[5] is native
    longer = [*history, {"role": "assistant", "content": "hm"}, {"role": "user", "content": "more"}]
    same = compactor.compact(longer, first.compaction, format=kind, model="gpt-a")
    assert same.messages[5] is native
    other = compactor.compact(longer, same.compaction, format=kind, model="gpt-b")
    assert other.changed
    assert native not in other.messages
    said = json.dumps(other.messages)
    assert all(word in said for word in ("old 0", "old 4", "go on", "hm", "more"))
    reasons = [entry.reason for entry in other.ledger if entry.fate == "dropped"]
    assert reasons == ["the provider's own compaction item cannot be read any more"]
    back = compactor.compact(longer, Compaction.from_json(other.compaction.to_json()), format=kind, model="gpt-a")
    assert back.messages == other.messages
    big = [*longer, *({"role": "user", "content": "later words " * 400} for _ in range(9))]
    again = Compactor(window=4_000)
    again.compact(history, format=kind, model="gpt-a")
    assert again.compact(history, format=kind, model="gpt-a").messages[5] is native
    sent = again.compact(big, format=kind, model="gpt-b")
    assert native not in sent.messages
    assert any(event.name == "compaction_finished" for event in sent.events)


@pytest.mark.parametrize(
    "before", [[], [{"role": "system", "content": "Be brief."}], [{"role": "user", "content": "a"}]]
)
@pytest.mark.parametrize("kind", ["openai-responses", "anthropic"])
def test_a_providers_own_compaction_stays_for_another_model_where_its_originals_are_not_there(
    kind: str, before: list[Any]
) -> None:
    """Clients go on with the list that the provider compacted: the item, and at most what the user wrote before it."""
    if kind == "anthropic":
        native: Any = {"role": "assistant", "content": [{"type": "compaction", "content": "what was"}]}
    else:
        native = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    history: list[Any] = [*before, native, {"role": "user", "content": "go on"}]
    compactor = Compactor(window=50_000)
    for model in ("one", "another"):
        out = compactor.compact(history, format=kind, model=model)
        assert out.messages == history
        assert not out.changed
        assert "native_compaction_left" not in [event.name for event in out.events]
    # A newer one whose originals are there gives way to them, the older one among them.
    compactor = Compactor(window=50_000)
    newer = {**native, "id": "cmp_2"}
    later = [*history, {"role": "assistant", "content": "hm"}, newer, {"role": "user", "content": "more"}]
    compactor.compact(later, format=kind, model="one")
    out = compactor.compact(later, format=kind, model="another")
    assert any(entry is native for entry in out.messages)
    assert not any(entry is newer for entry in out.messages)


@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("calls", [True, False])
def test_what_stands_beside_a_providers_own_compaction_stays_when_that_leaves(refused: bool, calls: bool) -> None:
    """An answer may begin with the block: the model compacted, and went on."""
    native = {"type": "compaction", "content": "what was"}
    said: list[Any] = [{"type": "text", "text": "the answer"}]
    then: Any = "go on"
    if calls:
        said.append({"type": "tool_use", "id": "c1", "name": "run", "input": {}})
        then = [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]
    history: list[Any] = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older answer"}]
    history += [{"role": "user", "content": "next"}, {"role": "assistant", "content": [native, *said]}]
    history.append({"role": "user", "content": then})
    expected = [*history[:3], {"role": "assistant", "content": said}, history[4]]
    compactor = Compactor(window=3_000)
    sent: list[list[Any]] = []

    def send(view: list[Any]) -> dict[str, Any]:
        sent.append(view)
        if refused and native in view[3]["content"]:
            raise Refused(REFUSAL)
        return {"content": []}

    results: list[Any] = []
    compactor.call(send, history, format="anthropic", model="one", on_result=results.append)
    record = results[-1].compaction
    out = compactor.compact(history, record, format="anthropic", model="one" if refused else "another")
    assert (sent[-1] if refused else out.messages) == expected
    record = Compaction.from_json(out.compaction.to_json())
    for model in ("one", "third"):
        again = compactor.compact(history, record, format="anthropic", model=model)
        assert again.messages == expected
        assert not again.changed
    # Nor does a later pass take it for what stands for the messages before it.
    for n in range(20):
        history += [{"role": role, "content": f"{role} {n} " + "later words " * 60} for role in ("assistant", "user")]
    out = compactor.compact(history, record, format="anthropic", model="third")
    assert any(event.name == "compaction_finished" for event in out.events)
    assert native not in [block for entry in out.messages for block in entry["content"]]
    assert "the provider's own compaction item stands for it" not in {entry.reason for entry in out.ledger}


@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("kind", ["openai-responses", "anthropic"])
def test_an_older_compaction_that_stays_for_another_model_stays_in_what_comes_after(kind: str, halves: bool) -> None:
    """A pass, a halving and the floor know which of a provider's own compactions is in the view: the older one is all
    that is left of its originals, and what stands beside the one that has left is a message like others.
    """
    if kind == "anthropic":
        block: Any = {"type": "compaction", "content": "what was"}
        older: Any = {"role": "assistant", "content": [block]}
        newer: list[Any] = [{"role": "assistant", "content": [block, {"type": "text", "text": "I go on " * 40}]}]
    else:
        older = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
        newer = [{**older, "id": "cmp_2"}, {"role": "assistant", "content": "I go on " * 40}]
    history: list[Any] = [{"role": "user", "content": "the task"}, older]

    def say(turns: int) -> None:
        for n in range(turns):
            history.append({"role": "user", "content": f"question {n} " + "earlier words " * 30})
            history.append({"role": "assistant", "content": f"answer {n} " + "earlier words " * 60})

    say(3)
    history += [{"role": "user", "content": "go on"}, *newer, {"role": "user", "content": "next"}]
    given = Policy(on_overflow="drop_oldest", trigger=None) if halves else None
    compactor = Compactor(policy=given) if given else Compactor(window=4_000)
    first = compactor.compact(history, format=kind, model="one")
    out = compactor.compact(history, first.compaction, format=kind, model="another")
    item = "compaction item of the provider"
    size = compactor.compact(history[:2], format=kind, model="another").floor[item]
    assert out.floor[item] == size
    say(14)
    if halves:
        sent: list[list[Any]] = []

        def send(view: list[Any]) -> dict[str, Any]:
            sent.append(view)
            if len(sent) < 4:
                raise Refused("prompt is too long")
            return {"output": [], "content": []}

        results: list[Any] = []
        compactor.call(send, history, out.compaction, format=kind, model="another", on_result=results.append)
        out = results[-1]
        assert len(sent) == 4
    else:
        out = compactor.compact(history, out.compaction, format=kind, model="another")
        assert any(event.name == "compaction_finished" for event in out.events)
    assert any(entry is older for entry in out.messages)
    assert "I go on" not in json.dumps(out.messages)
    assert out.floor[item] == size
    assert "nothing in it can be read" not in {entry.reason for entry in out.ledger}


def test_a_pass_that_shortens_a_message_leaves_out_the_thinking_that_was_refused() -> None:
    """What left one part of a message after a refusal stays out, whatever a later pass does to its other parts."""
    cipher = {"type": "reasoning.encrypted", "data": "CIPHER" * 20, "format": "openai-responses-v1", "id": "rs"}
    words = json.dumps({"path": "a.py", "text": " ".join(f"value{n}" for n in range(1500))})
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": words}}
    history: list[Any] = [{"role": "user", "content": "task"}, {"role": "assistant", "content": "older"}]
    history.append({"role": "user", "content": "go"})
    history.append(
        {"role": "assistant", "content": "I write", "reasoning_details": [cipher], "tool_calls": [call]},
    )
    result = {"role": "tool", "tool_call_id": "c1", "content": "written"}
    sent: list[list[Any]] = []

    def send(view: list[Any]) -> dict[str, Any]:
        sent.append(view)
        if "CIPHER" in json.dumps(view):
            raise Refused("invalid_encrypted_content: the encrypted content could not be verified")
        return {"choices": []}

    compactor, results = Compactor(window=14_000), list[Any]()
    compactor.call(send, [*history, result], format="openai-chat", on_result=results.append)
    assert len(sent) == 2
    long = {**result, "content": "\n".join(f"line {n} is {n * 3}" for n in range(1600))}
    record = results[-1].compaction
    compactor.call(send, [*history, long], record, format="openai-chat", on_result=results.append)
    assert any(event.name == "compaction_finished" for event in results[-1].events)
    assert len(sent) == 3
    shown = results[-1].messages[3]
    assert "CIPHER" not in json.dumps(shown)
    assert shown["tool_calls"][0]["function"]["arguments"] != words


def test_what_only_thinks_is_no_original_of_a_providers_own_compaction() -> None:
    """Clients may keep the reasoning that stood before the item: it tells nothing of what the item stands for."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 50}
    native = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    history = [{"role": "user", "content": "task"}, thought, native, {"role": "user", "content": "next"}]
    compactor = Compactor(window=4_000)
    for model in ("one", "another"):
        assert compactor.compact(history, format="openai-responses", model=model).messages == history


@pytest.mark.parametrize("fails", ["send", "archive", "hook"])
@pytest.mark.parametrize("kind", ["openai-responses", "anthropic"])
def test_another_model_never_gets_what_it_cannot_read_whatever_failed_before(kind: str, fails: str) -> None:
    """Who wrote a provider's own compaction is remembered: its absence from one view that came to nothing is not the
    end of it. What the new model writes itself stays in its views.
    """
    native: Any = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 20}
    if kind == "anthropic":
        native = {"role": "assistant", "content": [{"type": "compaction", "content": "what was", "id": "cmp_1"}]}
    history: list[Any] = [{"role": "user", "content": "task"}, {"role": "assistant", "content": "old answer"}]
    history += [{"role": "user", "content": "more"}, native]
    history += [{"role": "assistant", "content": "I go on"}, {"role": "user", "content": "next"}]
    compactor, results, failing = Compactor(window=4_000), list[Any](), [True]

    class Down(Exception):
        status_code = 503

    class Archive:
        address = "memory://x"

        def append(self, messages: Any) -> None:
            if fails == "archive" and failing:
                raise OSError("disk")

    def send(view: list[Any]) -> dict[str, Any]:
        assert native not in view or fails == "archive"
        if failing:
            raise Down
        return {"output": [], "content": []}

    def after(made: Any) -> None:
        raise RuntimeError("hook")

    options: dict[str, Any] = {"format": kind, "archive": Archive()}
    record = compactor.compact(history, model="one", **options).compaction
    options["model"] = "two"
    for _ in range(2):
        if fails == "send":
            with pytest.raises(Down):
                compactor.call(send, history, record, on_result=results.append, **options)
        elif fails == "hook":
            with pytest.raises(RuntimeError):
                compactor.compact(history, record, force=True, after=after, **options)
        else:
            compactor.compact(history, record, **options)
    failing.clear()
    compactor.call(send, history, record, on_result=results.append, **options)
    out = results[-1]
    assert native not in out.messages
    assert all(entry in out.messages for entry in history if entry is not native)
    newer = {**native, "id": "cmp_2"}
    history += [{"role": "assistant", "content": "hm"}, newer, {"role": "user", "content": "then"}]
    for _ in range(2):
        out = compactor.compact(history, out.compaction, **options)
        assert any(entry is newer for entry in out.messages)
        assert native not in out.messages
    third = compactor.compact(history, out.compaction, **{**options, "model": "one"})
    assert newer not in third.messages


# ---- through the SDK, against a provider that enforces the rule ---


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    with ProviderServer(answers=lambda request: "done " + "with it " * 60) as server:
        yield server


@pytest.fixture
def client(provider: ProviderServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="x", base_url=provider.anthropic_url, max_retries=0) as made:
        yield made


def think(
    provider: ProviderServer, client: anthropic.Anthropic, *, stream: bool, turns: int = 10, **options: Any
) -> list[dict[str, Any]]:
    """A conversation with a model that binds its thinking; what was sent, as the provider got it."""
    create = with_compaction(client.messages.create, Compactor(window=2_500), **options)
    history: list[Any] = []
    before = len(provider.requests)
    for n in range(turns):
        history.append({"role": "user", "content": f"look at file_{n}.py " + "and more " * 40})
        asked = {"model": "claude-fable-5-1", "max_tokens": 900, "messages": history, "thinking": {"type": "adaptive"}}
        if stream:
            with_events = list(create(**asked, stream=True))
            blocks: list[dict[str, Any]] = []
            for event in with_events:
                if event.type == "content_block_start":
                    blocks.append(event.content_block.model_dump(exclude_none=True))
                elif event.type == "content_block_delta":
                    for key in ("text", "thinking", "signature"):
                        blocks[-1][key] = blocks[-1].get(key, "") + (getattr(event.delta, key, None) or "")
                    blocks[-1] = {key: value for key, value in blocks[-1].items() if value}
            history.append({"role": "assistant", "content": blocks})
        else:
            history.append({"role": "assistant", "content": create(**asked).model_dump(exclude_none=True)["content"]})
        assert history[-1]["content"][0]["type"] == "thinking"
    assert create.compaction is not None
    return list(provider.requests[before:])


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_a_model_that_binds_its_thinking_is_never_sent_what_it_refuses(
    provider: Any, client: Any, stream: bool
) -> None:
    requests = think(provider, client, stream=stream)
    assert [request.status for request in requests] == [200] * 10
    assert any("conversation_summary" in json.dumps(request.body) for request in requests)
    assert any(
        '"thinking", "thinking"' in json.dumps(request.body) or '"signature"' in json.dumps(request.body["messages"])
        for request in requests
    )


def test_the_provider_refuses_thinking_under_another_prefix_unless_it_may_drop_it(provider: Any, client: Any) -> None:
    asked: dict[str, Any] = {"model": "claude-opus-5-5", "max_tokens": 99, "thinking": {"type": "adaptive"}}
    first = [{"role": "user", "content": "one"}]
    said = client.messages.create(**asked, messages=first).model_dump(exclude_none=True)["content"]
    changed: list[Any] = [{"role": "user", "content": "two"}, {"role": "assistant", "content": said}, *first]
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation") as refusal:
        client.messages.create(**asked, messages=changed)
    assert classify(refusal.value).about == "thinking"
    wrapped = with_compaction(client.messages.create, Compactor(window=50_000), drop_block=True)
    assert wrapped(**asked, messages=changed).content
    assert BETA in provider.requests[-1].headers["anthropic-beta"]
    assert '"signature"' in json.dumps(provider.requests[-1].body["messages"])
    once = with_compaction(client.messages.create, Compactor(window=50_000))
    assert once(**asked, messages=changed).content
    assert '"signature"' not in json.dumps(provider.requests[-1].body["messages"])


SIGNED_SHAPES = ("LiteLLM", "OpenRouter", "LangChain", "LangChain, hidden", "langchain-openrouter", "langchain-aws")
SIGNED_SHAPES += ("Haystack",)


def signed_message(shape: str, n: int) -> tuple[str, Any]:
    """A format and an assistant's message with signed thinking, as frameworks between the API and a caller have it."""
    words, signature = f"thought {n} " * 20, f"signature {n}"
    if shape == "LiteLLM":
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": words, "signature": signature}]
        thought: dict[str, Any] = {"reasoning_content": words, "thinking_blocks": blocks}
        return "openai-chat", {"role": "assistant", "content": f"answer {n}", **thought}
    if shape == "OpenRouter":
        detail = {"type": "reasoning.text", "text": words, "signature": signature, "format": "anthropic-claude-v1"}
        thought = {"reasoning": words, "reasoning_details": [detail]}
        return "openai-chat", {"role": "assistant", "content": f"answer {n}", **thought}
    if shape == "Haystack":
        theirs = pytest.importorskip("haystack.dataclasses")
        held = {
            "reasoning_contents": [{"reasoning_content": {"reasoning_text": {"text": words, "signature": signature}}}]
        }
        return "haystack", theirs.ChatMessage.from_assistant(
            f"answer {n}", reasoning=theirs.ReasoningContent(words, extra=held)
        )
    if shape == "langchain-openrouter":
        detail = {"type": "reasoning.text", "text": words, "signature": signature, "format": "anthropic-claude-v1"}
        beside = {"reasoning_content": words, "reasoning_details": [detail]}
        return "langchain", {"type": "ai", "content": f"answer {n}", "additional_kwargs": beside}
    block = {
        "LangChain": {"type": "reasoning", "reasoning": words, "extras": {"signature": signature}},
        "LangChain, hidden": {
            "type": "non_standard",
            "value": {"type": "redacted_thinking", "data": f"{words}{signature}"},
        },
        "langchain-aws": {"type": "reasoning_content", "reasoning_content": {"text": words, "signature": signature}},
    }[shape]
    return "langchain", {"type": "ai", "content": [block, {"type": "text", "text": f"answer {n}"}]}


@pytest.mark.parametrize("shape", SIGNED_SHAPES)
def test_signed_thinking_in_the_shapes_of_frameworks_leaves_with_the_view_that_it_was_made_under(shape: str) -> None:
    format, _ = signed_message(shape, 0)
    history: list[Any] = []
    for n in range(30):
        asked = f"question {n} " * 30
        history.append({"role": "user", "content": asked})
        if format == "langchain":
            history[-1] = {"type": "human", "content": asked}
        elif format == "haystack":
            history[-1] = type(signed_message(shape, n)[1]).from_user(asked)
        history.append(signed_message(shape, n)[1])
    assert format == "haystack" or count_tokens([history[1]]) < 1.3 * count_tokens(
        [{"role": "assistant", "content": "answer 0 " + "thought 0 " * 20}]
    )
    for bound in (True, False):
        policy = Policy(bound_thinking=bound, keep=("messages", 6), reasoning={"enabled": False})
        out = Compactor(window=4_000, policy=policy).compact(history, format=format, force=True)
        assert "answer 29" in str(out.messages[-1])
        assert ("signature" in str(out.messages)) is not bound
        assert ("thought 29" in str(out.messages)) is not bound
