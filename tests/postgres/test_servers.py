"""Tenants on several databases: the places of new tenants, a move during writes, and the loss of a server."""

import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.core.data_dir import MAIN
from kernel.engines.postgres import database
from tests.postgres import stores
from tests.postgres.calls import add, ask, chain_is_whole
from tests.support.postgres_servers import (
    MOVED,
    Open,
    contents,
    faults,
    loaded,
    move_process,
    moved,
    opened,
    places,
)

__all__ = ["opened"]
pytestmark = pytest.mark.postgres
KILLS = max(6, int(os.environ.get("POSTGRES_KILL_ROUNDS", "6")) // 7)  # of a tenant that grows meanwhile
Run = Callable[..., int]


@pytest.fixture
def databases(server: str) -> Iterator[list[str]]:
    """Three databases of one server, of which the first has the directory."""
    made = [stores.new_database(f"servers_{time.monotonic_ns()}_{number}", server) for number in range(3)]
    yield made
    for address in made:
        database.forget_pool(address)


def test_new_tenants_go_where_the_fewest_are(
    databases: list[str], opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    home, second, third = databases
    for command in (("add", second), ("add", third), ("remove", "home")):
        assert main(["store", *command, "--store", home]) == 0
    for name in ("one", "two", "three"):
        assert add(opened(home, name), "a").fault is None
    assert main(["store", "remove", third, "--store", home]) == 0
    assert add(opened(home, "four"), "a").fault is None

    capsys.readouterr()
    assert main(["store", "list", "--store", home]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{second}  tenants: 3, takes new ones",
        f"{third}  tenants: 1, takes no new ones",
    ]
    assert main(["tenant", "list", "--store", home]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"four  {second}",
        f"one  {second}",
        f"three  {second}",
        f"two  {third}",
    ]


@stores.WITHOUT_POOLER
def test_a_tenant_arrives_whole_and_leaves_nothing_behind(databases: list[str], opened: Open) -> None:
    home, second, third = databases
    kernel, other = opened(home), opened(home)
    for path in ("a", "b", "c"):
        assert add(kernel, path).fault is None
    before = contents(home)

    assert "writes waited" in moved(home, second)
    assert (contents(second), contents(home)) == (before, {})
    assert places(databases) == [second]
    assert b"text of b" in asyncio.run(ask(other, "recall", query="text b")).body
    assert add(other, "d").fault is None
    assert b"text of d" in asyncio.run(ask(kernel, "recall", query="text d")).body

    moved(home, third)
    moved(home, "home")
    assert places(databases) == [home]
    assert (contents(second), contents(third)) == ({}, {})
    assert add(kernel, "e").fault is None
    assert sorted(row[0] for row in contents(home)["paths_memory"]) == ["a", "b", "c", "d", "e"]
    assert chain_is_whole(other)


@stores.WITHOUT_POOLER
def test_a_call_of_before_the_move_can_be_undone_after_it(databases: list[str], opened: Open, tmp_path: Path) -> None:
    home, second, _ = databases
    assert add(opened(home, "another"), "x").fault is None
    kernel = opened(home)
    assert add(kernel, "kept").fault is None
    assert asyncio.run(ask(kernel, "drop_memory", path="kept")).fault is None
    last = max(row[0] for row in contents(home)["audit"])

    moved(home, second)

    options = ("--store", home, "--tenant", MOVED, "--data", str(tmp_path))
    assert main(["undo", str(last), *options]) == 0
    assert [row[0] for row in contents(second)["paths_memory"]] == ["kept"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tenant", "move", "nobody", "--to", "home"), "There is no tenant nobody"),
        (("tenant", "move", "A/B", "--to", "home"), "A tenant has a name of"),
        (("tenant", "move", "main", "--to", "elsewhere"), "A database is home or an address such as"),
        (("tenant", "move", "main", "--to", "postgresql://u:secret@host/db"), "leave the password to PGPASSFILE"),
        (("tenant", "move", "main", "--to", "postgresql://postgres@127.0.0.1:1/db"), "Cannot reach the database"),
        (("store", "add", "postgresql://postgres@127.0.0.1:1/db"), "Cannot reach the database"),
        (("store", "remove", "postgresql://host/db"), "That database takes no new tenants"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    words: tuple[str, ...], told: str, address: str, opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(address, MAIN)

    assert main([*words, "--store", address]) == 1

    assert told in capsys.readouterr().err
    assert places([address], MAIN) == [address]


@stores.WITHOUT_POOLER
def test_the_home_by_another_name_is_no_other_database(
    address: str, opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = opened(address)
    assert add(kernel, "a").fault is None
    alias = f"{address}?application_name=other"

    assert main(["store", "add", alias, "--store", address]) == 1
    assert "whose name is home" in capsys.readouterr().err
    assert main(["tenant", "move", MOVED, "--to", alias, "--store", address]) == 0

    assert add(kernel, "b").fault is None
    assert sorted(row[0] for row in contents(address)["paths_memory"]) == ["a", "b"]


@stores.WITHOUT_POOLER
def test_a_database_with_a_tenant_of_that_name_is_refused(
    databases: list[str], opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    home, other, _ = databases
    assert add(opened(home), "mine").fault is None
    assert add(opened(other), "theirs").fault is None

    assert main(["tenant", "move", MOVED, "--to", other, "--store", home]) == 1

    assert "has a tenant of this name already" in capsys.readouterr().err
    assert [row[0] for row in contents(other)["paths_memory"]] == ["theirs"]
    assert add(opened(home), "more").fault is None


def test_a_write_may_wait_longer_than_it_may_take(address: str, opened: Open) -> None:
    """As it does while a mover has the lock; the limit of a call is a second."""
    kernel = opened(address)
    with stores.connect(address) as mover:
        (number,) = mover.execute("SELECT id FROM quipu.directory WHERE name = %s", (MOVED,)).fetchone()
        mover.execute("SELECT pg_advisory_lock(%s, %s)", (0x51554950, number))
        end = threading.Timer(1.5, mover.execute, ("SELECT pg_advisory_unlock_all()",))
        end.start()
        assert add(kernel, "a").fault is None
        end.join()


@stores.WITHOUT_POOLER
def test_a_mover_that_is_killed_leaves_one_truth(databases: list[str], opened: Open) -> None:
    """Another start of the command finishes the move; meanwhile callers are served, or asked to try again."""
    home, *others = databases
    chance = random.Random(7)
    with loaded(opened(home), opened(home)) as load:
        for number in range(KILLS):
            to = others[number % len(others)]
            process = move_process(home, to)
            time.sleep(0.25 + chance.random() * 0.9)
            process.kill()
            process.communicate()
            assert len(places(databases)) <= 1
            if number % 3 == 2:
                moved(home, to)
                assert places(databases) == [to]
    moved(home, "home")

    held = sorted(row[0] for row in contents(home)["paths_memory"])
    load.check(held)
    assert set(faults(load)) <= {"busy"}
    assert chain_is_whole(opened(home))


@stores.WITHOUT_POOLER
def test_a_removed_tenant_leaves_no_row_and_no_key_and_does_not_come_back(
    databases: list[str], opened: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, second, _ = databases
    options = ("--data", str(tmp_path / "keys"), "--store", home)
    for tenant in (MAIN, MOVED):
        assert main(["key", "create", "--scope", "write", "--tenant", tenant, *options]) == 0
    assert "It opens the store of the tenant acme, in the database." in capsys.readouterr().err
    kernel, other = opened(home), opened(home, "other")
    for one in (kernel, other):
        assert add(one, "a").fault is None
    moved(home, second)
    rows = sum(len(found) for found in contents(second).values())
    kept = contents(home, "other")
    capsys.readouterr()

    assert main(["tenant", "remove", MOVED, "--yes", "--json", *options]) == 0

    receipt = json.loads(capsys.readouterr().out)
    assert (receipt["tenant"], receipt["keys"], receipt["rows"] >= rows) == (MOVED, 1, True)
    assert add(kernel, "b").fault == "not_found"
    assert places(databases) == []
    with stores.connect(second) as db:
        tables = [name for (name,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'quipu_data'")]
        left = [name for name in tables if db.execute(f"SELECT 1 FROM quipu_data.{name} WHERE tenant > 0").fetchone()]
    assert left == []
    assert contents(home, "other") == kept
    assert main(["tenant", "list", *options]) == 0
    assert capsys.readouterr().out.splitlines() == ["main  no call yet  keys: 1", "other  home"]
