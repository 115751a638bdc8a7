"""Count answered writes that are missing after a restart: four writers on one store, and one killed writer."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loadtests.lib import corpus
from loadtests.lib.corpus import Memory
from loadtests.lib.stdio_client import StdioClient
from loadtests.scenarios.peer_runner import Side
from loadtests.scenarios.peer_servers import CONTENDERS, IN_FLIGHT

WRITERS = 4
_EACH = 100
_TOGETHER, _KILLED = 2_000_000, 3_000_000  # the memories of these stores, by number
_KILL_AFTER = 200


class Lost(NamedTuple):
    """Writes that were answered, that were refused, and that were answered but are missing after a restart."""

    answered: int
    refused: int
    lost: int

    def __str__(self) -> str:
        return f"{self.lost} of {self.answered}" + (f", {self.refused} refused" if self.refused else "")


def together(side: Side) -> Lost:
    """Four processes, as four clients start them, each writing its own memories one after the other."""
    data = side.folder / f"{side.name}-together"
    side.talk(data).close()  # the store is there before they race for it
    talks = [side.talk(data) for _ in range(WRITERS)]
    answered: list[Memory] = []
    threads = [
        threading.Thread(target=_write, args=(side, talk, _TOGETHER + number * _EACH, _EACH, 1, answered.append))
        for number, talk in enumerate(talks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for talk in talks:
        talk.close()
    return Lost(len(answered), WRITERS * _EACH - len(answered), _missing(side, data, answered))


def killed(side: Side) -> Lost:
    """One process with many writes in flight, killed with SIGKILL."""
    data = side.folder / f"{side.name}-killed"
    talk = side.talk(data)
    answered: list[Memory] = []

    def on_reply(memory: Memory) -> None:
        answered.append(memory)
        if len(answered) == _KILL_AFTER:
            talk.kill()

    with suppress(ConnectionError):
        _write(side, talk, _KILLED, 10 * _KILL_AFTER, IN_FLIGHT, on_reply)
    return Lost(len(answered), 0, _missing(side, data, answered))


def _write(
    side: Side, talk: StdioClient, first: int, count: int, in_flight: int, on_reply: Callable[[Memory], None]
) -> None:
    memories = list(corpus.memories(count, first))
    calls = [CONTENDERS[side.name].store(memory) for memory in memories]
    memory_of = {id(call): memory for call, memory in zip(calls, memories, strict=True)}
    talk.drive(calls, in_flight=in_flight, on_reply=lambda call: on_reply(memory_of[id(call)]))


def _missing(side: Side, data: Path, answered: Sequence[Memory]) -> int:
    """The number of these memories that a fresh process does not return."""
    talk = side.talk(data)
    show = CONTENDERS[side.name].show
    lost = sum([bool(talk.call(show(memory))) for memory in answered])
    talk.close()
    return lost
