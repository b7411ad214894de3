"""Fields that a model does not take are left out or renamed, and answers that reasoning ate are asked for again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import openai
import pytest
from asking_models import compacted, conversation
from emulator import Answer as Said
from emulator import Fault, ProviderServer, Request

from contextfold import Compactor, Policy
from contextfold.summary.accept import clean, rejection
from contextfold.summary.models import SummaryModel
from contextfold.summary.models.settings import RequestSettings, refused_field
from contextfold.summary.summarizer import Answer

COLORS = pytest.mark.parametrize("color", ["sync", "async"])


def unsupported(name: str, advice: str = "") -> dict[str, Any]:
    """As OpenAI writes it."""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{advice}"
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}
    }


def refuses(server: ProviderServer, name: str, model: str, body: dict[str, Any] | None = None) -> None:
    def carries(request: Request) -> bool:
        return request.model == model and name in request.body

    server.faults.add(Fault.http_error(400, body=body or unsupported(name)), when=carries)


def bodies(server: ProviderServer, model: str) -> list[Any]:
    return [request.body for request in server.requests if request.model == model]


def compactor_for(model: SummaryModel, events: list[Any], **options: Any) -> Compactor:
    policy = Policy(on_failure="raise", summary={"retries_on_failure": 0, "retries_on_rejection": 1})
    return Compactor(window=12_000, summarizer=model, policy=policy, on_event=events.append, **options)


@COLORS
def test_a_temperature_that_a_reasoning_model_does_not_take_is_left_out_from_then_on(
    color: str, server: ProviderServer
) -> None:
    name, events = f"reasons-{color}", list[Any]()
    refuses(server, "temperature", name)
    model = SummaryModel(f"openai:{name}", base_url=server.openai_url, temperature=0.2)
    compactor = compactor_for(model, events)
    assert compacted(color, compactor, conversation()).summary.calls == 1
    assert ["temperature" in body for body in bodies(server, name)] == [True, False]
    assert [event.data["field"] for event in events if event.name == "summary_field_refused"] == ["temperature"]
    assert compacted(color, compactor, conversation(31)).changed
    assert ["temperature" in body for body in bodies(server, name)] == [True, False, False]


@COLORS
def test_branches_that_learn_it_at_once_all_go_on(color: str, server: ProviderServer) -> None:
    name, events = f"branches-{color}", list[Any]()
    late = replace(Fault.http_error(400, body=unsupported("temperature")), delay=0.4)  # all are under way by then
    server.faults.add(late, when=lambda request: request.model == name and "temperature" in request.body)
    model = SummaryModel(f"openai:{name}", base_url=server.openai_url, temperature=0.2, window=3_000)
    policy = Policy(on_failure="raise", summary={"retries_on_failure": 0, "parallel": 3})
    compactor = Compactor(window=12_000, summarizer=model, policy=policy, on_event=events.append)
    out = compacted(color, compactor, conversation())
    assert out.summary.chunk_count >= 3
    assert sum("temperature" in body for body in bodies(server, name)) == 3
    assert sum(event.name == "summary_field_refused" for event in events) == 1


@pytest.mark.parametrize("refused", [["max_tokens"], ["max_tokens", "max_completion_tokens"]])
def test_the_answer_limit_goes_by_its_other_name_or_by_none(refused: list[str], server: ProviderServer) -> None:
    """A gateway in front of a newer model of OpenAI takes ``max_completion_tokens`` only."""
    name, events = f"renamed-{len(refused)}", list[Any]()
    for field in refused:
        refuses(server, field, name)
    model = SummaryModel(f"openai:{name}", base_url=server.openai_url, max_output_tokens=900)
    assert compacted("sync", compactor_for(model, events), conversation()).changed
    sent = [[field for field in ("max_tokens", "max_completion_tokens") if field in b] for b in bodies(server, name)]
    assert sent == [*([field] for field in ("max_tokens", "max_completion_tokens")), []][: len(refused) + 1]
    assert bodies(server, name)[0]["max_tokens"] == 900


def test_usage_in_streams_and_storing_are_not_insisted_on(server: ProviderServer) -> None:
    for api, field in (("chat", "stream_options"), ("responses", "store")):
        name, events = f"{api}-without", list[Any]()
        body = {
            "detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}]
        }
        refuses(server, field, name, body)
        model = SummaryModel(f"openai:{name}", base_url=server.openai_url, api=api)
        compactor = compactor_for(model, events, on_stream=lambda piece: None)
        assert compacted("sync", compactor, conversation()).changed
        assert [field in body for body in bodies(server, name)] == [True, False]


def test_claude_without_a_temperature(server: ProviderServer) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated here."}}
    refuses(server, "temperature", "claude-without", body)
    model = SummaryModel("anthropic:claude-without", base_url=server.anthropic_url, temperature=0.5)
    assert compacted("sync", compactor_for(model, []), conversation()).changed
    assert ["temperature" in body for body in bodies(server, "claude-without")] == [True, False]


def test_a_value_that_is_too_large_is_the_callers_to_mend(server: ProviderServer) -> None:
    message = "max_tokens is too large: 90000. This model supports at most 16384 completion tokens."
    refuses(server, "max_tokens", "large", {"error": {"message": message, "param": "max_tokens"}})
    model = SummaryModel("openai:large", base_url=server.openai_url, max_output_tokens=90_000)
    with pytest.raises(openai.BadRequestError, match="too large"):
        compacted("sync", compactor_for(model, []), conversation())
    assert len(bodies(server, "large")) == 1


class Failure(Exception):
    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status_code = status


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (Failure("Unsupported value: 'temperature' does not support 0.2 with this model."), "temperature"),
        (Failure("invalid temperature: only 1 is allowed for this model"), "temperature"),
        (Failure("Use 'max_completion_tokens': 'max_tokens' is not supported", 400), "max_completion_tokens"),
        (Failure("Unknown parameter: 'stream_options'."), "stream_options"),
        (Failure("1 validation error: store: Extra inputs are not permitted", 422), "store"),
        (Failure("不支持参数 temperature"), "temperature"),
        (Failure("temperature is not supported", 500), None),
        (Failure("max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens"), None),
        (Failure("prompt is too long: 9000 tokens > 8000 maximum; temperature is not supported"), None),
        (Failure("Unsupported parameter: 'reasoning'"), None),
        (Failure("The model `x` does not exist"), None),
        (ValueError("temperature is not supported"), None),
    ],
)
def test_which_field_a_refusal_is_about(error: Exception, field: str | None) -> None:
    assert refused_field(error) == field


def test_what_was_refused_is_in_no_body() -> None:
    settings = RequestSettings("m", temperature=0.1, max_output_tokens=9)
    assert settings.body("max_output_tokens") == {"temperature": 0.1, "max_output_tokens": 9}
    bare = RequestSettings(
        "m", temperature=0.1, max_output_tokens=9, without=frozenset({"temperature", "max_output_tokens"})
    )
    assert bare.body("max_output_tokens") == {}


# ---- hidden reasoning ----


@COLORS
def test_an_answer_that_reasoning_ate_is_asked_for_with_more_room(color: str, server: ProviderServer) -> None:
    """Servers that speak Anthropic's API and reason count that against the limit, which the API wants in any case."""
    name, events = f"eaten-{color}", list[Any]()
    eaten = Fault("eaten", change=lambda answer: Said("", finish="length"))
    server.faults.add(eaten, when=lambda request: request.model == name, times=1)
    model = SummaryModel(f"anthropic:{name}", base_url=server.anthropic_url)
    assert compacted(color, compactor_for(model, events), conversation()).changed
    first, second = (body["max_tokens"] for body in bodies(server, name))
    assert first < second <= 4_096
    (reason,) = [event.data["reason"] for event in events if event.name == "summary_rejected"]
    assert "reasoning counts against the answer limit" in reason


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm\nhm</think>\nDone.", "Done."),
        ("<think>I was cut off", ""),
        ("The user wants a summary.\nLet me see.\n</think>\n\nDone: a.py.", "Done: a.py."),
        ("Okay.\n</thinking>\nDone.", "Done."),
        ("The parser ends at </think> in a.py.", "The parser ends at </think> in a.py."),
    ],
)
def test_thinking_is_no_part_of_a_summary(text: str, left: str) -> None:
    """Templates of some servers open it, so that nothing but its end is in the answer."""
    assert clean(text) == left


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("pause_turn", "cut off"),
        ("CONTINUATION", "cut off"),
        ("insufficient_system_resource", "ended early"),
        ("error", "ended early"),
        ("cancelled", "ended early"),
        ("MALFORMED_FUNCTION_CALL", "calls a tool"),
        ("refusal", "refused"),
        ("content_filter", "refused"),
        ("stop", None),
        ("end_turn", None),
        ("completed", None),
        (None, None),
    ],
)
def test_how_an_answer_ended_tells_whether_it_will_do(reason: str | None, words: str | None) -> None:
    count: Callable[[str], int] = len
    found = rejection(Answer("The import was repaired in a.py.", reason), input_tokens=0, count=count)
    assert (found is None) if words is None else words in (found or "")
