"""Takes memories of other programs into `paths`; a path that is taken stays as it is."""

import unicodedata
from collections.abc import Sequence

from handlers.paths.memories import INVISIBLE, SPACE, checked_size, get_memory, index_text
from kernel.memories.import_records import Record
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_MAX_SEGMENT, _MAX_SEGMENTS = 60, 4


def take(tx: Tx, records: Sequence[Record]) -> list[bool]:
    """Adds the records whose path is free, and was always; a read only says which these are."""
    return [_take(tx, record) for record in records]


def _take(tx: Tx, record: Record) -> bool:
    path, size = path_of(record.place, record.key), checked_size(record.text)
    created_at = record.created_at or tx.now
    if history.known(tx, SPACE, [path]):
        return False
    if tx.readonly:
        return get_memory(tx, path) is None
    if tx.one("paths.memories.add", str, path=path, content=record.text, content_size=size, now=created_at) is None:
        return False
    writer = (SPACE, *tx.call_context.writer[1:])
    origin = index.Origin(writer, created_at, record.updated_at or created_at)
    history.append(tx, SPACE, path, "created", after=record.text, at=created_at, by=writer)
    index.put(tx, SPACE, path, index_text(path, record.text), origin=origin)
    return True


def path_of(place: str, key: str) -> str:
    """Return a path that `paths` allows, from names that may hold anything."""
    segments = [_segment(part) for part in f"{place}/{key}".split("/")]
    return "/".join([part for part in segments if part][:_MAX_SEGMENTS]) or "imported"


def _segment(name: str) -> str:
    plain = unicodedata.normalize("NFC", name)
    letters = "".join(letter if unicodedata.category(letter)[0] in "LN" or letter in "_-" else "-" for letter in plain)
    return "-".join(part for part in INVISIBLE.sub("-", letters).split("-") if part)[:_MAX_SEGMENT]
