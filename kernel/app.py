"""The composition root: configuration, store, dialects and edges put together."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from handlers import brain, common, notes, paths, rights, scopes, sessions
from kernel.config import Config
from kernel.data_dir import private, settle
from kernel.dispatch import Dispatch, guard
from kernel.embed.model import FILES, Embedder
from kernel.errors import Fault
from kernel.observe import logs
from kernel.observe.calls import Logged, Watched, together
from kernel.observe.metrics import Meters
from kernel.schema import configured
from kernel.search.ann import Sketches
from kernel.search.binary_codes import Sketcher
from kernel.search.index import COMMON, Memory
from kernel.settings import read_settings
from kernel.store import statements as sql
from kernel.store.context import Origin, World
from kernel.store.migrations import migrate
from kernel.store.sqlite.connection import Connection, Tx
from kernel.store.sqlite.wal_header import examine
from kernel.store.store import Store
from kernel.tools import Dialect

ACROSS = rights.ACROSS
DIALECTS: tuple[Dialect, ...] = (
    paths.DIALECT,
    scopes.DIALECT,
    brain.DIALECT,
    notes.DIALECT,
    sessions.DIALECT,
    common.DIALECT,
)
_SEAL_KEY = "seal_key"


class Kernel(NamedTuple):
    """A running kernel: its store and its tools; close the store when done.

    `seal_key` signs what clients carry for us between calls; it lies in the file, so every process on it agrees.
    `meters` and `traces` are there where they were asked for.
    """

    config: Config
    store: Store
    dispatch: Dispatch
    seal_key: bytes
    schema: int
    meters: Meters | None = None
    traces: Any = None


def world(model: Path | None) -> World:
    """The statements of `sql/` and the model of a folder, unread until needed; raises Fault for what is no model."""
    statements = {key: statement.text for key, statement in sql.load().items()}
    if model is None:
        return World(statements, None, _remembering(None))
    for name in FILES:
        if not (model / name).is_file():
            raise Fault("invalid", f"The model folder {model.name} lacks {name}.")
    embedder = Embedder(model)
    return World(statements, embedder, _remembering(embedder))


def _remembering(embedder: Embedder | None) -> Memory:
    def sketcher() -> Sketcher:
        return Sketcher(embedder.dimensions, embedder.embed([COMMON])[0].vector) if embedder else Sketcher(8)

    return Memory(Sketches(sketcher))


def shared_by(config: Config, dialects: tuple[Dialect, ...] = DIALECTS) -> World:
    """What all connections to the configured file share, with the settings of these dialects."""
    return _own(world(config.model), config, dialects)


def _own(shared: World, config: Config, dialects: tuple[Dialect, ...]) -> World:
    settings = [setting for dialect in dialects for setting in dialect.settings]
    values = read_settings(settings, config.environment, config.tenant)
    return shared._replace(
        settings=values, data=config.home.absolute(), engine=config.limits.engine, suspects=config.suspects
    )


def chosen(names: tuple[str, ...], known: tuple[Dialect, ...] = DIALECTS) -> tuple[Dialect, ...]:
    """The dialects of these names, all of them for none; raises Fault("invalid") for an unknown name."""
    by_name = {dialect.name: dialect for dialect in known}
    for name in names:
        if name not in by_name:
            raise Fault("invalid", f"There is no dialect {name}: choose from {', '.join(by_name)}")
    return tuple(by_name[name] for name in names) if names else known


def open_kernel(config: Config, dialects: tuple[Dialect, ...] | None = None) -> Kernel:
    """Opens the data directory, brings its file up to date and starts the store; raises Fault with the reason."""
    served = chosen(config.dialects) if dialects is None else dialects
    shared = shared_by(config, served)
    store, seal_key, schema = _started(config, shared)
    shown = tuple(configured(dialect, shared.settings) for dialect in served)
    meters = Meters() if config.metrics else None
    traces = _traces() if config.traces else None
    watches = [one.watch for one in (meters, traces) if one] + ([logs.watch] if config.log_calls else [])
    if watches:
        watched = Logged if config.log_calls else Watched
        dispatch = watched(store, shown, rights.RIGHTS, together(watches))
    else:
        dispatch = Dispatch(store, shown, rights.RIGHTS)
    return Kernel(config, store, dispatch, seal_key, schema, meters, traces)


def _traces() -> Any:
    from kernel.observe.tracing import Traces

    return Traces()


def open_tenant(kernel: Kernel, name: str) -> Kernel:
    """The kernel's tools over the file of another tenant, which is made where there is none; raises Fault.

    It shares with the kernel what nobody writes: statements and model. What search remembers is its own.
    """
    config = kernel.config._replace(tenant=name)
    shared = kernel.store.world
    apart = shared._replace(memory=_remembering(shared.embedder))
    store, seal_key, schema = _started(config, _own(apart, config, kernel.dispatch.dialects))
    return Kernel(config, store, kernel.dispatch.over(store), seal_key, schema)


def _started(config: Config, shared: World) -> tuple[Store, bytes, int]:
    seal_key, schema = prepare(config, shared)
    store = Store(
        config.file,
        shared,
        guard,
        readers=config.readers,
        write_limit=config.write_queue,
        read_limit=config.read_queue,
        read_patience=config.read_wait / 1000,
        durable=config.durable,
        group_limit=config.group,
        undo_hours=config.undo_hours,
    )
    store.start()
    return store, seal_key, schema


def prepare(config: Config, shared: World) -> tuple[bytes, int]:
    """Makes the data directory and the file, private to the user, and migrates; the seal key and the schema."""
    try:
        private(config.home)
        config.file.touch(mode=0o600, exist_ok=True)
        examine(config.file)
    except OSError as error:
        raise Fault("storage", f"Cannot use the data directory: {error.strerror}") from None
    outcome = guard(_migrate, config, shared)
    if isinstance(outcome, Fault):
        raise outcome
    settle(config.home)  # a rollback journal of the first moment must not come back after a power cut
    return outcome


def _migrate(config: Config, shared: World) -> tuple[bytes, int]:
    db = Connection(config.file, shared, readonly=False)
    try:
        migrate(db)
        found = db.read(Origin(), _settings)
        if found is None:
            with db.writing() as tx:
                tx.run("kernel.setting.add_if_missing", name=_SEAL_KEY, value=os.urandom(32).hex())
            found = db.read(Origin(), _settings)
        return found
    finally:
        db.close()


def _settings(tx: Tx) -> tuple[bytes, int] | None:
    key = tx.one("kernel.setting.get", bytes.fromhex, name=_SEAL_KEY)
    return (key, tx.one("kernel.setting.count_migrations", int) or 0) if key else None
