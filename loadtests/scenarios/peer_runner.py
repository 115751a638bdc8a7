"""One side of a comparison: a store filled once, a process on a copy of it, the same cases for every side."""

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
from loadtests.lib.stdio_client import StdioClient, ToolCall
from loadtests.scenarios.peer_servers import CONTENDERS, IN_FLIGHT, word
from loadtests.scenarios.registry_install import Installed

CASES = ("search", f"search x{IN_FLIGHT}", "store", f"store x{IN_FLIGHT}")
READY = 2500  # memories prepared for each second of a round, more than a side stores in it, alone and 16 at once
_BYTES_PER_TOKEN = 4


class Stored(NamedTuple):
    """The initial number of memories of a store, and the seconds to load them by the fastest means."""

    memories: int
    seconds: float


class Run(NamedTuple):
    """One run of one case: the latencies, and milliseconds of processor time per call."""

    seen: Result
    cpu: float


class Side(NamedTuple):
    """A peer with its program and the folder of its stores."""

    name: str
    installed: Installed
    folder: Path
    log: IO[bytes]

    def talk(self, data: Path, *more: str) -> StdioClient:
        """Start a process on a store."""
        data.mkdir(parents=True, exist_ok=True)
        server = CONTENDERS[self.name]
        return StdioClient([self.installed.program, *server.arguments, *more], server.environ(data), self.log)

    def filled(self, size: int) -> tuple[Path, Stored]:
        """A store of `size` memories and the seconds it took; a complete store of an earlier run is reused."""
        data = self.folder / f"{self.name}-{size}"
        done = data.with_suffix(".json")
        if not done.exists():
            shutil.rmtree(data, ignore_errors=True)
            server = CONTENDERS[self.name]
            talk = self.talk(data)
            found = talk.drive(server.bulk(list(corpus.memories(size))), in_flight=server.at_once)
            talk.close()
            if found.errors:
                raise RuntimeError(f"{self.name} could not be filled: {found.complaint}")
            done.write_bytes(msgspec.json.encode(Stored(size, found.seconds)))
        return data, msgspec.json.decode(done.read_bytes(), type=Stored)


class Piped:
    """A peer over stdio."""

    def __init__(self, side: Side, data: Path, size: int, ready: Sequence[corpus.Memory]) -> None:
        self.talk = side.talk(data)
        server = CONTENDERS[side.name]
        self._calls = {
            "store": iter([server.store(memory) for memory in ready]),
            "search": cycle([server.search(text) for text in words(size)]),
        }

    def run(self, case: str, seconds: float) -> Run:
        """Run one of the `CASES` once."""
        kind, in_flight = _case(case)
        before = self.talk.cpu()
        seen = self.talk.drive(self._calls[kind], in_flight=in_flight, seconds=seconds)
        return Run(seen, (self.talk.cpu() - before) / max(1, seen.replies) * 1e3)

    def rss(self) -> float:
        """Resident memory, in MB."""
        return self.talk.rss()


class Listening:
    """Quipu over HTTP."""

    def __init__(self, server: Server, size: int, ready: Sequence[corpus.Memory]) -> None:
        self._server = server
        given = CONTENDERS["quipu"]
        self._calls: dict[str, Iterator[Request]] = {
            "store": iter([_posted(given.store(memory)) for memory in ready]),
            "search": cycle([_posted(given.search(text)) for text in words(size)]),
        }

    def run(self, case: str, seconds: float) -> Run:
        """Run one of the `CASES` once."""
        kind, callers = _case(case)
        before = self._server.cpu()
        seen = drive(self._server.port, self._calls[kind], callers=callers, seconds=seconds)
        return Run(seen, (self._server.cpu() - before) / max(1, seen.replies) * 1e3)

    def rss(self) -> float:
        """Resident memory, in MB."""
        return self._server.rss()


@cache
def words(size: int) -> list[str]:
    """Search terms: one word each from some of the initial memories."""
    return [word(corpus.memory(number)) for number in range(0, size, max(1, size // 1000))]


def tokens(talk: StdioClient) -> int:
    """Approximate tokens of the tool list, at four bytes a token."""
    return len(msgspec.json.encode(talk.ask("tools/list", {})["result"]["tools"])) // _BYTES_PER_TOKEN


def _case(case: str) -> tuple[str, int]:
    kind, _, many = case.partition(" x")
    return kind, int(many or 1)


def _posted(calling: ToolCall) -> Request:
    return http_requests.mcp("modern", calling.tool, calling.arguments, calling.expect.encode())
