"""Clients of Node and coding agents, unchanged, through ``contextfold run``, before a provider with a small window.

    python benchmarks/gateway_clients.py [--folder FOLDER] [--steps 300] [--only sdks,ai,codex,pi,opencode]

Installs OpenAI's and Anthropic's SDKs for Node, Vercel's AI SDK, Codex, pi and opencode from npm into FOLDER (a
temporary one by default), and runs each alone and behind the gateway on the same task: as many shell commands as
``--steps``. Alone they run out of the window or compact by themselves; behind the gateway they must end. Exit code 1 if
one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from emulator import Answer, ProviderServer, ToolCall  # noqa: E402 - it stands beside this folder

PACKAGES = {
    "sdks": ("openai", "@anthropic-ai/sdk"),
    "ai": ("ai", "@ai-sdk/openai", "zod"),
    "codex": ("@openai/codex",),
    "pi": ("@earendil-works/pi-coding-agent",),
    "opencode": ("opencode-ai",),
}
TASK = "Run the counting commands one after the other, and tell me when all is done."
PI_EXTENSION = ROOT / "src" / "contextfold" / "gateway" / "pi_extension.js"

NODE = """
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
const steps = Number(process.argv[2]);
const words = (turn) => Array.from({ length: 300 }, (_, n) => `word${(turn * 31 + n) % 97}`);
const text = (turn) => `turn ${turn}: ${words(turn).join(" ")}`;
const openai = new OpenAI({ maxRetries: 0 });
const chat = [];
for (let turn = 0; turn < steps; turn++) {
  chat.push({ role: "user", content: text(turn) });
  const stream = await openai.chat.completions.create({ model: "m", messages: chat, stream: true });
  let said = "";
  for await (const chunk of stream) said += chunk.choices[0]?.delta?.content ?? "";
  if (!said) throw new Error("nothing was said");
  chat.push({ role: "assistant", content: said });
}
const items = [];
for (let turn = 0; turn < steps; turn++) {
  items.push({ role: "user", content: text(turn) });
  const response = await openai.responses.create({ model: "m", input: items, store: false });
  items.push(...response.output);
}
const anthropic = new Anthropic({ maxRetries: 0 });
const messages = [];
for (let turn = 0; turn < steps; turn++) {
  messages.push({ role: "user", content: text(turn) });
  const message = await anthropic.messages.stream({ model: "m", max_tokens: 200, messages }).finalMessage();
  messages.push({ role: "assistant", content: message.content });
}
console.log("all is done");
"""

AI = """
import { execSync } from "node:child_process";
import { openai } from "@ai-sdk/openai";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
const bash = tool({
  description: "Run a command.",
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => execSync(command).toString(),
});
const result = streamText({
  model: openai("gpt-5"),
  prompt: process.argv[3],
  tools: { bash },
  stopWhen: stepCountIs(Number(process.argv[2]) + 1),
  maxRetries: 0,
  onError: ({ error }) => { throw error; },
});
console.log(await result.text);
"""


@dataclass
class Script:
    """The provider's part: a command per turn, until enough were run; everything that has no shell is the client's own
    business, such as a summary of its own.
    """

    steps: int
    reasons: bool = False
    step: int = 0
    own: int = 0

    def __call__(self, request: Any) -> Answer | None:
        tools = {tool.get("name") or tool.get("function", {}).get("name") for tool in request.body.get("tools") or ()}
        if not tools:
            self.own += 1
            return None
        self.step += 1
        if self.step > self.steps:
            return Answer("all is done")
        command = f"seq {self.step * 100} {self.step * 100 + 120} | tr '\\n' ' '"
        name, key = ("exec_command", "cmd") if "exec_command" in tools else ("bash", "command")
        return Answer(tool_calls=(ToolCall(name, {key: command}),), reasons=self.reasons)


def command_of(client: str, folder: Path, provider: ProviderServer, *, alone: bool, steps: int) -> list[str]:
    programs = folder / "node_modules" / ".bin"
    if client == "sdks":
        return ["node", str(folder / "sdks.mjs"), str(steps)]
    if client == "ai":
        return ["node", str(folder / "ai.mjs"), str(steps), TASK]
    if client == "codex":
        given: list[str] = []
        if alone:
            own = f'{{name="x", base_url="{provider.openai_url}", env_key="OPENAI_API_KEY", wire_api="responses"}}'
            given = ["-c", f"model_providers.x={own}", "-c", 'model_provider="x"']
        rest = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5"]
        return [str(programs / "codex"), *given, *rest, "-c", "model_context_window=10000000", TASK]
    if client == "opencode":
        return [str(programs / "opencode"), "run", "--auto", "--model", "anthropic/claude-sonnet-4-5", TASK]
    extension = ["--extension", str(PI_EXTENSION)] if alone else []
    model = ["--provider", "anthropic", "--model", "claude-sonnet-4-5", "--thinking", "off"]
    return [str(programs / "pi"), *extension, "-p", *model, TASK]


def opencode_config(provider: ProviderServer) -> str:
    """What `contextfold run` tells opencode, with the provider's own address."""
    return json.dumps({"provider": {"anthropic": {"options": {"baseURL": provider.openai_url}}}})


def run(client: str, folder: Path, *, alone: bool, steps: int, window: int) -> bool:
    script = Script(steps, reasons=client == "ai")
    with ProviderServer(default_window=window, answers=None if client == "sdks" else script) as provider:
        command = command_of(client, folder, provider, alone=alone, steps=steps)
        if not alone:
            ours = [sys.executable, "-m", "contextfold", "run", "--window", str(window)]
            ours += ["--upstream", f"openai={provider.openai_url}", "--upstream", f"anthropic={provider.url}"]
            command = [*ours, "--", *command]
        home = folder / "home"
        (home / ".codex").mkdir(parents=True, exist_ok=True)
        environ = {
            **os.environ,
            "HOME": str(home),
            "CODEX_HOME": str(home / ".codex"),
            "XDG_STATE_HOME": str(home / "state"),
            "OPENAI_API_KEY": "key",
            "ANTHROPIC_API_KEY": "key",
            "OPENAI_BASE_URL": provider.openai_url,
            "ANTHROPIC_BASE_URL": provider.url,
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            **({"OPENCODE_CONFIG_CONTENT": opencode_config(provider)} if alone and client == "opencode" else {}),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        }
        done = subprocess.run(
            command, env=environ, cwd=home, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL
        )
        ended = done.returncode == 0 and "all is done" in done.stdout
        largest = max((request.tokens for request in provider.requests if request.error is None), default=0)
        refused = sum(request.error is not None for request in provider.requests)
        how = "alone" if alone else "behind the gateway"
        print(
            f"{client} {how}: {'ended' if ended else f'failed (exit code {done.returncode})'}, "
            f"{len(provider.requests)} requests, {refused} refused, {script.own} of its own, "
            f"largest {largest:,} of {window:,} tokens",
            flush=True,
        )
        lines = (done.stderr or "").strip().splitlines()
        print("    " + (lines[-1][:300] if lines else ""), flush=True)
        return ended


def install(folder: Path, clients: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}), encoding="utf-8")
    (folder / "sdks.mjs").write_text(NODE, encoding="utf-8")
    (folder / "ai.mjs").write_text(AI, encoding="utf-8")
    packages = [package for client in clients for package in PACKAGES[client]]
    missing = [package for package in packages if not (folder / "node_modules" / package).is_dir()]
    if missing:
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *missing], cwd=folder, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--window", type=int, default=20_000)
    parser.add_argument("--only", default=",".join(PACKAGES))
    arguments = parser.parse_args()
    clients = arguments.only.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        install(folder, clients)
        ended = []
        for client in clients:
            run(client, folder, alone=True, steps=arguments.steps, window=arguments.window)
            ended.append(run(client, folder, alone=False, steps=arguments.steps, window=arguments.window))
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
