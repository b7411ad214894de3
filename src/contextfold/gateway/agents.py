"""Where an agent's own files of settings send its requests, which ``contextfold run`` tells it otherwise.

What a user has set there is where requests are meant to go: each such address is an upstream of its own (``CODEX``,
``own_name``), and the agent is told the gateway's path to it. Where a file says what is not understood here, the agent
is told nothing, and goes past the gateway: better than to another server than the user's.

What belongs here: reading these files. What does not: what an agent is told, and how (``run``).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextfold.errors import PolicyError
from contextfold.gateway.settings import Upstream

CODEX = "codex"
"""The upstream that is Codex's own."""
OPENCODE, PI = "opencode", "pi"
CONFIGURED = ("openai", "anthropic")
"""Providers whose addresses are looked for in the files of these two."""
OF_KEY, OF_CHATGPT = "apikey", "chatgpt"
"""As Codex writes how it was logged in."""
CHATGPT = "https://chatgpt.com/backend-api/codex"
"""Where Codex sends the requests of those who logged in with ChatGPT."""


def own_name(agent: str, provider: str) -> str:
    """The upstream that an agent's own files say for a provider."""
    return f"{agent}-{provider}"


@dataclass(frozen=True, slots=True)
class CodexProvider:
    """The provider that Codex would ask."""

    name: str | None = None
    """Its table among ``model_providers``; None: OpenAI's, which is built in."""
    url: str | None = None
    """Where it is; None: where ``run`` sends what is OpenAI's."""
    login: str | None = None
    """How Codex was logged in, where it asks with that: ``OF_KEY`` or ``OF_CHATGPT``."""


def codex_provider(words: Sequence[str], environ: Mapping[str, str]) -> CodexProvider | None:
    """From Codex's file and the profile that its arguments name; None where an address cannot be told beside it."""
    home = Path(environ.get("CODEX_HOME") or _home(environ) / ".codex")
    try:
        said = _toml(home / "config.toml")
        profile = _profile(words) or said.get("profile")
        profiles = said.get("profiles")
        if isinstance(profile, str):
            of_old = profiles.get(profile) if isinstance(profiles, dict) else None
            said = {**said, **(of_old if isinstance(of_old, dict) else {}), **_toml(home / f"{profile}.config.toml")}
    except ValueError:
        return None  # Codex says itself what is wrong with it
    name = said.get("model_provider") or "openai"
    if not isinstance(name, str):
        return None  # as above
    if name == "openai":
        url = said.get("openai_base_url")
        return CodexProvider(None, url, _login(home)) if url is None or is_address(url) else None
    tables = said.get("model_providers")
    table = tables.get(name) if isinstance(tables, dict) else None
    # Its own names for local servers have no table, and one with a dot in its name cannot be reached by ``-c``.
    if not isinstance(table, dict) or not re.fullmatch(r"[\w-]+", name):
        return None
    url = table.get("base_url")
    login = _login(home) if table.get("requires_openai_auth") is True else None
    return CodexProvider(name, url, login) if url is None or is_address(url) else None


def opencode_addresses(command: Sequence[str], environ: Mapping[str, str]) -> dict[str, str | None]:
    """By provider, what opencode's files say for it; None where that is not understood."""
    return _addresses(_opencode_files(command, environ), environ, "provider", ("options", "baseURL"))


def pi_addresses(environ: Mapping[str, str]) -> dict[str, str | None]:
    """By provider, what pi's file of models says for it; None where that is not understood."""
    agent = Path(environ.get("PI_CODING_AGENT_DIR") or _home(environ) / ".pi" / "agent")
    found = _addresses(iter([agent / "models.json"]), environ, "providers", ("baseUrl",))
    # Anthropic's SDK, which pi asks with, puts ``/v1`` behind its address; an upstream's has it in it.
    return {name: f"{url.rstrip('/')}/v1" if url and name == "anthropic" else url for name, url in found.items()}


def own_upstreams(command: Sequence[str], environ: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The upstreams that agents' own files stand for; at the address that was ``given`` for the provider, if any."""
    # opencode is told by the environment, so it may be what the command starts in the end
    found = {own_name(OPENCODE, name): url for name, url in opencode_addresses(command, environ).items()}
    if program_of(command) == PI:
        found |= {own_name(PI, name): url for name, url in pi_addresses(environ).items()}
    if program_of(command) == CODEX:
        codex = codex_provider(command[1:], environ)
        if codex is None or codex.url is not None:
            found[CODEX] = codex.url if codex is not None else None
    if url := given.get("anthropic"):
        given = {**given, "anthropic": f"{url.rstrip('/').removesuffix('/v1')}/v1"}
    known = {
        name: given.get("openai" if name == CODEX else name.rpartition("-")[2], url) for name, url in found.items()
    }
    return {name: url for name, url in known.items() if url is not None}


def asks_chatgpt(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the command is a Codex that was logged in with ChatGPT, and nothing says to ask elsewhere."""
    codex = codex_provider(command[1:], environ) if program_of(command) == CODEX else None
    return codex is not None and codex.url is None and codex.login == OF_CHATGPT


def gemini_refuses_an_address(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the command is a Gemini CLI that is told by no setting how it logs in. With an address in its environment
    it then takes for granted a kind of login that it refuses, and ends.
    """
    if "GOOGLE_GEMINI_BASE_URL" in environ or not any(map(_GEMINI_CLI.search, _program_words(command))):
        return False
    if any(environ.get(name) == "true" for name in ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")):
        return False
    return not any(map(_names_a_login, (_home(environ), Path("."))))


_STARTERS = ("npx", "node", "bunx", "pnpm", "env", "dlx", "exec")


def _program_words(command: Sequence[str]) -> Iterator[str]:
    """The program, and what a starter such as ``npx`` or ``node`` is to run. What that is told may be about anything:
    a task, or the name of a provider.
    """
    may_be_a_value = False  # of the option before it
    for word in command:
        yield word
        is_option = word.startswith("-") or "=" in word  # ``env`` takes variables
        if not (is_option or may_be_a_value or program_of([word]) in _STARTERS):
            return
        may_be_a_value = word.startswith("-")


_GEMINI_CLI = re.compile(r"(?:^|[/\\])gemini(?:-cli)?(?:@[^/\\]*|\.cmd|\.exe|\.js)?$")

GEMINI_HINT = (
    "Gemini CLI asks past the gateway, since no settings say how it logs in: for a key, put "
    '{"security": {"auth": {"selectedType": "gemini-api-key"}}} into ~/.gemini/settings.json'
)


def _names_a_login(folder: Path) -> bool:
    try:
        said = _loose_json(_text(folder / ".gemini" / "settings.json"))
    except (OSError, ValueError, RecursionError):
        return False
    for step in ("security", "auth", "selectedType"):
        said = said.get(step) if isinstance(said, dict) else None
    return bool(said)


def program_of(command: Sequence[str]) -> str:
    """The name of a command's program, by which agents are known."""
    return Path(command[0]).name.removesuffix(".cmd").removesuffix(".exe") if command else ""


# ---- files ----


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    except RuntimeError:  # of a user whom the system does not know, as in containers
        return Path(os.devnull)  # where no file is


def _text(path: Path) -> str:
    """What is in a file, as these agents read it. Raises ``OSError`` for one that is not there, and ``ValueError`` for
    what is no text, and for a pipe: it can be read once, by the agent.
    """
    if path.is_fifo():
        raise ValueError(f"{path} is a pipe")
    return path.read_text(encoding="utf-8-sig")  # editors on Windows put a mark before the first line


def _toml(path: Path) -> dict[str, Any]:
    """Raises ``ValueError`` for what is no TOML; a file that is not there says nothing."""
    try:
        return tomllib.loads(_text(path))
    except OSError:
        return {}
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None


def _login(home: Path) -> str | None:
    """How Codex was logged in: with an account of ChatGPT's, or with a key of the API; None where it was not, or keeps
    that elsewhere.
    """
    try:
        said = json.loads(_text(home / "auth.json"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not (said.get("OPENAI_API_KEY") or said.get("tokens")):
        return None
    mode = said.get("auth_mode") or (OF_KEY if said.get("OPENAI_API_KEY") else OF_CHATGPT)
    return mode if mode in (OF_KEY, OF_CHATGPT) else None


def _profile(words: Sequence[str]) -> str | None:
    found, before = None, ""
    for word in words:
        if word == "--":
            break
        if before in ("-p", "--profile"):
            found = word
        elif (joined := re.match(r"(?:--profile=|-p=?)(?=[^=-])", word)) is not None:
            found = word[joined.end() :]
        before = word
    return found


def _opencode_files(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[Path]:
    """Those that say less first."""
    base = Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config") / "opencode"
    yield from (base / name for name in ("config.json", *_OPENCODE_NAMES))
    if named := environ.get("OPENCODE_CONFIG"):
        yield Path(named)
    for folder in _folders(command):
        above = [folder, *folder.parents]
        root = next((at for at, place in enumerate(above) if os.path.exists(place / ".git")), 0)
        for place in reversed(above[: root + 1]):
            yield from (place / name for name in _OPENCODE_NAMES)
        for place in (_home(environ), *reversed(above[: root + 1])):
            yield from (place / ".opencode" / name for name in _OPENCODE_NAMES)
    if named := environ.get("OPENCODE_CONFIG_DIR"):
        yield from (Path(named) / name for name in _OPENCODE_NAMES)


def _folders(command: Sequence[str]) -> list[Path]:
    """Where a command may work: in the folder where it is started, or in one that it is given."""
    try:
        return [Path(os.path.abspath(word)) for word in (".", *command[1:]) if os.path.isdir(word)]
    except OSError:  # the folder where it is started was removed
        return []


_OPENCODE_NAMES = ("opencode.json", "opencode.jsonc")


def _addresses(
    files: Iterator[Path], environ: Mapping[str, str], key: str, path: Sequence[str]
) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for file in files:
        try:
            said = _loose_json(_text(file))
        except OSError:
            continue
        except (ValueError, RecursionError):
            return dict.fromkeys(CONFIGURED)  # what it says is not known
        for name in CONFIGURED:
            value: Any = said
            for step in (key, name, *path):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                url = _ENVIRONMENT.sub(lambda one: environ.get(one[1], ""), str(value))
                found[name] = url if is_address(url) else None
    return found


_ENVIRONMENT = re.compile(r"\{env:(\w+)\}")
_NOT_JSON = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)


def _loose_json(text: str) -> Any:
    """JSON as these agents read it: with comments, and a comma behind the last of a list. An empty one says nothing."""
    bare = _NOT_JSON.sub(lambda found: found[1] or "", text)
    bare = _NOT_JSON.sub(lambda found: found[1] or "", bare)  # a comma may have stood before a comment
    return json.loads(bare) if bare.strip() else {}


def is_address(url: object) -> bool:
    """Whether it can be an upstream."""
    try:
        Upstream.of("own", str(url))
    except (PolicyError, ValueError):
        return False
    return True
