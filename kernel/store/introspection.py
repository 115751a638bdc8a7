"""The store's own file: path, tables, migrations, model; a backup before a dialect is cleared; vacuum."""

from functools import partial
from pathlib import Path

from kernel.errors import Fault
from kernel.store.progress import on_progress
from kernel.store.transaction import Tx

_MAX_BACKUPS = 1000  # of one name; a name has the time in milliseconds, so one is the rule


def file(tx: Tx) -> str:
    """The path of the database file."""
    return tx.file


def tables(tx: Tx) -> list[str]:
    """The names of all tables, sorted."""
    return tx.all("kernel.introspection.tables", str)


def model_folder(tx: Tx) -> str:
    """The folder of the configured embedding model; empty without one."""
    embedder = tx.context.embedder
    return str(embedder.folder) if embedder else ""


def vacuum_after_commit(tx: Tx) -> None:
    """Rewrites the file without its free pages once this transaction has committed, before the call is answered.

    For an `exclusive` call, since other writes wait meanwhile. All undo data is deleted first, to free its space too.
    """
    tx.run("kernel.audit.delete_all_undo")
    tx.run("kernel.audit.delete_all_parts")
    tx.vacuum_after_commit = True


def migrations(tx: Tx, dialect: str) -> list[str]:
    """The applied migrations of a dialect, in order, for example `0002_paths`."""
    applied = tx.all("kernel.introspection.migrations", str)
    return [name for name in applied if name.partition("_")[2].partition("_")[0] == dialect]


def backup_before_clear(tx: Tx, why: str) -> str:
    """Copies all that is committed to a new file beside the database, private to the user; the name of the file.

    For an `exclusive` call: the copy holds nothing that the call has written, and no other write runs meanwhile.
    Raises Fault("storage") where there is no room for it. A call that fails leaves no copy.
    """
    database = Path(tx.file)
    target = _new_file(database.parent, f"{database.stem}-{why}-{tx.now.replace(':', '').replace('.', '')}")
    for made in (target, target.with_name(f"{target.name}-journal")):
        tx.on_rollback(partial(made.unlink, missing_ok=True))
    tx.backup_committed(target, on_progress(tx))
    return target.name


def _new_file(folder: Path, stem: str) -> Path:
    for number in range(1, _MAX_BACKUPS):
        target = folder / (f"{stem}.db" if number == 1 else f"{stem}-{number}.db")
        try:
            target.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        except OSError as error:
            raise Fault("storage", f"Cannot write {target.name}: {error.strerror}") from None
        return target
    raise Fault("storage", "There are too many copies of this name.")
