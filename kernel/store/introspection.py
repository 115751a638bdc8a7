"""What a store says of itself: its file, its tables and its model; and how the file is made small again."""

from kernel.store.sqlite.connection import Tx, world


def file(tx: Tx) -> str:
    """The path of the database file."""
    return tx._db.filename  # pyright: ignore[reportPrivateUsage]


def tables(tx: Tx) -> list[str]:
    """The names of all tables, by name."""
    return tx.all("kernel.introspection.tables", str)


def model_folder(tx: Tx) -> str:
    """The folder of the configured embedding model; empty without one."""
    embedder = world(tx).embedder
    return str(embedder.folder) if embedder else ""


def compact(tx: Tx) -> None:
    """Has the file rewritten without its free pages as soon as this transaction has committed, before it is answered.

    For a call that is `exclusive`: everybody else who writes waits meanwhile. Nothing is kept for undoing any more.
    """
    tx.run("kernel.audit.delete_all_undo")
    tx._shrink = True  # pyright: ignore[reportPrivateUsage]
