"""What a call changed, as the engine records it, and how that is taken back."""

from collections.abc import Callable
from typing import Any

import apsw

from kernel.errors import Fault
from kernel.store.sqlite.connection import Connection

_LOOK = 50_000  # steps of the engine between two looks at what a recording holds
_DERIVED = ("doc", "sqlite_", "audit", "undo", "migration", "setting")


def recorded(db: Connection, work: Callable[[], Any], most: int) -> tuple[Any, bytes]:
    """`work()` and the changes it made to memories; none where they need more than `most` bytes.

    What can be derived from the rows, such as full text and vectors, is no part of them.
    """
    engine = db.raw
    session = apsw.Session(engine, "main")

    def watch() -> bool:
        if session.memory_used > most:
            session.enabled = False
        return False

    try:
        session.table_filter(_kept)
        session.attach()
        engine.set_progress_handler(watch, _LOOK, id=recorded)
        answer = work()
        watch()
        whole = session.enabled and not isinstance(answer, Fault)  # of a call that was cut short there is none
        return answer, session.changeset() if whole else b""
    finally:
        engine.set_progress_handler(None, id=recorded)
        session.close()


def reverse(db: Connection, changes: bytes) -> bool:
    """Takes recorded changes back; False, with nothing changed, where a row has changed again since.

    What the history was told stays told.
    """
    try:
        apsw.Changeset.apply(
            apsw.Changeset.invert(changes),
            db.raw,
            filter_change=lambda change: change.name != "history" or change.op == "INSERT",
            conflict=lambda _reason, _change: apsw.SQLITE_CHANGESET_ABORT,
        )
    except apsw.AbortError:
        return False
    return True


def _kept(table: str) -> bool:
    return not table.startswith(_DERIVED)
