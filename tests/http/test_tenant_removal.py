"""DELETE /tenants/{name} erases a tenant that the server has open, for those who may."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.core.ids import utc_now
from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.reliability.server_process import Server, serving

JSON = {"content-type": "application/json", "accept": "application/json"}
SCOPES = {"chief": ("main", "operator"), "admin": ("acme", "admin"), "narrow": ("acme", "admin")}
TENANTS = ("acme", "beta", "gamma")


class House:
    """Start a server with keys."""

    def __init__(self, server: Server, data: Path, secrets: dict[str, str]) -> None:
        self._server = server
        self.data = data
        self._secrets = secrets

    def ask(self, method: str, path: str, key: str, body: object = None) -> tuple[int, Any]:
        headers = {**JSON, "authorization": f"Bearer {self._secrets[key]}"}
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, json.loads(text)

    def keep(self, key: str) -> int:
        return self.ask("POST", "/tools/add_memory", key, {"path": "a", "content": "kept"})[0]

    def tenants(self) -> list[str]:
        return sorted(path.name for path in (self.data / "tenants").iterdir())


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    data = tmp_path_factory.mktemp("house") / "data"
    data.mkdir()
    drafts = {name: Key("", scope, utc_now(), tenant=tenant) for name, (tenant, scope) in SCOPES.items()}  # pyrefly: ignore[bad-argument-type]
    drafts["narrow"] = Key("", "admin", utc_now(), tenant="acme", dialects=("paths",))
    drafts |= {tenant: Key("", "write", utc_now(), tenant=tenant) for tenant in TENANTS}
    secrets = {name: api_keys.create(data, draft)[1] for name, draft in drafts.items()}
    with serving(data, QUIPU_MODEL="none") as server:
        yield House(server, data, secrets)


def test_tenant_is_erased_while_the_server_has_it_open(house: House) -> None:
    assert [house.keep(tenant) for tenant in ("beta", "gamma")] == [200, 200]
    files = [path for path in (house.data / "tenants/beta").rglob("*") if path.is_file()]

    status, receipt = house.ask("DELETE", "/tenants/beta", "chief")

    assert status == 200
    assert receipt.pop("at") > "2026"
    assert receipt.pop("bytes") > 0
    assert 0 < receipt.pop("files") <= len(files)  # the log goes with the last connection
    assert receipt == {"tenant": "beta", "keys": 1, "rows": 0}
    assert house.keep("beta") == 401
    assert "beta" not in house.tenants()
    assert house.ask("POST", "/tools/read_memory", "gamma", {"path": "a"})[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "key", "status", "code"),
    [
        ("DELETE", "/tenants/acme", "acme", 403, "insufficient_scope"),
        ("DELETE", "/tenants/acme", "narrow", 403, "insufficient_scope"),
        ("DELETE", "/tenants/gamma", "admin", 403, "insufficient_scope"),
        ("DELETE", "/tenants/main", "chief", 400, "invalid"),
        ("DELETE", "/tenants/A%2FB", "chief", 400, "invalid"),
        ("DELETE", "/tenants/nobody", "chief", 404, "not_found"),
        ("GET", "/tenants/acme", "chief", 405, "method_not_allowed"),
    ],
)
def test_removal_that_may_not_be_is_refused(
    house: House, method: str, path: str, key: str, status: int, code: str
) -> None:
    answered, body = house.ask(method, path, key)
    assert (answered, body["error"]["code"]) == (status, code)
    assert {"acme", "gamma"} <= {one.tenant for one in api_keys.read(house.data)}


def test_admin_erases_its_own_tenant(house: House) -> None:
    assert house.keep("acme") == 200
    status, receipt = house.ask("DELETE", "/tenants/acme", "admin")
    assert (status, receipt["keys"]) == (200, 3)
    assert "acme" not in house.tenants()
