"""The REST methods on the versions of memories: list, get, redact."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

from handlers.files import memory_stores, records
from handlers.files.memory_stores import FIRST, Limit, PageToken, StoreId, Time, View, bounds, existing, mark_of
from handlers.files.stored_memories import MemoryId
from kernel.calls.dialect import RestMethod
from kernel.calls.tools import exclusive, read
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

_VERSIONS = "/v1/memory_stores/{memory_store_id}/memory_versions"
_VERSION = f"{_VERSIONS}/{{memory_version_id}}"

VersionId = Annotated[str, Meta(description="Id of the version")]


class ListVersions(Struct):
    """Which versions to list, the newest first."""

    memory_store_id: StoreId
    memory_id: MemoryId | None = None
    operation: Literal["created", "modified", "deleted"] | None = None
    api_key_id: str | None = None
    session_id: str | None = None
    service_account_id: str | None = None
    since: Time | None = field(default=None, name="created_at[gte]")
    until: Time | None = field(default=None, name="created_at[lte]")
    limit: Limit = 20
    page: PageToken | None = None
    view: View = "basic"


class OneVersion(Struct):
    memory_store_id: StoreId
    memory_version_id: VersionId
    view: View = "full"


class RedactVersion(Struct, forbid_unknown_fields=True):
    memory_store_id: StoreId
    memory_version_id: VersionId


class Actor(Struct, tag_field="type", tag="api_actor"):
    api_key_id: str


class MemoryVersion(Struct, tag_field="type", tag="memory_version"):
    """A change of a memory; content, digest and size are null in a deletion, the path too in a redacted version."""

    id: str
    memory_id: str
    memory_store_id: str
    operation: str
    path: str | None
    content: str | None
    content_sha256: str | None
    content_size_bytes: int | None
    created_at: str
    created_by: Actor | None
    redacted_at: str | None
    redacted_by: Actor | None


class VersionPage(Struct):
    data: list[MemoryVersion]
    next_page: str | None


class _Row(NamedTuple):
    seq: int
    id: str
    memory: str
    store: str
    operation: str
    path: str | None
    content: str | None
    sha256: str | None
    size: int | None
    created_at: str
    created_by: str | None
    redacted_at: str | None
    redacted_by: str | None


def list_memory_versions(tx: Tx, request: ListVersions) -> VersionPage:
    """List the versions of the memories of a store, the newest first."""
    size = memory_stores.page_size(request.limit, request.view)
    rows_read = tx.all(
        "files.versions.list",
        _Row,
        store=existing(tx, request.memory_store_id).id,
        memory=request.memory_id,
        operation=request.operation,
        created_by=request.api_key_id,
        of_others=request.session_id is not None or request.service_account_id is not None,
        below=mark_of(request.page, FIRST),
        limit=size + 1,
        whole=request.view == "full",
        **bounds(request.since, request.until),
    )
    rows = rows_read[:size]
    next_page = memory_stores.token(rows[-1].seq) if len(rows_read) > size else None
    return VersionPage([_shown(row) for row in rows], next_page)


def get_memory_version(tx: Tx, request: OneVersion) -> MemoryVersion:
    """Get a version with its content."""
    return _shown(_existing(tx, request.memory_store_id, request.memory_version_id, request.view))


def redact_memory_version(tx: Tx, request: RedactVersion) -> MemoryVersion:
    """Remove path and content of an earlier version for good, from the history and from what undo keeps too."""
    row = _existing(tx, request.memory_store_id, request.memory_version_id, "full")
    if row.redacted_at is not None:
        return _shown(row)
    if tx.one("files.versions.is_present", int, id=row.id) is not None:
        raise Fault("invalid", f"The version {row.id} is the present one of its memory: change or delete that first")
    tx.run("files.versions.redact", id=row.id, redacted_by=tx.call_context.key or None, now=tx.now)
    _redact_history(tx, row)
    return _shown(_existing(tx, row.store, row.id, "full"))


def _redact_history(tx: Tx, row: _Row) -> None:
    """Keep a text that the memory has now as well: its present version can be redacted later."""
    if row.path is None or row.content is None:
        return
    text, present = records.document_text(row.path, row.content), records.by_id(tx, row.store, row.memory)
    if present is None or text != records.document_text(present.path, present.content):
        history.redact(tx, records.space_of(row.store), row.memory, text)


def _existing(tx: Tx, store: str, id_: str, view: str) -> _Row:
    row = tx.one("files.versions.get", _Row, store=existing(tx, store).id, id=id_, whole=view == "full")
    if row is None:
        raise Fault("not_found", f"There is no memory version {id_[:64]} in the store {store}")
    return row


def _shown(row: _Row) -> MemoryVersion:
    return MemoryVersion(*row[1:10], _actor(row.created_by), row.redacted_at, _actor(row.redacted_by))


def _actor(key: str | None) -> Actor | None:
    return None if key is None else Actor(key)


METHODS = (
    RestMethod("GET", _VERSIONS, read(list_memory_versions, permission="read")),
    RestMethod("GET", _VERSION, read(get_memory_version, permission="read")),
    RestMethod("POST", f"{_VERSION}/redact", exclusive(redact_memory_version, permission="write")),
)
