"""A gateway answers others while it reads a request of megabytes, whatever these megabytes are.

Measured is the CPU time of the event loop's own thread between two turns, so a busy machine changes nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from tests.gateway.conftest import RawUpstream, Seen, Writer, settings_for

from contextfold.gateway.app import make_app
from effort import crossed
from holds import AT_MOST, TRIES, Holds, turns

LINE = "worker-7 GET /api/v2/users/77 took refreshUserToken 913ms\n"


def with_output(text: str, arguments: str = "{}") -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": arguments}}
    return [
        {"role": "user", "content": "Why is the import slow?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
        {"role": "assistant", "content": "It waits for a lock."},
        {"role": "user", "content": "Then mend it."},
    ]


def small_messages(count: int) -> list[dict[str, Any]]:
    found = [
        {"role": ("user", "assistant")[n % 2], "content": f"Line {n} says {n * 7919 % 10_007}."} for n in range(count)
    ]
    return [*found, {"role": "user", "content": "Go on."}]


def declared(count: int) -> list[dict[str, Any]]:
    fields = {f"field_{n}": {"type": "string", "description": "what it is for"} for n in range(20)}
    function = {"description": "Does something useful.", "parameters": {"type": "object", "properties": fields}}
    return [{"type": "function", "function": {"name": f"tool_{n}", **function}} for n in range(count)]


BODIES: dict[str, dict[str, Any]] = {
    "a log of 3 MB": {"messages": with_output(LINE * 52_000)},
    "3 MB of quotation marks": {"messages": with_output('"' * 1_500_000)},
    "3 MB of line ends": {"messages": with_output("\n" * 1_500_000)},
    "arguments with 50,000 keys": {
        "messages": with_output("Done.", json.dumps({f"key_{n}": f"value {n}" for n in range(50_000)}))
    },
    "8,000 messages": {"messages": small_messages(8_000)},
    "tools of 2 MB": {"messages": with_output("Done."), "tools": declared(1_500)},
    "instructions of 2 MB": {
        "messages": [{"role": "system", "content": "Never touch ledger_2019.\n" * 80_000}, *with_output("Done.")]
    },
}


async def took(writer: Writer, _: Seen) -> None:
    await writer.json(b'{"usage": {}}')


async def longest_hold(url: str, folder: Path, bodies: list[bytes]) -> float:
    """The longest time in which the loop of a gateway did nothing else, while these came one behind the other."""
    app = make_app(settings_for(url, folder, window=64_000))
    holds: Holds = []
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://gateway", timeout=60) as client,
    ):
        heart = asyncio.create_task(turns(holds))
        await asyncio.sleep(0)  # the first turn begins
        gc.disable()  # what a collection takes depends on all that the process holds
        try:
            for body in bodies:
                answer = await client.post(
                    "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
                )
                assert answer.status_code == 200
            await asyncio.sleep(0.005)  # the last turn ends
        finally:
            gc.enable()
            heart.cancel()
    return max(held for held, _ in holds)


@crossed(name=BODIES, quick=2)
def test_a_request_of_megabytes_and_the_one_behind_it_leave_the_event_loop_free(name: str, tmp_path: Path) -> None:
    """In one of the tries, each of another conversation."""
    found = []
    for number in range(TRIES):
        said = {**BODIES[name], "model": "model-of-a-test"}
        said["messages"] = [*said["messages"], {"role": "user", "content": f"Try {number}."}]
        behind = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks. And now?"}]
        bodies = [json.dumps(one).encode() for one in (said, {**said, "messages": said["messages"] + behind})]
        (tmp_path / str(number)).mkdir()
        with RawUpstream(took) as upstream:
            found.append(asyncio.run(longest_hold(upstream.url, tmp_path / str(number), bodies)))
        if found[-1] <= AT_MOST:
            return
    pytest.fail(f"the event loop was held too long: {found}")
