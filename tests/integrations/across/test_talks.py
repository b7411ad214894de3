"""Frameworks that run agents themselves: their own runners with a face of ours, over HTTP against the provider on
loopback. What holds of a talk holds in all of them.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from emulator import Fault, ProviderServer

from contextfold import StillTooLong
from effort import crossed
from integrations import rooms
from integrations.rooms import WINDOW, Writer

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:.*shutdown_asyncgens:ResourceWarning"),  # of the Agents SDK's run_sync
]

SHAPES = ("chat", "responses")
WAYS = ("sync", "async", "stream")
AGENTS = ("agents filter", "agents provider", "agents session")
FACES = (*AGENTS, "pydantic-ai")
SEE_REFUSALS = ("agents provider", "pydantic-ai")
"""The Agents SDK lets no filter see them."""
TELL_RESULTS = ("agents filter", *SEE_REFUSALS)


def opened(face: str, server: ProviderServer, folder: Path | None = None, **settings: Any) -> Any:
    if face == "pydantic-ai":
        pytest.importorskip("pydantic_ai.models")
        return import_module("integrations.pydantic_ai.pydantic_talk").Talk(server, **settings)
    pytest.importorskip("agents.memory")
    made = import_module("integrations.openai_agents.agents_talk").Talk
    return made(server, face=face.removeprefix("agents "), folder=folder, **settings)


@crossed(shape=SHAPES, way=WAYS, face=FACES, quick=4)
def test_a_talk_stays_inside_the_window(
    server: ProviderServer, shape: str, way: str, face: str, tmp_path: Path
) -> None:
    talk = opened(face, server, tmp_path, shape=shape, way=way, summarizer=Writer())
    talk.play(24)
    rooms.check(talk, server, 24)
    assert talk.passes >= 1 or face not in TELL_RESULTS


@pytest.mark.strict
@pytest.mark.parametrize(
    ("shape", "way", "face"),
    [
        ("responses", "async", "agents filter"),
        ("responses", "stream", "agents provider"),
        ("responses", "sync", "agents session"),
        ("chat", "async", "pydantic-ai"),
        ("responses", "stream", "pydantic-ai"),
    ],
)
def test_a_talk_of_many_passes_stays_inside_the_window(
    server: ProviderServer, shape: str, way: str, face: str, tmp_path: Path
) -> None:
    """A turn of these frameworks takes longer the longer the conversation is, so the passes are counted, not turns."""
    writer, turns = Writer(), 60
    talk = opened(face, server, tmp_path, shape=shape, way=way, summarizer=writer)
    talk.play(turns)
    rooms.check(talk, server, turns)
    assert len(writer.prompts) >= 8
    if face in TELL_RESULTS:
        assert talk.passes >= 8
        assert rooms.growing(server.requests) >= len(server.requests) - 1 - talk.passes


@pytest.mark.parametrize("face", ["agents filter", "pydantic-ai"])
def test_views_only_grow_between_two_passes(server: ProviderServer, face: str) -> None:
    talk = opened(face, server)
    talk.play(25)
    assert talk.passes >= 1
    assert rooms.growing(server.requests) >= len(server.requests) - 1 - talk.passes


# ---- refusals ----


@pytest.mark.parametrize("face", SEE_REFUSALS)
@crossed(shape=SHAPES, way=WAYS, in_stream=(True, False))
def test_a_refusal_is_followed_by_a_smaller_request(
    server: ProviderServer, shape: str, way: str, in_stream: bool, face: str
) -> None:
    talk = opened(face, server, shape=shape, way=way, window=30_000, summarizer=Writer())
    server.faults.add(Fault.overflows(in_stream=in_stream), when=rooms.question(6)[:30], times=1)
    talk.play(8)
    number = next(n for n, request in enumerate(server.requests) if request.fault is not None)
    refused, again = server.requests[number : number + 2]
    assert again.tokens < refused.tokens
    assert again.status == 200
    assert rooms.summaries(again) == 1


@pytest.mark.parametrize("face", SEE_REFUSALS)
def test_a_request_that_can_be_made_no_smaller_ends_in_our_error_with_the_figures(
    server: ProviderServer, face: str
) -> None:
    talk = opened(face, server, shape="chat", window=30_000)
    with pytest.raises(StillTooLong) as caught:
        asyncio.run(talk.ask("word " * 9_000))
    assert caught.value.limit == WINDOW
    assert "newest user message" in str(caught.value)


# ---- summaries ----


@crossed(way=WAYS, face=TELL_RESULTS)
def test_a_summarizer_that_fails_changes_nothing_and_is_asked_again(
    server: ProviderServer, way: str, face: str
) -> None:
    writer = Writer(fails=3)
    talk = opened(face, server, way=way, window=30_000, trigger=("tokens", 3_000), summarizer=writer)
    talk.play(24)
    whole = [request for request in server.requests if not rooms.summaries(request)]
    assert rooms.question(0) in whole[-1].messages_text
    assert len(writer.prompts) > 3
    assert rooms.summaries(server.requests[-1]) == 1
    assert rooms.refused(server) == []


@pytest.mark.parametrize("face", TELL_RESULTS)
def test_a_summary_is_never_paid_for_twice_where_the_model_fails_behind_it(server: ProviderServer, face: str) -> None:
    writer = Writer()
    talk = opened(face, server, window=30_000, trigger=("tokens", 3_000), summarizer=writer)
    server.faults.add(Fault.http_error(403, "down"), when=lambda request: bool(writer.prompts), times=3)
    turn = 0
    while True:
        try:
            talk.play(1, turn)
        except talk.forbidden:
            break
        turn += 1
    paid = len(writer.prompts)
    for _ in range(2):
        with pytest.raises(talk.forbidden):
            talk.play(1, turn)
    talk.play(1, turn)
    assert len(writer.prompts) == paid
    assert rooms.summaries(server.requests[-1]) == 1


@pytest.mark.parametrize("face", SEE_REFUSALS)
def test_the_model_itself_can_write_the_summary(server: ProviderServer, face: str) -> None:
    talk = opened(face, server, summarizer="same")
    talk.play(30)
    assert rooms.refused(server) == []
    assert talk.passes >= 1


# ---- conversations ----


@pytest.mark.parametrize("face", [pytest.param("agents filter", marks=pytest.mark.strict), "pydantic-ai"])
def test_conversations_with_one_agent_do_not_mix(server: ProviderServer, face: str) -> None:
    talk = opened(face, server, summarizer=Writer())

    async def play(name: str) -> None:
        own = talk.beside()
        for turn in range(14):
            await own.ask(f"{name} {rooms.question(turn)}")

    async def both() -> None:
        await asyncio.gather(play("alpha"), play("omega"))

    asyncio.run(both())
    assert rooms.refused(server) == []
    for request in server.requests:
        assert ("alpha" in request.messages_text) != ("omega" in request.messages_text)


@pytest.mark.parametrize("face", ["agents filter", "pydantic-ai"])
def test_an_interrupted_call_is_answered_and_the_talk_goes_on(server: ProviderServer, face: str) -> None:
    talk = opened(face, server, trigger=("tokens", 3_000))
    talk.play(12)
    talk.interrupt()
    talk.play(14, 12)
    assert rooms.refused(server) == []


@pytest.mark.parametrize("face", ["agents session", "pydantic-ai"])
def test_a_run_that_is_cancelled_leaves_a_conversation_that_goes_on(
    server: ProviderServer, face: str, tmp_path: Path
) -> None:
    talk = opened(face, server, tmp_path, trigger=("tokens", 3_000))
    talk.play(12)
    server.faults.add(Fault.slow(5), at=len(server.requests) + 1)

    async def cut() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(talk.ask(rooms.question(12)), 0.5)

    asyncio.run(cut())
    server.faults.clear()
    talk.play(10, 13)
    assert rooms.refused(server) == []
