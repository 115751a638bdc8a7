"""Takes memories of other programs into `paths`; a memory that was written at a path stays."""

import unicodedata
from collections.abc import Sequence

from handlers.paths.memories import INVISIBLE, SPACE, checked_size, index_text
from kernel.memories.import_records import UPDATED, Record, outcome_of_change
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_MAX_SEGMENT, _MAX_SEGMENTS = 60, 4


def take(tx: Tx, records: Sequence[Record]) -> list[bool | str]:
    """Adds the records whose path is free, and was always, and updates those that have changed in their source."""
    return [_take(tx, record) for record in records]


def _take(tx: Tx, record: Record) -> bool | str:
    path, size = path_of(record.place, record.key), checked_size(record.text)
    before = tx.one("paths.memories.content", str, path=path)
    if before is None:
        outcome = not history.known(tx, SPACE, [path])
    else:
        outcome = before != record.text and outcome_of_change(tx, SPACE, path, record.text)
    if tx.readonly or outcome not in {True, UPDATED}:
        return outcome
    at, writer, origin = tx.now, (SPACE, *tx.call_context.writer[1:]), None
    if before is None:
        at, operation = record.created_at or tx.now, "created"
        origin = index.Origin(writer, at, record.updated_at or at)
        tx.one("paths.memories.add", str, path=path, content=record.text, content_size=size, now=at)
    else:
        operation = "replaced"
        tx.run("paths.memories.replace", path=path, content=record.text, content_size=size, now=at)
    history.append(tx, SPACE, path, operation, before=before, after=record.text, at=at, by=writer)
    index.put(tx, SPACE, path, index_text(path, record.text), origin=origin)
    return outcome


def path_of(place: str, key: str) -> str:
    """Return a path that `paths` allows, from names that may hold anything."""
    segments = [_segment(part) for part in f"{place}/{key}".split("/")]
    return "/".join([part for part in segments if part][:_MAX_SEGMENTS]) or "imported"


def _segment(name: str) -> str:
    plain = unicodedata.normalize("NFC", name)
    letters = "".join(letter if unicodedata.category(letter)[0] in "LN" or letter in "_-" else "-" for letter in plain)
    return "-".join(part for part in INVISIBLE.sub("-", letters).split("-") if part)[:_MAX_SEGMENT]
