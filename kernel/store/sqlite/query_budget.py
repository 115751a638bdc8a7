"""What one call may cost the engine, and the clock that ends a call which costs more."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kernel.errors import Fault
from kernel.limits import CallLimits

TOO_LONG = "The call takes too long, ask for less."
# No double-quoted text, nothing that a schema not ours could run, no hand on what the engine keeps for itself.
SETTINGS: Mapping[str, int] = MappingProxyType(
    {"DQS_DML": 0, "DQS_DDL": 0, "TRUSTED_SCHEMA": 0, "DEFENSIVE": 1, "ENABLE_TRIGGER": 0}
)
# What our own statements need, and VACUUM, which attaches a file.
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
STEPS = 50_000  # of the engine between two looks at the clock: some milliseconds, so that most calls never look


class Budget:
    """Asked by the engine, every so many steps of a statement, whether it must stop.

    It counts the processor time of the thread inside statements alone: a call pays neither for its neighbours nor for
    what a handler does between two statements. `fresh` says that a statement begins.
    """

    __slots__ = ("_last", "_left", "_running", "_seconds", "fresh", "over")

    def __init__(self, milliseconds: int) -> None:
        self._seconds = milliseconds / 1000
        self._left = self._last = 0.0
        self._running = False
        self.fresh = True
        self.over = False

    def begin(self, times: int = 1) -> None:
        """A call begins, which may take as many times the usual."""
        self._left = self._seconds * times
        self._running = True
        self.over = False

    def end(self, answer: Any = None) -> Any:
        """The call ends, and what follows is nobody's; its answer, or the Fault that says that it took too long."""
        self._running = False
        return Fault("invalid", TOO_LONG) if self.over else answer

    def __call__(self) -> bool:
        """Whether the statement must stop."""
        if not self._running:
            return False
        now = time.thread_time()
        if self.fresh:
            self.fresh = False
        else:
            self._left -= now - self._last
            self.over = self._left < 0
        self._last = now
        return self.over


def apply_limits(db: Any, names: Any, engine: CallLimits) -> Budget:
    """Keeps a connection within bounds; `names` has the constants of the engine. The budget of its calls."""
    budget = Budget(engine.milliseconds)
    db.set_progress_handler(budget, STEPS)
    for name, value in SETTINGS.items():
        db.config(getattr(names, f"SQLITE_DBCONFIG_{name}"), value)
    for name, value in {**LIMITS, "LENGTH": engine.value}.items():
        db.limit(getattr(names, f"SQLITE_LIMIT_{name}"), value)
    return budget
