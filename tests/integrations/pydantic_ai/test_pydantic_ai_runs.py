"""pydantic-ai's own runner with the capability in it, over HTTP against the provider on loopback."""

# ruff: noqa: E402 - imports follow the question whether the framework is installed
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from emulator import Fault, ProviderServer

pytest.importorskip("pydantic_ai")
httpx2 = pytest.importorskip("httpx2")
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelRetry,
    Tool,
    ToolDenied,
    UsageLimits,
)
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.capabilities import BatchModelRequests, ProcessHistory
from pydantic_ai.direct import model_request_stream, model_request_sync
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestTimeout
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from contextfold import Compactor, PolicyError, count_tokens
from contextfold.errors import InputError
from contextfold.integrations.pydantic_ai import Compaction, history_processor
from contextfold.integrations.pydantic_ai.models import usage_of
from integrations import rooms
from integrations.pydantic_ai.pydantic_talk import Talk
from integrations.rooms import MODEL, TOLD, WINDOW, Writer

pytestmark = pytest.mark.usefixtures("own_loop")
WAYS = ("sync", "async", "stream")


def test_other_errors_are_the_frameworks_own(server: ProviderServer) -> None:
    talk = Talk(server)
    server.faults.add(Fault.http_error(401, "no such key"))
    with pytest.raises(ModelHTTPError):
        asyncio.run(talk.ask("hello"))


@pytest.mark.strict
def test_what_a_summarizer_reads_is_bounded_and_nothing_is_left_out() -> None:
    writer = Writer(window=3_000)
    with ProviderServer(windows={MODEL: 40_000}, default_window=None, answers=rooms.answers) as wide:
        talk = Talk(wide, window=30_000, trigger=("tokens", 9_000), summarizer=writer)
        talk.play(44)
        read = "\n".join(writer.prompts)
        view = wide.requests[-1].messages_text
        assert len(writer.prompts) > 2
        assert max(count_tokens([{"role": "user", "content": prompt}]) for prompt in writer.prompts) <= 3_000
        for turn in range(44):
            assert f"[q{turn}]" in view or f"[q{turn}]" in read


def test_a_model_of_the_framework_can_write_the_summary(server: ProviderServer) -> None:
    asked: list[Any] = []

    def write(messages: list[Any], info: Any) -> ModelResponse:
        asked.append(messages)
        return ModelResponse([TextPart(rooms.SUMMARY)])

    talk = Talk(server, summarizer=FunctionModel(write))
    talk.play(30)
    assert asked
    assert rooms.summaries(server.requests[-1]) == 1


# ---- histories ----


@pytest.mark.parametrize("way", WAYS)
def test_a_stored_history_goes_on_in_another_process_without_another_summary(server: ProviderServer, way: str) -> None:
    writer = Writer()
    talk = Talk(server, way=way, summarizer=writer)
    turn = 0
    while not writer.prompts:
        talk.play(1, turn)
        turn += 1
    record = Compaction.record(talk.history)
    assert record is not None
    paid = len(writer.prompts)
    other = Talk(server, way=way, summarizer=writer)
    other.history = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(talk.history))
    before = server.requests[-1]
    other.play(1, turn)
    after = server.requests[-1]
    assert len(writer.prompts) == paid
    assert rooms.summaries(after) == 1
    assert after.messages_text.startswith(before.messages_text.rstrip())


def test_a_run_that_waits_for_a_persons_word_goes_on_from_its_stored_history() -> None:
    def look(room: int) -> str:
        if room < 0:
            raise ModelRetry("there is no such room")
        return rooms.look(room)

    async def check_it(server: ProviderServer) -> None:
        talk = Talk(server)
        agent = Agent(
            talk.agent.model,
            capabilities=[talk.compaction],
            output_type=[str, DeferredToolRequests],
            tools=[look, Tool(rooms.remove, requires_approval=True)],
        )
        history: list[Any] = []
        for turn in range(6):
            ran = await agent.run(rooms.question(turn), message_history=history)
            assert isinstance(ran.output, DeferredToolRequests)
            stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(ran.all_messages()))
            word = True if turn % 2 else ToolDenied("no")
            answers = DeferredToolResults(approvals={call.tool_call_id: word for call in ran.output.approvals})
            ran = await agent.run(message_history=stored, deferred_tool_results=answers)
            assert ran.output == "Done."
            history = ran.all_messages()
        asked = [part.content for message in history for part in message.parts if isinstance(part, UserPromptPart)]
        assert asked == [rooms.question(turn) for turn in range(6)]
        assert any(result.changed for result in talk.results)
        assert rooms.refused(server) == []
        assert rooms.largest(server) <= WINDOW

    with ProviderServer(windows={MODEL: WINDOW}, default_window=None, answers=rooms.looks_and_removes) as server:
        asyncio.run(check_it(server))


def seen_by_model(history: list[Any], **settings: Any) -> list[list[Any]]:
    views: list[list[Any]] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        views.append(messages)
        return ModelResponse([TextPart("fine")])

    agent = Agent(FunctionModel(answer), capabilities=[Compaction(**settings)])
    agent.run_sync("and now?", message_history=history)
    return views


def test_what_stays_is_the_very_object_that_it_was() -> None:
    history: list[Any] = [ModelRequest([SystemPromptPart("Be kind."), UserPromptPart("first")])]
    for turn in range(60):
        thought = ThinkingPart(f"thought {turn}", signature=f"sig-{turn}", provider_name="openai", id=f"rs_{turn}")
        history.append(ModelResponse([thought, TextPart(f"answer {turn}")], model_name="m"))
        image = BinaryContent(b"\x89PNG" + bytes([turn]) * 40, media_type="image/png")
        history.append(ModelRequest([UserPromptPart([rooms.question(turn), image])]))
    history.append(ModelResponse([TextPart("done")], model_name="m"))
    view = seen_by_model(history, window=200_000, trigger=("tokens", 10_000), keep=("messages", 12))[0]
    own = {id(message) for message in history}
    kept = [message for message in view if id(message) in own]
    assert len(view) < len(history)
    assert len(kept) > 4
    assert kept == history[-len(kept) :]
    assert view[0].parts[0] is history[0].parts[0]
    assert history[0].parts[1] in view[0].parts


def test_time_of_a_request_does_not_grow_with_the_square_of_the_requests_in_a_row() -> None:
    """Each was joined to a copy of all before it."""
    seen: list[list[Any]] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        seen.append(messages)
        return ModelResponse([TextPart("fine")])

    model = Compaction(window=1_000_000).get_wrapper_model(FunctionModel(answer))

    def seconds(count: int) -> float:
        history: list[Any] = [ModelRequest([UserPromptPart(f"{n}")], instructions=f"{n}") for n in range(count)]
        began = time.process_time()
        model_request_sync(model, history)
        took = time.process_time() - began
        assert [part.content for part in seen[-1][0].parts] == [f"{n}" for n in range(count)]
        assert seen[-1][0].instructions == f"{count - 1}"
        return took

    few, many = (min(seconds(count) for _ in range(2)) for count in (500, 8_000))
    assert many < 40 * few


def test_without_a_trigger_nothing_changes_on_the_way() -> None:
    history: list[Any] = []
    for turn in range(20):
        history.append(ModelRequest.user_text_prompt(rooms.question(turn)))
        history.append(ModelResponse([TextPart("ok")], model_name="m"))
    view = seen_by_model(history, window=100_000, trigger=None)[0]
    assert all(one is other for one, other in zip(view, history, strict=False))


# ---- the simple case ----


def test_a_limit_on_what_a_request_takes_is_held_against_the_view_and_costs_no_second_summary(
    server: ProviderServer,
) -> None:
    writer = Writer()
    talk = Talk(server, "responses", summarizer=writer)
    limits = UsageLimits(count_tokens_before_request=True, per_request_input_tokens_limit=WINDOW, request_limit=None)
    for turn in range(24):
        answered = talk.agent.run_sync(rooms.question(turn), message_history=talk.history, usage_limits=limits)
        talk.history = answered.all_messages()
    rooms.check(talk, server, 24)
    assert 1 <= talk.passes == len(writer.prompts) == len({r.compaction.id for r in talk.results if r.compaction})


def test_a_history_processor_keeps_the_history_itself_short(server: ProviderServer) -> None:
    writer = Writer()
    provider = OpenAIProvider(base_url=server.openai_url, api_key="any", http_client=rooms.client(httpx2))
    agent = Agent(
        OpenAIChatModel(MODEL, provider=provider),
        capabilities=[ProcessHistory(history_processor(window=TOLD - 1_000, summarizer=writer))],
        tools=[rooms.look],
    )
    history: list[Any] = []
    for turn in range(36):
        history = agent.run_sync(rooms.question(turn), message_history=history).all_messages()
    assert rooms.refused(server) == []
    assert len(writer.prompts) >= 2
    assert len(history) < 36
    assert {rooms.summaries(request) for request in server.requests} == {0, 1}
    last, read = server.requests[-1].messages_text, "\n".join(writer.prompts)
    for turn in range(36):
        assert f"[q{turn}]" in last or f"[q{turn}]" in read


# ---- settings ----


def test_a_setting_that_there_is_not_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="kep"):
        Compaction(window=8_000, kep=3)
    with pytest.raises(PolicyError, match="target"):
        Compaction(window=8_000, target=("fraction", 3))
    with pytest.raises(TypeError, match="window"):
        Compaction(window=8_000, compactor=Compactor(window=9_000))


def test_an_agent_that_is_written_as_a_spec_may_name_it() -> None:
    """Such as in YAML: the framework takes only classes that it knows as data there."""
    spec = {"model": "test", "capabilities": [{"Compaction": {"window": 9_000, "trigger": "fraction:0.5"}}]}
    agent = Agent.from_spec(spec, custom_capability_types=[Compaction])
    assert asyncio.run(agent.run("Hello.")).output
    schema = AgentSpec.model_json_schema_with_capabilities([Compaction])
    assert "Compaction" in str(schema)


def test_the_window_of_the_model_is_what_it_says_of_itself() -> None:
    seen: list[Any] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        return ModelResponse([TextPart("fine")])

    model = FunctionModel(answer, profile={"context_window": 12_345})

    async def save(result: Any) -> None:
        seen.append(result)

    for on_result in (seen.append, save):  # whoever saves results may be async
        Agent(model, capabilities=[Compaction(on_result=on_result)]).run_sync("hello")
    assert [result.window for result in seen] == [12_345, 12_345]


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        ({"anthropic_betas": ["context-1m-2025-08-07"]}, 1_000_000),
        ({"extra_headers": {"anthropic-beta": "context-1m-2025-08-07"}}, 1_000_000),
        ({"bedrock_additional_model_requests_fields": {"anthropic_beta": ["context-1m-2025-08-07"]}}, 1_000_000),
        ({"anthropic_betas": ["files-api-2025-04-14"]}, 200_000),
    ],
)
def test_a_run_that_asks_for_claudes_larger_window_has_it(settings: Any, window: int) -> None:
    seen: list[Any] = []
    model = _named("claude-sonnet-4-5", 200_000)
    for beside_the_run in (True, False):
        model._settings = None if beside_the_run else settings
        agent = Agent(model, capabilities=[Compaction(on_result=seen.append)])
        agent.run_sync("hello", model_settings=settings if beside_the_run else None)
    assert [result.window for result in seen] == [window, window]


def _named(name: str, window: int) -> FunctionModel:
    return FunctionModel(
        lambda messages, info: ModelResponse([TextPart("fine")]), model_name=name, profile={"context_window": window}
    )


@pytest.mark.parametrize(
    ("models", "window"),
    [
        (["gpt-4o"], 128_000),
        (["claude-sonnet-4-5", "gpt-4o"], 128_000),
        (["claude-sonnet-4-5", "claude-opus-4-6"], 1_000_000),
        (["arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1"], 1_000_000),
    ],
)
def test_what_is_asked_of_claude_says_nothing_of_the_window_of_another_model(models: list[str], window: int) -> None:
    """Settings of an agent are for whichever model it runs with, and each takes those of its own provider."""
    seen: list[Any] = []
    made = [_named(name, 128_000 if name == "gpt-4o" else 200_000) for name in models]
    model = FallbackModel(*made) if len(made) > 1 else made[0]
    settings: Any = {"anthropic_betas": ["context-1m-2025-08-07"]}
    agent = Agent(WrapperModel(model), capabilities=[Compaction(on_result=seen.append)])
    agent.run_sync("hello", model_settings=settings)
    assert [result.window for result in seen] == [window]


def test_usage_of_an_answer_in_which_the_provider_ran_its_own_tools_teaches_nothing() -> None:
    searched = [NativeToolCallPart("web_search", {"q": "a"}, "n1"), NativeToolReturnPart("web_search", [], "n1")]
    usage = RequestUsage(input_tokens=9_000, output_tokens=7)
    told = usage_of(ModelResponse([*searched, TextPart("It rains.")], usage=usage))
    assert (told.input_tokens, told.output_tokens) == (None, 7)
    assert usage_of(ModelResponse([TextPart("It rains.")], usage=usage)).input_tokens == 9_000


async def _streamed(messages: list[Any], info: Any) -> AsyncIterator[str]:
    yield "fine"


def _models_for_tests() -> dict[str, Model]:
    function = FunctionModel(lambda messages, info: ModelResponse([TextPart("fine")]), stream_function=_streamed)
    return {
        "function": function,
        "test": TestModel(custom_output_text="fine"),
        "chain of functions": FallbackModel(function, function),
        "chain of tests": FallbackModel(TestModel(custom_output_text="fine"), function),
        "wrapped": WrapperModel(FallbackModel(function, function)),
    }


@pytest.mark.parametrize("kind", _models_for_tests())
@pytest.mark.parametrize("way", ["async", "stream", "summarizer", "same"])
def test_what_a_model_for_tests_makes_up_about_its_usage_is_never_taken_for_a_prompt_read_in_part(
    kind: str, way: str
) -> None:
    model = _models_for_tests()[kind]
    history: list[Any] = []
    for turn in range(30):  # of words that such a model counts as a few, and a provider as hundreds
        prompt = ModelRequest.user_text_prompt(rooms.question(turn) + "deadbeef0123" * 100)
        history += [prompt, ModelResponse([TextPart("ok")])]
    results: list[Any] = []
    summarizer = {"summarizer": model, "same": "same"}.get(way)
    agent = Agent(model, capabilities=[Compaction(window=8_000, on_result=results.append, summarizer=summarizer)])

    async def run() -> None:
        for question in ("And now?", "And then?"):
            if way == "stream":
                async with agent.run_stream(question, message_history=history) as streamed:
                    await streamed.get_output()
                history[:] = streamed.all_messages()
            else:
                history[:] = (await agent.run(question, message_history=history)).all_messages()

    asyncio.run(run())
    events = [event.name for result in results for event in result.events]
    assert "compaction_finished" in events
    assert not {"request_overflowed", "request_resent", "summary_overflowed", "usage_distrusted"} & set(events)
    assert results[-1].calibration.observations == 0


@pytest.mark.parametrize("kind", _models_for_tests())
def test_of_a_model_for_tests_no_window_is_missed(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    for model in (_models_for_tests()[kind], Named(model_name="a-model-of-ones-own")):
        asyncio.run(Agent(model, capabilities=[Compaction()]).run("Hello."))
    said = [record.getMessage() for record in caplog.records if record.name == "contextfold.window"]
    assert len(said) == 1
    assert "a-model-of-ones-own" in said[0]


KEPT = {
    "a conversation": {"openai_conversation_id": "conv_1"},
    "the conversation of a response": {"openai_conversation_id": "auto"},
    "a response": {"openai_previous_response_id": "resp_1"},
    "the newest response, all of which is here": {"openai_previous_response_id": "auto"},
}


class Responses(OpenAIResponsesModel):
    """Tells how many messages it was asked with."""

    def __init__(self, seen: list[int], settings: Any) -> None:
        super().__init__(MODEL, provider=OpenAIProvider(api_key="any"), settings=settings)
        self._seen = seen

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        self._seen.append(len(messages))
        return ModelResponse([TextPart("Fine.")])


class Named(TestModel):
    """Stands for a real model of this name."""

    @property
    def model_id(self) -> str:
        return self.model_name

    @property
    def system(self) -> str:
        return "openai"


class Wrapped(WrapperModel):
    """One of the kind that watches each request."""


def kept_history(kept: str, provider: str, conversation: str | None = None) -> list[Any]:
    details = {"conversation_id": "conv_1"} if "conversation" in kept else None
    history: list[Any] = []
    for turn in range(60):
        history.append(ModelRequest.user_text_prompt(rooms.question(turn)))
        answer = ModelResponse([TextPart("Fine.")], provider_details=details, provider_name=provider)
        history.append(replace(answer, conversation_id=conversation))
    return history


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("of", ["the run", "the model"])
@pytest.mark.parametrize("kept", KEPT)
def test_a_conversation_that_openai_keeps_goes_through_as_it_is_and_pays_for_no_summary(
    kept: str, of: str, is_wrapped: bool
) -> None:
    settings: Any = KEPT[kept]
    seen: list[int] = []
    writer = Writer()
    model: Model = Responses(seen, settings if of == "the model" else None)
    agent = Agent(Wrapped(model) if is_wrapped else model, capabilities=[Compaction(window=TOLD, summarizer=writer)])
    given = settings if of == "the run" else None
    agent.run_sync("And now?", message_history=kept_history(kept, "openai"), model_settings=given)
    is_here = kept == "the newest response, all of which is here"
    assert bool(writer.prompts) is is_here
    assert (seen[0] < 121) is is_here


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("who", ["another model", "one of several"])
def test_settings_of_openai_leave_no_conversation_to_a_model_that_does_not_read_them(kept: str, who: str) -> None:
    """An agent's settings may be meant for another model than the one that a run names: it gets the whole list."""
    seen: list[int] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        seen.append(len(messages))
        return ModelResponse([TextPart("Fine.")])

    other: Model = FunctionModel(answer)
    model = other if who == "another model" else FallbackModel(other, Responses(seen, None))
    agent = Agent(model, capabilities=[Compaction(window=TOLD)])
    settings: Any = KEPT[kept]
    agent.run_sync("And now?", message_history=kept_history(kept, "openai"), model_settings=settings)
    assert seen[0] < 121


@pytest.mark.parametrize(
    ("named", "provider", "conversation"),
    [
        ("auto", "anthropic", None),
        ("auto", "openai", "another"),
        ("conv_1", "anthropic", None),
        ("new", "openai", None),
    ],
)
def test_an_openai_conversation_that_no_answer_is_of_gets_a_view_of_the_history(
    named: str, provider: str, conversation: str | None
) -> None:
    """The framework sends it the whole list."""
    seen: list[int] = []
    agent = Agent(Responses(seen, {"openai_conversation_id": named}), capabilities=[Compaction(window=TOLD)])
    history = kept_history("a conversation", provider, conversation)
    agent.run_sync("And now?", message_history=history, conversation_id="this one")
    assert seen[0] < 121


# ---- limits and engines around a request ----


@pytest.mark.parametrize("limit", ["request_timeout", "first_event_timeout"])
def test_whoever_opens_a_stream_may_limit_how_long_it_takes(limit: str) -> None:
    async def speak(messages: Any, info: Any) -> AsyncIterator[str]:
        for word in ("It ", "is ", "dry."):
            yield word

    async def heard(model: Model, seconds: float) -> str:
        request = [ModelRequest.user_text_prompt("How is it?")]
        async with model_request_stream(model, request, model_settings={limit: seconds}) as stream:  # type: ignore[misc]
            async for _ in stream:
                pass
            return stream.get().text or ""

    # as engines for durable runs open it, each request in a step of its own
    model = Compaction(window=TOLD).get_wrapper_model(FunctionModel(stream_function=speak))
    assert asyncio.run(heard(model, 600)) == "It is dry."
    with pytest.raises(ModelRequestTimeout):
        asyncio.run(heard(model, 0))


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_an_engine_for_durable_runs_keeps_of_a_request_has_its_record(is_stream: bool) -> None:
    async def speak(messages: Any, info: Any) -> AsyncIterator[str]:
        yield "It is dry."

    def model(writer: Writer) -> Model:
        told = FunctionModel(lambda messages, info: ModelResponse([TextPart("It is dry.")]), stream_function=speak)
        return Compaction(window=TOLD, summarizer=writer).get_wrapper_model(told)

    async def step(asked: Model, history: list[Any]) -> None:
        if not is_stream:
            history.append(await asked.request(history, None, ModelRequestParameters()))
            return
        async with asked.request_stream(history, None, ModelRequestParameters()) as stream:
            async for _ in stream:
                pass
            history.append(stream.get())

    async def played() -> None:
        history: list[Any] = []
        first, second = Writer(), Writer()
        asked = model(first)
        while not first.prompts:
            history.append(ModelRequest.user_text_prompt(rooms.question(len(history))))
            await step(asked, history)
        # the process ends; its steps are played back in another one, where no request is made and no hook is called
        history.append(ModelRequest.user_text_prompt("And now?"))
        await step(model(second), history)
        assert Compaction.record(history) is not None
        assert not second.prompts

    asyncio.run(played())


class Pausing(WrapperModel):
    """A model that pauses in each answer, as a provider does that runs a tool of its own for long."""

    def __init__(self) -> None:
        async def speak(messages: Any, info: Any) -> AsyncIterator[str]:
            yield "It is dry."

        told = FunctionModel(lambda messages, info: ModelResponse([TextPart("It is dry.")]), stream_function=speak)
        super().__init__(told)
        self.seen: list[list[Any]] = []

    def marked(self, response: Any, messages: list[Any]) -> Any:
        self.seen.append(messages)
        response.state = "complete" if isinstance(messages[-1], ModelResponse) else "suspended"
        response.provider_response_id = str(len(self.seen))
        return response

    async def request(self, messages: Any, *more: Any) -> ModelResponse:
        return self.marked(await super().request(messages, *more), messages)

    @asynccontextmanager
    async def request_stream(self, messages: Any, *more: Any) -> AsyncGenerator[Any]:
        async with super().request_stream(messages, *more) as stream:
            yield self.marked(stream, messages)


@pytest.mark.parametrize("way", ["async", "stream"])
def test_a_paused_answer_goes_on_behind_the_view_that_it_answers(way: str) -> None:
    model, writer = Pausing(), Writer()
    agent = Agent(model, capabilities=[Compaction(window=TOLD, summarizer=writer)])

    async def played() -> list[Any]:
        history: list[Any] = []
        for turn in range(40):
            if way == "stream":
                async with agent.run_stream(rooms.question(turn), message_history=history) as streamed:
                    assert await streamed.get_output() == "It is dry.It is dry."
                history = streamed.all_messages()
            else:
                history = (await agent.run(rooms.question(turn), message_history=history)).all_messages()
        return history

    history = asyncio.run(played())
    assert writer.prompts
    for asked, goes_on in zip(model.seen[::2], model.seen[1::2], strict=True):
        assert goes_on[:-1] == asked
        assert goes_on[-1].state == "suspended"

    # the process ends while an answer is paused: another one goes on, and pays for no summary of its own
    place = max(n for n in range(len(history)) if Compaction.record(history[n : n + 1]))
    paused = [*history[:place], replace(history[place], state="suspended")]
    stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(paused))
    other, second = Pausing(), Writer()
    goes_on_in = Agent(other, capabilities=[Compaction(window=TOLD, summarizer=second)])
    asyncio.run(goes_on_in.run(message_history=stored))
    assert len(other.seen[0]) < len(stored)
    assert not second.prompts


def test_a_job_that_is_looked_after_is_asked_for_as_it_is() -> None:
    model, writer = Pausing(), Writer()
    model.continuation_delay = lambda response: 0.0  # type: ignore[method-assign]
    history: list[Any] = [ModelRequest.user_text_prompt(rooms.question(turn)) for turn in range(40)]
    history.append(ModelResponse([], state="suspended"))
    asked = Compaction(window=TOLD, summarizer=writer).get_wrapper_model(model)
    asyncio.run(asked.request(history, None, ModelRequestParameters()))
    assert model.seen == [history]
    assert not writer.prompts


@pytest.mark.parametrize("is_first", [False, True])
def test_requests_that_go_out_in_batches_are_of_the_view_too(is_first: bool) -> None:
    sizes: list[int] = []

    def speak(messages: list[Any], info: Any) -> ModelResponse:
        sizes.append(len(messages))
        return ModelResponse([TextPart("It is dry.")])

    writer = Writer()
    batches = BatchModelRequests(max_requests=1, poll_interval=timedelta(microseconds=1))
    compaction = Compaction(window=TOLD, summarizer=writer)
    agent = Agent(FunctionModel(speak), capabilities=[batches, compaction] if is_first else [compaction, batches])

    async def played() -> list[Any]:
        history: list[Any] = []
        async with batches:
            for turn in range(40):
                history = (await agent.run(rooms.question(turn), message_history=history)).all_messages()
        return history

    history = asyncio.run(played())
    assert len(history) == 80
    assert Compaction.record(history) is not None
    assert max(sizes) < 70
    assert 0 < len(writer.prompts) < 10


@pytest.mark.parametrize("given", [None, "history", [{"kind": "request"}], 7], ids=str)
def test_what_is_no_history_has_no_record_and_the_error_says_so(given: Any) -> None:
    with pytest.raises(InputError, match="messages"):
        Compaction.record(given)
