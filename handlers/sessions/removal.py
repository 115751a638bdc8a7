"""The view of a memory or an entity, and how a person forgets it: no tool of the contract does. What a
session begins with, and its handoff when it is compacted."""

from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from handlers.sessions import graph, memories, summary
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.core.text import json_text, spellings
from kernel.memories.briefing import Handoff, Part, Project, Remark
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_ACTION = "forgotten"


class Forget(Struct, forbid_unknown_fields=True):
    id: Annotated[int, Meta(ge=1, le=2**53, description="Number of the memory or the entity")]


class ForgetObservation(Forget, forbid_unknown_fields=True, kw_only=True):
    content: Annotated[str, Meta(description="Text of the observation")]


class Forgotten(Struct):
    id: int


# The kinds of memories for each part, and how many of them are shown.
_KINDS: tuple[tuple[Part, tuple[str, ...], int], ...] = (
    ("handoff", ("handoff", "summary"), 1),
    ("decision", ("decision",), 5),
)
_NEWEST = 20_000  # memories that are looked at: there is no index of projects


def forget_session_memory(tx: Tx, request: Forget) -> Forgotten:
    """Delete one memory of a session, with the rows of the graph that come from it alone."""
    if not delete(tx, request.id, _ACTION):
        raise Fault("not_found", f"There is no memory {request.id}")
    return Forgotten(request.id)


def delete(tx: Tx, number: int, action: str, *, is_final: bool = True) -> bool:
    """Deletes a memory with the rows of the graph that come from it alone; False if there is none.

    Unless it `is_final`, an import may bring the memory back.
    """
    deletions = tx.all("sessions.removal.delete_memory", memories.Deleted, id=number)
    graph.delete_of_memories(tx, record_deleted(tx, deletions, action, is_final=is_final))
    return bool(deletions)


def forget_session_entity(tx: Tx, request: Forget) -> Forgotten:
    """Delete an entity of the graph with its observations and relations; the memories that mention it stay."""
    text = graph.delete_entity(tx, request.id)
    if text is None:
        raise Fault("not_found", f"There is no entity {request.id}")
    history.append(tx, graph.ENTITY_SPACE, str(request.id), _ACTION, before=text)
    return Forgotten(request.id)


def forget_session_observation(tx: Tx, request: ForgetObservation) -> Forgotten:
    """Delete an observation of an entity of the graph; the memory that it comes from stays."""
    texts = graph.delete_observation(tx, request.id, request.content)
    if texts is None:
        raise Fault("not_found", f"The entity {request.id} has no such observation")
    before, after = texts
    history.append(tx, graph.ENTITY_SPACE, str(request.id), "changed", before=before, after=after)
    return Forgotten(request.id)


def record_deleted(tx: Tx, deletions: Sequence[memories.Deleted], action: str, *, is_final: bool = True) -> list[int]:
    """Takes deleted memories out of the index and the mentions, and into the history. Return their numbers."""
    for memory in deletions:
        index.drop(tx, memories.SPACE, str(memory.id))
    events = [(str(memory.id), memory.content, memories.deletion_reason(memory.session_id)) for memory in deletions]
    history.append_deleted(tx, memories.SPACE, action, events)
    if is_final:
        memories.keep_deleted(tx, deletions, action)
    numbers = [memory.id for memory in deletions]
    tx.run("sessions.removal.delete_mentions", memories=numbers)
    return numbers


def compose(text: str, _name: str) -> ToolCall:
    return ToolCall("remember", {"content": text, "session_id": "terminal", "kind": "note"})


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the entities of a memory; the relations of an entity, and the memories that mention it."""
    number = memories.number_of(key)
    if space == memories.SPACE:
        if tx.one("sessions.graph.memory_id", int, id=number) is None:
            return None
        forget = ToolCall("forget_session_memory", {"id": number})
        entities = tx.all("sessions.graph.entities_of_memory", int, memory_id=number, limit=MOST_LINKS)
        return Curation(
            "", None, forget, [Neighbour("tells of", True, graph.ENTITY_SPACE, str(entity)) for entity in entities]
        )
    if space != graph.ENTITY_SPACE or not graph.exists(tx, number):
        return None
    relations = tx.rows("sessions.graph.relations_of", id=number, limit=MOST_LINKS)
    mentioning = tx.all("sessions.graph.memories_of", int, entity_id=number, limit=MOST_LINKS)
    links = [
        Neighbour(name, source == number, graph.ENTITY_SPACE, str(target if source == number else source))
        for name, source, target in relations
    ]
    links += [Neighbour("tells of", False, memories.SPACE, str(memory)) for memory in mentioning]
    observations = {
        text: ToolCall("forget_session_observation", {"id": number, "content": text})
        for text in graph.observations_of(tx, number)
    }
    forget = ToolCall("forget_session_entity", {"id": number})
    return Curation("", None, forget, links, observations=observations)


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest handoff or summary and the newest decisions whose metadata names the project or its folder."""
    names = spellings([name for name in project if name])
    return [
        remark
        for part, kinds, most in _KINDS
        for remark in tx.all(
            "sessions.removal.of_project", _remark(part), kinds=kinds, names=names, newest=_NEWEST, limit=most
        )
    ]


def _remark(part: Part) -> Callable[[int, str], Remark]:
    return lambda number, content: Remark(part, memories.SPACE, str(number), content)


def keep_handoff(tx: Tx, handoff: Handoff) -> str:
    """Stores a handoff in place of the last handoff that a hook has stored of the same session."""
    handoffs = tx.all("sessions.removal.drop_handoffs", memories.Deleted, session_id=handoff.session, newest=_NEWEST)
    if handoffs:
        graph.delete_of_memories(tx, record_deleted(tx, handoffs, "replaced"))
    about = json_text({"hook": True, "project": handoff.project.root or handoff.project.name})
    first_line = summary.first_line(handoff.text)
    row = memories.MemoryRow(
        0, handoff.session, "handoff", handoff.text, first_line, "handoff", memories.PRIORITY, about, tx.now
    )
    return f"{memories.SPACE}/{memories.add(tx, row, tx.now)}"


TOOLS: tuple[Tool, ...] = (
    write(forget_session_memory, Hints("Forget memory", destructive=True), permission="write"),
    write(forget_session_entity, Hints("Forget entity", destructive=True), permission="write"),
    write(forget_session_observation, Hints("Forget observation", destructive=True), permission="write"),
)
