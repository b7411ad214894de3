"""One OpenTelemetry span per request, where the extra ``otel`` is installed; nothing where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextfold.gateway.call import GatewayCall


class Tracing:
    """Makes spans with the process's own tracer provider. They hold figures, no content."""

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

    @contextmanager
    def span(self, call: GatewayCall) -> Iterator[Any]:
        """The span of a request, a child of the one that its ``traceparent`` names."""
        if self._is_off:
            yield None
            return
        carrier = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in call.headers}
        context = self._propagate.extract(carrier) if "traceparent" in carrier else None
        tracer = self._api.get_tracer("contextfold.gateway")
        kind = self._api.SpanKind.SERVER
        with tracer.start_as_current_span(f"{call.method} {call.path}", context=context, kind=kind) as span:
            yield span

    def end(self, span: Any, call: GatewayCall, status: int) -> None:
        """What became of the request."""
        if span is None or not span.is_recording():
            return
        figures: dict[str, Any] = {
            "http.request.method": call.method,
            "url.path": call.path,
            "http.response.status_code": status,
            "contextfold.action": call.action,
            "contextfold.upstream": call.upstream.name,
            "gen_ai.request.model": call.model or None,
            **{f"contextfold.{name.replace('-', '_')}": _number(value) for name, value in call.notes.items()},
        }
        for name, value in figures.items():
            if value is not None:
                span.set_attribute(name, value)


def _number(value: str) -> int | str:
    return int(value) if value.isdigit() else value
