"""Haystack's own agent with our compactor in its hook, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import copy
import json
import warnings
from typing import Any

import pytest
from emulator import Fault, ProviderServer

pytest.importorskip("haystack.hooks.compaction")

import openai
from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator, OpenAIChatGenerator
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, ReasoningContent, TextContent, ToolCall
from haystack.hooks.compaction import CompactionHook, SlidingWindowCompactor
from haystack.token_counters import ApproximateTokenCounter
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from haystack.utils.deserialization import deserialize_component_inplace

from contextfold import Policy, PolicyError
from contextfold.integrations.haystack import ContextfoldCompactor
from effort import crossed
from integrations import rooms
from integrations.rooms import MODEL, TOLD, WINDOW, Writer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*experimental.*", "ignore::ResourceWarning")
WAYS = ("sync", "async", "stream")


def look(room: int) -> str:
    """Looks at a room."""
    return rooms.look(room)


class Talk:
    """One conversation with an agent, turn by turn, each in a run of its own."""

    def __init__(self, server: ProviderServer, way: str = "sync", window: int = TOLD, **settings: Any) -> None:
        self.compactor = ContextfoldCompactor(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hook = CompactionHook(compactor=self.compactor, context_window=window)
        generator = OpenAIChatGenerator(
            api_key=Secret.from_token("any"),
            model=MODEL,
            api_base_url=server.openai_url,
            max_retries=0,
            streaming_callback=(lambda chunk: None) if way == "stream" else None,
        )
        self.agent = Agent(
            chat_generator=generator,
            tools=[create_tool_from_function(look)],
            hooks={"before_llm": [hook]},
        )
        self.way = way
        self.messages = [ChatMessage.from_system("Never touch the cellar.")]

    def play(self, turns: int, start: int = 0) -> None:
        async def played() -> None:
            for turn in range(start, start + turns):
                asked = [*self.messages, ChatMessage.from_user(rooms.question(turn))]
                self.messages = (await self.agent.run_async(messages=asked))["messages"]
            await self.agent.close_async()

        if self.way == "async":
            asyncio.run(played())
            return
        for turn in range(start, start + turns):
            self.messages = self.agent.run(messages=[*self.messages, ChatMessage.from_user(rooms.question(turn))])[
                "messages"
            ]


def check(server: ProviderServer, writer: Writer, turns: int) -> None:
    assert rooms.refused(server) == []
    assert rooms.largest(server) <= WINDOW
    assert {rooms.summaries(request) for request in server.requests} == {0, 1}
    last, read = server.requests[-1].messages_text, "\n".join(writer.prompts)
    for turn in range(turns):
        assert f"[q{turn}]" in last or f"[q{turn}]" in read, "nothing is lost on the way to the summarizer"
    assert all("Never touch the cellar." in request.text for request in server.requests)


@crossed(way=WAYS, quick=1)
def test_a_talk_stays_inside_the_window(server: ProviderServer, way: str) -> None:
    writer = Writer()
    Talk(server, way, summarizer=writer).play(30)
    assert len(writer.prompts) >= 2
    check(server, writer, 30)


@pytest.mark.strict
@pytest.mark.parametrize("way", ["async"])
def test_a_talk_of_many_passes_stays_inside_the_window(server: ProviderServer, way: str) -> None:
    writer, turns = Writer(), 60
    Talk(server, way, summarizer=writer).play(turns)
    assert len(writer.prompts) >= 8
    check(server, writer, turns)


@crossed(way=WAYS, quick=1)
def test_a_summarizer_that_fails_changes_nothing_and_is_asked_again(server: ProviderServer, way: str) -> None:
    writer = Writer(fails=3)
    talk = Talk(server, way, summarizer=writer)
    talk.compactor.policy = Policy(fallback=None)
    talk.play(26)
    assert len(writer.prompts) > 3
    assert rooms.summaries(server.requests[-1]) == 1
    whole = [request for request in server.requests if not rooms.summaries(request)]
    assert rooms.question(0) in whole[-1].messages_text


def test_a_summary_is_never_paid_for_twice_where_the_model_fails_behind_it(server: ProviderServer) -> None:
    writer = Writer()
    talk = Talk(server, summarizer=writer)
    turn = 0
    while True:
        server.faults.add(Fault.http_error(403, "down"), when=lambda request: bool(writer.prompts), times=1)
        try:
            talk.play(1, turn)
        except openai.PermissionDeniedError:
            assert writer.prompts
            break
        server.faults.clear()
        turn += 1
    server.faults.clear()
    paid = len(writer.prompts)
    talk.play(1, turn)
    assert len(writer.prompts) == paid
    assert rooms.summaries(server.requests[-1]) == 1


def test_a_client_that_gives_its_whole_list_at_each_turn_pays_now_and_then(server: ProviderServer) -> None:
    """As one with a database of its own. The hook is above its threshold at each turn then: every second paid."""
    writer = Writer()
    talk = Talk(server, summarizer=writer)
    whole = list(talk.messages)
    for turn in range(60):
        whole.append(ChatMessage.from_user(f"<open_files>room_{turn}.txt</open_files> {rooms.question(turn)}"))
        whole.append(talk.agent.run(messages=whole)["messages"][-1])
    assert 3 < len(writer.prompts) < 15
    check(server, writer, 60)


def test_a_chat_generator_of_the_framework_can_write_the_summary(server: ProviderServer) -> None:
    talk = Talk(server, summarizer=MockChatGenerator(responses=[rooms.SUMMARY]))
    talk.play(20)
    assert rooms.summaries(server.requests[-1]) == 1
    assert rooms.refused(server) == []


@pytest.mark.parametrize("is_async", [True, False])
def test_a_chat_generator_is_asked_warmed_up_and_closed_in_the_agents_own_way(is_async: bool) -> None:
    said: list[str] = []

    class Told(MockChatGenerator):
        def run(self, *args: Any, **given: Any) -> Any:
            said.append("run")
            return super().run(*args, **given)

        async def run_async(self, *args: Any, **given: Any) -> Any:
            said.append("run_async")
            return await super().run_async(*args, **given)

        def warm_up(self) -> None:
            said.append("warm_up")

        async def warm_up_async(self) -> None:
            said.append("warm_up_async")

        def close(self) -> None:
            said.append("close")

        async def close_async(self) -> None:
            said.append("close_async")

    hook = CompactionHook(
        compactor=ContextfoldCompactor(summarizer=Told(responses=[rooms.SUMMARY])), context_window=8_000
    )
    agent = Agent(chat_generator=MockChatGenerator(responses=["It is dry."]), hooks={"before_llm": [hook]})
    messages = history(40)

    async def played() -> None:
        await agent.run_async(messages=messages)
        await agent.close_async()

    if is_async:
        asyncio.run(played())
    else:
        agent.run(messages=messages)
        agent.close()
    ways = {"run_async", "warm_up_async", "close_async"} if is_async else {"run", "warm_up", "close"}
    assert set(said) - {"warm_up"} == ways - {"warm_up"}


def test_a_summarizer_reads_which_file_an_image_was() -> None:
    prompts: list[str] = []

    def write(prompt: str) -> str:
        prompts.append(prompt)
        return rooms.SUMMARY

    call = ToolCall("look", {"room": 1}, id="shot")
    image = ImageContent("aGVsbG8=", "image/png", meta={"file_path": "shots/cellar.png"}, validation=False)
    seen = [ChatMessage.from_assistant(tool_calls=[call]), ChatMessage.from_tool([image], origin=call)]
    messages = history(20)
    messages[5:5] = seen
    made = ContextfoldCompactor(summarizer=write).compact(messages, COUNTER.count(messages) // 3, COUNTER)
    assert made is not None
    assert "shots/cellar.png" in "".join(prompts)


# ---- the protocol ----

COUNTER = ApproximateTokenCounter()


def history(turns: int) -> list[ChatMessage]:
    messages = [ChatMessage.from_system("Be kind.", meta={"own": 1})]
    for turn in range(turns):
        call = ToolCall("look", {"room": turn}, id=f"c{turn}", extra={"signature": f"s{turn}"})
        image = ImageContent(base64_image="aGVsbG8=", mime_type="image/png", validation=False)
        file = FileContent(base64_data="aGVsbG8=", mime_type="application/pdf", filename="a.pdf", validation=False)
        messages += [
            ChatMessage.from_user(content_parts=[TextContent(rooms.question(turn)), image, file], meta={"turn": turn}),
            ChatMessage.from_assistant(
                f"answer {turn}", tool_calls=[call], reasoning=ReasoningContent(f"thought {turn}", {"sig": turn})
            ),
            ChatMessage.from_tool([TextContent("dry "), image], origin=call),
            ChatMessage.from_assistant("fine", name="guide"),
        ]
    return messages


def test_the_rules_of_their_protocol_hold() -> None:
    messages = history(30)
    before = copy.deepcopy(messages)
    target = COUNTER.count(messages) // 3
    made = ContextfoldCompactor()
    view = made.compact(messages, target, COUNTER)
    assert view is not None
    assert view is not messages
    assert messages == before
    assert COUNTER.count(view) <= target
    calls = {call.id for message in view for call in message.tool_calls}
    results = {result.origin.id for message in view for result in message.tool_call_results}
    assert calls == results
    assert made.compact(history(1), 100_000, COUNTER) is None
    assert asyncio.run(ContextfoldCompactor().compact_async(history(30), target, COUNTER)) == view


def test_a_list_that_meets_its_target_is_left_alone_and_costs_no_summary() -> None:
    """Their hook never asks then; a compactor that tries ours behind another one does."""
    asked: list[str] = []
    made = ContextfoldCompactor(summarizer=lambda prompt: asked.append(prompt) or "All is dry.")
    messages = history(30)
    assert made.compact(messages, COUNTER.count(messages), COUNTER) is None
    assert asyncio.run(made.compact_async(messages, COUNTER.count(messages) + 1, COUNTER)) is None
    assert asked == []
    assert made.compact(messages, COUNTER.count(messages) // 2, COUNTER) is not None


def test_what_stays_is_the_very_object_that_it_was() -> None:
    messages = history(30)
    view = ContextfoldCompactor(keep=("messages", 12)).compact(messages, COUNTER.count(messages) // 2, COUNTER)
    assert view is not None
    own = {id(message) for message in messages}
    assert sum(id(message) in own for message in view) >= 5
    assert view[0] is messages[0]
    assert view[-1] is messages[-1]


def one_task(steps: int) -> list[ChatMessage]:
    """A run of many steps for one question of a person."""
    calls = [ToolCall("look", {"room": n}, id=f"c{n}") for n in range(steps)]
    looked = [
        message
        for n, call in enumerate(calls)
        for message in (
            ChatMessage.from_assistant(f"step {n}", tool_calls=[call]),
            ChatMessage.from_tool(f"room {n} is dry, " * 60, origin=call, meta={"own": n}),
        )
    ]
    return [ChatMessage.from_system("Be kind."), ChatMessage.from_user("Survey the house."), *looked]


def test_what_compaction_wrote_is_marked_as_the_framework_marks_it() -> None:
    """Its own compactors take a message in the user's role without the mark for the task, and drop the real one."""
    messages = one_task(40)
    view = ContextfoldCompactor().compact(messages, COUNTER.count(messages) // 2, COUNTER)
    assert view is not None
    own = {id(message) for message in messages}
    marked = [message for message in view if "context_compaction" in message.meta]
    assert marked == [message for message in view if id(message) not in own and message.role != "assistant"]
    assert {message.meta["context_compaction"]["strategy"] for message in marked} == {"contextfold"}
    assert [message.text for message in view if message.role == "user" and message not in marked] == [
        "Survey the house."
    ]
    assert any(message.role == "user" for message in marked)
    assert all(message.meta["own"] >= 0 for message in view if message.tool_call_results)
    assert not any("context_compaction" in message.meta for message in messages)
    theirs = SlidingWindowCompactor(min_keep_steps=1).compact(view, COUNTER.count(view) // 3, COUNTER)
    assert theirs is not None
    assert any(message.text == "Survey the house." for message in theirs)


def test_what_the_frameworks_own_compactors_wrote_is_no_word_of_a_person() -> None:
    messages = history(30)
    left = SlidingWindowCompactor().compact(messages, COUNTER.count(messages) * 2 // 3, COUNTER)
    assert left is not None
    note, first = left[1], left[2]
    assert "context_compaction" in note.meta
    made = ContextfoldCompactor()
    assert made.compact(left, COUNTER.count(left) // 3, COUNTER)
    assert made.result is not None
    fates = {entry.index: entry.fate for entry in made.result.ledger}
    assert (fates[1], fates[2]) == ("summarized", "pinned"), "the first message of a person is the one behind the note"
    assert any(message is first for message in made.result.messages)


def test_a_target_below_what_must_stay_gives_the_least_that_can_be() -> None:
    messages = history(30)
    view = ContextfoldCompactor().compact(messages, 10, COUNTER)
    assert view is not None
    assert COUNTER.count(view) < COUNTER.count(messages) / 4
    assert view[0] is messages[0]


class Letters:
    """A counter that is far from any estimate."""

    def count(self, messages: list[ChatMessage], tools: Any = None) -> int:
        return sum(len(str(message.to_dict()["content"])) for message in messages)


def test_a_target_is_met_by_a_counter_that_is_far_from_any_estimate() -> None:
    """Else the view stays above what the hook asks for, and a summary is paid for at each request."""
    compactor, messages, passes = ContextfoldCompactor(), [ChatMessage.from_system("rules")], 0
    for turn in range(60):
        messages += [
            ChatMessage.from_user(f"question {turn} " * 30),
            ChatMessage.from_assistant(f"answer {turn} " * 30),
        ]
        view = compactor.compact(messages, 12_000, Letters())
        if view is not None:
            messages, passes = view, passes + 1
            assert Letters().count(messages) <= 12_000
    assert 0 < passes < 30


@pytest.mark.parametrize("target", [1, 100, 300, 600, 1_000])
def test_no_target_ends_a_run_whatever_has_to_stay(target: int) -> None:
    """What must stay may grow with the target, so the second one may be too small as well."""
    calls = {name: ToolCall("look", {}, id=name) for name in "abc"}
    messages = [
        ChatMessage.from_system("rules"),
        ChatMessage.from_user("task"),
        ChatMessage.from_assistant(tool_calls=[calls["a"], calls["b"]]),
        ChatMessage.from_tool("x" * 400, origin=calls["a"]),
        ChatMessage.from_tool("y" * 400, origin=calls["b"]),
        ChatMessage.from_assistant(tool_calls=[calls["c"]]),
        ChatMessage.from_tool("z" * 400, origin=calls["c"]),
    ]
    view = ContextfoldCompactor(window=100_000, summarizer=lambda prompt: "It is nine.").compact(
        messages, target, Letters()
    )
    assert view is None or Letters().count(view) < Letters().count(messages)


def test_the_frameworks_own_double_writes_summaries_of_json() -> None:
    """It reports words as tokens, which for JSON is so few that its prompt would look cut off."""
    call = [ToolCall("look", {}, id=f"c{n}") for n in range(8)]
    text = json.dumps({f"k{n}": n * 7 for n in range(120)}, separators=(",", ":"))
    messages = [
        ChatMessage.from_user("current task"),
        *(
            message
            for one in call
            for message in (ChatMessage.from_assistant(tool_calls=[one]), ChatMessage.from_tool(text, origin=one))
        ),
    ]
    events: list[Any] = []
    made = ContextfoldCompactor(summarizer=MockChatGenerator("Eight rooms are dry."), on_event=events.append)
    view = made.compact(messages, COUNTER.count(messages) // 3, COUNTER)
    assert "Eight rooms are dry." in str(view)
    assert not [event for event in events if event.name == "summary_overflowed"]


def test_a_later_call_updates_the_summary_also_in_another_process() -> None:
    for other in (False, True):
        made, messages = ContextfoldCompactor(), history(20)
        target = COUNTER.count(messages) // 3
        view = made.compact(messages, target, COUNTER)
        assert view is not None
        more = [*view, *history(12)[1:]]
        again = (ContextfoldCompactor() if other else made).compact(more, target, COUNTER)
        assert again is not None
        assert sum("<conversation_summary>" in (message.text or "") for message in again) == 1


def test_a_summary_among_the_instructions_tells_one_conversation_from_another() -> None:
    made = ContextfoldCompactor(
        policy=Policy(summary_role="system", summary_place="after_system", keep=("messages", 8), recent_users=0.0)
    )
    views = {}
    for name in ("Anna", "Bert"):
        said, first = history(30), ChatMessage.from_user("Look at all rooms, and write a report.")
        told = [ChatMessage.from_assistant(f"The report is for {name}, says /home/{name}/order.txt.") for _ in range(4)]
        messages = [said[0], first, *told, *said[1:]]
        view = made.compact(messages, COUNTER.count(messages) // 3, COUNTER)
        assert view is not None
        assert [message.role for message in view[:2]] == ["system", "system"]
        views[name] = view
    for name, other in (("Anna", "Bert"), ("Bert", "Anna")):
        more = [*views[name], *history(30)[1:]]
        again = made.compact(more, COUNTER.count(more) // 3, COUNTER)
        assert f"/home/{name}/order.txt" in str(again)
        assert other not in str(again)
        assert "Look at all rooms, and write a report." in [message.text for message in again or ()]


def test_an_instruction_that_says_something_else_at_each_turn_is_the_newest_one_and_the_history_is_known() -> None:
    made = ContextfoldCompactor(keep=("messages", 12))
    messages = history(30)
    view = made.compact(messages, COUNTER.count(messages) // 3, COUNTER)
    assert view is not None
    later = [ChatMessage.from_system("It is noon."), *view[1:], *history(30)[1:]]
    again = made.compact(later, COUNTER.count(later) // 3, COUNTER)
    assert again is not None
    assert made.result is not None
    assert again[0].text == "It is noon."
    assert len(list(made.result.ledger)) == 2 * len(messages) - 1


def test_settings_survive_a_stored_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    made = ContextfoldCompactor(summarizer="openai:gpt-5-mini", keep=("messages", 4), instructions="names")
    read = ContextfoldCompactor.from_dict(made.to_dict())
    assert (read.summarizer, read.policy, read.instructions) == (made.summarizer, made.policy, "names")
    generator = ContextfoldCompactor(summarizer=MockChatGenerator(responses=["s"]))
    assert isinstance(ContextfoldCompactor.from_dict(generator.to_dict()).summarizer, MockChatGenerator)


def _is_dear(message: Any) -> bool:
    return bool(message.meta.get("dear"))


def test_instructions_are_words_and_functions_of_a_policy_are_stored_by_their_names() -> None:
    allow_deserialization_module(__name__)
    said = "Keep every ticket number. Be brief."
    made = ContextfoldCompactor(
        instructions=said, on_event=_is_dear, policy=Policy(pins={"predicate": _is_dear, "tools": ["look.up"]})
    )
    read = ContextfoldCompactor.from_dict(json.loads(json.dumps(made.to_dict())))
    assert (read.instructions, read.policy, read.settings) == (said, made.policy, {"on_event": _is_dear})


def test_a_stored_hook_brings_its_compactor_back_where_the_module_is_trusted() -> None:
    hook = CompactionHook(compactor=ContextfoldCompactor(window=9_000, keep=("messages", 4)), context_window=9_000)
    stored = json.loads(json.dumps({"type": "Hooks", "init_parameters": {"hook": hook.to_dict()}}))
    allow_deserialization_module("contextfold.integrations.haystack")
    deserialize_component_inplace(stored["init_parameters"], key="hook")
    compactor = stored["init_parameters"]["hook"].compactor
    assert isinstance(compactor, ContextfoldCompactor)
    assert (compactor.window, compactor.policy) == (9_000, hook.compactor.policy)


def test_a_setting_that_there_is_not_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="kep"):
        ContextfoldCompactor(kep=3)
    with pytest.raises(TypeError, match="CompactionHook"):
        ContextfoldCompactor(trigger=3_000)
    with pytest.raises(PolicyError, match="keep"):
        ContextfoldCompactor(keep=("messages", 4), policy=Policy())
    with pytest.raises(PolicyError, match="instructions is 3: it must be a text"):
        ContextfoldCompactor(instructions=3)  # type: ignore[arg-type]
