"""Records what a call changed with SQLite's session extension, and reverts it (sqlite.org/sessionintro.html)."""

from collections.abc import Callable
from typing import TypeVar

import apsw

from kernel.errors import Fault

R = TypeVar("R")

_PROGRESS_STEPS = 50_000  # virtual machine steps between two checks of the recording's size
# Prefixes of tables that are not recorded. The rows of `notes` follow the files: who restores those restores the rows.
_DERIVED = ("doc", "sqlite_", "audit", "undo", "migration", "setting", "notes_")


def record(db: apsw.Connection, work: Callable[[], R], limit_bytes: int) -> tuple[R, bytes | None]:
    """`work()` and the changeset of what it changed; None where it failed or recording needs more than `limit_bytes`.

    Tables that are derived from the rows, such as full text and vectors, are not recorded.
    """
    session = apsw.Session(db, "main")

    def check_size() -> bool:
        if session.memory_used > limit_bytes:
            session.enabled = False
        return False

    try:
        session.table_filter(_is_recorded)
        session.attach()
        db.set_progress_handler(check_size, _PROGRESS_STEPS, id=record)
        answer = work()
        check_size()
        complete = session.enabled and not isinstance(answer, Fault)
        return answer, session.changeset() if complete else None
    finally:
        db.set_progress_handler(None, id=record)
        session.close()


def revert(db: apsw.Connection, changes: bytes) -> bool:
    """Reverts recorded changes; False, with nothing changed, where a row has changed again since.

    Events that were added to the history stay, and those that were deleted come back. Rows that follow files stay:
    earlier versions recorded them.
    """

    def is_reverted(change: apsw.TableChange) -> bool:
        return change.op == "INSERT" if change.name == "history" else _is_recorded(change.name)

    if not changes:  # a call that changed files alone
        return True
    try:
        apsw.Changeset.apply(
            apsw.Changeset.invert(changes),
            db,
            filter_change=is_reverted,
            conflict=lambda _reason, _change: apsw.SQLITE_CHANGESET_ABORT,
        )
    except apsw.AbortError:
        return False
    return True


def _is_recorded(table: str) -> bool:
    return not table.startswith(_DERIVED)
