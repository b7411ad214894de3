"""The provider as a server in a thread of its own, on a free port of the loopback interface.

What belongs here: starting, stopping, and what a test sees of it. What does not: answering (``app``, ``provider``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from types import TracebackType

import uvicorn

from emulator.app import ConnectionCut, make_app
from emulator.cache import SHORTEST_TOKENS, PromptCache
from emulator.faults import Faults
from emulator.provider import TRUNCATE, Provider, Script
from emulator.requests import Request
from emulator.tokenizer import choose_tokenizer
from emulator.wording import Wording, wording_named

START_SECONDS = 30
KEEP_ALIVE_SECONDS = 60


class ProviderServer:
    """A provider for tests, for use in a ``with`` block, or with ``start`` and ``close``.

    Args:
        windows: tokens of the window of each model.
        default_window: the window of all other models; None: requests for them end in HTTP 404.
        overflow: how too long a prompt is refused: ``native`` (as the API that was called does), the name of a row of
            ``WORDINGS``, a ``Wording``, or ``truncate`` (not at all: the oldest messages are dropped in silence).
        answers: answers in turn, or a function of the ``Request``; texts, ``Answer`` values, or None for the digest
            of the prompt that is the answer to everything else. The function may be called from several threads.
        count_tokens: tokens of a text, instead of tiktoken's o200k vocabulary (used where it is on disk; nothing is
            ever downloaded) or the built-in estimate.
        digest_tokens: the most tokens that a digest has; it has at most a quarter of those of its prompt.
        cache_minimum: tokens of the shortest beginning of a prompt that is cached.

    ``requests`` are all requests for answers so far, ``faults`` what goes wrong, and ``tokenizer`` the name of the
    counter in use. An exception in a function that the test supplied ends in HTTP 500, and leaves the ``with`` block
    again. Raises ``ValueError`` for a wording that is not known.
    """

    def __init__(
        self,
        windows: Mapping[str, int] | None = None,
        *,
        default_window: int | None = 128_000,
        overflow: str | Wording = "native",
        answers: Script | None = None,
        count_tokens: Callable[[str], int] | None = None,
        digest_tokens: int = 400,
        cache_minimum: int = SHORTEST_TOKENS,
    ) -> None:
        if isinstance(overflow, str) and overflow != TRUNCATE:
            wording_named(overflow, "openai-chat")  # an unknown name fails here, not in the middle of a test
        self._provider = Provider(
            tokenizer=choose_tokenizer(count_tokens),
            windows=dict(windows or {}),
            default_window=default_window,
            overflow=overflow,
            digest_tokens=digest_tokens,
            cache=PromptCache(cache_minimum),
            script=answers,
        )
        self._running: _Running | None = None

    def start(self) -> ProviderServer:
        """Start to listen, and return when requests can be sent."""
        if self._running is None:
            self._running = _Running(self._provider)
        return self

    def close(self) -> None:
        """Stop. What still waits is answered at once. Raises what the test's own functions raised, the first of it."""
        if self._running is not None:
            self._running.stop()
            self._running = None
        failures, self._provider.failures = self._provider.failures, []
        if failures:
            raise failures[0]

    def __enter__(self) -> ProviderServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"the test's own code raised in the provider: {failure!r}")

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``. Raises ``RuntimeError`` where the server does not run."""
        if self._running is None:
            raise RuntimeError("the server does not run: use it in a with block, or call start()")
        return f"http://127.0.0.1:{self._running.port}"

    @property
    def openai_url(self) -> str:
        """``base_url`` for clients of OpenAI and compatible servers."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """``base_url`` for clients of Anthropic."""
        return self.url

    @property
    def bedrock_url(self) -> str:
        """``endpoint_url`` for boto3's client of ``bedrock-runtime``."""
        return self.url

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests for answers that have been decided so far, by number."""
        return tuple(sorted(self._provider.records, key=lambda request: request.number))

    @property
    def faults(self) -> Faults:
        """What goes wrong: ``server.faults.add(Fault.blank(), at=2)``."""
        return self._provider.faults

    @property
    def tokenizer(self) -> str:
        """Who counts: ``o200k_base``, ``estimate`` or ``custom``."""
        return self._provider.tokenizer.name

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, as this server counts."""
        return self._provider.tokenizer.count(text)


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it listens, and wakes what waits before it shuts down."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.listens = threading.Event()
        self._closing = closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


class _Running:
    """One listening server and its thread."""

    def __init__(self, provider: Provider) -> None:
        closing = asyncio.Event()
        config = uvicorn.Config(
            make_app(provider, closing),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        # Without the protocol's name asyncio sends answers on a connection that is kept 40 ms late.
        listener = socket.socket(proto=socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
        self._server = _Uvicorn(config, closing)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="contextfold-provider", daemon=True
        )
        self._thread.start()
        if not self._server.listens.wait(START_SECONDS):
            raise RuntimeError(f"the server did not start within {START_SECONDS} seconds")

    def stop(self) -> None:
        """Return when the thread has ended."""
        self._server.should_exit = True
        self._thread.join()
        logging.getLogger("uvicorn.error").removeFilter(_is_unexpected)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's log is not about a connection that was cut on purpose."""
    return not (record.exc_info and isinstance(record.exc_info[1], ConnectionCut))
