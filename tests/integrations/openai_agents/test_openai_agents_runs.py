"""The Agents SDK's own runner with our filter, provider and session, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from emulator import Fault, ProviderServer

pytest.importorskip("agents")

from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelSettings,
    ModelTracing,
    OpenAIProvider,
    RunConfig,
    Runner,
    RunState,
    Session,
    function_tool,
    handoff,
    output_guardrail,
)
from agents import mcp as agents_mcp
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from agents.run_config import CallModelData, ModelInputData
from openai import AsyncOpenAI, BadRequestError

from contextfold import Compactor, PolicyError, count_tokens
from contextfold.errors import StoreError
from contextfold.integrations.openai_agents import CompactionSession, compaction
from contextfold.integrations.openai_agents.models import CompactingModel
from contextfold.store import open_store
from contextfold.store.sql import SQLStore
from contextfold.summary.message import OPEN
from effort import crossed
from integrations import rooms
from integrations.openai_agents.agents_talk import FACES, SHAPES, Talk, client
from integrations.rooms import MODEL, TOLD, WINDOW

pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:.*shutdown_asyncgens:ResourceWarning"),  # of their run_sync itself
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_conversation_that_a_new_process_takes_up_is_summarized(server: ProviderServer, shape: str) -> None:
    """Behind Chat Completions all that a model said has one id, which is none."""
    talk = Talk(server, shape)
    talk.play(40)
    ids = {item["id"] for item in talk.history if "id" in item}
    assert (ids == {"__fake_id__"}) == (shape == "chat")
    out = Compactor(window=TOLD).compact(talk.history, format="openai-responses")
    assert out.ledger.counts()["summarized"] > len(talk.history) // 2
    assert out.tokens_after < TOLD * 0.8


def test_behind_the_filter_alone_a_refusal_is_the_frameworks_own_error(server: ProviderServer) -> None:
    talk = Talk(server, window=30_000)
    server.faults.add(Fault.overflows(), at=1)
    with pytest.raises(BadRequestError):
        asyncio.run(talk.ask("hello"))


# ---- conversations ----


class Caching(OpenAIResponsesModel):
    """A model that takes a key for the provider's cache, as theirs do at OpenAI's own address."""

    def _supports_default_prompt_cache_key(self) -> bool:
        return True


def test_a_compacting_model_is_asked_for_what_the_framework_asks_its_own(server: ProviderServer) -> None:
    model: Any = compaction(window=WINDOW).model(Caching(MODEL, client(server)))
    ran = asyncio.run(Runner.run(Agent("Guide", model=model), "Hi."))
    assert ran.final_output
    assert server.requests[-1].body.get("prompt_cache_key")
    assert copy.copy(model).model == MODEL
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = model.no_such_thing


def test_a_compacting_model_is_of_the_class_of_the_one_that_it_wraps(server: ProviderServer) -> None:
    """The framework goes by it: with Chat Completions, guardrails and an id of a response do not exclude each other."""
    wrapped = OpenAIChatCompletionsModel(MODEL, client(server))
    model = compaction(window=WINDOW).model(wrapped)
    assert isinstance(model, OpenAIChatCompletionsModel)
    assert isinstance(model, CompactingModel)
    assert isinstance(copy.copy(model), CompactingModel)
    passes = output_guardrail(lambda context, agent, output: GuardrailFunctionOutput(None, tripwire_triggered=False))
    agent = Agent("Guide", model=model, output_guardrails=[passes])
    assert asyncio.run(Runner.run(agent, "Hi.", previous_response_id="resp_1")).final_output


def test_an_id_of_a_response_that_chat_completions_ignores_leaves_no_history_too_long(server: ProviderServer) -> None:
    model = compaction(window=WINDOW).model(OpenAIChatCompletionsModel(MODEL, client(server)))
    history: list[Any] = [{"role": "user", "content": f"Note {n}: " + "all is dry there. " * 100} for n in range(90)]
    assert count_tokens(history) > WINDOW
    ran = asyncio.run(Runner.run(Agent("Guide", model=model), history, previous_response_id="resp_1"))
    assert ran.final_output
    assert [request.status for request in server.requests] == [200]


@crossed(face=FACES, quick=1)
def test_a_run_that_waits_for_a_persons_word_goes_on_from_its_stored_state(face: str, tmp_path: Path) -> None:
    def look(room: int) -> str:
        if room < 0:
            raise ValueError("there is no such room")
        return rooms.look(room)

    async def check_it(server: ProviderServer) -> None:
        talk = Talk(server, face=face, folder=tmp_path)
        talk.agent.tools = [function_tool(look), function_tool(rooms.remove, needs_approval=True)]
        for turn in range(6):
            ran: Any = await Runner.run(talk.agent, talk.given(rooms.question(turn)), **talk.options)
            state = await RunState.from_json(talk.agent, json.loads(json.dumps(ran.to_state().to_json())))
            (asked,) = state.get_interruptions()
            (state.approve if turn % 2 else state.reject)(asked)
            ran = await Runner.run(talk.agent, state, **talk.options)
            assert ran.final_output == "Done."
            talk.history = ran.to_input_list()
        history = await talk.session.history() if talk.session is not None else talk.history
        results = [item["call_id"] for item in history if item.get("type") == "function_call_output"]
        assert len(results) == len(set(results)) == 3 * 6
        assert rooms.refused(server) == []
        assert rooms.largest(server) <= WINDOW
        assert count_tokens(history) > WINDOW, "it would not have fitted as it is"

    with ProviderServer(windows={MODEL: WINDOW}, default_window=None, answers=rooms.looks_and_removes) as server:
        asyncio.run(check_it(server))


def filtered(items: list[Any], made: Any, instructions: str | None = None) -> list[Any]:
    data = CallModelData(ModelInputData(items, instructions), Agent("any"), None)
    view: list[Any] = asyncio.run(made(data)).input
    return view


ITEMS: list[Any] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc="},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}', "id": "fc_1", "new": {"x": 1}},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": "data:,x"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "something_new", "id": "sn_1", "payload": [1, 2, {"deep": True}]},
    {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": "done", "a": []}]},
]
"""One item of each kind, some of which no one here has heard of."""


def test_what_stays_is_byte_for_byte_what_it_was() -> None:
    turns = [{"role": "user", "content": rooms.question(turn)} for turn in range(60)]
    answers = [{"role": "assistant", "content": f"answer {turn}"} for turn in range(60)]
    items = [*itertools.chain.from_iterable(zip(turns, answers, strict=True)), turns[0], *ITEMS]
    before = copy.deepcopy(items)
    made = compaction(window=50_000, trigger=("tokens", 5_000), keep=("messages", 10))
    view = filtered(items, made)
    assert len(view) < len(items)
    assert view[-len(ITEMS) :] == before[-len(ITEMS) :]
    assert items == before


def test_a_list_that_fits_is_the_frameworks_own() -> None:
    items = [{"role": "user", "content": "hello"}, *ITEMS]
    assert filtered(items, compaction(window=100_000)) is items


def test_a_continuation_that_the_provider_keeps_goes_through_as_it_is() -> None:
    items = [{"type": "function_call_output", "call_id": "elsewhere", "output": "x " * 40_000}]
    assert filtered(items, compaction(window=1_000)) is items


@pytest.mark.parametrize("kind", [{"type": "item_reference"}, {}], ids=["typed", "an id alone"])
def test_items_that_stand_for_others_that_the_provider_keeps_go_through_as_they_are(kind: dict[str, str]) -> None:
    """Nothing here tells what they say: summed up they would be lost, and the result of such a call had none."""
    result = {"type": "function_call_output", "call_id": "elsewhere", "output": "x " * 40_000}
    items: list[Any] = [{"role": "user", "content": "Go."}, {**kind, "id": "fc_1"}, result]
    assert filtered(items, compaction(window=1_000)) is items
    sent: list[Any] = []

    class Taking(OpenAIResponsesModel):
        async def get_response(self, system_instructions: Any, input: Any, *others: Any, **more: Any) -> Any:
            sent.append(input)

    model = compaction(window=1_000).model(Taking(MODEL, AsyncOpenAI(api_key="none")))
    asked: dict[str, Any] = {"previous_response_id": None, "conversation_id": None, "prompt": None}
    asyncio.run(model.get_response(None, items, ModelSettings(), [], None, [], ModelTracing.DISABLED, **asked))
    assert sent == [items]


def test_tokens_decide_and_not_the_number_of_items() -> None:
    small = [{"role": "user", "content": f"{n}"} for n in range(200)]
    large = [{"role": "user", "content": rooms.question(n, 600)} for n in range(8)]
    assert len(filtered(small, compaction(window=16_000))) == 200
    made = compaction(window=6_000)
    assert "contextfold" in str(filtered(large, made)) or made.result.changed


@crossed(face=("filter", "provider"), kind=("mcp", "handoffs"), quick=2)
def test_all_that_an_agent_may_call_counts(face: str, kind: str, server: ProviderServer) -> None:
    """Descriptions of half a window stand beside the items of each request."""
    mcp = pytest.importorskip("mcp")
    description = "Does what has to be done in a room. " + "plain " * 300

    class Many(agents_mcp.MCPServer):
        name = "many"  # type: ignore[assignment]
        tools: Any = None

        @property
        def cached_tools(self) -> Any:
            return self.tools

        async def list_tools(self, *_: Any) -> Any:
            schema = {"type": "object", "properties": {}}
            names = [f"tool_{number}" for number in range(8)]
            self.tools = [mcp.types.Tool(name=name, description=description, inputSchema=schema) for name in names]
            return self.tools

        connect = cleanup = call_tool = list_prompts = get_prompt = list_tools  # type: ignore[assignment]

    talk = Talk(server, face=face)
    if kind == "mcp":
        talk.agent.mcp_servers = [Many()]
    else:
        other = Agent("Other", handoff_description=description)
        talk.agent.handoffs = [
            handoff(other, tool_name_override=f"to_{number}", tool_description_override=description)
            for number in range(8)
        ]
    talk.play(10)
    assert rooms.refused(server) == []
    assert rooms.largest(server) <= WINDOW
    assert any(result.changed for result in talk.results)


def test_a_setting_that_there_is_not_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="kep"):
        compaction(window=8_000, kep=3)
    with pytest.raises(PolicyError, match="target"):
        compaction(window=8_000, target=("fraction", 3))
    with pytest.raises(TypeError, match="window"):
        compaction(window=8_000, compactor=Compactor(window=9_000))


# ---- the session ----


def stored(tmp_path: Path, **options: Any) -> CompactionSession:
    compactor = Compactor(window=4_000)
    return CompactionSession("talk", compactor, f"sqlite:///{tmp_path}/s.db", options={"background": False}, **options)


def test_the_session_is_one_of_theirs(tmp_path: Path) -> None:
    assert isinstance(stored(tmp_path), Session)


def test_items_come_back_word_for_word_in_their_order(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        items = [{"role": "user", "content": "hi"}, *ITEMS]
        await session.add_items(items)
        await session.add_items([])
        assert await session.get_items() == items
        assert await session.get_items(limit=2) == items[-2:]
        assert await session.get_items(limit=0) == []
        assert await stored(tmp_path).get_items() == items, "another process"

    asyncio.run(check_it())


def test_items_are_taken_back_one_by_one_and_more_can_be_added(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path)
        items = [{"role": "user", "content": f"item {n}"} for n in range(5)]
        await session.add_items(items)
        assert await session.pop_item() == items[4]
        assert await stored(tmp_path).get_items() == items[:4]
        assert await session.pop_item() == items[3]
        await session.add_items(items[4:])
        assert await session.get_items() == [*items[:3], items[4]]
        for _ in range(4):
            assert await session.pop_item() is not None
        assert await session.pop_item() is None
        await session.add_items(items[:1])
        assert await stored(tmp_path).get_items() == items[:1]

    asyncio.run(check_it())


def test_an_item_that_another_one_takes_back_first_is_no_empty_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking how many items there are and reading the newest of them."""

    async def check_it() -> None:
        items = [{"role": "user", "content": f"item {n}"} for n in range(3)]
        session, other = stored(tmp_path), stored(tmp_path)
        await session.add_items(items)
        current = await session.current()
        read = current.ahistory
        taken: list[Any] = []

        async def late(*places: Any) -> list[Any]:
            if not taken:
                taken.append(await other.pop_item())
            return await read(*places)

        monkeypatch.setattr(current, "ahistory", late)
        assert await session.pop_item() == items[1]
        assert taken == [items[2]]

    asyncio.run(check_it())


def test_items_that_are_added_and_taken_back_at_once_are_neither_lost_nor_taken_twice(tmp_path: Path) -> None:
    """Two requests for one conversation at the same time, in one process or in several."""

    async def check_it() -> None:
        items = [{"role": "user", "content": f"item {n}"} for n in range(12)]
        workers = [stored(tmp_path) for _ in range(4)]
        await workers[0].add_items(items[:8])
        done = await asyncio.gather(
            *(worker.pop_item() for worker in workers),
            *(worker.add_items([item]) for worker, item in zip(workers, items[8:], strict=True)),
            *(worker.get_items() for worker in workers),
        )
        taken, views = done[:4], done[8:]
        left = await stored(tmp_path).history()
        assert len(left) == 8
        assert sorted(item["content"] for item in [*taken, *left]) == sorted(item["content"] for item in items)
        assert all(len(view) >= 4 for view in views)

    asyncio.run(check_it())


def test_an_item_that_could_not_be_taken_back_is_not_taken_back_later(tmp_path: Path) -> None:
    async def check_it() -> None:
        items = [{"role": "user", "content": f"item {n}"} for n in range(3)]
        session = stored(tmp_path)
        await session.add_items(items)
        current = await session.current()
        assert current.store.acquire_lease(current.thread, "another worker", 60.0)
        for change in (session.pop_item, session.clear_session):
            with pytest.raises(StoreError, match="being summarized"):
                await change()
        current.store.release_lease(current.thread, "another worker")
        assert await stored(tmp_path).history() == items
        assert await session.pop_item() == items[2]
        assert await stored(tmp_path).history() == items[:2]

    asyncio.run(check_it())


@pytest.mark.parametrize("name", ["add_items", "pop_item", "clear_session"])
def test_a_change_that_is_cancelled_is_over_when_the_task_is(tmp_path: Path, name: str) -> None:
    """The SDK's own sessions promise it: what comes later would stand behind the items of the next run."""
    items = [{"role": "user", "content": f"item {n}"} for n in range(3)]
    after = {"add_items": items, "pop_item": items[:1], "clear_session": []}[name]

    async def check_it() -> None:
        session = stored(tmp_path)
        await session.add_items(items[:2])
        other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # the change has to wait
        given = ([items[2]],) if name == "add_items" else ()
        task = asyncio.create_task(getattr(session, name)(*given))
        await asyncio.sleep(0.1)
        asyncio.get_running_loop().call_later(0.2, other.execute, "COMMIT")
        for _ in range(2):  # whoever is in a hurry asks twice
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await stored(tmp_path).history() == after
        other.close()

    asyncio.run(check_it())


def test_what_is_no_compactor_is_refused_by_its_kind() -> None:
    """A window or an address in its place was ``'int' object has no attribute 'session'``."""
    for given in (16_000, "sqlite:///sessions.db"):
        with pytest.raises(PolicyError, match=f"not {type(given).__name__}"):
            CompactionSession("user-7", given)  # type: ignore[arg-type]


def test_a_cleared_session_is_empty_and_begins_anew(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path)
        await session.add_items([{"role": "user", "content": "hi"}] * 3)
        await session.pop_item()
        await session.clear_session()
        assert await session.get_items() == []
        assert await stored(tmp_path).history() == []
        await session.add_items([{"role": "user", "content": "again"}])
        assert await session.get_items() == [{"role": "user", "content": "again"}]

    asyncio.run(check_it())


def test_a_session_is_cleared_although_the_clock_was_put_back(tmp_path: Path) -> None:
    moments = iter([5_000.0, *[1_000.0] * 20])  # no more: it asked for ever

    async def check_it() -> None:
        store = SQLStore(f"sqlite:///{tmp_path}/s.db", clock=lambda: next(moments))
        session = CompactionSession("room", Compactor(window=4_000), store)
        await session.add_items([{"role": "user", "content": "hi"}])
        await session.clear_session()
        assert await session.history() == []

    asyncio.run(check_it())


def test_the_view_of_a_long_session_is_short_and_its_history_whole(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path)
        items = [{"role": "user", "content": rooms.question(turn)} for turn in range(80)]
        for item in items:
            await session.add_items([item])
        view = await session.get_items()
        assert len(view) < 60
        assert view[-1] == items[-1]
        assert await session.history() == items
        assert await session.get_items(limit=3) == items[-3:]

    asyncio.run(check_it())


@pytest.mark.parametrize("face", ["filter", "provider"])
def test_a_session_beside_a_filter_or_provider_fits_whatever_a_run_adds_and_has_one_summary(
    face: str, tmp_path: Path
) -> None:
    compactor = Compactor(window=WINDOW)
    session = CompactionSession("reports", compactor, f"sqlite:///{tmp_path / 'sessions.db'}")
    around = compaction(compactor=compactor)

    async def check_it(server: ProviderServer) -> None:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as client:
            sdk = OpenAIProvider(openai_client=client)
            config = (
                RunConfig(model_provider=sdk, call_model_input_filter=around)
                if face == "filter"
                else RunConfig(model_provider=around.provider(sdk))
            )
            agent = Agent(name="clerk", model=MODEL)
            for turn in range(12):
                long = int(WINDOW * (0.1, 0.3, 0.45)[turn % 3]) // 5
                told = f"Report {turn}: " + " ".join(f"row {n} is fine." for n in range(long))
                await Runner.run(agent, told, session=session, run_config=config)
        assert len(await session.history()) == 24
        session.close()

    with ProviderServer(windows={MODEL: WINDOW}) as server:
        asyncio.run(check_it(server))
    assert {request.status for request in server.requests} == {200}
    assert server.requests[-1].text.count(OPEN) == 1


def test_settings_of_a_session_may_be_a_mapping_as_for_the_frameworks_own(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path, session_settings={"limit": 2})
        items = [{"role": "user", "content": f"item {n}"} for n in range(5)]
        await session.add_items(items)
        assert await session.get_items() == items[3:]
        assert await session.get_items(limit=4) == items[1:]
        session.session_settings = {"limit": 1}  # type: ignore[assignment]  # theirs take it here, too
        assert await session.get_items() == items[4:]

    asyncio.run(check_it())
    with pytest.raises(TypeError, match="limitt"):
        stored(tmp_path, session_settings={"limitt": 1})


def test_settings_of_a_session_can_be_set_on_one_that_was_given_none(tmp_path: Path) -> None:
    session = stored(tmp_path)
    assert session.session_settings is not None  # as theirs have it
    session.session_settings.limit = 1
    items = [{"role": "user", "content": f"item {n}"} for n in range(3)]

    async def check_it() -> None:
        await session.add_items(items)
        assert await session.get_items() == items[2:]

    asyncio.run(check_it())


def test_a_closed_session_leaves_no_connection_and_opens_again(tmp_path: Path) -> None:
    async def check_it() -> None:
        session = stored(tmp_path)
        await session.add_items([{"role": "user", "content": "hi"}])
        session.close()
        session.close()
        assert not list(tmp_path.glob("s.db-*")), "the last connection takes the files beside a database with it"
        assert await session.get_items() == [{"role": "user", "content": "hi"}]
        session.close()

    asyncio.run(check_it())


def test_a_store_of_the_callers_stays_open(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/s.db")

    async def check_it() -> None:
        one, other = (CompactionSession(name, Compactor(window=4_000), store) for name in ("one", "other"))
        await one.add_items([{"role": "user", "content": "hi"}])
        one.close()
        assert list(tmp_path.glob("s.db-*"))
        assert await other.get_items() == []

    asyncio.run(check_it())
    store.close()
