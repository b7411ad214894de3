"""The server as a thing: its thread, its records, its counter, and what it says when it is used wrongly."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from emulator import Fault, ProviderServer, Request, tokenizer
from emulator.digest import digest
from emulator.tokenizer import choose_tokenizer, vocabulary_is_on_disk
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_clients import KEY, WIRES, ask, user

from effort import examples

quick = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


class TestLife:
    def test_it_leaves_no_thread_no_port_and_no_line_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        before = set(threading.enumerate())
        with ProviderServer() as server:
            url = server.url
            server.faults.add(Fault.cut())
            with pytest.raises(httpx.RemoteProtocolError):
                httpx.post(url + "/v1/messages", json={"model": "m", "max_tokens": 5, "messages": user("x")})
        left = [thread for thread in threading.enumerate() if thread not in before]
        for thread in left:  # an idle worker of the server's loop is told to end, and needs a moment for it
            thread.join(5)
        assert not [thread.name for thread in left if thread.is_alive()]
        assert not [record for record in caplog.records if record.levelno > logging.INFO]
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)

    def test_it_can_be_started_and_closed_without_a_with_block_and_again(self) -> None:
        server = ProviderServer()
        with pytest.raises(RuntimeError, match="does not run"):
            _ = server.url
        server.close()
        for number in (1, 2):
            assert server.start() is server.start()
            ask(server, "openai-chat", user("x"))
            server.close()
            assert len(server.requests) == number

    def test_what_waits_is_answered_at_once_when_it_closes(self) -> None:
        server = ProviderServer(answers=["late"]).start()
        server.faults.add(Fault.slow(60))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, server, "openai-chat", user("x"))
            while not server.requests:
                time.sleep(0.01)
            started = time.monotonic()
            server.close()
            assert waiting.result().text == "late"
        assert time.monotonic() - started < 10

    def test_two_servers_do_not_know_of_each_other(self) -> None:
        with ProviderServer(answers=["a"]) as first, ProviderServer(answers=["b"]) as second:
            assert ask(second, "openai-chat", user("x")).text == "b"
            assert ask(first, "openai-chat", user("x")).text == "a"
            assert len(first.requests) == len(second.requests) == 1


class TestParallel:
    def test_sixteen_slow_requests_take_hardly_longer_than_one(self) -> None:
        with ProviderServer() as server:
            server.faults.add(Fault.slow(0.5))
            started = time.monotonic()

            async def all_of_them() -> list[str]:
                async with openai.AsyncOpenAI(base_url=server.openai_url, api_key=KEY) as client:
                    asked = [client.responses.create(model="m", input=f"see file_{n}.py") for n in range(16)]
                    return [answer.output_text for answer in await asyncio.gather(*asked)]

            texts = asyncio.run(all_of_them())
            seconds = time.monotonic() - started
        assert all(f"file_{number}.py" in text for number, text in enumerate(texts))
        assert seconds < 16 * 0.5 / 2
        assert [request.number for request in server.requests] == list(range(1, 17))

    def test_threads_are_served_as_well(self) -> None:
        with ProviderServer() as server, ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda n: ask(server, WIRES[n % 3], user(f"see file_{n}.py")).text, range(12)))
        assert all(f"file_{number}.py" in text for number, text in enumerate(said))


class TestRecords:
    @pytest.mark.parametrize("wire", WIRES)
    def test_a_request_is_recorded_with_all_but_the_key(self, wire: str) -> None:
        with ProviderServer(answers=["hello"]) as server:
            ask(server, wire, user("see file_1"), mode="stream", tools=[TOOLS[wire]])
            (request,) = server.requests
        assert (request.number, request.wire, request.model, request.stream) == (1, wire, "small", True)
        assert request.path.startswith("/v1/")
        assert request.messages_text == "see file_1"
        assert "a_tool" in request.text
        assert (request.status, request.answer.text if request.answer else None) == (200, "hello")
        assert request.headers["user-agent"]
        assert KEY not in repr(request)
        assert "[hidden]" in request.headers.values()

    def test_records_cannot_be_changed(self) -> None:
        with ProviderServer() as server:
            ask(server, "openai-chat", user("x"))
        with pytest.raises(AttributeError):
            server.requests[0].status = 500  # type: ignore[misc]


TOOLS: dict[str, Any] = {
    "openai-chat": {"type": "function", "function": {"name": "a_tool", "parameters": {}}},
    "openai-responses": {"type": "function", "name": "a_tool", "parameters": {}, "strict": False},
    "anthropic": {"name": "a_tool", "input_schema": {"type": "object"}},
}


class TestMistakesOfTheTest:
    def script(self, request: Request) -> str:
        raise AssertionError("this request was not expected")

    def test_an_error_in_a_script_is_an_error_500_and_fails_the_test(self) -> None:
        server = ProviderServer(answers=self.script).start()
        with pytest.raises(openai.InternalServerError, match="not expected"):
            ask(server, "openai-chat", user("x"))
        assert server.requests[0].status == 500
        with pytest.raises(AssertionError, match="not expected"):
            server.__exit__(None, None, None)

    def test_an_error_of_the_test_itself_goes_first(self) -> None:
        with pytest.raises(openai.InternalServerError) as caught, ProviderServer(answers=self.script) as server:
            ask(server, "openai-chat", user("x"))
        assert "not expected" in caught.value.__notes__[0]

    def test_an_error_in_a_predicate_is_told_too(self) -> None:
        server = ProviderServer().start()
        server.faults.add(Fault.blank(), when=lambda request: bool(1 / 0))
        with pytest.raises(openai.InternalServerError, match="ZeroDivisionError"):
            ask(server, "openai-chat", user("x"))
        with pytest.raises(ZeroDivisionError):
            server.close()
        server.close()


class TestTokenizer:
    def test_the_vocabulary_on_disk_is_used_and_nothing_is_downloaded(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        assert choose_tokenizer().name == ("o200k_base" if vocabulary_is_on_disk() else "estimate")
        for folder in (str(tmp_path), ""):
            monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
            assert ProviderServer().tokenizer == "estimate"
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
        monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
        assert ProviderServer().tokenizer == "estimate"
        assert not list(tmp_path.iterdir())

    def test_a_damaged_vocabulary_is_not_used_and_not_replaced(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """tiktoken would delete the file and download another one."""
        file = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
        file.write_bytes(b"damaged")
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
        assert ProviderServer().tokenizer == "estimate"
        assert file.read_bytes() == b"damaged"

    def test_it_counts_as_openai_does(self) -> None:
        if not vocabulary_is_on_disk():
            pytest.skip("the vocabulary is not here: set TIKTOKEN_CACHE_DIR")
        server = ProviderServer()
        assert server.tokenizer == tokenizer.VOCABULARY
        assert server.count_tokens("tiktoken is great!") == 6

    def test_a_counter_of_ones_own(self) -> None:
        server = ProviderServer(count_tokens=len)
        assert (server.tokenizer, server.count_tokens("four")) == ("custom", 4)


class TestDigest:
    @quick
    @given(st.text(max_size=400), st.integers(1, 80))
    def test_it_is_never_blank_within_its_limit_and_always_the_same(self, text: str, limit: int) -> None:
        found = digest(text, limit, len)
        assert found == digest(text, limit, len)
        assert 0 < len(found) <= limit

    @quick
    @given(st.lists(st.integers(1_000, 9_999), min_size=1, unique=True), st.integers(60, 400))
    def test_it_names_only_what_was_there_from_the_first_to_the_last(self, numbers: list[int], limit: int) -> None:
        text = " and ".join(f"marker_{number}" for number in numbers)
        named = digest(text, limit, len).partition(": ")[2].split(", ")
        assert set(named) <= {f"marker_{number}" for number in numbers}
        assert named[0] == f"marker_{numbers[0]}"
        assert len(named) == 1 or named[-1] == f"marker_{numbers[-1]}"

    def test_text_without_identifiers_gives_words(self) -> None:
        assert digest("plain words", 100, len) == "Digest of 11 characters: plain, words"
        assert digest("...", 100, len) == "Digest of 3 characters: nothing"
        assert digest("会話 の 要約", 100, len) == "Digest of 7 characters: 会話, の, 要約"


class TestImport:
    def python(self, code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}, check=True
        )
        return done.stdout.strip()

    def test_the_fakes_beside_it_do_not_load_it(self) -> None:
        heavy = "('starlette', 'uvicorn', 'tiktoken')"
        code = f"import sys, contextfold.testing; print([name for name in {heavy} if name in sys.modules])"
        assert self.python(code) == "[]"

    def test_a_missing_extra_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
        names = [name for name in sys.modules if name.startswith("emulator")]
        for name in names:
            monkeypatch.delitem(sys.modules, name)
        with pytest.raises(ImportError, match=r"needs uvicorn.*pip install -e '\.\[test\]'"):
            importlib.import_module("emulator")
