"""A replica for reads: while it is away or behind, reads go to the primary."""

import logging
import threading
import time
from typing import Any, Literal

from kernel.core.errors import Fault
from kernel.engines.postgres.driver import BUSY, Pool, load_driver
from kernel.engines.postgres.statements import run

State = Literal["standby", "away", "behind"]

_log = logging.getLogger("quipu")
_REST_SECONDS = 2.0  # before a replica that was away or behind is tried again, by one read
_LAG_SECONDS = 1.0  # the log that the replica receives must be replayed after so long
_WAITS = (0.002, 0.005, 0.01, 0.02, 0.05)  # seconds for a replica that is a little behind


class Replica:
    """The connections to a replica, how far it has to be, and whether reads go there.

    It has to hold everything that this process has written, and the log that it received itself a second ago: a replica
    that stands still would else answer "not found" without end.
    """

    def __init__(self, address: str) -> None:
        self.pool = Pool(address, attempts=1, patience=2)
        self.state: State = "standby"
        self.passed_over = 0  # reads that went to the primary instead
        self.lag = 0  # bytes of the log that it had received and not replayed, when it was last looked at
        self._lock = threading.Lock()
        self._needed = 0
        self._received, self._looked = 0, 0.0
        self._rest_until = 0.0

    def wrote(self, position: int) -> None:
        with self._lock:
            self._needed = max(self._needed, position)

    def take(self) -> Any:
        """Return a connection, or None if reads go to the primary now."""
        if self.state != "standby":
            with self._lock:
                if time.monotonic() < self._rest_until:
                    self.passed_over += 1
                    return None
                self._rest_until = time.monotonic() + _REST_SECONDS  # others need not wait for this try
        try:
            connection = self.pool.take()
        except Fault as fault:
            if fault.message == BUSY:
                raise
            self._turn("away", fault.message)
            return None
        try:
            current = self._is_current(connection)
        except load_driver().Error as error:
            connection.close()
            self.pool.give(connection)
            self._turn("away", str(error).partition("\n")[0])
            return None
        if not current:
            self.pool.give(connection)
            self._turn("behind", "what was written is missing there")
            return None
        self._turn("standby", "")
        return connection

    def _is_current(self, connection: Any) -> bool:
        """Return whether the server of a connection is far enough in the log, for which it has a moment."""
        if self._holds(getattr(connection, "quipu_replayed", 0)) and time.monotonic() < self._looked + _LAG_SECONDS:
            return True
        for pause in (*_WAITS, 0.0):
            position, received_position = run(connection, "engine.replica.positions").fetchone()
            connection.quipu_replayed = position
            self.lag = max(0, received_position - position)
            with self._lock:
                if time.monotonic() >= self._looked + _LAG_SECONDS:
                    self._needed = max(self._needed, self._received)
                    self._received, self._looked = received_position, time.monotonic()
            if self._holds(position):
                return True
            time.sleep(pause)
        return False

    def _holds(self, position: int) -> bool:
        return position >= self._needed

    def _turn(self, state: State, why: str) -> None:
        with self._lock:
            before, self.state = self.state, state
            if state != "standby":
                self.passed_over += 1
                self._rest_until = time.monotonic() + _REST_SECONDS
        if before == state:
            return
        if state == "standby":
            _log.info("reads go to the replica again")
        else:
            _log.warning("the replica is %s, reads go to the primary: %s", state, why)
