"""OpenTelemetry spans, where the extra ``otel`` is installed and the process has a tracer provider; nothing otherwise.

    POST /v1/messages                what became of a request, a child of the span in its ``traceparent``
    ├── upstream                     one request to the provider; an overflow is an event and an error here
    └── contextfold compaction       one pass, with its sizes

Spans hold names and figures, never content or credentials.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contextfold.gateway.call import GatewayCall
from contextfold.record.compaction import Compaction

COMPACTION = "contextfold compaction"


class Tracing:
    """Makes spans with the process's own tracer provider."""

    def __init__(self) -> None:
        self._api: Any = None
        self._propagate: Any = None
        try:
            from opentelemetry import propagate, trace
        except ImportError:
            return
        self._api, self._propagate = trace, propagate

    @property
    def _is_off(self) -> bool:
        """Without a provider of spans (the SDK's, set up by the operator) there is nothing to make."""
        return self._api is None or isinstance(self._api.get_tracer_provider(), self._api.ProxyTracerProvider)

    @property
    def _tracer(self) -> Any:
        return self._api.get_tracer("contextfold.gateway")

    @contextmanager
    def span(self, call: GatewayCall) -> Iterator[Any]:
        """The span of a request, a child of the one that its ``traceparent`` names."""
        if self._is_off:
            yield None
            return
        carrier = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in call.headers}
        context = self._propagate.extract(carrier) if "traceparent" in carrier else None
        # paths of other requests hold ids, which would make too many names
        name = f"{call.method} /v1{call.wire.path}" if call.wire else call.method
        with self._tracer.start_as_current_span(name, context=context, kind=self._api.SpanKind.SERVER) as span:
            yield span

    def end(self, span: Any, call: GatewayCall, status: int) -> None:
        """What became of the request."""
        if span is None or not span.is_recording():
            return
        figures: dict[str, Any] = {
            "http.request.method": call.method,
            "url.path": call.path,
            "http.response.status_code": status or None,
            "contextfold.action": call.action,
            "contextfold.reason": call.reason or None,
            "contextfold.upstream": call.upstream.name,
            "gen_ai.request.model": call.model or None,
            **{f"contextfold.{_KEYS.get(name, name.replace('-', '_'))}": number(v) for name, v in call.notes.items()},
        }
        span.set_attributes({name: value for name, value in figures.items() if value is not None})
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)

    @contextmanager
    def attempt(self, call: GatewayCall, length: int) -> Iterator[dict[str, Any]]:
        """One request to the upstream, of ``length`` bytes; what is put into the mapping becomes attributes."""
        told: dict[str, Any] = {}
        if self._is_off:
            yield told
            return
        kind = self._api.SpanKind.CLIENT
        options = {"record_exception": False, "set_status_on_exception": False}  # their texts are the provider's words
        with self._tracer.start_as_current_span("upstream", kind=kind, **options) as span:
            try:
                yield told
            except BaseException:
                span.set_status(self._api.StatusCode.ERROR)
                raise
            finally:
                named = {"http.request.body.size": length, "contextfold.upstream": call.upstream.name}
                span.set_attributes({**named, **told})
                if "contextfold.overflow" in told:
                    span.add_event("overflow", {"contextfold.overflow": told["contextfold.overflow"]})

    def compacted(self, began: int, record: Compaction) -> None:
        """A pass that began at that time (ns since 1970) made this record."""
        if self._is_off:
            return
        attributes: dict[str, Any] = {
            "contextfold.compaction": record.id,
            "contextfold.trigger": record.trigger or "",
            "contextfold.tokens_before": record.tokens_before,
            "contextfold.tokens_after": record.tokens_after,
            "contextfold.covers": record.covers,
        }
        if record.summary is not None:
            attributes["contextfold.summary_calls"] = record.summary.calls
        span = self._tracer.start_span(COMPACTION, start_time=began, attributes=attributes)
        span.end(time.time_ns())


_KEYS = {"upstream": "upstream_error"}  # where "upstream" is its name


def number(value: str) -> int | str:
    """A figure of a response header as the number that it is."""
    return int(value) if value.isdigit() else value
