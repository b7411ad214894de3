"""Events: each decision once, to the log at its level and to the caller's hook, which can do no harm."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import contextfold
from contextfold import Compactor, observe
from contextfold.observe import LEVELS, REDACTED, Event, Observer, scrub
from contextfold.redaction import redact


def test_an_event_reaches_the_hook_and_the_log_at_its_level(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Event] = []
    observer = Observer(seen.append)
    with caplog.at_level(logging.DEBUG, logger="contextfold"):
        observer.emit("summary_failed", "the model was down", seconds=2)
    assert seen == observer.events == [Event("summary_failed", "the model was down", {"seconds": 2})]
    assert caplog.records[0].levelno == LEVELS["summary_failed"]
    assert caplog.records[0].contextfold == {"event": "summary_failed", "seconds": 2}


def test_a_hook_that_fails_is_reported_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no")

    observer = Observer(broken)
    with caplog.at_level(logging.ERROR, logger="contextfold"):
        observer.emit("skipped", "one")
        observer.emit("skipped", "two")
    assert len(observer.events) == 2
    assert len(caplog.records) == 1


def test_an_event_that_is_not_listed_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        Observer().emit("surprise", "?")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcDEF1234567890",
        "sk-ant-api03-AbC_dEf-12345",
        "sk-abc12***********wxyz",
        "gsk_a1b2c3d4e5f6",
        "AIzaSyA-1234567890abcdefghijklm",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    ],
)
@pytest.mark.parametrize(
    "text", ["Incorrect API key provided: {}.", "header x-api-key={} is wrong", "no {} here", '{{"api_key": "{}"}}']
)
def test_what_looks_like_a_key_is_taken_out_of_what_is_told(text: str, key: str) -> None:
    assert key not in scrub(text.format(key))
    assert REDACTED in scrub(text.format(key))


def test_no_text_inside_of_an_events_figures_tells_a_key() -> None:
    observer = Observer()
    observer.keys.add("tenant-4711-abcdef")
    observer.emit(
        "history_repaired", "two", faults=["call sk-proj-abcDEF1234567890", {"id": ("tenant-4711-abcdef", 3)}]
    )
    assert observer.events[0].data == {"faults": [f"call {REDACTED}", {"id": [REDACTED, 3]}]}


@pytest.mark.parametrize(
    "name", ["SMTP_PASS", "MYSQL_PWD", "OPENAI_APIKEY", "DB_PASSWD", "GPG_PASSPHRASE", "PGPASSWORD"]
)
def test_passwords_of_the_environment_are_taken_out_by_their_short_names_too(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "correcthorse")
    monkeypatch.setenv("OLDPWD", "/srv/project")
    assert scrub("refused for correcthorse in /srv/project") == f"refused for {REDACTED} in /srv/project"


def test_keys_of_the_environment_and_of_clients_are_taken_out_whatever_they_look_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "plain words as key")
    observer = Observer()
    observer.keys.add("another/one")
    observer.emit("summary_failed", "plain words as key, another/one", error="with another/one")
    (event,) = observer.events
    assert (event.message, event.data["error"]) == (f"{REDACTED}, {REDACTED}", f"with {REDACTED}")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef0123456789",
        "https://user:password1@proxy.example/path",
    ],
)
def test_credentials_in_headers_and_addresses_are_taken_out(text: str) -> None:
    assert "abcdef0123456789" not in scrub(text)
    assert "password1" not in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "the task-list of sk-learn has key-value stores, and 3 tokens: 12,345",
        "https://api.example.com:8443/v1/models",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "authorization failed for user 7",
    ],
)
def test_plain_words_stay_as_they_are(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(__import__("os").environ):
        if name.endswith(("_KEY", "_TOKEN", "_SECRET")):
            monkeypatch.delenv(name)
    assert scrub(text) == text


def test_what_each_call_tells_again_is_searched_for_secrets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search took half of a call in which nothing is due."""
    searched: list[str] = []

    def counted(text: str) -> str:
        searched.append(text)
        return redact(text)

    monkeypatch.setattr(observe, "redact", counted)
    compactor, messages = Compactor(window=123_457), [{"role": "user", "content": "Run it."}]
    for _ in range(3):
        compactor.compact(messages)
    assert sum("takes 123,457 tokens" in text for text in searched) == 1


def test_a_key_that_is_set_later_is_taken_out_of_what_was_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "the client of tenant-4711-abcdef answered"
    assert scrub(said) == said
    monkeypatch.setenv("TENANT_API_KEY", "tenant-4711-abcdef")
    assert "tenant-4711" not in scrub(said)


@pytest.mark.parametrize("is_set_up", [False, True])
def test_nothing_is_printed_until_the_program_sets_logging_up_and_warnings_then(is_set_up: bool) -> None:
    program = """
import logging, sys
from contextfold import Compactor
if sys.argv[1] == "True":
    logging.basicConfig()
said = [{"role": "user", "content": "word " * 200}, {"role": "assistant", "content": "word " * 200}]
Compactor(window=4_000, summarizer=lambda prompt: 1 / 0).compact(said * 30)
"""
    ran = subprocess.run([sys.executable, "-c", program, str(is_set_up)], capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    assert ("WARNING:contextfold:summary_failed" in ran.stderr) == is_set_up
    assert is_set_up or ran.stderr == ""


LOGS = ("debug", "info", "warning", "error", "critical")


def errors_told(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """What log lines are given of an error that was caught, beside what passes ``scrub``, as all does that the
    gateway's ``told`` tells.
    """
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for call in ast.walk(handler):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in LOGS:
                continue
            for told in call.args:
                text = ast.unparse(told)
                harmless = text.startswith(("scrub(", "type(", "told("))
                if not harmless and re.search(rf"\b{handler.name}\b", text):
                    yield call.lineno, told


def test_no_log_line_tells_what_a_strangers_error_says_with_its_secrets() -> None:
    files = sorted(Path(contextfold.__file__).parent.rglob("*.py"))
    told = {str(file): list(errors_told(ast.parse(file.read_text(encoding="utf-8")))) for file in files}
    assert {file: lines for file, lines in told.items() if lines} == {}
