"""The tool remember, and the rows of memories (seed 002)."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.sessions import entity_extraction, graph, summary
from handlers.sessions.settings import option
from kernel.calls.dialect import Concept, IndexSource
from kernel.calls.tools import Hints, Hooks, Schema, Tool, write
from kernel.core.errors import Fault
from kernel.core.text import is_of_long_numbers, spellings
from kernel.core.times import later
from kernel.memories.import_records import stable_id
from kernel.search import index
from kernel.security.rules.secrets import find_secret, sensitive_field
from kernel.store import history
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import Tx

SPACE = "sessions"
DELETED_SPACE = f"{SPACE}:imported"  # of the history: imported memories that have been deleted
DUPLICATE_WINDOW_SECONDS = 300  # the time of the contract
PRIORITY = 3  # by default, from 1, the most important, to 5
_IMPORTED = '"from":{'  # in the metadata of imported memories
_OF_SESSION = "of session "
_MAX_METADATA_DEPTH = 32  # levels of objects and lists
_DECODE_ERRORS = (msgspec.DecodeError, RecursionError)

Session = Annotated[
    Annotated[str, Meta(max_length=256)] | None,
    Meta(description="Session scope key, for example opencode:2026-01-04; what one session stores no other finds"),
]


class Remember(Struct, forbid_unknown_fields=True):
    content: Annotated[str, Meta(description="The raw text to store", max_length=1_048_576)]
    session_id: Session = None
    kind: Annotated[
        Annotated[str, Meta(max_length=256)] | None, Meta(description="Category, for example decision, bugfix or note")
    ] = None
    summary: Annotated[
        Annotated[str, Meta(max_length=10_000)] | None,
        Meta(description="Short summary; made from the content if omitted"),
    ] = None
    tags: Annotated[
        Annotated[str, Meta(max_length=2000)] | None,
        Meta(description="Tags separated by commas, for example auth,jwt,bugfix; made from the content if omitted"),
    ] = None
    priority: Annotated[int | None, Meta(description="1 (most important) to 5 (least); 3 if omitted")] = None
    metadata_json: Annotated[
        Annotated[str, Meta(max_length=65_536)] | None, Meta(description="JSON object encoded as a string")
    ] = None


class Remembered(Struct, omit_defaults=True):
    """Result of remember: the memory as it is stored, or `status` skipped with the `reason`, such as `duplicate of 12`
    or `sensitive: content`.
    """

    status: Literal["skipped"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    id: int | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    kind: str | UnsetType | None = UNSET
    tags: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET


class MemoryRow(NamedTuple):
    """One memory as it is stored; `metadata` is JSON, `created_at` ISO 8601 UTC with milliseconds."""

    id: int
    session_id: str
    kind: str | None
    content: str
    summary: str
    tags: str
    priority: int
    metadata: str
    created_at: str


class Deleted(NamedTuple):
    id: int
    session_id: str
    content: str
    hash: str
    metadata: str
    created_at: str


def with_session(request: type[Struct]) -> Schema:
    """Return the input schema with `session_id` required and not nullable, as in the contract.

    The request type leaves it optional, because `CODE_MEMORY_SESSION_ID` may supply it.
    """
    schema = msgspec.json.schema(request)["$defs"][request.__name__]
    session_id = schema["properties"]["session_id"]
    schema["properties"]["session_id"] = {**session_id["anyOf"][0], "description": session_id["description"]}
    return {
        "type": "object",
        "properties": schema["properties"],
        "required": [*schema["required"], "session_id"],
        "additionalProperties": False,
    }


def remember(tx: Tx, request: Remember) -> Remembered:
    """Store a memory of a session: a decision, a fix, a fact. Give a summary and tags if you can. Text that holds keys,
    passwords or tokens, and what the session stored within the last five minutes, is skipped; the answer says why.
    """
    session = resolve_session(tx, request.session_id)
    metadata = normalized_metadata(request.metadata_json)
    if not request.content.strip():
        raise Fault("invalid", "content is required")
    if sensitive := sensitive_field(_searchable_fields(request, metadata)):
        return Remembered("skipped", f"sensitive: {sensitive}")
    summary_text, tags = request.summary or "", request.tags or ""
    row = MemoryRow(
        0,
        session,
        request.kind,
        request.content,
        summary_text if summary_text.strip() else summary.first_line(request.content),
        tags if tags.strip(", ") else summary.default_tags(request.content),
        clamped_priority(request.priority),
        metadata,
        tx.now,
    )
    since = time_before(tx.now, DUPLICATE_WINDOW_SECONDS)
    number = add(tx, row, since)
    if number is None:
        earlier = tx.one(
            "sessions.memories.duplicate", int, session_id=session, hash=content_hash(row.content), since=since
        )
        return Remembered("skipped", f"duplicate of {earlier}")
    return Remembered(
        id=number, summary=row.summary, session_id=session, kind=row.kind, tags=row.tags, priority=row.priority
    )


def add(
    tx: Tx, row: MemoryRow, since: str, origin: index.Origin | None = None, reason: str | None = None
) -> int | None:
    """Stores a memory with its index document and mentions. Its id; None for a duplicate after `since`.

    `origin` is that of a memory which was not written by the current call, `reason` that of the event in its history.
    """
    number = tx.one("sessions.memories.add", int, **row._asdict(), hash=content_hash(row.content), since=since)
    if number is None:
        return None
    words = extra_index_text(row)
    index.put(tx, SPACE, str(number), row.content, scope=row.session_id, words=words, origin=origin)
    at, by = (origin.created_at, origin.writer) if origin else (None, None)
    history.append(tx, SPACE, str(number), "remembered", after=row.content, reason=reason, at=at, by=by)
    mentions = entity_extraction.extract_mentions(row.content)
    if mentions:
        tx.run("sessions.memories.add_mentions", memory_id=number, rows=mentions)
    if mentions and option(tx, "ENABLE_GRAPH") and tx.may_write_all_of("sessions"):  # entities are of all sessions
        graph.add_mentions(
            tx, [(mention.name, mention.entity_type) for mention in mentions], row.summary, number, row.created_at
        )
    return number


def sources(tx: Tx) -> Iterator[IndexSource]:
    return map(_source, tx.each("sessions.memories.all_for_index", MemoryRow))


def sources_of(tx: Tx, ids: Sequence[int]) -> Iterator[IndexSource]:
    return map(_source, tx.each("sessions.memories.some_for_index", MemoryRow, ids=ids))


def _source(row: MemoryRow) -> IndexSource:
    summary_text, tags = _given_summary(row), _given_tags(row).split(",")
    columns = {"kind": row.kind, "priority": row.priority, "metadata": row.metadata}
    fields = {name: value for name, value in columns.items() if value not in (None, PRIORITY, "{}")}
    concept = Concept("", summary_text, row.content, [tag.strip() for tag in tags if tag.strip()], fields=fields)
    return IndexSource(SPACE, str(row.id), row.session_id, row.content, extra_index_text(row), concept)


def keep_deleted(tx: Tx, memories: Sequence[Deleted], action: str) -> None:
    """Notes which of these memories an import brought, so that another import leaves them out."""
    writer = tx.writer
    for memory in memories:
        if _IMPORTED in memory.metadata:
            for place in (memory.session_id, of_program(memory.session_id, memory.created_at)):
                event = (DELETED_SPACE, deleted_key(place, memory.hash), action, None, None, None, *writer)
                tx.defer(history.flush, (*event, tx.now), 0)  # no target of the call: the memory is one already


def of_program(session: str, at: str) -> str:
    """Return a name for any session of the program that a session comes from, at a time."""
    return f"{session.partition(':')[0]}:{at}"


def deleted_key(place: str, digest: str) -> str:
    """Return the key of a text that was deleted in a session, or in any of a program at a time."""
    return stable_id("gone", place, digest)


def deletion_reason(session: str) -> str:
    """Return the reason of a deletion: it holds the session, which nothing else does then."""
    return f"{_OF_SESSION}{session}"


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    """Return the indexed texts of versions; in the index a memory never leaves its session."""
    return [PastSource(_session(text), text.text) if text.space == SPACE else None for text in texts]


def _session(text: PastText) -> str:
    reason = text.reason or ""
    if text.scope is not None:
        return text.scope
    return reason.removeprefix(_OF_SESSION) if reason.startswith(_OF_SESSION) else ""


def tagged(tx: Tx, tags: Sequence[str]) -> list[tuple[str, str]]:
    return [(SPACE, str(number)) for number in tx.all("sessions.memories.tagged", int, tags=tags)]


def number_of(key: str) -> int:
    """Return the id that a key names; 0 for the key of no memory, as a file may have it."""
    return int(key) if key.isascii() and key.isdigit() and len(key) < 16 else 0


def extra_index_text(row: MemoryRow) -> str:
    """Return the words indexed beside the content: kind, summary, tags and metadata, unless generated or empty."""
    parts = (row.kind, _given_summary(row), _given_tags(row), row.metadata if row.metadata != "{}" else "")
    return "\n".join(part for part in parts if part)


def _given_summary(row: MemoryRow) -> str:
    return row.summary if row.summary != summary.first_line(row.content) else ""


def _given_tags(row: MemoryRow) -> str:
    return row.tags if row.tags != summary.default_tags(row.content) else ""


def resolve_session(tx: Tx, session_id: str | None) -> str:
    """Return the session of a call: its argument, or the configured one; raises a Fault if there is neither."""
    session = (session_id or "").strip() or option(tx, "SESSION_ID")
    if not session:
        raise Fault("invalid", "session_id is required")
    if not session.isprintable():
        raise Fault("invalid", "session_id holds a character that cannot be printed")
    return session_as_stored(tx, session)


def session_as_stored(tx: Tx, session: str) -> str:
    """Return a session as the memories have it that it has in any normal form."""
    forms = spellings([session])
    stored = tx.all("sessions.memories.spelled", str, sessions=forms) if len(forms) > 1 else forms
    return next((form for form in forms if form in stored), session)


def normalized_metadata(metadata: str | None) -> str:
    """Return the metadata as compact JSON text, `{}` for null or none; raises a Fault for other than a JSON object."""
    if metadata is None or metadata.strip() in {"", "null"}:
        return "{}"
    if is_of_long_numbers(metadata.encode()):
        raise Fault("invalid", "metadata_json has more digits than a request may have")
    try:
        value: Any = msgspec.json.decode(metadata)
        text = msgspec.json.encode(value).decode()
    except _DECODE_ERRORS as error:
        raise Fault("invalid", f"metadata_json is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fault("invalid", "metadata_json must be a JSON object")
    if _nesting_depth(cast("Any", value)) > _MAX_METADATA_DEPTH:
        raise Fault("invalid", f"metadata_json is nested more than {_MAX_METADATA_DEPTH} levels deep")
    return text


def content_hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def time_before(now: str, seconds: float) -> str:
    return later(now, -timedelta(seconds=seconds))


def _searchable_fields(request: Remember, metadata: str) -> dict[str, str]:
    """Return the texts of a call that must not hold a secret, by the name of their parameter."""
    return {
        "content": request.content,
        "kind": request.kind or "",
        "summary": request.summary or "",
        "tags": request.tags or "",
        "metadata_json": metadata,
    }


def clamped_priority(priority: int | None) -> int:
    return PRIORITY if priority is None else max(1, min(5, priority))


def _nesting_depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        here, depth = waiting.pop()
        deepest = max(deepest, depth)
        inner: list[Any] = list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else []
        waiting.extend((part, depth + 1) for part in inner)
    return deepest


def _prepare_summary(settings: Mapping[str, Any], request: Remember) -> Callable[[Tx], Remember] | None:
    """Return the generation of a missing summary by the configured model, too slow to run in the write lock."""
    model = None if request.summary else summary.configured_model(settings)
    texts = _searchable_fields(request, request.metadata_json or "")
    if model is None or not request.content.strip() or find_secret([*texts.values()]):
        return None
    return lambda _tx: msgspec.structs.replace(request, summary=summary.model_summary(model, request.content))


def _texts_to_embed(request: Remember) -> list[str]:
    return [request.content]


# A prepared call takes a slower path through the queue, so only servers that can load a summary model use it.
_PREPARE = _prepare_summary if summary.has_library() else None

TOOLS: tuple[Tool, ...] = (
    write(
        remember,
        Hints("Remember"),
        permission="write",
        hooks=Hooks(texts=_texts_to_embed, prepare=_PREPARE),
        input=with_session(Remember),
    ),
)
