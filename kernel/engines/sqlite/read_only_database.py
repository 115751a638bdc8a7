"""A database file that another process writes: read as any other, and every write is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.sqlite.database import SqliteDatabase
from kernel.store.context import StoreContext


class ReadOnlyDatabase(SqliteDatabase):
    """A database without writer and checkpointer; `refusal` says where to write instead."""

    def __init__(self, file: Path, context: StoreContext, refusal: str, release: Callable[[], None]) -> None:
        super().__init__(file, context, release=release)
        self._refusal = refusal

    def start(self, catch_faults: CatchFaults) -> None:
        """Starts nothing."""

    def writer(self) -> NoReturn:
        """Raises Fault("disabled")."""
        raise Fault("disabled", self._refusal)
