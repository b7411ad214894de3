"""Google's SDK with a compaction around it, over HTTP against the provider on loopback."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, Request, ToolCall

from contextfold import Compactor, Policy, StillTooLong
from contextfold.errors import InputError
from contextfold.integrations.google_genai import with_compaction
from effort import crossed
from integrations.rooms import Passes

genai = pytest.importorskip("google.genai")
types = genai.types
errors = pytest.importorskip("google.genai.errors")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),  # the SDK's own
    pytest.mark.filterwarnings("ignore:.*non-text parts"),
]

WINDOW = 8_000
MODEL = "gemini-3-pro"
"""It signs its calls, and refuses a view in which a signature is missing or stands elsewhere."""


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={MODEL: WINDOW}, default_window=100_000) as running:
        yield running


@pytest.fixture
def client(server: ProviderServer) -> Iterator[Any]:
    with genai.Client(api_key="any", http_options={"base_url": server.url}) as opened:
        yield opened


def history(steps: int, *, words: int = 120) -> list[Any]:
    """A session with parallel calls without ids, of about ``steps`` x (2 x ``words`` + 60) tokens."""
    told: list[Any] = [{"role": "user", "parts": [{"text": "Why are invoices late? Never touch `ledger_2019`."}]}]
    for step in range(steps):
        names = ("read_file", "read_file")
        calls = [
            {"functionCall": {"name": name, "args": {"path": f"/srv/{step}-{n}.py"}}} for n, name in enumerate(names)
        ]
        calls[0]["thoughtSignature"] = "skip_thought_signature_validator"  # type: ignore[assignment]
        told.append({"role": "model", "parts": [{"text": f"Step {step}."}, *calls]})
        output = " ".join(f"value{step}x{n}" for n in range(words // 3))
        answers = [{"functionResponse": {"name": name, "response": {"output": output}}} for name in names]
        told.append({"role": "user", "parts": answers})
    return told


def asked(client: Any, compactor: Compactor, contents: Any, *, color: str, stream: bool, **config: Any) -> Any:
    """(text, what was called): the methods of the wrapped client."""
    given: dict[str, Any] = {"model": MODEL, "contents": contents, "config": config or None}
    if color == "sync":
        wrapped = with_compaction(client, compactor)
        if not stream:
            return wrapped.models.generate_content(**given).text, wrapped
        return "".join(chunk.text or "" for chunk in wrapped.models.generate_content_stream(**given)), wrapped

    async def later() -> Any:
        async with with_compaction(client, compactor).aio as wrapped:
            if not stream:
                return (await wrapped.models.generate_content(**given)).text, wrapped
            chunks = await wrapped.models.generate_content_stream(**given)
            return "".join([chunk.text or "" async for chunk in chunks]), wrapped

    return asyncio.run(later())


EVERY = [(color, stream) for color in ("sync", "async") for stream in (False, True)]


@pytest.mark.parametrize(("color", "stream"), EVERY)
@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_conversation_larger_than_the_window_is_answered(
    server: ProviderServer, client: Any, color: str, stream: bool, window: int | None
) -> None:
    """With a window that is known, and with one that only the refusal tells."""
    told = history(60)
    text, wrapped = asked(client, Compactor(window=window or 100_000), told, color=color, stream=stream)
    assert text.startswith("Digest of")
    assert [request.status for request in server.requests] == ([200] if window else [400, 200])
    assert server.requests[-1].tokens <= WINDOW
    assert "ledger_2019" in server.requests[-1].text
    assert wrapped.compaction is not None
    assert sum(wrapped.result.ledger.counts().values()) == len(told)


@pytest.mark.parametrize(("color", "stream"), EVERY)
def test_a_short_conversation_goes_out_as_the_sdk_sends_it(
    server: ProviderServer, client: Any, color: str, stream: bool
) -> None:
    config = {"system_instruction": "Be brief.", "max_output_tokens": 300, "temperature": 0.1}
    asked(client, Compactor(window=WINDOW), history(2), color=color, stream=stream, **config)
    method = client.models.generate_content_stream if stream else client.models.generate_content
    own = method(model=MODEL, contents=history(2), config=config)
    _ = list(own) if stream else own
    assert server.requests[0].raw == server.requests[1].raw


def test_contents_that_are_a_text_or_parts_are_taken_too(server: ProviderServer, client: Any) -> None:
    wrapped = with_compaction(client, Compactor(window=WINDOW))
    for contents in ("hello", ["hello", types.Part(text="there")], types.Part(text="hello"), types.UserContent("x")):
        assert wrapped.models.generate_content(model=MODEL, contents=contents).text
        client.models.generate_content(model=MODEL, contents=contents)
        assert server.requests[-1].raw == server.requests[-2].raw


@pytest.mark.parametrize("make", [tuple, iter])
def test_contents_in_a_tuple_or_an_iterator_are_taken_as_the_sdk_takes_them(
    server: ProviderServer, client: Any, make: Any
) -> None:
    for asked in (with_compaction(client, Compactor(window=WINDOW)), client):
        contents = make(["hello", types.Part(text="there")])
        assert asked.models.generate_content(model=MODEL, contents=contents).text
    assert server.requests[-1].raw == server.requests[-2].raw


def test_a_method_and_a_chat_can_be_wrapped_by_themselves(server: ProviderServer, client: Any) -> None:
    ask = with_compaction(client.models.generate_content, Compactor(window=WINDOW))
    ask(model=MODEL, contents=history(60))
    assert ask.compaction is not None
    again = with_compaction(
        client.models.generate_content, Compactor(window=WINDOW), previous=ask.compaction, calibration=ask.calibration
    )
    again(model=MODEL, contents=history(60))
    assert not again.result.changed
    assert server.requests[0].raw == server.requests[1].raw

    made = [types.Content.model_validate(content) for content in history(60)]
    made.append(types.Content(role="model", parts=[types.Part(text="I see.")]))
    chat = with_compaction(client.chats.create(model=MODEL, history=made), Compactor(window=WINDOW))
    assert chat.send_message("And now?").text
    assert chat.compaction is not None
    assert isinstance(chat, genai.chats.Chat)
    assert len(chat.get_history()) == len(made) + 2, "the chat keeps all of it"
    assert client.models.generate_content(model=MODEL, contents="x").text, "the client itself is as it was"


def test_what_a_wrapped_client_has_is_of_the_classes_of_the_sdk(client: Any) -> None:
    """Who asks for the class of its chats was told another one."""
    whole = with_compaction(client, Compactor(window=WINDOW))
    for path in ("models", "chats", "aio", "aio.models", "aio.chats", "files", "caches"):
        plain = functools.reduce(getattr, path.split("."), client)
        assert isinstance(functools.reduce(getattr, path.split("."), whole), type(plain)), path


def test_what_was_wrapped_can_be_copied_as_the_sdks_own(client: Any) -> None:
    whole = with_compaction(client, Compactor(window=WINDOW))
    for made in (whole, whole.aio, whole.chats, whole.chats.create(model=MODEL), whole.models):
        assert type(copy.copy(made)) is type(made)
    chat = copy.copy(whole.chats.create(model=MODEL))
    assert chat.send_message("Hello.").text
    assert len(chat.get_history()) == 2


def test_what_sends_no_conversation_is_refused(client: Any) -> None:
    for wrong in (client.models.count_tokens, client.files, "client"):
        with pytest.raises(InputError, match=r"models\.generate_content"):
            with_compaction(wrong, Compactor(window=WINDOW))


# ---- functions that the SDK calls by itself ----


def read_file(path: str) -> str:
    """Reads a file."""
    RAN.append(path)
    return f"content of {path} " + "word " * 300


RAN: list[str] = []


class Working:
    """Two parallel calls, four times for each message of the user, then words."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Answer | None:
        self.asked += 1
        if self.asked % 5 == 0:
            return None
        calls = (ToolCall("read_file", {"path": f"{self.asked}{which}"}) for which in "ab")
        return Answer(tool_calls=tuple(calls))


@crossed(color=("sync", "async"), window=(WINDOW, 200_000))
def test_each_request_of_the_sdks_own_loop_is_compacted_and_no_function_runs_twice(color: str, window: int) -> None:
    """The SDK answers calls that have ids with results that have none."""
    RAN.clear()
    turns = 8
    with ProviderServer(windows={MODEL: WINDOW}, answers=Working()) as server:
        with genai.Client(api_key="any", http_options={"base_url": server.url}) as client:
            wrapped = with_compaction(client, Compactor(window=window))
            config = {"tools": [read_file]}
            if color == "sync":
                chat = wrapped.chats.create(model=MODEL, config=config)
                for turn in range(turns):
                    assert chat.send_message(f"question {turn}").text
            else:

                async def later() -> Any:
                    async with wrapped.aio as suspending:
                        made = suspending.chats.create(model=MODEL, config=config)
                        for turn in range(turns):
                            assert (await made.send_message(f"question {turn}")).text
                        return made

                chat = asyncio.run(later())
        statuses = [request.status for request in server.requests]
    assert len(RAN) == len(set(RAN)) == turns * 4 * 2
    assert statuses.count(200) == turns * 5
    assert statuses.count(400) == (0 if window == WINDOW else 1), "one refusal teaches the window"
    assert chat.compaction is not None
    assert len(chat.get_history()) == turns * 10


# ---- failures ----


def test_other_errors_are_the_callers(server: ProviderServer, client: Any) -> None:
    server.faults.add(Fault.rate_limit(), times=1)
    wrapped = with_compaction(client, Compactor(window=WINDOW))
    with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
        wrapped.models.generate_content(model=MODEL, contents=history(2))
    with pytest.raises(StillTooLong):
        with_compaction(client, Compactor(window=100_000)).models.generate_content(
            model=MODEL, contents="fact " * 9_000
        )


def test_a_summarizer_that_fails_changes_nothing(server: ProviderServer, client: Any) -> None:
    def failing(prompt: str) -> str:
        raise ValueError("no such model")

    compactor = Compactor(window=WINDOW, policy=Policy(trigger=("tokens", 3_000)), summarizer=failing)
    wrapped = with_compaction(client, compactor)
    told = history(15)
    assert wrapped.models.generate_content(model=MODEL, contents=told).text
    assert wrapped.compaction is None
    assert len(server.requests[-1].body["contents"]) == len(told)


def test_the_same_model_may_write_the_summary() -> None:
    written = "<summary>INVOICES wait for approval by the auditors.</summary>"
    with (
        ProviderServer(windows={MODEL: WINDOW}, answers=lambda r: written if r.number == 1 else None) as server,
        genai.Client(api_key="any", http_options={"base_url": server.url}) as client,
    ):
        wrapped = with_compaction(client, Compactor(window=WINDOW, summarizer="same"))
        config = {"system_instruction": "Be brief.", "tools": [read_file]}
        assert wrapped.models.generate_content(model=MODEL, contents=history(18), config=config).text
        asked, sent = server.requests
    assert "INVOICES wait" in wrapped.compaction.summary.text
    assert "INVOICES wait" in sent.text
    assert "tools" in asked.body, "as the request itself is sent, for the cache"


def test_an_interruption_in_a_stream_leaves_the_conversation_usable(server: ProviderServer, client: Any) -> None:
    wrapped = with_compaction(client, Compactor(window=WINDOW))
    told = history(60)
    stream = wrapped.models.generate_content_stream(model=MODEL, contents=told)
    next(stream)
    stream.close()
    told.append({"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {}}}]})
    told[-1]["parts"][0]["thoughtSignature"] = "skip_thought_signature_validator"
    told.append({"role": "user", "parts": [{"text": "Stop. What do you know?"}]})
    assert wrapped.models.generate_content(model=MODEL, contents=told).text
    sent = [part for content in server.requests[-1].body["contents"] for part in content["parts"]]
    assert sum("functionCall" in part for part in sent) == sum("functionResponse" in part for part in sent)


@pytest.mark.strict
def test_a_chat_of_many_passes_stays_within_the_window() -> None:
    passes, turns = Passes(), 100

    def script(request: Request) -> Answer | str:
        return f"On {request.number}: " + " ".join(f"fact{request.number}x{n}" for n in range(30))

    with (
        ProviderServer(windows={MODEL: WINDOW}, answers=script) as server,
        genai.Client(api_key="any", http_options={"base_url": server.url}) as client,
    ):
        chat = with_compaction(client, Compactor(window=WINDOW, on_event=passes)).chats.create(model=MODEL)
        for turn in range(turns):
            chat.send_message(f"Question {turn}: " + f"what of item {turn}? " * 10)
        assert {request.status for request in server.requests} == {200}
        assert max(request.tokens for request in server.requests) <= WINDOW
        assert len(server.requests) == turns
    assert passes.count >= 6
    assert sum(chat.result.ledger.counts().values()) == 2 * turns - 1


TYPED = """
from google import genai
from google.genai.types import GenerateContentResponse

from contextfold import Calibration, Compaction, CompactionResult, Compactor
from contextfold.integrations.google_genai import with_compaction

client = with_compaction(genai.Client(), Compactor())
chat, other = client.chats.create(model="m"), client.aio.chats.create(model="m")
ask = with_compaction(genai.Client().models.generate_content, Compactor(), previous=chat.compaction)
answers: list[GenerateContentResponse] = [chat.send_message("Go on."), ask(model="m", contents="Go on.")]
records: list[Compaction | None] = [client.compaction, chat.compaction, other.compaction, ask.compaction]
taught: list[Calibration | None] = [client.calibration, chat.calibration, other.calibration, ask.calibration]
results: list[CompactionResult | None] = [client.result, chat.result, other.result, ask.result]
chat.compactoin  # an error
ask(modle="m")  # another one
"""


@pytest.mark.strict  # the SDK has some 10 seconds of types
def test_to_a_type_checker_what_is_wrapped_is_what_it_was_and_has_the_state(tmp_path: Path) -> None:
    checker = pytest.importorskip("mypy.api")
    (tmp_path / "program.py").write_text(TYPED)
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), "--config-file", ""]
    said, failed, _ = checker.run([*options, str(tmp_path / "program.py")])
    lines = {line.split(":")[1] for line in said.splitlines() if ": error:" in line}
    assert (lines, failed) == ({"15", "16"}, ""), said
