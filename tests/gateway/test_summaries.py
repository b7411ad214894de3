"""``--summarizer same``: the caller's own model, behind the very bytes it has just read, under the caller's key."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, ProviderServer
from tests.gateway.conftest import WINDOW, settings_for
from tests.gateway.requests_made import PATHS, body_of, compact, post, turns

from contextfold.gateway.serve import InThread

SUMMARY = "<summary>The agent reads files one after the other and keeps to its task, as it was told.</summary>"


def is_own(request: Any) -> bool:
    """Whether a request is the gateway's own: its newest message asks for a summary."""
    return "<summary>" in request.text


@pytest.mark.parametrize("wire", sorted(PATHS))
def test_the_model_is_asked_behind_the_view_before_it_is_needed(tmp_path: Path, wire: str) -> None:
    def answer(request: Any) -> Answer:
        return Answer(SUMMARY if is_own(request) else "ok")

    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same")) as gateway:
            responses = []
            for messages in turns(wire, 26):
                raw = compact(body_of(wire, messages, stream=wire == "openai-chat"))
                responses.append(post(gateway.url, PATHS[wire], raw, {"authorization": "Bearer mine"}))
                time.sleep(0.02)
        requests = list(provider.requests)
        assert {response.status for response in responses} == {200}
        assert gateway.metrics.total("failures_total") == 0
    own = [number for number, request in enumerate(requests) if is_own(request)]
    assert own
    assert any(response.headers.get("x-contextfold-prepared") == "true" for response in responses)
    assert "reads files one after the other" in requests[-1].text
    asked = requests[own[0]]
    assert not asked.body.get("stream")
    assert asked.usage is not None
    assert asked.usage.cached > 0.7 * asked.tokens or wire == "anthropic"  # where marks decide what is kept
    assert asked.body.get("store") in (None, False)


def test_a_rehearsal_asks_no_model(tmp_path: Path) -> None:
    with ProviderServer(default_window=100_000) as provider:
        with InThread(settings_for(provider.url, tmp_path, summarizer="same", shadow=True)) as gateway:
            raws = [compact(body_of("openai-chat", messages)) for messages in turns("openai-chat", 25)]
            for raw in raws:
                post(gateway.url, PATHS["openai-chat"], raw)
            time.sleep(0.1)
        assert [request.raw for request in provider.requests] == raws
        assert gateway.metrics.total("shadow_tokens_total") > 1_000
