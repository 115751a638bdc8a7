"""`quipu tenant list` and `quipu tenant remove` on a data directory."""

import asyncio
import io
import json
from collections.abc import Callable

import pytest

from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.security import api_keys
from kernel.server import app
from kernel.server.app import Kernel
from tests.postgres.calls import ask

Run = Callable[..., str]


@pytest.fixture
def run(config: Config, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return the output of a command."""

    def run(*words: str) -> str:
        assert commands.run(parser().parse_args(["tenant", *words]), config) == 0
        return capsys.readouterr().out

    return run


def used(config: Config, name: str) -> Kernel:
    """A tenant with a memory, open."""
    kernel = app.open_kernel(config._replace(tenant=name, model=None))
    assert asyncio.run(ask(kernel, "add_memory", path="a", content=f"of {name}")).fault is None
    return kernel


def key(config: Config, tenant: str) -> None:
    api_keys.create(config.data, api_keys.Key("", "write", "2026-01-01T00:00:00.000Z", tenant=tenant))


def test_every_tenant_is_listed_with_its_folder_and_its_keys(config: Config, run: Run) -> None:
    for name in ("main", "acme"):
        used(config, name).store.close()
    for name in ("acme", "acme", "later"):
        key(config, name)

    assert run("list").splitlines() == [
        f"acme  {config.data / 'tenants/acme'}  keys: 2",
        "later  no call yet  keys: 1",
        f"main  {config.data}",
    ]
    assert json.loads(run("list", "--json").splitlines()[1]) == {"tenant": "later", "store": None, "keys": 1}


def test_a_removed_tenant_leaves_no_file_and_no_key(config: Config, run: Run) -> None:
    for name in ("main", "acme", "other"):
        used(config, name).store.close()
        key(config, name)
    folder = config.data / "tenants/acme"
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)

    receipt = json.loads(run("remove", "acme", "--yes", "--json"))

    assert receipt.pop("at") > "2026"
    assert receipt == {"tenant": "acme", "keys": 1, "rows": 0, "files": len(files), "bytes": size}
    assert [path.name for path in (config.data / "tenants").iterdir()] == ["other"]
    assert [one.tenant for one in api_keys.read(config.data)] == ["main", "other"]
    assert b"of acme" not in b"".join(path.read_bytes() for path in config.data.rglob("*") if path.is_file())


def test_a_tenant_that_has_a_key_alone_is_removed(config: Config, run: Run) -> None:
    key(config, "main")
    key(config, "later")

    assert run("remove", "later", "--yes").startswith("later was erased at 2")
    assert [one.tenant for one in api_keys.read(config.data)] == ["main"]


def test_a_removal_that_was_cut_off_goes_on(config: Config, run: Run) -> None:
    used(config, "acme").store.close()
    folder = config.data / "tenants"
    (folder / "acme").rename(folder / ".acme.removed")

    run("remove", "acme", "--yes")

    assert [*folder.iterdir()] == []


def test_a_tenant_that_a_server_has_open_loses_its_keys_and_stays_until_then(config: Config, run: Run) -> None:
    key(config, "main")
    key(config, "acme")
    kernel = used(config, "acme")
    with pytest.raises(Fault, match="A server has the tenant open") as busy:
        run("remove", "acme", "--yes")
    assert (busy.value.code, [one.tenant for one in api_keys.read(config.data)]) == ("busy", ["main"])
    kernel.store.close()

    run("remove", "acme", "--yes")

    assert [*(config.data / "tenants").iterdir()] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nobody", "--yes"), "There is no tenant nobody: `quipu tenant list` shows all."),
        (("A/B", "--yes"), "A tenant has a name of 1 to 63 characters"),
        (("main", "--yes"), "main is the tenant of callers without another, and stays."),
        (("acme",), "tenant remove needs --yes if there is no terminal. Nothing was changed."),
        (("acme", "--yes"), "These are the last keys, without which no caller needs one: make another first."),
    ],
)
def test_what_cannot_be_removed_is_refused_and_stays(
    config: Config, run: Run, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())  # as of a script
    used(config, "acme").store.close()
    key(config, "acme")

    with pytest.raises(Fault, match=told[:40]) as refused:
        run("remove", *words)

    assert refused.value.message.startswith(told)
    assert (config.data / "tenants/acme/quipu.db").is_file()
    assert [one.tenant for one in api_keys.read(config.data)] == ["acme"]
