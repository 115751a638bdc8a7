"""Events are read back in order, and the text as it stood at a moment."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.store import history
from kernel.store import statements as sql
from kernel.store.context import CallContext, StoreContext
from kernel.store.history import Event
from kernel.store.transaction import Tx
from tests.conftest import Clock

WRITER = CallContext("notes", "remember", "ada")
EDITOR = CallContext("brain", "correct", "bob")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    statements = {key: statement.text for key, statement in sql.load().items()}
    opened = Connection(tmp_path / "quipu.db", StoreContext(statements), readonly=False)
    migrate(opened)
    yield opened
    opened.close()


def write(db: Connection, work: Callable[[Tx], object], who: CallContext = WRITER) -> None:
    with db.writing(who) as tx:
        work(tx)


def test_event_has_change_time_and_provenance(db: Connection, clock: Clock) -> None:
    created = clock.now
    write(db, lambda tx: history.append(tx, "notes", "a", "created", after="one"))
    changed = clock.move(seconds=1)
    write(db, lambda tx: history.append(tx, "notes", "a", "changed", before="one", after="two", reason="typo"), EDITOR)
    write(db, lambda tx: history.append(tx, "notes", "b", "created", after="other"))
    write(db, lambda tx: history.append(tx, "brain", "a", "created", after="another space"))
    assert db.read(WRITER, lambda tx: history.read(tx, "notes", "a")) == [
        Event(1, "created", None, "one", None, "notes", "remember", "ada", created),
        Event(2, "changed", "one", "two", "typo", "brain", "correct", "bob", changed),
    ]


def test_imported_event_keeps_its_time(db: Connection, clock: Clock) -> None:
    write(db, lambda tx: history.append(tx, "notes", "a", "created", after="one", at="2025-01-01T00:00:00.000Z"))

    assert db.read(WRITER, lambda tx: history.read(tx, "notes", "a"))[0].at == "2025-01-01T00:00:00.000Z"
    assert db.read(WRITER, lambda tx: history.as_of(tx, "notes", "a", "2025-06-01T00:00:00.000Z")) == "one"


def test_events_are_readable_in_their_transaction_in_call_order(db: Connection) -> None:
    with db.writing(WRITER) as tx:
        for text in ("one", "two", "three"):
            history.append(tx, "notes", "a", "changed", after=text)
        assert [event.after for event in history.read(tx, "notes", "a")] == ["one", "two", "three"]
        history.append(tx, "notes", "a", "changed", after="four")
    assert [event.after for event in db.read(WRITER, lambda tx: history.read(tx, "notes", "a"))] == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_as_of_returns_the_text_at_a_moment(db: Connection, clock: Clock) -> None:
    moments = [clock.now]
    for before, after in ((None, "one"), ("one", "two"), ("two", None)):
        moments.append(clock.move(hours=1))
        write(db, lambda tx, b=before, a=after: history.append(tx, "notes", "a", "changed", before=b, after=a))
    moments.append(clock.move(hours=1))
    found = [db.read(WRITER, lambda tx, at=at: history.as_of(tx, "notes", "a", at)) for at in moments]
    assert found == [None, "one", "two", None, None]


def test_failed_call_leaves_no_event(db: Connection) -> None:
    def fail(tx: Tx) -> None:
        history.append(tx, "notes", "a", "created", after="lost")
        raise Fault("conflict", "No.")

    tx = db.begin(WRITER)
    db.call(tx, WRITER, catch_faults, lambda tx: history.append(tx, "notes", "a", "created", after="kept"))
    db.call(tx, WRITER, catch_faults, fail)
    db.commit(tx)
    assert [event.after for event in db.read(WRITER, lambda tx: history.read(tx, "notes", "a"))] == ["kept"]


@pytest.mark.parametrize("text", ["", "nul \0 inside", "\u2028 \U0010ffff \x7f", 'quotes " and \\u0041', "x" * 100_000])
def test_any_text_round_trips(db: Connection, text: str) -> None:
    write(db, lambda tx: history.append(tx, "notes", text, "created", before=text, after=text, reason=text))
    (event,) = db.read(WRITER, lambda tx: history.read(tx, "notes", text))
    assert (event.before, event.after, event.reason) == (text, text, text)


def test_clear_deletes_all_events_of_one_dialect_only(db: Connection) -> None:
    spaces = ["notes", "notes:core", "notes:x", "notebook", "notes2:a", "note", "brain:notes"]

    def fill(tx: Tx) -> None:
        for space in spaces:
            history.append(tx, space, "a", "created", after=space)

    write(db, fill)
    write(db, lambda tx: history.clear(tx, "notes"))

    left = [space for space in spaces if db.read(WRITER, lambda tx, here=space: history.read(tx, here, "a"))]
    assert left == ["notebook", "notes2:a", "note", "brain:notes"]
