"""The upkeep of all stores of a process, on one thread: vectors, indexes, free space."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kernel.calls.dispatch import catch_faults
from kernel.core.memory import until_memory
from kernel.operations.compact import tidy
from kernel.operations.consistency import complete_index, unfinished_imports
from kernel.operations.file_check import damage_of
from kernel.search.vectors import load_all_vectors
from kernel.server import app, process
from kernel.server.app import Kernel

if TYPE_CHECKING:
    from kernel.server.worker import Worker

_TIDY_SECONDS = 60.0
_CLOSED_TENANTS = 256  # after which freed memory is given back
_TICK_SECONDS = 1.0  # between two looks at the tenants that were opened
_PAUSE_SECONDS = 0.02  # after each of them
_log = logging.getLogger(__name__)


class _Tended:
    """An open store, and the number of its committed calls when it was tidied."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.closing = False
        self.committed = 0


class Upkeep:
    """Completes the index of each store that is opened, and compacts it while it is written to.

    Of several workers one does so for a store.
    """

    def __init__(self, kernel: Kernel, worker: "Worker | None" = None) -> None:
        kernel.store.context.search_cache.warming = True
        self._main = kernel
        self._worker = worker
        self._opened = {kernel.config.tenant: _Tended(kernel)}
        self._complete: set[str] = set()  # a process has one model, so a tenant is completed once
        self._closed = 0  # since freed memory was given back

    def add(self, kernel: Kernel) -> Callable[[], None]:
        """Takes care of a tenant until the function that it returns is called."""
        name, entry = kernel.config.tenant, _Tended(kernel)
        self._opened[name] = entry

        def leave() -> None:
            entry.closing = True
            del self._opened[name]
            self._closed += 1
            if self._worker is not None:
                self._worker.leave_upkeep(name)

        return leave

    def run(self, stopping: threading.Event, on_loaded: Callable[[], None] | None = None) -> None:
        """Reads the model and the vectors of the main store, then tends all stores, until `stopping` is set.

        `on_loaded` is called once the model is loaded, or at once without a model.
        """
        self._warm(on_loaded)
        due = 0.0
        while not stopping.is_set():
            with suppress(MemoryError):  # there is more in the next second
                due = self._tend_all(due, stopping)
            until_memory(stopping.wait, _TICK_SECONDS)

    def _tend_all(self, due: float, stopping: threading.Event) -> float:
        """Tends the stores that need it, from the time `due` on all that have changed; returns the next such time."""
        all_due = time.monotonic() >= due
        for entry in [*self._opened.values()]:
            if self._is_due(entry, all_due):
                self._tend(entry, stopping)
        if all_due or self._closed > _CLOSED_TENANTS:
            self._closed = 0
            process.trim_memory()
        return time.monotonic() + _TIDY_SECONDS if all_due else due

    def _warm(self, on_loaded: Callable[[], None] | None) -> None:
        main, embedder = self._main, self._main.store.context.embedder
        if embedder is not None:
            catch_faults(embedder.load)
        if on_loaded is not None:
            on_loaded()
        if main.unclean:
            catch_faults(_tell_damage, main)
        if self._worker is None or self._worker.first:
            catch_faults(_warn_of_imports, main)
        if embedder is not None:
            catch_faults(main.store.read_sync, load_all_vectors)

    def _is_due(self, entry: _Tended, all_due: bool) -> bool:
        name = entry.kernel.config.tenant
        is_changed = entry.kernel is self._main or entry.kernel.store.committed > entry.committed
        is_due = name not in self._complete or (all_due and is_changed)
        return is_due and not entry.closing and (self._worker is None or self._worker.take_upkeep(name))

    def _tend(self, entry: _Tended, stopping: threading.Event) -> None:
        def stop() -> bool:
            return entry.closing or stopping.is_set()

        name, store = entry.kernel.config.tenant, entry.kernel.store
        if name not in self._complete:
            catch_faults(complete_index, store, app.DIALECTS, stop)
        if entry.kernel is self._main or store.committed > entry.committed:
            catch_faults(tidy, store, stop)
        entry.committed = store.committed
        if not stop():
            self._complete.add(name)
            if entry.kernel is not self._main:
                stopping.wait(_PAUSE_SECONDS)


def _warn_of_imports(kernel: Kernel) -> None:
    for line in kernel.store.read_sync(unfinished_imports):
        _log.warning("an import is %s", line)


def _tell_damage(kernel: Kernel) -> None:
    """Log the damage of a file that the process before did not close."""
    file = kernel.config.file
    damage = damage_of(file, kernel.store.context, quick=True)
    if damage:
        _log.error("%s was not closed, and it is damaged: %s; stop the server and run `quipu check`", file.name, damage)
    else:
        _log.info("%s was not closed; SQLite's quick check finds no damage", file.name)
