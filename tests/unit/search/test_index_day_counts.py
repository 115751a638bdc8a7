"""Each space has the number of its documents by the day of their last change, after every change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernel.core.config import Config
from kernel.search import index
from kernel.search.index import Origin
from kernel.server.app import Kernel, open_kernel
from kernel.store.transaction import Tx

BEFORE = Origin(("paths", "add_memory", "ada"), "2026-01-30T10:00:00.000Z", "2026-01-31T23:59:59.999Z")


class Row(NamedTuple):
    space: str
    documents: int


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Kernel]:
    running = open_kernel(Config(tmp_path / "data", model=None))
    yield running
    running.store.close()


def counted(running: Kernel) -> dict[str, int]:
    def spaces(tx: Tx) -> list[Row]:
        tx.flush_deferred()
        assert index.count_mismatches(tx) == 0
        return tx.all("kernel.console.spaces", Row, dialects=None)

    return {row.space: row.documents for row in running.store.read_sync(spaces)}


def days(running: Kernel) -> dict[str, int]:
    def since(tx: Tx) -> list[tuple[str, int]]:
        return tx.all("kernel.console.days", lambda *row: row, since="2026-01-01", dialects=["brain"])

    return dict(running.store.read_sync(since))


def test_documents_are_counted_as_they_come_change_and_go(store: Kernel) -> None:
    def fill(tx: Tx) -> None:
        for key in ("a", "b", "c"):
            index.put(tx, "paths", key, f"text {key}")
            index.put(tx, "brain:core", key, f"text {key}", origin=BEFORE)

    store.store.write_sync(fill)
    assert counted(store) == {"brain:core": 3, "paths": 3}
    assert days(store) == {"2026-01-31": 3}

    def change(tx: Tx) -> None:
        index.put(tx, "brain:core", "a", "another text")
        index.drop(tx, "brain:core", "b")
        index.drop(tx, "brain:core", "unknown")
        index.put(tx, "paths", "a", "one")
        index.drop(tx, "paths", "a")

    store.store.write_sync(change)
    assert counted(store) == {"brain:core": 2, "paths": 2}
    assert days(store)["2026-01-31"] == 1
    store.store.write_sync(lambda tx: index.clear(tx, "brain"))
    assert counted(store) == {"paths": 2}


def test_undo_moves_a_document_to_the_day_it_was_changed(store: Kernel) -> None:
    store.store.write_sync(lambda tx: index.put(tx, "brain:core", "a", "text"))

    def restore(tx: Tx) -> None:
        index.set_provenance(tx, "brain:core", "a", BEFORE.writer, BEFORE.created_at, BEFORE.updated_at)
        index.set_provenance(tx, "brain:core", "unknown", BEFORE.writer, BEFORE.created_at, BEFORE.updated_at)

    store.store.write_sync(restore)
    assert counted(store) == {"brain:core": 1}
    assert days(store)["2026-01-31"] == 1


def test_failed_write_counts_nothing(store: Kernel) -> None:
    def fail(tx: Tx) -> Any:
        index.put(tx, "paths", "a", "text")
        tx.flush_deferred()
        raise LookupError

    with pytest.raises(Exception, match="Internal error"):
        store.store.write_sync(fail)
    assert counted(store) == {}
