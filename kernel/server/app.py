"""The composition root: opens the store of a configuration, with its dialects and observers."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from handlers import brain, common, files, graph, notes, paths, scopes, sessions
from kernel.calls.dialect import Dialect, place_forms
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.calls.schema import with_configured_choices
from kernel.calls.settings import read_settings, setting_prefixes
from kernel.calls.tenants import Bounds
from kernel.core import file_access
from kernel.core.config import Config
from kernel.core.data_dir import MAIN, fsync_folder, other_tenants
from kernel.core.errors import Fault, unless_fault
from kernel.embed.model import FILES, Embedder
from kernel.engines.migrations import migrate, pending_migrations
from kernel.engines.sqlite.connection import Connection, memory_used
from kernel.engines.sqlite.database import SqliteDatabase
from kernel.engines.sqlite.database_file import check_log, size_of
from kernel.memories.briefing import HookSessions
from kernel.operations.backup import (
    BackupLoop,
    Folder,
    Manifest,
    Schedule,
    Tenant,
    backup_all,
    copy_before_migration,
    refuse_backup,
)
from kernel.operations.data_access import DataAccess, open_shared
from kernel.operations.erase import copies_of
from kernel.operations.replica import open_replica, refuse_replica
from kernel.operations.shared_store import in_database, open_shared_store, prepare_tenant
from kernel.search.ann import Sketcher, VectorIndex
from kernel.search.bm25 import match_tf
from kernel.search.cache import SearchCache
from kernel.search.index import DERIVED
from kernel.search.vectors import COMMON_TEXT, load_all_vectors
from kernel.security import api_keys, permissions
from kernel.server import logs, process
from kernel.store import statements
from kernel.store.context import CallContext, StoreContext
from kernel.store.engine import Database
from kernel.store.long_work import OnProgress
from kernel.store.store import Pools, Store, Stored, read_stored, settled

if TYPE_CHECKING:
    from kernel.memories.import_records import Import, Source
    from kernel.observe.metrics import MetricsRegistry
    from kernel.observe.tracing import Tracing
    from kernel.server.worker import Worker

DIALECTS: tuple[Dialect, ...] = (
    paths.DIALECT,
    scopes.DIALECT,
    brain.DIALECT,
    notes.DIALECT,
    sessions.DIALECT,
    graph.DIALECT,
    files.DIALECT,
    common.DIALECT,
)
UNION = tuple(dialect for dialect in DIALECTS if not dialect.extra)
READING_ALL = frozenset(dialect.name for dialect in DIALECTS if dialect.reads_all_dialects)
FTS5_FUNCTIONS = {"match_tf": match_tf}
SETTING_PREFIXES = setting_prefixes(setting for dialect in DIALECTS for setting in dialect.settings)
_FILES_OF_A_TENANT = 8  # its lock, and the file and the log of each of its connections
_MAPPED_BYTES = 4 << 20  # of a tenant's file; the pages of a smaller file fit into the cache of a connection
_BACKUPS = ".backups"  # in the place of a tenant, of which none has this name


class Kernel(NamedTuple):
    """A running kernel: its store and its tools; close the store when done.

    `seal_key` signs state that clients keep between calls; it is stored in the file, so that all processes on it agree.
    `had_keys` says that there were API keys, so that a lost `keys.json` opens the data to no caller. `unclean`
    says that the process before did not close the file. `metrics` and `tracing` are None unless configured.
    """

    config: Config
    store: Store
    dispatch: Dispatch
    seal_key: bytes
    schema: int
    had_keys: bool = False
    unclean: bool = False
    metrics: "MetricsRegistry | None" = None
    tracing: "Tracing | None" = None


def base_context(model: Path | None) -> StoreContext:
    """Return a context with the statements of `sql/` and a model, read when it is first needed; raises
    Fault("invalid").
    """
    texts = {key: statement.text for key, statement in statements.load().items()}
    if model is None:
        return StoreContext(texts, None, _search_cache(None), fts5_functions=FTS5_FUNCTIONS, derived=DERIVED)
    for name in FILES:
        if not (model / name).is_file():
            raise Fault(
                "invalid", f"The model folder {model.absolute()} lacks {name}: choose a model2vec folder, or none."
            )
    embedder = Embedder(model)
    return StoreContext(texts, embedder, _search_cache(embedder), fts5_functions=FTS5_FUNCTIONS, derived=DERIVED)


def _search_cache(embedder: Embedder | None) -> SearchCache:
    def sketcher() -> Sketcher:
        return Sketcher(embedder.dimensions, embedder.embed([COMMON_TEXT])[0].vector) if embedder else Sketcher(8)

    return SearchCache(VectorIndex(sketcher))


def foreign_imports() -> tuple["Import", ...]:
    """Return the importers of programs that no dialect reproduces; only the command that imports needs them."""
    from handlers.importers import IMPORTS

    return IMPORTS


def unpacked(source: "Source", kind: str | None) -> "Source":
    """Return a source of an import without an archive or a text around it."""
    from handlers.importers import unpacked

    return unpacked(source, kind)


def context_of(config: Config, dialects: tuple[Dialect, ...] = DIALECTS) -> StoreContext:
    """Return the context of the configured file, with the settings of these dialects."""
    return _configured(base_context(config.model), config, dialects)


def _configured(store_context: StoreContext, config: Config, dialects: tuple[Dialect, ...]) -> StoreContext:
    settings = [setting for dialect in dialects for setting in dialect.settings]
    values = read_settings(settings, config.environment, config.tenant)
    context = store_context._replace(
        settings=values,
        data=config.home.absolute(),
        call_limits=config.limits.engine,
        injection_mode=config.injection_mode,
        dialects=tuple(dialect.name for dialect in dialects),
        tagged={dialect.name: dialect.memories.tagged for dialect in dialects if dialect.memories.tagged},
        expired={dialect.name: dialect.memories.expired for dialect in dialects if dialect.memories.expired},
        sources_of={dialect.name: dialect.memories.sources_of for dialect in dialects if dialect.memories.sources_of},
        past={dialect.name: dialect.memories.past for dialect in dialects if dialect.memories.past},
        briefs={dialect.name: dialect.memories.brief for dialect in dialects if dialect.memories.brief},
        keep_handoff=next(
            (dialect.memories.keep_handoff for dialect in dialects if dialect.memories.keep_handoff), None
        ),
        hook_sessions=HookSessions(),
        copies=partial(copies_of, config),
    )
    return in_database(config, context)


def select_dialects(names: tuple[str, ...]) -> tuple[Dialect, ...]:
    """Return the dialects of these names, or all of them for none; raises Fault("invalid") for an unknown name."""
    by_name = {dialect.name: dialect for dialect in DIALECTS}
    for name in names:
        if name not in by_name:
            raise Fault("invalid", f"There is no dialect {name}: choose from {', '.join(by_name)}")
    return tuple(by_name[name] for name in names) if names else DIALECTS


class Places(NamedTuple):
    """The places that a key is held to, none for all of its dialects."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    dialects: tuple[str, ...]


def places(read: Sequence[str], write: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})) -> Places:
    """Return the places of a key by its options; raises Fault("invalid") naming the option."""
    settings = read_settings([setting for dialect in DIALECTS for setting in dialect.settings], environment)
    forms = place_forms(DIALECTS, settings)
    readable, writable = permissions.parse(read, forms, "--read"), permissions.parse(write, forms, "--write")
    dialects = {place.partition(":")[0] for place in (*readable, *writable)}
    return Places(readable, writable, tuple(sorted({*dialects, *READING_ALL})))


def open_kernel(config: Config, dialects: tuple[Dialect, ...] | None = None) -> Kernel:
    """Opens the data directory, migrates its file and starts the store; raises Fault."""
    served_dialects = select_dialects(config.dialects) if dialects is None else dialects
    store_context = context_of(config, served_dialects)
    store, state = _opened(config, store_context, served_dialects)
    offered_dialects = tuple(with_configured_choices(dialect, store_context.settings) for dialect in served_dialects)
    metrics = tracing = None
    if config.metrics:
        from kernel.observe.metrics import MetricsRegistry  # a start without metrics does not need it

        metrics = MetricsRegistry()
    if config.traces:
        from kernel.observe.tracing import Tracing  # OpenTelemetry is an extra

        tracing = Tracing()
    observers = [source.observe for source in (metrics, tracing) if source]
    if config.log_calls or config.log_slow:
        observers.append(partial(logs.observe, slow_seconds=0.0 if config.log_calls else config.log_slow / 1000))
    dispatch = Dispatch(store, offered_dialects, observers)
    return Kernel(config, store, dispatch, *state, metrics, tracing)


def open_tenant(kernel: Kernel, name: str) -> Kernel:
    """Return the kernel's tools over the file of another tenant, which is created if it does not exist; raises Fault.

    Statements, model and threads are shared; the search cache is the tenant's own, and the vectors in it are read when
    a search first needs them.
    """
    config = kernel.config._replace(tenant=name)
    store_context = kernel.store.context
    cache = SearchCache(VectorIndex(lambda: store_context.search_cache.vectors.sketcher))
    dialects = kernel.dispatch.dialects
    own = _configured(store_context._replace(search_cache=cache), config, dialects)
    store, state = _opened(config, own, dialects, kernel.store.pools)
    cache.warming, cache.load_later = True, partial(store.read_later, load_all_vectors)
    return Kernel(config, store, kernel.dispatch.over(store), *state)


def tenant_bounds(kernel: Kernel) -> Bounds:
    """Return how many tenants may be open: as many as there are descriptors and memory for."""
    most = process.descriptors() // (2 * _FILES_OF_A_TENANT)
    return Bounds(most, kernel.config.tenant_megabytes << 20)


def _opened(
    config: Config, store_context: StoreContext, dialects: tuple[Dialect, ...], pools: Pools | None = None
) -> tuple[Store, Stored]:
    database: Database
    most_bytes = config.tenant_megabytes << 20
    if config.store:
        database, state = open_shared_store(config, store_context)
    elif config.follow:
        database, state = open_replica(config, store_context, read_stored)
    else:
        mapped_from = 0 if pools is None else _MAPPED_BYTES
        file = SqliteDatabase(config.file, store_context, durable=config.durable, mapped_from=mapped_from)
        access, state = open_data(config, store_context, file, has_data=pools is not None)
        database, file.release = file, access.close
    store = Store(
        database,
        catch_faults,
        readers=config.readers,
        max_wait=config.queue_wait / 1000,
        group_limit=config.group,
        undo_hours=config.undo_hours,
        pools=pools or Pools(config.readers, database.read_head_start, memory_used, most_bytes, config.limits.queued),
    )
    store.start()
    for dialect in dialects:
        if dialect.files.recover is not None and not config.follow:
            work = catch_faults(store.read_sync, dialect.files.recover, CallContext(dialect.name))
            if work is not None and not isinstance(work, Fault):
                store.write_later(work, CallContext(dialect.name))
    return store, state


def prepare_data(config: Config, store_context: StoreContext) -> Stored:
    """Creates the data directory, private to the user, and migrates its file."""
    access, state = open_data(config, store_context)
    access.close()
    return state


def open_data(
    config: Config, store_context: StoreContext, database: SqliteDatabase | None = None, *, has_data: bool = False
) -> tuple[DataAccess, Stored]:
    """Return `prepare_data`, and the right to use the data until it is closed, for a process that may have the data
    directory already. A `database` that needs nothing keeps the connection that has looked.
    """
    refuse_replica(config.data)
    refuse_backup(config.data)
    if config.store:
        return DataAccess(config.data, config.home), prepare_tenant(config, store_context)
    while True:
        with ExitStack() as stack:
            access = stack.enter_context(closing(DataAccess(config.data, config.home, has_data=has_data)))
            # The file of the main tenant is opened for writing at the start, so that a folder that refuses it is told.
            ready = None if database is None or not has_data else catch_faults(_ready, config, database)
            state = ready if isinstance(ready, Stored) else _prepared(config, store_context)
            if access.share():
                stack.pop_all()
                return access, state._replace(unclean=access.unclean)


def _ready(config: Config, database: SqliteDatabase) -> Stored | None:
    """Return the state of a database that is as it has to be."""
    if not size_of(config.file):
        return None
    with ExitStack() as stack:
        db = stack.enter_context(closing(database.reader()))
        is_current = db.pragma("journal_mode") == "wal" and not pending_migrations(db)
        state = db.read(CallContext(), read_stored) if is_current else None
        if state is None or api_keys.needed(config.data) > state.had_keys:
            return None
        stack.pop_all()
        database.keep(db)
        return state


def _prepared(config: Config, store_context: StoreContext) -> Stored:
    file_access.require(config.data, config.file)
    try:
        config.file.touch(mode=0o600, exist_ok=True)
        outcome = catch_faults(_migrate, config, store_context)
        fsync_folder(config.home)  # so that the rollback journal of a new file cannot reappear after a power cut
    except OSError as error:
        raise Fault("storage", f"Cannot use the data directory {config.home}: {error.strerror}") from None
    return unless_fault(outcome)


def require_database(config: Config) -> None:
    """Raises Fault("not_found") for a place without a database; nothing is made there."""
    if not config.store and not config.file.is_file():
        check_log(config.file)
        if config.tenant != MAIN and config.data.exists():
            message = f"The tenant {config.tenant} has stored nothing yet, or is none: `quipu tenant list` shows all."
            raise Fault("not_found", message)
        raise Fault("not_found", f"There is no Quipu database in {config.data}: name its folder with --data.")


def folders_of(config: Config, store_context: StoreContext) -> list[Folder]:
    return [
        Folder(dialect.name, *folder)
        for dialect in DIALECTS
        if dialect.files.folders is not None
        for folder in dialect.files.folders(store_context.settings, config.home.absolute())
    ]


def back_up_all(config: Config, target: Path, progress: OnProgress | None = None) -> Manifest:
    """Copies everything of every tenant into a new folder, while servers read and write it; raises Fault."""
    other_names = [name for name in other_tenants(config.data) if config._replace(tenant=name).file.exists()]
    settings = {name: text for name, text in sorted(config.environment.items()) if name.startswith(SETTING_PREFIXES)}
    with ExitStack() as stack:
        tenants: list[Tenant] = []
        for name in (MAIN, *other_names):
            own = config._replace(tenant=name, model=None)
            store_context = context_of(own)
            stack.enter_context(closing(open_shared(own)))
            tenants.append(Tenant(name, own.file, store_context, folders_of(own, store_context)))
        return backup_all(config.data, tenants, settings, target, progress)


def start_backups(config: Config, stopping: threading.Event, worker: "Worker | None") -> BackupLoop | None:
    """Makes the configured backups in a thread until `stopping` is set; None without any. One of the workers does."""
    if config.backup_to is None:
        return None
    schedule = Schedule(config.backup_to, config.backup_every, config.backup_keep)
    take = (lambda: True) if worker is None else partial(worker.take_upkeep, _BACKUPS)
    loop = BackupLoop(schedule, lambda target: catch_faults(back_up_all, config, target), take)
    threading.Thread(target=loop.run, args=(stopping,), name="quipu-backup", daemon=True).start()
    return loop


def had_keys(config: Config) -> bool:
    """Return whether the database of the tenant remembers API keys; raises Fault if it cannot be read."""
    if config.store:
        return prepare_tenant(config, context_of(config)).had_keys
    check_log(config.file)
    if not config.file.is_file():
        return False
    with closing(Connection(config.file, base_context(None), readonly=True)) as db:
        row = db.read(CallContext(), read_stored) if db.has_table("setting") else None
        return row is not None and row.had_keys


def _migrate(config: Config, store_context: StoreContext) -> Stored:
    needs_keys = api_keys.needed(config.data)
    with closing(Connection(config.file, store_context, readonly=False)) as db:
        copy_before_migration(db, config.home)
        migrate(db)
        return settled(db, needs_keys)
