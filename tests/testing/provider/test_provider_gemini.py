"""The provider as Gemini: refusals in Google's words, signatures, usage, and agreement with the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from emulator import Answer, Fault, ProviderServer, ToolCall
from emulator.wires import GeminiContent
from emulator.wires.gemini_signatures import signature
from hypothesis import given, settings

from contextfold import CannotFit, Compactor, overflow
from contextfold.testing import histories
from effort import examples

genai = pytest.importorskip("google.genai")
errors = pytest.importorskip("google.genai.errors")

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # the SDK's own
quick = settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)

HELLO: dict[str, Any] = {"role": "user", "parts": [{"text": "hello"}]}


def called(*names: str, ids: bool = False) -> dict[str, Any]:
    parts = [{"functionCall": {"name": name, **({"id": f"c{n}"} if ids else {})}} for n, name in enumerate(names)]
    return {"role": "model", "parts": parts}


def answered(*names: str, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    parts = [
        {"functionResponse": {"name": name, "response": {}, **({"id": ids[n]} if ids else {})}}
        for n, name in enumerate(names)
    ]
    return {"role": "user", "parts": parts}


def problem_with(contents: Any, **more: Any) -> str | None:
    problem = GeminiContent().problem({"contents": contents, **more})
    return problem and problem.message


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (None, "contents is not specified"),
        ([], "contents is not specified"),
        (["hello"], "Invalid value at 'contents[0]'"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "Please use a valid role: user, model."),
        ([{"role": "user", "parts": []}], "contents[0].parts: contents.parts must not be empty"),
        ([{"role": "user", "parts": [{}]}], "must have one initialized field"),
        ([{"role": "user", "parts": [{"text": ""}]}], "has an empty text parameter"),
        ([{"role": "model", "parts": [{"text": "x"}]}], "start with a user turn"),
        ([called("f"), answered("f")], "function call turn comes immediately after a user turn"),
        ([HELLO, {**called("f"), "role": "user"}], "function call turn comes immediately after a user turn"),
        ([HELLO, answered("f")], "function response turn comes immediately after a function call turn"),
        ([HELLO, called("f")], "number of function response parts is equal to the number of function call parts"),
        ([HELLO, called("f", "f"), answered("f")], "number of function response parts is equal"),
        ([HELLO, called("f"), HELLO, called("f"), answered("f", "f")], "number of function response parts is equal"),
        ([HELLO, called("f", "g"), answered("g", "f")], "function responses match the function calls"),
        ([HELLO, called("f", ids=True), answered("f", ids=("c9",))], "function responses match the function calls"),
    ],
)
def test_what_google_refuses_is_refused_in_its_words(contents: Any, words: str) -> None:
    assert words in (problem_with(contents) or "")


@pytest.mark.parametrize(
    "contents",
    [
        [{"parts": [{"text": "a single turn"}]}],
        [HELLO, HELLO, called("f", "f"), answered("f", "f"), HELLO],
        [HELLO, called("f", "g", ids=True), answered("g", "f", ids=("c1", "c0"))],
        [HELLO, {"role": "model", "parts": [{"text": "", "thoughtSignature": "x"}]}, HELLO],
        [HELLO, {"role": "model", "parts": [{"executable_code": {"code": "1"}}]}],
    ],
)
def test_what_google_accepts_is_accepted(contents: Any) -> None:
    assert problem_with(contents) is None


def test_refusals_of_pairing_are_what_the_classifier_calls_malformed() -> None:
    for contents in ([HELLO, called("f")], [HELLO, answered("f")], [called("f"), answered("f")]):
        verdict = overflow.classify(status=400, message=problem_with(contents))
        assert verdict is not None
        assert verdict.kind == "malformed_history"


def test_a_signing_model_wants_the_first_call_of_each_step_of_the_turn_signed_as_it_was() -> None:
    def signed(given: str | None) -> dict[str, Any]:
        content = called("f", "g")
        content["parts"][0] |= {} if given is None else {"thoughtSignature": given}
        return content

    results, model = answered("f", "g"), {"model": "gemini-3-pro"}
    own = signature(4, "f")
    assert problem_with([HELLO, signed(own), results], **model) is None
    assert "missing a thought_signature" in (problem_with([HELLO, signed(None), results], **model) or "")
    assert problem_with([HELLO, signed(None), results, HELLO], **model) is None, "an earlier turn"
    assert "Corrupted thought signature" in (problem_with([HELLO, signed("AAAA"), results], **model) or "")
    assert "Corrupted" in (problem_with([HELLO, signed(signature(4, "g")), results], **model) or "")
    assert problem_with([HELLO, signed("skip_thought_signature_validator"), results], **model) is None
    assert problem_with([HELLO, signed(None), results], model="gemini-2.5-flash") is None


# ---- the SDK ----


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(windows={"small": 400, "gemini-3-pro": 4_000}) as running:
        yield running


OPEN: list[Any] = []
"""A client closes itself when it is collected, also between the pieces of a stream."""


def client(server: ProviderServer) -> Any:
    OPEN.append(genai.Client(api_key="any", http_options={"base_url": server.url}))
    return OPEN[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def test_an_overflow_is_refused_in_googles_words_with_its_figures(server: ProviderServer) -> None:
    for refused in (
        lambda: client(server).models.generate_content(model="small", contents="word " * 900),
        lambda: list(client(server).models.generate_content_stream(model="small", contents="word " * 900)),
    ):
        with pytest.raises(errors.ClientError) as caught:
            refused()
        assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
        used = server.requests[-1].tokens
        said = f"The input token count ({used}) exceeds the maximum number of tokens allowed (400)."
        assert caught.value.message == said
        verdict = overflow.classify(caught.value)
        assert verdict is not None
        assert (verdict.kind, verdict.limit, verdict.used) == ("prompt_too_long", 400, used)


def test_a_stream_says_the_same_as_a_whole_answer_and_its_usage_at_the_end(server: ProviderServer) -> None:
    asked = {"model": "gemini-3-pro", "contents": "the files main_1.py and main_2.py"}
    whole = client(server).models.generate_content(**asked)
    chunks = list(client(server).models.generate_content_stream(**asked))
    assert len(chunks) > 2
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert chunks[-1].usage_metadata.candidates_token_count == whole.usage_metadata.candidates_token_count
    assert chunks[-1].candidates[0].finish_reason == whole.candidates[0].finish_reason == "STOP"
    assert [request.stream for request in server.requests] == [False, True]

    async def later() -> str:
        async with client(server).aio as suspending:
            stream = await suspending.models.generate_content_stream(**asked)
            return "".join([chunk.text or "" async for chunk in stream])

    assert asyncio.run(later()) == whole.text


def test_calls_of_signing_models_have_ids_and_a_signature_and_others_none() -> None:
    answer = Answer("so", tool_calls=(ToolCall("f", {"a": 1}), ToolCall("g", {})))
    with ProviderServer(answers=lambda request: answer) as server:
        new, old = (
            client(server).models.generate_content(model=model, contents="x").candidates[0].content.parts
            for model in ("gemini-3-pro", "gemini-2.5-flash")
        )
    assert [part.function_call.name for part in new[1:]] == ["f", "g"]
    assert [bool(part.thought_signature) for part in new] == [False, True, False]
    assert len({part.function_call.id for part in new[1:]}) == 2
    assert [(part.function_call.id, part.thought_signature) for part in old[1:]] == [(None, None)] * 2


def test_a_repeated_beginning_is_reported_as_cached(server: ProviderServer) -> None:
    asked: list[Any] = [{"role": "user", "parts": [{"text": "word " * 2_000}]}]
    first = client(server).models.generate_content(model="gemini-3-pro", contents=asked)
    again = client(server).models.generate_content(model="gemini-3-pro", contents=[*asked, HELLO])
    assert first.usage_metadata.cached_content_token_count is None
    assert again.usage_metadata.cached_content_token_count > 1_900
    assert again.usage_metadata.prompt_token_count > again.usage_metadata.cached_content_token_count


def test_tokens_are_counted_and_other_errors_are_googles(server: ProviderServer) -> None:
    counted = client(server).models.count_tokens(model="small", contents="hello there")
    client(server).models.generate_content(model="small", contents="hello there")
    assert counted.total_tokens == server.requests[-1].tokens
    server.faults.add(Fault.rate_limit())
    with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
        client(server).models.generate_content(model="small", contents="hello there")


# ---- agreement with the engine ----


def sendable(contents: list[Any]) -> list[Any]:
    """The request that these would be part of: instructions stand beside them, empty ones are not sent."""
    kept = [content for content in contents if content["role"] != "system" and content["parts"]]
    kept = [HELLO, *kept] if kept and kept[0]["role"] == "model" else kept
    return (
        [*kept, HELLO] if kept and kept[-1]["role"] == "model" and "functionCall" not in kept[-1]["parts"][-1] else kept
    )


@quick
@given(histories("gemini", max_units=3, huge_units=5))
def test_whole_histories_are_accepted(contents: list[Any]) -> None:
    problem = problem_with(sendable(contents)) or ""
    assert not problem or ("number of function response parts" in problem and is_pending(contents))


def is_pending(contents: list[Any]) -> bool:
    """The strategies end in calls that wait for results, some or all of them."""
    names = [name for content in contents for part in content["parts"] for name in part]
    last = [name for content in contents[-2:] for part in content["parts"] for name in part]
    return names.count("functionCall") > names.count("functionResponse") and "functionCall" in last


@quick
@given(histories("gemini", broken=True, max_units=6, huge_units=200))
def test_views_of_broken_histories_are_accepted(contents: list[Any]) -> None:
    views: list[Any] = []
    try:
        Compactor(window=4_000).call(lambda view: views.append(view) or "ok", [*contents, HELLO])
    except CannotFit:
        return
    view = [content for content in views[-1] if content["role"] != "system"]
    assert problem_with(view) is None
