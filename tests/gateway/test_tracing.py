"""Spans as an operator's own exporter gets them: a request, its requests to the provider, compaction, overflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulator import ProviderServer
from tests.gateway.conftest import WINDOW, settings_for
from tests.gateway.requests_made import PATHS, body_of, compact, post, turns

from contextfold.gateway.serve import InThread

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(scope="module")
def exporter() -> Iterator[Any]:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    found = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    before = trace._TRACER_PROVIDER
    trace._TRACER_PROVIDER = provider  # as `opentelemetry-instrument` would; the API's own function does it only once
    yield found
    trace._TRACER_PROVIDER = before
    provider.shutdown()


@pytest.fixture(scope="module")
def spans(exporter: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """All spans of one request that is refused for its size, compacted, and sent again."""
    with ProviderServer(default_window=WINDOW) as provider:
        settings = settings_for(provider.url, tmp_path_factory.mktemp("tracing"), window=None)
        with InThread(settings) as gateway:
            raw = compact(body_of("openai-chat", list(turns("openai-chat", 40))[-1]))
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            assert post(gateway.url, PATHS["openai-chat"] + "?key=secret-in-a-query", raw, headers).status == 200
            post(gateway.url, "/v1/models/model-1", b"", method="GET")
    return list(exporter.get_finished_spans())


def test_a_request_is_a_span_under_the_callers(spans: list[Any]) -> None:
    span = next(span for span in spans if span.name == "POST /v1/chat/completions")
    assert span.kind is trace.SpanKind.SERVER
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["contextfold.action"] == "compacted"
    assert span.attributes["gen_ai.request.model"] == "model-of-a-test"
    assert span.attributes["contextfold.tokens_before"] > span.attributes["contextfold.tokens_after"] > 0
    other = next(span for span in spans if span.name == "GET")
    assert other.attributes["url.path"] == "/v1/models/model-1"


def test_an_overflow_is_an_error_of_its_attempt_and_the_second_attempt_succeeds(spans: list[Any]) -> None:
    request = next(span for span in spans if span.name == "POST /v1/chat/completions")
    first, second = [span for span in spans if span.name == "upstream" and span.parent.span_id == _id(request)]
    assert first.attributes["contextfold.overflow"] == "prompt_too_long"
    assert first.attributes["http.response.status_code"] == 400
    assert first.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in first.events] == ["overflow"]
    assert "contextfold.overflow" not in second.attributes
    assert second.attributes["http.request.body.size"] < first.attributes["http.request.body.size"]


def test_a_compaction_is_a_span_with_its_sizes_between_the_two(spans: list[Any]) -> None:
    request = next(span for span in spans if span.name == "POST /v1/chat/completions")
    made = next(span for span in spans if span.name == "contextfold compaction")
    assert made.parent.span_id == _id(request)
    assert made.attributes["contextfold.tokens_before"] > made.attributes["contextfold.tokens_after"]
    first, second = [span for span in spans if span.name == "upstream" and span.parent.span_id == _id(request)]
    assert first.end_time <= made.start_time <= made.end_time <= second.start_time


def test_spans_hold_no_content_and_no_credential(spans: list[Any]) -> None:
    text = "".join(span.to_json() for span in spans)
    for secret in ("key-of-a-test", "secret-in-a-query", "careful agent", "src/app/main.py", "Task 0"):
        assert secret not in text


def test_without_a_provider_of_spans_nothing_is_made(tmp_path: Path) -> None:
    from contextfold.gateway.call import GatewayCall
    from contextfold.gateway.tracing import Tracing

    tracing = Tracing()
    before, trace._TRACER_PROVIDER = trace._TRACER_PROVIDER, None
    try:
        upstream = settings_for("http://h", tmp_path).all_upstreams()["openai"]
        with tracing.span(GatewayCall("GET", "/", "", [], b"", upstream, None)) as span:
            assert span is None
    finally:
        trace._TRACER_PROVIDER = before


def _id(span: Any) -> int:
    return int(span.context.span_id)
