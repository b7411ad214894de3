"""What a server of this project sends goes out at once: no part of an answer waits for the other side's word that the
one before it came, which takes some 40 milliseconds.
"""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

from contextfold.gateway.serve import listen

ROOT = Path(__file__).resolve().parents[1]
SOCKET = re.compile(r"\bsocket\.socket\((.*)\)")


def test_asyncio_sends_at_once_on_a_connection_that_was_made_here() -> None:
    async def is_at_once() -> bool:
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            answered.set_result(bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        with listen("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(answer, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                found = await answered
                writer.close()
        return found

    assert asyncio.run(is_at_once())


def test_every_server_names_the_protocol_of_its_socket() -> None:
    """asyncio asks for that before it does so."""
    made = {
        f"{path.relative_to(ROOT)}: {arguments}"
        for folder in ("src", "emulator")
        for path in (ROOT / folder).rglob("*.py")
        for arguments in SOCKET.findall(path.read_text(encoding="utf-8"))
    }
    assert len(made) == 3
    assert {one for one in made if "socket.IPPROTO_TCP" not in one} == set()
