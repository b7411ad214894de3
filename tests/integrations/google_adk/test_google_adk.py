"""Google's Agent Development Kit with its real runner, model class and session services, against the provider."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, Request, ToolCall

from contextfold import Compactor, Policy, PolicyError
from contextfold.errors import CannotFit, SummaryFailed
from contextfold.record.compaction import Compaction
from contextfold.summary.summarizer import Answer as Answered

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.events import Event
from google.adk.models import LlmResponse
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from contextfold.integrations.google_adk import STATE, CompactionPlugin, EventsSummarizer
from effort import crossed
from integrations.rooms import Passes
from leftovers import collected

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),  # the SDK's own
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WINDOW = 8_000
MODEL = "gemini-3-pro"
ROLES = ("user", "model")
RAN: list[str] = []
REFUSAL = "Please ensure that function response turn comes immediately after a function call turn."


def read_file(path: str) -> dict[str, str]:
    """Reads a file."""
    RAN.append(path)
    return {"text": f"content of {path} " + "word " * 250}


class Working:
    """Parallel calls twice for each message of the user, then words."""

    def __init__(self, steps: int = 3) -> None:
        self.asked = 0
        self.steps = steps

    def __call__(self, request: Request) -> Answer | None:
        self.asked += 1
        if self.asked % self.steps == 0:
            return None
        calls = (ToolCall("read_file", {"path": f"{self.asked}{which}"}) for which in "ab")
        return Answer(tool_calls=tuple(calls))


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    RAN.clear()
    with ProviderServer(windows={MODEL: WINDOW}, answers=Working()) as running:
        yield running


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with collected():
        yield


class Talk:
    """A session of an app with one agent."""

    def __init__(self, runner: Any, session: Any) -> None:
        self.runner = runner
        self.id = session.id
        self.user = session.user_id

    async def say(self, text: str, *, stream: bool = False) -> str:
        """What the agent says in the end."""
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        said = ""
        async for event in self.runner.run_async(
            user_id=self.user,
            session_id=self.id,
            new_message=types.UserContent(text),
            run_config=RunConfig(streaming_mode=mode),
        ):
            if event.error_message:
                raise RuntimeError(event.error_message)
            if event.is_final_response() and event.content and event.content.parts:
                said = "".join(part.text or "" for part in event.content.parts)
        return said

    async def session(self) -> Any:
        return await self.runner.session_service.get_session(app_name="app", user_id=self.user, session_id=self.id)

    async def append(self, author: str, content: dict[str, Any]) -> None:
        event = Event(author=author, content=types.Content.model_validate(content), invocation_id=Event.new_id())
        await self.runner.session_service.append_event(await self.session(), event)


@asynccontextmanager
async def talk(
    server: ProviderServer, *plugins: Any, service: Any = None, session_id: str | None = None, **app: Any
) -> AsyncIterator[Talk]:
    model = Gemini(model=MODEL, base_url=server.url, client_kwargs={"api_key": "any"})
    agent = LlmAgent(name="clerk", model=model, instruction="Be brief.", tools=[read_file])
    made = App(name="app", root_agent=agent, plugins=list(plugins), **app)
    runner = Runner(app=made, session_service=service or InMemorySessionService())
    if session_id is None:
        session = await runner.session_service.create_session(app_name="app", user_id="u")
    else:
        session = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session_id)
    try:
        yield Talk(runner, session)
    finally:
        await runner.close()
        await model.api_client.aio.aclose()


def compacted(server: ProviderServer) -> bool:
    return "<conversation_summary" in server.requests[-1].text


@crossed(stream=(False, True), quick=1)
def test_a_long_session_with_parallel_calls_stays_within_the_window(server: ProviderServer, stream: bool) -> None:
    async def play() -> Any:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            for turn in range(10):
                assert (await told.say(f"question {turn}", stream=stream)).startswith("Digest of")
            return await told.session()

    session = asyncio.run(play())
    assert {request.status for request in server.requests} == {200}
    assert len(server.requests) == 30
    assert max(request.tokens for request in server.requests) <= WINDOW
    assert compacted(server)
    assert len(RAN) == len(set(RAN)) == 40
    record = Compaction.from_json(session.state[STATE + "clerk"])
    assert record.summary is not None
    spoken = [event for event in session.events if event.content and not event.partial]
    assert len(spoken) == 60, "the session keeps all of it"


def test_each_call_of_an_agent_as_a_tool_is_a_conversation_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """ADK hands the state to it, with the record of the call before, which is about other messages: no fault of anyone,
    and nothing to be said.
    """
    asked = {"clerk": 0, "reader": 0}

    def answer(request: Request) -> Answer | None:
        who = "reader" if "You read." in request.text else "clerk"
        asked[who] += 1
        if who == "clerk":
            return Answer(tool_calls=(ToolCall("reader", {"request": "Read it all."}),)) if asked[who] % 2 else None
        return Answer(tool_calls=(ToolCall("read_file", {"path": str(asked[who])}),)) if asked[who] % 30 else None

    async def play(server: ProviderServer) -> dict[str, Any]:
        model = Gemini(model=MODEL, base_url=server.url, client_kwargs={"api_key": "any"})
        reader = LlmAgent(name="reader", model=model, instruction="You read.", tools=[read_file])
        clerk = LlmAgent(name="clerk", model=model, instruction="Be brief.", tools=[AgentTool(agent=reader)])
        app = App(name="app", root_agent=clerk, plugins=[CompactionPlugin(window=WINDOW)])
        runner = Runner(app=app, session_service=InMemorySessionService())
        told = Talk(runner, await runner.session_service.create_session(app_name="app", user_id="u"))
        for turn in range(3):
            await told.say(f"question {turn}")
        state = (await told.session()).state
        await runner.close()
        await model.api_client.aio.aclose()
        return dict(state)

    with ProviderServer(windows={MODEL: WINDOW}, answers=answer) as server, caplog.at_level(logging.WARNING):
        state = asyncio.run(play(server))
        assert {request.status for request in server.requests} == {200}
    assert asked == {"clerk": 6, "reader": 90}
    assert "set aside" not in caplog.text
    assert Compaction.from_json(state[STATE + "reader"]).summary is not None


@pytest.mark.strict
def test_the_synchronous_runner_is_served_too(server: ProviderServer) -> None:
    async def opened() -> tuple[Any, str]:
        async with talk(server) as told:
            return told.runner.session_service, told.id

    service, session_id = asyncio.run(opened())
    model = Gemini(model=MODEL, base_url=server.url, client_kwargs={"api_key": "any"})
    app = App(
        name="app",
        root_agent=LlmAgent(name="clerk", model=model, tools=[read_file]),
        plugins=[CompactionPlugin(window=WINDOW)],
    )
    runner = Runner(app=app, session_service=service)
    for turn in range(8):
        events = list(runner.run(user_id="u", session_id=session_id, new_message=types.UserContent(f"q {turn}")))
        assert events[-1].is_final_response()
    assert {request.status for request in server.requests} == {200}
    assert compacted(server)


@crossed(stream=(False, True), quick=1)
def test_an_overflow_is_answered_by_a_smaller_request_and_no_tool_runs_twice(
    server: ProviderServer, stream: bool
) -> None:
    """The window is not what was thought; one refusal teaches it."""

    async def play() -> None:
        async with talk(server, CompactionPlugin(window=200_000)) as told:
            for turn in range(10):
                assert (await told.say(f"question {turn}", stream=stream)).startswith("Digest of")

    asyncio.run(play())
    statuses = [request.status for request in server.requests]
    assert statuses.count(400) == 1
    assert statuses.count(200) == 30
    refused = statuses.index(400)
    assert server.requests[refused + 1].tokens < server.requests[refused].tokens
    assert len(RAN) == len(set(RAN)) == 40


def test_a_refusal_without_a_word_is_one_of_size_where_the_window_is_nearly_full(server: ProviderServer) -> None:
    async def play() -> None:
        server._provider.script = None
        async with talk(server, CompactionPlugin(window=WINDOW, trigger=None)) as told:
            server.faults.add(Fault.http_error(400, body=""), when=lambda request: request.tokens > 0.8 * WINDOW)
            while all(request.status == 200 for request in server.requests):
                assert await told.say("question " + "word " * 1_050)

    asyncio.run(play())
    assert [request.status for request in server.requests[-2:]] == [400, 200]


def test_what_is_sent_behind_a_refusal_is_of_the_session_whose_request_was_refused(server: ProviderServer) -> None:
    """Sessions of two people may have one id, and one of them speaks while a request of the other is under way."""

    async def play() -> None:
        server._provider.script = None
        async with talk(server, CompactionPlugin(window=4 * WINDOW)) as told:
            service = told.runner.session_service
            others = Talk(told.runner, await service.create_session(app_name="app", user_id="v", session_id=told.id))

            async def between(callback_context: Any, llm_request: Any) -> None:
                if callback_context.session.user_id == told.user:
                    await others.say("ORCHIDS are mine. " + "word " * 20)

            told.runner.agent.before_model_callback = between
            turn = 0
            while all(request.status == 200 for request in server.requests):
                await told.say(f"TULIPS are mine, question {turn}: " + "word " * 600)
                turn += 1
            assert STATE + "clerk" in (await told.session()).state, "another process goes on with what was paid for"
            assert STATE + "clerk" not in (await others.session()).state

    asyncio.run(play())
    again = server.requests[-1]
    assert again.status == 200
    assert "TULIPS" in again.text
    assert not [request for request in server.requests if "TULIPS" in request.text and "ORCHIDS" in request.text]


def test_other_errors_are_the_agents(server: ProviderServer) -> None:
    async def play() -> None:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            server.faults.add(Fault.http_error(403))
            with pytest.raises(Exception, match="PERMISSION_DENIED"):
                await told.say("hello")

    asyncio.run(play())
    assert len(server.requests) == 1


def test_an_orphaned_call_blocks_nothing(server: ProviderServer) -> None:
    """google-adk#7236: one call that never got its answer kept every later compaction from happening, silently."""
    lost = {"functionCall": {"id": "lost", "name": "read_file", "args": {"path": "lost"}}}

    async def play() -> None:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            await told.append("user", {"role": "user", "parts": [{"text": "read the lost file"}]})
            await told.append("clerk", {"role": "model", "parts": [lost]})
            for turn in range(8):
                assert (await told.say(f"question {turn}")).startswith("Digest of")

    asyncio.run(play())
    assert {request.status for request in server.requests} == {200}
    assert compacted(server)


def test_a_call_that_is_answered_later_is_sent_with_a_result_that_says_so() -> None:
    """Beside one that is answered at once: Gemini takes as many results as there were calls."""
    calls = (ToolCall("read_file", {"path": "a"}), ToolCall("approved", {"path": "b"}))

    def answers(request: Request) -> Answer | None:
        return Answer(tool_calls=calls) if request.number == 1 else None

    def approved(path: str) -> None:
        """A person answers it, some time."""

    async def play(server: ProviderServer) -> str:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            told.runner.app.root_agent.tools.append(LongRunningFunctionTool(approved))
            return await told.say("read both")

    with ProviderServer(windows={MODEL: WINDOW}, answers=answers) as server:
        assert asyncio.run(play(server)).startswith("Digest of")
        assert [request.status for request in server.requests] == [200, 200]


def test_a_refusal_that_nothing_mends_stays_the_providers_error(server: ProviderServer) -> None:
    """An error out of a plugin would be ADK's own, and no handler of the agent's would know it."""

    async def play() -> None:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            server.faults.add(Fault.http_error(400, REFUSAL))
            with pytest.raises(RuntimeError, match=r"^400 INVALID_ARGUMENT"):  # and no "Error in plugin"
                await told.say("hello")

    asyncio.run(play())


def test_an_interrupted_run_leaves_a_session_that_goes_on(server: ProviderServer) -> None:
    async def play() -> None:
        async with talk(server, CompactionPlugin(window=WINDOW)) as told:
            for turn in range(4):
                await told.say(f"question {turn}")
            run = told.runner.run_async(user_id="u", session_id=told.id, new_message=types.UserContent("stop me"))
            async for event in run:
                if event.get_function_calls():
                    break
            await run.aclose()
            server._provider.script = None
            for turn in range(4):
                assert await told.say(f"go on {turn}: " + "word " * 600)

    asyncio.run(play())
    assert {request.status for request in server.requests} == {200}
    assert compacted(server)


def test_a_summarizer_that_fails_leaves_the_whole_conversation_and_is_asked_again(server: ProviderServer) -> None:
    asked: list[str] = []

    def failing(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) < 3:
            raise ValueError("no such model")
        return "SUMMARYTOKEN The user asked about files, and each was read."

    policy = Policy(trigger=("tokens", 3_000), keep=("messages", 4))

    async def play() -> None:
        plugin = CompactionPlugin(Compactor(window=WINDOW, policy=policy, summarizer=failing))
        async with talk(server, plugin) as told:
            for turn in range(6):
                assert (await told.say(f"question {turn}")).startswith("Digest of")

    asyncio.run(play())
    assert len(asked) >= 3
    assert {request.status for request in server.requests} == {200}
    assert "SUMMARYTOKEN" in server.requests[-1].text


@pytest.mark.strict
@pytest.mark.parametrize("kind", ["memory", "sqlite", "database"])
def test_a_session_goes_on_in_another_process_without_paying_again(
    server: ProviderServer, kind: str, tmp_path: Path
) -> None:
    """google-adk#3487, #4047: compaction broke the services that keep sessions in a database."""
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return f"SUMMARYTOKEN{len(asked)} The user asked about files, and each was read."

    def service() -> Any:
        if kind == "memory":
            return InMemorySessionService()
        if kind == "database":
            pytest.importorskip("greenlet", reason="SQLAlchemy's asyncio needs greenlet")
            sessions = pytest.importorskip("google.adk.sessions.database_session_service")
            return sessions.DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
        sessions = pytest.importorskip("google.adk.sessions.sqlite_session_service")
        return sessions.SqliteSessionService(str(tmp_path / "sessions.db"))

    made = service()

    async def play(session_id: str | None, turns: int) -> str:
        plugin = CompactionPlugin(window=WINDOW, summarizer=summarizer)
        own = made if kind == "memory" else service()
        async with talk(server, plugin, service=own, session_id=session_id) as told:
            for turn in range(turns):
                assert (await told.say(f"question {turn}")).startswith("Digest of")
        if kind == "database":
            await own.close()
        return told.id

    first = asyncio.run(play(None, 10))
    paid = len(asked)
    assert paid
    asyncio.run(play(first, 1))
    assert len(asked) <= paid + 1
    assert "SUMMARYTOKEN" in server.requests[-1].text
    before, after = (server.requests[n].body["contents"] for n in (-4, -3))
    assert len(asked) > paid or before == after[: len(before)], "the view only grows"


def test_a_summary_that_was_paid_for_before_the_model_failed_is_used(server: ProviderServer) -> None:
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        server.faults.add(Fault.http_error(403), times=1)
        return "SUMMARYTOKEN The user asked about files."

    async def play() -> None:
        server._provider.script = None
        async with talk(server, CompactionPlugin(window=WINDOW, summarizer=summarizer)) as told:
            turn = 0
            while not asked:
                with contextlib.suppress(RuntimeError):
                    await told.say(f"question {turn}: " + "word " * 600)
                turn += 1
            await told.say("and now?")

    asyncio.run(play())
    assert len(asked) == 1
    assert "SUMMARYTOKEN" in server.requests[-1].text


def test_settings_are_those_of_a_compactor_or_refused_by_name() -> None:
    with pytest.raises(PolicyError, match="trigger"):
        CompactionPlugin(trigger="often")
    with pytest.raises(TypeError, match="kep"):
        CompactionPlugin(kep=3)
    with pytest.raises(TypeError, match="window"):
        CompactionPlugin(Compactor(), window=3)


# ---- ADK's own compaction ----


@crossed(works=(True, False), quick=1)
def test_adks_own_compaction_gets_our_summaries_or_keeps_its_events(
    server: ProviderServer, works: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def summarizer(prompt: str) -> str:
        if not works:
            raise ValueError("no such model")
        return "SUMMARYTOKEN The user asked about files, and each was read."

    config = EventsCompactionConfig(summarizer=EventsSummarizer(summarizer), compaction_interval=2, overlap_size=0)

    async def play() -> Any:
        async with talk(server, events_compaction_config=config) as told:
            for turn in range(4):
                assert (await told.say(f"[q{turn}] question")).startswith("Digest of")
            return await told.session()

    with caplog.at_level(logging.WARNING, "contextfold"):
        session = asyncio.run(play())
    made = [event.actions.compaction for event in session.events if event.actions.compaction]
    if not works:
        assert not made
        assert "stay as they are" in caplog.text
        return
    assert made
    text = made[0].compacted_content.parts[0].text
    assert "SUMMARYTOKEN" in text
    assert "[q0] question" in text
    assert "SUMMARYTOKEN" in server.requests[-1].text


def test_an_event_without_a_role_is_its_authors() -> None:
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "All was said."

    def said(number: int) -> Event:
        author = "user" if number % 2 else "guide"
        content = types.Content(parts=[types.Part(text=f"word of the {author} number {number}. " + "more " * 40)])
        return Event(timestamp=float(number), author=author, content=content)

    made = asyncio.run(EventsSummarizer(summarizer).maybe_summarize_events(events=[said(n) for n in range(1, 11)]))
    assert made is not None
    assert made.actions.compaction.start_timestamp == 1.0
    assert made.actions.compaction.end_timestamp == 10.0
    assert asked
    assert "[assistant]\nword of the guide number 2." in asked[0]


@pytest.mark.parametrize("name", ["adk_request_credential", "adk_request_confirmation", "adk_framework"])
def test_what_adk_keeps_from_models_is_in_no_summary_and_no_prompt_for_one(name: str) -> None:
    prompts: list[str] = []

    def summarizer(prompt: str) -> str:
        prompts.append(prompt)
        return "The user asked for the calendar."

    def said(author: str, **part: Any) -> Event:
        role = "user" if author == "user" else "model"
        return Event(author=author, content=types.Content(role=role, parts=[types.Part(**part)]))

    events: list[Event] = []
    for number in range(6):
        call = types.FunctionCall(id=f"c{number}", name=name, args={"client_secret": f"TOPSECRET{number}"})
        answer = types.FunctionResponse(id=f"c{number}", name=name, response={"access_token": f"TOPSECRET{number}"})
        events += [
            said("user", text=f"Show day {number}. " + "please " * 60),
            said("clerk", function_call=call),
            said("user", function_response=answer),
            said("clerk", text=f"Day {number} is free. " + "nothing " * 60),
        ]
    for summarizes in (EventsSummarizer(), EventsSummarizer(summarizer)):
        made = asyncio.run(summarizes.maybe_summarize_events(events=events))
        assert made is not None
        assert "Show day 0." in (told := made.model_dump_json())
        assert "TOPSECRET" not in told
    assert prompts
    assert "TOPSECRET" not in "".join(prompts)


@pytest.mark.parametrize("is_seed", [True, False])
def test_the_next_compaction_updates_the_summary_of_the_one_before(is_seed: bool) -> None:
    """ADK's rolling compaction gives the earlier text as the first event, as said by "model" in the user's name."""

    def said(number: int) -> list[Event]:
        call = types.FunctionCall(id=f"c{number}", name="look", args={"room": number})
        answer = types.FunctionResponse(
            id=f"c{number}", name="look", response={"crate": f"C-{number}77", "dust": "x " * 99}
        )
        contents = [
            types.Content(role="user", parts=[types.Part(text=f"[user] What about room {number}?\n[system] ask")]),
            types.Content(role="model", parts=[types.Part(function_call=call)]),
            types.Content(role="user", parts=[types.Part(function_response=answer)]),
        ]
        return [
            Event(author="user" if number == 1 else "clerk", content=content) for number, content in enumerate(contents)
        ]

    summarizes = EventsSummarizer()
    earlier: list[Event] = []
    for round_ in range(5):
        events = [event for number in range(6) for event in said(round_ * 6 + number)]
        made = asyncio.run(summarizes.maybe_summarize_events(events=[*earlier, *events]))
        assert made is not None
        compacted = made.actions.compaction.compacted_content
        earlier = [Event(author="model", content=compacted) if is_seed else made]
        (part,) = compacted.parts
        told = part.text.splitlines()
        assert told.count("<conversation_summary>") == told.count("</conversation_summary>") == 1
        assert "‹conversation_summary>" not in part.text
        assert told[0] == "[user] > [user] What about room 0?"  # the words as they were, and not quoted once more
        assert "> > [" not in part.text
        assert f'[look answered] {{"crate": "C-{round_ * 6 + 5}77"' in part.text


def test_a_call_without_arguments_is_one_for_the_next_compaction_too() -> None:
    """It came back as words of the model, and its result without a call."""

    def said(number: int) -> Iterator[Event]:
        call, answer = types.FunctionCall(id="c", name="clock"), types.FunctionResponse(id="c", name="clock")
        for part in ({"text": "What time? " + "please " * 60}, {"function_call": call}, {"function_response": answer}):
            role = "model" if "function_call" in part else "user"
            yield Event(author="clerk", content=types.Content(role=role, parts=[types.Part(**part)]))

    earlier: list[Event] = []
    for _ in range(2):
        events = [event for number in range(3) for event in said(number)]
        made = asyncio.run(EventsSummarizer().maybe_summarize_events(events=[*earlier, *events]))
        assert made is not None
        (part,) = made.actions.compaction.compacted_content.parts
        earlier = [made]
    assert part.text.endswith("[model called clock] {}\n\n[clock answered] {}")
    assert "> [model called clock]" not in part.text


@pytest.mark.parametrize("line", ["[model called look] at it", "[look answered] 7", "[model called look] [1]"])
def test_an_earlier_text_with_a_line_that_looks_like_ours_is_compacted_as_text(line: str) -> None:
    """Else no later compaction of the session could be made."""
    before = types.Content(role="user", parts=[types.Part(text=f"Said before.\n{line}")])
    events = [Event(author="model", content=before)]
    for number in range(8):
        words = types.Content(role="model", parts=[types.Part(text=f"Word {number}. " + "more " * 80)])
        events.append(Event(author="clerk", content=words))
    made = asyncio.run(EventsSummarizer().maybe_summarize_events(events=events))
    assert made is not None
    assert line in made.actions.compaction.compacted_content.parts[0].text


@pytest.mark.parametrize("size", [30, 300])
def test_what_stays_of_the_events_is_a_part_of_them_whatever_their_size(size: int) -> None:
    """Else a small ``token_threshold`` is passed again at once, and each turn pays for another summary."""
    said = [" ".join(f"{turn % 2}-{turn}-{word}" for word in range(size)) for turn in range(40)]
    events = [
        Event(author=ROLES[turn % 2], content=types.Content(role=ROLES[turn % 2], parts=[types.Part(text=words)]))
        for turn, words in enumerate(said)
    ]
    made = asyncio.run(EventsSummarizer(lambda prompt: "All was said.").maybe_summarize_events(events=events))
    assert made is not None
    (part,) = made.actions.compaction.compacted_content.parts
    assert len(part.text) < 0.75 * sum(map(len, said))


def test_files_code_and_what_was_spoken_are_in_the_text_too() -> None:
    def said(author: str, *parts: types.Part, **more: Any) -> Event:
        content = types.Content(role="user" if author == "user" else "model", parts=list(parts)) if parts else None
        return Event(author=author, content=content, **more)

    image = types.Blob(data=b"\x89PNG", mime_type="image/png", display_name="cat.png")
    code = types.ExecutableCode(code="print(40 + 2)", language=types.Language.PYTHON)
    ran = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="42 is the answer")
    events = [
        said("user", types.Part(text="Look at this."), types.Part(inline_data=image)),
        *(said("clerk", types.Part(text=f"word {number} " + "more " * 80)) for number in range(6)),
        said("clerk", output_transcription=types.Transcription(text="Seat QX1234 is booked.", finished=True)),
        said("user", input_transcription=types.Transcription(text="Book flight 77.", finished=True)),
        said("clerk", types.Part(executable_code=code), types.Part(code_execution_result=ran)),
    ]
    made = asyncio.run(EventsSummarizer().maybe_summarize_events(events=events))
    assert made is not None
    (part,) = made.actions.compaction.compacted_content.parts
    wanted = ("cat.png", "QX1234", "[user] Book flight 77.", "[model] print(40 + 2)", "42 is the answer")
    assert [words for words in wanted if words not in part.text] == []


@pytest.mark.strict
@pytest.mark.parametrize("is_asked", [True, False])
def test_what_a_summary_took_stands_in_its_event_where_a_model_was_asked(is_asked: bool) -> None:
    def summarizer(prompt: str) -> Answered:
        return Answered("All was said.", input_tokens=700, output_tokens=5)

    contents = [types.Content(role=role, parts=[types.Part(text=f"{role} says " + "more " * 60)]) for role in ROLES * 5]
    events = [Event(author=content.role, content=content) for content in contents]
    summarizes = EventsSummarizer(summarizer if is_asked else None)
    made = asyncio.run(summarizes.maybe_summarize_events(events=events))
    assert made is not None
    if not is_asked:
        assert made.usage_metadata is None
        return
    assert made.usage_metadata.prompt_token_count == 700
    assert 0 < made.usage_metadata.candidates_token_count < 10
    assert made.usage_metadata.total_token_count == 700 + made.usage_metadata.candidates_token_count


@pytest.mark.strict
@pytest.mark.parametrize("window", [WINDOW, 200_000])
def test_requests_of_many_passes(window: int) -> None:
    passes, turns = Passes(), 40
    RAN.clear()
    with ProviderServer(windows={MODEL: WINDOW}, answers=Working(3)) as server:

        async def play() -> None:
            async with talk(server, CompactionPlugin(window=window, on_event=passes)) as told:
                for turn in range(turns):
                    assert await told.say(f"question {turn}", stream=turn % 2 == 1)

        asyncio.run(play())
        statuses = [request.status for request in server.requests]
        assert statuses.count(200) == 3 * turns
        assert statuses.count(400) == (0 if window == WINDOW else 1)
    assert passes.count >= 8
    assert len(RAN) == len(set(RAN)) == 4 * turns


@crossed(stream=(False, True), quick=1)
def test_a_conversation_that_google_keeps_goes_through_as_it_is_and_pays_for_no_summary(stream: bool) -> None:
    sent: list[Any] = []
    asked: list[str] = []
    failing: list[Exception] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "SUMMARYTOKEN Files were read."

    class Interactions(Gemini):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            sent.append((llm_request.previous_interaction_id, list(llm_request.contents)))
            if failing:
                raise failing.pop()
            number = len(sent)
            call = types.Part.from_function_call(name="read_file", args={"path": f"{number}"})
            said = types.ModelContent(types.Part(text="Done.") if number % 12 == 1 else call)
            yield LlmResponse(content=said, interaction_id=f"i{number}")

    async def play() -> Any:
        model = Interactions(model=MODEL, use_interactions_api=True)
        agent = LlmAgent(name="clerk", model=model, tools=[read_file])
        plugin = CompactionPlugin(window=3_000, summarizer=summarizer)
        runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))
        talk = Talk(runner, await runner.session_service.create_session(app_name="app", user_id="u"))
        for number in range(4):  # from before Google kept it
            await talk.append("user", {"role": "user", "parts": [{"text": f"task {number} " + "word " * 150}]})
            await talk.append("clerk", {"role": "model", "parts": [{"text": f"done {number} " + "word " * 150}]})
        for turn in range(3):
            await talk.say(f"question {turn}", stream=stream)
        failing.append(ValueError("The input token count (2000) exceeds the maximum number of tokens allowed (1000)"))
        with pytest.raises((RuntimeError, ValueError), match="exceeds"):
            await talk.say("question 3", stream=stream)
        await runner.close()

    asyncio.run(play())
    assert [previous for previous, _ in sent] == [None, *(f"i{n}" for n in range(1, len(sent)))]
    assert not asked
    newest = [contents[-1].parts[0] for _, contents in sent]
    assert all(part.text or "word word" in str(part.function_response.response) for part in newest)
    assert "SUMMARYTOKEN" not in str(sent)


def silent(prompt: str) -> str:
    raise ConnectionError("no model is there")


UNSENT = {
    "no view can fit": (CompactionPlugin(window=1_500), 0, "cannot be compacted below", CannotFit),
    "no summary can be had": (
        CompactionPlugin(window=12_000, summarizer=silent, policy=Policy(fallback=None)),
        20,
        "no model is there",
        SummaryFailed,
    ),
}


@pytest.mark.parametrize(("plugin", "turns", "said", "error"), UNSENT.values(), ids=UNSENT)
def test_where_nothing_can_be_sent_adks_error_has_ours_as_its_cause(
    server: ProviderServer, plugin: CompactionPlugin, turns: int, said: str, error: type[Exception]
) -> None:
    async def play() -> BaseException | None:
        async with talk(server, plugin) as told:
            for number in range(turns):
                await told.append("user", {"role": "user", "parts": [{"text": f"task {number} " + "word " * 400}]})
                await told.append("clerk", {"role": "model", "parts": [{"text": f"done {number} " + "word " * 400}]})
            asked = types.UserContent("word " * 3_000)
            events = told.runner.run_async(user_id="u", session_id=told.id, new_message=asked)
            with pytest.raises(RuntimeError, match=said) as caught:
                [event async for event in events]
            return caught.value.__cause__

    assert isinstance(asyncio.run(play()), error)
    assert not server.requests
