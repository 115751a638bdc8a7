"""Fixtures for every test: a configuration in a temporary directory, a running kernel, calls by tool name, a fixed
clock. The model and the tool tables are made once for the whole run, and a kernel that a test has written nothing to
serves the next test too.
"""

import asyncio
import gc
import itertools
import shutil
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from jsonschema.validators import validator_for

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Dispatch, Observer, ToolEntry
from kernel.calls.schema import output_schema
from kernel.calls.tools import Interaction, Reply, Tool
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.embed.model import Embedder
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.security.permissions import ANONYMOUS_CALLER, with_client_name
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store.context import StoreContext
from kernel.store.store import Store
from tests import catalogue as faults
from tests.catalogue import catalogue  # noqa: F401  a fixture is known by its name here
from tests.postgres import differences, stores

# Hypothesis must not fail a test because a machine is slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("patient"), max_examples=10)
settings.register_profile("half", settings.get_profile("patient"), max_examples=50)
settings.load_profile("patient")


# A shell that runs the tests in the background without job control lets them, and all they start, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
QUICK_KINDS = {"unit", "contracts"}
SLOW_MARKS = {"slow", "full", "extras", "ship"}
# Of one unit test: three quarters of all cases belong to a tenth of the tests. On PostgreSQL no more of them run.
QUICK_CASES = 4 if stores.ADDRESS else 1
CONTRACT_CASES = 120  # of a rule that holds for every argument of every tool: some of each tool


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes the first case alone of a test of which no other would run: making them all takes a fifth of collection."""
    definition = metafunc.definition
    if metafunc.config.getoption("markexpr") == "quick" and QUICK_CASES == 1 and _kind(definition) == "unit":
        for at, mark in enumerate(definition.own_markers):
            if mark.name == "parametrize":
                names, values = mark.args
                ids = {"ids": [*mark.kwargs["ids"]][:1]} if isinstance(mark.kwargs.get("ids"), Iterable) else {}
                first = pytest.mark.parametrize(names, [*values][:1], **{**mark.kwargs, **ids})  # pyrefly: ignore[bad-argument-type]
                definition.own_markers[at] = first.mark


def _kind(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` selects: marks the tests of the catalogue, and those that `make test` runs."""
    faults.mark(items)
    if stores.ADDRESS:
        differences.skip(items)
    cases: dict[tuple[str, Path, str], list[pytest.Item]] = {}
    for item in items:
        kind = _kind(item)
        if kind in QUICK_KINDS and not SLOW_MARKS & {mark.name for mark in item.iter_markers()}:
            cases.setdefault((kind, item.path, item.name.partition("[")[0]), []).append(item)
    for (kind, _, _), found in cases.items():
        for item in evenly_spaced(found, CONTRACT_CASES if kind == "contracts" else QUICK_CASES):
            item.add_marker("quick")


def evenly_spaced(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """At most so many of the items, the first included."""
    count = min(most, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def pytest_collection_finish() -> None:
    """Collected garbage stays to the end: without it each garbage collection is several times as fast."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collects the catalogue rows of a test."""
    report = yield
    faults.collect(item, report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the catalogue after `-m catalogue`."""
    if faults.MARK in str(config.getoption("markexpr")):
        ran = (report for reports in terminalreporter.stats.values() for report in reports)
        for line in faults.table(report for report in ran if isinstance(report, pytest.TestReport)):
            terminalreporter.write_line(line)


def validator_of(tool: Tool) -> Any:
    """Validates results against the output schema of a tool, which is itself checked only here."""
    schema = output_schema(tool) or {}
    kind = validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


Call = Callable[..., Reply]
Rows = dict[str, list[tuple[Any, ...]]]
TESTER = with_client_name(ANONYMOUS_CALLER, "tester")


@pytest.fixture(scope="session", autouse=True)
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every kernel of a run shares one Embedder per model folder, the tool tables, and the statements of `sql/`. A new
    database is a copy of a migrated one.
    """
    template = Connection(tmp_path_factory.mktemp("template") / "quipu.db", StoreContext({}), readonly=False)
    migrate(template)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "Embedder", cache(Embedder))
        patch.setattr(app, "Dispatch", shared_tools())
        patch.setattr(app.statements, "load", cache(app.statements.load))
        patch.setattr(app, "migrate", copies_of(template))
        yield
    template.close()


def copies_of(template: Connection) -> Callable[[Connection], int]:
    """Migrates as `migrate` does, but an empty database becomes a copy of `template`."""

    def fill_and_migrate(db: Connection) -> int:
        if not db.pragma("page_count"):
            with db._db.backup("main", template._db, "main") as job:  # pyrefly: ignore[bad-context-manager]
                job.step()
        return migrate(db)

    return fill_and_migrate


def shared_tools() -> Callable[..., Dispatch]:
    """Makes a Dispatch as its class does, but the tool table of the same dialects only once."""
    made: dict[tuple[int, ...], Dispatch] = {}

    def dispatch(store: Store, dialects: Sequence[Dialect], observers: Sequence[Observer] = ()) -> Dispatch:
        key = tuple(map(id, dialects))  # `made` keeps the dialects, so that no id is used again
        if key not in made:
            made[key] = Dispatch(store, dialects)
        found = made[key].over(store)
        found.observers = list(observers)
        return found

    return dispatch


@pytest.fixture(scope="session")
def migrated(read_once: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a migrated, empty database: a copy of it opens in a third of the time."""
    config = Config(data=tmp_path_factory.mktemp("migrated") / "data")
    app.open_kernel(config).store.close()
    return config.home


Stamps = dict[str, tuple[int, int]]
PRIVATE = {"tmp_path", "monkeypatch"}  # a test with one of these may change the parts of a kernel


class Spares:
    """At most one open kernel that no test has written to, and the next data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = itertools.count()
        self.unused: tuple[Kernel, Stamps] | None = None

    def config(self) -> Config:
        """Return the configuration of the open kernel, or of a new kernel."""
        return self.unused[0].config if self.unused else Config(data=self.folder / str(next(self.numbers)) / "data")

    def close(self) -> None:
        """Closes the open kernel."""
        if self.unused:
            forget_rows()
            self.unused[0].store.close()
            self.unused = None


def stamps(home: Path) -> Stamps:
    """Size and time of every file that a write would change; the index of the log changes with a read too."""
    files = ((str(path), path.stat()) for path in home.rglob("*") if not path.name.endswith("-shm"))
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in files}


@pytest.fixture(scope="session")
def spares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spares]:
    """The kernels that several tests use one after another."""
    kept = Spares(tmp_path_factory.mktemp("kernels"))
    yield kept
    kept.close()


@pytest.fixture
def config(request: pytest.FixtureRequest, spares: Spares) -> Config:
    """The default configuration, with a data directory that does not exist yet, or that of an unused kernel."""
    if stores.ADDRESS:
        address = stores.of_worker()
        stores.forget_tenants(address)
        return Config(data=request.getfixturevalue("tmp_path") / "data", store=address)
    harmless = request.node.path.is_relative_to(TESTS / "unit") and PRIVATE.isdisjoint(request.fixturenames)
    if harmless and "kernel" in request.fixturenames:
        return spares.config()
    return Config(data=request.getfixturevalue("tmp_path") / "data")


@pytest.fixture
def kernel(config: Config, migrated: Path, spares: Spares) -> Iterator[Kernel]:
    """A running kernel with every dialect and the built-in model, and an empty database."""
    if spares.unused and spares.unused[0].config is config:
        running, before = spares.unused
        spares.unused = None
    else:
        if not config.home.exists() and not config.store:
            shutil.copytree(migrated, config.home)
        running = app.open_kernel(config)
        before = stamps(config.home)
    if config.home.is_relative_to(spares.folder):
        keep_rows(running)
    yield running
    if config.home.is_relative_to(spares.folder) and is_unused(running, before):
        spares.close()
        spares.unused = running, before
    else:
        forget_rows()
        running.store.close()
        if config.home.is_relative_to(spares.folder):
            shutil.rmtree(config.home)


def is_unused(kernel: Kernel, before: Stamps) -> bool:
    """Whether a kernel is open and nothing has been written since `before`, nor waits to be."""
    try:
        kernel.store.write_sync(lambda _tx: None)
    except Fault:
        return False
    return stamps(kernel.config.home) == before


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for the whole test."""
    with asyncio.Runner() as loop:
        yield loop


def entry_named(dispatch: Dispatch, name: str) -> ToolEntry:
    """Return a tool, also of an HTTP path of its own."""
    methods = ((dialect, method.tool) for dialect in dispatch.dialects for method in dialect.rest)
    return dispatch.tools.get(name) or next(ToolEntry(*found) for found in methods if found[1].name == name)


@pytest.fixture
def caller(runner: asyncio.Runner) -> Callable[[Dispatch], Call]:
    """Makes a `call` for any dispatch."""

    def bind(dispatch: Dispatch) -> Call:
        def call(name: str, /, *, by: str = "tester", turn: Interaction | None = None, **arguments: Any) -> Any:
            raw = msgspec.json.encode(arguments)
            entry = entry_named(dispatch, name)
            answer = dispatch.call(entry, raw, with_client_name(ANONYMOUS_CALLER, by), turn)
            return runner.get_loop().run_until_complete(answer)  # `run` changes the handler of SIGINT, there and back

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

    def __call__(self, _clock: int | None = None) -> str:
        return self.now

    def move(self, **by: float) -> str:
        """Moves by `timedelta(**by)`; the new time."""
        later = datetime.fromisoformat(self.now) + timedelta(**by)
        self.now = later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Time stands still for every transaction, and new ids count up: `prefix_1`, `prefix_2`."""
    still = Clock("2026-01-02T03:04:05.678Z")
    numbers = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernel.store.transaction.utc_now", still)
        patch.setattr("kernel.engines.migrations.utc_now", still)
        patch.setattr("kernel.store.transaction.new_id", lambda prefix, _clock: f"{prefix}_{next(numbers)}")
        yield still


class LastRead:
    """The rows that `everything` read last, and the connection that knows whether they are still those of the file."""

    def __init__(self, kernel: Kernel, file: tuple[int, ...]) -> None:
        self.db = Connection(kernel.config.file, kernel.store.context, readonly=True)
        self.kernel, self.file = kernel, file
        self.version = self.db.pragma("data_version")
        names = self.db.values("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        self.rows = {name: self.db.values(f'SELECT * FROM "{name}"') for (name,) in names}

    def is_current(self, kernel: Kernel, file: tuple[int, ...]) -> bool:
        """Whether the file is the same and no change has been committed since."""
        same = kernel.store is self.kernel.store and file == self.file
        return same and self.db.pragma("data_version") == self.version


_last_read: list[LastRead] = []
_rows_kept: set[Path] = set()


def keep_rows(kernel: Kernel) -> None:
    """Lets `everything` keep rows and a connection, which a test that damages a file must not meet."""
    _rows_kept.add(kernel.config.home)


def everything(kernel: Kernel) -> Rows:
    """Every row of every table, `sqlite_sequence` included; with `keep_rows` read once until a change is committed."""
    if kernel.config.store:
        return stores.rows(kernel.config.store, kernel.config.tenant)
    status = kernel.config.file.stat()
    file = (status.st_ino, status.st_size, status.st_mtime_ns)
    if kernel.config.home not in _rows_kept:
        found = LastRead(kernel, file)
        found.db.close()
        return found.rows
    if not (_last_read and _last_read[0].is_current(kernel, file)):
        forget_rows()
        _last_read.append(LastRead(kernel, file))
    return dict(_last_read[0].rows)


def forget_rows() -> None:
    """Closes the connection of `everything`."""
    for last in _last_read:
        last.db.close()
    _last_read.clear()


@pytest.fixture
def unchanged(kernel: Kernel, call: Call) -> Call:
    """Calls a tool and asserts that no row has changed."""

    def same(name: str, /, **arguments: Any) -> Reply:
        before = everything(kernel)
        reply = call(name, **arguments)
        assert everything(kernel) == before
        return reply

    return same
