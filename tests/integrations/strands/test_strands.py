"""Agents of Strands with contextfold as their conversation manager, over boto3 against the provider on loopback."""

from __future__ import annotations

import asyncio
import copy
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall

from contextfold import Compactor, Policy
from contextfold.errors import InputError, PolicyError
from effort import crossed
from integrations.rooms import Passes

strands = pytest.importorskip("strands")
boto3 = pytest.importorskip("boto3")

from botocore.config import Config  # noqa: E402 - after the check
from strands.agent.conversation_manager import (  # noqa: E402
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.agent.conversation_manager.compression.pin_message import pin_message, unpin_message  # noqa: E402
from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, BeforeToolCallEvent, HookProvider  # noqa: E402
from strands.models import BedrockModel, Model  # noqa: E402
from strands.session.file_session_manager import FileSessionManager  # noqa: E402
from strands.session.snapshot_session_manager import SnapshotSessionManager  # noqa: E402
from strands.storage.local_file_storage import LocalFileStorage  # noqa: E402
from strands.types.exceptions import ContextWindowOverflowException, MaxTokensReachedException  # noqa: E402

from contextfold.integrations.strands import MOST_REFUSALS, CompactionManager  # noqa: E402

WINDOW = 8_000
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
COLORS = ("sync", "async", "stream")
MODELS: list[Any] = []


@strands.tool
def read_file(path: str) -> str:
    """Reads a file."""
    return " ".join(f"value{path[-7:-3]}x{n}" for n in range(90))


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    yield
    while MODELS:
        MODELS.pop().client.close()


def answers() -> Any:
    """Two parallel calls four times, then an answer."""
    numbers = itertools.count(1)

    def answer(request: Any) -> Answer:
        number = next(numbers)
        if number % 5 == 0:
            return Answer(f"Step {number} is done.")
        return Answer("Looking.", tuple(ToolCall("read_file", {"path": f"/srv/{number}_{n}.py"}) for n in range(2)))

    return answer


def agent_of(server: ProviderServer, manager: CompactionManager, *, streaming: bool = True, **options: Any) -> Any:
    keys = {"aws_access_key_id": "dummy", "aws_secret_access_key": "dummy"}
    model = BedrockModel(
        boto_session=boto3.Session(region_name="us-east-1", **keys),
        boto_client_config=Config(retries={"total_max_attempts": 1}),
        endpoint_url=server.bedrock_url,
        model_id=MODEL,
        streaming=streaming,
    )
    MODELS.append(model)
    given = {"system_prompt": "Never touch `ledger_2019`.", "tools": [read_file], "callback_handler": None, **options}
    return strands.Agent(model=model, conversation_manager=manager, **given)


def ask(agent: Any, text: str, color: str = "sync") -> str:
    if color == "sync":
        return str(agent(text))
    if color == "async":
        return str(asyncio.run(agent.invoke_async(text)))

    async def stream() -> str:
        return "".join([event["data"] async for event in agent.stream_async(text) if "data" in event])

    return asyncio.run(stream())


def provider(**options: Any) -> ProviderServer:
    return ProviderServer(windows={MODEL: WINDOW}, answers=options.pop("answers", None) or answers(), **options)


@crossed(color=COLORS, streaming=(True, False), quick=2)
def test_an_agent_with_parallel_calls_is_never_refused(color: str, streaming: bool) -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager, streaming=streaming)
        for turn in range(5):
            assert "is done" in ask(agent, f"Question {turn}", color)
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == 25
    assert manager.compaction is not None
    assert manager.calibration.observations > 15
    assert_honest(agent, manager, 50)


def assert_honest(agent: Any, manager: CompactionManager, messages: int) -> None:
    """What was removed and what is still there make the whole conversation, and no object was changed or doubled."""
    assert len(manager.history) == messages
    counts = manager.result.ledger.counts()
    assert sum(counts.values()) >= messages - 1  # the last answer came after it
    there = {id(message) for message in agent.messages}
    left = sum(1 for message in manager.history if id(message) in there)
    assert 0 < manager.removed_message_count <= messages - left


@pytest.mark.strict
@pytest.mark.parametrize("color", ["stream"])
def test_calls_of_many_passes_stay_below_the_window(color: str) -> None:
    passes, turns = Passes(), 20
    manager = CompactionManager(window=WINDOW, on_event=passes)
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(turns):
            ask(agent, f"Question {turn}", color)
        assert {request.status for request in server.requests} == {200}
        assert len(server.requests) == 5 * turns
        assert max(request.tokens for request in server.requests) <= WINDOW
    assert passes.count >= 8
    assert_honest(agent, manager, 10 * turns)


@crossed(color=COLORS, wording=("bedrock", "bedrock-claude", "bedrock-bytes"), quick=1)
def test_after_an_overflow_the_request_is_made_smaller_once(color: str, wording: str) -> None:
    """The window is not known: the refusal teaches it."""
    manager = CompactionManager(window=100_000)
    with provider(overflow=wording) as server:
        agent = agent_of(server, manager)
        for turn in range(4):
            assert "is done" in ask(agent, f"Question {turn}", color)
        statuses = [request.status for request in server.requests]
    assert statuses.count(400) == 1
    assert statuses.count(200) == 20
    assert_honest(agent, manager, 40)


def test_a_model_that_refuses_everything_is_asked_a_few_times_and_not_without_end() -> None:
    """The framework calls again after each reduction: one of its users counted 965 refused calls in a row."""
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(2):
            ask(agent, f"Question {turn}")
        before = len(server.requests)
        server.faults.add(Fault.overflows("bedrock"))
        with pytest.raises(ContextWindowOverflowException) as caught:
            ask(agent, "And now?")
        sizes = [request.tokens for request in server.requests[before:]]
        assert 1 <= len(sizes) <= MOST_REFUSALS + 1
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) == len(sizes)
        assert any("contextfold" in note for note in caught.value.__notes__)
        server.faults.clear()
        assert "is done" in ask(agent, "Go on.")


def test_a_first_message_that_is_too_long_ends_at_once() -> None:
    """There is nothing to remove: the caller hears of it, and nothing is sent again and again."""
    with provider() as server:
        agent = agent_of(server, CompactionManager(window=100_000))
        with pytest.raises(ContextWindowOverflowException):
            ask(agent, "fact " * 9_000)
        assert len(server.requests) == 1


@strands.tool
def read_log(lines: int) -> str:
    """Reads a log."""
    return "ERROR disk_7 is full. " * lines


@crossed(color=COLORS, window=(WINDOW, 100_000), quick=1)
def test_one_result_that_is_larger_than_the_window_is_shortened_and_the_agent_goes_on(color: str, window: int) -> None:
    """The framework's own manager gives up here: there are too few messages to summarize."""
    steps = [Answer("Looking.", (ToolCall("read_log", {"lines": 3_000}),)), Answer("The disk is full.")]
    manager = CompactionManager(window=window)
    with provider(answers=steps) as server:
        agent = agent_of(server, manager, tools=[read_log])
        assert "disk is full" in ask(agent, "What happened to `disk_7`?", color)
        statuses = [request.status for request in server.requests]
        assert statuses == ([200, 200] if window == WINDOW else [200, 400, 200])
        last = server.requests[-1]
        assert last.tokens <= WINDOW
        assert "What happened to `disk_7`?" in last.text
        assert "ERROR disk_7 is full." in last.text
    assert manager.history[2]["content"][0]["toolResult"]["content"][0]["text"].count("ERROR") == 3_000


@crossed(color=COLORS, quick=1)
def test_an_interruption_leaves_a_conversation_that_goes_on(color: str) -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        ask(agent, "Question 0", color)
        server.faults.add(Fault.http_error(400, "The request was stopped."), at=8)
        with pytest.raises(Exception, match="stopped"):
            ask(agent, "Question 1", color)
        for turn in range(2, 5):
            assert ask(agent, f"Question {turn}", color)
        assert [request.status for request in server.requests].count(400) == 1
    assert manager.removed_message_count > 0


class Broken(Exception):
    """What a summarizer raised."""


@crossed(color=COLORS, quick=1)
def test_a_summarizer_that_fails_costs_no_answer(color: str) -> None:
    def summarize(prompt: str) -> str:
        raise Broken("no summary today")

    manager = CompactionManager(Compactor(window=WINDOW, summarizer=summarize))
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(4):
            assert "is done" in ask(agent, f"Question {turn}", color)
        assert {request.status for request in server.requests} == {200}
        assert not any("no summary today" in request.text for request in server.requests)


@crossed(color=COLORS, is_async=(True, False), quick=1)
def test_summarizers_of_both_colors_are_asked_in_both(color: str, is_async: bool) -> None:
    asked: list[str] = []

    def summarize(prompt: str) -> str:
        asked.append(prompt)
        return "They read many files, and all was well."

    async def asummarize(prompt: str) -> str:
        return summarize(prompt)

    manager = CompactionManager(window=WINDOW, summarizer=asummarize if is_async else summarize)
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(3):
            ask(agent, f"Question {turn}", color)
    assert asked
    assert "all was well" in str(agent.messages) or "all was well" in str(manager.compaction.summary)


def test_a_session_that_is_taken_up_again_has_everything_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    asked: list[str] = []

    def summarize(prompt: str) -> str:
        asked.append(prompt)
        return f"Summary number {len(asked)}."

    def opened(server: ProviderServer) -> tuple[Any, CompactionManager]:
        manager = CompactionManager(window=WINDOW, summarizer=summarize)
        session = FileSessionManager(session_id="one", storage_dir=str(tmp_path))
        return agent_of(server, manager, agent_id="it", session_manager=session), manager

    with provider() as server:
        agent, manager = opened(server)
        for turn in range(3):
            ask(agent, f"Question {turn}")
        paid, record = len(asked), manager.compaction
        assert paid
        again, restored = opened(server)
        assert restored.removed_message_count == 0
        assert [message["content"] for message in again.messages] == [m["content"] for m in manager.history]
        ask(again, "Question 3")
        assert {request.status for request in server.requests} == {200}
        assert record.summary.text in server.requests[15].text
        assert len(asked) - paid <= 1
        assert_honest(again, restored, 40)


def test_a_snapshot_that_is_loaded_brings_back_what_stands_behind_it() -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(4):
            ask(agent, f"Question {turn}")
        before, record, snapshot = list(manager.history), manager.compaction, agent.take_snapshot(preset="session")
        assert record is not None
        assert len(agent.messages) < len(before)
        for turn in range(4, 8):
            ask(agent, f"Question {turn}")
        agent.load_snapshot(snapshot)
        ask(agent, "And from there?")
        assert list(manager.history[: len(before)]) == before
        assert manager.compaction is not None
        assert manager.compaction.covers >= record.covers
        assert_honest(agent, manager, len(manager.history))
        assert {request.status for request in server.requests} == {200}


class Approval(HookProvider):
    """Asks a person before each call of a tool."""

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, lambda event: event.interrupt("approve", reason="May it be read?"))


@crossed(color=COLORS, quick=1)
def test_calls_that_wait_for_an_approval_get_their_results_and_no_words_that_there_are_none(
    color: str, tmp_path: Path
) -> None:
    def opened(server: ProviderServer) -> tuple[Any, CompactionManager]:
        manager = CompactionManager(window=WINDOW)
        session = SnapshotSessionManager(session_id="one", storage=LocalFileStorage(str(tmp_path)))
        return agent_of(server, manager, agent_id="it", session_manager=session, hooks=[Approval()]), manager

    asked: Any = "Question 0"
    with provider() as server:
        for _process in range(4):
            agent, manager = opened(server)
            ask(agent, asked, color)
            assert agent.messages[-1]["role"] == "assistant"
            manager.reduce_context(agent)
            assert agent.messages[-1]["role"] == "assistant"
            waiting = agent.take_snapshot(preset="session").data["interrupt_state"]["interrupts"]
            asked = [{"interruptResponse": {"interruptId": name, "response": "yes"}} for name in waiting]
        assert "never answered" not in "".join(request.text for request in server.requests)
        assert server.requests[-1].text.count("value/3_") == 2 * 90
        assert {request.status for request in server.requests} == {200}


def test_an_answer_stays_in_the_agents_list_as_it_was_given() -> None:
    manager = CompactionManager(window=WINDOW)
    with provider(answers=lambda request: Answer("It is done.\n")) as server:
        agent = agent_of(server, manager)
        for turn in range(2):
            assert agent(f"Question {turn}").message["content"] == agent.messages[-1]["content"]
        assert {request.status for request in server.requests} == {200}


class Guarded(Model):
    """Answers with a few words, and has the newest message of the user redacted while ``is_alarmed``."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_alarmed = False

    def update_config(self, **options: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *given: Any, **options: Any) -> Any:
        yield {}

    async def stream(self, messages: Any, *given: Any, **options: Any) -> Any:
        self.sent.append(str(messages))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "Noted."}}}
        yield {"contentBlockStop": {}}
        if self.is_alarmed:
            yield {"redactContent": {"redactUserContentMessage": "[taken out]"}}
        yield {"messageStop": {"stopReason": "end_turn"}}


LEFT_OVER = {"role": "user", "content": [{"text": "The other number is order-4711-blue."}]}
CALLED = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "read_file", "input": {}}}]}
READ = {
    "role": "user",
    "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "It is order-4711-blue."}]}}],
}


@pytest.mark.parametrize("before", [[], [LEFT_OVER], [CALLED, READ]], ids=["alone", "beside words", "beside a result"])
@pytest.mark.parametrize("color", COLORS)
def test_what_a_guardrail_had_taken_out_never_comes_back(color: str, before: list[Any]) -> None:
    model = Guarded()
    manager = CompactionManager(window=2_000)
    agent = strands.Agent(model=model, conversation_manager=manager, tools=[read_file], callback_handler=None)
    ask(agent, "Hello there.", color)
    agent.messages += copy.deepcopy(before)
    model.is_alarmed = True
    ask(agent, "My number is order-0815-blue.", color)
    model.is_alarmed, later = False, len(model.sent)
    for turn in range(12):
        ask(agent, f"Question {turn}: " + "tell me more of it " * 40, color)
    assert manager.compaction is not None
    for secret in ("order-0815-blue", "order-4711-blue"):
        assert secret not in str((model.sent[later:], manager.history, manager.compaction, agent.messages))
    assert "[taken out]" in model.sent[later]
    assert "Hello there." in model.sent[-1]
    assert len(manager.history) >= 28


@pytest.mark.parametrize("color", COLORS)
def test_what_is_pinned_by_strands_own_means_stays_word_for_word(color: str) -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        ask(agent, "Hello.", color)
        pin_message(agent.messages, 2)
        results = agent.messages[2]["content"]
        assert len(results) == 2
        rule = {"role": "user", "content": [{"text": "The key is under mat 17."}]}
        agent.messages.append({**rule, "metadata": {"custom": {"pinned": True}}})
        for turn in range(6):
            ask(agent, f"Question {turn}", color)
        assert manager.compaction is not None
        assert manager.compaction.covers > len(manager.history) // 2
        shown = [block for message in agent.messages for block in message["content"]]
        assert all(block in shown for block in (*results, *rule["content"]))
        assert_honest(agent, manager, len(manager.history))
        place = next(n for n, message in enumerate(agent.messages) if results[0] in message["content"])
        unpin_message(agent.messages, place)
        for turn in range(6):
            ask(agent, f"And {turn}", color)
        assert results[0] not in [block for message in agent.messages for block in message["content"]]
        assert {request.status for request in server.requests} == {200}


def _said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"text": block} if isinstance(block, str) else block for block in blocks]}


STOPPED = {"toolUse": {"toolUseId": "stopped", "name": "read_file", "input": {"path": "/srv/1.py"}}}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([_said("assistant", "Hello."), _said("user", "Hi.")], id="the assistant speaks first"),
        pytest.param([_said("user", "Look."), _said("assistant", STOPPED), _said("assistant", "So?")], id="stopped"),
        pytest.param([], id="a summary"),
    ],
)
@crossed(color=COLORS, quick=1)
def test_each_message_in_the_agents_list_has_an_id_which_stays_from_call_to_call(color: str, before: list[Any]) -> None:
    seen: dict[str, set[str]] = {}

    def look(event: Any) -> None:
        ids = [message.get("tracking_id") for message in event.agent.messages]
        assert all(ids)
        assert len(set(ids)) == len(ids)
        for message in event.agent.messages:
            seen.setdefault(str(message["content"]), set()).add(message["tracking_id"])

    policy = Policy(trigger=("messages", 7), keep=("messages", 2), first_user=False)
    with provider(answers=lambda request: Answer("It is done.")) as server:
        agent = agent_of(server, CompactionManager(window=WINDOW, policy=policy), messages=copy.deepcopy(before))
        agent.hooks.add_callback(AfterModelCallEvent, look)
        for turn in range(8):
            ask(agent, f"Question {turn}: {'word ' * 40}", color)
    answered = str(_said("assistant", "It is done.")["content"])  # in several messages
    assert {text: ids for text, ids in seen.items() if len(ids) > 1 and text != answered} == {}
    assert any("<conversation_summary>" in text for text in seen)


@pytest.mark.strict
def test_snapshots_handed_from_process_to_process_carry_one_summary_and_grow_no_further() -> None:
    with provider() as server:
        snapshot, sizes = None, []
        for _ in range(4):
            manager = CompactionManager(window=WINDOW)
            agent = agent_of(server, manager)
            if snapshot is not None:
                agent.load_snapshot(snapshot)
            for turn in range(4):
                ask(agent, f"Question {turn}")
            snapshot = agent.take_snapshot(preset="session")
            assert str(agent.messages).count("</conversation_summary>") == 1
            assert agent.messages[0]["content"][0] == {"text": "Question 0"}
            sizes.append(len(str(agent.messages[0])))
        assert {request.status for request in server.requests} == {200}
        assert max(sizes) < 2 * sizes[0]


def test_a_list_that_was_cut_or_replaced_is_read_again() -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(3):
            ask(agent, f"Question {turn}")
        del agent.messages[-2:]
        assert ask(agent, "Once more.")
        assert len(manager.history) < 40
        agent.messages[:] = [{"role": "user", "content": [{"text": "New."}]}]
        manager.apply_management(agent)
        assert (manager.compaction, manager.removed_message_count, len(manager.history)) == (None, 0, 1)
        assert {request.status for request in server.requests} == {200}


def test_management_can_be_asked_for_by_hand() -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        ask(agent, "Question 0")
        long = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": [{"text": f"note {n} " * 200}]}
            for n in range(60)
        ]
        agent.messages[:] = long
        manager.apply_management(agent)
        first = len(agent.messages)
        assert 0 < first < 60
        manager.reduce_context(agent)
        assert len(agent.messages) <= first
        assert manager.removed_message_count > 50


def test_a_double_that_only_streams_is_a_model_too() -> None:
    class Double:
        stateful = False

        async def stream(self, *arguments: Any, **named: Any) -> Any:
            for event in (
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"delta": {"text": "dry"}}},
                {"contentBlockStop": {}},
                {"messageStop": {"stopReason": "end_turn"}},
            ):
                yield event

    manager = CompactionManager(window=WINDOW)
    model: Any = Double()
    agent = strands.Agent(model=model, conversation_manager=manager, callback_handler=None)
    assert str(agent("Is it?")).strip() == "dry"
    assert len(manager.history) == 2


def test_an_agent_that_asks_for_claudes_larger_window_has_it() -> None:
    with provider() as server:
        agent = agent_of(server, manager := CompactionManager())
        windows = []
        for fields in ({}, {"anthropic_beta": ["context-1m-2025-08-07"]}):
            agent.model.update_config(model_id="anthropic.claude-haiku-4-5", additional_request_fields=fields)
            manager.apply_management(agent)
            assert manager.result is not None
            windows.append(manager.result.window)
    assert windows[0] < windows[1] == 1_000_000


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(PolicyError, match="either a compactor or window"):
        CompactionManager(Compactor(window=WINDOW), window=WINDOW)
    with pytest.raises(InputError, match=r"previous must be .* pass out\.compaction"):
        CompactionManager(window=WINDOW, previous="{}")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="same"):
        CompactionManager(window=WINDOW, summarizer="same")
    with pytest.raises(ValueError, match="Invalid conversation manager state"):
        CompactionManager(window=WINDOW).restore_from_session({"__name__": "Another", "removed_message_count": 0})


@pytest.mark.strict
def test_without_strands_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['strands'] = None\nimport contextfold.integrations.strands"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'contextfold[strands]'" in done.stderr


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_summary_that_is_prepared_outlives_the_answer_and_is_not_paid_for_again(color: str) -> None:
    asked: list[str] = []
    gate = threading.Event()

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        gate.wait(10)
        return "The user asks one question after the other."

    def is_preparing() -> bool:
        return any(thread.name == "contextfold-background" for thread in threading.enumerate())

    manager = CompactionManager(window=WINDOW, summarizer=summarizer, policy=Policy(background=True))
    with provider(answers=lambda request: Answer("Fine.")) as server:
        agent = agent_of(server, manager, tools=[])

        async def play() -> None:
            for turn in range(60):
                question = f"Question {turn}: " + f"word{turn} " * 150
                agent(question) if color == "sync" else await agent.invoke_async(question)
                while not asked and is_preparing():
                    time.sleep(0.001)
                if asked:  # the answer is there before the summary
                    gate.set()
                while is_preparing():
                    time.sleep(0.001)
                if color == "async":
                    await asyncio.sleep(0.05)
                if manager.compaction is not None:
                    return

        asyncio.run(play())
    assert manager.compaction is not None
    assert manager.compaction.trigger == "background"
    assert sum("Question 1: " in prompt for prompt in asked) == 1


@pytest.mark.parametrize(
    ("config", "settings", "window"),
    [
        ({"context_window_limit": 9_000}, {}, 9_000),
        ({"context_window_limit": 9_000}, {"window": 7_000}, 7_000),
        ({"context_window_limit": 9_000}, {"compactor": Compactor(window=7_000)}, 7_000),
        ({"context_window_limit": None}, {}, 200_000),
        ({}, {}, 200_000),
        ({"additional_request_fields": {"anthropic_beta": ["context-1m-2025-08-07"]}}, {}, 1_000_000),
    ],
)
def test_the_window_is_what_the_model_says_that_it_takes_unless_the_caller_says_it(
    config: dict[str, Any], settings: dict[str, Any], window: int
) -> None:
    manager = CompactionManager(**settings)
    with provider(answers=lambda request: Answer("Fine.")) as server:
        agent = agent_of(server, manager, tools=[])
        agent.model.update_config(**config)
        agent("Hello")
        agent("Again")
    assert manager.result is not None
    assert manager.result.window == window


def test_models_that_take_turns_each_keep_what_their_refusals_taught() -> None:
    manager = CompactionManager()
    with provider() as server:
        agent = agent_of(server, manager)
        for turn in range(30):
            agent.model.update_config(context_window_limit=(40_000, 50_000)[turn % 2])
            with suppress(
                MaxTokensReachedException
            ):  # before it is refused, a view may leave an answer next to no room
                ask(agent, f"Question {turn}")
        refused = [request for request in server.requests if request.status != 200]
    assert 1 <= len(refused) <= 2


@crossed(
    first=(
        NullConversationManager(),
        SlidingWindowConversationManager(window_size=6),
        SummarizingConversationManager(),
    ),
    quick=3,
)
def test_a_session_of_strands_own_managers_goes_on_with_all_that_was_ever_said(first: Any, tmp_path: Path) -> None:
    def opened(server: ProviderServer, manager: Any) -> Any:
        session = FileSessionManager(session_id="one", storage_dir=str(tmp_path))
        return agent_of(server, manager, agent_id="it", session_manager=session)

    def resumed() -> CompactionManager:
        return CompactionManager(window=WINDOW, trigger=("messages", 16))

    with provider(answers=lambda request: Answer("It is done.")) as server:
        before = opened(server, first)
        for turn in range(8):
            ask(before, f"Question {turn}: " + f"word{turn} " * 80)
        manager = resumed()
        agent = opened(server, manager)
        assert [message["content"][0]["text"][:11] for message in agent.messages[::2]] == [
            f"Question {turn}:" for turn in range(8)
        ]
        ask(agent, "And now?")
        assert {request.status for request in server.requests} == {200}
        assert_honest(agent, manager, 18)
        assert len(opened(server, resumed()).messages) == 18


@pytest.mark.parametrize("color", COLORS)
def test_an_agent_that_is_given_its_manager_later_is_refused_once_as_any_other(color: str) -> None:
    """Strands registers the hooks of a manager only while an agent is made."""
    manager = CompactionManager(window=100_000)
    with provider() as server:
        agent = agent_of(server, SlidingWindowConversationManager())
        agent.conversation_manager = manager
        for turn in range(12):
            assert "is done" in ask(agent, f"Question {turn}", color)
        statuses = [request.status for request in server.requests]
    assert statuses.count(400) == 1
    assert manager.calibration.observations > 10
    assert_honest(agent, manager, 120)


def test_what_was_refused_is_what_was_sent_and_no_view_that_was_made_later() -> None:
    """A hook behind ours, or a manager that was just given, may have sent a list that no view was made of."""
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        agent.messages[:] = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": [{"text": f"note {n} " * 300}]}
            for n in range(61)
        ]
        manager.reduce_context(agent, ContextWindowOverflowException("too long"))
    assert manager.result.window == WINDOW
    assert manager.result.tokens_after > WINDOW // 5


def test_refusals_of_earlier_calls_leave_the_next_call_its_own() -> None:
    manager = CompactionManager(window=WINDOW)
    with provider() as server:
        agent = agent_of(server, manager)
        ask(agent, "Question 0")
        server.faults.add(Fault.overflows("bedrock"))
        for _ in range(MOST_REFUSALS):
            with pytest.raises(ContextWindowOverflowException):
                ask(agent, "And now?")
        server.faults.clear()
        agent.messages.extend(
            {"role": "assistant" if n % 2 == 0 else "user", "content": [{"text": f"note {n} " * 50}]} for n in range(20)
        )
        server.faults.add(Fault.overflows("bedrock"), times=1)
        assert "is done" in ask(agent, "Go on.")


def test_usage_of_a_request_that_a_hook_shortened_says_nothing_about_the_view() -> None:
    """Whole ones that go out later would be taken for as short, and refused."""
    hidden = list[Any]()

    def shorten(event: Any) -> None:
        hidden[:] = event.agent.messages[:-1]
        del event.agent.messages[:-1]

    def restore(event: Any) -> None:
        event.agent.messages[:0] = hidden
        hidden.clear()

    with provider(answers=lambda request: Answer("It is done.")) as server:
        agent = agent_of(server, CompactionManager(window=WINDOW))
        agent.hooks.add_callback(BeforeModelCallEvent, lambda event: shorten(event) if turn < 12 else None)
        agent.hooks.add_callback(AfterModelCallEvent, restore)
        for turn in range(20):
            ask(agent, f"Question {turn}: " + "word " * 700)
        assert {request.status for request in server.requests} == {200}
        assert max(request.tokens for request in server.requests[:12]) < WINDOW / 4
