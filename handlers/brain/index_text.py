"""What a row of `brain` is found by: the text that is embedded, and the further words that full text knows."""

from handlers.brain.base import decode_words
from handlers.brain.schemas import Entity, Memory, Note, Resource
from kernel.search import index
from kernel.store.transaction import Tx
from kernel.tools import IndexSource

ACTIVE = "active"
ARCHIVED = "archived"


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
    """The parts there are, as sentences."""
    return ". ".join(part for part in parts if part)


def memory_source(space: str, row: Memory) -> IndexSource:
    """What the index holds of an active memory: its content; full text knows its category and tags too."""
    return IndexSource(space, row.id, "memory", row.content, full_text_words(row.category, row.tags))


def entity_source(space: str, row: Entity) -> IndexSource:
    """What the index holds of an active entity: name and description; full text knows its type and tags too."""
    return IndexSource(
        space, row.id, "entity", entity_text(row.name, row.description), full_text_words(row.type, row.tags)
    )


def note_source(space: str, row: Note) -> IndexSource:
    """What the index holds of a note; full text knows its tags too, and the content its summary stands for."""
    text = note_text(row.title, row.summary, row.content)
    return IndexSource(space, row.id, "note", text, full_text_words(row.content if row.summary else "", row.tags))


def resource_source(space: str, row: Resource) -> IndexSource:
    """What the index holds of a resource that is not archived; full text knows its tags too."""
    text = resource_text(row.title, row.description, row.notes)
    return IndexSource(space, row.id, "resource", text, full_text_words("", row.tags))


def update_index(tx: Tx, source: IndexSource, *, active: bool = True) -> None:
    """Makes a row findable as its source says, or no longer findable at all."""
    if active:
        index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words)
    else:
        index.drop(tx, source.space, source.key)


def full_text_words(first: str, tags: str | None) -> str:
    """A word and the tags of a JSON column, in one line."""
    return " ".join(part for part in (first, *decode_words(tags)) if part)
