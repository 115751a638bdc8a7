"""Fixtures for every test: a configuration in a temporary directory, a running kernel, calls by tool name, a fixed
clock. The model is read once for the whole run.
"""

import asyncio
import itertools
import shutil
from collections.abc import Callable, Generator, Iterator
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings

from kernel import app
from kernel.app import Kernel
from kernel.config import Config
from kernel.dispatch import Dispatch
from kernel.embed.model import Embedder
from kernel.security.permissions import ANONYMOUS_CALLER, with_client_name
from kernel.store.sqlite.connection import Connection
from kernel.tools import Interaction, Reply
from tests import catalogue as faults
from tests.catalogue import catalogue  # noqa: F401  a fixture is known by its name here

# Hypothesis must not fail a test because a machine is slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


TESTS = Path(__file__).parent
QUICK_KINDS = {"unit", "contracts"}
SLOW_MARKS = {"slow", "full", "extras", "ship"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` selects: marks the tests of the catalogue, and those that `make test` runs."""
    faults.mark(items)
    for item in items:
        kind = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if kind in QUICK_KINDS and not SLOW_MARKS & {mark.name for mark in item.iter_markers()}:
            item.add_marker("quick")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collects the catalogue rows of a test."""
    report = yield
    faults.collect(item, report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the catalogue after `-m catalogue`."""
    if faults.MARK in str(config.getoption("markexpr")):
        for line in faults.table(config):
            terminalreporter.write_line(line)


Call = Callable[..., Reply]
Rows = dict[str, list[tuple[Any, ...]]]
TESTER = with_client_name(ANONYMOUS_CALLER, "tester")


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """Every kernel of a run shares one Embedder per model folder, and the statements of `sql/`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "Embedder", cache(Embedder))
        patch.setattr(app.statements, "load", cache(app.statements.load))
        yield


@pytest.fixture(scope="session")
def migrated(read_once: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a migrated, empty database: a copy of it opens in a third of the time."""
    config = Config(data=tmp_path_factory.mktemp("migrated") / "data")
    app.open_kernel(config).store.close()
    return config.home


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The default configuration, with a data directory that does not exist yet."""
    return Config(data=tmp_path / "data")


@pytest.fixture
def kernel(config: Config, migrated: Path) -> Iterator[Kernel]:
    """A running kernel with every dialect and the built-in model."""
    if not config.home.exists():
        shutil.copytree(migrated, config.home)
    running = app.open_kernel(config)
    yield running
    running.store.close()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for the whole test."""
    with asyncio.Runner() as loop:
        yield loop


@pytest.fixture
def caller(runner: asyncio.Runner) -> Callable[[Dispatch], Call]:
    """Makes a `call` for any dispatch."""

    def bind(dispatch: Dispatch) -> Call:
        def call(name: str, /, *, by: str = "tester", turn: Interaction | None = None, **arguments: Any) -> Any:
            raw = msgspec.json.encode(arguments)
            return runner.run(dispatch.call(dispatch.tools[name], raw, with_client_name(ANONYMOUS_CALLER, by), turn))

        return call

    return bind


@pytest.fixture
def call(kernel: Kernel, caller: Callable[[Dispatch], Call]) -> Call:
    """`call("add_memory", path="a", content="b")` is the Reply of that tool; `by` is the actor."""
    return caller(kernel.dispatch)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, moment: str) -> None:
        self.now = moment

    def __call__(self) -> str:
        return self.now

    def move(self, **by: float) -> str:
        """Moves by `timedelta(**by)`; the new time."""
        later = datetime.fromisoformat(self.now) + timedelta(**by)
        self.now = later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time stands still for every transaction, and new ids count up: `prefix_1`, `prefix_2`."""
    still = Clock("2026-01-02T03:04:05.678Z")
    numbers = itertools.count(1)
    monkeypatch.setattr("kernel.store.transaction.utc_now", still)
    monkeypatch.setattr("kernel.store.migrations.utc_now", still)
    monkeypatch.setattr("kernel.store.transaction.new_id", lambda prefix: f"{prefix}_{next(numbers)}")
    return still


def everything(kernel: Kernel) -> Rows:
    """Every row of every table, `sqlite_sequence` included."""
    db = Connection(kernel.config.file, kernel.store.context, readonly=True)
    names = db.values("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    rows = {name: db.values(f'SELECT * FROM "{name}"') for (name,) in names}
    db.close()
    return rows


@pytest.fixture
def unchanged(kernel: Kernel, call: Call) -> Call:
    """Calls a tool and asserts that no row has changed."""

    def same(name: str, /, **arguments: Any) -> Reply:
        before = everything(kernel)
        reply = call(name, **arguments)
        assert everything(kernel) == before
        return reply

    return same
