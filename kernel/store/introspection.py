"""The store's own file: path, tables, migrations, model; a backup before a dialect is cleared; vacuum."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from kernel.store.long_work import on_progress
from kernel.store.transaction import Tx


def file(tx: Tx) -> str:
    return tx.file


def tables(tx: Tx) -> list[str]:
    return tx.all("kernel.introspection.tables", str)


def model_folder(tx: Tx) -> str:
    embedder = tx.context.embedder
    return str(embedder.folder) if embedder else ""


def vacuum_after_commit(tx: Tx) -> None:
    """Rewrites the file without its free pages once this transaction has committed, before the call is answered.

    For an `exclusive` call, since other writes wait meanwhile. Undo data stay valid.
    """
    tx.vacuum_after_commit = True


def migrations(tx: Tx, dialect: str) -> list[str]:
    """Return the applied migrations of a dialect, in order, for example `0002_paths`."""
    names = tx.all("kernel.introspection.migrations", str)
    return [name for name in names if name.partition("_")[2].partition("_")[0] == dialect]


def backup_before_clear(tx: Tx, why: str) -> str:
    """Copies all that is committed to a new file beside the database, private to the user; the name of the file.

    For an `exclusive` call: the copy holds nothing that the call has written, and no other write runs meanwhile.
    Raises Fault("storage") if there is no room for it. A call that fails leaves no copy.
    """
    database = Path(tx.file)
    stem = f"{database.stem}-{why}-{tx.now.replace(':', '').replace('.', '')}"
    target = next(candidate for candidate in _names(database.parent, stem) if not candidate.exists())
    for path in (target, target.with_name(f"{target.name}-journal")):
        tx.on_rollback(partial(path.unlink, missing_ok=True))
    tx.backup_committed(target, on_progress(tx))
    return target.name


def _names(folder: Path, stem: str) -> Iterator[Path]:
    yield folder / f"{stem}.db"
    yield from (folder / f"{stem}-{number}.db" for number in count(2))
