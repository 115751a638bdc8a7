"""Servers with several workers, and connections of which it is known which worker has them."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil

from tests.reliability.server_process import Server, serving, until


class Connection(Protocol):
    """A connection by its own port."""

    @property
    def local_port(self) -> int: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)


@contextmanager
def serving_by(workers: int, data: Path, **settings: Any) -> Iterator[Server]:
    """A server of which all workers serve; they and their parent are gone at the end of the block."""
    with serving(data, QUIPU_WORKERS=workers, **settings) as server:
        try:
            until(lambda: len(pids(server)) == workers, f"{workers} workers")
            yield server
        finally:
            kill_all(server)


def pids(server: Server) -> list[int]:
    """The processes of the workers."""
    with suppress(psutil.NoSuchProcess):
        return sorted(child.pid for child in psutil.Process(server.process.pid).children())
    return []


def kill_all(server: Server) -> None:
    """kill -9 of the parent and of every worker; the parent first, so that it replaces none."""
    alive = pids(server)
    server.process.kill()
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.process.wait()
    until(lambda: not any(psutil.pid_exists(pid) for pid in alive), "the end of all workers")


def owner(server: Server, port: int) -> int:
    """The worker that has the connection from this local port, 0 while it is not accepted."""
    for pid in pids(server):
        with suppress(psutil.NoSuchProcess):
            for found in psutil.Process(pid).net_connections("tcp"):
                if found.raddr and found.raddr.port == port and found.laddr.port == server.port:
                    return pid
    return 0


@contextmanager
def one_for_each_worker(server: Server, connect: Callable[[], C]) -> Iterator[dict[int, C]]:
    """A connection to each worker, by its process."""
    found: dict[int, C] = {}
    with ExitStack() as stack:

        def all_found() -> bool:
            made = connect()
            stack.callback(made.close)
            until(lambda: owner(server, made.local_port) != 0, "a worker that accepts")
            found.setdefault(owner(server, made.local_port), made)
            return set(found) == set(pids(server))

        until(all_found, "a connection to each worker")
        yield found
