"""The REST methods on the memories of a store: create, list, get, update, delete."""

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from handlers.files import records
from handlers.files.memory_stores import Limit, PageToken, StoreId, View, existing, mark_of, page_size, token
from handlers.files.records import MAX_BYTES, Record, check_path, listed_prefix
from kernel.calls.dialect import RestMethod
from kernel.calls.tools import Hints, Hooks, read, write
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

PATH_TAKEN = "memory_path_conflict_error"
CHANGED_MEANWHILE = "memory_precondition_failed_error"
_MEMORIES = "/v1/memory_stores/{memory_store_id}/memories"
_MEMORY = f"{_MEMORIES}/{{memory_id}}"

MemoryId = Annotated[str, Meta(description="Id of the memory")]
Path = Annotated[str, Meta(description="Path of the memory in the store, such as /notes/today.md")]
Content = Annotated[str, Meta(description="Content, at most 102,400 bytes")]
Digest = Annotated[
    str, Meta(description="SHA-256 of the expected content, 64 lower-case hex digits", pattern="^[0-9a-f]{64}$")
]


class CreateMemory(Struct, forbid_unknown_fields=True):
    memory_store_id: StoreId
    path: Path
    content: Content
    view: View = "basic"


class ListMemories(Struct):
    """Which memories to list, by path; with depth 1 each directory is a prefix."""

    memory_store_id: StoreId
    path_prefix: Annotated[str, Meta(description="Begins and ends with a slash")] = "/"
    depth: Annotated[int, Meta(ge=0, le=1)] = 0
    limit: Limit = 20
    page: PageToken | None = None
    view: View = "basic"


class OneMemory(Struct):
    memory_store_id: StoreId
    memory_id: MemoryId
    view: View = "full"


class Precondition(Struct, tag_field="type", tag="content_sha256", forbid_unknown_fields=True):
    """What the content has to be for an update to apply."""

    content_sha256: Digest


class UpdateMemory(Struct, forbid_unknown_fields=True):
    memory_store_id: StoreId
    memory_id: MemoryId
    content: Content | None = None
    path: Path | None = None
    precondition: Precondition | None = None
    view: View = "basic"


class DeleteMemory(Struct):
    memory_store_id: StoreId
    memory_id: MemoryId
    expected_content_sha256: Digest | None = None


class Memory(Struct, tag_field="type", tag="memory"):
    """A memory; `content` is null in a basic view."""

    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: str | None
    content_sha256: str
    content_size_bytes: int
    created_at: str
    updated_at: str


class MemoryPrefix(Struct, tag_field="type", tag="memory_prefix"):
    path: str


class DeletedMemory(Struct, tag_field="type", tag="memory_deleted"):
    id: str


class MemoryPage(Struct):
    data: list[Memory | MemoryPrefix]
    next_page: str | None


class _Item(NamedTuple):
    """A memory of a list, or a prefix, which has a path alone."""

    path: str
    id: str | None
    version: str
    content: str | None
    sha256: str
    size: int
    created_at: str
    updated_at: str


def create_stored_memory(tx: Tx, request: CreateMemory) -> Memory:
    """Create a memory at a path where nothing is."""
    store = existing(tx, request.memory_store_id).id
    _check_place(tx, store, request.path)
    return _shown(records.add(tx, store, request.path, request.content), request.view)


def list_stored_memories(tx: Tx, request: ListMemories) -> MemoryPage:
    """List the memories of a store by path."""
    store, view = existing(tx, request.memory_store_id).id, request.view
    low, high = listed_prefix(request.path_prefix)
    size = page_size(request.limit, view)
    bounds = {
        "store": store,
        "low": max(low, mark_of(request.page, low)),
        "high": high,
        "limit": size + 1,
        "whole": view == "full",
    }
    if request.depth:
        rows = tx.all("files.stored_memories.children", _Item, prefix=len(request.path_prefix), **bounds)
    else:
        rows = tx.all("files.stored_memories.below", _Item, **bounds)
    items = [MemoryPrefix(row.path) if row.id is None else _memory(store, row.id, row) for row in rows]
    return MemoryPage(items[:size], token(rows[size].path) if len(rows) > size else None)


def get_stored_memory(tx: Tx, request: OneMemory) -> Memory:
    """Get a memory with its content."""
    return _shown(_existing(tx, request.memory_store_id, request.memory_id), request.view)


def update_stored_memory(tx: Tx, request: UpdateMemory) -> Memory:
    """Change the content of a memory, its path or both, if its content is still what `precondition` expects."""
    record = _existing(tx, request.memory_store_id, request.memory_id)
    if request.precondition is not None:
        _check_content(record, request.precondition.content_sha256)
    path = record.path if request.path is None else request.path
    if path != record.path:
        _check_place(tx, record.store, path, record.id)
    records.check_open(records.store_row(tx, record.store))
    content = record.content if request.content is None else request.content
    return _shown(records.change(tx, record, path, content), request.view)


def delete_stored_memory(tx: Tx, request: DeleteMemory) -> DeletedMemory:
    """Delete a memory, if its content is still what is expected; its versions stay."""
    record = _existing(tx, request.memory_store_id, request.memory_id)
    if request.expected_content_sha256 is not None:
        _check_content(record, request.expected_content_sha256)
    records.remove(tx, record)
    return DeletedMemory(record.id)


def _existing(tx: Tx, store: str, id_: str) -> Record:
    record = records.by_id(tx, existing(tx, store).id, id_)
    if record is None:
        raise Fault("not_found", f"There is no memory {id_[:64]} in the store {store}")
    return record


def _check_place(tx: Tx, store: str, path: str, besides: str | None = None) -> None:
    """Raise Fault for a text that is no path, and if a memory is at it, above it or below it."""
    check_path(path)
    obstacle = records.in_the_way(tx, store, path, besides)
    if obstacle is not None:
        context = {"conflicting_memory_id": obstacle.id, "conflicting_path": obstacle.path}
        raise Fault("conflict", f"path: the memory {obstacle.id} is at {obstacle.path}", PATH_TAKEN, context)


def _check_content(record: Record, expected_sha256: str) -> None:
    if record.sha256 != expected_sha256:
        message = f"The content of the memory {record.id} is not what was expected: read it again"
        raise Fault("conflict", message, CHANGED_MEANWHILE)


def _shown(record: Record, view: str) -> Memory:
    memory = _memory(record.store, record.id, record)
    return memory if view == "full" else replace(memory, content=None)


def _memory(store: str, id_: str, row: Record | _Item) -> Memory:
    return Memory(id_, store, row.version, row.path, row.content, row.sha256, row.size, row.created_at, row.updated_at)


def _texts_to_embed(request: CreateMemory) -> list[str]:
    short = len(request.content) <= MAX_BYTES
    return [records.document_text(request.path, request.content)] if short else []


METHODS = (
    RestMethod("POST", _MEMORIES, write(create_stored_memory, permission="write", hooks=Hooks(texts=_texts_to_embed))),
    RestMethod("GET", _MEMORIES, read(list_stored_memories, permission="read")),
    RestMethod("GET", _MEMORY, read(get_stored_memory, permission="read")),
    RestMethod("POST", _MEMORY, write(update_stored_memory, Hints(destructive=True), permission="write")),
    RestMethod("DELETE", _MEMORY, write(delete_stored_memory, Hints(destructive=True), permission="write")),
)
