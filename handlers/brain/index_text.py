"""Index content of the rows of `brain`: the text that is embedded, and words for full-text search only."""

from collections.abc import Sequence

from handlers.brain.base import decode_words
from handlers.brain.schemas import Entity, Memory, Note, Resource
from kernel.search import index
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import Tx
from kernel.tools import IndexSource

ACTIVE = "active"
ARCHIVED = "archived"
_SCOPES = {"ent": "entity", "note": "note", "res": "resource", "lnk": ""}


def entity_text(name: str, description: str | None) -> str:
    """The text of an entity: its name and description."""
    return join_sentences(name, description)


def note_text(title: str, summary: str | None, content: str) -> str:
    """The text of a note: its title, and its summary or else its content."""
    return join_sentences(title, summary or content)


def resource_text(title: str, description: str | None, notes: str | None) -> str:
    """The text of a resource: its title, description and notes."""
    return join_sentences(title, description, notes)


def join_sentences(*parts: str | None) -> str:
    """The non-empty parts, as sentences."""
    return ". ".join(part for part in parts if part)


def memory_source(space: str, row: Memory) -> IndexSource:
    """An active memory: its content is embedded; category and tags are full-text only."""
    return IndexSource(space, row.id, "memory", row.content, full_text_words(row.category, row.tags))


def entity_source(space: str, row: Entity) -> IndexSource:
    """An active entity: name and description are embedded; type and tags are full-text only."""
    return IndexSource(
        space, row.id, "entity", entity_text(row.name, row.description), full_text_words(row.type, row.tags)
    )


def note_source(space: str, row: Note) -> IndexSource:
    """A note: see `note_text`; tags, and the content if there is a summary, are full-text only."""
    text = note_text(row.title, row.summary, row.content)
    return IndexSource(space, row.id, "note", text, full_text_words(row.content if row.summary else "", row.tags))


def resource_source(space: str, row: Resource) -> IndexSource:
    """A resource that is not archived; its tags are full-text only."""
    text = resource_text(row.title, row.description, row.notes)
    return IndexSource(space, row.id, "resource", text, full_text_words("", row.tags))


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    """What the index held of texts of the history; of a note its content, since title and summary are not in it."""
    scopes = ((text.scope or _scope(text.key), text.text) for text in texts)
    return [PastSource(scope, text) if scope else None for scope, text in scopes]


def _scope(key: str) -> str:
    """The scope of an id that is not in the index; empty for a link. An import may bring memories with any id."""
    return _SCOPES.get(key.partition("_")[0], "memory")


def update_index(tx: Tx, source: IndexSource, *, active: bool = True) -> None:
    """Puts a row into the index, or drops it if it is not active."""
    if active:
        index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words)
    else:
        index.drop(tx, source.space, source.key)


def full_text_words(first: str, tags: str | None) -> str:
    """A word and the tags of a JSON column, separated by spaces."""
    return " ".join(part for part in (first, *decode_words(tags)) if part)
