"""A server that gets no memory for a look at the clock goes on."""

import asyncio
from pathlib import Path

import pytest
import uvicorn

from kernel.core.config import Config
from kernel.security.local_access import LocalAccess
from kernel.server.server import Server


def test_a_look_at_the_clock_without_memory_ends_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    async def look(_server: uvicorn.Server, counter: int) -> bool:
        looks.append(counter)
        if len(looks) == 2:
            raise MemoryError
        return len(looks) == 4

    monkeypatch.setattr(uvicorn.Server, "on_tick", look)
    asyncio.run(Server(Config(data=tmp_path), "", LocalAccess(tmp_path, "")).main_loop())
    assert looks == [0, 1, 0, 1]
