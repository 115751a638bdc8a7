"""The report of /readyz on a database: whether a primary or a standby answers, or nothing."""

import asyncio
from pathlib import Path

import httpx
import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database
from kernel.server.app import open_kernel
from kernel.server.asgi import Application
from tests.postgres import stores
from tests.postgres.cluster import Cluster, running

pytestmark = pytest.mark.postgres


def ready(config: Config, before: Cluster | None = None) -> tuple[int, dict[str, object]]:
    """The answer of a server; the cluster `before` is killed after it has started."""
    application = Application(open_kernel(config))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/readyz")

    try:
        if before is not None:
            before.kill()
        answer = asyncio.run(ask())
    finally:
        application.close()
        database.forget_pool(config.store)
    return answer.status_code, answer.json()


def test_a_primary_and_a_standby_are_told_apart(cluster: Cluster, tmp_path: Path) -> None:
    address = stores.new_database("ready", cluster.address)
    config = Config(data=tmp_path, store=address, model=None)
    _, told = ready(config)
    state = {"status": "ready", "model": "ready", "schema": told["schema"]}
    assert told == {**state, "store": "primary"}
    with running(cluster.address) as standby:
        follower = f"{standby.address}/ready"

        assert ready(config._replace(read_store=follower)) == (
            200,
            {**state, "store": "primary", "read_store": "standby"},
        )
        assert ready(config._replace(store=follower)) == (200, {**state, "store": "standby"})


def test_a_server_whose_database_is_gone_is_not_ready(cluster: Cluster, tmp_path: Path) -> None:
    address = stores.new_database("gone", cluster.address)

    status, told = ready(Config(data=tmp_path, store=address, model=None), before=cluster)

    assert (status, told["status"]) == (503, "unavailable")
