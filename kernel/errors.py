"""The one error type every layer raises and every dialect renders."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
Result = TypeVar("Result")

Code = Literal["invalid", "not_found", "conflict", "blocked", "disabled", "busy", "storage", "internal"]

HTTP_STATUS: dict[Code, int] = {
    "invalid": 400,
    "not_found": 404,
    "conflict": 409,
    "blocked": 403,
    "disabled": 409,
    "busy": 503,
    "storage": 507,
    "internal": 500,
}


class Fault(Exception):
    """A refusal with a stable code, a message fit for the caller, and the dialect's own word for it.

    `label` is that word (for example MEMORY_NOT_FOUND); empty where the dialect has none. `context` is what a dialect
    tells besides, as plain data; empty where it tells nothing more. `tool` is the tool that was called, once that is
    known, for dialects whose errors name it.
    """

    __slots__ = ("code", "context", "label", "message", "tool")

    def __init__(self, code: Code, message: str, label: str = "", context: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.label = label
        self.context: Mapping[str, Any] = context or {}
        self.tool = ""


class CatchFaults(Protocol):
    """Runs `work(*args)`; gives its result, or the Fault it raised. See `kernel.dispatch.catch_faults`."""

    def __call__(self, work: Callable[[*Args], Result], /, *args: *Args) -> Result | Fault: ...
