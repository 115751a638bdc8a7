"""A bound on the bytes of all bodies that a server has begun to receive: a few hundred that stop halfway would fill its
memory.
"""

from typing import Protocol

# A body below it is not counted: as much is held of every connection.
_COUNTED_BYTES = 65536
# A body this old may be given up; on a fast network none of usual size takes so long.
_GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.25  # between two looks at all bodies


class Sender(Protocol):
    """A connection that sends a body."""

    def give_up(self) -> object:
        """Answers that the body was too slow, and closes the connection."""
        ...


class IncomingBodies:
    """The bodies that are coming; while they hold more than `limit` bytes, the slowest is given up.

    It has had a second, unless they hold twice as much.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bodies: dict[Sender, tuple[float, int]] = {}  # since when, and the bytes that have come
        self._total = 0
        self._looked_at = 0.0

    def note(self, sender: Sender, since: float, size: int, now: float) -> None:
        """Notes that `size` bytes of a body have come by now."""
        if size <= _COUNTED_BYTES:
            return
        self._total += size - self._bodies.get(sender, (0.0, 0))[1]
        self._bodies[sender] = since, size
        is_due = self._total > 2 * self._limit or now - self._looked_at >= _LOOK_SECONDS
        if self._total > self._limit and is_due:
            self._enforce(now)

    def remove(self, sender: Sender) -> None:
        """Notes that a body has come, or will not come."""
        self._total -= self._bodies.pop(sender, (0.0, 0))[1]

    def _enforce(self, now: float) -> None:
        self._looked_at = now
        paces = {sender: size / max(now - since, 0.001) for sender, (since, size) in self._bodies.items()}
        for sender in sorted(paces, key=lambda sender: paces[sender]):
            if self._total <= self._limit:
                return
            if self._total > 2 * self._limit or now - self._bodies[sender][0] >= _GRACE_SECONDS:
                self.remove(sender)
                sender.give_up()
