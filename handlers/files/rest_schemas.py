"""Requests and results of the REST methods below /v1/memory_stores; names and types are those of the vendor's SDKs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

StoreId = Annotated[str, Meta(description="Id of the memory store")]
MemoryId = Annotated[str, Meta(description="Id of the memory")]
VersionId = Annotated[str, Meta(description="Id of the version")]
Name = Annotated[str, Meta(description="Name of the store, need not be unique", min_length=1, max_length=255)]
Description = Annotated[str, Meta(description="What the store contains", max_length=1024)]
_Key = Annotated[str, Meta(min_length=1, max_length=64)]
_Value = Annotated[str, Meta(max_length=512)]
Path = Annotated[str, Meta(description="Path of the memory in the store, such as /notes/today.md")]
Content = Annotated[str, Meta(description="Content, at most 102,400 bytes")]
Digest = Annotated[str, Meta(description="SHA-256 of the content that is expected", pattern="^[0-9a-f]{64}$")]
View = Annotated[Literal["basic", "full"], Meta(description="Whether content is included")]
Limit = Annotated[int, Meta(description="Items of a page; with view=full at most 20", ge=1, le=100)]
PageToken = Annotated[str, Meta(description="next_page of the page before")]
Time = Annotated[str, Meta(description="ISO 8601 time")]


class CreateStore(Struct, forbid_unknown_fields=True):
    """A new store."""

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
    """A store."""

    memory_store_id: StoreId


class UpdateStore(Struct, forbid_unknown_fields=True):
    """Changes of a store; in `metadata` null removes a key, and absent keys stay."""

    memory_store_id: StoreId
    name: Name | None = None
    description: Description | None = None
    metadata: dict[_Key, _Value | None] | None = None


class CreateMemory(Struct, forbid_unknown_fields=True):
    """A new memory."""

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
    """Changes of a memory."""

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


class MemoryStore(Struct, tag_field="type", tag="memory_store"):
    """A store."""

    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: str
    updated_at: str
    archived_at: str | None


class DeletedStore(Struct, tag_field="type", tag="memory_store_deleted"):
    """A store that is gone."""

    id: str


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
    """A directory."""

    path: str


class DeletedMemory(Struct, tag_field="type", tag="memory_deleted"):
    """A memory that is gone."""

    id: str


class Actor(Struct, tag_field="type", tag="api_actor"):
    """The caller with this key."""

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


class StorePage(Struct):
    """A page of stores."""

    data: list[MemoryStore]
    next_page: str | None


class MemoryPage(Struct):
    """A page of memories."""

    data: list[Memory | MemoryPrefix]
    next_page: str | None


class VersionPage(Struct):
    """A page of versions."""

    data: list[MemoryVersion]
    next_page: str | None
