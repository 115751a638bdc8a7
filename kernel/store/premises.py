"""What a dialect may ask of the file it lives in: the migrations it has, and a copy before it clears its own part."""

from pathlib import Path

from kernel.errors import Fault
from kernel.store import introspection
from kernel.store.progress import reaching
from kernel.store.sqlite.connection import Connection, Tx, world

_NAMES = 1000


def migrations(tx: Tx, dialect: str) -> list[str]:
    """The migrations of a dialect that were applied, in their order, for example `0002_paths`."""
    applied = tx.all("kernel.premises.migrations", str)
    return [name for name in applied if name.partition("_")[2].partition("_")[0] == dialect]


def keep_copy(tx: Tx, why: str) -> str:
    """Copies all that is committed to a new file beside the database, private to the user; the name of the file.

    For a tool in a transaction of its own: nothing it has written yet is in the copy, and nobody writes meanwhile.
    Raises Fault("storage") where there is no room for it.
    """
    file = Path(introspection.file(tx))
    target = _fresh(file.parent, f"{file.stem}-{why}-{tx.now.replace(':', '').replace('.', '')}")
    db = Connection(file, world(tx), readonly=True)
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
