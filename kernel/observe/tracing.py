"""OpenTelemetry spans of tool calls, within the trace of the request; needs the extra `otel`."""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar

from kernel.calls.dispatch import Answer, Call, OnOutcome
from kernel.core.config import VERSION
from kernel.core.errors import Fault
from kernel.core.ids import now_ns, shared_call_id
from kernel.core.limits import Header
from kernel.mcp.messages import Inbound
from kernel.store.queue import Stages, current_stages

_PARENT, _STATE = "traceparent", "tracestate"
_NAMES = {_PARENT.encode(): _PARENT, _STATE.encode(): _STATE}
_FLUSH_MILLISECONDS = 1000
_ABSENT: Mapping[str, str] = {}
# The W3C Trace Context of the request being handled.
_trace_context: ContextVar[Mapping[str, str]] = ContextVar("trace_context", default=_ABSENT)


class Tracing:
    """Spans of calls, sent to the address in the `OTEL_...` variables, by OTLP over HTTP."""

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ModuleNotFoundError:
            raise Fault("disabled", "QUIPU_TRACES needs pip install 'quipu-memory[otel]'") from None
        # The SDK lets OTEL_SERVICE_NAME override this name.
        about = {"service.name": "quipu", "service.version": VERSION}
        self._provider = TracerProvider(resource=Resource.create(about))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("quipu", VERSION)
        self._extract = TraceContextTextMapPropagator().extract
        self._within = set_span_in_context
        self._kind = SpanKind.SERVER
        self._failed = Status(StatusCode.ERROR)

    def observe(self, call: Call) -> OnOutcome:
        """Return an observer that makes the span of a call when it ends, so that none is left open, and its children:
        one for each stage.
        """
        entry, start, parent = call.entry, now_ns(), self._extract(_trace_context.get())
        about = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": entry.tool.name,
            "quipu.dialect": entry.dialect.name,
            "quipu.tenant": call.caller.tenant,
            "quipu.call": shared_call_id(),
        }
        stages = Stages()
        current_stages.set(stages)

        def on_outcome(outcome: str, _seconds: float, _answer: Answer | None) -> None:
            name = f"tools/call {entry.tool.name}"
            span = self._tracer.start_span(name, parent, self._kind, about, start_time=start)
            if outcome not in ("ok", "asked"):
                span.set_attribute("error.type", outcome)
                span.set_status(self._failed)
            within, begun = self._within(span), start
            for stage, end in stages:
                self._tracer.start_span(stage, within, start_time=begun).end(end)
                begun = end
            span.end()

        return on_outcome

    def on_headers(self, headers: Iterable[Header]) -> None:
        trace = {_NAMES[name]: value.decode("latin-1") for name, value in headers if name in _NAMES}
        _trace_context.set(trace or _ABSENT)

    def on_message(self, inbound: Inbound) -> None:
        """Sets the trace from `_meta`, which takes precedence over the headers."""
        meta = inbound.params.meta
        if meta is not None and meta.traceparent is not None:
            _trace_context.set({_PARENT: meta.traceparent, _STATE: meta.tracestate or ""})

    def close(self) -> None:
        """Sends the remaining spans, for at most a second."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)
