"""The store of a tenant in PostgreSQL; the data directory then holds a copy of the keys, and the files of notes."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from kernel.core.config import Config
from kernel.core.data_dir import MAIN, make_private
from kernel.core.errors import Fault
from kernel.engines.opening import open_writer
from kernel.security import api_keys
from kernel.store.context import StoreContext
from kernel.store.engine import Database
from kernel.store.store import Stored, settled

if TYPE_CHECKING:
    from kernel.engines.postgres.database import SharedFile

T = TypeVar("T")
_TRY_SECONDS, _TELL_SECONDS = 0.5, 10.0
_log = logging.getLogger("quipu")
_SEE = "see docs/scaling.md."


def in_database(config: Config, context: StoreContext) -> StoreContext:
    """Return the context of the configured database; for a file, the context as it is. Raises Fault."""
    if not config.store:
        if config.read_store:
            raise Fault("invalid", "QUIPU_READ_STORE needs QUIPU_STORE, where writes go.")
        return context
    from kernel.engines.postgres.database import postgres_context  # which only those who use it load

    place = (config.store, config.tenant, config.file)
    return postgres_context(context, *place, durable=config.durable, replica=config.read_store)


def open_shared_store(config: Config, context: StoreContext) -> tuple[Database, Stored]:
    """Return the tenant of the configuration, for a server; raises Fault."""
    from kernel.engines.postgres.database import PostgresDatabase

    refuse_files(config)
    state = prepare_tenant(config, context)
    keys = _shared_keys(config) if config.tenant == MAIN else None  # a single tenant of a server follows them
    return PostgresDatabase(config.file, context, keys), state


def open_patiently(config: Config, opened: Callable[[], T | Fault], ending: Callable[[], bool]) -> T | Fault:
    """Return what is `opened`, which is tried again while the database is away or busy, until the configured wait has
    passed or the server is `ending`.
    """
    start = last_told = time.monotonic()
    while isinstance(outcome := opened(), Fault) and outcome.code == "busy" and config.store:
        now = time.monotonic()
        left = start + config.store_wait - now
        if left <= 0 or ending():
            break
        if last_told == start or now >= last_told + _TELL_SECONDS:
            last_told = now
            reason = str(outcome.__cause__ or outcome.message).partition("\n")[0]
            _log.warning("waiting for the database, for %.0f s more: %s", left, reason)
        time.sleep(_TRY_SECONDS)
    return outcome


def prepare_tenant(config: Config, context: StoreContext) -> Stored:
    """Make the tenant if it does not exist, and its rows, after the keys were read; raises Fault."""
    make_private(config.home)
    _shared_keys(config).adopt()
    limits = context.call_limits._replace(milliseconds=0)  # no caller can ask for less
    with open_writer(config.file, context._replace(call_limits=limits)) as db:
        return settled(db, api_keys.needed(config.data))


def changing_keys(config: Config) -> AbstractContextManager[None]:
    return _shared_keys(config).changing() if config.store else nullcontext()


def _shared_keys(config: Config) -> "SharedFile":
    from kernel.engines.postgres.database import SharedFile, pool_of

    return SharedFile(pool_of(config.store), config.data / api_keys.FILE)


def refuse_files(config: Config) -> None:
    """Raise Fault("invalid") for settings that need files, if a database is configured."""
    if config.store and config.follow:
        raise Fault("invalid", f"--follow serves a copy of files, and QUIPU_STORE names a database: {_SEE}")
    if config.store and config.backup_to is not None:
        raise Fault("invalid", f"QUIPU_BACKUP_TO copies files, and QUIPU_STORE names a database: {_SEE}")
