"""The document says what the engine did: fates, views, quotes, needs and money, held against the engine itself."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import pytest
from benchmarks.replay import tokens
from benchmarks.replay.conversation import Conversation as Talk
from benchmarks.replay.measures.recall import Recall
from benchmarks.replay.recording import Recording
from benchmarks.replay.replay import replay
from benchmarks.replay.strategies import create
from hypothesis import given
from hypothesis import strategies as st
from talks import WINDOW, conversation, document, fates, shown, tool_loop

from contextfold import CannotFit, Compactor, Policy, formats
from contextfold.inspector import document as document_module
from contextfold.inspector.document import VERSION, as_json, pieces
from contextfold.inspector.replayed import Setting, replayed
from contextfold.messages import Message, Text

MESSAGES = tool_loop(24)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document(MESSAGES)


def test_a_document_names_its_version_and_is_plain_json(made: dict[str, Any]) -> None:
    again = json.loads(as_json(made))
    assert (again["contextfold"], again["version"]) == ("view", VERSION)
    assert again["source"] == {"kind": "file", "name": "made.json", "format": "openai-chat", "recorded": False}
    assert len(again["messages"]) == len(MESSAGES)
    assert {len(column) for column in again["runs"][0]["requests"].values()} == {26}


def test_the_view_of_each_request_is_the_one_that_the_engine_gives(made: dict[str, Any]) -> None:
    run = made["runs"][0]
    compactor, record = Compactor(window=WINDOW), None
    changes = 0
    for number, index in enumerate(run["requests"]["index"]):
        result = compactor.compact(MESSAGES[:index], previous=record)
        record = result.compaction
        changes += result.changed
        places = {id(message): place for place, message in enumerate(MESSAGES)}
        whole = [places[id(message)] for message in result.messages if id(message) in places]
        told = fates(run, number, len(MESSAGES))
        assert [place for place in shown(run, number, len(MESSAGES)) if told[place] != "shortened"] == whole
        assert told[:index] == [entry.fate for entry in result.ledger]
        assert run["requests"]["view"][number] == result.tokens_after
        assert run["requests"]["history"][number] == sum(entry["tokens"] for entry in made["messages"][:index])
    assert changes == sum(state["compaction"] is not None for state in run["states"]) >= 3


def test_what_became_of_a_shortened_part_can_be_put_together_again() -> None:
    long = tool_loop(8)
    long[3]["content"] = "\n".join(f"line {number} of a log that is long \U0001f600" for number in range(1_000))
    made = document(long, 4_000)
    assert made["changes"]
    compactor, record = Compactor(window=4_000), None
    seen = set()
    for index in made["runs"][0]["requests"]["index"]:
        result = compactor.compact(long[:index], previous=record)
        record = result.compaction
        seen |= {message["content"] for message in result.messages if message["role"] == "tool"}
    rebuilt = {
        put_together(made["messages"][index]["parts"][part]["text"], became)
        for index, part, _, became in made["changes"]
        if made["messages"][index]["role"] == "tool"
    }
    assert rebuilt
    assert rebuilt <= seen


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_pieces_lead_back_to_the_new_text_as_javascript_counts(head: str, old: str, new: str) -> None:
    assert put_together(head + old, pieces(head + old, head + new)) == head + new


@pytest.mark.parametrize("between", ["\n", ",", " = "])
@pytest.mark.parametrize(("old", "new"), [(700, 700), (5_000, 90), (90, 5_000)])
def test_texts_that_share_little_but_what_stands_between_their_words_are_compared_at_once(
    between: str, old: int, new: int
) -> None:
    before, after = between.join(f"a{n}" for n in range(old)), between.join(f"b{n}" for n in range(new))
    began = time.process_time()
    assert put_together(before, pieces(before, after)) == after
    assert time.process_time() - began < 1


def test_of_lines_that_were_left_out_here_and_there_the_others_are_found() -> None:
    lines = [f"step {n} of the build, done" for n in range(100)]
    before, after = "\n".join(lines), "\n".join(line for n, line in enumerate(lines) if n % 10)
    written = [piece for piece in pieces(before, after) if isinstance(piece, str)]
    assert sum(map(len, written)) < 20, "what the cut goes through, at both ends"


def put_together(old: str, became: list[Any]) -> str:
    units = old.encode("utf-16-le", "surrogatepass")
    return "".join(
        piece if isinstance(piece, str) else units[2 * piece[0] : 2 * piece[1]].decode("utf-16-le", "surrogatepass")
        for piece in became
    )


def test_every_quoted_line_leads_to_the_message_that_holds_it(made: dict[str, Any]) -> None:
    quoted = [line for state in made["runs"][0]["states"] if state["summary"] for line in state["summary"]["evidence"]]
    assert len(set(quoted)) > 20
    compactor, record, evidence_of_the_engine = Compactor(window=WINDOW), None, ""
    for index in made["runs"][0]["requests"]["index"]:
        record = compactor.compact(MESSAGES[:index], previous=record).compaction
        evidence_of_the_engine += record.summary.evidence if record and record.summary else ""
    word_for_word = [made["lines"][line] for line in set(quoted) if len(made["lines"][line]) == 5]
    assert len(word_for_word) > 0.6 * len(set(quoted))
    for speaker, index, part, start, length in word_for_word:
        message = made["messages"][index]
        assert message["role"] == {"part": message["role"]}.get(speaker, speaker)
        line = message["parts"][part]["text"][start : start + length]
        assert line in evidence_of_the_engine
    for _, text, origin in (made["lines"][line] for line in set(quoted) if len(made["lines"][line]) == 3):
        said = json.dumps(made["messages"][origin]["parts"])
        assert all(word in said for word in text.replace(":", " ").split())


def test_what_was_recalled_is_told_with_its_reason_from_the_request_on_that_asked() -> None:
    messages = tool_loop(20)
    messages[-1] = {"role": "user", "content": "What did handler_003_5 in app/module_003.py return?"}
    compactor = Compactor(window=WINDOW, policy=Policy(recall=True))
    run = replayed(conversation(messages), [Setting("one", compactor)])["runs"][0]
    (noted,) = run["states"][-1]["recalled"]
    assert (noted["request"], noted["after"]) == (len(run["requests"]["index"]) - 1, len(messages) - 1)
    assert noted["indices"] == [9]
    assert "handler" in noted["reason"]
    assert "def handler_003" in noted["text"]


def test_the_needs_are_those_of_the_benchmark() -> None:
    """The same conversation through the benchmark's own strategy and measures gives the same figures."""
    tokens.use(tokens.ESTIMATE)
    talk = Talk("made", "made", tuple(MESSAGES[:-1]))
    measured = replay(Recording(talk), create("contextfold", WINDOW), [Recall]).totals
    found = replayed(conversation(talk.messages), [Setting("one", Compactor(window=WINDOW))])["runs"][0]
    assert found["needed"]["needed"] == measured["recall_needed"] > 0
    assert found["needed"]["needed"] - found["needed"]["lost"] == measured["recall_found"]


def test_money_without_compaction_is_a_history_that_is_cached_perfectly(made: dict[str, Any]) -> None:
    run = made["runs"][0]
    paid = run["money"]["openai"]
    assert len(paid["with"]) == len(paid["without"]) == 25, "the last moment was not asked for yet, and costs nothing"
    first = made["messages"][0]["tokens"] + made["messages"][1]["tokens"]
    answer = made["messages"][2]["tokens"]
    assert paid["with"][0] == paid["without"][0] == first * 1_250 + answer * 10_000, "$1.25 and $10 a million"
    assert run["requests"]["rewritten"].count(1) == len(run["states"]) - 1


def test_something_needed_that_is_gone_is_marked_at_both_ends() -> None:
    messages = tool_loop(20)
    messages[2]["content"] = "Its checksum is 9f8e7d6c5b4a3210 by the way."
    lost = [*messages[:-2], {"role": "assistant", "content": "The checksum 9f8e7d6c5b4a3210 is what I meant."}]
    compactor = Compactor(window=WINDOW, summarizer=lambda prompt: "Files were read.", policy=None)
    bare = Compactor(window=WINDOW, policy=compactor.policy.model_copy(update={"evidence": False}))
    run = replayed(conversation(lost), [Setting("one", bare)])["runs"][0]
    needs = [need for need in run["needs"] if need[1] == "9f8e7d6c5b4a3210"]
    assert [(at, home, kind) for at, _, home, _, kind in needs] == [(len(run["requests"]["index"]) - 1, 2, "lost")]


def test_keys_are_taken_out_of_everything() -> None:
    key = "sk-live-1234567890abcdefABCDEF"
    messages = tool_loop(16)
    messages[1]["content"] += f" The key is {key}."
    messages[4]["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "a.py", "token": key})
    messages[5]["content"] = f"Authorization: Bearer {key}\n" + messages[5]["content"]
    messages[-2]["content"] = f"I used {key} and operator-passphrase-77."
    made = as_json(document(messages, keys=["operator-passphrase-77"])).decode()
    assert "[key]" in made
    assert key not in made
    assert "operator-passphrase-77" not in made


@pytest.mark.parametrize("window", [3_000, 8_000, 16_000])
def test_what_a_message_tells_as_a_key_by_what_stands_beside_it_is_told_nowhere_by_itself(window: int) -> None:
    """Each line of a private key was told among what was needed and the lines that are quoted."""
    lines = [base64.b64encode(hashlib.sha384(bytes([n])).digest()).decode() for n in range(25)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    messages = tool_loop(30)
    messages[3]["content"] = f"{key}\n" + "\n".join(f"filler {n} text" for n in range(300))
    messages[5]["content"] += "\nerror: login failed with password=tr0ubadorXy19abc on the host"
    for place, name, value in ((-6, "text", key), (-4, "env", "password=tr0ubadorXy19abc")):
        messages[place]["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "k.pem", name: value})
    made = as_json(document(messages, window)).decode()
    assert [secret for secret in (*lines, "tr0ubadorXy19abc") if secret in made] == []


def test_a_request_that_cannot_fit_is_a_moment_with_an_error() -> None:
    messages = tool_loop(6)
    messages[1]["content"] = "word " * 4_000
    with pytest.raises(CannotFit):
        Compactor(window=1_000).compact(messages)
    run = document(messages, 1_000)["runs"][0]
    assert run["marks"]
    assert run["marks"][0]["kind"] == "error"
    assert "CannotFit" in run["marks"][0]["text"]
    assert run["requests"]["view"][0] == 0


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "Hello"}],
        [{"role": "assistant", "content": "Hello"}],
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "\ud800 half a sign"}],
        [{"role": "tool", "tool_call_id": "nothing", "content": "an orphan"}, {"role": "user", "content": ""}],
    ],
)
def test_the_smallest_conversations_have_documents_too(messages: list[dict[str, Any]]) -> None:
    made = json.loads(as_json(document(messages)))
    assert len(made["messages"]) == len(messages)
    assert len(made["runs"][0]["states"]) == 1


def test_two_settings_have_two_runs_over_the_same_requests() -> None:
    made = document(MESSAGES, 3_000, 6_000)
    one, other = made["runs"]
    assert one["requests"]["index"] == other["requests"]["index"]
    assert one["requests"]["history"] == other["requests"]["history"]
    assert max(one["requests"]["view"]) < max(other["requests"]["view"])


def test_the_module_that_says_what_a_document_is_names_every_field(made: dict[str, Any]) -> None:
    told = document_module.__doc__ or ""
    assert [name for name in (*made, *made["runs"][0]) if name not in told] == []


def test_a_line_of_what_a_tool_of_the_provider_gave_leads_to_it_by_the_tools_name() -> None:
    given = {"type": "mcp_call", "id": "m", "name": "look", "output": "the port is 8443"}
    found = {"type": "search_result", "content": [{"text": "the host is alpha"}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [found]}]}
    cases = (("openai-responses", given, "the port is 8443"), ("anthropic", result, "the host is alpha"))
    for format, wire, said in cases:
        origins = document_module.Origins(formats.decode([wire], formats.get(format)))
        assert origins.of("tool", said, ()) == 0
        assert origins.of("assistant", said, ()) is None


def test_a_quoted_line_that_is_cut_in_a_word_at_its_ends_leads_to_its_message() -> None:
    """A part of a line begins and ends where it has room; its longest word was looked for, which no message has."""
    said = ["An extraordinarily long beginning", "see docs/unextraordinarily short ends", "short words"]
    origins = document_module.Origins([Message("assistant", (Text(text),)) for text in said])
    assert origins.of("assistant", "extraordinarily short en", {0, 1, 2}) == 1
    assert origins.of("part", "extraordinarily short en", {0, 1, 2}) == 1
