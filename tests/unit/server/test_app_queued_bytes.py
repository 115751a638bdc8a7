"""Large writes that wait are bounded by their bytes: the caller is told to try again, and waiting writes are done."""

import asyncio
import json
import threading

import pytest

from kernel.core.config import Config
from kernel.security.permissions import FULL_ACCESS, Caller
from kernel.server import app
from kernel.store.context import CallContext
from tests.conftest import entry_named

BOUND = 1 << 20


@pytest.mark.slow
def test_large_writes_that_wait_are_refused_past_the_bound(config: Config) -> None:
    kernel = app.open_kernel(config._replace(model=None, limits=config.limits._replace(queued=BOUND)))
    begun, ended = threading.Event(), threading.Event()

    def hold(_tx: object) -> None:
        begun.set()
        assert ended.wait(20)

    async def calls() -> list[str]:
        def add(path: str, key: str) -> "asyncio.Task[object]":
            body = json.dumps({"path": path, "content": f"{path} " * (BOUND // 8)}).encode()
            caller = Caller(key, FULL_ACCESS, "main", key)
            return asyncio.create_task(kernel.dispatch.call(entry_named(kernel.dispatch, "add_memory"), body, caller))

        kernel.store.write_later(hold, CallContext())
        assert await asyncio.to_thread(begun.wait, 20)
        tasks = [add(path, "greedy") for path in "abcdef"] + [add("other", "modest")]
        await asyncio.sleep(0)
        ended.set()
        return [getattr(await task, "fault", None) or "ok" for task in tasks]

    outcomes = asyncio.run(calls())
    kernel.store.close()

    assert outcomes == ["ok"] * 3 + ["busy"] * 3 + ["ok"]
