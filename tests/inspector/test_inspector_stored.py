"""Recorded sessions: the document of a store, and the page that follows one while it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from sqlalchemy import text
from talks import fates, shown, tool_loop

from contextfold import Compactor, count_tokens
from contextfold.conversation.repair import repair
from contextfold.gateway.records import GatewayRecordStore
from contextfold.inspector import records
from contextfold.inspector.server import Store
from contextfold.inspector.stored import stored
from contextfold.store import Session, open_store
from contextfold.store.database import Database
from contextfold.store.sql import SQLStore

MESSAGES = tool_loop(20)
WINDOW = 3_000
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'sessions.db'}"


def session(store: str | SQLStore, thread: str = "demo") -> Session:
    return Compactor(window=WINDOW).session(thread, store)


def played(store: str | SQLStore, messages: list[Any], thread: str = "demo") -> Session:
    """A session as an agent drives it: the view is asked for before each answer."""
    one = session(store, thread)
    for message in messages:
        if message["role"] == "assistant":
            one.view()
        one.append([message])
    one.join()
    return one


def test_a_recorded_session_shows_what_its_store_holds(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    one = played(url, MESSAGES)
    view = one.view()
    made = stored(open_store(url), one.thread)
    run = made["runs"][0]
    assert made["source"]["recorded"] is True
    assert len(made["messages"]) == len(MESSAGES)
    assert len(run["states"]) - 1 == len([summary for summary in one.summaries() if summary.used_at]) > 1
    last = len(run["requests"]["index"]) - 1
    assert fates(run, last, len(MESSAGES)) == [entry.fate for entry in one.ledger()]
    whole = [message for message in view if message in MESSAGES]
    told = fates(run, last, len(MESSAGES))
    assert [MESSAGES[n] for n in shown(run, last, len(MESSAGES)) if told[n] != "shortened"] == whole
    assert run["states"][-1]["summary"]["text"] == one.summaries()[-1].record.summary.text  # type: ignore[union-attr]
    assert run["requests"]["view"][last] < run["requests"]["history"][last]


def test_a_session_that_never_compacted_is_all_there(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    one = played(url, MESSAGES[:4])
    run = stored(open_store(url), one.thread)["runs"][0]
    assert len(run["states"]) == 1
    assert run["requests"]["view"] == run["requests"]["history"]


@pytest.mark.parametrize("stop", [6, len(MESSAGES)])
def test_messages_that_cannot_be_sent_are_not_called_kept(tmp_path: Path, stop: int) -> None:
    repeated = next(message for message in MESSAGES[:4] if message["role"] == "tool")
    odd = [repeated, {"role": "tool", "tool_call_id": "nobodys", "content": "a result without its call"}]
    given = [*MESSAGES[:4], *odd, *MESSAGES[4:stop], *odd]
    url = url_of(tmp_path)
    one = played(url, given)
    one.view()
    run = stored(open_store(url), one.thread)["runs"][0]
    assert (len(run["states"]) > 1) == (stop == len(MESSAGES))
    told = fates(run, len(run["requests"]["index"]) - 1, len(given))
    assert told == [entry.fate for entry in one.ledger()]
    # Once the first one of the two has left, the repeated result is shown.
    assert told[-2:] == ["dropped" if stop == 6 else "shortened", "shortened"]


@pytest.mark.strict
def test_the_states_of_a_session_cost_what_stands_in_their_views(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each looked at all messages that came later: twice the session took nearly four times as long."""
    looked_at: list[int] = []

    def counting(messages: Any, **options: Any) -> Any:
        looked_at.append(len(messages))
        return repair(messages, **options)

    monkeypatch.setattr("contextfold.inspector.stored.repair", counting)
    found = {}
    for turns in (40, 120):
        one = played(url_of(tmp_path), tool_loop(turns), f"of {turns}")
        looked_at.clear()
        run = stored(open_store(url_of(tmp_path)), one.thread)["runs"][0]
        found[turns] = len(run["states"]), sum(looked_at)
    assert found[120][0] > 2 * found[40][0] > 10
    assert found[120][1] < 4 * found[40][1]


def with_gateway_records(url: str, messages: list[Any] = MESSAGES, window: int = WINDOW) -> list[Any]:
    """What a gateway keeps of one conversation, written by its own code."""
    kept, record, made = GatewayRecordStore(url), None, []
    compactor = Compactor(window=window)
    for index in range(2, len(messages) + 1, 2):
        result = compactor.compact(messages[:index], previous=record)
        if result.changed and result.compaction is not None:
            kept.save("scope", f"{index:032d}", result.compaction.covers, result.compaction)
            made.append(result.compaction)
        record = result.compaction
    kept.close()
    return made


def test_what_a_gateway_keeps_has_a_document_without_messages(tmp_path: Path) -> None:
    made = with_gateway_records(url_of(tmp_path))
    database = Database(url_of(tmp_path))
    assert records.has_records(database)
    (line,) = records.lines(database)
    found = records.recorded(line)
    run = found["runs"][0]
    assert [state["compaction"]["id"] for state in run["states"][1:]] == [one.id for one in made]
    assert run["requests"]["view"] == [one.tokens_after for one in made]
    assert len(found["messages"]) == made[-1].covers
    assert "handler_003_total" not in json.dumps(found["messages"])
    assert run["states"][-1]["summary"]["evidence"]
    database.close()


@pytest.mark.parametrize("record", ["{", '{"version": 99}', "[]"])
def test_a_record_of_a_gateway_that_cannot_be_read_hides_no_session(tmp_path: Path, record: str) -> None:
    """A newer gateway's record, or a damaged one, made the whole list an error, with all sessions of the store."""
    made = with_gateway_records(url_of(tmp_path))
    kept = GatewayRecordStore(url_of(tmp_path))
    with kept.database.write() as connection:
        changed = text("UPDATE gateway_records SET record = :record WHERE compaction_id = :id")
        connection.execute(changed, {"record": record, "id": made[0].id})
    (line,) = records.lines(kept.database)
    assert [one.record.id for one in line.records] == [one.id for one in made[1:]]
    assert records.recorded(line)["runs"][0]["requests"]["view"] == [one.tokens_after for one in made[1:]]
    kept.close()


def test_many_conversations_of_a_gateway_are_listed_in_a_time_that_grows_with_their_number(tmp_path: Path) -> None:
    """Each was compared with each: eight thousand took four seconds, again whenever one of them went on."""
    (made, *_) = with_gateway_records(url_of(tmp_path))
    kept = GatewayRecordStore(url_of(tmp_path))
    rows = [
        {"scope": "s", "digest": f"{at:032d}"[::-1], "id": f"{at:024d}", "record": made.to_json(), "at": at}
        for at in range(8_000)
    ]
    with kept.database.write() as connection:
        connection.execute(text("DELETE FROM gateway_records"))
        connection.execute(
            text("INSERT INTO gateway_records VALUES (:scope, :digest, 1, :id, :record, :at, :at)"), rows
        )
    began = time.process_time()
    assert len(records.lines(kept.database)) == 8_000
    assert time.process_time() - began < 3
    kept.close()


@pytest.mark.strict
def test_what_went_through_a_gateway_is_shown_by_its_name(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    played(url, MESSAGES[:4], "stored")
    with_gateway_records(url)
    database = Database(url)
    (line,) = records.lines(database)
    database.close()
    out = tmp_path / "document.json"
    done = ran("--store", url, line.name, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_bytes())["source"]["kind"] == "gateway"
    with serving("--store", url, line.name) as address:
        assert json.loads(asked(address, "/api/document")[1])["source"]["kind"] == "gateway"
        assert '"allow": false' in asked(address)[1]
    refused = ran("--store", url, line.name, "--compare", "window=3000", "window=6000", "--out", str(out))
    assert (refused.returncode, "a gateway keeps none" in refused.stderr) == (2, True), refused.stderr
    for name, namespace in (("nobody", ""), (line.name, "another")):
        refused = ran("--store", url, name, "--namespace", namespace, "--out", str(out))
        assert (refused.returncode, f"no thread {name!r}" in refused.stderr) == (2, True), refused.stderr


def test_the_history_of_a_gateways_conversation_has_what_was_cut_and_what_left(tmp_path: Path) -> None:
    messages = tool_loop(8, lines=100)
    made = with_gateway_records(url_of(tmp_path), messages)
    assert all(one.edits and one.summary for one in made)
    database = Database(url_of(tmp_path))
    (line,) = records.lines(database)
    sizes = records.recorded(line)["runs"][0]["requests"]["history"]
    assert sizes == [count_tokens(messages[: int(one.digest)]) for one in line.records]
    assert records.row(line)["tokens"] == sizes[-1]
    database.close()


@pytest.mark.strict
def test_the_list_has_what_went_through_a_gateway_too(browser: Browser, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    played(url, MESSAGES[:4], "stored")
    made = with_gateway_records(url)
    with serving("--store", url, "--allow-changes") as address:
        browser.open(address)
        browser.wait("document.querySelectorAll('.sessions tbody a').length === 2")
        assert "through the gateway" in browser.text(".sessions")
        assert narrow(browser) == []
        browser.js("[...document.querySelectorAll('.sessions a')].find((link) => link.innerText !== 'stored').click()")
        browser.wait(f"window.inspector?.model && inspector.run.compactions.length === {len(made)}")
        assert browser.count(".actions button") == 0, "a gateway's conversation is changed by its client alone"
        assert browser.count(".panel.view .row.summary") == 1
        assert narrow(browser) == []
        browser.js("inspector.setChart('money')")
        assert browser.problems == []


def narrow(browser: Browser) -> list[str]:
    """What a window of 320 pixels pushes out of it."""
    browser.resize(320, 900)
    browser.frame()
    found = browser.out_of_window()
    browser.resize(1440, 900)
    return found


def test_what_was_undone_is_marked(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    one = played(url, MESSAGES)
    before = len(stored(open_store(url), one.thread)["runs"][0]["states"])
    assert one.undo() is not None
    run = stored(open_store(url), one.thread)["runs"][0]
    assert len(run["states"]) == before - 1
    assert [mark["kind"] for mark in run["marks"]] == ["undone"]


# ---- served ----


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """``contextfold view`` as a process of its own; the address that it printed."""
    command = [sys.executable, "-m", "contextfold", "view", *arguments, "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address), process.communicate()
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=20)


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "contextfold", "view", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def asked(address: str, path: str = "/", method: str = "GET", headers: Any = (), **query: str) -> tuple[int, str]:
    parts = urllib.parse.urlsplit(address)
    token = urllib.parse.parse_qs(parts.query)["token"][0]
    url = f"{parts.scheme}://{parts.netloc}{path}?{urllib.parse.urlencode({'token': token, **query})}"
    try:
        with OPENER.open(urllib.request.Request(url, method=method, headers=dict(headers)), timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = url_of(tmp_path_factory.mktemp("store"))
    played(url, MESSAGES)
    played(url, MESSAGES[:6], "another")
    return url


@pytest.fixture(scope="module")
def reading(store: str) -> Iterator[str]:
    """A server of a whole store that only reads."""
    with serving("--store", store) as address:
        yield address


def test_only_who_has_the_token_may_read(reading: str) -> None:
    assert asked(reading)[0] == 200
    for token in ("", "wrong"):
        for path in ("/", "/session", "/api/sessions", "/api/document", "/api/events"):
            code, said = asked(reading, path, token=token, thread="demo")
            assert code == 403
            assert "token" in said


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1:80@evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_another_host_or_origin_is_refused_with_the_token_too(reading: str, headers: dict[str, str]) -> None:
    assert asked(reading, "/api/sessions", headers=headers)[0] == 403


def test_a_server_reads_only_unless_it_was_allowed_more(reading: str) -> None:
    for path in ("/api/undo", "/api/compact"):
        assert asked(reading, path, "POST", {"X-Contextfold": "view"}, thread="demo")[0] == 404
    _, page = asked(reading, "/session", thread="demo")
    assert '"allow": false' in page


def test_pages_carry_their_policy_and_may_not_be_framed_or_kept(reading: str) -> None:
    with OPENER.open(reading, timeout=20) as response:
        headers = response.headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")


def test_a_page_that_is_opened_while_the_store_is_away_hears_when_it_is_back(tmp_path: Path) -> None:
    """The stream of its changes ended in a traceback on the terminal."""
    played(url_of(tmp_path), MESSAGES[:4])
    file = tmp_path / "sessions.db"
    with serving("--store", url_of(tmp_path)) as address:
        assert asked(address, "/api/sessions")[0] == 200
        file.rename(tmp_path / "away.db")
        events = address.replace("/?", "/api/events?")
        with OPENER.open(events, timeout=20) as stream:
            assert stream.readline() == b"retry: 1000\n"
            (tmp_path / "away.db").rename(file)
            assert b"event: change\n" in (stream.readline(), stream.readline())


def test_the_list_says_of_each_session_what_there_is(reading: str) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        lines = json.loads(asked(reading, "/api/sessions")[1])["sessions"]
        if all(line["saved"] is not None for line in lines):
            break
        time.sleep(0.2)
    by_name = {line["thread"]: line for line in lines}
    assert set(by_name) == {"demo", "another"}
    assert by_name["demo"]["messages"] == len(MESSAGES)
    assert by_name["demo"]["turns"] == sum(message["role"] == "assistant" for message in MESSAGES)
    assert by_name["demo"]["compactions"] > 1
    assert by_name["demo"]["view_tokens"] < by_name["demo"]["tokens"]
    assert by_name["another"]["compactions"] == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE agent_sessions SET message_count = 'many' WHERE thread_id = 'second'",
        "UPDATE session_messages SET payload = '{' WHERE id = (SELECT max(id) - 1 FROM session_messages)",
        "UPDATE session_summaries SET record = '{'",
    ],
)
def test_a_damaged_session_stands_in_the_list_with_what_is_wrong_and_ends_no_line_of_others(
    damage: str, tmp_path: Path
) -> None:
    one = open_store(url_of(tmp_path))
    played(one, MESSAGES[:6], "first")
    played(one, MESSAGES, "second").compact()
    with one.database.write() as connection:
        assert connection.execute(text(damage)).rowcount
    source = Store(one, "a store")
    for _ in range(2):  # what was found is told again
        lines = {line["thread"]: line for line in source.sessions()}
        assert set(lines) == {"first", "second"}
        assert "restore it from a backup" in lines["second"]["error"]
        assert lines["first"]["error"] == ""
        assert lines["first"]["turns"] > 0
    one.close()


def test_a_session_that_is_restored_is_not_told_as_damaged_any_more(tmp_path: Path) -> None:
    """It was until its next message, or the inspector's next start."""
    one = open_store(url_of(tmp_path))
    played(one, MESSAGES[:6])
    source = Store(one, "a store")

    def listed(statement: str, **values: str) -> dict[str, Any]:
        with one.database.write() as connection:
            connection.execute(text(statement), values)
        (line,) = source.sessions()
        return line

    with one.database.read() as connection:
        (payload,) = connection.execute(text("SELECT payload FROM session_messages WHERE sequence = 3")).scalars()
    assert listed("UPDATE session_messages SET payload = '{' WHERE sequence = 3")["error"]
    restored = listed("UPDATE session_messages SET payload = :payload WHERE sequence = 3", payload=payload)
    assert restored["error"] == ""
    assert restored["turns"] > 0
    one.close()


def test_sessions_whose_names_look_like_keys_are_told_apart_and_opened_from_the_list(tmp_path: Path) -> None:
    """All were listed as ``[key]``, and led to an empty session."""
    url = url_of(tmp_path)
    names = [f"sk-live-1234567890abcdefABCDE{number}" for number in range(2)]
    for number, name in enumerate(names):
        played(url, MESSAGES[: 4 + 2 * number], name)
    with serving("--store", url, "--allow-changes", "--window", str(WINDOW)) as address:
        status, listed = asked(address, "/api/sessions")
        assert status == 200
        lines = json.loads(listed)["sessions"]
        assert len({line["thread"] for line in lines}) == 2
        for line in lines:
            where = {"thread": line["thread"], "namespace": ""}
            status, body = asked(address, "/api/document", **where)
            assert (status, len(json.loads(body)["messages"])) == (200, line["messages"])
            done = asked(address, "/api/undo", "POST", {"x-contextfold": "view"}.items(), **where)
            assert json.loads(done[1])["said"] == "Nothing was in force."
            page = asked(address, "/session", **where)[1]
            assert not any(name in listed + body + page for name in names)


def test_a_session_is_compacted_from_the_page_under_the_settings_that_were_typed(tmp_path: Path) -> None:
    """``--keep``, ``--target`` and ``--config`` were taken, and did nothing there."""
    url, kept = url_of(tmp_path), []
    for number, keep in enumerate(("messages:2", "messages:12")):
        one = session(url, f"talk-{number}")
        one.append(MESSAGES[:30])
        options = ("--window", str(WINDOW), "--keep", keep, "--target", "fraction:0.7")
        with serving("--store", url, "--allow-changes", *options) as address:
            where = {"thread": f"talk-{number}", "namespace": ""}
            status, body = asked(address, "/api/compact", "POST", {"x-contextfold": "view"}.items(), **where)
            assert (status, json.loads(body)["said"][:10]) == (200, "Compacted:")
        kept.append(len(one.view()))
    assert kept[0] < kept[1]


def test_a_session_that_is_not_there_is_said_so(store: str) -> None:
    done = ran("--store", store, "nobody", "--no-open")
    assert done.returncode == 2
    assert "there is no thread 'nobody'" in done.stderr


def test_the_page_follows_a_session_as_it_runs(browser: Browser, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    one = played(url, MESSAGES[:10])
    with serving("--store", url, "demo") as address:
        browser.open(address)
        assert "10 messages" in browser.text(".facts")
        worker = threading.Thread(target=lambda: one.append(MESSAGES[10:14]))
        worker.start()
        worker.join()
        browser.wait("document.querySelector('.facts').innerText.includes('14 messages')")
        assert browser.count(".actions button") == 0, "nothing can be changed from a page that only reads"
        ours = ("http://127.0.0.1:", "about:", "data:")  # the page of the test before may still ask its own server
        assert [asked for asked in browser.requests if not asked.startswith(ours)] == []
        assert browser.problems == []


def test_the_list_leads_to_a_session_and_shows_new_ones(browser: Browser, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    played(url, MESSAGES[:6], "first")
    with serving("--store", url) as address:
        browser.open(address)
        browser.wait("document.querySelectorAll('.sessions tbody a').length === 1")
        played(url, MESSAGES[:4], "second <b>bold</b>")
        browser.wait("document.querySelectorAll('.sessions tbody a').length === 2")
        assert "second <b>bold</b>" in browser.text(".sessions")
        browser.js("[...document.querySelectorAll('.sessions a')].find((link) => link.innerText === 'first').click()")
        browser.wait("window.inspector?.model && document.querySelector('h1').innerText === 'first'")
        assert "6 messages" in browser.text(".facts")


def test_compact_now_and_undo_ask_first_and_then_do_it(browser: Browser, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    one = session(url)
    one.append(MESSAGES[:20])
    with serving("--store", url, "demo", "--allow-changes", "--window", str(WINDOW)) as address:
        assert asked(address, "/api/compact", "POST")[0] == 403, "a form of another page cannot send the header"
        browser.open(address)
        browser.wait("document.querySelectorAll('.actions button').length === 2")
        browser.js("document.querySelectorAll('.actions button')[0].click()")
        assert "Compact now?" in browser.text("dialog[open]")
        browser.js("document.querySelector('dialog[open] button[value=no]').click()")
        browser.frame()
        assert one.state().summary_id is None, "whoever cancels changes nothing"
        browser.js("document.querySelectorAll('.actions button')[0].click()")
        browser.js("document.querySelector('dialog[open] button[value=yes]').click()")
        browser.wait("inspector.run.compactions.length === 1")
        assert one.state().summary_id is not None
        browser.js("document.querySelectorAll('.actions button')[1].click()")
        browser.js("document.querySelector('dialog[open] button[value=yes]').click()")
        browser.wait("inspector.run.compactions.length === 0")
        assert one.state().summary_id is None


def test_a_file_is_served_as_a_report(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(json.dumps(MESSAGES), encoding="utf-8")
    with serving(str(file), "--window", str(WINDOW)) as address:
        browser.open(address)
        assert browser.text("h1") == "session.json"
        assert browser.js("inspector.run.compactions.length") > 1
        assert browser.problems == []
