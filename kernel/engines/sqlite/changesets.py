"""Records the changes of a call with SQLite's session extension, and reverts it (sqlite.org/sessionintro.html)."""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import apsw

from kernel.store.statements import table_facts

_PROGRESS_STEPS = 50_000  # virtual machine steps between two checks of the recording's size
_DERIVED = ("doc", "sqlite_", "audit", "undo", "migration", "setting")  # prefixes of tables that are not recorded

_DEFINITION = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"
_COLUMNS = "SELECT name, hidden FROM pragma_table_xinfo(?)"


class Recorder:
    """Records changes through a connection, in changesets of at most `limit_bytes`.

    Tables that are derived from the rows, such as full text and vectors, are not recorded.
    """

    def __init__(self, db: apsw.Connection, limit_bytes: int) -> None:
        self._db = db
        self._limit = limit_bytes
        self._session = self._open()
        db.set_progress_handler(self._check_size, _PROGRESS_STEPS, id=Recorder)

    def _open(self) -> apsw.Session:
        session = apsw.Session(self._db, "main")
        session.table_filter(is_recorded)
        session.attach()
        return session

    def _check_size(self) -> bool:
        if self._session.memory_used > self._limit:
            self._session.enabled = False
        return False

    def take(self) -> bytes | None:
        """Return the changeset since the last; None if it is larger than the limit."""
        self._check_size()
        changes = self._session.changeset() if self._session.enabled else None
        self._session.close()
        self._session = self._open()
        return changes

    def close(self) -> None:
        self._db.set_progress_handler(None, id=Recorder)
        self._session.close()


def revert(db: apsw.Connection, changes: bytes, *, foreign_keys: bool = True) -> bool:
    """Reverts recorded changes; False, with nothing changed, if a row has changed again since, or is referred to.

    Foreign keys are enforced meanwhile, so that no row loses the row that it refers to. Events that were added to the
    history stay, and those that were deleted come back. Rows that follow files stay: earlier versions recorded them.
    """

    def is_reverted(change: apsw.TableChange) -> bool:
        return change.op == "INSERT" if change.name == "history" else is_recorded(change.name)

    if not changes:  # a call that changed files alone
        return True
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, int(foreign_keys))
    try:
        apsw.Changeset.apply(
            apsw.Changeset.invert(changes),
            db,
            filter_change=is_reverted,
            conflict=lambda _reason, _change: apsw.SQLITE_CHANGESET_ABORT,
        )
    except (apsw.AbortError, apsw.ConstraintError):
        return False
    finally:
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    return True


def can_revert(db: apsw.Connection, parts: Callable[[], Iterable[bytes]]) -> bool:
    """Return whether changesets, the last first, can be reverted: tried on copies of their rows, without
    foreign keys.
    """
    trial = apsw.Connection("")
    try:
        rows: set[tuple[object, ...]] = set()
        for changes in parts():
            for change in apsw.Changeset.iter(changes) if changes else ():
                if is_recorded(change.name):
                    _copy_row(db, trial, change, rows)
        return all(revert(trial, changes, foreign_keys=False) for changes in parts())
    finally:
        trial.close()


def _copy_row(
    db: apsw.Connection, trial: apsw.Connection, change: apsw.TableChange, copied: set[tuple[object, ...]]
) -> None:
    values = cast("Sequence[apsw.SQLiteValue]", change.new if change.op == "INSERT" else change.old)
    columns = [(name, at) for at, name in enumerate(_columns(db, change.name)) if at in change.pk_columns]
    key = [values[at] for _, at in columns]
    name = (change.name, *key)
    if name in copied:
        return
    if (change.name,) not in copied:
        copied.add((change.name,))
        ((text,),) = db.execute(_DEFINITION, (change.name,)).fetchall()
        trial.execute(str(text))
    copied.add(name)
    where = " AND ".join(f'"{column}" IS ?' for column, _ in columns)
    listed = ", ".join(f'"{column}"' for column in _columns(db, change.name))
    rows = db.execute(f'SELECT {listed} FROM "{change.name}" WHERE {where}', key).fetchall()  # noqa: S608
    marks = ", ".join("?" * len(_columns(db, change.name)))
    trial.executemany(f'INSERT INTO "{change.name}" ({listed}) VALUES ({marks})', rows)  # noqa: S608


def _columns(db: apsw.Connection, table: str) -> list[str]:
    return [str(name) for name, hidden in db.execute(_COLUMNS, (table,)).fetchall() if not hidden]


def is_recorded(table: str) -> bool:
    return not table.startswith((*_DERIVED, *table_facts().unrecorded))
