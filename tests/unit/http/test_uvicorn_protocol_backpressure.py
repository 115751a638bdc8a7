"""While clients are too far behind together, the slowest is dropped."""

from kernel.http.uvicorn_protocol import Unsent


class Client:
    """One that is behind by `left` bytes of an answer of `held`."""

    def __init__(self, all_: Unsent, held: int) -> None:
        self.all = all_
        self.left = self.held = held
        self.dropped = False

    def unsent_bytes(self) -> int:
        return self.left

    def held_bytes(self) -> int:
        return self.held

    def drop(self) -> None:
        self.dropped = True


def behind(unsent: Unsent, count: int) -> list[Client]:
    clients = [Client(unsent, 10) for _ in range(count)]
    for client in clients:
        unsent.add(client, 0.0)
    return clients


def dropped(clients: list[Client]) -> list[int]:
    return [number for number, client in enumerate(clients) if client.dropped]


def test_clients_within_the_limit_are_waited_for() -> None:
    unsent = Unsent(30)
    clients = behind(unsent, 3)
    unsent.enforce(100.0)
    assert dropped(clients) == []


def test_slowest_client_is_dropped_after_a_second() -> None:
    unsent = Unsent(30)
    clients = behind(unsent, 4)
    for client, left in zip(clients, (2, 9, 5, 8), strict=True):
        client.left = left
    unsent.enforce(0.9)
    assert dropped(clients) == []
    unsent.enforce(1.0)
    assert dropped(clients) == [1]


def test_client_is_dropped_at_once_at_twice_the_limit() -> None:
    clients = behind(Unsent(30), 9)
    assert len(dropped(clients)) == 3


def test_client_that_has_taken_its_answer_does_not_count() -> None:
    unsent = Unsent(30)
    clients = behind(unsent, 4)
    unsent.remove(clients[0])
    unsent.remove(clients[0])
    unsent.enforce(100.0)
    assert dropped(clients) == []


def test_no_limit_drops_nobody() -> None:
    clients = behind(Unsent(0), 100)
    assert dropped(clients) == []
