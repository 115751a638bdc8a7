"""Stores, their memories, and the versions of these, for the tool `memory` and the REST methods, and
the paths of the tool: below /memories, in one form, and never outside."""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from kernel.calls.dialect import Restored
from kernel.core.errors import Fault
from kernel.core.text import composed
from kernel.search import index
from kernel.store import history
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import SLICE_BYTES, Tx

MAX_BYTES = 102_400


class StoreRow(NamedTuple):
    """A store; `metadata` is a JSON object."""

    id: str
    name: str
    description: str
    metadata: str
    created_at: str
    updated_at: str
    archived_at: str | None


class Record(NamedTuple):
    id: str
    store: str
    path: str
    version: str
    content: str
    sha256: str
    size: int
    created_at: str
    updated_at: str


class Place(NamedTuple):
    id: str
    path: str


ROOT = "/memories"
_MAX_SEGMENTS = 20
_MAX_PATH_BYTES = 1024
_DOTS = {".", ".."}
# Control and format characters, and the separators of lines and paragraphs.
_INVISIBLE = {"Cc", "Cf", "Zl", "Zp"}


def store_row(tx: Tx, id_: str) -> StoreRow | None:
    return tx.one("files.records.store", StoreRow, id=id_)


def add_store(tx: Tx, id_: str, name: str, description: str = "", metadata: str = "{}") -> None:
    tx.run("files.records.add_store", id=id_, name=name, description=description, metadata=metadata, now=tx.now)


def by_id(tx: Tx, store: str, id_: str) -> Record | None:
    return tx.one("files.records.by_id", Record, store=store, id=id_)


def slices(tx: Tx, store: str, path: str) -> Iterator[list[Record]]:
    """Yield the memories at a path and below it, some at a time; the caller removes them from there before the next."""
    while part := tx.all("files.records.slice", Record, store=store, path=path, bytes=SLICE_BYTES, **below(path)):
        yield part


def in_the_way(tx: Tx, store: str, path: str, besides: str | None = None) -> Place | None:
    """Return the memory that keeps others from this path: at it, above it or below it."""
    paths = [*ancestors(path), path]
    return tx.one("files.records.in_the_way", Place, store=store, paths=paths, besides=besides, **below(path))


def add(tx: Tx, store: str, path: str, content: str) -> Record:
    """Return a new memory at a free path; raises Fault for too large a content."""
    record = Record(tx.new_id("mem"), store, path, "", content, "", 0, tx.now, tx.now)
    return _put(tx, record, "created", "created", None)


def change(tx: Tx, record: Record, path: str, content: str) -> Record:
    """Return the memory with another path or content; an unchanged memory gets no version."""
    if (path, content) == (record.path, record.content):
        return record
    operation = "modified" if path == record.path else "renamed"
    new_record = record._replace(path=path, content=content, updated_at=tx.now)
    return _put(tx, new_record, "modified", operation, document_text(record.path, record.content))


def remove(tx: Tx, record: Record) -> None:
    tx.run("files.records.delete", id=record.id)
    _add_version(tx, record._replace(version=tx.new_id("memver")), "deleted")
    drop_document(tx, record)


def drop_document(tx: Tx, record: Record) -> None:
    space, text = space_of(record.store), document_text(record.path, record.content)
    history.append(tx, space, record.id, "deleted", before=text)
    index.drop(tx, space, record.id)


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    """Return the indexed texts of versions; the text of a redacted version is empty."""
    return [PastSource(scope_of(text.text.partition("\n")[0]), text.text) if text.text else None for text in texts]


def space_of(store: str) -> str:
    return f"files:{store}"


def scope_of(path: str) -> str:
    return path[1:].rpartition("/")[0].partition("/")[0]


def document_text(path: str, content: str) -> str:
    return f"{path}\n{content}"


def check_open(store: StoreRow | None) -> None:
    if store is not None and store.archived_at is not None:
        raise Fault("invalid", f"The memory store {store.id} is archived: it can be read and deleted, not changed")


def _put(tx: Tx, record: Record, operation: str, event: str, before: str | None) -> Record:
    check_open(store_row(tx, record.store))
    data = record.content.encode()
    if len(data) > MAX_BYTES:
        raise Fault("invalid", f"The content would have {len(data)} bytes, more than {MAX_BYTES}")
    sha256 = hashlib.sha256(data).hexdigest()
    record = record._replace(version=tx.new_id("memver"), sha256=sha256, size=len(data))
    place_columns = {"id": record.id, "store": record.store, "path": record.path, "version": record.version}
    tx.run("files.records.put", **place_columns, now=tx.now)
    _add_version(tx, record, operation)
    space, text = space_of(record.store), document_text(record.path, record.content)
    history.append(tx, space, record.id, event, before=before, after=text)
    index.put(tx, space, record.id, text, scope=scope_of(record.path))
    return record


def _add_version(tx: Tx, record: Record, operation: str) -> None:
    present = None if operation == "deleted" else record
    tx.run(
        "files.records.add_version",
        id=record.version,
        memory=record.id,
        store=record.store,
        operation=operation,
        path=record.path,
        content=present and present.content,
        sha256=present and present.sha256,
        size=None if present is None else present.size,
        created_by=tx.call_context.key or None,
        now=tx.now,
    )


def check_restored(tx: Tx, restored_memories: Iterable[Restored]) -> None:
    """Raises Fault("conflict") for a restored memory that a call could not put at its present path."""
    for memory in restored_memories:
        store = memory.space.removeprefix(space_of(""))
        record = by_id(tx, store, memory.key)
        if record is None:
            continue
        obstacle = in_the_way(tx, store, record.path, record.id)
        if obstacle is not None:
            raise Fault("conflict", f"{record.path} cannot be restored: the memory {obstacle.id} is at {obstacle.path}")
        if _archived_since(tx, store, memory):
            raise Fault("conflict", f"{record.path} cannot be restored: its memory store {store} was archived since")


def _archived_since(tx: Tx, store: str, memory: Restored) -> bool:
    """Return whether the store was archived after the call: memories deleted from an archived store belong there."""
    row = store_row(tx, store)
    if row is None or row.archived_at is None:
        return False
    *_, last = history.read(tx, memory.space, memory.key)
    return row.archived_at >= last.at


def store_path(path: str) -> str:
    """Return the path in the store: NFC, without empty and `.` segments; empty for the root; or raises Fault."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise Fault("invalid", f"Path must start with /memories, got: {path}")
    segments = [segment for segment in composed(path[len(ROOT) :]).split("/") if segment not in {"", "."}]
    if any(_DOTS.intersection(unquote(segment).split("/")) for segment in segments):
        raise Fault("invalid", f"Path {path} would escape /memories directory")
    _check(path, segments)
    return "".join(f"/{segment}" for segment in segments)


def shown(path: str) -> str:
    return f"{ROOT}{path}"


def ancestors(path: str) -> list[str]:
    """Return the directories above a path, without the root."""
    segments = path.split("/")
    return ["/".join(segments[:end]) for end in range(2, len(segments))]


def below(path: str) -> dict[str, str]:
    """Return the bounds of the paths below a directory: those that begin with it and a slash."""
    return {"low": f"{path}/", "high": f"{path}0"}


def check_path(path: str) -> None:
    """Raise Fault("invalid") for a text that is no path in a store."""
    segments = path.split("/")[1:]
    if not path.startswith("/") or not all(segments) or _DOTS.intersection(segments):
        raise Fault("invalid", f"path: {path!r} must start with / and have no empty segment, and none of . and ..")
    if composed(path) != path:
        raise Fault("invalid", f"path: {path!r} is not in Unicode Normalization Form C")
    _check(path, segments)


def listed_prefix(prefix: str) -> tuple[str, str]:
    """Return the bounds of the paths that begin with a prefix of whole segments; raises Fault("invalid")."""
    if not (prefix.startswith("/") and prefix.endswith("/")):
        raise Fault("invalid", f"path_prefix: {prefix!r} must begin and end with /")
    bounds = below(prefix[:-1])
    return bounds["low"], bounds["high"]


def _check(path: str, segments: Sequence[str]) -> None:
    if len(segments) > _MAX_SEGMENTS:
        raise Fault("invalid", f"Path {path} has {len(segments)} segments, more than {_MAX_SEGMENTS}")
    if len("".join(segments).encode()) + len(segments) > _MAX_PATH_BYTES:
        raise Fault("invalid", f"The path has more than {_MAX_PATH_BYTES} bytes")
    if any(unicodedata.category(letter) in _INVISIBLE for segment in segments for letter in segment):
        raise Fault("invalid", f"Path {path!r} has control or format characters")
