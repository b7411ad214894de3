"""An answer of Gemini's that takes several requests: Google's SDK asks for the rest of it by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from contextfold import Compactor, count_tokens
from contextfold.integrations.google_genai import with_compaction

genai = pytest.importorskip("google.genai")
types = genai.types

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),  # the SDK's own
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MODEL = "gemini-3-pro"
WINDOW = 11_000
ANSWERED = 16_000
"""Tokens that each request but the last one answers, and that the next one counts among its prompt."""


class Continued:
    """Takes the place of what sends a request: an answer takes three, which go on with a token."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes | None, list[Any]]] = []

    def answer(self, contents: Any, config: Any) -> Any:
        plain = [types.Content.model_validate(entry) for entry in contents]
        token = None if config is None else types.GenerateContentConfig.model_validate(config).continuation_token
        self.sent.append((token, plain))
        hop = int(token or b"0")
        is_last = hop == 2
        read = count_tokens([entry.model_dump(exclude_none=True) for entry in plain])
        candidate = types.Candidate(
            content=types.Content(role="model", parts=[types.Part(text=f"Part {hop}. ")]),
            finish_reason="STOP" if is_last else "CONTINUATION",
            continuation_token=None if is_last else str(hop + 1).encode(),
        )
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=read + hop * ANSWERED, candidates_token_count=ANSWERED
        )
        return types.GenerateContentResponse(candidates=[candidate], usage_metadata=usage)

    def chunks(self, contents: Any, config: Any) -> list[Any]:
        """The answer in two, and each tells the usage, as Gemini's do."""
        last = self.answer(contents, config)
        said = types.Content(role="model", parts=[types.Part(text="Part ")])
        first = types.GenerateContentResponse(
            candidates=[types.Candidate(content=said)], usage_metadata=last.usage_metadata
        )
        last.candidates[0].content.parts[0].text = last.candidates[0].content.parts[0].text.removeprefix("Part ")
        return [first, last]

    def whole(self, models: Any, *, model: str, contents: Any, config: Any = None) -> Any:
        return self.answer(contents, config)

    def stream(self, models: Any, *, model: str, contents: Any, config: Any = None) -> Iterator[Any]:
        yield from self.chunks(contents, config)

    async def awhole(self, models: Any, *, model: str, contents: Any, config: Any = None) -> Any:
        return self.answer(contents, config)

    async def astream(self, models: Any, *, model: str, contents: Any, config: Any = None) -> Any:
        async def chunks() -> AsyncIterator[Any]:
            for chunk in self.chunks(contents, config):
                yield chunk

        return chunks()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Continued:
    made = Continued()
    for name, method in (
        ("_generate_content", "whole"),
        ("_generate_content_stream", "stream"),
    ):
        for models, color in ((genai.models.Models, ""), (genai.models.AsyncModels, "a")):
            sends = getattr(made, color + method)
            monkeypatch.setattr(models, name, lambda self, _sends=sends, **given: _sends(self, **given))
    monkeypatch.setenv("GOOGLE_API_KEY", "any")
    return made


def told(turn: int) -> list[tuple[str, str]]:
    """A conversation of some 65 percent of the window, and the two messages that each turn adds."""
    said = [(role, f"{role} {step}: " + "alpha beta " * 40) for step in range(40) for role in ("user", "model")]
    said = [*said, ("user", "Write a very long story.")]
    return said + [one for _ in range(turn) for one in (("model", "Part 0. Part 1. Part 2. "), ("user", "Go on."))]


def contents(turn: int) -> list[Any]:
    return [types.Content(role=role, parts=[types.Part(text=text)]) for role, text in told(turn)]


# ---- one turn after the other, through each face ----


def of_the_sdk(stream: bool) -> None:
    wrapped = with_compaction(genai.Client(api_key="any"), Compactor(window=WINDOW))
    for turn in (0, 1):
        if stream:
            list(wrapped.models.generate_content_stream(model=MODEL, contents=contents(turn)))
        else:
            assert wrapped.models.generate_content(model=MODEL, contents=contents(turn)).text == told(1)[-2][1]


def of_the_async_sdk(stream: bool) -> None:
    async def talk() -> None:
        async with with_compaction(genai.Client(api_key="any").aio, Compactor(window=WINDOW)) as wrapped:
            for turn in (0, 1):
                if stream:
                    chunks = await wrapped.models.generate_content_stream(model=MODEL, contents=contents(turn))
                    async for _ in chunks:
                        pass
                else:
                    await wrapped.models.generate_content(model=MODEL, contents=contents(turn))

    asyncio.run(talk())


def of_adk(stream: bool) -> None:
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.apps.app import App
    from google.adk.events import Event
    from google.adk.runners import InMemoryRunner

    from contextfold.integrations.google_adk import CompactionPlugin

    async def talk() -> None:
        agent = LlmAgent(name="writer", model=MODEL)
        runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[CompactionPlugin(window=WINDOW)]))
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        for role, text in told(0)[:-1]:
            said = types.Content(role=role, parts=[types.Part(text=text)])
            author = "user" if role == "user" else "writer"
            await runner.session_service.append_event(session, Event(author=author, content=said))
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        for text in (told(0)[-1][1], told(1)[-1][1]):
            events = runner.run_async(
                user_id="u",
                session_id=session.id,
                new_message=types.UserContent(text),
                run_config=RunConfig(streaming_mode=mode),
            )
            async with aclosing(events):
                async for _ in events:
                    pass

    asyncio.run(talk())


def of_pydantic_ai(stream: bool) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.google import GoogleModel

    from contextfold.integrations.pydantic_ai import Compaction

    async def talk() -> None:
        agent = Agent(GoogleModel(MODEL), capabilities=[Compaction(window=WINDOW)])
        history: list[Any] = [
            ModelRequest([UserPromptPart(text)]) if role == "user" else ModelResponse([TextPart(text)])
            for role, text in told(0)[:-1]
        ]
        for text in (told(0)[-1][1], told(1)[-1][1]):
            if stream:
                async with agent.run_stream(text, message_history=history) as streamed:
                    await streamed.get_output()
                history = streamed.all_messages()
            else:
                history = (await agent.run(text, message_history=history)).all_messages()

    asyncio.run(talk())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("face", [of_the_sdk, of_the_async_sdk, of_adk, of_pydantic_ai])
def test_an_answer_that_takes_several_requests_goes_on_beside_the_same_view_and_none_of_it_counts_as_the_prompt(
    provider: Continued, face: Any, stream: bool
) -> None:
    face(stream)
    tokens, views = zip(*provider.sent, strict=True)
    assert tokens == (None, b"1", b"2") * 2
    for turn in (0, 1):
        first, *others = views[3 * turn : 3 * turn + 3]
        assert all(other == first for other in others), "what the answer began from"
        assert len(first) == len(told(turn)), "nothing is due: what was answered is no part of the prompt"
