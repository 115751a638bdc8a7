"""Migrates a file to the newest schema, or refuses it with a reason."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import OLDEST_SQLITE, sqlite_version
from kernel.store.statements import ROOT, migrations

APPLICATION_ID = 0x51554950  # "QUIP" in ASCII
_MIGRATION_TABLE = """
CREATE TABLE migration (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT, WITHOUT ROWID
"""
# One statement: another process may be migrating the file.
_APPLIED = "SELECT v.user_version, m.name, m.sha256 FROM pragma_user_version AS v CROSS JOIN migration AS m"


def migrate(db: Connection, root: Path = ROOT) -> int:
    """Applies the missing migrations, each in its own transaction; returns how many.

    Raises Fault("storage"), with nothing changed, for a file of another program, a file with a newer schema or with
    other migrations applied, and for an SQLite older than 3.51.3.
    """
    files = migrations(root)
    missing = pending_migrations(db, root)
    db.enable_wal()  # off in a new file and in a restored backup
    if missing:
        _claim(db)
    return sum(_apply(db, number, file) for number, file in enumerate(files, start=1)) if missing else 0


def pending_migrations(db: Connection, root: Path = ROOT) -> int:
    """Return the number of missing migrations, without changing the file; raises the errors of `migrate`."""
    if sqlite_version() < OLDEST_SQLITE:
        raise Fault("storage", "SQLite 3.51.3 or newer is needed: `quipu doctor` says how to get it.")
    files = migrations(root)
    version = schema_version(db)
    rows = db.values(_APPLIED) if db.has_table("migration") else []
    version = rows[0][0] if rows else version
    if version > len(files):
        raise Fault("storage", f"The database has schema {version}, newer than this program's {len(files)}.")
    if version:
        _verify({name: sha256 for _, name, sha256 in rows}, files[:version])
    return len(files) - version


def schema_version(db: Connection) -> int:
    """Return the schema of the file, 0 for an empty file; raises Fault("storage") for a file of another program."""
    tables = db.values("SELECT count(*) FROM sqlite_schema")[0][0]
    application_id = db.pragma("application_id")
    if application_id != APPLICATION_ID and (application_id or tables):
        raise Fault("storage", "This file is not a Quipu database.")
    return db.pragma("user_version")


def _claim(db: Connection) -> None:
    with db.writing():
        if db.pragma("application_id") != APPLICATION_ID:
            db.pragma("application_id", APPLICATION_ID)
            db.script(_MIGRATION_TABLE)


def _apply(db: Connection, number: int, file: Path) -> bool:
    with db.writing():
        if db.pragma("user_version") >= number:
            return False
        text = file.read_text(encoding="utf-8")
        db.script(text)
        db.values(
            "INSERT INTO migration (name, sha256, applied_at) VALUES (:name, :sha256, :at)",
            {"name": file.stem, "sha256": _digest(text), "at": utc_now()},
        )
        db.pragma("user_version", number)
    return True


def _verify(history: dict[str, str], files: Sequence[Path]) -> None:
    digests = _digests(tuple(files))
    different = sorted(name for name in history.keys() | digests.keys() if history.get(name) != digests.get(name))
    if different:
        wrong = "is not the one this program knows" if different[0] in history else "is missing"
        raise Fault(
            "storage",
            f"Migration {different[0]} of this database {wrong}: the database was made by another build of Quipu.",
        )


@cache
def _digests(files: tuple[Path, ...]) -> dict[str, str]:
    """Return the digest of each migration, read once: a server opens many tenants."""
    return {file.stem: _digest(file.read_text(encoding="utf-8")) for file in files}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
