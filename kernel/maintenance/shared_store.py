"""The store of a tenant in PostgreSQL; the data directory then holds keys and the files of notes."""

from kernel.config import Config
from kernel.data_dir import make_private
from kernel.errors import Fault
from kernel.store.context import StoreContext
from kernel.store.engine import Database
from kernel.store.opening import open_writer
from kernel.store.stored import Stored, settled

_SEE = "see docs/scaling.md."


def in_database(config: Config, context: StoreContext) -> StoreContext:
    """The context of the configured database; for a file, the context as it is. Raises Fault."""
    if not config.store:
        if config.read_store:
            raise Fault("invalid", "QUIPU_READ_STORE needs QUIPU_STORE, where writes go.")
        return context
    from kernel.store.postgres.database import postgres_context  # which only those who use it load

    place = (config.store, config.tenant, config.file)
    return postgres_context(context, *place, durable=config.durable, replica=config.read_store)


def open_shared_store(config: Config, context: StoreContext, keys_needed: bool) -> tuple[Database, Stored]:
    """The tenant of the configuration, for a server; raises Fault."""
    from kernel.store.postgres.database import PostgresDatabase

    refuse_files(config)
    return PostgresDatabase(config.file, context), prepare_tenant(config, context, keys_needed)


def prepare_tenant(config: Config, context: StoreContext, keys_needed: bool) -> Stored:
    """Makes the tenant if it does not exist, and what is stored of it; raises Fault."""
    make_private(config.home)
    with open_writer(config.file, context) as db:
        return settled(db, keys_needed)


def refuse_files(config: Config) -> None:
    """Raises Fault("invalid") for what a server does with files, where a database is configured."""
    if config.store and config.follow:
        raise Fault("invalid", f"--follow serves a copy of files, and QUIPU_STORE names a database: {_SEE}")
    if config.store and config.backup_to is not None:
        raise Fault("invalid", f"QUIPU_BACKUP_TO copies files, and QUIPU_STORE names a database: {_SEE}")
