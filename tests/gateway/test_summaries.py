"""``--summarizer same``: the caller's own model, behind the very bytes it has just read, under the caller's key."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, ProviderServer
from tests.gateway.conftest import WINDOW, RawUpstream, Seen, Writer, settings_for
from tests.gateway.requests_made import PATHS, Response, body_of, compact, post, turns, words

from building import thinking_turns
from contextfold import Policy
from contextfold.gateway.call import State
from contextfold.gateway.passing import Passing, none_under_way
from contextfold.gateway.records import GatewayRecordStore
from contextfold.gateway.serve import InThread
from effort import crossed

SUMMARY = "<summary>The agent reads files one after the other and keeps to its task, as it was told.</summary>"


LONG_TASK = "It has to pass all tests. " * 150
"""So that a request that has nothing else is not surely below the trigger."""

COUNT = 5
"""Requests that come at the same moment."""


def until(is_so: Callable[[], bool]) -> bool:
    """Whether it becomes so within ten seconds."""
    for _ in range(1_000):
        if is_so():
            return True
        time.sleep(0.01)
    return False


def is_own(request: Any) -> bool:
    """Whether a request is the gateway's own: its newest message asks for a summary."""
    return "<summary>" in request.text


def answered(request: Any) -> Answer:
    return Answer(SUMMARY if is_own(request) else "ok")


def summary_when_told() -> tuple[threading.Event, threading.Event, Callable[[Any], Answer]]:
    """Set once a summary is asked for; to be set when it may be answered; and what answers so."""
    asked, may_answer = threading.Event(), threading.Event()

    def answer(request: Any) -> Answer:
        if not is_own(request):
            return Answer("ok")
        asked.set()
        assert may_answer.wait(20)
        return Answer(SUMMARY)

    return asked, may_answer, answer


UNNAMED = ("gemini", "by the user")
"""Google's requests say nothing of whom they are for."""

OF_THE_TASK: dict[str, Any] = {
    "openai-chat": {"n": 1},
    "openai-responses": {"background": False},
    "gemini": {"generationConfig": {"maxOutputTokens": 200, "candidateCount": 1, "stopSequences": ["Found"]}},
}
"""Fields with which an answer would be several, or come later."""


@pytest.mark.parametrize("wire", sorted(PATHS))
def test_the_model_is_asked_behind_the_view_before_it_is_needed(tmp_path: Path, wire: str) -> None:
    with ProviderServer(default_window=WINDOW, answers=answered) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            responses = []
            for messages in turns(wire, 26):
                raw = compact(body_of(wire, messages, stream=wire == "openai-chat", **OF_THE_TASK.get(wire, {})))
                given = {"authorization": "Bearer mine", "idempotency-key": f"turn-{len(messages)}"}
                responses.append(post(gateway.url, PATHS[wire], raw, given))
                time.sleep(0.02)
        requests = list(provider.requests)
        assert {response.status for response in responses} == {200}
        assert gateway.metrics.total("failures_total") == 0
    own = [number for number, request in enumerate(requests) if is_own(request)]
    assert own
    assert any(response.headers.get("x-contextfold-prepared") == "true" for response in responses)
    assert "reads files one after the other" in requests[-1].text
    asked = requests[own[0]]
    sent = json.loads(asked.raw)
    assert not {"stream", "n", "background"} & sent.keys()
    assert not {"candidateCount", "stopSequences"} & sent.get("generationConfig", {}).keys()
    assert asked.usage is not None
    assert asked.usage.cached > 0.7 * asked.tokens or wire == "anthropic"  # where marks decide what is kept
    assert asked.body.get("store") in (None, False)
    # The key is the request's: under it a provider would answer the request with the summary.
    assert not any("idempotency-key" in requests[number].headers for number in own)


@pytest.mark.parametrize("way", ["alt=sse", "%24alt=json%3Benum-encoding%3Dint", "$alt=sse"])
def test_a_summary_of_geminis_is_asked_for_in_one_piece_and_in_words(tmp_path: Path, way: str) -> None:
    """Libraries that Google generates ask for numbers in place of names: of an answer that was cut off, none could tell
    that it was, and its half was the summary.
    """
    asked: list[bytes] = []

    async def script(writer: Writer, seen: Seen) -> None:
        is_own = b"<summary>" in seen.body
        ends: str | int = "MAX_TOKENS" if is_own else "STOP"
        if is_own:
            asked.append(seen.line)
        if b"enum-encoding" in seen.line:
            ends = {"STOP": 1, "MAX_TOKENS": 2}[str(ends)]
        said = {"parts": [{"text": SUMMARY if is_own else "ok"}], "role": "model"}
        await writer.json(compact({"candidates": [{"content": said, "finishReason": ends}]}))

    with RawUpstream(script) as upstream:
        with InThread(settings_for(upstream.url, tmp_path, summarizer="same")) as gateway:
            path = PATHS["gemini"].replace(":generate", ":streamGenerate")
            for messages in turns("gemini", 26):
                post(gateway.url, f"{path}?key=k&{way}", compact(body_of("gemini", messages)))
                time.sleep(0.02)
        assert b"reads files one after the other" not in upstream.seen[-1].body
    assert set(asked) == {f"POST {PATHS['gemini']}?key=k HTTP/1.1".encode()}


def test_a_summary_is_asked_for_as_a_stream_where_nothing_else_is_answered(tmp_path: Path) -> None:
    """ChatGPT refuses Codex all else, does not say that its answers are streams, and ends them without their items."""

    async def script(writer: Writer, seen: Seen) -> None:
        if json.loads(seen.body).get("stream") is not True:
            return await writer.json(b'{"detail":"Stream must be set to true"}', "400 Bad Request")
        text = SUMMARY if b"<summary>" in seen.body else "ok"
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        ended = {"object": "response", "status": "completed", "output": [], "usage": {"output_tokens": 9}}
        await writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for said in (
            {"type": "response.output_text.delta", "delta": text},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": ended},
        ):
            await writer.chunk(b"event: %s\ndata: %s\n\n" % (str(said["type"]).encode(), compact(said)))
        return await writer.chunk(b"")

    wire = "openai-responses"
    with RawUpstream(script) as upstream:
        with InThread(settings_for(upstream.url, tmp_path, summarizer="same")) as gateway:
            for messages in turns(wire, 26):
                response = post(gateway.url, PATHS[wire], compact(body_of(wire, messages, stream=True, store=False)))
                assert response.status == 200
                time.sleep(0.02)
            assert gateway.metrics.total("failures_total") == 0
        assert b"reads files one after the other" in upstream.seen[-1].body


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_instructions_with_the_time_of_day_cost_no_summary(tmp_path: Path, wire: str) -> None:
    """Each turn of such a client was another conversation, and paid for a summary; two gateways share one store."""

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answered))
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        gateways = [stack.enter_context(InThread(settings)) for _ in range(2)]
        for number, messages in enumerate(turns(wire, 60)):
            said = [message for message in messages if message.get("role") != "system"]
            told = {"role": "developer", "content": f"You are a careful agent. It is 12:{number:02}."}
            raw = compact(body_of(wire, [told, *said]))
            assert post(gateways[number % 2].url, PATHS[wire], raw).status == 200
            sent = next(request for request in reversed(provider.requests) if not is_own(request))
            assert f"12:{number:02}" in sent.text
        asked = sum(map(is_own, provider.requests))
    assert 2 < asked < 10  # 43 where each turn pays; with instructions that stay four or five


@pytest.mark.parametrize("habit", ["task", "reminder"])
@pytest.mark.parametrize("wire", sorted(PATHS))
def test_what_a_client_says_otherwise_at_each_turn_costs_no_summary(tmp_path: Path, wire: str, habit: str) -> None:
    """Open files in the task, or a reminder in the newest message: each turn was another conversation, and paid."""

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answered))
        gateway = stack.enter_context(InThread(settings_for(provider.url, tmp_path, summarizer="same")))
        for number, messages in enumerate(turns(wire, 60)):
            users = [n for n, message in enumerate(messages) if message.get("role") == "user"]
            place = users[0 if habit == "task" else -1]
            kind = {} if wire == "gemini" else {"type": "input_text" if wire == "openai-responses" else "text"}
            block = {**kind, "text": f"<now>{number}</now>"}
            key = "parts" if wire == "gemini" else "content"
            content = messages[place][key]
            told = [*content, block] if isinstance(content, list) else [{**block, "text": content}, block]
            changed = [*messages[:place], {**messages[place], key: told}, *messages[place + 1 :]]
            assert post(gateway.url, PATHS[wire], compact(body_of(wire, changed))).status == 200
            sent = next(request for request in reversed(provider.requests) if not is_own(request))
            assert f"<now>{number}</now>" in sent.text
        asked = sum(map(is_own, provider.requests))
    assert 2 < asked < 10  # 43 where each turn pays


def with_other_ids(value: Any, number: object) -> Any:
    """As an adapter gives them in front of a client whose own messages have none."""
    if isinstance(value, list):
        return [with_other_ids(one, number) for one in value]
    if not isinstance(value, dict):
        return value
    ids = {"id", "call_id", "tool_call_id", "tool_use_id"} & value.keys()
    return {key: f"{one}x{number}y" if key in ids else with_other_ids(one, number) for key, one in value.items()}


def written_otherwise(value: Any, number: int) -> Any:
    """Arguments with other blanks, and texts as blocks or not, as two libraries do that take turns."""
    if isinstance(value, list):
        return [written_otherwise(one, number) for one in value]
    if not isinstance(value, dict) or number % 2:
        return value
    changed = {key: written_otherwise(one, number) for key, one in value.items()}
    if isinstance(changed.get("arguments"), str):
        changed["arguments"] = json.dumps(json.loads(changed["arguments"]), indent=1)
    if changed.get("type") == "message":
        changed["content"] = changed["content"][0]["text"]
    return changed


def cut_by_tools(messages: list[Any], number: int) -> list[Any]:
    """With other ids, where the tools themselves have shortened what they found, in the words of clients that clear."""
    marks = {r"alpha beta": "... 120 lines omitted ...", "error": "[truncated]", "4711": "<output trimmed>"}
    told = json.dumps(with_other_ids(messages, number))
    for word, mark in marks.items():
        told = told.replace(word, mark)
    read: list[Any] = json.loads(told)
    return read


@pytest.mark.parametrize(
    ("wire", "habit"),
    [
        ("openai-chat", cut_by_tools),
        ("openai-responses", cut_by_tools),
        ("anthropic", cut_by_tools),
        ("openai-chat", with_other_ids),
        ("openai-responses", with_other_ids),
        ("anthropic", with_other_ids),
        ("openai-chat", written_otherwise),
        ("openai-responses", written_otherwise),
    ],
)
def test_what_a_client_writes_otherwise_at_each_turn_costs_no_summary(
    tmp_path: Path, wire: str, habit: Callable[[list[Any], int], list[Any]]
) -> None:
    """Its answers say the same; looked for byte for byte, each turn was another conversation, and paid."""

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answered))
        gateway = stack.enter_context(InThread(settings_for(provider.url, tmp_path, summarizer="same")))
        for number, messages in enumerate(turns(wire, 60)):
            raw = compact(body_of(wire, habit(messages, number)))
            assert post(gateway.url, PATHS[wire], raw).status == 200
        asked = sum(map(is_own, provider.requests))
    assert 2 < asked < 10


def test_of_conversations_whose_answers_say_the_same_each_is_found(tmp_path: Path) -> None:
    """Only the one that came last was looked at, so those that took turns with it paid at nearly each turn."""

    def of(name: str, messages: list[Any], number: int) -> bytes:
        said = with_other_ids(messages, f"{name}{number}")
        for message in said:
            message["content"] = "ok" if message["role"] == "assistant" else f"{name}: {message['content']}"
        return compact(body_of("openai-chat", said))

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answered))
        gateway = stack.enter_context(InThread(settings_for(provider.url, tmp_path, summarizer="same")))
        for number, messages in enumerate(turns("openai-chat", 40)):
            for name in ("north", "south", "east"):
                assert post(gateway.url, PATHS["openai-chat"], of(name, messages, number)).status == 200
        asked = sum(map(is_own, provider.requests))
    assert 2 < asked < 12


def result_key(message: Any) -> str:
    return "content" if message.get("role") == "tool" else "output" if "output" in message else ""


def cleared(messages: list[Any], wire: str) -> list[Any]:
    """As agents do to save room, all but the newest results."""
    changed = list(messages)
    names = ("tool_result", "functionResponse")
    results = [n for n, one in enumerate(messages) if result_key(one) or any(name in str(one) for name in names)]
    for n in results[:-18]:
        if wire == "gemini":
            answer = {"name": "read", "response": {"output": "[cleared]"}}
            changed[n] = {**messages[n], "parts": [{"functionResponse": answer}]}
            continue
        key, blocks = result_key(messages[n]), messages[n].get("content")
        said = "[cleared]" if key else [{**block, "content": "[cleared]"} for block in blocks]
        changed[n] = {**messages[n], key or "content": said}
    return changed


@crossed(wire=sorted(PATHS), quick=2)
def test_old_results_that_a_client_clears_cost_no_summary(tmp_path: Path, wire: str) -> None:
    """Each turn that cleared one more of those that had left the view was another conversation, and paid."""

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answered))
        gateway = stack.enter_context(InThread(settings_for(provider.url, tmp_path, summarizer="same")))
        for messages in turns(wire, 80):
            assert post(gateway.url, PATHS[wire], compact(body_of(wire, cleared(messages, wire)))).status == 200
        asked = sum(map(is_own, provider.requests))
    assert 2 < asked < 10


@pytest.mark.parametrize(
    "named", [{"user": "{}"}, {"metadata": {"user_id": "{}"}}, {}], ids=["user", "metadata", "ids of calls"]
)
def test_agents_that_did_the_same_for_two_people_share_no_summary(tmp_path: Path, named: dict[str, Any]) -> None:
    """Behind one key; the agent's own model reads all of a view, so its summary may tell what only one of them said."""

    def answer(request: Any) -> Answer:
        if not is_own(request):
            return Answer("ok")
        return Answer(
            SUMMARY.replace("as it was told", "as Anna told it" if "I am Anna" in request.text else "as told")
        )

    def of(name: str, messages: list[Any], number: int) -> bytes:
        said = [dict(message) for message in messages]
        said[1]["content"] += f" I am {name}. It is 12:{number:02}."
        fields = {key: json.loads(json.dumps(value).replace("{}", name)) for key, value in named.items()}
        return compact(body_of("openai-chat", said if named else with_other_ids(said, name), **fields))

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            history = list(turns("openai-chat", 50))
            for name, begins in (("Anna", 0), ("Bert", 0 if named else len(history) - 1)):
                for number, messages in enumerate(history[begins:]):
                    assert post(gateway.url, PATHS["openai-chat"], of(name, messages, number)).status == 200
        sent = [request.text for request in provider.requests]
    assert any("as Anna told it" in text for text in sent)
    assert not any("as Anna told it" in text for text in sent if "I am Bert" in text)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_agents_whose_instructions_name_two_people_share_no_summary(tmp_path: Path, wire: str) -> None:
    """They differ in nothing else, and a gateway beside finds records by what the messages say; one that a person goes
    on with in another session is found."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "I am Anna" in json.dumps(request.body) else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def of(name: str, messages: list[Any], session: int = 1) -> bytes:
        told = f"You are a careful agent. I am {name}."
        said = [message for message in messages if message.get("role") != "system"]
        fields = {"metadata": {"user_id": f"user_{name}_account_1_session_{session}"}}
        if wire == "anthropic":
            return compact(body_of(wire, said, system=told, **fields))
        return compact(body_of(wire, [{"role": "system", "content": told}, *said], **fields))

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answer))
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        gateways = [stack.enter_context(InThread(settings)) for _ in range(2)]
        history = list(turns(wire, 50))
        for number, name in enumerate(("Anna", "Bert")):
            for messages in history:
                assert post(gateways[number].url, PATHS[wire], of(name, messages)).status == 200
        sent = [json.dumps(request.body) for request in provider.requests]
        assert post(gateways[1].url, PATHS[wire], of("Anna", history[-1], session=2)).status == 200
        served = next(request for request in reversed(provider.requests) if not is_own(request))
        assert "as Anna told it" in json.dumps(served.body)
    assert any("as Anna told it" in text for text in sent)
    assert not any("as Anna told it" in text for text in sent if "I am Bert" in text)


@pytest.mark.parametrize(
    ("wire", "named"),
    [(wire, named) for wire in PATHS for named in ("by the key", "by the user") if (wire, named) != UNNAMED],
)
def test_what_is_prepared_for_one_is_given_to_no_other_who_said_the_same(tmp_path: Path, wire: str, named: str) -> None:
    """Anna's summary was paid for with her key, and may tell what only her instructions say. Bert comes as soon as it
    is there, and before it is in force."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "I am Anna" in json.dumps(request.body) else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def ask(name: str, messages: list[Any]) -> Response:
        told = f"I am {name}."
        said = [message for message in messages if message.get("role") != "system"]
        system = {"system": told} if wire == "anthropic" else {"instructions": told}
        if wire == "openai-chat":
            system, said = {}, [{"role": "system", "content": told}, *said]
        system = {"systemInstruction": {"parts": [{"text": told}]}} if wire == "gemini" else system
        place = {"metadata": {"user_id": name}} if wire == "anthropic" else {"user": name}
        key = name if named == "by the key" else "shared"
        raw = compact(body_of(wire, said, **system, **(place if named == "by the user" else {})))
        return post(
            gateway.url, PATHS[wire], raw, {"authorization": f"Bearer {key}", "x-api-key": key, "x-goog-api-key": key}
        )

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=4 * WINDOW, answers=answer))
        gateway = stack.enter_context(InThread(settings_for(provider.url, tmp_path, summarizer="same")))
        history = turns(wire, 60)
        for messages in history:
            assert ask("Anna", messages).status == 200
            time.sleep(0.02)
            if any(map(is_own, provider.requests)):
                break
        assert until(lambda: all(request.usage is not None for request in provider.requests))
        assert "as Anna told it" not in str([request.text for request in provider.requests])
        for messages in islice(history, 8):
            assert ask("Bert", messages).status == 200
            time.sleep(0.02)
        sent = [request.text for request in provider.requests]
    assert any("as Bert told it" in text for text in sent)
    assert not any("as Anna told it" in text for text in sent)


@pytest.mark.parametrize("differs", ["all rows", "the task and the first rows"])
def test_placeholders_of_another_person_are_not_known_again(tmp_path: Path, differs: str) -> None:
    """Two runs of one job that name no one, with numbered calls: what a placeholder stands for in one of them is not
    what the summary of the other tells."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "Anna's" in request.text else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def of(name: str, messages: list[Any], *, shown: int) -> bytes:
        said = [dict(message) for message in messages]
        if differs != "all rows":
            said[1]["content"] += f" They are {name}'s rows."
        for n, message in enumerate(said):
            if message["role"] == "tool" and (differs == "all rows" or n < 24):
                message["content"] = f"{name}'s row {n}: {message['content']}"
        for message in [one for one in said if one["role"] == "tool"][:-shown]:
            message["content"] = "[cleared]"
        return compact(body_of("openai-chat", said))

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            history = list(turns("openai-chat", 50))
            for messages in history[:-1]:
                assert post(gateway.url, PATHS["openai-chat"], of("Anna", messages, shown=100)).status == 200
            assert post(gateway.url, PATHS["openai-chat"], of("Bert", history[-1], shown=8)).status == 200
        sent = [request.text for request in provider.requests if not is_own(request)]
    assert any("as Anna told it" in text for text in sent)
    assert "as Anna told it" not in sent[-1]


@pytest.mark.parametrize(
    ("cleared_at", "comes_at", "gateways"),
    [(49, 50, 1), (30, 50, 1), (19, 20, 1), (30, 50, 2)],
    ids=["just before", "and went on", "what was prepared waits", "and went on in another process"],
)
def test_placeholders_that_stand_in_the_first_run_too_are_not_known_again(
    tmp_path: Path, cleared_at: int, comes_at: int, gateways: int
) -> None:
    """Both have cleared the same results, so all that is left says the same, behind ids of their own."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "Anna" in request.text else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def of(name: str, messages: list[Any], *, cleared: bool) -> bytes:
        said = with_other_ids(messages, name)
        for n, message in enumerate(said):
            if message["role"] == "tool" and n < 24:
                message["content"] = "[cleared]" if cleared else f"{name}'s row {n}: {message['content']}"
        return compact(body_of("openai-chat", said))

    with ExitStack() as stack:
        provider = stack.enter_context(ProviderServer(default_window=WINDOW, answers=answer))
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        opened = [stack.enter_context(InThread(settings)) for _ in range(gateways)]
        history = list(turns("openai-chat", comes_at + 16))
        for turn, messages in enumerate(history[:comes_at]):
            gateway = opened[-1 if turn > comes_at - 3 else 0]
            raw = of("Anna", messages, cleared=turn >= cleared_at)
            assert post(gateway.url, PATHS["openai-chat"], raw).status == 200
            time.sleep(0.01)
        assert until(lambda: all(request.usage is not None for request in provider.requests))
        assert any(is_own(request) for request in provider.requests)
        count = len(provider.requests)
        for messages in history[comes_at:]:
            assert post(opened[-1].url, PATHS["openai-chat"], of("Bert", messages, cleared=True)).status == 200
        sent = [request.text for request in provider.requests if not is_own(request)]
        to_bert = [request.text for request in provider.requests[count:] if not is_own(request)]
    assert any("as Anna told it" in text for text in sent) or cleared_at == 19
    assert to_bert
    assert not any("as Anna told it" in text for text in to_bert)


@pytest.mark.parametrize("told", ["Deploy report\n{}\n[... 900 lines truncated ...]", "Cache cleared: {} rows"])
def test_a_run_whose_tool_cut_another_answer_shares_no_summary(tmp_path: Path, told: str) -> None:
    """Two runs of one job with numbered calls that differ in one old output, which looks like a cleared one."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "Anna" in request.text else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def of(name: str, messages: list[Any]) -> bytes:
        said = [dict(message) for message in messages]
        for message in [one for one in said if one["role"] == "tool"][:1]:
            message["content"] = told.format(f"{name}'s")
        return compact(body_of("openai-chat", said))

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            history = list(turns("openai-chat", 50))
            for messages in history[:-1]:
                assert post(gateway.url, PATHS["openai-chat"], of("Anna", messages)).status == 200
            assert post(gateway.url, PATHS["openai-chat"], of("Bert", history[-1])).status == 200
        sent = [request.text for request in provider.requests if not is_own(request)]
    assert any("as Anna told it" in text for text in sent)
    assert "as Anna told it" not in sent[-1]


def with_own_ids(messages: list[Any], since: int = 0) -> list[Any]:
    """With ids of calls as providers make them, from a turn on."""

    def own(found: re.Match[str]) -> str:
        return "call_" + hashlib.sha256(found[0].encode()).hexdigest()[:16] if int(found[1]) >= since else found[0]

    read: list[Any] = json.loads(re.sub(r"call_0_(\d+)", own, json.dumps(messages)))
    return read


def window_of(messages: list[Any], groups: int, *, keeps_first: int) -> list[Any]:
    """The instructions, perhaps the task, and the newest calls with their results."""
    kept = sum(message.get("role") == "system" for message in messages) + keeps_first
    return [*messages[:kept], *messages[max(kept, len(messages) - 2 * groups) :]]


@pytest.mark.parametrize("keeps_first", [0, 1, 4], ids=["", "keeps the first", "keeps some of the first"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_client_that_drops_its_oldest_messages_pays_for_no_more_summaries(
    tmp_path: Path, wire: str, keeps_first: int
) -> None:
    """Each turn began otherwise than the one before, and paid."""

    with ProviderServer(default_window=WINDOW, answers=answered) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            for messages in turns(wire, 80):
                given = window_of(with_own_ids(messages), 24, keeps_first=keeps_first)
                assert post(gateway.url, PATHS[wire], compact(body_of(wire, given))).status == 200
            assert gateway.metrics.total("failures_total") == 0
            compactions = gateway.metrics.total("compactions_total")
        asked = sum(map(is_own, provider.requests))
        assert "reads files one after the other" in provider.requests[-1].text
    assert 2 < asked < 10
    assert compactions <= asked


@crossed(habit=["drops", "clears"], count=[2, 8])
def test_other_runs_of_the_same_task_take_no_summary_of_a_client_that_makes_room(
    tmp_path: Path, habit: str, count: int
) -> None:
    """Where another run of the task begins, or a fork of the first turns, a longer one began with it byte for byte, and
    was taken for what comes next of it: each turn paid.
    """
    path = PATHS["openai-chat"]

    def asked(folder: Path, *, beside: bool) -> tuple[int, float]:
        """How many summaries are paid for, and how many conversations are remembered."""
        folder.mkdir()
        with ProviderServer(default_window=WINDOW, answers=answered) as provider:
            with InThread(settings_for(provider.url, folder, summarizer="same")) as gateway:
                for messages in islice(turns("openai-chat", 50), 30, None):
                    whole = with_own_ids(messages)
                    whole[1]["content"] += LONG_TASK
                    left = [*whole[:count], *cleared(whole, "openai-chat")[count:]]
                    given = window_of(whole, 24, keeps_first=count - 1) if habit == "drops" else left
                    for sent in (given, whole[:count]) if beside else (given,):
                        assert post(gateway.url, path, compact(body_of("openai-chat", sent))).status == 200
                assert gateway.metrics.total("failures_total") == 0
                remembered = gateway.metrics.total("remembered_conversations")
            return sum(map(is_own, provider.requests)), remembered

    alone, one = asked(tmp_path / "alone", beside=False)
    others, two = asked(tmp_path / "others", beside=True)
    # What the provider says of one is learned of the other as well, so that a pass may come a turn sooner.
    assert 0 < others <= alone + 1
    assert (one, two) == (1, 2)


@pytest.mark.parametrize("drops_after", [0, 1], ids=["", "after a pass"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_client_that_brings_back_what_it_has_dropped_pays_for_no_more_summaries(
    tmp_path: Path, wire: str, drops_after: int
) -> None:
    """One that makes room by the sizes that it is told drops its oldest messages while a view is large, and sends them
    again once a pass has made it small: that pass was made over the shorter list, and was not found for the whole one.
    """
    with (
        ProviderServer(default_window=WINDOW, answers=answered) as provider,
        InThread(settings_for(provider.url, tmp_path)) as gateway,
    ):
        history, made = map(with_own_ids, turns(wire, 80)), 0.0
        while made <= drops_after:
            messages = next(history)
            opening = sum(message.get("role") == "system" for message in messages)
            drops = len(messages) > 4 and made == drops_after
            given = [*messages[:opening], *messages[opening + 3 :]] if drops else messages
            assert post(gateway.url, PATHS[wire], compact(body_of(wire, given))).status == 200
            made = gateway.metrics.total("compactions_total")
        of_the_pass = provider.requests[-1].text
        assert post(gateway.url, PATHS[wire], compact(body_of(wire, next(history)))).status == 200
        assert gateway.metrics.total("compactions_total") == made
        assert gateway.metrics.total("failures_total") == 0
    assert "Task 0" not in of_the_pass or drops_after
    assert "Task 0" in provider.requests[-1].text
    assert provider.requests[-1].tokens < WINDOW


@pytest.mark.parametrize("ids", ["numbered", "of its own since turn 60"])
def test_what_a_client_has_dropped_is_told_to_no_one_whose_messages_are_the_same(tmp_path: Path, ids: str) -> None:
    """Two runs of one job that differ in nothing but the task, which both of their clients drop in the end."""

    def answer(request: Any) -> Answer:
        who = "Anna" if "I am Anna" in request.text or "Anna told" in request.text else "Bert"
        return Answer(SUMMARY.replace("as it was told", f"as {who} told it") if is_own(request) else "ok")

    def of(name: str, messages: list[Any]) -> bytes:
        said = [dict(message) for message in messages]
        said[1]["content"] += f" I am {name}."
        given = with_own_ids(said, 60) if name == "Anna" and ids != "numbered" else said
        return compact(body_of("openai-chat", window_of(given, 50, keeps_first=0) if len(said) > 126 else given))

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            history = list(turns("openai-chat", 74))
            for messages in history:
                assert post(gateway.url, PATHS["openai-chat"], of("Anna", messages)).status == 200
            assert "as Anna told it" in provider.requests[-1].text or ids == "numbered"
            count = len(provider.requests)
            for messages in history[64:]:
                assert post(gateway.url, PATHS["openai-chat"], of("Bert", messages)).status == 200
        # the gateway may still be asking for Anna's next summary
        sent = [request.text for request in provider.requests[count:] if not is_own(request)]
    assert sent
    assert not any("as Anna told it" in text for text in sent)


@pytest.mark.parametrize("ids", ["numbered", "its own"])
def test_what_was_made_of_a_shorter_list_is_told_to_no_one_whose_longer_one_has_the_same_messages(
    tmp_path: Path, ids: str
) -> None:
    """Two runs of one job: the client of the one has dropped the task when its summary is made, that of the other has
    not. With ids of its own it is one client, which has brought the task back.
    """
    who = ["Anna"]

    def answer(request: Any) -> Answer:
        return Answer(SUMMARY.replace("as it was told", f"as {who[0]} told it") if is_own(request) else "ok")

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            history: Iterator[list[Any]] = iter(turns("openai-chat", 40))
            if ids == "its own":
                history = map(with_own_ids, history)
            for messages in history:
                given = [messages[0], *messages[4:]] if len(messages) > 5 else messages
                assert post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", given))).status == 200
                if "as Anna told it" in provider.requests[-1].text:
                    break
            count, who[0] = len(provider.requests), "Bert"
            raw = compact(body_of("openai-chat", next(history)))
            assert post(gateway.url, PATHS["openai-chat"], raw).status == 200
        sent = [request.text for request in provider.requests[count:] if not is_own(request)]
    assert "Task 0" in sent[-1]
    assert ("as Anna told it" in sent[-1]) == (ids == "its own")


def test_a_summary_that_is_written_for_a_client_that_left_serves_it_when_it_comes_back(tmp_path: Path) -> None:
    """A client with a time limit was given up with its summary each time, and paid for another one at each try."""
    asked, may_answer, answer = summary_when_told()
    raw = compact(body_of("openai-chat", list(turns("openai-chat", 20))[-1]))
    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
            connection.request("POST", PATHS["openai-chat"], raw, {"authorization": "Bearer key-of-a-test"})
            assert asked.wait(20)
            connection.close()
            with ThreadPoolExecutor(1) as pool:
                again = pool.submit(post, gateway.url, PATHS["openai-chat"], raw)
                until = time.monotonic() + 5
                while gateway.app.state.gateway.in_flight < 2 and time.monotonic() < until:
                    time.sleep(0.01)
                may_answer.set()
                assert again.result().status == 200
            assert gateway.metrics.total("failures_total") == 0
        own = [is_own(request) for request in provider.requests]
    assert own == [True, False]
    assert "reads files one after the other" in provider.requests[-1].text


@pytest.mark.parametrize("wire", sorted(PATHS))
def test_requests_that_come_at_the_same_moment_pay_for_one_summary(tmp_path: Path, wire: str) -> None:
    """A client that hedges, or tries again at once, found none under way: each of its requests paid for its own."""

    raw = compact(body_of(wire, list(turns(wire, 20))[-1]))
    with ProviderServer(default_window=WINDOW, answers=answered) as provider:
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        with InThread(settings) as gateway, ThreadPoolExecutor(COUNT) as pool:
            got = list(pool.map(lambda _: post(gateway.url, PATHS[wire], raw), range(COUNT)))
        assert gateway.metrics.total("compactions_total") == 1
        assert gateway.metrics.total("failures_total") == 0
    told = sorted(response.headers["x-contextfold-action"] for response in got)
    assert told == ["compacted", *["view"] * (COUNT - 1)]
    assert sum(map(is_own, provider.requests)) == 1
    assert len({request.text for request in provider.requests if not is_own(request)}) == 1


@pytest.mark.parametrize("store", ["sqlite:///:memory:", "sqlite:///{}/gateway.db"])
def test_requests_that_come_at_the_same_moment_prepare_one_summary(tmp_path: Path, store: str) -> None:
    """Before the trigger each of them prepared its own beside itself, and only one was ever used."""
    together, may_answer = threading.Barrier(COUNT), threading.Event()

    def answer(request: Any) -> Answer:
        if is_own(request):
            assert may_answer.wait(20)
            return Answer(SUMMARY)
        together.wait(20)
        return Answer("ok")

    raw = compact(body_of("openai-chat", list(turns("openai-chat", 20))[-3]))
    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        settings = settings_for(provider.url, tmp_path, summarizer="same", store=store.format(tmp_path))
        with InThread(settings) as gateway, ThreadPoolExecutor(COUNT) as pool:
            list(pool.map(lambda _: post(gateway.url, PATHS["openai-chat"], raw), range(COUNT)))
            may_answer.set()
    assert sum(map(is_own, provider.requests)) == 1


def test_who_waits_for_a_pass_that_is_tried_again_goes_on_when_that_one_ends() -> None:
    """With a window that is only assumed, a pass that cannot fit is made again under a larger one: the requests that
    waited for the first try hung until their clients gave up.
    """

    async def waited() -> None:
        state = State("openai-chat")
        passing = Passing(state)
        await passing.begin()
        others = [asyncio.create_task(none_under_way(state)), asyncio.create_task(Passing(state).begin())]
        await asyncio.sleep(0)
        await passing.begin()
        passing.go_on()
        _, hang = await asyncio.wait(others, timeout=5)
        assert not hang

    asyncio.run(waited())


@pytest.mark.parametrize(
    ("summarizer", "limit", "most"),
    [("same", "of the summary", 1), ("same", "of the upstream", 1), ("openai:writer", "of the summary", 2)],
)
def test_a_model_that_is_silent_holds_a_turn_once_and_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, summarizer: str, limit: str, most: int
) -> None:
    """It was asked five times in one turn, and so in each turn until the window was full."""
    monkeypatch.setenv("OPENAI_API_KEY", "the-writers")
    is_over, asked = threading.Event(), list[Any]()

    def answer(request: Any) -> Answer:
        if is_own(request) or request.body["model"] == "writer":
            asked.append(request)
            is_over.wait(30)
        return Answer("ok")

    late = compact(body_of("openai-chat", list(turns("openai-chat", 23, seed=1))[-1]))
    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        settings = settings_for(
            provider.url,
            tmp_path,
            summarizer=summarizer,
            base_url=f"{provider.url}/v1",
            policy=Policy(summary={"idle_seconds": 1.0 if limit == "of the summary" else 30.0}),
            first_byte_seconds=1.0 if limit == "of the upstream" else 60.0,
        )
        with InThread(settings) as gateway:
            told = post(gateway.url, PATHS["openai-chat"], late).headers
            assert (told["x-contextfold-action"], told["x-contextfold-failure"]) == ("passed", "summary")
            assert 1 <= len(asked) <= most
            grown = [
                post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", messages)))
                for messages in turns("openai-chat", 30)
            ]
            is_over.set()
    assert {response.status for response in grown} == {200}
    failed = [response for response in grown if "x-contextfold-failure" in response.headers]
    assert [response.headers["x-contextfold-action"] for response in failed] == ["compacted"]


@pytest.mark.parametrize("comes", ["in turn", "at the trigger", "meanwhile"])
def test_of_several_gateways_on_one_store_one_pays_for_a_summary(tmp_path: Path, comes: str) -> None:
    """Each that saw a turn near the trigger, or met the trigger, paid for one of its own."""
    asked, may_answer, answer = summary_when_told()

    def is_prepared() -> bool:
        with closing(sqlite3.connect(tmp_path / "gateway.db")) as connection:
            return bool(connection.execute("SELECT 1 FROM gateway_prepared WHERE record IS NOT NULL").fetchall())

    responses: list[Response] = []
    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        with InThread(settings) as one, InThread(settings) as two:
            for number, messages in enumerate(turns("openai-chat", 26)):
                is_near = len(responses) > 0 and int(responses[-1].headers.get("x-contextfold-tokens-after", 0)) > 5_500
                if is_near and not may_answer.is_set():
                    assert asked.wait(20)
                    if comes != "meanwhile" or int(responses[-1].headers["x-contextfold-tokens-after"]) > 6_000:
                        may_answer.set()
                        assert until(is_prepared)
                gateway = two if (number % 2 if comes != "at the trigger" else may_answer.is_set()) else one
                responses.append(post(gateway.url, PATHS["openai-chat"], compact(body_of("openai-chat", messages))))
    assert {response.status for response in responses} == {200}
    assert sum(map(is_own, provider.requests)) == 1
    assert len({response.headers.get("x-contextfold-compaction") for response in responses} - {None}) == 1
    assert any(response.headers.get("x-contextfold-prepared") for response in responses)


def test_what_was_thought_while_another_gateway_prepared_a_summary_leaves_with_it(tmp_path: Path) -> None:
    """It is bound to the old view: the provider refused it under the new one."""
    may_answer, is_prepared = threading.Event(), threading.Event()
    rng, messages, responses = random.Random(1), list[Any](), list[Response]()

    def answer(request: Any) -> Answer:
        if is_own(request):
            may_answer.wait(20)
        return Answer(SUMMARY if is_own(request) else "ok")

    def stored(record: GatewayRecordStore, owner: str, made: Any) -> None:
        conclude(record, owner, made)
        is_prepared.set()

    conclude = GatewayRecordStore.conclude
    fields = {"model": "claude-fable-5-1", "max_tokens": 1_000, "thinking": {"type": "adaptive"}}
    with pytest.MonkeyPatch.context() as patched, ProviderServer(default_window=WINDOW, answers=answer) as provider:
        patched.setattr(GatewayRecordStore, "conclude", stored)
        settings = settings_for(provider.url, tmp_path, summarizer="same")
        with InThread(settings) as one, InThread(settings) as two:
            while not responses or "x-contextfold-prepared" not in responses[-1].headers:
                is_due = bool(responses) and int(responses[-1].headers.get("x-contextfold-tokens-after", 0)) > 6_100
                if is_due:
                    may_answer.set()
                    assert is_prepared.wait(20)
                messages.append({"role": "user", "content": words(rng, 160)})
                raw = compact(body_of("anthropic", messages, **fields))
                responses.append(post((two if is_due else one).url, PATHS["anthropic"], raw))
                messages.append({"role": "assistant", "content": responses[-1].json["content"]})
    assert sum(map(is_own, provider.requests)) == 1
    assert "malformed_history" not in {response.headers.get("x-contextfold-resent") for response in responses}


def test_a_rehearsal_asks_no_model(tmp_path: Path) -> None:
    with ProviderServer(default_window=100_000) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same", shadow=True)) as gateway:
            raws = [compact(body_of("openai-chat", messages)) for messages in turns("openai-chat", 25)]
            for raw in raws:
                post(gateway.url, PATHS["openai-chat"], raw)
            time.sleep(0.1)
        assert [request.raw for request in provider.requests] == raws
        assert gateway.metrics.total("shadow_tokens_total") > 1_000


@pytest.mark.parametrize("marked", [1, 2], ids=["the newest", "the two newest"])
def test_behind_newest_results_all_but_the_instruction_comes_from_the_cache(tmp_path: Path, marked: int) -> None:
    """Anthropic reads from its cache by marks, which clients move to the newest messages; it takes four at most."""
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "You read tables.", "cache_control": mark}]
    tools = [{"name": "look", "input_schema": {"type": "object"}, "cache_control": mark}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Read all tables."}]}]

    with ProviderServer(default_window=WINDOW, answers=answered, cache_minimum=1) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            for n in range(50):
                told = json.loads(json.dumps(messages))
                for message in [one for one in told if one["role"] == "user"][-marked:]:
                    message["content"][-1]["cache_control"] = mark
                raw = compact(body_of("anthropic", told, system=system, tools=tools))
                assert post(gateway.url, PATHS["anthropic"], raw, {"x-api-key": "mine"}).status == 200
                call = {"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {"table": n}}
                read = {"type": "tool_result", "tool_use_id": f"call_{n}", "content": f"table {n}: " + "a row. " * 60}
                messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [read]}]
                time.sleep(0.02)
        own = [request for request in provider.requests if "Pause the task" in request.text]
    assert own
    for request in own:
        assert request.usage is not None
        assert request.usage.cached > 0.9 * request.usage.prompt
        assert request.raw.count(b'"cache_control"') <= 2 + marked


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("inside", [False, True], ids=["on the block", "inside of the result"])
def test_the_mark_that_moves_behind_the_instruction_is_the_one_that_came(
    opened: Any, provider: ProviderServer, wire: str, inside: bool
) -> None:
    """It says how long the provider keeps what it has read; in chat messages, OpenRouter and litellm read it."""
    provider._provider.script = lambda request: Answer(SUMMARY if is_own(request) else "ok")
    gateway = opened(policy=Policy(background=False), summarizer="same")
    mark = {"type": "ephemeral", "ttl": "1h"}
    for messages in turns(wire, 40):
        told = json.loads(json.dumps(messages))
        holder = told[-1]
        if inside and isinstance(holder["content"], list):
            holder = holder["content"][-1]
        if isinstance(holder["content"], str):
            holder["content"] = [{"type": "text", "text": holder["content"]}]
        holder["content"][-1]["cache_control"] = mark
        assert post(gateway.url, PATHS[wire], compact(body_of(wire, told))).status == 200
    own = [request for request in provider.requests if "Pause the task" in request.text]
    assert own
    for request in own:
        assert request.raw.count(b'"cache_control"') == 1
        assert compact(mark) in compact(request.body["messages"][-1])


def test_a_mark_that_moves_in_the_responses_api_makes_nothing_that_it_refuses(
    opened: Any, provider: ProviderServer
) -> None:
    """Routers take marks there, too: its messages have texts of another kind, and its results of tools no content."""
    provider._provider.script = lambda request: Answer(SUMMARY if is_own(request) else "ok")
    gateway = opened(policy=Policy(background=False), summarizer="same")
    for items in turns("openai-responses", 40):
        told = [*items[:-1], {**items[-1], "cache_control": {"type": "ephemeral"}}]
        assert post(gateway.url, PATHS["openai-responses"], compact(body_of("openai-responses", told))).status == 200
    assert not [request.error for request in provider.requests if request.error is not None]
    for item in (item for request in provider.requests for item in request.body["input"]):
        assert ("content" in item) == (item.get("type", "message") == "message")
        if isinstance(item.get("content"), list):
            assert {block["type"] for block in item["content"]} <= {"input_text", "output_text"}
    own = [request for request in provider.requests if "Pause the task" in request.text]
    assert own
    assert all(request.raw.count(b'"cache_control"') == 1 for request in own)


def test_a_summary_is_asked_for_with_the_thinking_of_the_view(opened: Any, provider: ProviderServer) -> None:
    """A budget is refused behind calls whose thinking was summarized, and what is cached holds for one way of it."""
    provider._provider.script = lambda request: Answer(SUMMARY if is_own(request) else "ok")
    policy = Policy(trigger=("fraction", 0.6), target=("fraction", 0.3), background=False)
    gateway = opened(policy=policy, summarizer="same")
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}]
    own = {"max_tokens": 2_000, "thinking": {"type": "enabled", "budget_tokens": 1_024}}
    for messages in thinking_turns(once=True):
        body = body_of("anthropic", messages, context_management={"edits": edits}, **own)
        assert post(gateway.url, PATHS["anthropic"], compact(body)).status == 200
    requests = list(provider.requests)
    behind = [number for number, request in enumerate(requests) if "Pause the task" in request.text]
    assert len(behind) > 2
    for number in behind:
        before, asked = requests[number - 1].body, requests[number].body
        assert {**asked, "messages": [], "max_tokens": 0} == {**before, "messages": [], "max_tokens": 0}
    assert all(request.error is None for request in requests)


def test_a_summary_is_asked_for_with_an_answer_limit_that_fits_beside_the_view(
    opened: Any, provider: ProviderServer
) -> None:
    """A client that always asks for a long answer was refused for it once, and its limit is lowered since then."""
    provider._provider.script = lambda request: Answer(SUMMARY if is_own(request) else "I go on.")
    gateway = opened(summarizer="same")
    for messages in turns("anthropic", 40):
        raw = compact(body_of("anthropic", messages, max_tokens=6_000))
        assert post(gateway.url, PATHS["anthropic"], raw).status == 200
    asked = [request for request in provider.requests if is_own(request)]
    assert asked
    assert [request.error for request in asked if request.error] == []
