"""Erases forgotten memories for good: their history, undo data and kept answers, and their bytes in the file."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import catch_faults
from kernel.core.config import Config
from kernel.core.data_dir import MAIN, TENANTS
from kernel.engines.sqlite.database_file import holds_any, log_of
from kernel.memories import witness
from kernel.operations.backup import DATABASE
from kernel.operations.compact import Choice, compact
from kernel.search.ann import VectorIndex
from kernel.search.cache import SearchCache
from kernel.store import audit, history
from kernel.store.context import StoreContext
from kernel.store.transaction import Tx

Place = tuple[str, str]  # space and key
_LEAST_BYTES = 8  # of a text that is looked for in the file: shorter texts stand in others


class Erased(Struct):
    """A memory that is erased: its id, and the SHA-256 of its text, which proves to its owner which text was erased."""

    id: str
    sha256: str


class Receipt(Struct):
    """The proof of an erasure: the memories, the row of the audit that names them, with its time and hash, the erased
    texts of which bytes are left in the file (none as a rule), and the copies that still hold them.

    Of the text that was asked for: the memories of which the history has it, as an earlier version or the name of a
    link, and whether the file has it at all, as in the key of a memory or the name of a tag.
    """

    memories: list[Erased]
    audit: int
    at: str
    hash: str
    left: list[str]
    copies: list[str]
    mentions: list[str]
    is_in_file: bool


def drop_traces(tx: Tx, dialects: Sequence[Dialect], places: Iterable[Place]) -> audit.Entry:
    """Delete the history, undo data, kept versions and predecessors of memories that are deleted already, and all
    answers that are kept for retries. Return the row of the audit that names the memories.
    """
    by_name = {dialect.name: dialect.memories.erase for dialect in dialects}
    for space, key in places:
        rest = by_name.get(space.partition(":")[0])
        if rest is not None:
            rest(tx, space, key)
        history.drop_undo(tx, space, key)
        history.forget(tx, space, key)
        tx.add_target((space, key, "erased"))
    witness.sweep(tx)
    tx.run("kernel.dispatch.clear")
    audit.record(tx)
    return audit.read(tx, 1)[0]


def overwrite(context: StoreContext, texts: Mapping[Place, str], entry: audit.Entry, about: str) -> Receipt:
    """Rewrite the file, which writes of others wait for, and return the receipt, without mentions; `texts` are those
    that the memories had, `entry` is their row of the audit. Texts of which bytes are left after a failure are in it.
    """
    assert context.data is not None
    file = context.data / DATABASE
    # The cache of the store is for its own writer.
    own = context._replace(search_cache=SearchCache(VectorIndex(lambda: context.search_cache.vectors.sketcher)))
    catch_faults(partial(compact, file, own, lambda _line: None, Choice(full=True), alone=False))
    return Receipt(
        [Erased(f"{space}/{key}", _digest(text)) for (space, key), text in texts.items()],
        entry.id,
        entry.at,
        entry.hash,
        [f"{space}/{key}" for (space, key), text in texts.items() if _holds(file, key, text)],
        [str(copy) for copy in context.copies() if any(_holds(copy, key, text) for (_, key), text in texts.items())],
        [],
        _stands_in(file, {about, about.lower()}),
    )


def copies_of(config: Config) -> Sequence[Path]:
    """Return the copies of a tenant's database that backups of this machine have made."""
    tenant = () if config.tenant == MAIN else (TENANTS, config.tenant)
    folders: list[tuple[Path, tuple[str, ...]]] = [(config.home, ())]
    if config.backup_to:
        folders.append((config.backup_to, tenant))
    return [
        file
        for folder, owner in folders
        for file in sorted(folder.rglob("*.db"))
        if file != config.file and _owner(file.relative_to(folder).parts) == owner
    ]


def _owner(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the part of a path in a backup or a data directory that names its tenant; empty for the main tenant."""
    return tuple(parts[parts.index(TENANTS) :][:2]) if TENANTS in parts else ()


def _holds(file: Path, key: str, text: str) -> bool:
    """Return whether the bytes of a text, or of its longest line, stand in a database file or its log.

    A line that is the key of the memory stays, in the audit.
    """
    longest = max((line.strip() for line in text.splitlines()), key=len, default="")
    return _stands_in(file, {text.strip(), longest} - {key})


def _stands_in(file: Path, texts: Iterable[str]) -> bool:
    pieces = [piece for text in texts if len(piece := text.encode()) >= _LEAST_BYTES]
    return any(holds_any(part, pieces) for part in (file, log_of(file)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
