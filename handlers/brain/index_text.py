"""Index content of the rows of `brain`: the text that is embedded, and words for full-text search only."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from handlers.brain.base import decode_words
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.calls.dialect import Concept, IndexSource
from kernel.core.text import begins_with, json_text, stored_object, words_of_json
from kernel.search import index
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import Tx

ACTIVE = "active"
ARCHIVED = "archived"
_DEFAULTS = {"importance": 3, "memory_type": "permanent", "confidence": 1.0}
_SCOPES = {"ent": "entity", "note": "note", "res": "resource", "lnk": ""}


def note_text(title: str, summary: str | None, content: str) -> str:
    """Return the text of a note: title and summary, which a line of it shows, then the whole content.

    A title or summary that a later part begins with is left out, as of a note whose title is its first line.
    """
    short = summary if summary and not begins_with(content, summary) else ""
    if not short:
        return content if begins_with(content, title) else join_sentences(title, content)
    opening = short if begins_with(short, title) or begins_with(content, title) else join_sentences(title, short)
    return f"{opening}\n\n{content}"


def resource_text(
    title: str, description: str | None, notes: str | None, takeaways: Sequence[str] = (), url: str | None = None
) -> str:
    """Return the text of a resource: title, description and notes, then a line each for takeaways and address."""
    return "\n".join(part for part in (join_sentences(title, description, notes), *takeaways, url) if part)


def join_sentences(*parts: str | None) -> str:
    return ". ".join(part for part in parts if part)


def memory_source(space: str, row: Memory) -> IndexSource:
    """Return an active memory: its content is embedded; labels, tags and metadata are full-text only."""
    words = _words((row.category, row.subcategory), (row.tags,), row.metadata)
    times = ("valid_from", "valid_until")
    fields = _fields(row, "category", "subcategory", *_DEFAULTS, *times, "project_id", "metadata")
    return IndexSource(space, row.id, "memory", row.content, words, Concept(tags=decode_words(row.tags), fields=fields))


def _fields(row: Memory | Entity | Note | Resource, *names: str) -> dict[str, object]:
    """Return the columns of these names, but for the values that a row has by default."""
    return {name: value for name in names if (value := getattr(row, name)) != _DEFAULTS.get(name)}


def entity_source(space: str, row: Entity) -> IndexSource:
    """Return an active entity: name and description are embedded; type, tags, aliases and metadata are full-text
    only.
    """
    words = _words((row.type, row.subtype), (row.tags, row.aliases), row.metadata)
    fields = {"entity_type": row.type, "aliases": decode_words(row.aliases), **_fields(row, "subtype", "metadata")}
    concept = Concept(row.name, body=row.description or "", tags=decode_words(row.tags), fields=fields)
    return IndexSource(space, row.id, "entity", join_sentences(row.name, row.description), words, concept)


def note_source(space: str, row: Note) -> IndexSource:
    """Return a note: see `note_text`; key points, category and tags are full-text only."""
    points, tags = decode_words(row.key_points), decode_words(row.tags)
    text, words = note_text(row.title, row.summary, row.content), _words((row.category,), (row.key_points, row.tags))
    fields = _fields(row, "note_type", "category", "project_id", "entity_id", "parent_note_id")
    concept = Concept(row.title, row.summary or "", row.content, tags, points, fields)
    return IndexSource(space, row.id, "note", text, words, concept)


def resource_source(space: str, row: Resource) -> IndexSource:
    """Return a resource that is not archived; its category and tags are full-text only."""
    takeaways, tags = decode_words(row.key_takeaways), decode_words(row.tags)
    text = resource_text(row.title, row.description, row.notes, takeaways, row.url)
    body = "\n".join(part for part in (row.notes, *takeaways, row.url) if part)
    fields = _fields(row, "resource_type", "category", "quality_rating", "domain", "project_id", "source_memory_id")
    concept = Concept(row.title, row.description or "", body, tags, fields=fields)
    return IndexSource(space, row.id, "resource", text, _words((row.category,), (row.tags,)), concept)


class Kind(NamedTuple):
    """A kind of row in the index: its type, its content for the index, and the statements that read it."""

    row: type[Any]
    source: Callable[[str, Any], IndexSource]
    each: str
    get: str
    not_embedded: str


Indexed = Literal["memory", "entity", "note", "resource"]
KINDS: Mapping[Indexed, Kind] = {
    "memory": Kind(Memory, memory_source, "brain.memories_for_index", "brain.repository.get", "brain.vectors.memories"),
    "entity": Kind(Entity, entity_source, "brain.entities_for_index", "brain.entities.get", "brain.vectors.entities"),
    "note": Kind(Note, note_source, "brain.notes_for_index", "brain.notes.get", "brain.vectors.notes"),
    "resource": Kind(
        Resource, resource_source, "brain.resources_for_index", "brain.resources.get", "brain.vectors.resources"
    ),
}
KIND_OF: Mapping[type[Any], Kind] = {kind.row: kind for kind in KINDS.values()}


def is_indexed(row: Memory | Entity | Note | Resource | Link) -> bool:
    if isinstance(row, Resource):
        return row.status != ARCHIVED
    return not isinstance(row, Link) and (isinstance(row, Note) or row.status == ACTIVE)


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    """Return the indexed texts of versions; of a note its content, since title and summary are
    not in it.
    """
    # The prefix of an id that is not in the index tells its scope; an import may bring memories with any id.
    scopes = ((text.scope or _SCOPES.get(text.key.partition("_")[0], "memory"), text.text) for text in texts)
    return [PastSource(scope, text) if scope else None for scope, text in scopes]


def update_index(tx: Tx, source: IndexSource, *, active: bool = True) -> None:
    if active:
        index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words)
    else:
        index.drop(tx, source.space, source.key)


def _words(labels: Sequence[str | None], lists: Sequence[str | None], metadata: str | None = None) -> str:
    """Return the words of labels, of columns with lists, and of metadata, but for the source of an imported memory."""
    texts = [*labels, *(text for column in lists for text in decode_words(column))]
    if metadata and (values := stored_object(metadata)):
        values.pop("from", None)
        texts.append(words_of_json(json_text(values)) if values else "")
    return " ".join(text for text in texts if text)
