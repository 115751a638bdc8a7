"""The resource tools of `brain`: sources from elsewhere to read again (companions of seed 003)."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from handlers.brain.base import Fields, embedding, new_id, new_row, space
from handlers.brain.index_text import resource_text
from handlers.brain.links import check_references, checked
from handlers.brain.repository import create, read_page
from handlers.brain.schemas import Database, Id, Limit, LongText, Offset, Points, Resource, ShortText, Tags, Title
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.store.transaction import Tx

ResourceType = Literal["article", "video", "repo", "tool", "tutorial", "asset", "documentation", "package"]
Status = Literal["captured", "reading", "read", "reference", "archived"]


class SaveResource(Struct, forbid_unknown_fields=True):
    db: Database
    title: Annotated[Title, Meta(description="What it is called")]
    url: Annotated[Annotated[str, Meta(max_length=8192)] | None, Meta(description="Where it is")] = None
    resource_type: Annotated[ResourceType | None, Meta(description="What kind of resource it is")] = None
    description: Annotated[LongText | None, Meta(description="What it is")] = None
    notes: Annotated[LongText | None, Meta(description="Your notes on it")] = None
    key_takeaways: Annotated[Points | None, Meta(description="What was learnt from it")] = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    category: Annotated[ShortText | None, Meta(description="Category")] = None
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to, or the name of a project")] = (
        None
    )
    source_memory_id: Annotated[Id | None, Meta(description="Id of the memory that mentions it")] = None


class GetResources(Struct, forbid_unknown_fields=True):
    """Which resources to get."""

    db: Database
    resource_type: Annotated[ResourceType | None, Meta(description="Only this type")] = None
    category: Annotated[ShortText | None, Meta(description="Only this category")] = None
    tags: Annotated[Tags | None, Meta(description="With any of these tags, in whatever case")] = None
    status: Annotated[Status | None, Meta(description="Only this status; if left out, all but archived")] = None
    project_id: Annotated[Id | None, Meta(description="Only of this project")] = None
    domain: Annotated[ShortText | None, Meta(description="Only of this host, such as github.com")] = None
    limit: Limit = 50
    offset: Offset = 0
    fields: Fields = None


def save_resource(tx: Tx, request: SaveResource) -> Resource:
    """Save a link, article, repository or other thing found elsewhere."""
    space(tx, request.db)
    check_references(tx, request)
    columns = {"id": new_id(tx, "res"), "status": "captured", "domain": domain(request.url), "access_count": 0}
    row = new_row(Resource, request, **columns, **embedding(tx), created_at=tx.now)
    return create(tx, request.db, row)


def get_resources(tx: Tx, request: GetResources) -> list[Resource]:
    """Get resources by type, category, tags, status, project or host, the newest first."""
    host = request.domain and request.domain.lower()  # as `domain` has it
    return checked(tx, request, read_page(tx, "brain.resources.page", Resource, request, domain=host))


def domain(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname or None if url else None
    except ValueError:
        return None


def _record_access(tx: Tx, request: GetResources, result: list[Resource]) -> None:
    if result:
        tx.run("brain.resources.touch", db=request.db, ids=[row.id for row in result], now=tx.now)


def _saved_text(request: SaveResource) -> list[str]:
    return [resource_text(request.title, request.description, request.notes, request.key_takeaways or (), request.url)]


TOOLS: tuple[Tool, ...] = (
    write(save_resource, Hints("Save resource"), permission="write", hooks=Hooks(texts=_saved_text)),
    read(get_resources, Hints("Get resources"), permission="read", hooks=Hooks(after_read=_record_access)),
)
