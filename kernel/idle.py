"""Tells when a server has had nothing to do for so long that it may go."""

from collections.abc import Callable

from uvicorn.server import ServerState


class Idle:
    """Over once no request was under way for `seconds`; connections that only stay open do not count."""

    def __init__(self, seconds: float, state: ServerState, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._state = state
        self._clock = clock
        self._answered = -1
        self._since = clock()

    def over(self) -> bool:
        """Whether the time has passed; asked several times a second."""
        now = self._clock()
        if self._state.total_requests != self._answered:
            self._answered = self._state.total_requests
            self._since = now
        if now - self._since < self._seconds:
            return False
        if self._state.tasks or any(_waits(connection) for connection in self._state.connections):
            self._since = now
        return self._since != now


def _waits(connection: object) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete
