"""Running the gateway: one process in the foreground, several workers, or a thread for the life of one command."""

from __future__ import annotations

import base64
import errno
import json
import logging
import os
import pickle
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from contextfold.errors import InputError
from contextfold.gateway.app import BrokenOff, make_app
from contextfold.gateway.metrics import Metrics, WorkerFiles
from contextfold.gateway.settings import GatewaySettings

VARIABLE = "CONTEXTFOLD_GATEWAY_SETTINGS"
"""How the settings come to workers, which are processes of their own."""

METRICS_VARIABLE = "CONTEXTFOLD_GATEWAY_METRICS"
"""The folder in which the workers of one run tell each other their figures."""

START_SECONDS = 30.0
BACKLOG = 2_048


def serve(settings: GatewaySettings) -> int:
    """Serve until told to end (SIGTERM, SIGINT, SIGHUP), then finish the streams. The exit code.

    With several workers SIGHUP replaces them one after the other instead, as uvicorn has it.
    """
    set_up_logging(settings.log)
    listener = listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    _say(settings, port)
    if settings.workers > 1:
        # uvicorn opens the port of its workers by itself, and where it cannot, it ends without a word that is ours.
        # Ours was opened to find that out, and which port is free.
        listener.close()
        settings = replace(settings, port=port)
        os.environ[VARIABLE] = packed(settings)
        with tempfile.TemporaryDirectory(prefix="contextfold-gateway-") as folder:
            os.environ[METRICS_VARIABLE] = folder
            uvicorn.run("contextfold.gateway.serve:app_from_environment", factory=True, **_options(settings))
        return 0
    server = uvicorn.Server(uvicorn.Config(make_app(settings, is_alone=True), **_options(settings)))

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn raises the signal again once all is finished, for the handler before its own. By default that ends the
    # process as if it had been killed, and a supervisor that told it to end would count a failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    # A terminal that is closed, or a supervisor that wants settings to be read again: by default it cuts every stream.
    # `nohup` has it ignored, and is to be left its word.
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        signal.signal(hangup, end)
    server.run(sockets=[listener])
    return 0


def app_from_environment() -> Starlette:
    """The application of one worker."""
    settings = unpacked(os.environ[VARIABLE])
    set_up_logging(settings.log)
    folder = os.environ.get(METRICS_VARIABLE)
    return make_app(settings, files=WorkerFiles(folder) if folder else None, is_alone=True)


def packed(settings: GatewaySettings) -> str:
    """For a worker of ours: it reads them from its environment."""
    return base64.b64encode(pickle.dumps(settings)).decode()


def unpacked(text: str) -> GatewaySettings:
    # From our own environment, which the parent wrote: who can change that runs code as this user anyway.
    settings: GatewaySettings = pickle.loads(base64.b64decode(text))
    return settings


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ``InputError`` that names the address."""
    # Bound here and not by uvicorn, whose own error is a line of its log and exit code 1.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's name asyncio, where uvloop is not used, sends pieces of a stream up to 40 ms late.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # Windows would let two listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        of_this_machine = not isinstance(error, socket.gaierror) and error.errno != errno.EADDRNOTAVAIL
        way_out = "choose another with --port" if of_this_machine else "give an address of this machine with --host"
        raise InputError(f"{host}:{port} cannot be listened on: {reason}; {way_out}") from None
    listener.set_inheritable(True)
    return listener


def _say(settings: GatewaySettings, port: int) -> None:
    if settings.log == "none":
        return
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}"
    if settings.log == "json":  # whatever reads it expects nothing else
        figures = {"message": "listening", "url": url, "workers": settings.workers}
        logging.getLogger("contextfold.gateway").info("listening on %s", url, extra={"figures": figures})
        return
    tell(f"contextfold gateway on {url}\n  OPENAI_BASE_URL={url}/v1\n  ANTHROPIC_BASE_URL={url}")


def tell(text: str) -> None:
    """Something for the person who started it. That they cannot be told, on a full disk or where the reader of a pipe
    has left, is no reason to serve nothing, or to end with another exit code.
    """
    with suppress(OSError, ValueError):
        try:
            place = sys.stderr.fileno()
        except (OSError, ValueError, AttributeError):  # a notebook's, or none
            print(text, file=sys.stderr, flush=True)  # noqa: T201
        else:
            # not into the stream's buffer, which the interpreter would try to write once more at its end, and fail
            sys.stderr.flush()
            os.write(place, f"{text}\n".encode(errors="backslashreplace"))


def _options(settings: GatewaySettings) -> dict[str, Any]:
    from contextfold.gateway.protocol import Http

    options: dict[str, Any] = {
        "http": partial(Http, client_seconds=settings.client_seconds),
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": 75,
        "timeout_graceful_shutdown": settings.shutdown_seconds,
        "backlog": BACKLOG,
        "h11_max_incomplete_event_size": 64 * 1024,
        "lifespan": "on",
    }
    if settings.workers > 1:
        options |= {"host": settings.host, "port": settings.port, "workers": settings.workers}
    return options


class InThread:
    """A gateway on a free loopback port, in a thread of this process. For ``contextfold run``, tests and notebooks."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.metrics = Metrics()
        self._listener = listen("127.0.0.1", settings.port)
        self.port: int = self._listener.getsockname()[1]
        self.app = make_app(settings, self.metrics)
        options = {**_options(settings), "workers": 1}
        options = {name: value for name, value in options.items() if name not in ("host", "port")}
        self._server = _Quiet(uvicorn.Config(self.app, **options))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, name="contextfold-gateway", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> InThread:
        logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
        self._thread.start()
        until = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise InputError("the gateway did not start")
            time.sleep(0.005)
        return self

    def close(self, *, at_once: bool = False) -> None:
        """Return when the thread has ended; streams that still run are finished, unless ``at_once``."""
        if at_once:
            self._server.config.timeout_graceful_shutdown = 1
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
        logging.getLogger("uvicorn.error").removeFilter(_is_unexpected)

    def __enter__(self) -> InThread:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Quiet(uvicorn.Server):
    """uvicorn that leaves the signals of its process alone."""

    def install_signal_handlers(self) -> None:
        """Signals belong to the command that is run."""


def set_up_logging(kind: str) -> None:
    """One line per request on standard error: for people, or one JSON object. ``none``: nothing at all."""
    loggers = [logging.getLogger(name) for name in ("contextfold.gateway", *_OTHERS)]
    for logger in loggers:
        for old in list(logger.handlers):
            logger.removeHandler(old)
        logger.propagate = False
    # The engine's own warnings quote what a summarizer said; whatever else listens to logs here is not to get them.
    logging.getLogger("contextfold").propagate = False
    errors = logging.getLogger("uvicorn.error")
    errors.addFilter(_is_unexpected)
    if kind == "none":
        for logger in loggers:
            logger.addHandler(logging.NullHandler())
        errors.setLevel(logging.CRITICAL)
        return
    handler = _Stderr()
    handler.setFormatter(_Json() if kind == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
    loggers[0].setLevel(logging.INFO)


_OTHERS = ("uvicorn.error", "asyncio", "aiohttp")
"""They write to the same place, in the same form: what reads JSON stumbles over a line that is none."""


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what is standard error by then: a gateway in a notebook or a test outlives the one it began with."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)  # StreamHandler's own would set a stream once and for all

    @property
    def stream(self) -> Any:
        return sys.stderr


class _Json(logging.Formatter):
    """One JSON object per line, with the figures of a request as its fields."""

    def format(self, record: logging.LogRecord) -> str:
        told = {"time": self.formatTime(record), "level": record.levelname.lower(), "logger": record.name}
        figures = getattr(record, "figures", None)
        told |= figures if figures is not None else {"message": record.getMessage()}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's log is not about an answer that was cut because the upstream's was."""
    return not (record.exc_info and isinstance(record.exc_info[1], BrokenOff))
