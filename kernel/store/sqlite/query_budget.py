"""Limits of a connection, and the processor time that one call may spend in statements."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from kernel.errors import Fault
from kernel.limits import CallLimits

R = TypeVar("R")

TOO_LONG = "The call takes too long, ask for less."
# As sqlite.org/security.html advises: no double-quoted strings, no functions run by a foreign schema, no writes to
# shadow tables, no triggers (the schema has none).
SETTINGS: Mapping[str, int] = MappingProxyType(
    {"DQS_DML": 0, "DQS_DDL": 0, "TRUSTED_SCHEMA": 0, "DEFENSIVE": 1, "ENABLE_TRIGGER": 0}
)
# Enough for our own statements; ATTACHED is 1 because VACUUM attaches a file.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "ATTACHED": 1,
        "EXPR_DEPTH": 100,
        "VARIABLE_NUMBER": 1000,
        "LIKE_PATTERN_LENGTH": 20_000,
        "COMPOUND_SELECT": 50,
        "TRIGGER_DEPTH": 10,
        "WORKER_THREADS": 0,
    }
)
STEPS = 50_000  # virtual machine steps between two checks of the clock: some milliseconds, so most calls never check


class Budget:
    """A progress handler that stops a statement once its call has used up its processor time.

    It counts the thread's processor time inside statements only, so a call pays neither for its neighbours nor for what
    its handler does between two statements. `new_statement` marks that one begins.
    """

    __slots__ = ("_last", "_left", "_running", "_seconds", "exceeded", "new_statement")

    def __init__(self, milliseconds: int) -> None:
        self._seconds = milliseconds / 1000
        self._left = self._last = 0.0
        self._running = False
        self.new_statement = True
        self.exceeded = False

    def begin(self, factor: int = 1) -> None:
        """Starts a call that may use `factor` times the usual time."""
        self._left = self._seconds * factor
        self._running = True
        self.exceeded = False

    def end(self, answer: R) -> R | Fault:
        """Ends the call; its answer, or the Fault for a call that exceeded its time."""
        self._running = False
        return Fault("invalid", TOO_LONG) if self.exceeded else answer

    def __call__(self) -> bool:
        """Whether the statement must stop."""
        if not self._running:
            return False
        now = time.thread_time()
        if self.new_statement:
            self.new_statement = False
        else:
            self._left -= now - self._last
            self.exceeded = self._left < 0
        self._last = now
        return self.exceeded


def apply_limits(db: Any, names: Any, limits: CallLimits) -> Budget:
    """Sets the limits of a connection of the driver `names`; returns the budget of its calls."""
    budget = Budget(limits.milliseconds)
    db.set_progress_handler(budget, STEPS)
    for name, value in SETTINGS.items():
        db.config(getattr(names, f"SQLITE_DBCONFIG_{name}"), value)
    for name, value in {**LIMITS, "LENGTH": limits.value}.items():
        db.limit(getattr(names, f"SQLITE_LIMIT_{name}"), value)
    return budget
