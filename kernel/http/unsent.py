"""The answers that clients have not taken yet: all of them together are bounded."""

from typing import NamedTuple, Protocol

# A client this long behind may be closed; one that takes its answer at once is never behind for so long.
_GRACE_SECONDS = 1.0


class Taker(Protocol):
    """A connection whose client has not taken all of an answer."""

    def unsent_bytes(self) -> int:
        """The bytes that are left."""
        ...

    def drop(self) -> object:
        """Ends the connection at once."""
        ...


class _Behind(NamedTuple):
    """Since when, and the bytes left then."""

    since: float
    size: int


class Unsent:
    """The clients that are behind; while they are behind by more than `limit` bytes, the slowest is dropped.

    It has had a second, unless it is twice as much. `limit` 0 is none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._behind: dict[Taker, _Behind] = {}
        self._total = 0  # at least what is left: what was taken since is looked at only where it seems too much

    def add(self, taker: Taker, now: float) -> None:
        """Notes that a client is behind."""
        self.remove(taker)
        size = taker.unsent_bytes()
        self._behind[taker] = _Behind(now, size)
        self._total += size
        self.enforce(now)

    def remove(self, taker: Taker) -> None:
        """Notes that a client has taken its answer, or is gone."""
        found = self._behind.pop(taker, None)
        if found is not None:
            self._total -= found.size

    def enforce(self, now: float) -> None:
        """Drops the slowest clients while all of them are too far behind."""
        if not self._limit or self._total <= self._limit:
            return
        left = {taker: taker.unsent_bytes() for taker in self._behind}
        total = sum(left.values())
        for taker in sorted(left, key=lambda taker: self._pace(taker, left[taker], now)):
            if total <= self._limit:
                return
            if total > 2 * self._limit or now - self._behind[taker].since >= _GRACE_SECONDS:
                total -= left[taker]
                self.remove(taker)
                taker.drop()

    def _pace(self, taker: Taker, left: int, now: float) -> float:
        """Bytes a second that a client has taken."""
        since, size = self._behind[taker]
        return (size - left) / max(now - since, 0.001)
