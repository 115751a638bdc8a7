"""Quipu on a file and on PostgreSQL, under the same load."""

import http.client
import itertools
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil

from kernel.core.data_dir import MAIN, make_private
from kernel.core.ids import utc_now
from kernel.security import api_keys
from loadtests.lib import corpus, http_requests
from loadtests.lib.http_load import Request, drive
from loadtests.lib.servers import Server, quipu, served
from tests.postgres import stores
from tests.postgres.cluster import Cluster

_READY = 2500  # memories prepared for a second of writes, more than a side takes
_READ = "recall"
TIMED = 100  # questions of a round


class Database:
    """A PostgreSQL on the disk, with its processor time."""

    def __init__(self, cluster: Cluster) -> None:
        self._server = psutil.Process(cluster.pid)
        self.address = cluster.address

    def new(self, name: str) -> str:
        """The address of a new, empty database."""
        return stores.new_database(name, self.address)

    def cpu(self) -> float:
        """Seconds of processor time of its processes that run now."""
        times = [one.cpu_times() for one in self._server.children()]
        return sum(one.user + one.system for one in times)


class Tenant(NamedTuple):
    """A tenant of a server, and the key that opens it; the main one of a server without keys needs none."""

    name: str = MAIN
    key: str = ""


class Written(NamedTuple):
    """One round of writes: answers, seconds, processor time of the servers, and what was wrong."""

    replies: int
    seconds: float
    cpu: float
    complaint: str

    @property
    def rate(self) -> float:
        """Writes in a second."""
        return self.replies / self.seconds


class Writers:
    """Callers that write memories of their tenants through some servers, which take the tenants in turn."""

    def __init__(self, servers: Sequence[Server], tenants: Sequence[Tenant] = (Tenant(),)) -> None:
        self._servers = servers
        self._tenants = tenants
        self.answered = 0
        self._next = 0

    def run(self, callers: int, seconds: float) -> Written:
        """One round, with so many callers for each tenant."""
        size = max(callers, int(_READY * seconds) // len(self._tenants))
        texts = [corpus.memory(number) for number in range(self._next, self._next + size)]
        self._next += size
        before = [server.cpu() for server in self._servers]
        with ThreadPoolExecutor(len(self._servers)) as pool:
            parts = [self._tenants[at :: len(self._servers)] for at in range(len(self._servers))]
            work = [list(itertools.chain(*zip(*(_writes(one, texts) for one in part), strict=True))) for part in parts]
            ports = [server.port for server in self._servers]
            runs = [
                pool.submit(drive, port, made, callers=callers * len(part), seconds=seconds)
                for port, made, part in zip(ports, work, parts, strict=True)
            ]
            seen = [run.result() for run in runs]
        used = sum(server.cpu() - begun for server, begun in zip(self._servers, before, strict=True))
        replies = sum(one.replies for one in seen)
        self.answered += replies
        wrong = next((one.complaint for one in seen if one.errors), "")
        return Written(replies, max(one.seconds for one in seen), used, wrong)


def _writes(tenant: Tenant, memories: Sequence[corpus.Memory]) -> Iterator[Request]:
    for memory in memories:
        arguments = {"path": memory.path, "content": memory.text}
        body = msgspec.json.encode(http_requests.message("modern", "add_memory", arguments))
        head = http_requests.headers("modern", "add_memory")
        if tenant.key:
            head["authorization"] = f"Bearer {tenant.key}"
        yield Request(http_requests.post("/mcp", body, head), (http_requests.FINE, memory.path.encode()))


def keyed(data: Path, names: Sequence[str]) -> list[Tenant]:
    """New tenants, and keys for them in a data directory."""
    make_private(data)
    return [Tenant(name, api_keys.create(data, api_keys.Key("", "write", utc_now(), tenant=name))[1]) for name in names]


@contextmanager
def on(data: Path, address: str = "", **settings: str) -> Generator[Server]:
    """A server on a file, or on a database."""
    store = {"store": address} if address else {}
    with quipu(data, checkout=None, **store, **settings) as server:
        yield server


@contextmanager
def on_keyed(data: Path, address: str) -> Generator[Server]:
    """A server on a database that asks for keys, once it is open also those who want to know whether it is."""
    environ = {"QUIPU_STORE": address, "QUIPU_LIMIT_RATE": "0"}
    with served("kernel", "serve", "--data", str(data), environ=environ) as server:
        server.wait("/readyz", status=401)
        yield server


class Asker:
    """One caller that asks questions of a server, one after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._round = 0

    def answers(self, questions: Sequence[str]) -> list[Any]:
        """What is found for each question."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        found: list[Any] = []
        for text in questions:
            body = msgspec.json.encode(http_requests.message("modern", _READ, {"query": text}))
            head = {"content-type": "application/json", **http_requests.headers("modern", _READ)}
            connection.request("POST", "/mcp", body, head)
            reply = msgspec.json.decode(connection.getresponse().read())
            found.append(reply["result"]["structuredContent"]["memories"])
        connection.close()
        return found

    def median(self, size: int) -> tuple[float, float]:
        """Milliseconds of the median recall of a round, whose questions are new, and of processor time of one."""
        self._round += 1
        step = max(1, size // TIMED)
        texts = [corpus.question((number * step + self._round) % size).text for number in range(TIMED)]
        asked = [http_requests.mcp("modern", _READ, {"query": text}, b'"memories":[') for text in texts]
        before = self.server.cpu()
        seen = drive(self.server.port, asked, callers=1)
        if seen.errors:
            raise RuntimeError(seen.complaint)
        return seen.percentile(0.5), (self.server.cpu() - before) / len(asked) * 1000


def count(address: str, text: str) -> int:
    """The number that a statement finds in a database."""
    with stores.connect(address) as db:
        ((found,),) = db.execute(text).fetchall()
    return found


def tidied(address: str) -> str:
    """The address of a database after a vacuum, which would begin by itself within a minute of a large copy."""
    with stores.connect(address) as db:
        db.execute("VACUUM ANALYZE")
    return address
