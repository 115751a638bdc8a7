"""Calls of a kernel by tool name, and their rows in the database."""

import asyncio
import threading
from typing import Any

import msgspec

from kernel.calls.tools import Reply
from kernel.core.data_dir import MAIN
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server.app import Kernel
from kernel.store import audit
from tests.postgres import stores

_CALLERS = 6
_UNKNOWN = "It is not known"


async def ask(kernel: Kernel, tool: str, **arguments: Any) -> Reply:
    """The answer of a tool."""
    answer = await kernel.dispatch.call(kernel.dispatch.tools[tool], msgspec.json.encode(arguments), ANONYMOUS_CALLER)
    assert isinstance(answer, Reply)
    return answer


def add(kernel: Kernel, path: str) -> Reply:
    """Adds a memory."""
    return asyncio.run(ask(kernel, "add_memory", path=path, content=f"text of {path}"))


def paths(address: str) -> list[str]:
    """The paths that are there."""
    return sorted(row[0] for row in stores.rows(address, MAIN)["paths_memory"])


def chain_is_whole(kernel: Kernel) -> bool:
    """Whether each row of the audit follows from the one before."""
    return kernel.store.read_sync(audit.first_broken) is None


class Load:
    """Callers that write until they are stopped, and the answers to each."""

    def __init__(self, kernels: list[Kernel]) -> None:
        self.answers: dict[str, Reply] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(kernels[number % len(kernels)], number))
            for number in range(_CALLERS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, kernel: Kernel, number: int) -> None:
        async def writing() -> None:
            at = 0
            while not self._stop.is_set():
                at += 1
                path = f"load/{number}/{at}"
                self.answers[path] = await ask(kernel, "add_memory", path=path, content=path)
                if self.answers[path].fault is not None:
                    await asyncio.sleep(0.02)

        asyncio.run(writing())

    def stop(self) -> None:
        """Waits for the calls that are under way."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self, held: list[str]) -> None:
        """Answered writes are there; refused writes are not, unless the answer says that it is not known."""
        kept = set(held)
        done = {path for path, reply in self.answers.items() if reply.fault is None}
        refused = {path: reply.body.decode() for path, reply in self.answers.items() if reply.fault is not None}
        assert done
        assert done - kept == set()
        assert {path: refused[path] for path in refused.keys() & kept if _UNKNOWN not in refused[path]} == {}
