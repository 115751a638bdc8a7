"""A span of OpenTelemetry for each tool call, inside the trace its caller names; takes the extra `otel`."""

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from kernel.calls import OnOutcome, ToolEntry
from kernel.config import VERSION
from kernel.errors import Fault
from kernel.http.fast_path import Done, FastRoute, HttpResponse, Pending
from kernel.ids import now_ns
from kernel.limits import Header
from kernel.mcp.messages import Inbound
from kernel.security.permissions import Caller

_PARENT, _STATE = "traceparent", "tracestate"
_NAMES = {_PARENT.encode(): _PARENT, _STATE.encode(): _STATE}
_FLUSH_MILLISECONDS = 1000
_ABSENT: Mapping[str, str] = {}
# What the request being begun says of the trace it belongs to, as W3C Trace Context has it.
_carried: ContextVar[Mapping[str, str]] = ContextVar("carried", default=_ABSENT)


class Tracing:
    """Spans of calls, sent where the `OTEL_...` variables say, by OTLP over HTTP."""

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace import SpanKind, Status, StatusCode
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ModuleNotFoundError:
            raise Fault("disabled", "QUIPU_TRACES needs pip install 'quipu-memory[otel]'") from None
        # Whoever names the service by a variable is right: the SDK lets that win.
        about = {"service.name": "quipu", "service.version": VERSION}
        self._provider = TracerProvider(resource=Resource.create(about))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("quipu", VERSION)
        self._extract = TraceContextTextMapPropagator().extract
        self._kind = SpanKind.SERVER
        self._failed = Status(StatusCode.ERROR)

    def observe(self, bound: ToolEntry, caller: Caller) -> OnOutcome:
        """A `Watch` that makes a span of a call once it is over, so that none is left open."""
        begun, parent = now_ns(), self._extract(_carried.get())
        about = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": bound.tool.name,
            "quipu.dialect": bound.dialect.name,
            "quipu.tenant": caller.tenant,
        }

        def told(outcome: str, _seconds: float) -> None:
            name = f"tools/call {bound.tool.name}"
            span = self._tracer.start_span(name, parent, self._kind, about, start_time=begun)
            if outcome not in ("ok", "asked"):
                span.set_attribute("error.type", outcome)
                span.set_status(self._failed)
            span.end()

        return told

    def on_request(self, scope: Mapping[str, Any]) -> None:
        """Notes what the headers of a request say of a trace."""
        _hear(scope["headers"])

    def wrap_route(self, direct: FastRoute) -> FastRoute:
        """The same way around ASGI, with the headers heard first."""

        def heard(headers: Sequence[Header], body: bytes | None, done: Done) -> HttpResponse | Pending | Fault | None:
            _hear(headers)
            return direct(headers, body, done)

        return heard

    def on_message(self, inbound: Inbound) -> None:
        """Notes the trace that `_meta` names, which counts more than the headers."""
        meta = inbound.params.meta
        if meta is not None and meta.traceparent is not None:
            _carried.set({_PARENT: meta.traceparent, _STATE: meta.tracestate or ""})

    def close(self) -> None:
        """Sends what is left, for a second at most."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)


def _hear(headers: Iterable[Header]) -> None:
    _carried.set({_NAMES[name]: value.decode("latin-1") for name, value in headers if name in _NAMES} or _ABSENT)
