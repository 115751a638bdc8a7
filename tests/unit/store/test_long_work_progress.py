"""Long work reports its progress to callers that request it."""

import io
from pathlib import Path

import pytest

from kernel.calls.dispatch import catch_faults
from kernel.cli.progress_bar import ProgressBar, render
from kernel.engines.sqlite.connection import Connection
from kernel.store import long_work
from kernel.store.context import CallContext, StoreContext
from kernel.store.long_work import Progress, expect, on_progress, steps, with_progress
from kernel.store.transaction import Tx

Reports = list[tuple[int, int]]


@pytest.fixture
def reports() -> Reports:
    return []


@pytest.fixture
def progress(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setattr(long_work, "_REPORT_SECONDS", 0)
    return Progress(lambda done, total: reports.append((done, total)))


@pytest.fixture
def db(tmp_path: Path) -> Connection:
    return Connection(tmp_path / "quipu.db", StoreContext({}), readonly=False)


def walk(tx: Tx, *lengths: int) -> int:
    return sum(len(list(steps(tx, range(length)))) for length in lengths)


def test_each_step_is_reported_with_the_known_total(db: Connection, progress: Progress, reports: Reports) -> None:
    def work(tx: Tx) -> None:
        expect(tx, 3)
        walk(tx, 2, 1, 1)

    with db.writing() as tx:
        with_progress(progress, work)(tx)
    assert reports == [(1, 3), (2, 3), (3, 3), (4, 4)]


def test_frequent_steps_are_reported_rarely_and_at_the_end(db: Connection, reports: Reports) -> None:
    slow = Progress(lambda done, total: reports.append((done, total)))
    with db.writing() as tx:
        with_progress(slow, walk)(tx, 10_000)
    assert reports[0] == (1, 10_000)
    assert reports[-1] == (10_000, 10_000)
    assert len(reports) < 1000


def test_long_step_reports_its_progress(db: Connection, progress: Progress, reports: Reports, tmp_path: Path) -> None:
    def work(tx: Tx) -> None:
        db.backup(tmp_path / "copy.db", on_progress(tx))

    db.script("CREATE TABLE a (b); INSERT INTO a VALUES (zeroblob(2000000))")
    with_progress(progress, work)(Tx(db, CallContext(), readonly=False))
    assert len(reports) > 1
    assert reports[-1][0] == reports[-1][1] > 400


def test_no_progress_is_reported_unless_requested(db: Connection, progress: Progress, reports: Reports) -> None:
    with db.writing() as tx:
        assert walk(tx, 3) == 3
        expect(tx, 3)
        assert on_progress(tx) is None
        db.call(tx, CallContext(), catch_faults, with_progress(progress, walk))
        with_progress(progress, walk)(tx, 1)
        db.call(tx, CallContext(), catch_faults, lambda tx: walk(tx, 2))
    assert reports == [(1, 1)]


def test_bar_shows_share_counts_and_remaining_time() -> None:
    assert render("import", 250, 1000, 10, 100) == f"import [{'#' * 10}{'-' * 30}]  25% 250 of 1,000 25/s 30 s left"
    assert render("import", 1000, 1000, 10, 100) == f"import [{'#' * 40}] 100% 1,000 of 1,000 100/s"
    assert "left" not in render("import", 1, 1000, 0.5, 100)
    assert render("import", 5, 10, 0, 30) == "import  50% 5 of 10"
    assert render("reindex", 0, 0, 0, 80).endswith("] 100% 0 of 0")
    assert len(render("import", 250, 100_000_000, 10, 20)) == 19


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bar_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        bar = ProgressBar("backup", stream)
        for done in range(11):
            bar(done, 10)
        bar.close()
        bar.close()
    drawn = terminal.getvalue()
    assert drawn.startswith("\rbackup [")
    assert drawn.endswith("] 100% 10 of 10\n")
    assert drawn.count("\r") < 11
    assert pipe.getvalue() == ""
