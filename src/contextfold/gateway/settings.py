"""Every setting of a gateway, as one value that is valid by construction."""

from __future__ import annotations

import math
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from contextfold.errors import PolicyError
from contextfold.observe import scrub
from contextfold.policy import Policy

DEFAULT_PORT = 8642
UPSTREAMS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
RESERVED = ("v1", "healthz", "metrics")
"""First words of paths that are the gateway's own, so that an upstream of that name would never be reached."""
MESSAGES_PATH = "/v1/messages"
"""Of Anthropic's alone: counts and batches are below it."""
OPENCODE_ANTHROPIC = "opencode-anthropic"
"""The upstream that opencode's files name for Anthropic: alone of its clients, opencode puts no ``/v1`` behind it."""
SAME = "same"
EXTRACTIVE = "extractive"

Usage = Literal["provider", "history"]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider, or a server that speaks like one."""

    name: str
    root: str
    """What stands before all paths but those below ``/v1``, without a slash at the end."""
    base: str
    """What stands in the place of ``/v1`` for servers of OpenAI's kind, such as ``/v1`` or ``/v1beta/openai``."""
    authorization: bytes = field(default=b"", repr=False)
    """Of a name and a password in the address, as clients send them: in place of the caller's own ``Authorization``."""

    @classmethod
    def of(cls, name: str, url: str) -> Upstream:
        """Raises ``PolicyError`` for what is no address of a server."""
        if not re.fullmatch(r"[\w.~-]+", name, re.ASCII) or name in RESERVED:
            raise PolicyError(
                f"upstream {name}={scrub(url)}: {name!r} is no name for the path /{name}/v1/...: take letters, digits, "
                f"'.', '_', '~' and '-', and none of {', '.join(RESERVED)}"
            )
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not _has_host(parts) or parts.query or parts.fragment:
            raise PolicyError(
                f"upstream {name}={scrub(url)}: give the base URL that a client would be given, "
                "such as openai=https://api.openai.com/v1"
            )
        # what is kept of an endpoint is kept under its address, and no password is
        user, at, host = parts.netloc.rpartition("@")
        origin, path = f"{parts.scheme}://{host}", parts.path.rstrip("/")
        own = b"Basic " + b64encode(":".join(map(unquote, user.partition(":")[::2])).encode()) if at else b""
        if name == "anthropic":
            return cls(name, origin + path.removesuffix("/v1"), "/v1", own)
        if name == "gemini" and not path.endswith("/openai"):  # of Google's own wire, whose versions are its clients'
            return cls(name, origin + re.sub(r"/v1(?:alpha|beta)?$", "", path), "/v1", own)
        return cls(name, origin, path or "/v1", own)

    def headers(self, given: Sequence[tuple[bytes, bytes]]) -> Sequence[tuple[bytes, bytes]]:
        """The headers of a request as they go there."""
        if not self.authorization:
            return given
        kept = [(name, value) for name, value in given if name.lower() != b"authorization"]
        return [*kept, (b"authorization", self.authorization)]

    def url(self, path: str, query: str) -> str:
        """Where a request for ``path`` (as the client sent it, escapes and all) goes."""
        one = "/" + path.lstrip("/")  # a client's base URL may end in a slash
        if self.base != "/v1" and (one == "/v1" or one.startswith("/v1/")):
            # Clients of Anthropic's kind are given the address before ``/v1``, which they add by themselves.
            adds_it = one.startswith(MESSAGES_PATH) and self.name != OPENCODE_ANTHROPIC
            path = self.base + one[0 if adds_it and not self.base.endswith("/v1") else 3 :]
        return f"{self.root}{path}{'?' if query else ''}{query}"

    def path_of(self, url: str) -> str | None:
        """The other way round: the path behind ``/NAME`` for an address here; None for one that no path stands for."""
        root, given = urlsplit(self.root), urlsplit(url)
        if _origin(given) != _origin(root) or not f"{given.path}/".startswith(f"{root.path}/"):
            return None
        path = given.path[len(root.path) :] or "/"
        if self.base != "/v1" and f"{path}/".startswith(f"{self.base}/"):
            path = "/v1" + path[len(self.base) :]
        # Not each path here has one: behind another base than /v1 that would be read as the base, and dots lead a
        # client out of /NAME.
        is_read_back = urlsplit(self.url(path, "")).path == (given.path or "/")
        if not is_read_back or {".", ".."} & {*re.split(r"[/\\]", unquote(path))}:
            return None
        query, fragment = (f"?{given.query}" if given.query else ""), (f"#{given.fragment}" if given.fragment else "")
        return path + query + fragment

    @property
    def endpoint(self) -> str:
        """What windows that refusals taught are kept under."""
        return self.root + self.base


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _has_host(parts: SplitResult) -> bool:
    try:
        # aiohttp would refuse each request to a port that there cannot be.
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What ``contextfold gateway`` was told. Raises ``PolicyError`` for what cannot be."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    upstreams: Mapping[str, str] = field(default_factory=dict)
    """Name -> base URL. ``openai``, ``anthropic`` and ``gemini`` are there by default."""
    window: int | None = None
    """Input tokens that the models take; None: looked up by the model's name, and learned from refusals."""
    store: str = ""
    """``sqlite:///FILE`` or ``postgresql+psycopg://...``; empty: a file in the user's state folder."""
    summarizer: str = EXTRACTIVE
    """``extractive``, ``same`` (the caller's own model, with the caller's credential) or ``PROVIDER:MODEL``."""
    base_url: str | None = None
    policy: Policy = field(default_factory=Policy)
    shadow: bool = False
    strict: bool = False
    usage: Usage = "provider"
    workers: int = 1
    max_body: int = 64 * 1024 * 1024
    """Bytes of a request."""
    max_requests: int = 512
    """Requests at a time, per worker."""
    first_byte_seconds: float = 600.0
    """How long an upstream may take until its answer begins; and how long its stream may be silent."""
    client_seconds: float = 60.0
    """How long a client may take for the headers of its request, between two pieces of it, or to take a piece of the
    answer."""
    shutdown_seconds: float = 60.0
    """How long streams may go on after the gateway was told to end."""
    log: Literal["text", "json", "none"] = "text"

    def __post_init__(self) -> None:
        if self.usage not in ("provider", "history"):
            raise PolicyError(f"usage is {self.usage!r}; it is provider or history")
        if self.log not in ("text", "json", "none"):
            raise PolicyError(f"log is {self.log!r}; it is text, json or none")
        if not self.host.strip():  # as of a shell variable that is not set; a socket takes it for every address
            raise PolicyError("host has no name: leave it out for this machine alone, or 0.0.0.0 for all addresses")
        if not 0 <= self.port <= 65_535:
            raise PolicyError(f"port is {self.port}; it is a number from 0 (any free one) to 65535")
        for name in ("workers", "max_body", "max_requests"):
            if getattr(self, name) < 1:
                raise PolicyError(f"{name} is {getattr(self, name)}; it is a number of at least 1")
        for name in ("first_byte_seconds", "client_seconds", "shutdown_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise PolicyError(f"{name} is {getattr(self, name)}; it is a number of seconds above 0")
        if self.workers > 1 and self.store:
            from contextfold.store.database import is_in_memory, resolved

            if is_in_memory(resolved(self.store)):
                raise PolicyError("several workers need a store that they share, not one in memory")
        for name, url in self.upstreams.items():
            Upstream.of(name, url)

    @property
    def store_url(self) -> str:
        return self.store or default_store()

    def all_upstreams(self) -> dict[str, Upstream]:
        """By name, the two defaults included."""
        return {name: Upstream.of(name, url) for name, url in {**UPSTREAMS, **self.upstreams}.items()}


def default_store() -> str:
    """A file in the user's state folder, that only the user may read."""
    return f"sqlite:///{state_folder() / 'gateway.db'}"


def state_folder() -> Path:
    """``$XDG_STATE_HOME/contextfold``, or ``~/.local/state/contextfold``; made where it is missing.

    One that cannot be made, as where a container's files are read-only, is a store that cannot be used, with which a
    gateway serves, too.
    """
    try:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    except RuntimeError as error:
        raise PolicyError("there is no home folder for a store: give --store, or set XDG_STATE_HOME") from error
    folder = Path(base) / "contextfold"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


__all__ = [
    "DEFAULT_PORT",
    "EXTRACTIVE",
    "SAME",
    "UPSTREAMS",
    "GatewaySettings",
    "Upstream",
    "default_store",
    "state_folder",
]
