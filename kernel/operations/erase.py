"""Erases forgotten memories for good: their history, undo data and kept answers, and their bytes in the file."""

import hashlib
import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.calls.dialect import Dialect
from kernel.engines.sqlite.connection import open_writer
from kernel.engines.yielding import Turns
from kernel.operations.compact import Choice, compact
from kernel.store import audit, history
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

Place = tuple[str, str]  # space and key
_ORIGIN = CallContext("kernel", "erase")
_LEAST_BYTES = 8  # of a text that is looked for in the file: shorter texts stand in others


class Erased(NamedTuple):
    """A memory that is erased: its id, and the SHA-256 of its text, which proves to its owner which text was erased."""

    id: str
    sha256: str


class Receipt(NamedTuple):
    """The proof of an erasure: the memories, the row of the audit that names them, with its time and hash, the erased
    texts of which bytes are left in the file (none as a rule), and the copies that still hold them.
    """

    memories: list[Erased]
    audit: int
    at: str
    hash: str
    left: list[str]
    copies: list[str]


def erase(
    file: Path,
    context: StoreContext,
    dialects: Sequence[Dialect],
    texts: Mapping[Place, str],
    report: Callable[[str], None],
    copies: Iterable[Path] = (),
    *,
    alone: bool = True,
) -> Receipt:
    """Erase memories that are deleted already, and return the receipt; `texts` are the texts that they had.

    The file is rewritten, which writes of others wait for. All answers that are kept for retries are dropped.
    """
    with open_writer(file, context) as db:
        Turns(db, _ORIGIN, alone=alone).write(partial(_drop_traces, dialects=dialects, places=[*texts]))
        entry = db.read(_ORIGIN, lambda tx: audit.read(tx, 1))[0]
    compact(file, context, report, Choice(full=True), alone=alone)
    return Receipt(
        [Erased(f"{space}/{key}", _digest(text)) for (space, key), text in texts.items()],
        entry.id,
        entry.at,
        entry.hash,
        [f"{space}/{key}" for (space, key), text in texts.items() if _holds(file, key, text)],
        [str(copy) for copy in copies if any(_holds(copy, key, text) for (_, key), text in texts.items())],
    )


def _drop_traces(tx: Tx, dialects: Sequence[Dialect], places: Sequence[Place]) -> None:
    by_name = {dialect.name: dialect.memories.erase for dialect in dialects}
    for space, key in places:
        history.drop_undo(tx, space, key)
        history.forget(tx, space, key)
        rest = by_name.get(space.partition(":")[0])
        if rest is not None:
            rest(tx, space, key)
        tx.add_target((space, key, "erased"))
    tx.run("kernel.retries.clear")
    audit.record(tx)


def _holds(file: Path, key: str, text: str) -> bool:
    """Return whether the bytes of a text, or of its longest line, stand in a database file or its log.

    A line that is the key of the memory stays, in the audit.
    """
    longest = max((line.strip() for line in text.splitlines()), key=len, default="")
    pieces = [part.encode() for part in {text.strip(), longest} - {key}]
    files = (part for part in (file, file.with_name(f"{file.name}-wal")) if part.is_file() and part.stat().st_size)
    return any(_contains(part, [piece for piece in pieces if len(piece) >= _LEAST_BYTES]) for part in files)


def _contains(file: Path, pieces: Sequence[bytes]) -> bool:
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        return any(whole.find(part) >= 0 for part in pieces)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
