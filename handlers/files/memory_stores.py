"""The REST methods on stores: create, list, get, update, archive, delete.

Names and types of requests and results are those of the vendor's SDKs.
"""

import base64
import binascii
import unicodedata
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from handlers.files import records
from handlers.files.records import StoreRow
from kernel.calls.dialect import RestMethod
from kernel.calls.tools import Hints, exclusive, read, write
from kernel.core.errors import Fault
from kernel.core.text import stored_object
from kernel.core.times import utc_time
from kernel.store.transaction import Tx

Mark = TypeVar("Mark", int, str)
_WHOLE = 20  # items of a page with their content
_MAX_PAIRS = 16
FIRST = 2**62  # above every number of a row
_ROOT = "/v1/memory_stores"
_STORE = f"{_ROOT}/{{memory_store_id}}"

StoreId = Annotated[str, Meta(description="Id of the memory store")]
Name = Annotated[str, Meta(description="Name of the store, need not be unique", min_length=1, max_length=255)]
Description = Annotated[str, Meta(description="What the store contains", max_length=1024)]
_Key = Annotated[str, Meta(min_length=1, max_length=64)]
_Value = Annotated[str, Meta(max_length=512)]
View = Annotated[Literal["basic", "full"], Meta(description="Whether content is included")]
Limit = Annotated[int, Meta(description="Items of a page; with view=full at most 20", ge=1, le=100)]
PageToken = Annotated[str, Meta(description="next_page of the page before")]
Time = Annotated[str, Meta(description="ISO 8601 time")]


class CreateStore(Struct, forbid_unknown_fields=True):
    name: Name
    description: Description = ""
    metadata: Annotated[dict[_Key, _Value], Meta(max_length=16)] = {}


class ListStores(Struct):
    """Which stores to list, the newest first."""

    limit: Limit = 20
    page: PageToken | None = None
    include_archived: bool = False
    since: Time | None = field(default=None, name="created_at[gte]")
    until: Time | None = field(default=None, name="created_at[lte]")


class OneStore(Struct):
    memory_store_id: StoreId


class UpdateStore(Struct, forbid_unknown_fields=True):
    """Changes of a store; in `metadata` null removes a key, and absent keys stay."""

    memory_store_id: StoreId
    name: Name | None = None
    description: Description | None = None
    metadata: dict[_Key, _Value | None] | None = None


class MemoryStore(Struct, tag_field="type", tag="memory_store"):
    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: str
    updated_at: str
    archived_at: str | None


class DeletedStore(Struct, tag_field="type", tag="memory_store_deleted"):
    id: str


class StorePage(Struct):
    data: list[MemoryStore]
    next_page: str | None


def page_size(limit: int, view: str) -> int:
    return min(limit, _WHOLE) if view == "full" else limit


def token(mark: int | str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(mark)).decode().rstrip("=")


def mark_of(page: str | None, first: Mark) -> Mark:
    """Return the mark of a token, or the first without a token; raises Fault("invalid") for any other text."""
    if page is None:
        return first
    try:
        base64_page = page.encode() + b"=" * (-len(page) % 4)
        mark = msgspec.json.decode(base64.b64decode(base64_page, b"-_", validate=True), type=type(first))
    except (binascii.Error, UnicodeError, msgspec.MsgspecError):
        mark = None
    if mark is None or (isinstance(mark, int) and isinstance(first, int) and mark > first):
        raise Fault("invalid", "page: is not the next_page of a page before")
    return mark


def bounds(since: str | None, until: str | None) -> dict[str, str | None]:
    """Return the bounds of created_at in the format of the store; raises Fault("invalid") for other texts."""
    return {"since": _time("gte", since), "until": _time("lte", until)}


def _time(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    time = utc_time(text)
    if time is None:
        raise Fault(
            "invalid", f"created_at[{name}]: {text[:64]!r} is not an ISO 8601 time, such as 2026-01-31T08:00:00Z"
        )
    return time


def create_memory_store(tx: Tx, request: CreateStore) -> MemoryStore:
    """Create a memory store."""
    _check_name(request.name)
    store_id = tx.new_id("memstore")
    records.add_store(tx, store_id, request.name, request.description, msgspec.json.encode(request.metadata).decode())
    return _shown(existing(tx, store_id))


def list_memory_stores(tx: Tx, request: ListStores) -> StorePage:
    """List memory stores, the newest first."""
    page = {"below": mark_of(request.page, FIRST), "limit": request.limit + 1}
    filters = {"archived": request.include_archived, **bounds(request.since, request.until)}
    rows = tx.all("files.memory_stores.list", _numbered, **page, **filters)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return StorePage([_shown(row) for _, row in rows], token(rows[-1][0]) if more else None)


def get_memory_store(tx: Tx, request: OneStore) -> MemoryStore:
    """Get a memory store."""
    return _shown(existing(tx, request.memory_store_id))


def update_memory_store(tx: Tx, request: UpdateStore) -> MemoryStore:
    """Change name, description or metadata of a memory store."""
    row = existing(tx, request.memory_store_id)
    records.check_open(row)
    if request.name is not None:
        _check_name(request.name)
    metadata = {**_metadata(row), **(request.metadata or {})}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    if len(metadata) > _MAX_PAIRS:
        raise Fault("invalid", f"metadata: would have {len(metadata)} pairs, more than {_MAX_PAIRS}")
    new_row = row._replace(
        name=row.name if request.name is None else request.name,
        description=row.description if request.description is None else request.description,
        metadata=msgspec.json.encode(metadata).decode(),
    )
    return _shown(_put(tx, row, new_row))


def archive_memory_store(tx: Tx, request: OneStore) -> MemoryStore:
    """Archive a memory store: it can be read and deleted from then on, not changed."""
    row = existing(tx, request.memory_store_id)
    return _shown(_put(tx, row, row if row.archived_at else row._replace(archived_at=tx.now)))


def delete_memory_store(tx: Tx, request: OneStore) -> DeletedStore:
    """Delete a memory store with all its memories and versions."""
    store = existing(tx, request.memory_store_id).id
    for part in records.slices(tx, store, ""):
        for record in part:
            records.drop_document(tx, record)
        tx.run("files.memory_stores.delete_memories", ids=[record.id for record in part])
    tx.run("files.memory_stores.delete_versions", store=store)
    tx.run("files.memory_stores.delete", id=store)
    return DeletedStore(store)


def existing(tx: Tx, id_: str) -> StoreRow:
    row = records.store_row(tx, id_)
    if row is None:
        raise Fault("not_found", f"There is no memory store {id_[:64]}")
    return row


def _put(tx: Tx, row: StoreRow, new_row: StoreRow) -> StoreRow:
    if new_row != row:
        new_row = new_row._replace(updated_at=tx.now)
        tx.run("files.memory_stores.put", **new_row._asdict())
    return new_row


def _check_name(name: str) -> None:
    if any(unicodedata.category(letter) == "Cc" for letter in name):
        raise Fault("invalid", "name: has control characters")


def _numbered(number: int, *columns: str) -> tuple[int, StoreRow]:
    return number, StoreRow._make(columns)


def _metadata(row: StoreRow) -> dict[str, str]:
    return {name: value for name, value in stored_object(row.metadata).items() if isinstance(value, str)}


def _shown(row: StoreRow) -> MemoryStore:
    return MemoryStore(*row[:3], _metadata(row), *row[4:])


METHODS = (
    RestMethod("POST", _ROOT, write(create_memory_store, permission="write")),
    RestMethod("GET", _ROOT, read(list_memory_stores, permission="read")),
    RestMethod("GET", _STORE, read(get_memory_store, permission="read")),
    RestMethod("POST", _STORE, write(update_memory_store, Hints(destructive=True), permission="write")),
    RestMethod("POST", f"{_STORE}/archive", write(archive_memory_store, Hints(destructive=True), permission="write")),
    RestMethod("DELETE", _STORE, exclusive(delete_memory_store, Hints(destructive=True), permission="write")),
)
