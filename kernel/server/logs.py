"""Logs on standard error, as text or JSON lines; they hold ids of calls and no contents of memories."""

import logging
import sys
import traceback
from typing import TYPE_CHECKING

from kernel.core.ids import current_call, shared_call_id, utc_now
from kernel.core.text import one_word

if TYPE_CHECKING:
    from kernel.calls.dispatch import Answer, Call, OnOutcome

_CALLS = logging.getLogger("quipu.calls")
_REQUESTS = logging.getLogger("quipu.requests")


class JsonLines(logging.Formatter):
    """One JSON object a line. An error has its type and stack, but not its message, which may quote a value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with the fields logged as `extra={"fields": {...}}`."""
        import msgspec  # here, since a server starts without it

        line: dict[str, object] = {
            "time": utc_now(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        error = record.exc_info and record.exc_info[1]
        if error:
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return msgspec.json.encode(line).decode()


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, "fields", {})
        return " ".join([super().format(record), *(f"{name}={one_word(str(value))}" for name, value in fields.items())])


def set_up(*, as_json: bool = False, calls: bool = False, requests: bool = False) -> None:
    """Logs warnings to standard error; with `calls` a line for each tool call too, with `requests` for each request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for log, wanted in ((_CALLS, calls), (_REQUESTS, requests)):
        log.setLevel(logging.INFO if wanted else logging.WARNING)


def observe(call: "Call", slow_seconds: float = 0.0) -> "OnOutcome":
    """Return an observer that logs each call, or each slow call: its id, tool, caller, outcome and duration."""
    fields: dict[str, object] = {
        "call": shared_call_id(),
        "dialect": call.entry.dialect.name,
        "tool": call.entry.tool.name,
        "tenant": call.caller.tenant,
        "actor": call.caller.actor,
    }

    def on_outcome(outcome: str, seconds: float, _answer: "Answer | None") -> None:
        current_call.set("")
        if seconds < slow_seconds:
            return
        _CALLS.info("call", extra={"fields": {**fields, "outcome": outcome, "milliseconds": round(seconds * 1000, 3)}})

    return on_outcome
