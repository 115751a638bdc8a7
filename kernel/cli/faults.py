"""Errors of the engine as Faults, for the commands."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from kernel.dispatch import catch_faults
from kernel.errors import Fault

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


def or_raise(work: Callable[[*Args], Result], *args: *Args) -> Result:
    """Call `work(*args)`; SQLite errors are raised as Faults."""
    result = catch_faults(work, *args)
    if isinstance(result, Fault):
        raise result
    return result
