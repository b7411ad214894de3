"""Conversations whose client names answers by their ids alone (``item_reference``), as Vercel's AI SDK does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import openai
import pytest
from emulator import Answer, ProviderServer, ToolCall
from tests.gateway.conftest import WINDOW
from tests.gateway.requests_made import words

from contextfold.gateway.kept import KeptItems
from contextfold.gateway.serve import InThread
from effort import crossed

SAYS = "The port of host-{0}.example is 4{0:03}."


def answering(says: str) -> Callable[[Any], Answer]:
    """A model that reasons, says something, and calls a tool."""
    return lambda request: Answer(
        says.format(request.number), (ToolCall("read", {"path": f"{request.number}.py"}),), reasons=True
    )


def by_names(
    gateway: InThread, answers: int, *, stream: bool = False, key: str = "k", given: Sequence[Any] = ()
) -> list[Any]:
    """The items of a tool loop behind those ``given``: as the AI SDK sends them for every model that reasons, unless it
    is told ``store: false``. Reasoning and what is said behind it are names; calls and results are whole.
    """
    items: list[Any] = list(given) or [{"role": "developer", "content": "Act."}, {"role": "user", "content": "Go on."}]
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0) as client:
        for _ in range(answers):
            for item in output_of(client, items, stream=stream):
                items += named(item, random.Random(len(items)))
    return items


def named(item: Any, rng: random.Random) -> list[Any]:
    if item.type != "function_call":
        return [{"type": "item_reference", "id": item.id}]
    call = item.model_dump(include={"type", "call_id", "name", "arguments"})
    return [call, {"type": "function_call_output", "call_id": item.call_id, "output": words(rng, 150)}]


def output_of(client: openai.OpenAI, items: Sequence[Any], *, stream: bool) -> list[Any]:
    if not stream:
        return client.responses.create(model="m", input=list(items)).output
    with client.responses.stream(model="m", input=list(items)) as events:
        *_, last = events
    return list(last.response.output)


def names(items: Sequence[Any]) -> list[str]:
    return [item["id"] for item in items if item.get("type") == "item_reference"]


@crossed(answers=("text", "calls alone"), stream=(False, True))
def test_a_client_that_names_answers_by_their_ids_is_kept_inside_the_window(
    opened: Any, provider: ProviderServer, answers: str, stream: bool
) -> None:
    """The gateway has relayed what a name stands for: it is summarized, and what stays is named as its client does."""
    provider._provider.script = answering(SAYS if answers == "text" else "")
    gateway = opened()
    came = by_names(gateway, 60, stream=stream)
    assert [request.status for request in provider.requests] == [200] * 60
    assert max(request.tokens for request in provider.requests) < WINDOW
    assert 2 <= gateway.metrics.total("compactions_total") <= 8
    assert gateway.metrics.total("native_total") == gateway.metrics.total("failures_total") == 0
    sent = json.loads(provider.requests[-1].raw)["input"]
    kept = names(sent)
    assert kept
    assert kept == [name for name in names(came) if name in kept]
    if answers == "text":  # what only an answer has said, and left the view
        assert SAYS.format(20) in json.dumps(sent)


@pytest.mark.parametrize("type_", [{"type": "item_reference"}, {}], ids=["typed", "an id alone"])
def test_what_is_named_counts_as_what_it_stands_for_where_nearly_all_is_names(
    opened: Any, provider: ProviderServer, type_: dict[str, str]
) -> None:
    """A chat with long answers: the bytes of its requests are few, and it was sent on whole until it was refused."""
    provider._provider.script = lambda request: Answer(words(random.Random(request.number), 300))
    gateway, items = opened(), list[Any]()
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client:
        for n in range(40):
            items.append({"role": "user", "content": f"Tell me of {n}."})
            items += [{**type_, "id": item.id} for item in client.responses.create(model="m", input=items).output]
    assert [request.status for request in provider.requests] == [200] * 40
    assert max(request.tokens for request in provider.requests) < WINDOW
    assert gateway.metrics.total("compactions_total") >= 2


def test_a_conversation_whose_reasoning_alone_is_named_goes_on_behind_a_gateway_that_was_started_anew(
    opened: Any, provider: ProviderServer
) -> None:
    provider._provider.script = answering("")
    came = by_names(opened(), 30)
    anew = opened()
    by_names(anew, 4, given=came)
    assert {request.status for request in provider.requests} == {200}
    assert anew.metrics.total("native_total") == anew.metrics.total("failures_total") == 0
    assert anew.metrics.total("compactions_total") <= 1  # the record in the store is found
    assert provider.requests[-1].tokens < WINDOW


@pytest.mark.parametrize("whose", ["another caller's", "of before the start"])
def test_a_name_that_nothing_is_known_of_leaves_the_request_as_it_came(
    opened: Any, provider: ProviderServer, whose: str
) -> None:
    """Who asks with another key is told nothing of what the first one was answered, also not in a summary."""
    provider._provider.script = answering(SAYS)
    gateway = opened()
    came = by_names(gateway, 12)
    if whose == "of before the start":
        gateway = opened()
    with suppress(openai.BadRequestError):
        by_names(gateway, 1, given=[*came, *came[2:]], key="k" if whose == "of before the start" else "another")
    assert gateway.metrics.total("native_total") == 1
    assert json.loads(provider.requests[-1].raw)["input"] == [*came, *came[2:]]


def test_what_the_provider_does_not_keep_is_not_kept_either(opened: Any, provider: ProviderServer) -> None:
    gateway = opened()
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as client:
        said = client.responses.create(model="m", input=[{"role": "user", "content": "hello"}], store=False).output[0]
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.responses.create(model="m", input=[{"type": "item_reference", "id": said.id}] * 1_000)
    assert gateway.metrics.total("native_total") == 1


def test_the_items_that_were_not_named_for_longest_are_forgotten_first() -> None:
    kept = KeptItems(most_bytes=1_000)
    items = [{"type": "message", "id": f"msg_{n}", "content": "x" * 200} for n in range(6)]
    entries = [{"type": "item_reference", "id": item["id"]} for item in items]
    for n, item in enumerate(items):
        kept.remember(b"scope", [item])
        if n:
            assert kept.named(b"scope", entries[0]) == items[0]
    known = [kept.named(b"scope", entry) == item for entry, item in zip(entries, items, strict=True)]
    assert known == [True, False, False, True, True, True]
    assert kept.named(b"another", entries[5]) == entries[5]


def test_what_each_turn_of_a_conversation_names_stays_known_however_much_others_are_answered(
    opened: Any, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a turn names has been used, also what was read at an earlier one: when its client begins with something
    else, as another date, all of it is read again.
    """
    monkeypatch.setattr("contextfold.gateway.exchange.KeptItems", lambda: KeptItems(most_bytes=30_000))
    provider._provider.script = answering(SAYS)
    gateway = opened()
    came = by_names(gateway, 12)
    for n in range(8):
        by_names(gateway, 12, key=f"another's, {n}")
        came = by_names(gateway, 1, given=came)
    by_names(gateway, 1, given=[{"role": "developer", "content": "Act. It is Friday."}, *came[1:]])
    assert gateway.metrics.total("native_total") == 0


@pytest.mark.parametrize("content", ["half of an emoji: \ud83d", 2**70 + 1], ids=["half an emoji", "a large integer"])
def test_what_an_answer_says_is_known_as_it_was_said(content: Any) -> None:
    """Such an answer made each later request of its conversation fail, and go on whole."""
    kept, item = KeptItems(), {"type": "message", "id": "msg_1", "content": content}
    kept.remember(b"scope", [item])
    assert kept.named(b"scope", {"type": "item_reference", "id": "msg_1"}) == item
