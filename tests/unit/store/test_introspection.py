"""A store says where it lies and what it holds, and gives the space of deleted rows back."""

from kernel.app import Kernel
from kernel.config import MODEL
from kernel.store import introspection
from kernel.store.context import CallContext, StoreContext
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx


def test_transaction_reports_file_tables_and_model(kernel: Kernel) -> None:
    def look(tx: Tx) -> tuple[str, list[str], str]:
        return introspection.file(tx), introspection.tables(tx), introspection.model_folder(tx)

    file, tables, folder = kernel.store.read_sync(look)

    assert (file, folder) == (str(kernel.config.file.resolve()), str(MODEL))
    assert {"doc", "doc_fts", "history", "migration", "paths_memory", "setting"} <= set(tables)
    assert tables == sorted(tables)


def test_model_folder_is_empty_without_a_model(kernel: Kernel) -> None:
    db = Connection(kernel.config.file, StoreContext({}), readonly=True)
    assert db.read(CallContext(), introspection.model_folder) == ""
    db.close()


def test_vacuum_after_commit_shrinks_the_file(kernel: Kernel) -> None:
    def fill(tx: Tx) -> None:
        for number in range(50):
            tx.run("paths.add", path=f"p{number}", content="x" * 100_000, content_size=100_000, now=tx.now)

    def clear(tx: Tx) -> None:
        tx.all("paths.clear", lambda *_: None)

    kernel.store.write_sync(fill)
    kernel.store.write_sync(clear, exclusive=True)
    large = pages(kernel)
    kernel.store.write_sync(introspection.vacuum_after_commit, exclusive=True)

    assert large > 1000
    assert pages(kernel) < large / 4
    assert kernel.store.read_sync(lambda tx: tx.all("paths.all_for_index", lambda *row: row)) == []


def pages(kernel: Kernel) -> int:
    db = Connection(kernel.config.file, StoreContext({}), readonly=True)
    try:
        return db.pragma("page_count")
    finally:
        db.close()
