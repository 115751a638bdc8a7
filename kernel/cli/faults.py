"""Errors of the engine as Faults, for the commands."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.engines.sqlite.errors import SQLITE_ERRORS, as_fault

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


def or_raise(work: Callable[[*Args], Result], *args: *Args) -> Result:
    """Call `work(*args)`; SQLite errors are raised as Faults, which the command prints: they are not logged too."""

    def quiet() -> Result:
        try:
            return work(*args)
        except (*SQLITE_ERRORS, OSError) as error:
            if (known := as_fault(error)) is not None:
                raise known from error
            raise

    result = catch_faults(quiet)
    if isinstance(result, Fault):
        raise result
    return result
