"""While bodies that are coming hold too much together, the slowest is given up."""

from kernel.http.incoming_bodies import IncomingBodies

PART = 100_000


class Sender:
    def __init__(self) -> None:
        self.given_up = False

    def give_up(self) -> None:
        self.given_up = True


def coming(bodies: IncomingBodies, *sizes: int, now: float = 0.5) -> list[Sender]:
    senders = [Sender() for _ in sizes]
    for sender, size in zip(senders, sizes, strict=True):
        bodies.note(sender, 0.0, size, now)
    return senders


def given_up(senders: list[Sender]) -> list[int]:
    return [number for number, sender in enumerate(senders) if sender.given_up]


def test_bodies_within_the_limit_are_waited_for() -> None:
    bodies = IncomingBodies(3 * PART)
    senders = coming(bodies, PART, PART, PART)
    bodies.note(senders[0], 0.0, PART, 100.0)
    assert given_up(senders) == []


def test_the_slowest_body_is_given_up_after_a_second() -> None:
    bodies = IncomingBodies(3 * PART)
    senders = coming(bodies, PART, PART - 2, PART - 1, PART)
    bodies.note(senders[0], 0.0, PART, 0.9)
    assert given_up(senders) == []
    bodies.note(senders[0], 0.0, PART, 1.2)
    assert given_up(senders) == [1]


def test_a_body_is_given_up_at_once_at_twice_the_limit() -> None:
    senders = coming(IncomingBodies(3 * PART + 20), *range(PART, PART + 7))
    assert given_up(senders) == [0]


def test_a_body_that_has_come_does_not_count() -> None:
    bodies = IncomingBodies(3 * PART)
    senders = coming(bodies, PART, PART, PART, PART)
    bodies.remove(senders[0])
    bodies.remove(senders[0])
    bodies.note(senders[1], 0.0, PART, 100.0)
    assert given_up(senders) == []


def test_short_bodies_are_not_counted() -> None:
    assert given_up(coming(IncomingBodies(PART), *[65_536] * 9, now=100.0)) == []
