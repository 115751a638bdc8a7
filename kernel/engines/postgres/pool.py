"""The connections of one process to one database, shared by all its tenants."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from kernel.core.errors import Fault
from kernel.engines.postgres.driver import PATIENCE, UNREACHABLE, as_fault, connect, is_usable, load_driver, transaction

MOST = 16  # connections of a process, however many tenants it serves
BUSY = "The server is busy, try again."
_WAIT_SECONDS = 5.0
_ATTEMPTS = 5  # of a new connection, with pauses that double: half a second in all
_FIRST_PAUSE = 0.03
# For so long after these no connection is tried: a thread that opens a tenant keeps others waiting.
_REST_SECONDS = 0.25


class Pool:
    """At most `most` connections; the connection given back last is taken first, since its statements are prepared.

    A new connection is tried `attempts` times, each for `patience` seconds if the address says nothing else.
    """

    def __init__(self, address: str, most: int = MOST, attempts: int = _ATTEMPTS, patience: int = PATIENCE) -> None:
        self.address = address
        self._attempts = attempts
        self._patience = patience
        self._free: list[Any] = []
        self._lock = threading.Lock()
        self._room = threading.Semaphore(most)
        self.most = most
        self.used = 0  # connections that are lent
        self.waiting = 0  # callers that wait for a connection
        self.trips, self.seconds = 0, 0.0  # waits for the database by transactions of tenants
        self._away_until = 0.0
        self.taken = 0  # how often a connection was

    def take(self) -> Any:
        """Return a connection that is not in a transaction; raises Fault if none is free or the database does
        not answer.
        """
        if not self._room.acquire(blocking=False):
            with self._lock:
                self.waiting += 1
            has_room = self._room.acquire(timeout=_WAIT_SECONDS)
            with self._lock:
                self.waiting -= 1
            if not has_room:
                raise Fault("busy", BUSY)
        connection: Any = None
        try:
            with self._lock:
                self.taken += 1
                self.used += 1
                free = self._free.pop(self._next()) if self._free else None
            connection = free if free is not None and is_usable(free) else self._connected()
        finally:
            if connection is None:
                with self._lock:
                    self.used -= 1
                self._room.release()
        return connection

    def give(self, connection: Any) -> None:
        """Returns a connection, which is closed if it is broken or in a transaction."""
        with self._lock:
            self.used -= 1
            self.trips += connection.quipu_trips
            self.seconds += connection.quipu_seconds
        connection.quipu_trips, connection.quipu_seconds = 0, 0.0
        idle = not connection.closed and (connection.quipu_owes or connection.info.transaction_status == 0)
        if idle:
            with self._lock:
                self._free.append(connection)
        else:
            connection.close()
            self.close()  # the connections that are free were most likely lost too
        self._room.release()

    @contextmanager
    def lent(self) -> Generator[Any]:
        """Yield a connection in no transaction; errors of the database are Faults."""
        connection = self.take()
        try:
            yield connection
        except load_driver().Error as error:
            raise as_fault(error) or Fault("storage", UNREACHABLE) from error
        finally:
            self.give(connection)

    @contextmanager
    def transaction(self, *settings: str) -> Generator[Any]:
        """Yield a connection in a transaction that begins with these commands; errors of the database are Faults."""
        with self.lent() as connection, transaction(connection, *settings):
            yield connection

    def close(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _next(self) -> int:
        places = range(len(self._free) - 1, -1, -1)
        return next((at for at in places if not self._free[at].quipu_owes), 0)

    def _connected(self) -> Any:
        psycopg = load_driver()
        if time.monotonic() < self._away_until:
            raise Fault("busy", UNREACHABLE)
        end = time.monotonic() + _WAIT_SECONDS  # a machine that is gone refuses nothing, and each attempt takes long
        for attempt in range(self._attempts):
            try:
                return connect(self.address, self._patience)
            except psycopg.Error as error:
                fault = as_fault(error)
                if fault is None:
                    raise
                if attempt == self._attempts - 1 or time.monotonic() > end:
                    self._away_until = time.monotonic() + _REST_SECONDS
                    raise fault from error
            time.sleep(_FIRST_PAUSE * 2**attempt)
        raise Fault("busy", UNREACHABLE)
