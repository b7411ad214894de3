"""Plays real conversations through the official SDKs, turn by turn, against a provider on loopback with a small window.

    python -m benchmarks.real_calls             every file, windows of 16k and 32k, known and unknown, colors in turn
    python -m benchmarks.real_calls --all       every file with every window, known and unknown, in all four colors
    python -m benchmarks.real_calls --quick     one file in eight

Each conversation is sent in its own wire format (LangChain's as Chat Completions). Before each recorded turn of the
model the history up to it goes through ``with_compaction``; of a long conversation ``--calls`` turns are sampled,
evenly, the last one always; of a file with many conversations the first ``--conversations``. "Unknown" gives the
compactor no window: it assumes its default until the provider refuses. The provider checks pairing and roles as the
real ones do.

Prints one row for each file, and the totals. The exit code is 1 if a request was refused for its shape, a conversation
got stuck, or an overflow was not recovered. A conversation whose floor alone (system prompt, first and newest user
message) is larger than the window cannot be sent by anyone: it ends in ``CannotFit``, and is counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator import ProviderServer

from benchmarks.kinds import read_file
from contextfold import CannotFit, Compactor, InputError, formats
from contextfold.integrations import anthropic as over_anthropic
from contextfold.integrations import openai as over_openai
from contextfold.overflow import classify

WINDOWS = (16_000, 32_000)
COLORS = ("sync", "async", "sync stream", "async stream")
MODEL = "loopback"
ANSWER_TOKENS = 300
SHAPES = {"openai-chat": "chat", "langchain": "chat", "openai-responses": "responses", "anthropic": "anthropic"}


@dataclass(frozen=True)
class Setting:
    """One way to play a conversation."""

    window: int
    known: bool
    color: str

    def __str__(self) -> str:
        return f"{self.window // 1000}k {'known' if self.known else 'unknown'} {self.color}"


@dataclass
class Tally:
    """What happened to the conversations of one file."""

    conversations: int = 0
    calls: int = 0
    requests: int = 0
    overflows: int = 0
    recovered: int = 0
    compacted: int = 0
    refused_for_shape: int = 0
    cannot_fit: int = 0
    stuck: list[str] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        for name in ("conversations", "calls", "requests", "overflows", "recovered", "compacted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused_for_shape += other.refused_for_shape
        self.cannot_fit += other.cannot_fit
        self.stuck += other.stuck
        self.problems += other.problems

    def row(self) -> str:
        unrecovered = self.overflows - self.recovered
        return (
            f"{self.conversations:6}{self.calls:7}{self.requests:9}{self.compacted:11}{self.overflows:10}"
            f"{unrecovered:12}{self.refused_for_shape:7}{len(self.stuck):7}{self.cannot_fit:11}"
        )


HEADER = f"{'runs':>6}{'calls':>7}{'requests':>9}{'compacted':>11}{'overflows':>10}{'unrecovered':>12}" + (
    f"{'shape':>7}{'stuck':>7}{'cannot fit':>11}"
)


# ---- conversations ----


def files(data: Path) -> list[Path]:
    """Every file that could hold a conversation, in a fixed order."""
    found = (path for path in data.rglob("*") if path.is_file() and not path.name.startswith(("LICENSE", "README")))
    return sorted(found)


@dataclass(frozen=True)
class Script:
    """A conversation as it is sent: ``ends[i]`` messages at call ``i``."""

    name: str
    shape: str
    messages: list[Any]
    ends: list[int]
    system: str
    tools: list[Any]


def script(conversation: Any, most: int) -> Script:
    """The calls of a conversation: one before each turn of the model, and one more turn of the user at the end."""
    messages, format = conversation.messages, conversation.format
    if format == "langchain":
        format = "openai-chat"
        decoded = formats.decode(messages, formats.get("langchain"))
        messages = formats.get(format).encode(decoded)
    shape, system = SHAPES[format], ""
    messages = [as_sent(message, shape) for message in messages]
    if shape == "anthropic":
        system = "\n".join(str(message["content"]) for message in messages if message["role"] == "system")
        messages = [message for message in messages if message["role"] != "system"]
    roles = [message.role for message in formats.decode(messages, formats.get(format))]
    ends = [n for n in range(1, len(roles)) if roles[n] == "assistant" and roles[n - 1] not in ("assistant", "system")]
    if len(ends) > most - 1:
        ends = sorted({ends[n * (len(ends) - 1) // max(1, most - 2)] for n in range(most - 1)})
    messages = [*messages, {"role": "user", "content": "Go on."}]
    return Script(conversation.name, shape, messages, [*ends, len(messages)], system, list(conversation.tools))


def as_sent(message: Any, shape: str) -> Any:
    """A message as its provider has it, where a product stored it in its own way.

    tau2 writes the id of the answered call as the result's own ``id``; Cline has blocks for files, whose text it sends.
    """
    if shape == "chat" and message.get("role") == "tool" and "tool_call_id" not in message:
        return {**message, "tool_call_id": message["id"]}
    content = message.get("content") if shape == "anthropic" else None
    if not isinstance(content, list) or not any(block.get("type") == "file" for block in content):
        return message
    blocks = [{"type": "text", "text": str(b["content"])} if b.get("type") == "file" else b for b in content]
    return {"role": message["role"], "content": blocks}


# ---- one run ----


class Player:
    """One conversation in one setting against one server."""

    def __init__(self, server: ProviderServer, script: Script, setting: Setting) -> None:
        self.server = server
        self.script = script
        self.setting = setting
        self.compactor = Compactor(window=setting.window if setting.known else None)
        self.tally = Tally(conversations=1)

    def run(self) -> Tally:
        first = len(self.server.requests)
        if self.setting.color.startswith("async"):
            asyncio.run(self._play_async())
        else:
            self._play()
        requests = self.server.requests[first:]
        self.tally.requests = len(requests)
        for request in requests:
            verdict = classify(request.error) if request.error else None
            if verdict is not None and verdict.kind != "malformed_history":
                self.tally.overflows += 1
            elif request.error:
                self.tally.refused_for_shape += 1
                self.tally.problems[str(request.error)[:160]] += 1
        return self.tally

    def _arguments(self, end: int) -> dict[str, Any]:
        script = self.script
        arguments: dict[str, Any] = {"model": MODEL, "stream": "stream" in self.setting.color}
        arguments["input" if script.shape == "responses" else "messages"] = script.messages[:end]
        if script.tools:
            arguments["tools"] = script.tools
        if script.shape == "anthropic":
            arguments |= {"max_tokens": ANSWER_TOKENS} | ({"system": script.system} if script.system else {})
        return arguments

    def _play(self) -> None:
        with client_of(self.server, self.script.shape, is_async=False) as client:
            send = wrapped(client, self.script.shape, self.compactor)
            for end in self.script.ends:
                with self._watched(send, end):
                    answer = send(**self._arguments(end))
                    if "stream" in self.setting.color:
                        with answer:
                            sum(1 for _ in answer)

    async def _play_async(self) -> None:
        async with client_of(self.server, self.script.shape, is_async=True) as client:
            send = wrapped(client, self.script.shape, self.compactor)
            for end in self.script.ends:
                with self._watched(send, end):
                    answer = await send(**self._arguments(end))
                    if "stream" in self.setting.color:
                        async with answer:
                            [event async for event in answer]

    def _watched(self, send: Any, end: int) -> Watch:
        return Watch(self, send, end)


class Watch:
    """One call: counts what it took, and notes how it ended."""

    def __init__(self, player: Player, send: Any, end: int) -> None:
        self.player, self.send, self.end = player, send, end
        self.before = len(player.server.requests)

    def __enter__(self) -> None:
        self.player.tally.calls += 1

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        tally = self.player.tally
        if error is None:
            tally.compacted += bool(self.send.result.changed)
            refused = [request for request in self.player.server.requests[self.before :] if request.error]
            tally.recovered += len(refused)
            return False
        if isinstance(error, CannotFit) and floor_is_too_large(error, self.player.setting.window):
            tally.cannot_fit += 1
            tally.recovered += len([r for r in self.player.server.requests[self.before :] if r.error])
            return True
        if not isinstance(error, Exception):
            return False
        place = f"{self.player.script.name} [{self.player.setting}] at message {self.end}"
        tally.stuck.append(f"{place}: {type(error).__name__}: {error}"[:400])
        return True


def floor_is_too_large(error: CannotFit, window: int) -> bool:
    """Whether what must stay word for word leaves no room for a summary: no one could send this conversation."""
    fixed = sum(size for name, size in error.floor.items() if name not in ("recent messages and summary",))
    return fixed > 0.9 * window


def wrapped(client: Any, shape: str, compactor: Compactor) -> Any:
    if shape == "anthropic":
        return over_anthropic.with_compaction(client.messages.create, compactor)
    method = client.chat.completions.create if shape == "chat" else client.responses.create
    return over_openai.with_compaction(method, compactor)


def client_of(server: ProviderServer, shape: str, *, is_async: bool) -> Any:
    import anthropic
    import openai

    if shape == "anthropic":
        made: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return made(base_url=server.anthropic_url, api_key="any", max_retries=0)
    made = openai.AsyncOpenAI if is_async else openai.OpenAI
    return made(base_url=server.openai_url, api_key="any", max_retries=0)


# ---- all ----


def settings(every: bool, turn: int) -> Iterator[Setting]:
    """All settings, or every window known and unknown, each in the color whose turn it is."""
    pairs = list(itertools.product(WINDOWS, (True, False)))
    for number, (window, known) in enumerate(pairs):
        for color in COLORS if every else (COLORS[(turn + number) % len(COLORS)],):
            yield Setting(window, known, color)


def play_file(path: Path, options: argparse.Namespace, turn: int) -> Tally:
    """Every setting for the first conversations of a file."""
    tally = Tally()
    for number, conversation in enumerate(read_file(path)[: options.conversations]):
        written = script(conversation, options.calls)
        for setting in settings(options.all, turn + number):
            with ProviderServer(windows={MODEL: setting.window}, default_window=None) as server:
                tally.add(Player(server, written, setting).run())
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("CONTEXTFOLD_TRANSCRIPTS")
    parser.add_argument("--transcripts", type=Path, default=Path(default) if default else None)
    parser.add_argument("--all", action="store_true", help="every setting in all four colors")
    parser.add_argument("--quick", action="store_true", help="one file in eight")
    parser.add_argument("--calls", type=int, default=8, help="calls of one conversation, sampled evenly")
    parser.add_argument("--conversations", type=int, default=2, help="conversations of one file")
    options = parser.parse_args(arguments)
    if options.transcripts is None:
        parser.error("name the folder of session files: --transcripts FOLDER, or CONTEXTFOLD_TRANSCRIPTS")
    logging.getLogger("contextfold").setLevel(logging.CRITICAL)
    total, started = Tally(), time.perf_counter()
    print(f"{'file':58}{HEADER}")
    found = files(options.transcripts)
    for turn, path in enumerate(found[::8] if options.quick else found):
        name = str(path.relative_to(options.transcripts))
        try:
            tally = play_file(path, options, turn)
        except InputError as error:
            print(f"{name[-57:]:58}no conversation: {str(error).removeprefix(str(path))[:60]}")
            continue
        total.add(tally)
        print(f"{name[-57:]:58}{tally.row()}", flush=True)
    print(f"{'total':58}{total.row()}")
    for text, count in total.problems.most_common(20):
        print(f"refused for its shape, {count} times: {text}")
    for text in total.stuck[:40]:
        print(f"stuck: {text}")
    print(f"{time.perf_counter() - started:.0f} s")
    return 1 if total.stuck or total.refused_for_shape or total.overflows > total.recovered else 0


if __name__ == "__main__":
    sys.exit(main())
