"""The one error type that every layer raises and every dialect renders."""

import errno
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

NO_SPACE = "Cannot write to storage, insufficient disk space."


def is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error of the system says that the disk, or the user's quota of it, is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


NO_MEMORY = "Too little memory is free, try again."


class Fault(Exception):
    """An error with a stable code and a message for the caller.

    `label` is the dialect's own code (for example MEMORY_NOT_FOUND), empty if it has none. `context` is more detail
    as plain data. `tool` is the tool that was called, once known, for dialects that name it in errors.
    """

    __slots__ = ("code", "context", "label", "message", "tool")

    def __init__(self, code: Code, message: str, label: str = "", context: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.label = label
        self.context: Mapping[str, Any] = context or {}
        self.tool = ""


def unless_fault(answer: Result | Fault) -> Result:
    """Return an answer; raises it if it is a Fault."""
    if isinstance(answer, Fault):
        raise answer
    return answer


class CatchFaults(Protocol):
    """Returns the result of `work(*args)`, or the Fault it raised. See `kernel.calls.dispatch.catch_faults`."""

    def __call__(self, work: Callable[[*Args], Result], /, *args: *Args) -> Result | Fault: ...
