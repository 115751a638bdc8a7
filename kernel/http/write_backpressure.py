"""The answers that clients have not taken yet: all of them together are bounded."""

from typing import NamedTuple, Protocol

# A client this long behind may be closed; a client that takes its answer at once is never behind for so long.
_GRACE_SECONDS = 1.0


class Taker(Protocol):
    """A connection whose client has not taken all of an answer."""

    def unsent_bytes(self) -> int: ...

    def held_bytes(self) -> int:
        """Return the bytes in memory: a transport frees nothing of an answer before all of it is taken."""
        ...

    def drop(self) -> object:
        """Ends the connection at once."""
        ...


class _Behind(NamedTuple):
    """Since when, the bytes left then, and those in memory."""

    since: float
    left: int
    held: int


class Unsent:
    """The clients that are behind; while their answers hold more than `limit` bytes, the slowest is dropped.

    It has had a second, unless it is twice as much. `limit` 0 is none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._behind: dict[Taker, _Behind] = {}
        self._total = 0

    def add(self, taker: Taker, now: float) -> None:
        self.remove(taker)
        behind = self._behind[taker] = _Behind(now, taker.unsent_bytes(), taker.held_bytes())
        self._total += behind.held
        self.enforce(now)

    def remove(self, taker: Taker) -> None:
        """Notes that a client has taken its answer, or is gone."""
        behind = self._behind.pop(taker, None)
        if behind is not None:
            self._total -= behind.held

    def enforce(self, now: float) -> None:
        """Drops the slowest clients while all of them are too far behind."""
        if not self._limit or self._total <= self._limit:
            return
        for taker in sorted(self._behind, key=lambda taker: self._pace(taker, now)):
            if self._total <= self._limit:
                return
            if self._total > 2 * self._limit or now - self._behind[taker].since >= _GRACE_SECONDS:
                self.remove(taker)
                taker.drop()

    def _pace(self, taker: Taker, now: float) -> float:
        since, left, _ = self._behind[taker]
        return (left - taker.unsent_bytes()) / max(now - since, 0.001)
