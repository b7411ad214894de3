"""``Policy(background=...)``: a pass is prepared beside the conversation, and no request waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import hashlib
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from langchain_core.messages import messages_from_dict

from contextfold import Compaction, Compactor, Event, FormatError, Policy, PolicyError
from contextfold.calls.background import Background
from contextfold.errors import Cancelled
from contextfold.policy import SOFT, Pins
from contextfold.ports import Ports, SyncPorts
from effort import crossed

Message = dict[str, Any]
WINDOW = 6_000
TURNS = 300
BUSY = 4
"""Turns that the summarizer takes."""


def turn(number: int) -> list[Message]:
    return [
        {"role": "user", "content": f"Please look at module_{number:04}.py and tell me what it does."},
        {"role": "assistant", "content": f"module_{number:04}.py sets limit_{number} and returns rows. " * 3},
    ]


class Slow:
    """A summarizer that answers when it is let, and counts. One that is waited for fails after a minute."""

    def __init__(self) -> None:
        self.calls = self.answers = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, prompt: str) -> str:
        self.calls += 1
        if not self.gate.wait(60):
            raise RuntimeError("a request waited for the summary")
        self.answers += 1
        return "The user asks for one module after the other; all were looked at."


def compactor(summarizer: Any, background: Any = True, **options: Any) -> Compactor:
    return Compactor(window=WINDOW, summarizer=summarizer, policy=Policy(background=background), **options)


class Conversation:
    """Turns of a conversation whose summarizer takes ``BUSY`` turns, whatever these take in seconds."""

    def __init__(self) -> None:
        self.slow = Slow()
        self.told: list[str] = []
        self.subject = compactor(self.slow, on_event=lambda event: self.told.append(event.name))
        self.messages: list[Message] = [{"role": "system", "content": "You help."}]
        self.previous: Any = None
        self.passes = self.answered_meanwhile = self.since = 0

    def next_turn(self, number: int) -> None:
        self.messages = [*self.messages, *turn(number)]

    def answered(self, out: Any) -> None:
        """A view is there. While a summary is being made, the turns are counted until it may be ready."""
        self.previous = out.compaction
        self.passes += out.changed
        if self.slow.calls > self.slow.answers:
            self.answered_meanwhile += 1
            self.since += 1
        if self.since == BUSY:
            self.since = 0
            self.slow.gate.set()
        elif self.since == 0:
            self.slow.gate.clear()

    @property
    def is_at_the_gate(self) -> bool:
        """The summarizer was asked, and does not answer yet. Until then, and from the gate on, what is prepared comes
        on while the turns wait, however busy the machine is.
        """
        return self.slow.calls > self.slow.answers and not self.slow.gate.is_set()


def is_preparing() -> bool:
    return "contextfold-background" in {thread.name for thread in threading.enumerate()}


WAYS = ("compact", "call")


@pytest.mark.parametrize("way", WAYS)
def test_no_request_waits_for_a_summary_in_threads(way: str) -> None:
    talk = Conversation()

    def view() -> Any:
        if way == "compact":
            return talk.subject.compact(talk.messages, talk.previous)
        results: list[Any] = []
        talk.subject.call(lambda view: None, talk.messages, talk.previous, on_result=results.append)
        return results[-1]

    talk.slow.gate.clear()
    for number in range(TURNS):
        talk.next_turn(number)
        talk.answered(view())
        while is_preparing() and not talk.is_at_the_gate:
            time.sleep(0.001)
    assert talk.passes > 5
    assert talk.answered_meanwhile >= (BUSY - 1) * talk.passes
    assert talk.slow.calls <= talk.passes + 1  # one may be ready that was not needed any more
    assert not {"summary_failed", "fallback_used", "background_failed"} & set(talk.told)


@pytest.mark.parametrize("way", WAYS)
def test_no_request_waits_for_a_summary_in_async_code(way: str) -> None:
    async def view(talk: Conversation) -> Any:
        if way == "compact":
            return await talk.subject.acompact(talk.messages, talk.previous)
        results: list[Any] = []
        await talk.subject.acall(lambda view: None, talk.messages, talk.previous, on_result=results.append)
        return results[-1]

    async def conversation() -> Conversation:
        talk = Conversation()
        talk.slow.gate.clear()
        for number in range(TURNS):
            talk.next_turn(number)
            talk.answered(await view(talk))
            while len(asyncio.all_tasks()) > 1 and not talk.is_at_the_gate:
                await asyncio.sleep(0.001)
        return talk

    talk = asyncio.run(conversation())
    assert talk.passes > 5
    assert talk.answered_meanwhile >= (BUSY - 1) * talk.passes
    assert talk.slow.calls <= talk.passes + 1
    assert not {"summary_failed", "fallback_used", "background_failed"} & set(talk.told)


def grown(subject: Compactor, until: Callable[[], bool]) -> tuple[list[Message], Any]:
    """A conversation that grows until something has happened. What is prepared on the way is waited for."""
    messages: list[Message] = []
    out: Any = None
    for number in range(200):
        messages = [*messages, *turn(number)]
        out = subject.compact(messages, out.compaction if out else None)
        while is_preparing() and not until():
            time.sleep(0.001)
        if until():
            return messages, out
    raise AssertionError("nothing was prepared")


def test_a_summary_that_is_ready_comes_into_force_at_the_trigger_and_is_never_paid_twice() -> None:
    slow = Slow()
    told: list[str] = []
    subject = compactor(slow, on_event=lambda event: told.append(event.name))
    messages, out = grown(subject, lambda: "summary_prepared" in told)
    assert out.compaction is None
    assert out.tokens_after < subject.limits.trigger  # type: ignore[operator]
    while not out.changed:
        messages = [*messages, *turn(len(messages))]
        out = subject.compact(messages, out.compaction)
        time.sleep(0.005)
    assert out.trigger == "background"
    assert slow.calls == 1
    assert "summary_adopted" in told


def test_where_each_call_has_an_event_loop_of_its_own_one_summary_is_lost_and_no_more() -> None:
    """``asyncio.run`` for each request ends what runs beside it: each call paid for a summary, and none was used."""
    begun: list[str] = []

    async def write(prompt: str) -> str:
        if begun[-1] == "background":  # still being written when its loop ends
            await asyncio.sleep(60)
        return "The user asks for one module after the other; all were looked at."

    def look(event: Event) -> None:
        if event.name == "compaction_started":
            begun.append(event.data["trigger"])

    async def answered(previous: Compaction | None) -> Any:
        out, before = await subject.acompact(messages, previous), len(begun)
        while len(asyncio.all_tasks()) > 1 and len(begun) == before:  # until what runs beside it has begun
            await asyncio.sleep(0.001)
        return out

    subject = compactor(write, on_event=look)
    messages: list[Message] = []
    out: Any = None
    for number in range(200):
        messages = [*messages, *turn(number)]
        out = asyncio.run(answered(out.compaction if out else None))
        assert not is_preparing()
        if out.changed:
            break
    assert out.changed
    assert begun.count("background") == 1
    assert len(begun) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_that_is_prepared_sees_the_context_of_its_caller(is_async: bool) -> None:
    """A tenant, or the span that a tracer is in: on a task of the event loop, and on a thread."""
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")
    seen: list[str] = []
    told: list[str] = []

    async def write(prompt: str) -> str:
        seen.append(tenant.get())
        return "The user asks for one module after the other; all were looked at."

    async def answered(messages: list[Message]) -> Any:
        out = await subject.acompact(messages)
        await asyncio.sleep(0.01)
        return out

    subject = compactor(write, on_event=lambda event: told.append(event.name))
    token = tenant.set("acme")
    loop = asyncio.new_event_loop()
    try:
        messages: list[Message] = []
        for number in range(TURNS):
            messages = [*messages, *turn(number)]
            if is_async:
                loop.run_until_complete(answered(messages))
            else:
                subject.compact(messages)
            while is_preparing():
                time.sleep(0.001)
            if "summary_prepared" in told:
                break
    finally:
        tenant.reset(token)
        loop.close()
    assert "summary_prepared" in told
    assert set(seen) == {"acme"}


def test_a_thread_that_prepares_may_start_an_event_loop_of_its_own() -> None:
    """Also where the caller's context says that one runs, as under ``anyio.run``."""
    done: list[bool] = []
    background = Background(1)

    async def ask() -> None:
        done.append(True)

    async def work(ports: Ports) -> None:
        await ports.call(anyio.run, ask)

    async def start() -> None:
        background.start(work, SyncPorts(1))

    anyio.run(start)
    background.join(10)
    assert done


def test_a_request_waits_for_what_is_being_prepared_where_the_view_would_not_fit_otherwise() -> None:
    slow = Slow()
    slow.gate.clear()
    subject = compactor(slow)
    messages, out = grown(subject, lambda: slow.calls == 1)
    while out.tokens_after < 0.85 * WINDOW:  # past the trigger: the old view goes on
        messages = [*messages, *turn(len(messages))]
        out = subject.compact(messages, out.compaction)
        assert not out.changed
    threading.Timer(0.05, slow.gate.set).start()
    messages = [*messages, *(message for number in range(12) for message in turn(1000 + number))]
    out = subject.compact(messages, out.compaction)
    assert out.changed
    assert out.tokens_after < WINDOW


def test_a_failure_in_the_background_is_told_and_changes_nothing() -> None:
    def refuses(prompt: str) -> str:
        raise RuntimeError("no credit left")

    told: list[str] = []
    subject = Compactor(
        window=WINDOW,
        summarizer=refuses,
        policy=Policy(background=True, on_failure="raise"),
        on_event=lambda event: told.append(event.name),
    )
    _, out = grown(subject, lambda: "background_failed" in told)
    assert out.compaction is None


def test_a_pass_that_was_of_no_use_in_the_background_is_no_failure_of_the_summarizer() -> None:
    """What must stay left nothing to summarize. Then an output filled the window, and the built-in summary stood in
    for a model that had never been asked.
    """

    def log(name: str, lines: int) -> str:
        return "\n".join(f"{name} {number} says {number * 7} at place_{number}" for number in range(lines))

    slow, told = Slow(), list[str]()
    subject = compactor(slow, on_event=lambda event: told.append(event.name))
    messages = [{"role": "user", "content": log("task", 380)}, *turn(0)[::-1]]
    assert subject.compact(messages).tokens_after > SOFT * 0.8 * WINDOW
    while "skipped" not in told or is_preparing():
        time.sleep(0.005)
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    out = subject.compact([*messages, {"role": "tool", "tool_call_id": "c", "content": log("line", 170)}])
    assert out.changed
    assert "fallback_used" not in told
    assert slow.calls == 1
    assert out.summary.text == "The user asks for one module after the other; all were looked at."


def paid_for(policy: Policy, turns: int = 40) -> tuple[int, int, int]:
    """Summaries that were asked for and that came into force, and the longest view, where each turn waits for what is
    prepared.
    """
    slow, messages, out = Slow(), list[Message](), None
    subject = Compactor(window=100_000, summarizer=slow, policy=policy)
    made = longest = 0
    for number in range(turns):
        messages = [*messages, *turn(number)]
        out = subject.compact(messages, out and out.compaction)
        made += out.changed
        longest = max(longest, len(out.messages))
        while is_preparing():
            time.sleep(0.001)
    return slow.calls, made, longest


def test_a_trigger_that_counts_messages_is_prepared_for_as_any_other() -> None:
    """The passes that were prepared wanted fewer tokens and not fewer messages, so nothing ever left the view."""
    calls, made, longest = paid_for(Policy(background=True, trigger=("messages", 40)))
    assert 1 <= made <= calls <= made + 1
    assert longest <= 40


def test_where_a_trigger_is_below_what_must_be_kept_each_summary_that_is_prepared_is_used() -> None:
    """There were three for each that came into force: what was prepared still fired the trigger, and was not taken."""
    keep = {"keep": ("messages", 20), "trigger": ("tokens", 700)}
    calls, made, _ = paid_for(Policy(background=True, **keep))
    assert 3 <= made <= calls <= made + 1


def test_no_summary_is_prepared_that_would_free_nothing() -> None:
    slow, told = Slow(), list[str]()
    subject = compactor(slow, on_event=lambda event: told.append(event.name))
    task = "\n".join(f"task {number} says {number * 7} at place_{number}" for number in range(345))
    assert subject.compact([{"role": "user", "content": task}, *turn(0)[::-1]]).tokens_after > SOFT * 0.8 * WINDOW
    while is_preparing():
        time.sleep(0.001)
    assert "skipped" in told
    assert slow.calls == 0


def test_where_no_summary_can_be_shared_that_is_told_once_and_not_met_again_in_each_turn() -> None:
    told: list[str] = []
    lost: list[Any] = []
    tries = 0

    async def once(base: Any, make: Any) -> Any:
        nonlocal tries
        if make is not None:
            tries += 1
            raise ConnectionError("the shared store is away")

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
        subject = compactor(Slow(), on_event=lambda event: told.append(event.name))
        messages: list[Message] = []
        more = 3
        while more:
            messages = [*messages, *turn(len(messages))]
            await subject.acall(lambda view: None, messages, once=once)
            await asyncio.sleep(0.01)
            more -= tries > 0
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(talk())
    assert (tries, told.count("background_failed"), lost) == (1, 1, [])


def waits_for_a_summary(subject: Compactor, slow: Slow) -> tuple[list[Message], Any]:
    """A conversation whose next call waits for the summary that is being prepared."""
    slow.gate.clear()
    messages, out = grown(subject, lambda: slow.calls == 1)
    return [*messages, *(message for number in range(27) for message in turn(1000 + number))], out


def test_a_call_that_waits_for_a_summary_ends_when_its_token_is_set_and_the_summary_serves_the_next() -> None:
    slow = Slow()
    subject = compactor(slow)
    messages, out = waits_for_a_summary(subject, slow)
    token = threading.Event()
    threading.Timer(0.1, token.set).start()
    with pytest.raises(Cancelled):
        subject.compact(messages, out.compaction, cancel=token)
    assert slow.answers == 0
    slow.gate.set()
    assert subject.compact(messages, out.compaction).changed
    assert slow.calls == 1


@pytest.mark.parametrize("where", ["on a thread", "on a task"])
@pytest.mark.parametrize("way", ["token", "scope", "task"])
def test_async_code_that_waits_for_a_summary_hears_each_way_to_be_cancelled(way: str, where: str) -> None:
    async def talk() -> None:
        slow = Slow()
        subject = compactor(slow)
        if where == "on a thread":
            messages, out = await asyncio.to_thread(waits_for_a_summary, subject, slow)
        else:
            slow.gate.clear()
            messages, out = [], None
            while not slow.calls:
                messages = [*messages, *turn(len(messages))]
                out = await subject.acompact(messages)
                while len(asyncio.all_tasks()) > 1 and not slow.calls:
                    await asyncio.sleep(0.001)
            messages = [*messages, *(message for number in range(27) for message in turn(1000 + number))]
        token = threading.Event()
        call = subject.acompact(messages, out.compaction, cancel=token)
        if way == "scope":
            with anyio.move_on_after(0.1) as scope:
                await call
            assert scope.cancelled_caught
        else:
            task = asyncio.create_task(call)
            asyncio.get_running_loop().call_later(0.1, token.set if way == "token" else task.cancel)
            with pytest.raises((Cancelled, asyncio.CancelledError)):
                await task
        assert slow.answers == 0
        slow.gate.set()
        assert (await subject.acompact(messages, out.compaction)).changed
        assert slow.calls == 1

    asyncio.run(talk())


def test_what_is_prepared_is_set_aside_where_the_messages_were_changed() -> None:
    told: list[str] = []
    slow = Slow()
    subject = compactor(slow, on_event=lambda event: told.append(event.name))
    messages, out = grown(subject, lambda: "summary_prepared" in told)
    other = [{"role": "user", "content": "A conversation about something else."}, *messages[1:]]
    other += [message for number in range(40) for message in turn(500 + number)]
    out = subject.compact(other)
    assert out.changed
    assert "summary_adopted" not in told


def test_what_is_prepared_is_of_the_messages_as_they_were_whatever_comes_meanwhile() -> None:
    """What the conversation says while the summarizer writes is none of what it has left out."""

    def adopted(*, meanwhile: bool) -> tuple[int, str]:
        slow, told = Slow(), list[str]()
        slow.gate.clear()
        subject = compactor(slow, on_event=lambda event: told.append(event.name))
        messages, out = grown(subject, lambda: slow.calls == 1)
        again = [message for number in range(8) for message in turn(number)]  # all that evidence would quote
        if meanwhile:
            messages = [*messages, *again]
            out = subject.compact(messages, out.compaction)
        slow.gate.set()
        while "summary_prepared" not in told:
            time.sleep(0.001)
        messages = messages if meanwhile else [*messages, *again]
        while not out.changed:
            messages = [*messages, *turn(len(messages))]
            out = subject.compact(messages, out.compaction)
        assert out.trigger == "background"
        return out.compaction.covers, out.compaction.summary.evidence

    covers, evidence = adopted(meanwhile=False)
    assert "limit_" in evidence
    assert adopted(meanwhile=True) == (covers, evidence)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, 2, "often"])
def test_a_share_that_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(PolicyError, match="background"):
        Policy(background=value)


def test_what_a_hook_pins_for_one_call_makes_no_summary_of_another() -> None:
    """Behind the pass the model failed, so what was paid for would be taken by the next call."""
    slow, messages = Slow(), [message for number in range(120) for message in turn(number)]
    subject, kept = Compactor(window=WINDOW, summarizer=slow), turn(3)[1]
    pins = Pins(predicate=lambda message: message.text == kept["content"])
    views = list[list[Any]]()

    def away(view: list[Any]) -> None:
        views.append(view)
        raise ValueError("the model is away")

    for before, calls in ((lambda proposal: pins, 1), (None, 2), (None, 2), (lambda proposal: pins, 3)):
        with pytest.raises(ValueError, match="away"):
            subject.call(away, messages, before=before)
        assert slow.calls == calls
        assert (kept in views[-1]) == (before is not None)


def test_what_is_prepared_behind_a_failure_has_nothing_of_what_a_hook_pinned_for_one_call() -> None:
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            raise RuntimeError("the provider is away")
        return "The user asks for one module after the other; all were looked at."

    subject, messages, kept = compactor(summarizer), list[Message](), turn(3)[1]
    while subject.due(messages) is None:
        messages = [*messages, *turn(len(messages) // 2)]
    pins = Pins(predicate=lambda message: message.text == kept["content"])
    for _ in range(2):
        assert not subject.compact(messages, before=lambda proposal: pins).changed
        messages = [*messages, *turn(len(messages) // 2)]
    while is_preparing():
        time.sleep(0.005)
    out = subject.compact(messages)
    assert out.changed
    assert len(asked) == 2
    assert kept not in out.messages


def test_what_is_prepared_has_nothing_of_the_instructions_of_one_call_nor_stands_in_for_them() -> None:
    asked: list[str] = []

    def summarizer(prompt: str) -> str:
        asked.append(prompt)
        return "The user asks for one module after the other; all were looked at."

    subject, messages = compactor(summarizer), list[Message]()
    out = subject.compact(messages)
    while not out.changed:
        messages = [*messages, *turn(len(messages))]
        out = subject.compact(messages, out.compaction, instructions="Write in rhymes.")
        while is_preparing():
            time.sleep(0.005)
    assert ["rhymes" in prompt for prompt in asked] == [False, True]


def test_off_means_off() -> None:
    assert Policy().soft_share is None
    assert Policy(background=False).soft_share is None
    assert Policy(background=True, enabled=False).soft_share is None
    assert Policy(background=True).soft_share == SOFT
    assert Policy(background=0.5).soft_share == 0.5
    slow = Slow()
    subject = compactor(slow, background=False)
    before = set(threading.enumerate())  # other tests' libraries may have left some
    for number in range(30):
        subject.compact([message for n in range(number) for message in turn(n)])
    assert set(threading.enumerate()) <= before


def test_what_comes_back_while_a_summary_is_prepared_does_not_make_it_paid_for_twice() -> None:
    slow = Slow()
    told: list[Any] = []
    policy = Policy(background=True, evidence=False, recall=True)
    subject = Compactor(window=WINDOW, summarizer=slow, policy=policy, on_event=told.append)
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    previous: Any = None
    asked = False
    for number in range(TURNS):
        messages = [*messages, *turn(number)]
        names = [event.name for event in told]
        if names.count("summary_prepared") == 2 and not asked:  # behind the first summary, and before the second
            messages[-1:] = [{"role": "user", "content": "What does module_0002.py set?"}]
            asked = True
        out = subject.compact(messages, previous)
        previous = out.compaction
        while is_preparing():
            time.sleep(0.001)
        if names.count("summary_adopted") == 2:
            break
    names = [event.name for event in told]
    assert names.count("recalled") == 1
    assert names.index("recalled") < len(names) - 1 - names[::-1].index("summary_adopted")
    assert slow.calls == names.count("summary_prepared")
    assert slow.calls <= names.count("summary_adopted") + 1


def parsed(messages: list[Any]) -> list[Any]:
    """As a server has them at its next request: read from where they are stored."""
    return list(json.loads(json.dumps(messages)))


def of_langchain(messages: list[Any]) -> list[Any]:
    kinds = {"system": "system", "user": "human", "assistant": "ai"}
    said = [{"type": kinds[message["role"]], "data": {"content": message["content"]}} for message in messages]
    return messages_from_dict(parsed(said))


def copied(messages: list[Any]) -> list[Any]:
    return [one.model_copy() for one in messages]


def with_the_mark_moved(messages: list[Any]) -> list[Any]:
    """The newest message has the mark of Anthropic's cache, and no other: callers move it at every request."""
    plain = [{**one, "content": text_of(one)} for one in messages]
    newest = {"type": "text", "text": text_of(messages[-1]), "cache_control": {"type": "ephemeral"}}
    return [*plain[:-1], {**messages[-1], "content": [newest]}]


def of_bedrock(messages: list[Any]) -> list[Any]:
    return [{**one, "content": [{"text": text_of(one)}]} for one in messages]


def with_the_point_moved(messages: list[Any]) -> list[Any]:
    """The same for Bedrock, where the mark is a block of its own."""
    *before, newest = of_bedrock(messages)
    return [*before, {**newest, "content": [*newest["content"], {"cachePoint": {"type": "default"}}]}]


def text_of(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


@crossed(
    ways=[
        (parsed, parsed),
        (of_langchain, copied),
        (parsed, with_the_mark_moved),
        (of_bedrock, with_the_point_moved),
    ],
    background=[True, 0.5],
)
def test_a_summary_is_paid_for_once_where_each_turn_reads_the_messages_again(
    ways: tuple[Callable[[list[Any]], list[Any]], ...], background: Any
) -> None:
    """What is prepared belongs to what the messages say, not to the objects that say it, or the marks on them."""
    read, again = ways

    def paid(is_read_again: bool) -> int:
        slow, told, messages, record = Slow(), list[str](), list[Any](), None
        subject = compactor(slow, background, on_event=lambda event: told.append(event.name))
        for number in range(120):
            messages += read(turn(number))
            if is_read_again:
                messages = again(messages)
                record = record and Compaction.from_json(record.to_json())
            record = subject.compact(messages, record).compaction
            for thread in threading.enumerate():
                if thread.name == "contextfold-background":
                    thread.join(10)
        assert told.count("summary_adopted") > 1
        return slow.calls

    assert paid(is_read_again=True) == paid(is_read_again=False)


def test_what_another_conversation_has_prepared_is_not_taken() -> None:
    """Equal beginnings are no equal conversations."""
    slow = Slow()
    subject = compactor(slow, 0.5)
    first = [message for number in range(40) for message in turn(number)]
    subject.compact(parsed(first))
    other = [*parsed(first[:-1]), {"role": "assistant", "content": "something else"}]
    assert "something else" in str(subject.compact(other).messages[-1])


def worked(task: str, steps: int, id_of: Callable[[int], str], examples: tuple[Message, ...] = ()) -> list[Message]:
    """An agent's conversation after so many steps, as a program has it that builds it again at each turn."""
    wire: list[Message] = [*examples, {"role": "user", "content": task}]
    for step in range(steps):
        call = {"id": id_of(step), "type": "function", "function": {"name": "read", "arguments": f"[{step}]"}}
        wire.append({"role": "assistant", "content": f"Step {step}.", "tool_calls": [call]})
        wire.append({"role": "tool", "tool_call_id": id_of(step), "content": f"value{step} " * 40})
    return parsed(wire)


def random_id(step: int) -> str:
    return "call_" + hashlib.sha256(bytes([step])).hexdigest()[:24]


def is_prepared() -> None:
    for thread in threading.enumerate():
        if thread.name == "contextfold-background":
            thread.join(10)


def prepared_at(subject: Compactor, run: Callable[[int], list[Message]]) -> int:
    """After how many steps a summary is due, which has been prepared since the step before."""
    beside = compactor(Slow(), 0.5)  # so that the subject knows no more than the step before
    steps = next(steps for steps in range(1, 200) if beside.due(run(steps)) is not None)
    subject.compact(run(steps - 1))
    is_prepared()
    return steps


EXAMPLES = tuple(worked("An example.", 2, lambda step: f"call_aB3{step}f9Kx2Lm8Qw"))


@pytest.mark.parametrize(
    ("id_of", "examples", "named_in"),
    [
        (lambda step: f"call_{step}", (), "task"),
        (lambda step: f"functions.read:{step}", (), "task"),
        (lambda step: f"c{step}", EXAMPLES, "task"),
        (lambda step: f"c{step}", EXAMPLES, "instructions"),
    ],
    ids=["numbered", "by the name", "behind examples", "before examples"],
)
def test_agents_that_did_the_same_for_two_people_share_no_summary(
    id_of: Callable[[int], str], examples: tuple[Message, ...], named_in: str
) -> None:
    """What is prepared may tell what stands in one of the tasks alone."""
    told = list[str]()
    subject = compactor(Slow(), 0.5, on_event=lambda event: told.append(event.name))

    def agent(name: str, steps: int) -> list[Message]:
        if named_in == "task":
            return worked(f"I am {name}. Read the modules.", steps, id_of, examples)
        return [{"role": "system", "content": f"I am {name}."}, *worked("Read the modules.", steps, id_of, examples)]

    steps = prepared_at(subject, lambda steps: agent("anna", steps))
    subject.compact(agent("bert", steps))
    assert "summary_adopted" not in told
    subject.compact(agent("anna", steps))
    assert "summary_adopted" in told


@pytest.mark.parametrize("given", [list, parsed])
def test_a_message_that_is_none_costs_no_summary_that_is_paid_for(given: Callable[[list[Any]], list[Any]]) -> None:
    """The caller mends it and comes again, with the same objects or with equal ones."""
    told = list[str]()
    subject = compactor(Slow(), 0.5, on_event=lambda event: told.append(event.name))
    steps = prepared_at(compactor(Slow(), 0.5), lambda steps: worked("Read the modules.", steps, random_id))
    all_of_it = worked("Read the modules.", steps, random_id)
    subject.compact(all_of_it[:-2])
    is_prepared()
    with pytest.raises(FormatError):
        subject.compact(given([*all_of_it[:-2], {"role": "user", "content": 5}]))
    subject.compact(given(all_of_it))
    assert "summary_adopted" in told


def test_a_request_that_is_cancelled_while_it_is_read_costs_no_summary_that_is_paid_for() -> None:
    told = list[str]()
    requests = list[asyncio.Task[Any]]()

    def tell(event: Event) -> None:
        told.append(event.name)
        if requests and event.name == "format_detected":  # in the thread that reads the messages
            requests[-1].get_loop().call_soon_threadsafe(requests.pop().cancel)
            time.sleep(0.05)

    subject = compactor(Slow(), 0.5, on_event=tell)
    steps = prepared_at(compactor(Slow(), 0.5), lambda steps: worked("Read the modules.", steps, random_id))
    all_of_it = worked("Read the modules.", steps, random_id)
    subject.compact(all_of_it[:-2])
    is_prepared()

    async def cancelled() -> None:
        requests.append(asyncio.create_task(subject.acompact(parsed(all_of_it))))
        await requests[-1]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    subject.compact(parsed(all_of_it))
    assert "summary_adopted" in told


def test_a_second_run_of_a_job_takes_nothing_from_the_first_where_it_has_cleared_results() -> None:
    """With ids of its own, it is the same only where it says all the same: what was cleared may have been otherwise."""
    told = list[str]()
    subject = compactor(Slow(), 0.5, on_event=lambda event: told.append(event.name))
    steps = prepared_at(subject, lambda steps: worked("Read the modules.", steps, random_id))
    second = worked("Read the modules.", steps, lambda step: random_id(255 - step))
    clears_results(second)
    subject.compact(second)
    assert "summary_adopted" not in told
    subject.compact(worked("Read the modules.", steps, random_id))
    assert "summary_adopted" in told


def test_a_second_run_of_a_job_takes_nothing_from_the_first_where_both_have_cleared_results() -> None:
    """They say the same, with the same placeholders, and what stood there was told by the summary of the first."""
    told = list[str]()
    subject = compactor(Slow(), 0.5, on_event=lambda event: told.append(event.name))
    steps = prepared_at(subject, lambda steps: worked("Read the modules.", steps, random_id))
    first, second = (
        worked("Read the modules.", steps + 3, of) for of in (random_id, lambda step: random_id(255 - step))
    )
    for run in (first, second):
        next(one for one in run if one["role"] == "tool")["content"] = "[Old tool result content cleared]"
    subject.compact(first[:-8])
    assert subject.due(second) is not None
    subject.compact(second)
    assert "summary_adopted" not in told
    subject.compact(first)
    assert "summary_adopted" in told


def says_the_time(messages: list[Message]) -> None:
    messages[0]["content"] += f" It is turn {len(messages)}."


def clears_results(messages: list[Message]) -> None:
    for message in [one for one in messages if one["role"] == "tool"][:-30]:
        message["content"] = "[Old tool result content cleared]"


def leaves_arguments_out(messages: list[Message]) -> None:
    for message in [one for one in messages if "tool_calls" in one][:-30]:
        message["tool_calls"][0]["function"]["arguments"] = "{}"


def gives_other_ids(messages: list[Message]) -> None:
    """As an adapter does in front of a client whose own messages have none."""
    for place, message in enumerate(messages[1:]):
        given = f"call_{len(messages)}x{place // 2}y7"
        if "tool_calls" in message:
            message["tool_calls"][0]["id"] = given
        else:
            message["tool_call_id"] = given


def writes_in_two_ways(messages: list[Message]) -> None:
    """As two libraries do that take turns: with blanks in the arguments, and with texts as blocks."""
    for message in messages if len(messages) // 2 % 2 else ():
        message["content"] = [{"type": "text", "text": message["content"]}]
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=1)


HABITS = [says_the_time, clears_results, leaves_arguments_out, gives_other_ids, writes_in_two_ways]


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_a_summary_is_paid_for_once_whatever_the_client_says_otherwise(
    habit: Callable[[list[Message]], None],
) -> None:
    """Until it came into force, each turn was another conversation, and prepared another one."""
    slow, record, passes = Slow(), None, 0
    subject = compactor(slow, 0.5)
    for steps in range(10, 200):
        messages = worked("Read the modules.", steps, random_id)
        habit(messages)
        out = subject.compact(messages, record)
        record, passes = out.compaction, passes + out.changed
        is_prepared()
        if passes == 3:
            break
    assert 0 < slow.calls <= passes + 1


def drops_the_oldest(messages: list[Message], steps: int) -> list[Message]:
    return [*messages[:1], *messages[1:][-50:]]


def begins_later(messages: list[Message], steps: int) -> list[Message]:
    return messages[-50:]


def moves_a_reminder(messages: list[Message], steps: int) -> list[Message]:
    return [*messages[:-2], {"role": "user", "content": f"<todo>{steps}</todo>"}, *messages[-2:]]


@crossed(habit=[drops_the_oldest, begins_later, moves_a_reminder], read=[parsed, list])
def test_a_client_that_drops_or_moves_messages_at_each_turn_pays_for_no_summary_that_is_never_used(
    habit: Callable[[list[Message], int], list[Message]], read: Callable[[list[Message]], list[Message]]
) -> None:
    """Each turn was another conversation, for which one was prepared."""
    slow, whole = Slow(), worked("Read the modules.", 150, random_id)
    subject, record, passes = compactor(slow, 0.5), None, 0
    for steps in range(10, 150):
        out = subject.compact(read(habit(whole[: 1 + 2 * steps], steps)), record)
        record, passes = out.compaction, passes + out.changed
        is_prepared()
    assert 0 < slow.calls <= passes + 2


def test_branches_that_begin_with_the_same_objects_pay_for_the_summaries_that_they_use() -> None:
    """Each turn of one took the place of the other, with the summary that was prepared for it."""
    slow, shared = Slow(), worked("Read the modules.", 6, random_id)
    ids = (random_id, lambda step: random_id(80 + step), lambda step: random_id(160 + step))
    branches = [[*shared, *worked("Go on.", 80, id_of)] for id_of in ids]
    subject, records, passes = compactor(slow, 0.5), dict[int, Any](), 0
    for stop in range(len(shared) + 2, len(branches[0]) + 1, 2):
        for number, branch in enumerate(branches):
            out = subject.compact(branch[:stop], records.get(number))
            records[number], passes = out.compaction, passes + out.changed
            is_prepared()
    assert 3 < slow.calls <= passes + len(branches)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_behind_which_the_model_failed_is_taken_by_equal_messages(is_async: bool) -> None:
    """Who tries again has often read the conversation again, too."""
    slow, views = Slow(), list[Any]()
    subject = Compactor(window=WINDOW, summarizer=slow)
    messages = [message for number in range(120) for message in turn(number)]

    def send(view: list[Any]) -> str:
        views.append(view)
        if len(views) == 1:
            raise ValueError("the model is away")
        return "done"

    async def asend(view: list[Any]) -> str:
        return send(view)

    def attempt() -> Any:
        given = parsed(messages)
        return asyncio.run(subject.acall(asend, given)) if is_async else subject.call(send, given)

    with pytest.raises(ValueError, match="away"):
        attempt()
    paid = slow.calls
    assert paid > 0
    assert attempt() == "done"
    assert slow.calls == paid
    assert views[0] == views[1]
