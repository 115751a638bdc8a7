"""Calls of a kernel by tool name, and what they leave in the database."""

import asyncio
from typing import Any

import msgspec

from kernel.app import Kernel
from kernel.data_dir import MAIN
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.store import audit
from kernel.tools import Reply
from tests.postgres import stores


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
