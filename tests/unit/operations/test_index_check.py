"""The check names the memories that differ, and its repair never overwrites the only sound copy of a text."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw
import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.operations.index_check import Finding
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call

DAMAGED = "memories whose row is damaged: index and history agree on another text"
LOST = "memories whose row is lost: index and history have them"
DIFFERING = "memories the index lacks or holds differently"


@contextmanager
def raw(config: Config) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(config.file))) as db:
        yield db


@pytest.fixture
def closed(kernel: Kernel, call: Call) -> Config:
    """A closed store with two memories in two dialects."""
    call("add_memory", path="car", content="The car is red.")
    call("add_memory", path="bike", content="The bike is blue.")
    call("remember", session_id="s", content="Tea at four.")
    kernel.store.close()
    return kernel.config


def check(config: Config, *, repair: bool = False) -> tuple[list[Finding], list[str]]:
    lines: list[str] = []
    context = app.base_context(config.model)
    return consistency.check(config.file, context, app.DIALECTS, repair=repair, report=lines.append), lines


def test_a_damaged_row_is_named_with_both_texts_and_its_sound_copy_stays(closed: Config) -> None:
    with raw(closed) as db:
        db.execute("UPDATE paths_memory SET content = 'The car is rad.' WHERE path = 'car'")
    found = (
        [Finding("paths", 1, DAMAGED, kept=True)],
        ['paths car: the row has "car The car is rad.", the index has "car The car is red.", and so has the history'],
    )
    assert check(closed) == found
    assert check(closed, repair=True) == found
    with raw(closed) as db:
        assert db.execute("SELECT text FROM doc WHERE key = 'car'").fetchall() == [("car\nThe car is red.",)]


@pytest.mark.slow
def test_a_damaged_index_is_named_and_made_again_from_the_row(closed: Config) -> None:
    with raw(closed) as db:
        db.execute("UPDATE doc SET text = 'Tea at fuor.' WHERE space = 'sessions'")
    found, lines = check(closed, repair=True)
    assert Finding("sessions", 1, DIFFERING) in found
    assert lines == ['sessions 1: the row has "Tea at four.", the index has "Tea at fuor."']
    assert check(closed) == ([], [])


def test_a_lost_row_leaves_its_text_in_the_index(closed: Config) -> None:
    with raw(closed) as db:
        db.execute("DELETE FROM paths_memory WHERE path = 'car'")
    found = ([Finding("paths", 1, LOST, kept=True)], ["paths car: only the index holds it, the row is lost"])
    assert check(closed) == found
    assert check(closed, repair=True) == found


def test_the_command_tells_what_a_repair_leaves(closed: Config, capsys: pytest.CaptureFixture[str]) -> None:
    with raw(closed) as db:
        db.execute("UPDATE paths_memory SET content = 'The car is rad.' WHERE path = 'car'")
    assert main(["check", "--repair", "--data", str(closed.data)]) == 1
    assert capsys.readouterr().out == (
        f"paths: 1 {DAMAGED}\n"
        '  paths car: the row has "car The car is rad.", the index has "car The car is red.", and so has the history\n'
        "differences found\n"
    )


@pytest.mark.slow
def test_a_damaged_index_of_a_table_is_made_again(closed: Config) -> None:
    hidden = "SELECT rootpage FROM sqlite_schema WHERE name = 'doc_by_time'"
    with raw(closed) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        (row,) = db.execute("SELECT * FROM sqlite_schema WHERE name = 'doc_by_time'").fetchall()
        assert db.execute(hidden).fetchall()
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_schema WHERE name = 'doc_by_time'")
    with raw(closed) as db:
        db.execute("UPDATE doc SET updated_at = '2020-01-01T00:00:00.000Z' WHERE key = 'car'")
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute("PRAGMA writable_schema = ON")
        db.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    with pytest.raises(Fault, match=r"The file is damaged: .*`quipu check --repair`"):
        check(closed)
    assert [finding.part for finding in check(closed, repair=True)[0]] == ["file", "counts"]
    assert check(closed) == ([], [])
