"""Keys belong to the database: a change by one machine is one for all of them."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.engines.postgres.database import SharedFile, pool_of
from kernel.security import api_keys
from kernel.server.app import open_kernel

pytestmark = pytest.mark.postgres
SECONDS = 1.0  # within which a revoked key is refused
CREATE = ("key", "create", "--scope", "write")
Run = Callable[..., int]


@pytest.fixture
def run(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a machine, which is a data directory of its own."""
    monkeypatch.setenv("QUIPU_MODEL", "none")

    def on(machine: str, *words: str) -> int:
        monkeypatch.setenv("QUIPU_DATA", str(tmp_path / machine))
        return main([*words, "--store", address])

    return on


def states(folder: Path) -> list[str]:
    return [key.state("2026-01-01T00:00:00.000Z") for key in api_keys.read(folder)]


def test_a_key_made_on_one_machine_is_known_on_another(run: Run, tmp_path: Path) -> None:
    assert run("one", *CREATE) == 0

    assert run("two", "key", "list") == 0

    assert api_keys.read(tmp_path / "two") == api_keys.read(tmp_path / "one") != []


def test_a_running_server_learns_of_a_revoked_key_within_a_second(run: Run, address: str, tmp_path: Path) -> None:
    run("one", *CREATE)
    kernel = open_kernel(Config(data=tmp_path / "two", store=address, model=None))
    try:
        assert (kernel.had_keys, states(tmp_path / "two")) == (True, ["active"])
        (key,) = api_keys.read(tmp_path / "one")

        assert run("one", "key", "revoke", key.id) == 0

        end = time.monotonic() + SECONDS
        while states(tmp_path / "two") == ["active"] and time.monotonic() < end:
            time.sleep(0.02)
        assert states(tmp_path / "two") == ["revoked"]
    finally:
        kernel.store.close()


def test_keys_of_before_become_those_of_the_database(run: Run, tmp_path: Path) -> None:
    made, _ = api_keys.create(tmp_path / "one", api_keys.Key("", "read", "2026-01-01T00:00:00.000Z"))

    assert run("one", "stats") in {0, 1}
    assert run("two", "key", "list") == 0

    assert api_keys.read(tmp_path / "two") == [made]


def test_a_change_that_is_refused_changes_no_file(run: Run, tmp_path: Path) -> None:
    run("one", *CREATE)
    before = api_keys.read(tmp_path / "one")

    assert run("one", "key", "revoke", "00000000") == 1
    assert run("two", "key", "list") == 0

    assert before == api_keys.read(tmp_path / "one") == api_keys.read(tmp_path / "two")


def test_a_change_that_the_database_does_not_take_is_taken_back(address: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("before", encoding="utf-8")
    shared = SharedFile(pool_of(address), path)
    shared.adopt()

    def lose() -> None:
        with shared.changing():
            path.write_text("after", encoding="utf-8")
            raise RuntimeError("the connection was lost")

    with pytest.raises(RuntimeError, match="lost"):
        lose()

    assert path.read_text(encoding="utf-8") == "before"
