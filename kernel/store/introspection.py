"""The store's own file: path, tables, migrations, model; a copy before a dialect is cleared; vacuum."""

from pathlib import Path

from kernel.errors import Fault
from kernel.store.progress import reaching
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx


def file(tx: Tx) -> str:
    """The path of the database file."""
    return tx.file


def tables(tx: Tx) -> list[str]:
    """The names of all tables, by name."""
    return tx.all("kernel.introspection.tables", str)


def model_folder(tx: Tx) -> str:
    """The folder of the configured embedding model; empty without one."""
    embedder = tx.context.embedder
    return str(embedder.folder) if embedder else ""


def vacuum_after_commit(tx: Tx) -> None:
    """Has the file rewritten without its free pages as soon as this transaction has committed, before it is answered.

    For a call that is `exclusive`: everybody else who writes waits meanwhile. Nothing is kept for undoing any more.
    """
    tx.run("kernel.audit.delete_all_undo")
    tx.vacuum_after_commit = True


_NAMES = 1000


def migrations(tx: Tx, dialect: str) -> list[str]:
    """The migrations of a dialect that were applied, in their order, for example `0002_paths`."""
    applied = tx.all("kernel.introspection.migrations", str)
    return [name for name in applied if name.partition("_")[2].partition("_")[0] == dialect]


def backup_before_clear(tx: Tx, why: str) -> str:
    """Copies all that is committed to a new file beside the database, private to the user; the name of the file.

    For a tool in a transaction of its own: nothing it has written yet is in the copy, and nobody writes meanwhile.
    Raises Fault("storage") where there is no room for it.
    """
    database = Path(file(tx))
    target = _fresh(database.parent, f"{database.stem}-{why}-{tx.now.replace(':', '').replace('.', '')}")
    db = Connection(database, tx.context, readonly=True)
    done = False
    try:
        db.backup(target, reaching(tx))
        done = True
    finally:
        db.close()
        if not done:
            for begun in (target, target.with_name(f"{target.name}-journal")):
                begun.unlink(missing_ok=True)
    return target.name


def _fresh(folder: Path, stem: str) -> Path:
    """An empty file that was not there before."""
    for number in range(1, _NAMES):
        target = folder / (f"{stem}.db" if number == 1 else f"{stem}-{number}.db")
        try:
            target.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        except OSError as error:
            raise Fault("storage", f"Cannot write {target.name}: {error.strerror}") from None
        return target
    raise Fault("storage", "There are too many copies of this name.")
