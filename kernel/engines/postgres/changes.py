"""Records the changes of a call, as images of rows, which triggers keep."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kernel.core.errors import Fault
from kernel.engines.postgres.driver import load_driver


class Recorder:
    """Records changes through a connection, in parts of at most `limit_bytes`."""

    def __init__(self, command: Callable[[str], Any], query: Callable[..., Any], limit_bytes: int) -> None:
        self._command = command
        self._query = query
        self._limit = limit_bytes
        command("SET LOCAL quipu.undo = 'on'")

    def take(self) -> bytes | None:
        """Return the changes since the last time; None if they are larger than the limit."""
        ((text,),) = self._query("engine.changes.take")
        taken = (text or "").encode()
        return taken if len(taken) <= self._limit else None

    def close(self) -> None:
        """Stops recording; a transaction that has failed has stopped by itself."""
        with suppress(Fault, load_driver().Error):
            self._command("SET LOCAL quipu.undo = 'off'")
