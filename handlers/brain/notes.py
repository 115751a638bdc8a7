"""The note tools of `brain`: longer texts, beside the memories (companions of seed 003)."""

from typing import Annotated

from msgspec import Meta, Struct

from handlers.brain import repository
from handlers.brain.base import Fields, embedding, new_id, new_row, space
from handlers.brain.index_text import note_source, note_text, update_index
from handlers.brain.links import check_references, checked
from handlers.brain.schemas import (
    Database,
    Id,
    Limit,
    LongText,
    Note,
    NoteType,
    Offset,
    Points,
    ShortText,
    Tags,
    Text,
    Title,
)
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.store import history
from kernel.store.transaction import Tx


class SaveNote(Struct, forbid_unknown_fields=True):
    db: Database
    title: Annotated[Title, Meta(description="Title of the note")]
    content: Annotated[Text, Meta(description="The whole text, in Markdown")]
    note_type: Annotated[NoteType, Meta(description="What kind of note it is")] = "note"
    summary: Annotated[
        LongText | None, Meta(description="What it says in short; lines of it begin with title and summary")
    ] = None
    key_points: Annotated[Points | None, Meta(description="Its main points")] = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    category: Annotated[ShortText | None, Meta(description="Category")] = None
    parent_note_id: Annotated[Id | None, Meta(description="Id of the note above it")] = None
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to, or the name of a project")] = (
        None
    )
    entity_id: Annotated[Id | None, Meta(description="Id of the entity it is about")] = None


class GetNotes(Struct, forbid_unknown_fields=True):
    """Which notes to get."""

    db: Database
    note_type: Annotated[ShortText | None, Meta(description="Only this type")] = None
    category: Annotated[ShortText | None, Meta(description="Only this category")] = None
    tags: Annotated[Tags | None, Meta(description="With any of these tags, in whatever case")] = None
    project_id: Annotated[Id | None, Meta(description="Only of this project")] = None
    entity_id: Annotated[Id | None, Meta(description="Only about this entity")] = None
    limit: Limit = 20
    offset: Offset = 0
    fields: Fields = None


class UpdateNote(Struct, forbid_unknown_fields=True):
    """Changes of a note; omitted fields stay."""

    db: Database
    id: Annotated[Id, Meta(description="Id of the note")]
    title: Annotated[Title | None, Meta(description="New title")] = None
    content: Annotated[Text | None, Meta(description="New text; makes a new version")] = None
    note_type: Annotated[NoteType | None, Meta(description="New type")] = None
    summary: Annotated[LongText | None, Meta(description="New summary")] = None
    key_points: Annotated[Points | None, Meta(description="All main points from now on")] = None
    tags: Annotated[Tags | None, Meta(description="All tags from now on")] = None
    category: Annotated[ShortText | None, Meta(description="New category")] = None
    project_id: Annotated[Id | None, Meta(description="New project")] = None
    entity_id: Annotated[Id | None, Meta(description="New entity")] = None


def save_note(tx: Tx, request: SaveNote) -> Note:
    """Save a longer text: a document, design, meeting or journal entry."""
    space(tx, request.db)
    check_references(tx, request)
    columns = {"id": new_id(tx, "note"), "version": 1, "word_count": len(request.content.split())}
    row = new_row(Note, request, **columns, **embedding(tx), created_at=tx.now, updated_at=tx.now)
    return repository.create(tx, request.db, row)


def get_notes(tx: Tx, request: GetNotes) -> list[Note]:
    """Get notes by type, category, tags, project or entity, the most recently updated first."""
    return checked(tx, request, repository.read_page(tx, "brain.notes.page", Note, request, "note_type"))


def update_note(tx: Tx, request: UpdateNote) -> Note:
    """Change a note; what is left out stays, and new content counts up its version."""
    here = space(tx, request.db)
    before = repository.get(tx, Note, request.db, request.id)
    check_references(tx, request)
    names = UpdateNote.__struct_fields__[2:]
    changes, _, reason = repository.with_changes(before, {name: getattr(request, name) for name in names})
    count = len(request.content.split()) if request.content else None
    more = {"word_count": count, "now": tx.now, **embedding(tx)}
    row = tx.one("brain.notes.update", Note, db=request.db, id=request.id, **changes, **more) or before
    history.append(tx, here, row.id, "updated", before=before.content, after=row.content, reason=reason)
    update_index(tx, note_source(here, row))
    return row


def _saved_text(request: SaveNote) -> list[str]:
    return [note_text(request.title, request.summary, request.content)]


TOOLS: tuple[Tool, ...] = (
    write(save_note, Hints("Save note"), permission="write", hooks=Hooks(texts=_saved_text)),
    read(get_notes, Hints("Get notes"), permission="read"),
    write(update_note, Hints("Update note", destructive=True), permission="write"),
)
