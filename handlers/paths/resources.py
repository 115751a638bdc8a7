"""The memories of `paths` as MCP resources."""

import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, unquote

from handlers.paths.memories import AFTER_EVERY_PATH, SCHEME, get_memory
from handlers.paths.schemas import PAGE_SIZE, ListedMemory
from kernel.calls.resources import Resource, ResourceContents, Resources, ResourceTemplate
from kernel.store.transaction import Tx


def resource_page(tx: Tx, cursor: str | None) -> tuple[list[Resource], str | None]:
    """Return one page of the memories as resources; the cursor is the last path of the page before."""
    entries = tx.all(
        "paths.memories.page", ListedMemory, after=cursor or "", low="", high=AFTER_EVERY_PATH, limit=PAGE_SIZE + 1
    )
    page = [_resource(entry) for entry in entries[:PAGE_SIZE]]
    return page, entries[PAGE_SIZE - 1].path if len(entries) > PAGE_SIZE else None


def resource_read(tx: Tx, uri: str) -> list[ResourceContents] | None:
    """Return the content of one memory, or None if there is none."""
    memory = get_memory(tx, unicodedata.normalize("NFC", unquote(uri.removeprefix(SCHEME))))
    return None if memory is None else [ResourceContents(uri, "text/plain", memory.content)]


def complete(tx: Tx, _ref: str, argument: str, value: str, _others: Mapping[str, str]) -> list[str]:
    """Return paths that begin with a value."""
    if argument != "path":
        return []
    low = unicodedata.normalize("NFC", value)
    bounds = {"low": low, "high": low + AFTER_EVERY_PATH}
    return [entry.path for entry in tx.all("paths.memories.page", ListedMemory, after="", limit=PAGE_SIZE, **bounds)]


def _resource(entry: ListedMemory) -> Resource:
    uri = SCHEME + quote(entry.path)
    return Resource(uri, entry.path, size=entry.content_size, modified=entry.updated_at)


RESOURCES = Resources(
    SCHEME,
    resource_page,
    resource_read,
    (ResourceTemplate(SCHEME + "{+path}", "memory", about="The memory at a path"),),
)
