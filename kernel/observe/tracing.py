"""A span of OpenTelemetry for each tool call, inside the trace its caller names; takes the extra `otel`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from kernel.config import VERSION
from kernel.dispatch import Bound
from kernel.errors import Fault
from kernel.http.fast_path import Answer, Begun, Direct, Done
from kernel.ids import now_ns
from kernel.limits import Header
from kernel.mcp.messages import Inbound
from kernel.mcp.server import Service
from kernel.observe.calls import Told
from kernel.security.permissions import Caller
from kernel.store.queue import Job

_PARENT, _STATE = "traceparent", "tracestate"
_NAMES = {_PARENT.encode(): _PARENT, _STATE.encode(): _STATE}
_FLUSH_MILLISECONDS = 1000
_ABSENT: Mapping[str, str] = {}
# What the request being begun says of the trace it belongs to, as W3C Trace Context has it.
_carried: ContextVar[Mapping[str, str]] = ContextVar("carried", default=_ABSENT)


class Traces:
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

    def watch(self, bound: Bound, caller: Caller) -> Told:
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

    def heard(self, scope: Mapping[str, Any]) -> None:
        """Notes what the headers of a request say of a trace."""
        _hear(scope["headers"])

    def hearing(self, direct: Direct) -> Direct:
        """The same way around ASGI, with the headers heard first."""

        def heard(headers: Sequence[Header], body: bytes, done: Done) -> Answer | Begun | Fault | None:
            _hear(headers)
            return direct(headers, body, done)

        return heard

    def service(self, *args: Any, **more: Any) -> Service:
        """A Service that heeds `_meta`."""
        return _Carrying(*args, **more)

    def close(self) -> None:
        """Sends what is left, for a second at most."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)


class _Carrying(Service):
    """A Service that heeds what `_meta` says of a trace, before what the headers say."""

    def now(self, inbound: Inbound) -> bytes:
        """As a Service does."""
        _heed(inbound)
        return super().now(inbound)

    async def answer(self, inbound: Inbound) -> bytes:
        """As a Service does."""
        _heed(inbound)
        return await super().answer(inbound)

    def start(self, inbound: Inbound, done: Callable[[bytes], None]) -> bytes | Job:
        """As a Service does."""
        _heed(inbound)
        return super().start(inbound, done)


def _hear(headers: Iterable[Header]) -> None:
    _carried.set({_NAMES[name]: value.decode("latin-1") for name, value in headers if name in _NAMES} or _ABSENT)


def _heed(inbound: Inbound) -> None:
    meta = inbound.params.meta
    if meta is not None and meta.traceparent is not None:
        _carried.set({_PARENT: meta.traceparent, _STATE: meta.tracestate or ""})
