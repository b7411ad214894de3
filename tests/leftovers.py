"""What frameworks leave open is closed and collected where it was left, not in a test that takes warnings for errors.

Blocking runners of pydantic-ai and OpenAI Agents leave the event loop of their thread open, ADK a client for each
loop, LiteLLM sockets and coroutines of its logging.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def collected() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close_loop()
        gc.collect()


def close_loop() -> None:
    """Closes the event loop that a blocking runner left to this thread."""
    with suppress(RuntimeError):  # there is none, or it runs
        asyncio.get_event_loop_policy().get_event_loop().close()
    asyncio.get_event_loop_policy().set_event_loop(None)
