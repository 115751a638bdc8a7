"""The graph of entities, observations and relations, and its four tools (seed 002, `CODE_MEMORY_ENABLE_GRAPH`)."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.sessions.settings import MAX_ID, MAX_RESULTS, option
from kernel.calls.dialect import Concept, IndexSource
from kernel.calls.tools import Hints, Tool, read, write
from kernel.core.errors import Fault
from kernel.core.text import spellings
from kernel.search import index
from kernel.security.rules.secrets import sensitive_field
from kernel.store import history
from kernel.store.long_work import STEP_ROWS, Steps
from kernel.store.transaction import Tx

ENTITY_SPACE = "sessions:entity"
_GENERIC_TYPE = "entity"
_SETTING = "CODE_MEMORY_ENABLE_GRAPH"
_MAX_RELATIONS = 1000  # of one result
_MAX_OF_MEMORIES = (
    64_000  # characters of observations that memories hold too: each memory that mentions it adds its own
)
_SCORE_DIGITS = 6

MemoryId = Annotated[
    Annotated[int, Meta(ge=1, le=MAX_ID)] | None, Meta(description="Memory this comes from; it goes with that memory")
]
Name = Annotated[str, Meta(description="Name of the entity, case matters", max_length=512)]


class UpsertEntity(Struct, forbid_unknown_fields=True):
    """An entity, and observations of it."""

    name: Name
    entity_type: Annotated[
        str, Meta(description="Type; `entity` never replaces a type that is more telling", max_length=128)
    ] = "entity"
    observations_json: Annotated[
        Annotated[str, Meta(max_length=262_144)] | None,
        Meta(description="JSON array of strings, added to what is there"),
    ] = None
    memory_id: MemoryId = None


class AddRelation(Struct, forbid_unknown_fields=True):
    """Two entities, and the relation from the first to the second."""

    source: Annotated[str, Meta(description="Name of the entity the relation starts from", max_length=512)]
    target: Annotated[str, Meta(description="Name of the entity it leads to", max_length=512)]
    relation_type: Annotated[
        str, Meta(description="Relation name in active voice, for example depends_on, implements", max_length=128)
    ]
    memory_id: MemoryId = None


class GetEntity(Struct, forbid_unknown_fields=True):
    name: Name


class GetContextGraph(Struct, forbid_unknown_fields=True):
    query: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        Meta(description="What to look for among the entities, by meaning; the newest ones if omitted"),
    ] = None
    limit: Annotated[int, Meta(description="Most entities", ge=0, le=MAX_RESULTS)] = 10


class EntityUpserted(Struct, omit_defaults=True):
    """Result of upsert_entity: `skipped` with a `reason`, or `disabled` with the `setting` that enables the graph."""

    status: Literal["ok", "skipped", "disabled"]
    entity_id: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class RelationAdded(Struct, omit_defaults=True):
    """Result of add_relation: `skipped` with a `reason`, or `disabled` with the `setting` that enables the graph."""

    status: Literal["ok", "skipped", "disabled"]
    relation_id: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class GraphRelation(Struct):
    """One relation, by the names of its ends."""

    type: str
    source: str
    target: str


class EntityDetails(Struct, omit_defaults=True):
    """Result of get_entity, or only a `status`; `setting` is what enables the graph.

    `observations` are the newest 50, newest first; `memory_ids` are the memories they come from, in the same order.
    """

    status: Literal["not_found", "disabled"] | UnsetType = UNSET
    id: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    observations: list[str] | UnsetType = UNSET
    memory_ids: list[int | None] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class GraphEntity(Struct, omit_defaults=True):
    """One entity of a graph; `score` is the distance of its meaning from the query, lower is better."""

    id: int
    name: str
    entity_type: str
    created_at: str
    score: float | UnsetType = UNSET


class ContextGraph(Struct, omit_defaults=True):
    """Result of get_context_graph: entities, and the newest 1000 relations that touch them; or `disabled` with the
    `setting` that enables the graph.
    """

    status: Literal["disabled"] | UnsetType = UNSET
    entities: list[GraphEntity] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class _EntityText(NamedTuple):
    id: int
    name: str
    entity_type: str
    stated: str | None
    of_memories: str | None


def upsert_entity(tx: Tx, request: UpsertEntity) -> EntityUpserted:
    """Create an entity of the graph, or add observations to the one of that name and set its type.
    Needs CODE_MEMORY_ENABLE_GRAPH=1.
    """
    if not option(tx, "ENABLE_GRAPH"):
        return EntityUpserted("disabled", setting=_SETTING)
    name, kind = checked_name("name", request.name), checked_name("entity_type", request.entity_type or _GENERIC_TYPE)
    observations = parse_observations(request.observations_json)
    memory = _existing_memory(tx, request.memory_id)
    fields = {"name": name, "entity_type": kind, "observations_json": "\n".join(observations)}
    if sensitive := sensitive_field(fields):
        return EntityUpserted("skipped", reason=f"sensitive: {sensitive}")
    # An entity that a caller writes without observations is a statement of its own, even with a memory.
    is_stated = memory is None or not observations
    number = add_entity_row(tx, name, kind, observations, memory, tx.now, stated=is_stated)
    index_entities(tx, [number])
    history.append(tx, ENTITY_SPACE, str(number), "upserted", after="\n".join([f"{name} ({kind})", *observations]))
    return EntityUpserted("ok", number)


def add_relation(tx: Tx, request: AddRelation) -> RelationAdded:
    """Relate two entities of the graph, which are made if they are missing; the same relation is kept once.
    Needs CODE_MEMORY_ENABLE_GRAPH=1.
    """
    if not option(tx, "ENABLE_GRAPH"):
        return RelationAdded("disabled", setting=_SETTING)
    source, target = checked_name("source", request.source), checked_name("target", request.target)
    kind = checked_name("relation_type", request.relation_type)
    memory = _existing_memory(tx, request.memory_id)
    if sensitive := sensitive_field({"source": source, "target": target, "relation_type": kind}):
        return RelationAdded("skipped", reason=f"sensitive: {sensitive}")
    ends = [
        add_entity_row(tx, name, _GENERIC_TYPE, [], memory, tx.now, stated=memory is None) for name in (source, target)
    ]
    number = add_relation_row(tx, ends[0], ends[1], kind, memory, tx.now)
    index_entities(tx, ends)
    history.append(tx, ENTITY_SPACE, str(ends[0]), "related", after=f"{source} {kind} {target}")
    tx.add_target((ENTITY_SPACE, str(ends[1]), "related"))  # an undo may have to take it out of the index
    return RelationAdded("ok", number)


def get_entity(tx: Tx, request: GetEntity) -> EntityDetails:
    """Fetch an entity of the graph with its newest observations, the memories these come from, and its relations.
    Needs CODE_MEMORY_ENABLE_GRAPH=1.
    """
    if not option(tx, "ENABLE_GRAPH"):
        return EntityDetails("disabled", setting=_SETTING)
    name = _name_as_stored(tx, checked_name("name", request.name))
    entity = tx.one("sessions.graph.by_name", _entity_row, name=name)
    if entity is None:
        return EntityDetails("not_found")
    newest = dict(tx.rows("sessions.graph.observations", entity_id=entity.id))
    relations = _relations_of(tx, [entity.id])
    columns = (entity.id, entity.name, entity.entity_type, entity.created_at)
    return EntityDetails(UNSET, *columns, [*newest], [*newest.values()], relations)


def get_context_graph(tx: Tx, request: GetContextGraph) -> ContextGraph:
    """Show the newest entities of the graph, or with a query those nearest to it in meaning, with their relations.
    Needs CODE_MEMORY_ENABLE_GRAPH=1.
    """
    if not option(tx, "ENABLE_GRAPH"):
        return ContextGraph("disabled", setting=_SETTING)
    if request.query and request.query.strip():
        nodes = _search_entities(tx, request.query.strip(), request.limit)
    else:
        nodes = tx.all("sessions.graph.newest", _entity_row, limit=request.limit)
    return ContextGraph(UNSET, nodes, _relations_of(tx, [node.id for node in nodes]))


def add_mentions(tx: Tx, mentions: Sequence[tuple[str, str]], text: str, memory: int, at: str) -> None:
    """Adds an entity for each mention of a memory, given as (name, type), with `text` as its observation."""
    spelled = [(_name_as_stored(tx, name), kind) for name, kind in mentions]
    ids = sorted(set(tx.all("sessions.graph.add_mentioned", int, rows=spelled, now=at)))
    rows = [(number, text) for number in ids]
    tx.run("sessions.graph.add_observations", rows=rows, memory_id=memory, now=at)
    index_entities(tx, ids)
    for number in ids:
        tx.add_target((ENTITY_SPACE, str(number), "mentioned"))  # an undo may have to take it out of the index


def add_entity_row(
    tx: Tx, name: str, kind: str, observations: Sequence[str], memory: int | None, at: str, *, stated: bool
) -> int:
    """Writes one entity without indexing it; if `stated`, it outlives the memories that mention it. Its id."""
    columns = {"name": _name_as_stored(tx, name), "entity_type": kind, "stated": stated, "now": at}
    number = tx.one("sessions.graph.add_entity", int, **columns) or 0
    if observations:
        rows = [(number, text) for text in observations]
        tx.run("sessions.graph.add_observations", rows=rows, memory_id=memory, now=at)
    return number


def add_relation_row(tx: Tx, source: int, target: int, kind: str, memory: int | None, at: str) -> int:
    """Writes one relation, which is deleted with its memory, if any. Its id."""
    ends = {"source_id": source, "target_id": target, "relation_type": kind}
    number = tx.one("sessions.graph.add_relation", int, **ends, stated=memory is None, now=at)
    if memory is not None:
        tx.run("sessions.graph.add_relation_memory", memory_id=memory, relation_id=number)
    return number or 0


def index_entities(tx: Tx, ids: Sequence[int]) -> None:
    for row in tx.all("sessions.graph.index_texts", _EntityText, ids=ids):
        index.put(tx, ENTITY_SPACE, str(row.id), _index_text(row))


def delete_of_memories(tx: Tx, memories: Sequence[int], operation: str | None = None) -> None:
    """Delete the rows of these memories alone; with an operation the history keeps the entities."""
    ids = tx.all("sessions.graph.entities_of_memories", int, memories=memories) if operation else []
    texts = {row.id: _index_text(row) for row in tx.each("sessions.graph.index_texts", _EntityText, ids=ids)}
    # Observations and relations first: an entity is deleted only when nothing refers to it any more.
    affected_ids = set(tx.all("sessions.graph.delete_observations", int, memories=memories))
    relations = tx.all("sessions.graph.delete_relation_memories", int, memories=memories)
    for ends in tx.rows("sessions.graph.delete_unsupported_relations", ids=relations):
        affected_ids.update(ends)
    deleted_ids = set(tx.all("sessions.graph.delete_unsupported_entities", int, ids=sorted(affected_ids)))
    for number in deleted_ids:
        index.drop(tx, ENTITY_SPACE, str(number))
        if operation:
            history.append(tx, ENTITY_SPACE, str(number), operation, before=texts.get(number))
    index_entities(tx, sorted(affected_ids - deleted_ids))


def exists(tx: Tx, number: int) -> bool:
    return bool(tx.all("sessions.graph.by_ids", _entity_row, ids=[number]))


def observations_of(tx: Tx, number: int) -> list[str]:
    return [content for content, _ in tx.rows("sessions.graph.observations", entity_id=number)]


def delete_observation(tx: Tx, number: int, text: str) -> tuple[str, str] | None:
    """Deletes an observation of an entity. Return the text of the entity before and after; None for no such text."""
    before = tx.one("sessions.graph.index_texts", _EntityText, ids=[number])
    if before is None or not tx.run("sessions.graph.delete_observation", id=number, content=text):
        return None
    index_entities(tx, [number])
    after = tx.one("sessions.graph.index_texts", _EntityText, ids=[number]) or before
    return _index_text(before), _index_text(after)


def delete_entity(tx: Tx, number: int) -> str | None:
    """Deletes an entity with its observations and relations. Return its text; None if there is none."""
    row = tx.one("sessions.graph.index_texts", _EntityText, ids=[number])
    if row is None:
        return None
    tx.run("sessions.graph.delete_observations_of", id=number)
    tx.run("sessions.graph.delete_relation_memories_of", id=number)
    tx.run("sessions.graph.delete_relations_of", id=number)
    tx.run("sessions.graph.delete_entity", id=number)
    index.drop(tx, ENTITY_SPACE, str(number))
    return _index_text(row)


def newest(tx: Tx) -> int:
    return tx.one("sessions.graph.newest_entity", int) or 0


def clear_steps(tx: Tx, operation: str, upto: int) -> Steps[None]:
    """Delete the entities up to a number with their observations and relations; the history keeps the entities."""
    while numbers := tx.all("sessions.graph.first_entities", int, upto=upto, limit=STEP_ROWS):
        for number in numbers:
            text = delete_entity(tx, number)
            history.append(tx, ENTITY_SPACE, str(number), operation, before=text)
        tx = yield


def sources(tx: Tx) -> Iterator[IndexSource]:
    return map(
        _source, tx.each("sessions.graph.index_texts", _EntityText, ids=tx.all("sessions.graph.entity_ids", int))
    )


def sources_of(tx: Tx, entities: Sequence[int], memories: Sequence[int]) -> Iterator[IndexSource]:
    ids = tx.all("sessions.graph.entities_of_memories", int, memories=memories)
    return map(_source, tx.each("sessions.graph.index_texts", _EntityText, ids=sorted({*entities, *ids})))


def _source(row: _EntityText) -> IndexSource:
    concept = Concept(row.name, body=_index_text(row).partition("\n")[2])
    return IndexSource(ENTITY_SPACE, str(row.id), "", _index_text(row), concept=concept)


def checked_name(field: str, text: str) -> str:
    """Return the name without surrounding blanks; raises a Fault for an empty or unprintable name."""
    name = text.strip()
    if not name:
        raise Fault("invalid", f"{field} is required")
    if not name.isprintable():
        raise Fault("invalid", f"{field} holds a character that cannot be printed")
    return name


def _name_as_stored(tx: Tx, name: str) -> str:
    """Return a name as the graph has it that it has in any normal form."""
    forms = spellings([name])
    stored = tx.all("sessions.graph.spelled", str, names=forms) if len(forms) > 1 else forms
    return next((form for form in forms if form in stored), name)


def parse_observations(text: str | None) -> list[str]:
    """Return the observations in a JSON text: an array of strings, one string or null; raises a Fault for anything
    else.
    """
    if text is None or text.strip() in {"", "null"}:
        return []
    try:
        msgspec.json.decode(text, type=msgspec.Raw)  # a text that is no JSON is said to be none
        value = msgspec.json.decode(text, type=list[str] | str)
    except msgspec.ValidationError:
        raise Fault("invalid", "observations_json must be a JSON array of strings") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Fault("invalid", f"observations_json is not valid JSON: {error}") from None
    texts = [value] if isinstance(value, str) else value
    return list(dict.fromkeys(item for item in texts if item.strip()))


def _existing_memory(tx: Tx, number: int | None) -> int | None:
    if number is not None and tx.one("sessions.graph.memory_id", int, id=number) is None:
        raise Fault("not_found", f"memory_id {number} does not exist")
    return number


def _search_entities(tx: Tx, query: str, limit: int) -> list[GraphEntity]:
    """Return the entities of this name, then the hits of the index; if there are none, a match of parts of names."""
    name = _name_as_stored(tx, query)
    same_name = tx.all("sessions.graph.by_name_nocase", _entity_row, name=name, limit=limit)
    hits = index.search(
        tx,
        query,
        within=[(ENTITY_SPACE, "")],
        limit=max(1, limit),
        lexical=option(tx, "ENABLE_FTS"),
        semantic=option(tx, "ENABLE_VEC"),
    )
    hits.sort(key=lambda hit: (hit.distance or 0.0, -(hit.text_rank or 0.0), -int(hit.id)))
    scores = {int(hit.id): round(hit.distance or 0.0, _SCORE_DIGITS) for hit in hits}
    matches = tx.all("sessions.graph.by_ids", _entity_row, ids=list(scores))
    nodes = [msgspec.structs.replace(node, score=0.0) for node in same_name]
    nodes += [msgspec.structs.replace(node, score=scores[node.id]) for node in matches if node not in same_name]
    if not nodes:
        rows = tx.all("sessions.graph.name_contains", _entity_row, part=query, limit=limit)
        nodes = [msgspec.structs.replace(node, score=0.0) for node in rows]
    return nodes[:limit]


def _relations_of(tx: Tx, ids: Sequence[int]) -> list[GraphRelation]:
    return tx.all("sessions.graph.relations", GraphRelation, ids=ids, limit=_MAX_RELATIONS)


def _entity_row(number: int, name: str, kind: str, created_at: str) -> GraphEntity:
    return GraphEntity(number, name, kind, created_at[:19].replace("T", " "))


def _index_text(row: _EntityText) -> str:
    observations = (row.stated, (row.of_memories or "")[:_MAX_OF_MEMORIES])
    return "\n".join((row.name, row.entity_type, "\n".join(text for text in observations if text)))


TOOLS: tuple[Tool, ...] = (
    write(upsert_entity, Hints("Upsert entity", idempotent=True), permission="write", kept_arms=(UpsertEntity,)),
    write(add_relation, Hints("Add relation", idempotent=True), permission="write", kept_arms=(AddRelation,)),
    read(get_entity, Hints("Get entity"), permission="read"),
    read(get_context_graph, Hints("Get context graph"), permission="read"),
)
