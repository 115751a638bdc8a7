"""Programs that keep memories in SQLite and export JSON: claude-mem, engram, mcp-memory-service and mem0.

The rows of a table and the elements of an export become records by the same function.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeGuard

from handlers.importers.archives import Part, head_of, parts_of, rows_of, unknown_member
from handlers.importers.chats import texts_in_parts
from handlers.importers.importing import Read
from handlers.importers.records import (
    CREATED,
    MAX_TEXT,
    UPDATED_AT,
    Item,
    LeftOut,
    Values,
    clean_line,
    damaged,
    filled,
    headed,
    id_of,
    is_deleted,
    is_set_aside,
    list_in,
    mapping_in,
    other_members,
    share_in,
    shown,
    tags_of,
    text_of,
    texts_in,
    time_in,
    utc_of,
)
from kernel.core.errors import Fault
from kernel.engines.foreign_file import ExternalDatabase, open_external
from kernel.memories.import_records import GONE, Digests, Record, Source
from kernel.memories.json_rows import Element

CLAUDE_MEM, ENGRAM, MEMORY_SERVICE, MEM0 = "claude-mem", "engram", "mcp-memory-service", "mem0"
_MAGIC = b"SQLite format 3\0"
_SCHEMA_BYTES = 16 << 20  # the schema of a file was written before its rows
_HEAD_BYTES = 1 << 20
_CREATED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[\"'`\[]?(\w{1,64})")
_PROMPTS = ("user_prompts", "prompts")
_CHUNKS = ("chunks/*.jsonl.gz", "chunks/*.jsonl", "chunks/*.json")
_OLDER = LeftOut("repeated, or an older version")
_OF_NO_MEMORY = LeftOut("an event without the id of its memory")
_A_PROMPT, _DELETED = LeftOut("a prompt, not a memory"), LeftOut("deleted there")
_NO_TIME = "9" * 17  # of a deletion without a time, which is later than any


class Export(NamedTuple):
    """An export in JSON: `members` have the rows, the first those of a list without a name; `files` are exports in a
    folder or archive. `items(element, name)` are the items of an element. A text in a list is the member `text` of it.
    """

    members: tuple[str, ...]
    files: tuple[str, ...]
    items: Callable[[Element, str], Iterable[Item]]
    text: str = ""


class Program(NamedTuple):
    """The tables of a program with the columns they need, and how its rows become items; the first table must be there.

    `rows(database, name)` are the items of a database. The first table is read by its column `indexed`, if it is named.
    A database of the program has the tables `signs` and the text `column` in its first MiB, and not the table `other`,
    which only a similar program has.
    """

    export: Export
    signs: tuple[str, ...]
    tables: Mapping[str, tuple[str, ...]]
    rows: Callable[[ExternalDatabase, str], Iterator[Item]]
    indexed: str = ""
    other: str = ""
    column: bytes = b""


def is_database(program: Program, path: Path) -> bool:
    if not path.is_file() or not _has_tables(path, *program.signs) or program.column not in head_of(path, _HEAD_BYTES):
        return False
    return not (program.other and _has_tables(path, program.other))


def open_database(program: Program, source: Source, stack: ExitStack) -> Read:
    """Return the items of a copy of the file, with its tables read to their end."""
    database = stack.enter_context(open_external(source.path, source.copies))
    main = next(iter(program.tables))
    if main not in database.tables():
        raise damaged(source.path.name, f"has no table {main}")
    database.check(program.tables)
    if program.indexed:
        database.index(main, program.indexed)
    return partial(program.rows, database, source.path.name)


def open_export(export: Export, source: Source, stack: ExitStack) -> Read:
    """Return the items of an export in JSON."""
    folder = source.path / f".{ENGRAM}"
    inner = source._replace(path=folder) if export.files == _CHUNKS and folder.is_dir() else source
    parts = parts_of(inner, stack)
    if not any(isinstance(part, Part) and _is_export(export, part) for part in parts):
        raise Fault("invalid", f"{shown(source.path.name)} holds nothing that can be imported.")
    return newest(partial(_export_items, export, parts, source.path.name))


def newest(read: Read) -> Read:
    """Return the items of an export, of several versions of a record the last changed that may be a memory.

    The first reading, which checks the source, yields all versions, and finds out which of them are the last.
    """
    return partial(_newest, read, list[Mapping[int, int]]())


def _newest(read: Read, found_out: list[Mapping[int, int]]) -> Iterator[Item]:
    if not found_out:
        repeated = set[int]()
        yield from _with_repeated(read(), repeated)
        found_out.append(_last_versions(read, repeated))
        return
    (last,) = found_out
    for number, item in enumerate(read()):
        rank = last.get(_digest(item)) if _is_version(item) else None
        if not _is_version(item) or rank in (None, _rank(item, number)):
            yield item
        elif item.kind == GONE:
            yield _DELETED
        else:
            yield _OLDER._replace(name=item.title or str(item.origin.get("id", "")))


def _with_repeated(items: Iterator[Item], repeated: set[int]) -> Iterator[Item]:
    digests = Digests()
    for item in items:
        if _is_version(item):
            digest = _digest(item)
            (repeated if digest in digests else digests).add(digest)
        yield item


def _last_versions(read: Read, repeated: Collection[int]) -> Mapping[int, int]:
    """Return the rank of the last version of each record that has several; most have a single version."""
    ranks = dict[int, int]()
    for number, item in enumerate(read()) if repeated else ():
        if _is_version(item) and (digest := _digest(item)) in repeated:
            ranks[digest] = max(ranks.get(digest, 0), _rank(item, number))
    return ranks


def _is_export(export: Export, part: Part) -> bool:
    return not part.name or any(PurePosixPath(part.name).match(pattern) for pattern in export.files)


def _is_version(item: Item) -> TypeGuard[Record]:
    return isinstance(item, Record) and (0 < len(item.text.strip()) <= MAX_TEXT or item.kind != "memory")


def unless_deleted(row: Values, item: Record) -> Record:
    """Return the record of a row, of a deleted row one that only stands for the deletion."""
    deleted_at = time_in(row, "deleted_at") or item.updated_at or _NO_TIME
    return item._replace(kind=GONE, text="", updated_at=deleted_at) if is_deleted(row) else item


def _digest(item: Record) -> int:
    return hash((item.key, "memory" if item.kind == GONE else item.kind))


def _rank(item: Record, number: int) -> int:
    """Return a number that is larger the later a record was changed, or stands in the source."""
    digits = "".join(filter(str.isdecimal, item.updated_at or item.created_at))
    return (int(digits or 0) << 32) + number


def _export_items(export: Export, parts: Sequence[Part | LeftOut], name: str) -> Iterator[Item]:
    for part in parts:
        if isinstance(part, LeftOut):
            yield part
        elif not _is_export(export, part):
            yield LeftOut("is no file with memories", part.name)
        else:
            for element in rows_of(part, export.members, export.text):
                if isinstance(element, LeftOut):
                    yield element
                elif element.member in {"", *export.members}:
                    yield from export.items(element._replace(member=element.member or export.members[0]), name)
                else:
                    yield from unknown_member(element)


def is_sqlite(path: Path) -> bool:
    """Return whether a file begins as a SQLite database does."""
    return head_of(path, len(_MAGIC)) == _MAGIC


def _has_tables(path: Path, *names: str) -> bool:
    """Return whether a SQLite file has these tables, by the text of its schema; the file is not opened as a
    database.
    """
    head = head_of(path, _SCHEMA_BYTES)
    log = path.with_name(f"{path.name}-wal")
    if head.startswith(_MAGIC) and log.is_file():
        head += head_of(log, _SCHEMA_BYTES)
    return head.startswith(_MAGIC) and {name.encode() for name in names} <= set(_CREATED.findall(head))


_KINDS = {"observations": "observation", "session_summaries": "summary", "summaries": "summary"}
_PRIORITIES = {"decision": 1, "bugfix": 2, "discovery": 2}
_SENSITIVE = ("security_", "sensitive")
_KEPT = ("files_read", "files_modified", "files_edited")
_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_TIMES = ("created_at", "created_at_epoch", "updated_at")
_CLAUDE_MEM_PLACED = (
    *(*_PARTS, *_TIMES, *_KEPT, "id", "memory_session_id", "type", "title", "subtitle", "narrative", "text", "facts"),
    *("concepts", "project", "metadata"),
)


def _claude_mem_rows(database: ExternalDatabase, name: str) -> Iterator[Item]:
    platforms = {
        str(row.get("memory_session_id")): str(row.get("platform_source") or "")
        for row in database.rows("sdk_sessions")
    }
    for table in ("observations", "session_summaries", "user_prompts"):
        for row in database.rows(table, "id"):
            yield _claude_mem_item(table, row, name, platforms)


def _claude_mem_items(element: Element, name: str) -> Iterator[Item]:
    yield _claude_mem_item(element.member, element.row, name, {})


def _claude_mem_item(table: str, row: Values, name: str, platforms: Mapping[str, str]) -> Item:
    if table in _PROMPTS:
        return _A_PROMPT
    kind = _KINDS[table]
    is_summary = kind == "summary"
    category = kind if is_summary else text_of(row, "type") or kind
    if category.startswith(_SENSITIVE):
        return LeftOut(f"of the type {clean_line(category, 40)}")
    session = text_of(row, "memory_session_id", "content_session_id")
    title = text_of(row, "request") if is_summary else text_of(row, "title")
    metadata = {**other_members(row, *_CLAUDE_MEM_PLACED), **filled({key: texts_in(row.get(key)) for key in _KEPT})}
    item = Record(
        "sessions",
        "memory",
        f"{CLAUDE_MEM}:{kind}:{row.get('id')}:{session}:{row.get('created_at_epoch') or row.get('created_at')}",
        _summary_text(row) if is_summary else _observation_text(row),
        place=f"{CLAUDE_MEM}:{session or 'unknown'}",
        title=clean_line(title, 200),
        category=category,
        tags=tags_of(row.get("concepts"), [text_of(row, "project"), platforms.get(session, "")]),
        created_at=time_in(row, "created_at_epoch", "created_at"),
        origin=filled({"system": CLAUDE_MEM, "table": kind, "id": row.get("id"), "file": name}),
        details={"priority": _PRIORITIES.get(category, 3), "metadata": {**mapping_in(row.get("metadata")), **metadata}},
    )
    return unless_deleted(row, item)


def _observation_text(row: Values) -> str:
    text = text_of(row, "facts")
    facts = [
        f"- {fact}" for fact in ([text] if text and not text.lstrip().startswith("[") else texts_in(row.get("facts")))
    ]
    parts = [text_of(row, "title"), text_of(row, "subtitle"), text_of(row, "narrative", "text"), "\n".join(facts)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _summary_text(row: Values) -> str:
    return headed({name.replace("_", " ").capitalize(): text_of(row, name) for name in _PARTS})


_MUTATIONS = "mutations"
_ENGRAM_PLACED = (
    *("id", "sync_id", "session_id", "type", "title", "content", "project", "created_at", "updated_at"),
    "is_deleted",
)


def _engram_rows(database: ExternalDatabase, name: str) -> Iterator[Item]:
    for table in ("observations", *_PROMPTS):
        for row in database.rows(table, "id"):
            yield from _engram_items(Element(table, row, table), name)


def _engram_items(element: Element, name: str) -> Iterator[Item]:
    if element.member == _MUTATIONS:
        yield _engram_mutation(element.row, name)
    else:
        yield _A_PROMPT if element.member in _PROMPTS else _engram_observation(element.row, name)


def _engram_mutation(row: Values, name: str) -> Item:
    """Return the observation that a change in a chunk brings or deletes."""
    entity, at = text_of(row, "entity"), text_of(row, "occurred_at")
    if entity != "observation":
        return LeftOut(f"a change of a {clean_line(entity, 40)}")
    times = {"created_at": at, "updated_at": at, "is_deleted": text_of(row, "op") == "delete"}
    return _engram_observation({"sync_id": row.get("entity_key"), **times, **mapping_in(row.get("payload"))}, name)


def _engram_observation(row: Values, name: str) -> Record:
    number = text_of(row, "sync_id")
    title, session = clean_line(text_of(row, "title"), 200), text_of(row, "session_id")
    content = text_of(row, "content")
    item = Record(
        "sessions",
        "memory",
        f"{ENGRAM}:{number}" if number else f"{ENGRAM}:{row.get('id')}:{session}",
        f"{title}\n\n{content}" if title and not content.startswith(title) else content,
        place=f"{ENGRAM}:{session or 'unknown'}",
        title=title,
        category=clean_line(text_of(row, "type"), 40),
        tags=tags_of([text_of(row, "topic_key"), text_of(row, "project")]),
        created_at=time_in(row, "created_at"),
        updated_at=time_in(row, "updated_at"),
        origin=filled({"system": ENGRAM, "id": number or row.get("id"), "file": name}),
        details={
            "metadata": other_members(row, *_ENGRAM_PLACED),
            **({"has_own_id": True, "has_no_session": not session} if number else {}),
        },
    )
    return unless_deleted(row, item)


_BOTH_WAYS = {"related", "contradicts"}
_SERVICE_PLACED = (
    *("id", "content", "content_hash", "memory_type", "tags", "created_at", "created_at_iso", "updated_at"),
    *("updated_at_iso", "store", "metadata", "version", "parent_id", "confidence", "superseded_by"),
)


def _service_rows(database: ExternalDatabase, name: str) -> Iterator[Item]:
    for row in database.rows("memories", "id"):
        yield from _service_memory(row, name)
    for row in database.rows("memory_graph"):
        relation = clean_line(text_of(row, "relationship_type") or "related", 100)
        yield _service_link(text_of(row, "source_hash"), text_of(row, "target_hash"), relation, name, row)


def _service_items(element: Element, name: str) -> Iterator[Item]:
    yield from _service_memory(element.row, name)


def _service_memory(row: Values, name: str) -> Iterator[Item]:
    metadata = mapping_in(row.get("metadata"))
    digest, newer = text_of(row, "content_hash") or text_of(row, "content"), text_of(row, "superseded_by")
    item = Record(
        "brain",
        "memory",
        _service_key(digest),
        text_of(row, "content"),
        category=clean_line(text_of(row, "memory_type"), 100),
        tags=tags_of(texts_in(row.get("tags"))),
        created_at=time_in(row, "created_at", "created_at_iso"),
        updated_at=time_in(row, "updated_at", "updated_at_iso"),
        origin=filled({"system": MEMORY_SERVICE, "id": digest, "file": name, "store": text_of(row, "store")}),
        details={
            "metadata": {
                **other_members(row, *_SERVICE_PLACED),
                **metadata,
                **filled({"version": row.get("version"), "parent": row.get("parent_id")}),
            },
            "confidence": share_in(row.get("confidence")),
            "status": "superseded" if newer else "active",
            "superseded_by": _service_key(newer) if newer else None,
        },
    )
    yield unless_deleted(row, item)
    if newer and not is_deleted(row):
        yield _service_link(newer, digest, "supersedes", name, row)


def _service_link(source: str, target: str, relation: str, name: str, row: Values) -> Record:
    return Record(
        "brain",
        "link",
        f"{_service_key(source)}>{relation}>{target}",
        text_of(row, "connection_types"),
        title=relation,
        created_at=time_in(row, "created_at"),
        origin={"system": MEMORY_SERVICE, "file": name},
        details={
            "ends": (("memory", _service_key(source)), ("memory", _service_key(target))),
            "strength": share_in(row.get("similarity")),
            "bidirectional": relation in _BOTH_WAYS,
        },
    )


def _service_key(digest: str) -> str:
    return f"{MEMORY_SERVICE}:{digest}"


_LISTS = ("results", "memories", "items")
_MEM0_TEXTS = ("memory", "text", "data", "content")
_MEM0_PLACED = (
    *(
        *_MEM0_TEXTS,
        *CREATED,
        *UPDATED_AT,
        "id",
        "_id",
        "hash",
        "metadata",
        "category",
        "type",
        "categories",
        "tags",
    ),
    *("expiration_date", "text_lemmatized", "memory_id", "old_memory", "new_memory", "event", "is_deleted"),
)
_NO_TEXT = f"has none of {', '.join(_MEM0_TEXTS)}"
_OPERATIONS = {"ADD": "created", "UPDATE": "updated", "DELETE": "deleted"}


def _mem0_items(element: Element, name: str) -> Iterator[Item]:
    row = element.row
    if "memory_id" in row and "new_memory" in row:  # of its history: the last event of a memory is its state
        row = {**row, "id": row["memory_id"], "memory": row.get("new_memory") or row.get("old_memory")}
    inner = next(
        (part for part in map(mapping_in, row.values()) if any(list_in(part.get(name)) for name in _LISTS)), {}
    )
    if inner and not text_of(row, *_MEM0_TEXTS):  # an answer within that of a service
        for part in (part for name in _LISTS for part in list_in(inner.get(name))):
            value = part if isinstance(part, dict) else {"memory": part}
            yield from _mem0_items(Element("", value, element.place), name)
    elif row and all(isinstance(part, dict) for part in row.values()):  # memories by their ids
        for number, part in row.items():
            inner = Element("", {"id": number, **mapping_in(part)}, f"{element.place}, {number}")
            yield from _mem0_items(inner, name)
    elif any(name in row for name in _MEM0_TEXTS) or is_deleted(row):
        yield unless_deleted(row, _mem0_memory(row, name))
    else:
        yield from _mem0_categories(element, name)


def _mem0_categories(element: Element, name: str) -> Iterator[Item]:
    """Yield the texts of an object of nothing but lists, by category; a text in two lists is two memories."""
    parts = [(category, part) for category, parts in element.row.items() for part in list_in(parts)]
    if not all(isinstance(part, list) for part in element.row.values()) or not any(
        isinstance(part, str) for _, part in parts
    ):
        yield LeftOut(_NO_TEXT, element.place, is_damage=True)
        return
    for category, part in parts:
        if isinstance(part, str):
            row = {"id": f"{category}: {part}", "memory": part, "category": category}
            yield _mem0_memory(row, name)._replace(origin={"system": MEM0, "file": name})
        else:
            yield LeftOut("is no text", f"{element.place}, {clean_line(category, 40)}", is_damage=True)


def _mem0_memory(row: Values, name: str) -> Record:
    in_parts = filter(None, (texts_in_parts(row.get(name)) for name in _MEM0_TEXTS))
    text = text_of(row, *_MEM0_TEXTS) or next(in_parts, "")
    number = id_of(row, "id", "_id", "hash") or text
    metadata = {**mapping_in(row.get("metadata")), **other_members(row, *_MEM0_PLACED)}
    return Record(
        "brain",
        "memory",
        f"{MEM0}:{number}",
        text,
        category=clean_line(str(metadata.get("category") or text_of(row, "category", "type")), 100),
        tags=tags_of(row.get("categories"), row.get("tags")),
        created_at=time_in(row, *CREATED),
        updated_at=time_in(row, *UPDATED_AT),
        origin=filled({"system": MEM0, "id": id_of(row, "id", "_id"), "hash": text_of(row, "hash"), "file": name}),
        details={
            "metadata": metadata,
            "valid_until": utc_of(row.get("expiration_date")),
            "status": "archived" if is_set_aside(row) else "active",
        },
    )


def _mem0_rows(database: ExternalDatabase, name: str) -> Iterator[Item]:
    for number in database.values("history", "memory_id"):
        rows = sorted(database.rows_with("history", "memory_id", number), key=_when)
        if not number:
            yield from repeat(_OF_NO_MEMORY, len(rows))
            continue
        events = [
            (
                _OPERATIONS.get(text_of(row, "event").upper(), "updated"),
                text_of(row, "old_memory") or None,
                text_of(row, "new_memory") or None,
                _when(row),
                text_of(row, "actor_id"),
            )
            for row in rows
        ]
        last = rows[-1]
        is_gone = events[-1][0] == "deleted" or bool(last.get("is_deleted"))
        yield Record(
            "brain",
            GONE if is_gone else "memory",
            f"{MEM0}:{number}",
            "" if is_gone else text_of(last, "new_memory", "old_memory"),
            created_at=_when(rows[0]),
            updated_at=_when(last),
            origin={"system": MEM0, "id": number, "file": name},
            details={"events": events, "metadata": filled({key: last.get(key) for key in ("actor_id", "role")})},
        )


def _when(row: Values) -> str:
    return time_in(row, "updated_at", "created_at")


PROGRAMS: Mapping[str, Program] = {
    CLAUDE_MEM: Program(
        Export((*_KINDS, *_PROMPTS), (), _claude_mem_items),
        ("sdk_sessions", "observations"),
        {"observations": ("id",), "session_summaries": ("id",), "user_prompts": (), "sdk_sessions": ()},
        _claude_mem_rows,
    ),
    ENGRAM: Program(
        Export(("observations", _MUTATIONS, *_PROMPTS), _CHUNKS, _engram_items),
        ("observations", "sessions"),
        {"observations": ("id", "content"), "user_prompts": (), "prompts": ()},
        _engram_rows,
        other="sdk_sessions",
    ),
    MEMORY_SERVICE: Program(
        Export(("memories",), (), _service_items),
        ("memories",),
        {"memories": ("content_hash", "content"), "memory_graph": ("source_hash", "target_hash")},
        _service_rows,
        column=b"content_hash",
    ),
    MEM0: Program(
        Export(_LISTS, ("memories.json", "memories.jsonl", "memories.jsonl.gz"), _mem0_items, "memory"),
        ("history",),
        {"history": ("memory_id", "event")},
        _mem0_rows,
        indexed="memory_id",
        other="doc",
    ),
}
