"""Errors of SQLite become Faults that callers may see; bugs do not."""

import errno
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.core.errors import NO_MEMORY, NO_SPACE, Fault
from kernel.engines.sqlite.errors import as_fault, integrity_errors


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (apsw.BusyError(), "busy", "The store is busy, try again."),
        (apsw.InterruptError(), "busy", "The call was cancelled."),
        (apsw.NoMemError(), "busy", NO_MEMORY),
        (apsw.FullError(), "storage", NO_SPACE),
        (OSError(errno.ENOSPC, "disk"), "storage", NO_SPACE),
        (apsw.ReadOnlyError(), "storage", "Cannot write to storage."),
        (
            apsw.CorruptError(),
            "storage",
            "The database is damaged: run `quipu check`, or `quipu restore` a backup.",
        ),
        (apsw.TooBigError(), "invalid", "A value is larger than QUIPU_LIMIT_STORE_VALUE allows."),
        (OverflowError(), "invalid", "A number is too large, or a text is not valid."),
    ],
)
def test_an_error_of_sqlite_is_a_fault(error: Exception, code: str, message: str) -> None:
    fault = as_fault(error)
    assert isinstance(fault, Fault)
    assert (fault.code, fault.message) == (code, message)


@pytest.mark.parametrize("bug", [apsw.SQLError(), KeyError("a"), apsw.MisuseError()])
def test_a_bug_is_none(bug: Exception) -> None:
    assert as_fault(bug) is None


def test_an_index_that_holds_another_value_is_found_unless_the_check_is_quick(tmp_path: Path) -> None:
    def run(text: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(apsw.Connection(str(tmp_path / "a.db"))) as db:
            db.pragma("writable_schema", 1)
            return [*db.execute(text, values)]

    run("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)")
    (entry,) = run("SELECT * FROM sqlite_schema WHERE name = 'i'")
    run("DELETE FROM sqlite_schema WHERE name = 'i'")
    run("UPDATE t SET a = 2")
    run("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", *entry)
    with closing(apsw.Connection(str(tmp_path / "a.db"))) as db:
        assert "row 1 missing from index i" in integrity_errors(db)
        assert integrity_errors(db, quick=True) == []
