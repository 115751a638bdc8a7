"""Keys of a tenant share its readers, tenants share their seats, and each sees its own part of the server."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kernel.core.config import Config
from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving
from tests.security.authenticated_server import House, house
from tests.security.sockets import Peer, crowd, request

CREATED = "2026-11-21T10:00:00.000Z"
EXPORTS = 40
DOCUMENT = json.dumps(
    {
        "version": "1.0",
        "entries": {
            "knowledge": [
                {"id": f"k{number}", "scopeType": "global", "title": f"Fact {number}"}
                | {"currentVersion": {"content": f"The room {number} " + "x" * 900}}
                for number in range(3000)
            ]
        },
    }
)


def made(data: Path, scope: Any = "write", tenant: str = "main") -> str:
    return api_keys.create(data, Key("", scope, CREATED, tenant=tenant))[1]


def ask(server: Server, secret: str, tool: str = "list_memories", **arguments: Any) -> int:
    with Peer(server.port, call(secret, tool, **arguments)) as peer:
        return peer.answer()[0]


def call(secret: str, tool: str, **arguments: Any) -> bytes:
    body = json.dumps(arguments).encode()
    return request(f"/tools/{tool}", body, Authorization=f"Bearer {secret}", Accept="application/json")


def test_exports_of_one_key_do_not_hold_up_another_key_of_the_tenant(tmp_path: Path, catalogue: Catalogue) -> None:
    data = tmp_path / "data"
    greedy, other = made(data, "admin"), made(data)
    with serving(
        data, QUIPU_LIMIT_RATE=0, QUIPU_LIMIT_UNSENT=1 << 30, QUIPU_QUEUE_WAIT=600_000, QUIPU_MODEL="none"
    ) as server:
        assert ask(server, greedy, "memory_import", action="import", content=DOCUMENT) == 200
        export = call(greedy, "memory_export", action="export", format="json")

        def export_all(count: int) -> float:
            begun = time.monotonic()
            with crowd(server.port, export, count=count) as peers:
                assert {peer.answer()[0] for peer in peers} == {200}
            return time.monotonic() - begun

        alone = export_all(1)
        begun = time.monotonic()
        exporting = threading.Thread(target=export_all, args=(EXPORTS,))
        exporting.start()
        time.sleep(alone)
        lists: list[float] = []
        while exporting.is_alive():
            asked = time.monotonic()
            assert ask(server, other) == 200
            lists.append(time.monotonic() - asked)
        exporting.join()
        whole = time.monotonic() - begun
    assert len(lists) >= 3
    assert max(lists) < whole / 2
    outcome = f"another key waited {max(lists):.2f} s at most, {alone:.2f} s is one export, {whole:.1f} s all"
    catalogue("S27", injected="large answers to one key", times=EXPORTS, outcome=outcome)


@pytest.mark.parametrize("tenants", [2, 30])
def test_more_tenants_than_memory_holds_are_all_answered(tmp_path: Path, tenants: int, catalogue: Catalogue) -> None:
    data = tmp_path / "data"
    secrets = [made(data, tenant=f"t{number}") for number in range(tenants)]
    answers: dict[str, list[int]] = {secret: [] for secret in secrets}
    with serving(data, QUIPU_TENANT_MEGABYTES=1, QUIPU_MODEL="none", QUIPU_LIMIT_RATE=0) as server:

        def calls(secret: str) -> None:
            for _ in range(6):
                answers[secret].append(ask(server, secret))

        callers = [threading.Thread(target=calls, args=(secret,)) for secret in secrets for _ in range(2)]
        begun = time.monotonic()
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        seconds = time.monotonic() - begun
        assert "Traceback" not in server.log()
    assert {status for found in answers.values() for status in found} <= {200, 503}
    assert min(found.count(200) for found in answers.values()) >= 6
    outcome = f"all answered, {sum(map(len, answers.values()))} calls in {seconds:.1f} s"
    catalogue("S07", injected="tenants at once, with memory for none", times=tenants, outcome=outcome)


Watched = tuple[House, dict[str, str]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    config = Config(data=tmp_path_factory.mktemp("watched") / "data", model=None, metrics=True)
    scopes = {"ada": "admin", "bob": "admin", "main": "admin", "operator": "operator", "reader": "read"}
    with house(config) as running:
        keys = {name: running.key(scope, name if name in ("ada", "bob") else "main") for name, scope in scopes.items()}
        running.told()
        assert {running.tool("list_memories", {}, key).status for key in keys.values()} == {200}
        yield running, keys


def scraped(running: House, key: str) -> tuple[int, str]:
    answer = running.ask("GET", "/metrics", key)
    return answer.status, answer.body.decode()


def test_an_admin_sees_metrics_of_its_tenant_and_an_operator_of_all(watched: Watched, catalogue: Catalogue) -> None:
    running, keys = watched
    for name in ("ada", "bob", "main"):
        status, body = scraped(running, keys[name])
        samples = [one for family in text_string_to_metric_families(body) for one in family.samples]
        assert (status, {one.labels.get("tenant", name) for one in samples}) == (200, {name})
        assert not [one.name for one in samples if one.name.startswith(("process_", "quipu_calls", "quipu_open"))]
    status, body = scraped(running, keys["operator"])
    assert status == 200
    assert all(f'tenant="{name}"' in body for name in ("ada", "bob", "main"))
    assert "quipu_calls_total" in body
    assert scraped(running, keys["reader"])[0] == 403
    catalogue("S07", injected="metrics of another tenant asked for", times=3, outcome="the own tenant's alone")


def test_an_operator_may_do_what_an_admin_may(watched: Watched) -> None:
    running, keys = watched
    statuses = [running.tool("health", {}, keys[name]).status for name in ("operator", "main", "reader")]
    assert statuses == [200, 200, 403]
