"""What the server says of itself on standard error: words, or lines of JSON with the ids of calls and no contents."""

import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any

from kernel.ids import call_id, current_call, utc_now

if TYPE_CHECKING:
    from kernel.calls import OnOutcome, ToolEntry
    from kernel.security.permissions import Caller

_CALLS = logging.getLogger("quipu.calls")


class JsonLines(logging.Formatter):
    """One JSON object a line. Of an error it tells type and places, but not the message, which may quote a value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; what was logged as `extra={"told": {...}}` stands in it as it is."""
        import msgspec  # not before something is logged: a server starts without

        line: dict[str, Any] = {
            "time": utc_now(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "told", {}))
        error = record.exc_info and record.exc_info[1]
        if error:
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return msgspec.json.encode(line).decode()


class TextLines(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Level and message, then what was told besides."""
        told: dict[str, Any] = getattr(record, "told", {})
        return " ".join([super().format(record), *(f"{name}={value}" for name, value in told.items())])


def set_up(*, as_json: bool = False, calls: bool = False) -> None:
    """Sends everything logged to standard error; with `calls` a line for each tool call too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    _CALLS.setLevel(logging.INFO if calls else logging.WARNING)


def observe(bound: "ToolEntry", caller: "Caller") -> "OnOutcome":
    """A `Watch` that logs each call: its id, its tool, who called, how it came out, how long it took."""
    call = call_id()
    current_call.set(call)
    told: dict[str, Any] = {
        "call": call,
        "dialect": bound.dialect.name,
        "tool": bound.tool.name,
        "tenant": caller.tenant,
        "actor": caller.actor,
    }

    def tell(outcome: str, seconds: float) -> None:
        current_call.set("")
        _CALLS.info("call", extra={"told": {**told, "outcome": outcome, "milliseconds": round(seconds * 1000, 3)}})

    return tell
