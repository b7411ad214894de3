"""``contextfold run -- COMMAND`` and ``contextfold gateway`` as processes: environment, exit codes, signals, ends."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from emulator import ProviderServer
from tests.gateway.conftest import WINDOW
from tests.gateway.requests_made import PATHS, body_of, compact, post, turns

from contextfold import PolicyError
from contextfold.cli.app import run as run_cli
from contextfold.gateway.agents import CHATGPT
from contextfold.gateway.run import PI_ADDRESSES, arguments_for, child_environment, settings_from
from contextfold.gateway.serve import packed, set_up_logging, unpacked
from contextfold.gateway.settings import GatewaySettings, Upstream
from contextfold.policy import Policy
from contextfold.summary.models import SummaryModel
from effort import crossed

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "contextfold"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    names = ("PATH", "LANG", "HOME", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), kept.get("PYTHONPATH", "")])
    return {**kept, "PYTHONPATH": path, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200", **more}


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = environment(folder, **more)
    return subprocess.run([*COMMAND, *words], env=env, capture_output=True, text=True, timeout=60, cwd=folder)


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def started(folder: Path, words: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    # Tests that run under ``nohup`` have this signal ignored, and so would the process.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            [*COMMAND, *words],
            env=env or environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_child_gets_the_addresses_and_nothing_is_left_behind(tmp_path: Path) -> None:
    code = "import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k.endswith('BASE_URL')}))"
    done = run(tmp_path, "run", *python(code))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", told["OPENAI_BASE_URL"])
    assert told["ANTHROPIC_BASE_URL"] + "/v1" == told["OPENAI_BASE_URL"]
    assert told["GOOGLE_GEMINI_BASE_URL"] == told["ANTHROPIC_BASE_URL"]
    port = int(told["ANTHROPIC_BASE_URL"].rsplit(":", 1)[1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_state_folder_that_cannot_be_made_keeps_no_command_from_running(tmp_path: Path) -> None:
    """As in a container whose files are read-only: it is a store that cannot be used."""
    (tmp_path / "file").touch()
    done = run(tmp_path, "run", *python("print('ran')"), XDG_STATE_HOME=str(tmp_path / "file" / "state"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.startswith("contextfold: 0 requests, 0 compactions")
    assert done.stderr.count("\n") == 1


@crossed(code=(77, 0), quick=1)
def test_the_exit_code_is_the_childs(tmp_path: Path, code: int) -> None:
    done = run(tmp_path, "run", *python(f"raise SystemExit({code})"))
    assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("contextfold: 0 requests, 0 compactions, 0 tokens saved; records in sqlite:///")


@pytest.mark.strict
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_standard_error_that_takes_nothing_changes_neither_exit_code_nor_service(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full, ProviderServer(default_window=WINDOW) as provider:
        given: dict[str, Any] = {"env": environment(tmp_path), "cwd": tmp_path, "stderr": full}
        assert subprocess.run([*COMMAND, "run", *python("raise SystemExit(7)")], **given).returncode == 7
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["gateway", "--port", str(port), "--upstream", f"openai={provider.openai_url}"]
        server = subprocess.Popen([*COMMAND, *words], **given)
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}")
            raw = compact(body_of("openai-chat", list(turns("openai-chat", 1))[-1]))
            assert post(f"http://127.0.0.1:{port}", PATHS["openai-chat"], raw).status == 200
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)


def test_a_program_that_is_not_there_is_said_as_shells_do(tmp_path: Path) -> None:
    done = run(tmp_path, "run", "--", "no-such-program")
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_a_child_that_a_signal_ended_is_told_as_shells_do(tmp_path: Path) -> None:
    done = run(tmp_path, "run", *python("import os; os.kill(os.getpid(), 9)"))
    assert done.returncode == 128 + 9


@pytest.mark.strict
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_child_that_a_passed_signal_ended_is_told_by_128_and_its_number(tmp_path: Path, name: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    code = "import os, time; print(os.environ['OPENAI_BASE_URL'], flush=True); time.sleep(30)"
    child = started(tmp_path, ["run", *python(code)], environment(tmp_path, TMPDIR=str(temporary)))
    assert child.stdout is not None
    port = int(child.stdout.readline().strip().removesuffix("/v1").rsplit(":", 1)[1])
    child.send_signal(getattr(signal, name))
    _, errors = child.communicate(timeout=20)
    assert child.returncode == 128 + getattr(signal, name)
    assert errors.startswith("contextfold: 0 requests")
    assert not list(temporary.iterdir())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


@pytest.mark.strict
def test_a_file_that_cannot_be_run_is_said_as_shells_do(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF and nothing more")
    broken.chmod(0o755)
    done = run(tmp_path, "run", "--", str(broken))
    assert done.returncode == 126
    assert "cannot be run" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.strict
def test_what_is_there_and_is_no_program_is_said_as_shells_do(tmp_path: Path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text("print(1)")
    for path, told in [(plain, "may not be executed: chmod +x"), (tmp_path, "is a folder")]:
        done = run(tmp_path, "run", "--", str(path))
        assert (done.returncode, done.stderr.count("\n")) == (126, 1)
        assert told in done.stderr


@pytest.mark.strict
@pytest.mark.parametrize("strict", [False, True])
def test_a_run_says_what_of_ours_failed_what_became_of_it_and_where_to_read_more(tmp_path: Path, strict: bool) -> None:
    agent = """
import os
from tests.gateway.requests_made import *
for messages in turns("openai-chat", 12):
    post(os.environ["ANTHROPIC_BASE_URL"], PATHS["openai-chat"], compact(body_of("openai-chat", messages)))
"""
    with ProviderServer(default_window=WINDOW) as provider:
        words = ["--window", str(WINDOW), "--upstream", f"openai={provider.openai_url}"]
        words += ["--strict"] if strict else []
        done = run(tmp_path, "run", "--store", f"sqlite:///{tmp_path}", *words, *python(agent))
    assert done.returncode == 0, done.stderr
    went_on = "" if strict else "all requests went on; "
    assert re.search(rf"\d+ failures of its own \(\d+ store; {went_on}--log text says more\)", done.stderr)
    assert done.stderr.rstrip().endswith(", but for those made while it failed")


@pytest.mark.strict
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signals_are_passed_on(tmp_path: Path, name: str) -> None:
    code = f"""
import signal, sys, time
signal.signal(signal.{name}, lambda *_: sys.exit(42))
print("ready", flush=True)
time.sleep(30)
"""
    child = started(tmp_path, ["run", *python(code)])
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(getattr(signal, name))
    child.communicate(timeout=20)
    assert child.returncode == 42


@pytest.mark.strict
def test_options_of_the_child_are_its_own(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    done = run(tmp_path, "run", "--window", "9000", *python(code), "--window", "5", "-x", "--", "y")
    assert done.stdout.strip() == "['--window', '5', '-x', '--', 'y']"
    without = run(tmp_path, "run", sys.executable, "-c", code, "--port", "z")
    assert without.stdout.strip() == "['--port', 'z']"


def test_a_run_keeps_an_agent_inside_its_window_and_says_what_it_saved(tmp_path: Path) -> None:
    agent = """
import os, sys
from tests.gateway.requests_made import *
url = os.environ["ANTHROPIC_BASE_URL"]
for messages in turns("openai-chat", 30):
    response = post(url, PATHS["openai-chat"], compact(body_of("openai-chat", messages, model="gpt-5")))
    if response.status != 200:
        sys.exit(response.body.decode())
"""
    with ProviderServer(default_window=WINDOW) as provider:
        address = f"openai={provider.openai_url}"
        alone = subprocess.run(
            [sys.executable, "-c", agent],
            env=environment(tmp_path, ANTHROPIC_BASE_URL=provider.url),
            capture_output=True,
            text=True,
            timeout=60,
        )
        inside = run(tmp_path, "run", "--window", str(WINDOW), "--upstream", address, *python(agent))
    assert alone.returncode == 1
    assert "context_length_exceeded" in alone.stderr
    assert inside.returncode == 0, inside.stderr
    assert re.search(
        r"contextfold: 31 requests, [1-9]\d* compactions, [\d,]+ tokens saved, at least \$\d", inside.stderr
    )


def test_a_run_says_how_many_requests_were_left_to_the_provider_and_by_what(tmp_path: Path) -> None:
    """Nothing was compacted, and nothing said why."""
    agent = """
import os
from tests.gateway.requests_made import *
for fields in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"conversation": "conv_1"}):
    body = body_of("openai-responses", [{"role": "user", "content": "word " * 9_000}], **fields)
    post(os.environ["ANTHROPIC_BASE_URL"], PATHS["openai-responses"], compact(body))
"""
    with ProviderServer(default_window=WINDOW) as provider:
        address = f"openai={provider.openai_url}"
        done = run(tmp_path, "run", "--window", str(WINDOW), "--upstream", address, *python(agent))
    left = "3 requests left to the provider (conversation, previous_response_id)"
    assert f"3 requests, 0 compactions, 0 tokens saved, {left}; records in" in done.stderr


HELD = """
import openai
client = openai.OpenAI(api_key="k", max_retries=0)
before = None
for turn in range(4):
    asked = {"model": "m", "input": f"Turn {turn}.", "previous_response_id": before}
    try:
        before = client.responses.create(**asked).id
    except openai.BadRequestError as error:
        assert "not found" in str(error), error
"""
"""An agent whose provider holds its conversation, as those of Microsoft's Agent Framework do by default: each request
has what is new alone. The emulated provider holds none.
"""


def test_requests_of_a_conversation_that_the_provider_holds_are_told_though_each_is_short(tmp_path: Path) -> None:
    """They were passed on as small ones, and a run of them said *0 compactions* and not why."""
    with ProviderServer(default_window=WINDOW) as provider:
        address = f"openai={provider.openai_url}"
        done = run(tmp_path, "run", "--window", str(WINDOW), "--upstream", address, *python(HELD))
    assert done.returncode == 0, done.stderr
    assert "4 requests, 0 compactions, 0 tokens saved, 3 requests left to the provider (previous_response_id)" in (
        done.stderr
    )


def test_a_run_says_that_a_client_asked_by_websocket_and_was_declined(tmp_path: Path) -> None:
    """Voice agents ask OpenAI's Responses by WebSocket. It was said of one that it *took no address*, which it had."""
    agent = """
import os, urllib.error, urllib.request
offer = {"Upgrade": "websocket", "Sec-WebSocket-Key": "eA==", "Sec-WebSocket-Version": "13"}
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/responses", headers=offer))
except urllib.error.HTTPError as error:
    assert error.code == 426
"""
    done = run(tmp_path, "run", *python(agent))
    assert done.returncode == 0, done.stderr
    assert "1 WebSockets declined (have the client ask by HTTP); records in" in done.stderr
    assert "took no address" not in done.stderr


def test_the_users_own_addresses_are_the_upstreams_of_a_run() -> None:
    environ = {"OPENAI_BASE_URL": "http://localhost:4000/v1"}
    assert settings_from(environ, {}) == {"openai": "http://localhost:4000/v1"}
    assert settings_from(environ, {"openai": "http://other/v1"}) == {"openai": "http://other/v1"}
    assert settings_from({"GOOGLE_GEMINI_BASE_URL": "http://g"}, {}) == {"gemini": "http://g"}
    settings = GatewaySettings(upstreams=settings_from(environ, {}))
    url = settings.all_upstreams()["openai"].url("/v1/chat/completions", "a=1")
    assert url == "http://localhost:4000/v1/chat/completions?a=1"


@pytest.mark.parametrize(
    ("variable", "name"),
    [("OPENAI_API_BASE", "openai"), ("ANTHROPIC_API_URL", "anthropic"), ("ANTHROPIC_API_BASE", "anthropic")],
)
def test_an_address_in_another_variable_that_clients_read_is_the_upstream_too(variable: str, name: str) -> None:
    environ = {variable: "http://localhost:4000"}
    assert settings_from(environ, {}) == {name: "http://localhost:4000"}
    child = child_environment(["true"], environ, "http://127.0.0.1:9", {})
    assert child[variable] == child[f"{name.upper()}_BASE_URL"]
    both = {f"{name.upper()}_BASE_URL": "http://first", **environ}
    assert settings_from(both, {}) == {name: "http://first"}
    assert settings_from(environ, {name: "http://given"}) == {name: "http://given"}


@pytest.mark.parametrize("of_azure", ["", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_TYPE"])
def test_a_client_that_reads_openai_api_base_alone_is_told_too_but_not_beside_azures(of_azure: str) -> None:
    """LlamaIndex asked OpenAI, past the gateway; LangChain's embeddings of Azure refuse the variable."""
    child = child_environment(["true"], {of_azure: "x"} if of_azure else {}, "http://127.0.0.1:9", {})
    assert child.get("OPENAI_API_BASE") == (None if of_azure else "http://127.0.0.1:9/v1")


OWN_SERVERS = [
    ("COPILOT_PROVIDER_BASE_URL", "", "", "/chat/completions"),
    ("COPILOT_PROVIDER_BASE_URL", "", "/v1", "/responses"),
    ("COPILOT_PROVIDER_BASE_URL", "openai", "/openai/v1/", "/chat/completions"),
    ("COPILOT_PROVIDER_BASE_URL", "openai", "/v1/proxy", "/chat/completions"),
    ("COPILOT_PROVIDER_BASE_URL", "azure", "", "/openai/v1/responses"),
    ("COPILOT_PROVIDER_BASE_URL", "azure", "/api/projects/p", "/openai/v1/chat/completions"),
    ("COPILOT_PROVIDER_BASE_URL", "anthropic", "", "/v1/messages"),
    ("COPILOT_PROVIDER_BASE_URL", "Anthropic", "/api/anthropic", "/v1/messages"),
    ("COPILOT_PROVIDER_BASE_URL", "openai", "/", "/chat/completions"),
    ("GROK_BASE_URL", "", "/v1", "/chat/completions"),
    ("GROK_BASE_URL", "anthropic", "/v1", "/chat/completions"),  # the kind is Copilot's, and says nothing of Grok
]


@pytest.mark.parametrize(("variable", "kind", "path", "behind"), OWN_SERVERS)
def test_a_server_that_a_clients_own_variable_names_is_asked_through_the_gateway(
    variable: str, kind: str, path: str, behind: str
) -> None:
    """Copilot's and Grok's command lines read no other one: they asked that server past the gateway."""
    url, gateway = f"http://own:1{path}", "http://127.0.0.1:9"
    environ = {variable: url, **({"COPILOT_PROVIDER_TYPE": kind} if kind else {})}
    found = settings_from(environ, {})
    told = child_environment(["copilot"], environ, gateway, found)[variable]
    name, at, asked = told.removeprefix(f"{gateway}/").partition("/")
    assert Upstream.of(name, found[name]).url(f"{at}{asked}{behind}", "") == url.rstrip("/") + behind
    given = settings_from(environ, {name: "http://given"})
    assert given == {name: "http://given"}
    assert child_environment(["copilot"], environ, gateway, given)[variable].startswith(f"{gateway}/{name}")
    for nothing in ({}, {variable: "no address"}):
        assert settings_from(nothing, {}) == {}
        assert child_environment(["copilot"], nothing, gateway, {}).get(variable) == nothing.get(variable)


@pytest.mark.parametrize(
    ("kind", "base", "behind"), [("", "/v1", "/chat/completions"), ("anthropic", "", "/v1/messages")]
)
def test_a_conversation_with_a_server_of_the_clients_own_variable_is_kept_inside_the_window(
    tmp_path: Path, kind: str, base: str, behind: str
) -> None:
    agent = f"""
import json, os, urllib.request
messages = []
for turn in range(12):
    messages += [{{"role": "user", "content": f"turn {{turn}} " + "some words " * 300}}]
    body = json.dumps({{"model": "m", "max_tokens": 50, "messages": messages}}).encode()
    url = os.environ["COPILOT_PROVIDER_BASE_URL"] + {behind!r}
    urllib.request.urlopen(urllib.request.Request(url, body, {{"content-type": "application/json"}})).read()
    messages += [{{"role": "assistant", "content": f"answer {{turn}}"}}]
"""
    with ProviderServer(default_window=5000) as provider:
        own = {"COPILOT_PROVIDER_BASE_URL": provider.url + base, "COPILOT_PROVIDER_TYPE": kind or "openai"}
        done = run(tmp_path, "run", "--window", "5000", *python(agent), **own)
        assert done.returncode == 0, done.stderr
        assert "contextfold: 12 requests" in done.stderr
        assert {request.path for request in provider.requests} == {base + behind}


GEMINI_COMMANDS = [
    (["gemini", "-p", "Count."], {}, None, False),
    (["npx", "-y", "@google/gemini-cli@latest"], {}, None, False),
    (["gemini"], {}, '{"security": {"auth": {}}}', False),
    (["gemini"], {}, '{"security": {"auth": {"selectedType": "gemini-api-key",},}} // a comment', True),
    (["gemini"], {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, None, True),
    (["gemini"], {"GOOGLE_GEMINI_BASE_URL": "http://own"}, None, True),
    (["python", "gemini"], {}, None, True),
    (["node", "node_modules/.bin/gemini"], {}, None, False),
    (["node", "--import", "tsx", "bundle/gemini.js", "-p", "Count."], {}, None, False),
    (["npx", "-p", "@google/gemini-cli", "gemini"], {}, None, False),
    (["pnpm", "dlx", "@google/gemini-cli"], {}, None, False),
    (["env", "NO_COLOR=1", "gemini"], {}, None, False),
    (["node", "agent.mjs", "gemini"], {}, None, True),
    (["npx", "-y", "tsx@4", "agent.ts", "--provider", "gemini"], {}, None, True),
    (["pnpm", "exec", "tsx", "agent.ts", "gemini"], {}, None, True),
    (["env", "PROVIDER=gemini", "python", "agent.py", "gemini"], {}, None, True),
    (["claude", "-p", "Run gemini"], {}, None, True),
]


@pytest.mark.parametrize(("command", "environ", "settings", "is_told"), GEMINI_COMMANDS)
def test_gemini_cli_is_told_an_address_where_it_knows_how_it_logs_in(
    tmp_path: Path, command: list[str], environ: dict[str, str], settings: str | None, is_told: bool
) -> None:
    """Told one, with nothing in its settings, it ends with *Invalid auth method selected*, key or no key."""
    if settings is not None:
        (tmp_path / ".gemini").mkdir()
        (tmp_path / ".gemini" / "settings.json").write_text(settings)
    environ = {"HOME": str(tmp_path), "GEMINI_API_KEY": "k", **environ}
    child = child_environment(command, environ, "http://127.0.0.1:9", {})
    assert child.get("GOOGLE_GEMINI_BASE_URL") == ("http://127.0.0.1:9" if is_told else None)


def test_a_run_says_what_gemini_cli_wants_to_be_told(tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    done = run(tmp_path, "run", "--", str(program), "-p", "Count.")
    assert done.returncode == 0
    assert "Gemini CLI asks past the gateway" in done.stderr
    assert '"selectedType": "gemini-api-key"' in done.stderr


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_users_is_not_asked_for_the_gateway(proxy: str) -> None:
    """Claude Code asks the one for HTTPS for every address."""
    environ = {proxy: "http://proxy:1", "OPENAI_API_BASE": "x"}
    child = child_environment(["true"], environ, "http://127.0.0.1:9", {})
    assert child["NO_PROXY"] == child["no_proxy"] == "127.0.0.1"
    environ["NO_PROXY"] = "inside.test"
    child = child_environment(["true"], environ, "http://127.0.0.1:9", {})
    assert child["NO_PROXY"] == child["no_proxy"] == "inside.test,127.0.0.1"
    child = child_environment(["agent"], {**environ, "NO_PROXY": "*"}, "http://127.0.0.1:9", {})
    assert child["NO_PROXY"] == child["no_proxy"] == "*"
    assert child["OPENAI_API_BASE"] == "http://127.0.0.1:9/v1"


def test_agents_that_read_no_environment_are_told_by_arguments(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}

    def told_to(*words: str) -> list[str]:
        return arguments_for(words, "http://h", environ, {})

    assert told_to("claude", "-p", "x") == ["claude", "-p", "x"]
    codex = told_to("/usr/bin/codex", "exec", "x")
    assert codex[0] == "/usr/bin/codex"
    assert codex[-2:] == ["exec", "x"]
    assert 'base_url="http://h/v1"' in " ".join(codex)
    for own in (
        ["-c", "model_provider=mine"],
        ["--config", "model_provider=mine"],
        ["exec", "--config=model_provider=m"],
    ):
        assert told_to("codex", *own, "x") == ["codex", *own, "x"]
    for task in (
        ["exec", "rename model_provider"],
        ["-c", "model=m", "-C", "src", "model_provider"],
        ["--", "-c", "model_provider"],
    ):
        told = told_to("codex", *task)
        assert told[-len(task) :] == task
        assert 'model_provider="contextfold"' in told
    pi = told_to("pi", "-p", "x")
    assert pi[:2] + pi[3:] == ["pi", "--extension", "-p", "x"]
    assert "ANTHROPIC_BASE_URL" in Path(pi[2]).read_text(encoding="utf-8")


CODEX_MINE = """
[model_providers.mine]
name = "mine"
base_url = "http://own:1/v1"
env_key = "MINE"
"""


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ([], {"config.toml": f'model_provider = "mine"\n{CODEX_MINE}'}),
        (["--profile", "work"], {"config.toml": CODEX_MINE, "work.config.toml": 'model_provider = "mine"'}),
        (["-p=work"], {"config.toml": f'{CODEX_MINE}\n[profiles.work]\nmodel_provider = "mine"'}),
        ([], {"config.toml": f'profile = "work"\n{CODEX_MINE}\n[profiles.work]\nmodel_provider = "mine"'}),
        ([], {"config.toml": 'openai_base_url = "http://own:1/v1"'}),
    ],
)
def test_what_codex_is_set_up_to_send_to_a_server_of_the_users_goes_there(
    tmp_path: Path, words: list[str], files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    environ = {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path), "OPENAI_BASE_URL": "http://other/v1"}
    command = ["codex", "exec", *words, "x"]
    upstreams = settings_from(environ, {}, command)
    assert upstreams == {"codex": "http://own:1/v1", "openai": "http://other/v1"}
    told = arguments_for(command, "http://h", environ, upstreams)
    assert told[-len(command) + 1 :] == command[1:]
    assert "http://h/codex/v1" in " ".join(told)
    if any("mine" in text for text in files.values()):  # with its own key and headers, and no provider of ours
        assert told[1:5] == [
            "-c",
            'model_providers.mine.base_url="http://h/codex/v1"',
            "-c",
            "model_providers.mine.supports_websockets=false",
        ]
    given = {"openai": "http://given/v1"}
    assert settings_from(environ, given, command) == {"codex": "http://given/v1", **given}


@pytest.mark.parametrize(
    "text",
    [
        'model_provider = "ollama"',
        'model_provider = "my.own"\n[model_providers."my.own"]\nbase_url = "http://own:1/v1"',
        'model_provider = "mine"\n[model_providers.mine]\nbase_url = "own:1"',
        "model_provider = ",
        *(f"model_provider = {value}\n{CODEX_MINE}" for value in ('["mine"]', "{ name = 1 }", "1")),
    ],
)
def test_a_server_that_codex_cannot_be_told_the_way_to_is_left_to_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    environ = {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = ["codex", "exec", "x"]
    assert settings_from(environ, {}, command) == {}
    assert arguments_for(command, "http://h", environ, {}) == command
    given = settings_from(environ, {"openai": "http://given/v1"}, command)
    assert "http://h/codex/v1" in " ".join(arguments_for(command, "http://h", environ, given))


@pytest.mark.parametrize(
    ("login", "upstream"),
    [
        ({"auth_mode": "apikey", "OPENAI_API_KEY": "k"}, None),
        ({"OPENAI_API_KEY": "k"}, None),
        ({"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": {"access_token": "t"}}, CHATGPT),
        ({"tokens": {"access_token": "t"}}, CHATGPT),
    ],
)
def test_a_codex_that_was_logged_in_asks_with_its_login(tmp_path: Path, login: Any, upstream: str | None) -> None:
    (tmp_path / "auth.json").write_text(json.dumps(login), encoding="utf-8")
    environ = {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path), "OPENAI_API_KEY": "of something else"}
    upstreams = settings_from(environ, {}, ["codex", "x"])
    assert upstreams == ({"codex": upstream} if upstream else {})
    told = " ".join(arguments_for(["codex", "x"], "http://h", environ, upstreams))
    assert "requires_openai_auth=true" in told
    assert "env_key" not in told
    assert ("http://h/codex/v1" if upstream else "http://h/v1") in told
    assert Upstream.of("codex", CHATGPT).url("/v1/responses", "") == f"{CHATGPT}/responses"
    # a server that was named for this run, and has its key in the environment, gets neither
    given = {"openai": "http://given/v1"}
    assert settings_from(environ, given, ["codex", "x"]) == given
    assert 'env_key="OPENAI_API_KEY"' in " ".join(arguments_for(["codex", "x"], "http://h", environ, given))
    assert settings_from({**environ, "OPENAI_BASE_URL": "http://given/v1"}, {}, ["codex", "x"]) == given
    (tmp_path / "config.toml").write_text(
        'model_provider = "m"\n[model_providers.m]\nrequires_openai_auth = true', encoding="utf-8"
    )
    assert settings_from(environ, {}, ["codex", "x"]) == upstreams
    for odd in ("{", "[]", "{}", '{"auth_mode": "other", "tokens": {"x": 1}}'):
        (tmp_path / "auth.json").write_text(odd, encoding="utf-8")
        (tmp_path / "config.toml").write_text("", encoding="utf-8")
        assert 'env_key="OPENAI_API_KEY"' in " ".join(arguments_for(["codex", "x"], "http://h", environ, {}))


OPENCODE_MINE = """{
  // the company's "gateway"
  "provider": {"anthropic": {"options": {"baseURL": "{env:MINE}//own/v1", /* and */ "apiKey": "k",}}},
}"""


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("home/.config/opencode/opencode.jsonc", ["opencode", "run", "x"]),
        ("work/opencode.json", ["sh", "-c", "opencode run x"]),
        ("work/.opencode/opencode.json", ["opencode"]),
        ("else/opencode.json", ["opencode", "../../else"]),
    ],
)
def test_what_opencode_is_set_up_to_send_to_a_server_of_the_users_goes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, words: list[str]
) -> None:
    folder = tmp_path / "work" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()
    monkeypatch.chdir(folder)
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    environ = {"HOME": str(tmp_path / "home"), "MINE": "http:", "ANTHROPIC_BASE_URL": "http://other"}

    def told(given: Mapping[str, str]) -> Any:
        child = child_environment(words, environ, "http://h", settings_from(environ, given, words))
        providers = json.loads(child["OPENCODE_CONFIG_CONTENT"])["provider"]
        return {name: entry["options"]["baseURL"] for name, entry in providers.items()}

    file.write_text(OPENCODE_MINE, encoding="utf-8")
    found = settings_from(environ, {}, words)
    assert found == {"opencode-anthropic": "http://own/v1", "anthropic": "http://other"}
    assert (
        Upstream.of("opencode-anthropic", found["opencode-anthropic"])
        .url("/v1/messages", "")
        .startswith("http://own/v1/messages")
    )
    assert told({}) == {"openai": "http://h/v1", "anthropic": "http://h/opencode-anthropic/v1"}
    # what cannot be understood is no reason to send it elsewhere
    file.write_text('{"provider": {"anthropic": {"options": {"baseURL": "{file:url.txt}"}}}}', encoding="utf-8")
    assert told({}) == {"openai": "http://h/v1"}
    file.write_text('{"provider": "' + "/*" * 50_000, encoding="utf-8")
    assert told({}) == {}
    assert told({"anthropic": "http://given"}) == {"anthropic": "http://h/opencode-anthropic/v1"}


@pytest.mark.parametrize(
    ("agent", "place", "fields", "behind"),
    [
        ("opencode", ".config/opencode/opencode.json", ("provider", "options", "baseURL"), "/messages"),
        ("pi", ".pi/agent/models.json", ("providers", None, "baseUrl"), "/v1/messages"),
    ],
)
@pytest.mark.parametrize("own", ["http://own/p", "http://own/p/", "http://own/p/v1"])
@pytest.mark.parametrize("given", ["", "http://given", "http://given/p", "http://given/p/v1"])
def test_an_agents_conversations_with_anthropic_go_where_they_would_without_a_gateway(
    tmp_path: Path, agent: str, place: str, fields: tuple[str, str | None, str], behind: str, own: str, given: str
) -> None:
    """Unless the run was given another address for them, which is as in ``ANTHROPIC_BASE_URL``."""
    providers, options, address = fields
    said = {address: own} if options is None else {options: {address: own}}
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({providers: {"anthropic": said}}), encoding="utf-8")
    name = f"{agent}-anthropic"
    found = settings_from({"HOME": str(tmp_path)}, {"anthropic": given} if given else {}, [agent])
    alone = f"{given.removesuffix('/v1')}/v1/messages" if given else own.rstrip("/") + behind
    assert Upstream.of(name, found[name]).url("/v1/messages", "") == alone


def test_a_folder_that_was_removed_is_no_reason_not_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    environ = {"HOME": str(tmp_path)}
    assert settings_from(environ, {}, ["opencode"]) == {}
    assert child_environment(["opencode"], environ, "http://h", {})["ANTHROPIC_BASE_URL"] == "http://h"


@pytest.mark.parametrize(
    ("words", "file", "text"),
    [
        (["opencode"], ".config/opencode/opencode.json", ""),
        (["opencode"], ".config/opencode/opencode.jsonc", "// nothing yet\n"),
        (["opencode"], ".config/opencode/opencode.json", "\ufeff{}"),
        (["pi"], ".pi/agent/models.json", "\ufeff{}"),
        (["codex", "x"], ".codex/config.toml", '\ufeffmodel = "m"'),
    ],
)
def test_a_file_of_an_agents_that_names_no_server_changes_nothing_of_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], file: str, text: str
) -> None:
    """An empty one, and one with the mark that editors on Windows put before the first line."""
    monkeypatch.chdir(tmp_path)
    environ = {"HOME": str(tmp_path)}

    def told() -> Any:
        found = settings_from(environ, {}, words)
        child = child_environment(words, environ, "http://h", found)
        return found, arguments_for(words, "http://h", environ, found), child

    without = told()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert told() == without


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names there")
def test_a_pipe_is_left_to_the_agent_that_is_to_read_it(tmp_path: Path) -> None:
    """What comes through one can be read once, and reading waits for whoever writes."""
    os.mkfifo(tmp_path / "pipe")
    environ = {"HOME": str(tmp_path), "OPENCODE_CONFIG": str(tmp_path / "pipe")}
    child = child_environment(["opencode"], environ, "http://h", settings_from(environ, {}, ["opencode"]))
    assert json.loads(child["OPENCODE_CONFIG_CONTENT"]) == {"provider": {}}


def test_a_user_without_a_home_is_no_reason_not_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers have it that run under a number of their own."""

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for words in (["true"], ["codex", "x"], ["pi"]):
        assert settings_from({}, {}, words) == {}
        assert child_environment(words, {}, "http://h", {})["ANTHROPIC_BASE_URL"] == "http://h"
        assert arguments_for(words, "http://h", {}, {})[0] == words[0]


def test_what_pi_is_set_up_to_send_to_a_server_of_the_users_goes_there(tmp_path: Path) -> None:
    models = tmp_path / ".pi" / "agent" / "models.json"
    models.parent.mkdir(parents=True)
    entries = {"anthropic": {"baseUrl": "http://own:1/claude"}, "openai": {"baseUrl": "http://own:2/v1"}}
    models.write_text(json.dumps({"providers": entries}), encoding="utf-8")
    environ = {"HOME": str(tmp_path)}
    found = settings_from(environ, {}, ["pi", "-p", "x"])
    child = child_environment(["pi", "-p", "x"], environ, "http://h", found)
    told = json.loads(child[PI_ADDRESSES])
    assert told == {"openai": "http://h/pi-openai/v1", "anthropic": "http://h/pi-anthropic"}
    sent = {name: Upstream.of(name, url) for name, url in found.items()}
    assert sent["pi-anthropic"].url("/v1/messages", "") == "http://own:1/claude/v1/messages"
    assert sent["pi-openai"].url("/v1/responses", "") == "http://own:2/v1/responses"


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("http://h:1/openai/v1/", "http://h:1/openai/v1/chat/completions"),
        ("https://g/v1beta/openai", "https://g/v1beta/openai/chat/completions"),
    ],
)
def test_an_upstream_is_the_base_url_that_a_client_would_be_given(url: str, sent: str) -> None:
    assert Upstream.of("openai", url).url("/v1/chat/completions", "") == sent


@pytest.mark.parametrize(
    ("name", "url", "path", "sent"),
    [
        # what the docs of these services give their clients, and what the clients make of it behind ``/NAME``
        ("groq", "https://g/openai/v1", "/v1/chat/completions", "https://g/openai/v1/chat/completions"),
        ("groq", "https://g/openai/v1", "/openai/v1/chat/completions", "https://g/openai/v1/chat/completions"),
        ("router", "https://r/api/v1", "/api/v1/chat/completions", "https://r/api/v1/chat/completions"),
        ("router", "https://r/api/v1", "/v1/messages", "https://r/api/v1/messages"),
        ("azure", "https://a/openai/v1", "/openai/deployments/g/responses", "https://a/openai/deployments/g/responses"),
        ("zhipu", "https://z/api/paas/v4", "/v1/chat/completions", "https://z/api/paas/v4/chat/completions"),
        ("zhipu", "https://z/api/anthropic", "/v1/messages", "https://z/api/anthropic/v1/messages"),
        (
            "zhipu",
            "https://z/api/anthropic",
            "/v1/messages/count_tokens",
            "https://z/api/anthropic/v1/messages/count_tokens",
        ),
        ("anthropic", "https://z/api/anthropic", "/v1/models", "https://z/api/anthropic/v1/models"),
        ("anthropic", "https://z/api/anthropic/v1/", "/v1/messages", "https://z/api/anthropic/v1/messages"),
        ("anthropic", "https://z/api/anthropic", "/api/hello", "https://z/api/anthropic/api/hello"),
        ("deepseek", "https://d", "/beta/chat/completions", "https://d/beta/chat/completions"),
        ("deepseek", "https://d/beta", "/v1/chat/completions", "https://d/beta/chat/completions"),
        ("ollama", "http://o/v1", "/api/chat", "http://o/api/chat"),
        ("ollama", "http://o/p/v1", "//v1/chat/completions", "http://o/p/v1/chat/completions"),
        ("ollama", "http://o/p", "//v1/messages", "http://o/p/v1/messages"),
        ("opencode-anthropic", "https://z/p", "/v1/messages", "https://z/p/messages"),
        ("opencode-anthropic", "https://z/p/v1", "/v1/messages", "https://z/p/v1/messages"),
    ],
)
def test_behind_its_name_v1_is_the_base_url_of_an_upstream_and_all_else_its_hosts(
    name: str, url: str, path: str, sent: str
) -> None:
    assert Upstream.of(name, url).url(path, "") == sent


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--window", "none", "--", "true"],
        ["run", "--upstream", "openai", "--", "true"],
        ["run", "--upstream", "openai=ftp://x", "--", "true"],
        ["run", "--upstream", "openai=http://a", "--upstream", "openai=http://b", "--", "true"],
        ["run", "--host", "0.0.0.0", "--", "true"],
        ["run", "--store", "mysql://x", "--", "true"],
        ["run", "--usage", "none", "--", "true"],
        ["run", "--trigger", "fraction:7", "--", "true"],
        ["run", "--base-url", "http://x", "--", "true"],
        ["run", "--summarizer", "nobody:x", "--", "true"],
        ["gateway", "--port", "99999"],
        ["gateway", "--workers", "0"],
        ["gateway", "--print-config", "emacs"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = typed(words, tmp_path, monkeypatch, capsys)
    assert code == 2
    assert errors.startswith("contextfold: ")
    assert errors.count("\n") == 1


def test_the_summary_model_of_a_file_of_settings_is_asked_and_one_that_cannot_be_is_said_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[GatewaySettings] = []

    def serve(settings: GatewaySettings) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr("contextfold.gateway.serve.serve", serve)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    config = tmp_path / "config.yaml"
    written = "summarization: {enabled: true, model_name: gpt-4o-mini, trigger: {type: tokens, value: 9000}}"
    config.write_text(written)
    for words in ([], ["--summarizer", "same"], ["--summarizer", "extractive"]):
        assert typed(["gateway", "--config", str(config), *words], tmp_path, monkeypatch, capsys)[0] == 0
    config.write_text(written.replace("true", "false"))
    assert typed(["gateway", "--config", str(config)], tmp_path, monkeypatch, capsys)[0] == 0
    assert [settings.summarizer for settings in found] == ["openai:gpt-4o-mini", "same", "extractive", "extractive"]
    config.write_text(written.replace("gpt-4o-mini", "nobody:x"))
    code, _, errors = typed(["gateway", "--config", str(config)], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert "config.yaml, line 1: model_name: " in errors


@pytest.mark.parametrize(
    "words",
    [
        ["--upstream", "http://user:correcthorse@h/v1"],
        ["--upstream", "openai=ftp://user:correcthorse@h/v1"],
        ["--upstream", "x=http://h/v1", "--upstream", "x=http://user:correcthorse@h/v1"],
        ["--summarizer", "openai:x", "--base-url", "ftp://user:correcthorse@h/v1"],
        ["--summarizer", "same", "--base-url", "http://user:correcthorse@h/v1"],
        ["--store", "mysql://user:correcthorse@h/x"],
        ["--config", "http://user:correcthorse@h/x.yaml"],
    ],
)
def test_a_password_in_an_address_is_not_told_where_that_is_refused(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = typed(["gateway", *words], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert errors.startswith("contextfold: ")
    assert "correcthorse" not in errors


def test_nor_is_it_in_the_error_of_a_setting() -> None:
    for make in (
        lambda url: GatewaySettings(upstreams={"openai": f"{url}?"}),
        lambda url: GatewaySettings(upstreams={"a b": url}),
        lambda url: SummaryModel("openai:x", base_url=url),
    ):
        with pytest.raises(PolicyError) as caught:
            make("ftp://user:correcthorse@h/v1")
        assert "correcthorse" not in str(caught.value)


def typed(
    words: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str, str]:
    """Exit code, output and errors of a command, in this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setattr(sys, "argv", ["contextfold", *words])
    with pytest.raises(SystemExit) as ended:
        run_cli()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ([], "http://127.0.0.1:8642"),
        (["--host", "0.0.0.0", "--port", "9000"], "http://127.0.0.1:9000"),
        (["--host", "10.1.2.3"], "http://10.1.2.3:8642"),
        (["--host", "::1", "--port", "1"], "http://[::1]:1"),
        (["--host", "[::1]"], "http://[::1]:8642"),
        (["--host", "[::]"], "http://127.0.0.1:8642"),
    ],
)
def test_print_config_is_what_each_client_reads(
    tmp_path: Path, options: list[str], url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read as its client would: by a shell, as TOML, as YAML."""
    said = {}
    for client in ("claude", "codex", "openai", "anthropic", "gemini", "cline", "cn", "litellm"):
        code, said[client], _ = typed(["gateway", *options, "--print-config", client], tmp_path, monkeypatch, capsys)
        assert code == 0
    assert exported(said["claude"]) == exported(said["anthropic"]) == {"ANTHROPIC_BASE_URL": url}
    assert exported(said["openai"]) == {"OPENAI_BASE_URL": f"{url}/v1"}
    assert exported(said["gemini"]) == {"GOOGLE_GEMINI_BASE_URL": url}
    codex = tomllib.loads(said["codex"])
    provider = codex["model_providers"][codex["model_provider"]]
    assert provider["base_url"] == f"{url}/v1"
    assert (provider["wire_api"], provider["supports_websockets"]) == ("responses", False)
    told = shlex.split(said["cline"], comments=True)
    assert told[:2] == ["cline", "auth"]
    assert (told[told.index("-p") + 1], told[told.index("-b") + 1]) == ("openai-compatible", f"{url}/v1")
    assert [model["apiBase"] for model in yaml.safe_load(said["cn"])["models"]] == [f"{url}/v1"]
    for entry in yaml.safe_load(said["litellm"])["model_list"]:
        parameters = entry["litellm_params"]
        kind = parameters["model"].partition("/")[0]
        assert parameters["api_base"] == {"openai": f"{url}/v1", "anthropic": url}[kind]
        assert parameters["api_key"].startswith("os.environ/")


def exported(text: str) -> dict[str, str]:
    """What a shell that reads this has in its environment."""
    done = subprocess.run(["sh", "-c", f"{text}\nenv"], env={}, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "BASE_URL" in line)


def test_each_option_of_one_command_is_one_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    helped = {}
    for command in ("gateway", "run"):
        _, text, _ = typed([command, "--help"], tmp_path, monkeypatch, capsys)
        helped[command] = set(re.findall(r"--[a-z-]+", text))
    assert not helped["run"] - helped["gateway"]
    assert helped["gateway"] - helped["run"] <= {"--host", "--workers", "--shutdown-timeout", "--print-config"}


def test_settings_survive_the_way_to_a_worker() -> None:
    settings = GatewaySettings(
        port=1, upstreams={"openai": "http://h"}, window=9_000, policy=Policy(trigger=("tokens", 5_000)), strict=True
    )
    assert unpacked(packed(settings)) == settings


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_until_healthy(url: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            if post(url, "/healthz", b"", method="GET").status == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the gateway did not start")


@crossed(workers=(1, 2), quick=1)
def test_the_server_serves_and_ends_when_it_is_told(tmp_path: Path, workers: int) -> None:
    with ProviderServer(default_window=WINDOW) as provider:
        words = ["gateway", "--port", "0", "--upstream", f"openai={provider.openai_url}", "--window", str(WINDOW)]
        words += ["--workers", str(workers), "--log", "json", "--store", f"sqlite:///{tmp_path / 'g.db'}"]
        server = started(tmp_path, words)
        assert server.stderr is not None
        url = json.loads(server.stderr.readline())["url"]  # a free port was asked for
        try:
            wait_until_healthy(url)
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=5) as odd:
                odd.sendall(b"no HTTP\r\n\r\n")  # uvicorn logs a word of its own
                assert odd.recv(100).startswith(b"HTTP/1.1 400")
            responses = [
                post(url, PATHS["openai-chat"], compact(body_of("openai-chat", messages)))
                for messages in turns("openai-chat", 25)
            ]
            figures = figures_of(url, len(responses))
        finally:
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=30)
    assert {response.status for response in responses} == {200}
    assert "compacted" in {response.headers["x-contextfold-action"] for response in responses}
    lines = [json.loads(line) for line in errors.splitlines()]
    assert "Invalid HTTP request received." in {line.get("message") for line in lines}
    assert sum(line.get("wire") == "openai-chat" for line in lines) == len(responses)
    sizes = [line[name] for line in lines for name in ("bytes", "tokens_before", "tokens_saved") if name in line]
    assert {type(size) for size in sizes} == {int}, "what adds up is a number"
    assert server.returncode == 0
    assert 1 <= len(figures) <= workers
    assert sum(figures.values()) == len(responses)


def figures_of(url: str, expected: int) -> dict[str, int]:
    """Requests by worker, as one scrape tells them: the figures of other workers are a second old at most."""
    until = time.monotonic() + 5
    while True:
        text = post(url, "/metrics", b"", method="GET").body.decode()
        assert text.count("# TYPE contextfold_requests_total") == 1
        rows = re.findall(r'contextfold_requests_total\{.*wire="openai-chat".*worker="(\d+)"\} (\d+)', text)
        found = {worker: sum(int(count) for one, count in rows if one == worker) for worker, _ in rows}
        if sum(found.values()) == expected or time.monotonic() > until:
            return found
        time.sleep(0.2)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_server_that_is_told_to_end_finishes_its_streams(name: str, tmp_path: Path) -> None:
    import threading

    from emulator import Fault

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ProviderServer(default_window=WINDOW) as provider:
        provider.faults.add(Fault.stalled(1.0), at=1)
        server = started(tmp_path, ["gateway", "--port", str(port), "--upstream", f"openai={provider.openai_url}"])
        wait_until_healthy(url)
        found: list[bytes] = []
        messages = list(turns("openai-chat", 3))[-1]
        raw = compact(body_of("openai-chat", messages, stream=True))
        client = threading.Thread(target=lambda: found.append(post(url, PATHS["openai-chat"], raw).body))
        client.start()
        while not provider.requests:
            time.sleep(0.01)
        time.sleep(0.1)
        server.send_signal(getattr(signal, name))
        client.join(20)
        server.communicate(timeout=20)
    assert server.returncode == 0
    assert found
    assert found[0].endswith(b"data: [DONE]\n\n")


def test_the_log_outlives_the_stream_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    began, later = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", began)
    monkeypatch.setattr(logging.getLogger("contextfold"), "propagate", True)  # as it is, for the tests behind this one
    set_up_logging("text")
    began.close()
    monkeypatch.setattr(sys, "stderr", later)
    logging.getLogger("contextfold.gateway").info("one request")
    assert later.getvalue().endswith("INFO one request\n")
