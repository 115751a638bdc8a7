"""Migrates a file to the newest schema, or refuses it with a reason."""

import hashlib
from pathlib import Path

from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import OLDEST_SQLITE, sqlite_version
from kernel.store.statements import ROOT, migrations

APPLICATION_ID = 0x51554950  # "QUIP" in ASCII
_MIGRATION_TABLE = """
CREATE TABLE migration (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT, WITHOUT ROWID
"""


def migrate(db: Connection, root: Path = ROOT) -> int:
    """Applies the missing migrations, each in its own transaction; returns how many.

    Raises Fault("storage") for a file of another program, one with a newer schema or with other migrations
    applied, and for an SQLite older than 3.51.3.
    """
    if sqlite_version() < OLDEST_SQLITE:
        raise Fault("storage", "SQLite 3.51.3 or newer is needed: older ones can lose pages while checkpointing.")
    files = migrations(root)
    applied = _applied(db, files)
    db.enable_wal()  # off in a new file and in a restored backup
    if applied == len(files):
        _verify(db, files)
        return 0
    _claim(db)
    applied = sum(_apply(db, number, file) for number, file in enumerate(files, start=1))
    _verify(db, files)
    return applied


def pending_migrations(db: Connection, root: Path = ROOT) -> int:
    """The number of missing migrations, without changing the file; raises what `migrate` raises."""
    files = migrations(root)
    applied = _applied(db, files)
    if applied == len(files):
        _verify(db, files)
    return len(files) - applied


def _applied(db: Connection, files: list[Path]) -> int:
    tables = db.values("SELECT count(*) FROM sqlite_schema")[0][0]
    application_id = db.pragma("application_id")
    if application_id != APPLICATION_ID and (application_id or tables):
        raise Fault("storage", "This file is not a Quipu database.")
    version: int = db.pragma("user_version")
    if version > len(files):
        raise Fault("storage", f"The database has schema {version}, newer than this program's {len(files)}.")
    return version


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


def _verify(db: Connection, files: list[Path]) -> None:
    expected = {file.stem: _digest(file.read_text(encoding="utf-8")) for file in files}
    applied = dict(db.values("SELECT name, sha256 FROM migration"))
    changed = sorted(name for name in expected if expected[name] != applied.get(name))
    if changed:
        raise Fault("storage", f"Migration {changed[0]} of this database is not the one this program knows.")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
