"""Limits of a connection, and the processor time that one call may spend in statements."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kernel.core.limits import CallLimits
from kernel.store.engine_types import TOO_LONG

__all__ = ["LIMITS", "SETTINGS", "STEPS", "TOO_LONG", "Budget", "apply_limits"]

# As sqlite.org/security.html advises: no double-quoted strings, no functions run by a foreign schema, no writes to
# shadow tables, no triggers (the schema has none; a rebuild of the full-text indexes has some, which writers then run).
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
    its handler does between two statements. `left` is the seconds that the call has left, None between two calls;
    `new_statement` marks that a statement begins.
    """

    __slots__ = ("_last", "left", "new_statement", "streamed")

    def __init__(self) -> None:
        self.left: float | None = None
        self._last = 0.0
        self.new_statement = True
        self.streamed = False  # SQLite reads every row when it is asked for

    def __call__(self) -> bool:
        if self.left is None:
            return False
        now = time.thread_time()
        if self.new_statement:
            self.new_statement = False
        else:
            self.left -= now - self._last
        self._last = now
        return self.left < 0


def apply_limits(db: Any, names: Any, limits: CallLimits) -> Budget:
    """Sets the limits of a connection of the driver `names`; returns the budget of its calls."""
    budget = Budget()
    db.set_progress_handler(budget, STEPS)
    for name, value in SETTINGS.items():
        db.config(getattr(names, f"SQLITE_DBCONFIG_{name}"), value)
    for name, value in {**LIMITS, "LENGTH": limits.value}.items():
        db.limit(getattr(names, f"SQLITE_LIMIT_{name}"), value)
    return budget
