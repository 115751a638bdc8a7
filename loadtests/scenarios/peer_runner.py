"""One side of a comparison at work: a store filled once, a process on a copy of it, the same cases for everybody."""

import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from loadtests.lib import corpus, http_requests
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import Server
from loadtests.lib.stdio_client import Calling, Talk
from loadtests.scenarios.peer_servers import CONTENDERS, word
from loadtests.scenarios.registry_install import Installed

UNDER_WAY = 16
CASES = ("search", f"search x{UNDER_WAY}", "store", f"store x{UNDER_WAY}")
_BYTES_PER_TOKEN = 4


class Stored(NamedTuple):
    """How many memories a store began with, and the seconds it took to put them there the quickest way there is."""

    memories: int
    seconds: float


class Run(NamedTuple):
    """One run of one case: what the callers saw, and milliseconds of processor time for one call."""

    seen: Result
    cpu: float


class Side(NamedTuple):
    """A contender with its program, and the folder of its stores."""

    name: str
    installed: Installed
    folder: Path
    log: IO[bytes]

    def talk(self, data: Path, *more: str) -> Talk:
        """A process of its own on a store."""
        data.mkdir(parents=True, exist_ok=True)
        server = CONTENDERS[self.name]
        return Talk([self.installed.program, *server.arguments, *more], server.environ(data), self.log)

    def filled(self, size: int) -> tuple[Path, Stored]:
        """A store of `size` memories, and how long that took; what a run before left complete is used again."""
        data = self.folder / f"{self.name}-{size}"
        done = data.with_suffix(".json")
        if not done.exists():
            shutil.rmtree(data, ignore_errors=True)
            calls = CONTENDERS[self.name].bulk(list(corpus.memories(size)))
            talk = self.talk(data)
            found = talk.drive(calls, under_way=UNDER_WAY)
            talk.close()
            if found.errors:
                raise RuntimeError(f"{self.name} could not be filled: {found.complaint}")
            done.write_bytes(msgspec.json.encode(Stored(size, found.seconds)))
        return data, msgspec.json.decode(done.read_bytes(), type=Stored)


class Piped:
    """A contender over stdio, at work."""

    def __init__(self, side: Side, data: Path, size: int, ready: Sequence[corpus.Memory]) -> None:
        self.talk = side.talk(data)
        server = CONTENDERS[side.name]
        self._calls = {
            "store": iter([server.store(memory) for memory in ready]),
            "search": cycle([server.search(text) for text in words(size)]),
        }

    def run(self, case: str, seconds: float) -> Run:
        """One run of one of the `CASES`."""
        kind, under_way = _case(case)
        before = self.talk.cpu()
        seen = self.talk.drive(self._calls[kind], under_way=under_way, seconds=seconds)
        return Run(seen, (self.talk.cpu() - before) / max(1, seen.replies) * 1e3)

    def rss(self) -> float:
        """Resident memory, in MB."""
        return self.talk.rss()


class Listening:
    """Quipu over HTTP, at work."""

    def __init__(self, server: Server, size: int, ready: Sequence[corpus.Memory]) -> None:
        self._server = server
        given = CONTENDERS["quipu"]
        self._calls: dict[str, Iterator[Request]] = {
            "store": iter([_posted(given.store(memory)) for memory in ready]),
            "search": cycle([_posted(given.search(text)) for text in words(size)]),
        }

    def run(self, case: str, seconds: float) -> Run:
        """One run of one of the `CASES`."""
        kind, callers = _case(case)
        before = self._server.cpu()
        seen = drive(self._server.port, self._calls[kind], callers=callers, seconds=seconds)
        return Run(seen, (self._server.cpu() - before) / max(1, seen.replies) * 1e3)

    def rss(self) -> float:
        """Resident memory, in MB."""
        return self._server.rss()


@cache
def words(size: int) -> list[str]:
    """What is searched for: a word each of some of the memories that every store began with."""
    return [word(corpus.memory(number)) for number in range(0, size, max(1, size // 1000))]


def tokens(talk: Talk) -> int:
    """What the list of the tools costs a model's context, by four bytes a token."""
    return len(msgspec.json.encode(talk.ask("tools/list", {})["result"]["tools"])) // _BYTES_PER_TOKEN


def _case(case: str) -> tuple[str, int]:
    kind, _, many = case.partition(" x")
    return kind, int(many or 1)


def _posted(calling: Calling) -> Request:
    return http_requests.mcp("modern", calling.tool, calling.arguments, calling.expect.encode())
