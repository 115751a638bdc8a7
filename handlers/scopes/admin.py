"""The tools memory_health and memory_init (seed 000): row counts, migrations, and a reset with a backup."""

from typing import Annotated

from msgspec import Meta, Struct

from kernel.calls.tools import Hints, Tool, exclusive, read
from kernel.search import index
from kernel.store import history
from kernel.store.introspection import backup_before_clear, migrations
from kernel.store.transaction import Tx

CONTRACT_RELEASE = "0.3.0"
DIALECT = "scopes"
UNCONFIRMED = "Reset requires confirmation. Set confirm=true to proceed. WARNING: This will delete all data!"
Verbose = Annotated[bool | None, Meta(description="Taken for compatibility; there is no more to tell")]


class GetHealth(Struct, forbid_unknown_fields=True):
    """A request without arguments."""


class DatabaseState(Struct, rename="camel"):
    """The storage engine."""

    type: str
    in_memory: bool
    wal_enabled: bool


class CacheState(Struct):
    """The result cache of the original; this server has none."""

    enabled: bool
    size: int
    hits: int
    misses: int
    ttl: int


class RowCounts(Struct, rename="camel"):
    """Rows: active entries, locks that have not expired, unresolved conflicts."""

    organizations: int
    projects: int
    sessions: int
    tools: int
    guidelines: int
    knowledge: int
    tags: int
    file_locks: int
    conflicts: int


class HealthReport(Struct, rename="camel"):
    """Result of health; `server_version` is the release of the original that the contract describes."""

    server_version: str
    status: str
    database: DatabaseState
    cache: CacheState
    tables: RowCounts


class Init(Struct, tag="init", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    force: Annotated[bool | None, Meta(description="Taken for compatibility; there is never anything to force")] = False
    verbose: Verbose = False


class GetStatus(Struct, tag="status", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """A request without further arguments."""


class Reset(Struct, tag="reset", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    confirm: Annotated[bool, Meta(description="Must be true to confirm reset")]
    verbose: Verbose = False


class Initialized(Struct, rename="camel"):
    """Result of init; `migrations_applied` are those that this call applied."""

    success: bool
    initialized: bool
    already_initialized: bool
    migrations_applied: list[str]
    migration_count: int
    total_migrations: int
    pending_migrations: list[str]
    message: str


class InitializationStatus(Struct, rename="camel"):
    initialized: bool
    status: str
    total_migrations: int
    applied_migrations: list[str]
    applied_count: int
    pending_migrations: list[str]
    pending_count: int


class ResetDone(Struct, rename="camel"):
    """Result of reset; `backup` is the file in the data directory that holds the previous data."""

    success: bool
    message: str
    backup: str
    migrations_applied: list[str]
    migration_count: int


class ResetRefused(Struct):
    """Result of reset without confirmation, which changes nothing."""

    success: bool
    error: str


def memory_health(tx: Tx, request: GetHealth) -> HealthReport:
    """Check server health and database status."""
    tables = tx.one("scopes.admin.counts", RowCounts, now=tx.now) or RowCounts(0, 0, 0, 0, 0, 0, 0, 0, 0)
    database = DatabaseState(tx.one("scopes.admin.engine", str) or "", in_memory=False, wal_enabled=True)
    return HealthReport(CONTRACT_RELEASE, "healthy", database, CacheState(False, 0, 0, 0, 0), tables)


def memory_init(
    tx: Tx, request: Init | GetStatus | Reset
) -> Initialized | InitializationStatus | ResetDone | ResetRefused:
    """Manage database initialization and migrations; reset deletes all data of these tools, keeps a backup, and can be
    taken back by `quipu undo`.
    """
    migration_names = migrations(tx, DIALECT)
    count = len(migration_names)
    if isinstance(request, Init):
        return Initialized(True, True, True, [], 0, count, [], "Database already initialized, all migrations applied")
    if isinstance(request, GetStatus):
        return InitializationStatus(True, "ready", count, migration_names, count, [], 0)
    if not request.confirm:
        return ResetRefused(False, UNCONFIRMED)
    backup = backup_before_clear(tx, "before-reset")
    _clear(tx)
    return ResetDone(True, "Database reset successfully", backup, migration_names, count)


def _clear(tx: Tx) -> None:
    """Deletes the rows, history and index documents of the dialect, and restores the predefined tags.

    The numbers of lock events continue, so that no fencing number is used twice.
    """
    tx.run("scopes.admin.clear_locks")
    tx.run("scopes.admin.clear_lock_events")
    tx.run("scopes.admin.clear_conflicts")
    tx.run("scopes.admin.clear_relations")
    tx.run("scopes.admin.clear_entry_tags")
    tx.run("scopes.admin.clear_tags")
    tx.run("scopes.admin.clear_versions")
    tx.run("scopes.admin.clear_replaced")
    tx.run("scopes.admin.clear_entries")
    tx.run("scopes.admin.clear_sessions")
    tx.run("scopes.admin.clear_projects")
    tx.run("scopes.admin.clear_orgs")
    tx.run("scopes.admin.seed_tags", now=tx.now)
    history.clear(tx, DIALECT)
    index.clear(tx, DIALECT)


TOOLS: tuple[Tool, ...] = (
    read(memory_health, Hints("Health"), permission="read"),
    exclusive(
        memory_init,
        Hints("Initialization", destructive=True),
        permission={"init": "read", "status": "read", "reset": "admin"},
        read_arms=(Init, GetStatus),
        long=True,
    ),
)
