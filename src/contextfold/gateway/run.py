"""``contextfold run -- COMMAND``: a gateway for the life of one process.

The base URLs are in the child's environment only; its exit code and the signals it is sent pass through; when it ends,
the gateway ends. So no client is ever left pointing at an address that is gone.

What belongs here: the child. What does not: the gateway (``serve``), and how options are read (``cli.gateway``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from contextfold.gateway import agents
from contextfold.gateway.metrics import Metrics, summary_of
from contextfold.gateway.serve import InThread, set_up_logging, tell
from contextfold.gateway.settings import GatewaySettings

FORWARDED = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""A terminal sends these to the child as well; it must not get them twice."""
NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""As shells have it."""


BASE_URLS = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "ANTHROPIC_API_BASE"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL",),
}
"""Where clients look for their provider's address: the SDKs' own variable, then those that others (litellm, LangChain)
prefer where they are set. What a user has set in any of them is where requests are meant to go.
"""
COPILOT = "copilot"
OWN_SERVERS = {COPILOT: "COPILOT_PROVIDER_BASE_URL", "grok": "GROK_BASE_URL"}
"""Clients with a variable of their own for a server of any provider, which is an upstream of its own, by this name."""


class NotExecutable(Exception):
    """The program is there, and the system does not run it."""


def run(command: Sequence[str], settings: GatewaySettings, environ: Mapping[str, str] | None = None) -> int:
    """Run a command behind a gateway; its exit code, or 128 and the number of the signal that ended it."""
    environ = dict(os.environ if environ is None else environ)
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        # as shells have it: what is named by its path is there, even where the system would not run it
        if os.path.dirname(command[0]) and os.path.exists(command[0]):
            what = (
                "is a folder" if os.path.isdir(command[0]) else "may not be executed: chmod +x, or name its interpreter"
            )
            tell(f"contextfold: {command[0]} {what}")
            return NOT_EXECUTABLE
        tell(f"contextfold: {command[0]}: no such program")
        return NOT_FOUND
    set_up_logging(settings.log)
    if agents.gemini_refuses_an_address(command, environ):
        tell(f"contextfold: {agents.GEMINI_HINT}")
    gateway = InThread(settings).start()
    try:
        words = arguments_for(command, gateway.url, environ, settings.upstreams)
        if sys.platform == "win32":
            words[0] = program  # what npm installs is a .cmd there, which it starts under its whole name alone
        child = _Child(words, child_environment(command, environ, gateway.url, settings.upstreams))
        code = child.wait()
    except NotExecutable as error:
        tell(f"contextfold: {error}")
        return NOT_EXECUTABLE
    finally:
        # The only client is gone: no stream is left that anyone reads.
        gateway.close(at_once=True)
    tell(told(gateway.metrics, settings))
    return code


def child_environment(
    command: Sequence[str], environ: Mapping[str, str], url: str, upstreams: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the child: base URLs that clients read, and no proxy for them. ``upstreams``: this run's."""
    child = {**environ, "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    for variables in BASE_URLS.values():
        child |= {other: child[variables[0]] for other in variables[1:] if other in child}
    if not any(name.startswith(("AZURE_OPENAI_", "OPENAI_API_TYPE")) for name in child):
        # LlamaIndex reads no other one; LangChain's embeddings of Azure refuse to be made beside it
        child.setdefault("OPENAI_API_BASE", child["OPENAI_BASE_URL"])
    for name in OWN_SERVERS.keys() & upstreams.keys():
        child[OWN_SERVERS[name]] = f"{url}/{name}{_behind_own(name, upstreams[name], environ)}"
    told = _told_instead(agents.OPENCODE, agents.opencode_addresses(command, environ), url, upstreams)
    config = {"provider": {name: {"options": {"baseURL": f"{base}/v1"}} for name, base in told.items()}}
    child.setdefault("OPENCODE_CONFIG_CONTENT", json.dumps(config))  # opencode's way to be told an address
    if agents.program_of(command) == agents.PI:
        told = _told_instead(agents.PI, agents.pi_addresses(environ), url, upstreams)
        child[PI_ADDRESSES] = json.dumps(
            {name: f"{base}/v1" if name == "openai" else base for name, base in told.items()}
        )
    if agents.gemini_refuses_an_address(command, environ):
        del child["GOOGLE_GEMINI_BASE_URL"]
    for name in ("NO_PROXY", "no_proxy"):
        # A client behind a company's proxy would ask that one for 127.0.0.1, Claude Code also one for HTTPS alone.
        if name in child or any(f"{scheme}_proxy" in map(str.lower, child) for scheme in ("http", "https", "all")):
            # Most clients read one of the two names alone.
            own = environ.get(name) or environ.get(name.swapcase(), "")
            # a star alone excepts all; beside another name most clients read it as a name
            child[name] = own if own.strip() == "*" else ",".join(filter(None, (own, "127.0.0.1")))
    return child


def _behind_own(name: str, upstream: str, environ: Mapping[str, str]) -> str:
    """What stands behind the upstream's name, so that a client which puts its route behind that asks as it would."""
    path = urlsplit(upstream).path.rstrip("/")
    kind = environ.get("COPILOT_PROVIDER_TYPE", "").lower() if name == COPILOT else ""
    # Azure's routes are its host's, Anthropic's begin with /v1 by themselves, and /v1 stands for all other bases
    return {"azure": path, "anthropic": ""}.get(kind, "/v1" if path else "")


def _told_instead(agent: str, said: Mapping[str, str | None], url: str, upstreams: Mapping[str, str]) -> dict[str, str]:
    """By provider, what an agent is told in place of what its own files say; without those that they name in a way
    that is not understood.
    """
    own = {name: agents.own_name(agent, name) for name in agents.CONFIGURED}
    told = {name: f"{url}/{path}" if path in upstreams else url for name, path in own.items()}
    return {name: base for name, base in told.items() if own[name] in upstreams or name not in said}


def arguments_for(
    command: Sequence[str], url: str, environ: Mapping[str, str], upstreams: Mapping[str, str]
) -> list[str]:
    """The command; with the addresses as arguments for the agents that do not take them from the environment.

    They are for this process alone, as the environment is; no file of the user's is touched. ``upstreams``: of this
    run.
    """
    name = agents.program_of(command)
    if name == agents.CODEX and not any(map(_NAMES_A_PROVIDER.match, settings_of_codex(command[1:]))):
        return [command[0], *_told_codex(command, url, environ, upstreams), *command[1:]]
    if name == agents.PI:
        return [command[0], "--extension", str(PI_EXTENSION), *command[1:]]
    return list(command)


def _told_codex(
    command: Sequence[str], url: str, environ: Mapping[str, str], upstreams: Mapping[str, str]
) -> list[str]:
    own = agents.codex_provider(command[1:], environ)
    is_own = agents.CODEX in upstreams
    if (own is None or own.url is not None) and not is_own:
        return []  # it asks a server of the user's, and is told no other one
    base = f"{url}/{agents.CODEX}/v1" if is_own else f"{url}/v1"
    if own is not None and own.name is not None:  # as it is set up, with its key and its headers
        place = f"model_providers.{own.name}"
        return ["-c", f'{place}.base_url="{base}"', "-c", f"{place}.supports_websockets=false"]
    # As Codex asks: with its own login where there is one, and not with another key beside it, which would be billed;
    # but ChatGPT's is for ChatGPT, and a server that the environment names has its key there.
    is_elsewhere = "openai" in upstreams and not is_own
    login = own.login if own is not None else None
    if is_elsewhere and (login == agents.OF_CHATGPT or environ.get("OPENAI_API_KEY")):
        login = None
    key = "requires_openai_auth=true" if login is not None else 'env_key="OPENAI_API_KEY"'
    provider = f'{{name="contextfold", base_url="{base}", {key}, wire_api="responses", supports_websockets=false}}'
    return ["-c", f"model_providers.contextfold={provider}", "-c", 'model_provider="contextfold"']


def settings_of_codex(words: Sequence[str]) -> list[str]:
    """What stands behind each ``-c`` and ``--config``. A task may be about anything, so its words are none of these."""
    found, before = [], ""
    for word in words:
        if word == "--":
            break
        if before in ("-c", "--config"):
            found.append(word)
        elif (joined := re.match(r"(?:--config=|-c=?)(?=[^=])", word)) is not None:
            found.append(word[joined.end() :])
        before = word
    return found


_NAMES_A_PROVIDER = re.compile(r"\s*model_provider")

PI_EXTENSION = Path(__file__).with_name("pi_extension.js")
PI_ADDRESSES = "CONTEXTFOLD_PI_ADDRESSES"
"""Where the extension finds, by provider, what pi is to be told."""


def settings_from(
    environ: Mapping[str, str], upstreams: Mapping[str, str], command: Sequence[str] = ()
) -> dict[str, str]:
    """The upstreams of a run: as given, else where the user's own environment points already; and those that the files
    of agents name, which come before the environment there.
    """
    found = {**agents.own_upstreams(command, environ, upstreams), **upstreams}
    for name, variables in BASE_URLS.items():
        told = next((environ[variable] for variable in variables if environ.get(variable)), None)
        if name not in found and told is not None:
            found[name] = told
    for name, variable in OWN_SERVERS.items():
        if name not in found and agents.is_address(environ.get(variable)):
            found[name] = environ[variable]
    if not {"openai", agents.CODEX} & found.keys() and agents.asks_chatgpt(command, environ):
        found[agents.CODEX] = agents.CHATGPT
    return found


def told(metrics: Metrics, settings: GatewaySettings) -> str:
    """The one line at the end: what was saved, how often it was compacted, and where to look."""
    totals = summary_of(metrics)
    saved = int(metrics.total("shadow_tokens_total") if settings.shadow else totals["tokens_saved"])
    would = "would have been saved" if settings.shadow else "saved"
    money = totals["money_saved_dollars"]
    parts = [
        f"contextfold: {int(totals['requests']):,} requests, {int(totals['compactions']):,} compactions, "
        f"{saved:,} tokens {would}"
    ]
    if money:
        parts.append(f"at least ${money:,.4f} saved")
    if native := metrics.by_label("native_total", "field"):
        parts.append(f"{int(sum(native.values())):,} requests left to the provider ({', '.join(native)})")
    if declined := int(metrics.total("websockets_declined_total")):
        parts.append(f"{declined:,} WebSockets declined (have the client ask by HTTP)")
    by_kind = metrics.by_label("failures_total", "kind")
    if failures := int(totals["failures"]):
        kinds = ", ".join(f"{int(count):,} {kind}" for kind, count in by_kind.items())
        went_on = "" if settings.strict else "all requests went on; "
        parts.append(f"{failures:,} failures of its own ({kinds}; {went_on}--log text says more)")
    from contextfold.store.database import name_of

    where = name_of(settings.store_url)
    hint = (
        ""
        if totals["requests"] or declined
        else "; if it asked a model, it took no address from OPENAI_, ANTHROPIC_ or GOOGLE_GEMINI_BASE_URL"
    )
    gone = ", but for those made while it failed" if "store" in by_kind else ""
    return ", ".join(parts) + f"; records in {where}{gone}{hint}"


class _Child:
    """The command, with the signals that this process gets passed on to it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []
        self._before = {
            number: signal.signal(number, self._forward)
            for name in FORWARDED
            if (number := getattr(signal, name, None)) is not None
        }
        try:
            self._process = subprocess.Popen(list(command), env=dict(environ))
        except OSError as error:
            self._restore()
            raise NotExecutable(f"{command[0]} cannot be run: {(error.strerror or str(error)).lower()}") from None
        for number in self._waiting:  # they came before there was a child
            self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, as a shell tells it."""
        assert self._process is not None
        try:
            code = self._process.wait()
        finally:
            self._restore()
        return code if code >= 0 else 128 - code

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._waiting.append(number)
        elif signal.Signals(number).name not in FROM_TERMINAL or not _is_from_terminal():
            self._process.send_signal(number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _is_from_terminal() -> bool:
    """Whether this process stands in front of a terminal, which then sends its signals to the child as well."""
    if sys.platform == "win32":
        return True  # a console tells Ctrl-C to all that run in it, and there is no other way to be told
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
