"""A long talk about rooms, for frameworks that run agents: what the provider answers, and what is to hold of it.

What belongs here: the script of the provider on loopback, and checks over its requests. What does not: any framework.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from emulator import Answer, ProviderServer, ToolCall
from emulator import Request as Asked

MODEL = "small"
WINDOW = 5_500
"""Tokens that the provider takes, by its own tokenizer. Faces are told a little less, since theirs is an estimate."""
TOLD = 5_000
SUMMARY = "SUMMARYTOKEN The user asks about rooms, and gets to know where each is described."


def question(turn: int, words: int = 120) -> str:
    filling = " ".join(f"wall-{turn}-{word}" if word % 40 == 0 else "plain" for word in range(words))
    return f"[q{turn}] What about room {turn}? {filling}"


def look(room: int) -> str:
    """Looks at a room."""
    return f"[r{room}] room {room} is dry. " + "plain " * 100


def answers(asked: Asked) -> Answer:
    """Two calls at once to every third question; else, and behind results, a text."""
    newest = _newest(asked.body)
    number = asked.number
    if "<summary>" in str(newest.get("content")):  # asked behind a view (``summarizer="same"``)
        return Answer(f"<summary>{SUMMARY}</summary>")
    if newest.get("role") == "user" and number % 3 == 0:
        calls = tuple(ToolCall("look", {"room": 10 * number + n}, id=f"call_{number}_{n}") for n in range(2))
        return Answer(f"[a{number}] I look.", tool_calls=calls)
    return Answer(f"[a{number}] It is fine.")


def looks_and_removes(asked: Asked) -> Answer:
    """Three calls at once to every question: one that works, one that a person has to allow, one that fails."""
    if _newest(asked.body).get("role") != "user":
        return Answer("Done.")
    named = [("look", asked.number), ("remove", asked.number), ("look", -asked.number)]
    calls = (ToolCall(name, {"room": room}, id=f"{name}_{room}") for name, room in named)
    return Answer("I look.", tool_calls=tuple(calls))


def remove(room: int) -> str:
    """Removes a room."""
    return f"room {room} is no more. " + " ".join(f"stone-{room}-{n}" for n in range(300))


def _newest(body: Mapping[str, Any]) -> Mapping[str, Any]:
    said = body.get("messages") or body.get("input") or [{}]
    return said[-1] if isinstance(said, list) else {"role": "user"}


def provider() -> ProviderServer:
    return ProviderServer(windows={MODEL: WINDOW}, default_window=None, answers=answers)


def refused(server: ProviderServer) -> list[Any]:
    """What the provider refused: too long, orphans, wrong order."""
    return [request.error for request in server.requests if request.status != 200]


def largest(server: ProviderServer) -> int:
    return max(request.tokens for request in server.requests)


def summaries(asked: Asked) -> int:
    return asked.messages_text.count("SUMMARYTOKEN")


class Writer:
    """A summarizer that remembers what it was asked. ``fails``: how many of its first calls raise."""

    def __init__(self, fails: int = 0, window: int | None = None) -> None:
        self.prompts: list[str] = []
        self.fails = fails
        self.window = window

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if len(self.prompts) <= self.fails:
            raise ValueError("no such model")
        return SUMMARY


class Passes:
    """Counts the passes of a compactor, as its ``on_event``."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: Any) -> None:
        self.count += event.name == "compaction_finished"


class Talk:
    """One conversation with an agent of a framework, turn by turn, each in a run of its own."""

    way: str
    """``sync``, ``async`` or ``stream``."""
    results: list[Any]
    """The ``CompactionResult`` of each request, where the face tells it."""
    history: list[Any]
    """What the next run is given: all that was said."""
    forbidden: type[Exception]
    """What the framework raises where the provider answers with status 403."""

    async def ask(self, prompt: str) -> str:
        raise NotImplementedError

    def ask_blocking(self, prompt: str) -> None:
        raise NotImplementedError

    def play(self, turns: int, start: int = 0) -> None:
        if self.way == "sync":
            for turn in range(start, start + turns):
                self.ask_blocking(question(turn))
            return

        async def played() -> None:
            for turn in range(start, start + turns):
                await self.ask(question(turn))

        asyncio.run(played())

    def beside(self) -> Self:
        """Another conversation with the same agent."""
        other = copy.copy(self)
        other.history = []
        return other

    def questions(self) -> list[Any]:
        """What the user said, as the framework keeps it."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """The agent calls a tool, and before there is a result the user says something else."""
        raise NotImplementedError

    @property
    def passes(self) -> int:
        return sum(result.changed for result in self.results)


def check(talk: Talk, server: ProviderServer, turns: int) -> None:
    """What holds behind a talk of so many turns in which something was summarized."""
    assert refused(server) == []
    assert largest(server) <= WINDOW
    assert {summaries(request) for request in server.requests} == {0, 1}
    assert talk.questions() == [question(turn) for turn in range(turns)], "the history keeps everything"
    assert all("Never touch the cellar." in request.text for request in server.requests)


def growing(requests: Sequence[Asked]) -> int:
    """How many requests begin with the whole text of the one before."""
    pairs = itertools.pairwise(requests)
    return sum(1 for one, other in pairs if other.messages_text.startswith(one.messages_text))


def client(httpx: Any) -> Any:
    """Keeps no connection: a test may run in several event loops, one after the other. ``httpx``: it or its next."""
    return httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0), timeout=30)


@contextmanager
def own_loop() -> Iterator[None]:
    """An event loop for frameworks whose blocking runners leave theirs open."""
    policy = asyncio.get_event_loop_policy()
    loops = [asyncio.new_event_loop()]
    policy.set_event_loop(loops[0])
    yield
    with suppress(RuntimeError):  # asyncio.run has taken it away
        loops.append(policy.get_event_loop())
    for loop in loops:
        loop.close()
    policy.set_event_loop(None)
