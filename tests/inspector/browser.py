"""Real browsers for the tests of the page, driven over WebDriver BiDi (the W3C's protocol), which both speak.

Chromium comes with its driver, Firefox listens by itself. Where neither is installed the tests say so and are skipped:
``make install-browser`` installs both from Debian's packages.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
FIREFOX_PREFERENCES = {
    "app.update.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.unified": False,
    "remote.active-protocols": 1,
}
PATIENCE = 30
"""Seconds that a browser may take to start or to answer."""


def installed(name: str) -> str | None:
    """The program of a browser, or None."""
    programs = {"chromium": ("chromium", "chromium-browser"), "firefox": ("firefox-esr", "firefox")}[name]
    found = next((path for program in programs if (path := shutil.which(program))), None)
    return None if name == "chromium" and shutil.which("chromedriver") is None else found


class Browser:
    """One browser with one page. What it was asked for over the network and what went wrong in it is kept."""

    def __init__(self, name: str) -> None:
        program = installed(name)
        if program is None:
            pytest.skip(f"{name} is not installed here: make install-browser installs it")
        self.name = name
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._folder = tempfile.mkdtemp(prefix=f"contextfold-{name}-")
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        address = self._start_chromium(program) if name == "chromium" else self._start_firefox(program)
        from websockets.sync.client import connect

        self._open = ExitStack()
        # No pings: their thread draws from the global random numbers, which Hypothesis takes for a test's doing.
        self._socket = self._open.enter_context(
            connect(address, max_size=None, open_timeout=PATIENCE, proxy=None, ping_interval=None)
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            if name == "firefox":
                self.command("session.new", capabilities={})
            self.command("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
            self.context = self.command("browsingContext.getTree")["contexts"][0]["context"]
            self.resize(1440, 900)
        except BaseException:
            self.close()
            raise

    # ---- starting and ending ----

    def _start_chromium(self, program: str) -> str:
        driver = shutil.which("chromedriver")
        assert driver is not None
        port = self._start([driver, "--port=0"], re.compile(r"successfully on port (\d+)"))
        arguments = [*FLAGS, f"--user-data-dir={self._folder}"]
        options = {"goog:chromeOptions": {"binary": program, "args": arguments}, "webSocketUrl": True}
        asked = json.dumps({"capabilities": {"alwaysMatch": {"browserName": "chrome", **options}}}).encode()
        sessions = f"http://127.0.0.1:{port}/session"
        request = urllib.request.Request(sessions, asked, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE) as response:
            session = json.load(response)["value"]
        self._session = f"{sessions}/{session['sessionId']}"
        return str(session["capabilities"]["webSocketUrl"])

    def _start_firefox(self, program: str) -> str:
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in FIREFOX_PREFERENCES.items()]
        Path(self._folder, "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [program, "--headless", "--no-remote", "--profile", self._folder, "--remote-debugging-port", "0"]
        port = self._start(command, re.compile(r"listening on ws://[^:]+:(\d+)"))
        return f"ws://127.0.0.1:{port}/session"

    def _start(self, command: list[str], said: re.Pattern[str]) -> int:
        environment = {**os.environ, "HOME": self._folder, "MOZ_HEADLESS": "1", "MOZ_DISABLE_CONTENT_SANDBOX": "1"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, errors="replace"
        )
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE
        told = []
        while time.monotonic() < until and (line := self._process.stdout.readline()):
            told.append(line)
            if found := said.search(line):
                self._drain = threading.Thread(target=self._process.stdout.read, daemon=True)
                self._drain.start()
                return int(found[1])
        raise RuntimeError(f"{command[0]} did not start: {''.join(told)[-2000:]}")

    def close(self) -> None:
        try:
            if self.name == "chromium":
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                opener.open(urllib.request.Request(self._session, method="DELETE"), timeout=PATIENCE).close()
            else:
                self.command("browser.close")
        except Exception:  # noqa: BLE001  it is ended below, whatever it says
            pass
        self._open.close()
        self._reader.join(10)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drain.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- the protocol ----

    def _read(self) -> None:
        try:
            for text in self._socket:
                message = json.loads(text)
                if "id" in message and message["id"] in self._answers:
                    self._answers.pop(message["id"]).put(message)
                elif message.get("method") == "network.beforeRequestSent":
                    self.requests.append(message["params"]["request"]["url"])
                elif message.get("method") == "log.entryAdded" and message["params"]["level"] in ("error", "warn"):
                    self.problems.append(str(message["params"].get("text")))
        except Exception as error:  # noqa: BLE001  whoever waits for an answer is told
            for waiting in self._answers.values():
                waiting.put({"error": "closed", "message": str(error)})

    def command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        waiting = self._answers[number] = queue.Queue()
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        try:
            answer = waiting.get(timeout=PATIENCE * 2)
        except queue.Empty:
            raise RuntimeError(f"{self.name} did not answer {method} within {PATIENCE * 2} seconds") from None
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}: {answer.get('message')}")
        return answer.get("result")

    # ---- what a test does ----

    def open(self, url: str) -> None:
        """Open a page and wait until it shows something."""
        self.requests.clear()
        self.problems.clear()
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")
        self.wait("document.querySelector('.app, .starting')?.className.startsWith('app')")

    def resize(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        self.command("browsingContext.setViewport", context=self.context, viewport=viewport)

    def js(self, expression: str) -> Any:
        """The value of an expression, which may be a promise, as JSON."""
        source = f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))"
        result = self.command("script.evaluate", expression=source, target={"context": self.context}, awaitPromise=True)
        if result["type"] != "success":
            raise AssertionError(f"{expression}: {result['exceptionDetails'].get('text')}")
        return json.loads(result["result"]["value"])

    def wait(self, condition: str, seconds: float = 15) -> Any:
        """Wait until an expression is true in the page; its value."""
        until = time.monotonic() + seconds
        while True:
            try:
                if found := self.js(f"({condition}) || null"):
                    return found
            except RuntimeError as error:  # between two pages there is nothing to ask
                if "context" not in str(error) and "no such frame" not in str(error):
                    raise
            assert time.monotonic() < until, f"never true: {condition}; {self.problems}"
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        """Press keys one after the other. Names of special keys are those of KEYS."""
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.command("input.performActions", context=self.context, actions=[source])
        self.frame()

    def type(self, text: str) -> None:
        self.press(*text)

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that fits, as a person would."""
        place = self.js(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)]; })()"
        )
        self.click_at(*place)

    def click_at(self, x: int, y: int) -> None:
        actions = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        source = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self.command("input.performActions", context=self.context, actions=[source])
        self.frame()

    def frame(self) -> None:
        """Let the page draw what it was told."""
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def out_of_window(self) -> list[str]:
        """What stands beside the window, so that a reader has to scroll the page to its side."""
        found: list[str] = self.js(
            "(() => { const root = document.documentElement, width = root.clientWidth;"
            " const wide = root.scrollWidth > width ? [`the page, ${root.scrollWidth} of ${width}`] : [];"
            " const out = [...document.querySelectorAll('.top *, .moment *')]"
            ".filter((one) => one.getBoundingClientRect().right > width + 1);"
            " return [...wide, ...out.map((one) => `${one.tagName}.${one.className}`)]; })()"
        )
        return found

    def text(self, selector: str) -> str:
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def count(self, selector: str) -> int:
        return int(self.js(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def screenshot(self, path: Path) -> None:
        shot = self.command("browsingContext.captureScreenshot", context=self.context)
        path.write_bytes(base64.b64decode(shot["data"]))


KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowRight": "\ue014", "ArrowLeft": "\ue012", "Tab": "\ue004"}

Opener = Callable[[str], Browser]
