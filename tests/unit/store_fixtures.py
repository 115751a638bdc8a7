"""A table of things and a store over it, for tests of the store without any dialect."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel.calls.dispatch import catch_faults
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database import SqliteDatabase
from kernel.store import statements
from kernel.store.context import StoreContext
from kernel.store.store import Store
from kernel.store.transaction import Tx

_AUDIT = (
    (statements.ROOT / "schema" / "0007_audit.sql")
    .read_text(encoding="utf-8")
    .replace(" undo_by", " IF NOT EXISTS undo_by")
)
_AUDIT = _AUDIT.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
STATEMENTS = {
    **{name: found.text for name, found in statements.load().items() if name.startswith("kernel.audit.")},
    "thing.add": "INSERT INTO thing (name) VALUES (:name)",
    "thing.add_many": "INSERT INTO thing (name) SELECT value FROM json_each(:names)",
    "thing.rename": "UPDATE thing SET name = :name",
    "thing.names": "SELECT name FROM thing ORDER BY id",
    "thing.echo": "SELECT :value",
    "thing.count": "SELECT count(*) FROM thing",
    "thing.forever": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "thing.quoted": 'SELECT "no such column"',
    "thing.load": "SELECT load_extension('vec0')",
    "thing.huge": "SELECT zeroblob(:size)",
}
THING_CONTEXT = StoreContext(STATEMENTS)


def things(file: Path, context: StoreContext = THING_CONTEXT) -> Connection:
    """A writer on a file with the table."""
    db = Connection(file, context, readonly=False)
    db.pragma("journal_mode", "wal")
    db.script("CREATE TABLE IF NOT EXISTS thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
    db.script(_AUDIT)
    return db


def thing_store(file: Path, context: StoreContext = THING_CONTEXT, **options: Any) -> Store:
    """A store on a file with the table, not started."""
    things(file, context).close()
    durable = options.pop("durable", True)
    return Store(SqliteDatabase(file, context, durable=durable), catch_faults, **options)


def add(name: str) -> Callable[[Tx], str]:
    """A call that adds one thing and returns its name."""

    def work(tx: Tx) -> str:
        tx.run("thing.add", name=name)
        return name

    return work


def later(name: str) -> Callable[[Tx], str]:
    """A call that defers the adding of one thing."""

    def work(tx: Tx) -> str:
        tx.defer(flush, name)
        return name

    return work


def flush(tx: Tx, names: Sequence[str]) -> None:
    """Adds deferred things with one statement."""
    tx.run("thing.add_many", names=names)


def names(tx: Tx) -> list[str]:
    """The names of all things, the deferred ones included, oldest first."""
    tx.flush_deferred()
    return tx.all("thing.names", str)
