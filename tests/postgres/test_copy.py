"""`quipu store copy` between a file and PostgreSQL, in both directions."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from tests.support.postgres_copy import fill

pytestmark = pytest.mark.postgres


def dump(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that is no index, in the order of its key."""
    config = Config(data=folder)
    db = Connection(config.file, app.context_of(config), readonly=True)
    try:
        names = db.values("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'undo%'")
        shadows = ("doc_fts", "doc_part", "doc_term", "migration")
        return {
            name: sorted(db.values(f'SELECT * FROM "{name}"'), key=repr)
            for (name,) in names
            if not name.startswith(shadows)
        }
    finally:
        db.close()


def recall(config: Config, query: str) -> bytes:
    kernel = app.open_kernel(config)
    try:
        entry = kernel.dispatch.tools["recall"]
        raw = msgspec.json.encode({"query": query})
        answer: Any = asyncio.run(kernel.dispatch.call(entry, raw, ANONYMOUS_CALLER))
        return answer.body
    finally:
        kernel.store.close()


def test_a_store_comes_back_as_it_was(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, returned = Config(data=tmp_path / "original"), Config(data=tmp_path / "returned")
    fill(original)

    assert main(["store", "copy", str(original.data), address]) == 0
    assert recall(original._replace(store=address), "cat") == recall(original, "cat")
    assert main(["store", "copy", address, str(returned.data)]) == 0

    assert dump(returned.data) == dump(original.data)
    assert recall(returned, "four minutes") == recall(original, "four minutes")
    assert "rows of" in capsys.readouterr().out


def test_a_store_with_memories_is_not_written_over(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config(data=tmp_path / "data")
    fill(config)
    assert main(["store", "copy", str(config.data), address]) == 0

    assert main(["store", "copy", str(config.data), address]) == 1
    assert "The target has memories already" in capsys.readouterr().err


def test_commands_on_files_refuse_a_database(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["backup"], ["compact"]):
        assert main([*command, "--data", str(tmp_path), "--store", address]) == 1
        assert "works on files" in capsys.readouterr().err
    assert main(["check", "--data", str(tmp_path), "--store", address]) == 0
    assert main(["audit", "--data", str(tmp_path), "--store", address]) == 0


def test_a_replica_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="QUIPU_READ_STORE needs QUIPU_STORE"):
        app.open_kernel(Config(data=tmp_path, read_store="postgresql://host/db"))


def test_reads_go_to_the_replica(address: str, tmp_path: Path) -> None:
    config = Config(data=tmp_path, store=address)
    fill(config)

    nowhere = config._replace(read_store="postgresql://postgres@127.0.0.1:1/none")
    assert b"cat" in recall(nowhere, "cat")  # by the primary
    assert b"cat" in recall(config._replace(read_store=f"{address}?application_name=replica"), "cat")


def test_an_address_of_another_program_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--store", "mysql://host/db"])
    assert "QUIPU_STORE is an address such as postgresql://user@host/database" in capsys.readouterr().err


def test_doctor_looks_at_the_database(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--data", str(tmp_path), "--store", address])
    assert "database: PostgreSQL, with schema" in capsys.readouterr().out

    main(["doctor", "--data", str(tmp_path), "--store", "postgresql://postgres@127.0.0.1:1/none"])
    assert "database: Cannot reach the database;" in capsys.readouterr().out
