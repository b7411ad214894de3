"""Conversations of two tenants over two workers on one store, while everything around them fails.

What must hold whatever happens: an answer is the answer to its own request, nothing of one tenant or conversation is in
a request of another, and no request is sent again that the provider has taken.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer
from tests.gateway.conftest import WINDOW
from tests.gateway.requests_made import PATHS, body_of, compact, post, turns
from tests.gateway.test_run import environment, free_port, wait_until_healthy

MARK = re.compile(r"mark-[\w-]+")
WIRE = "anthropic"
FAULTS = [
    Fault.rate_limit(retry_after=1),
    Fault.server_error(),
    Fault.overloaded(),
    Fault.cut(after=1),
    Fault.slow(0.02),
    Fault.stalled(0.05),
    Fault.overflows(limit=4_000),
    Fault.overflows(limit=4_000, in_stream=True),
]


def newest_mark(request: Any) -> str:
    return MARK.findall(json.dumps(request.body["messages"][-1]))[-1]


REMEMBERS_LESS = """
from contextfold.gateway import conversations
conversations.MOST_REMEMBERED = {0}
conversations.Conversations.__init__.__defaults__ = ({0}, conversations.MOST_BYTES)
from contextfold.cli import main
main()
"""


class Workers:
    """Gateways as processes on one store; any of them can be killed and comes back."""

    def __init__(
        self,
        folder: Path,
        provider: ProviderServer,
        count: int,
        *,
        store: str = "",
        strict: bool,
        most: int | None = None,
    ) -> None:
        self.folder, self.most = folder, most
        self.options = ["--window", str(WINDOW), "--store", store or f"sqlite:///{folder / 'shared.db'}"]
        self.options += ["--strict"] if strict else []
        self.provider = provider
        self.ports = [free_port() for _ in range(count)]
        self.processes = [self._start(port) for port in self.ports]
        for port in self.ports:
            wait_until_healthy(f"http://127.0.0.1:{port}")

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        words = ["gateway", "--port", str(port), "--upstream", f"anthropic={self.provider.url}", "--log", "none"]
        program = ["-m", "contextfold"] if self.most is None else ["-c", REMEMBERS_LESS.format(self.most)]
        return subprocess.Popen(
            [sys.executable, *program, *words, *self.options],
            env=environment(self.folder, CONTEXTFOLD_GATEWAY_KEY="one-for-all"),
            stderr=subprocess.DEVNULL,
        )

    def kill(self, place: int) -> None:
        os.kill(self.processes[place].pid, signal.SIGKILL)
        self.processes[place].wait()
        self.processes[place] = self._start(self.ports[place])
        wait_until_healthy(f"http://127.0.0.1:{self.ports[place]}")

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


class Agent(threading.Thread):
    """One conversation; it tries each turn until it is answered, on any worker, as a client does."""

    def __init__(self, workers: Workers, tenant: str, number: int, length: int) -> None:
        super().__init__()
        self.workers = workers
        self.tenant = tenant
        self.number = number
        self.length = length
        self.wrong: list[str] = []
        self.answered = 0

    def run(self) -> None:
        rng = random.Random(self.number)
        # the two tenants say the very same; only the mark of the newest message tells them apart
        for turn, messages in enumerate(turns(WIRE, self.length, seed=self.number // 2, size=250)):
            mark = f"mark-{self.tenant}-{self.number}-{turn}"
            said = [*messages, {"role": "assistant", "content": "yes"}, {"role": "user", "content": mark}]
            for attempt in range(400):
                if self._is_answered(said, mark, f"{mark}.{attempt}", rng):
                    self.answered += 1
                    break
                time.sleep(0.05)

    def _is_answered(self, messages: list[Any], mark: str, tried: str, rng: random.Random) -> bool:
        stream = rng.random() < 0.5
        messages = [*messages[:-1], {"role": "user", "content": tried}]
        raw = compact(body_of(WIRE, messages, stream=stream))
        port = rng.choice(self.workers.ports)
        try:
            response = post(f"http://127.0.0.1:{port}", PATHS[WIRE], raw, {"authorization": f"Bearer {self.tenant}"})
        except (OSError, http.client.HTTPException):
            return False
        if response.status != 200:
            return False
        text = response.body.decode()
        found = set(MARK.findall(text.replace('"text": "', '"text":"')))
        if stream:
            pieces = re.findall(r'"text_delta", ?"text": ?"([^"]*)"|"text": ?"([^"]*)", ?"type": ?"text_delta"', text)
            found = set(MARK.findall("".join(a or b for a, b in pieces)))
            if "message_stop" not in text:
                return False
        if found != {tried.partition(".")[0]}:
            self.wrong.append(f"{tried} got {found}")
        return True


def run_agents(
    folder: Path, agents: int, length: int, kills: float, *, store: str = "", strict: bool = False
) -> tuple[list[Agent], ProviderServer]:
    def answer(request: Any) -> Answer:
        return Answer(f"the answer to {newest_mark(request)}")

    rng = random.Random(7)
    with ProviderServer(default_window=WINDOW, answers=answer) as provider:
        for number in range(3, agents * length * 3, 4):
            provider.faults.add(rng.choice(FAULTS), at=number)
        workers = Workers(folder, provider, 2, store=store, strict=strict)
        try:
            running = [Agent(workers, ("mine", "theirs")[n % 2], n, length) for n in range(agents)]
            for agent in running:
                agent.start()
            until = time.monotonic() + 500
            while any(agent.is_alive() for agent in running) and time.monotonic() < until:
                time.sleep(kills)
                workers.kill(rng.randrange(2))
            for agent in running:
                agent.join(60)
        finally:
            workers.close()
        return running, provider


def check(running: list[Agent], provider: ProviderServer, length: int) -> None:
    assert [agent.answered for agent in running] == [length + 1] * len(running)
    assert not [wrong for agent in running for wrong in agent.wrong]
    taken: Counter[str] = Counter()
    for request in provider._provider.records:
        marks = MARK.findall(request.text)
        tenants = {mark.split("-")[1] for mark in marks}
        assert len(tenants) == 1, f"two tenants in one request: {marks}"
        tasks = set(re.findall(r"call_(\d+)_", request.text))
        assert len(tasks) <= 1, f"two conversations in one request: {tasks}"
        if request.error is None:
            taken[json.dumps(request.body["messages"][-1])] += 1
    assert max(taken.values()) == 1  # each attempt has a mark of its own


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("server") if request.param == "postgresql" else f"sqlite:///{tmp_path / 'shared.db'}"


@pytest.mark.strict
@pytest.mark.parametrize("strict", [False, True], ids=["going on", "refusing"])
def test_nothing_is_mixed_up_while_workers_are_killed_and_the_provider_fails(
    tmp_path: Path, store: str, strict: bool
) -> None:
    running, provider = run_agents(tmp_path, agents=2, length=10, kills=2.0, store=store, strict=strict)
    check(running, provider, 10)


@pytest.mark.strict
def test_nothing_is_mixed_up_in_hundreds_of_requests(tmp_path: Path, store: str) -> None:
    length = 32 if store.startswith("sqlite") else 16
    running, provider = run_agents(tmp_path, agents=8, length=length, kills=4.0, store=store)
    assert len(provider._provider.records) > 8 * length
    check(running, provider, length)


@pytest.mark.strict
def test_memory_is_flat_over_a_day_in_fast_motion(tmp_path: Path) -> None:
    """Conversations come, grow over several windows, and go; what they took is given back. The gateway remembers 64 of
    them, to fill up sooner.
    """
    psutil = pytest.importorskip("psutil")
    with ProviderServer(default_window=WINDOW, answers=lambda _: "ok") as provider:
        workers = Workers(tmp_path, provider, 1, strict=False, most=64)
        try:
            process = psutil.Process(workers.processes[0].pid)
            url = f"http://127.0.0.1:{workers.ports[0]}"
            sizes = []
            for number in range(241):
                lists = list(turns(WIRE, 30, seed=number))
                # what is remembered fills up with one request each: to compact takes as long in a list that has grown
                for messages in lists[25:26] if number < 60 else lists[20::5]:
                    assert post(url, PATHS[WIRE], compact(body_of(WIRE, messages))).status == 200
                provider._provider.records.clear()
                if number >= 120 and number % 40 == 0:  # more than are remembered
                    sizes.append(process.memory_info().rss)
        finally:
            workers.close()
    assert max(sizes) < 1.15 * sizes[0], [size // 2**20 for size in sizes]
