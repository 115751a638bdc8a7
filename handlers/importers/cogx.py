"""COGX: the exchange format of cognee, a folder or an archive of JSON lines that holds Zep, Letta and LangMem too."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType

from handlers.importers.archives import head_of
from handlers.importers.importing import Read
from handlers.importers.programs import unless_deleted
from handlers.importers.records import (
    Item,
    LeftOut,
    Values,
    clean_line,
    damaged,
    filled,
    is_deleted,
    left_out,
    list_in,
    mapping_in,
    share_in,
    tags_of,
    text_of,
    texts_in,
    time_in,
)
from handlers.importers.text_files import files_below, names_below, opened, read_text
from kernel.core.errors import Fault
from kernel.memories.import_records import Record, Source, shown
from kernel.memories.json_rows import Element, lines

SYSTEM = "cogx"
_MANIFEST = "manifest.json"
_HEAD_BYTES = 1 << 16
_MAJOR = "0"
# The function for the rows of a kind, and the members of which it makes a memory.
_Reader = tuple[Callable[[Values, Record], Iterator[Item]], frozenset[str]]


def is_archive(path: Path) -> bool:
    """Return whether a path is a folder with a manifest of COGX."""
    return b"cogx_version" in head_of(path / _MANIFEST, _HEAD_BYTES)


def open_archive(source: Source, _stack: ExitStack) -> Read:
    """Return the records of all files of the folder."""
    folder = source.path
    if not folder.is_dir():
        raise damaged(folder.name, "is no folder and no TAR archive")
    manifest = next(names_below(folder, _MANIFEST), None)
    if manifest is None:
        raise damaged(source.path.name, f"holds no {_MANIFEST}")
    head = mapping_in(read_text(folder, manifest).text)
    version = text_of(head, "cogx_version")
    if version.partition(".")[0] != _MAJOR:
        raise damaged(source.path.name, f"is of the version {version or 'unknown'} of COGX; 0.x is read")
    return partial(_items, (folder / manifest).parent, text_of(head, "source_system") or SYSTEM)


def _items(folder: Path, system: str) -> Iterator[Item]:
    for name in files_below(folder, ""):
        if isinstance(name, LeftOut):
            yield name
            continue
        if not name.endswith(".jsonl"):
            yield from () if name == _MANIFEST else (LeftOut("is no file with memories", name),)
            continue
        try:
            with opened(folder, name) as file:
                for element in lines(file, name):
                    yield from [element] if isinstance(element, LeftOut) else _of_row(element, system, name)
        except Fault as fault:
            yield left_out(fault)


def _of_row(element: Element, system: str, name: str) -> Iterator[Item]:
    row = element.row
    kind = text_of(row, "kind") or name.rpartition("/")[2].removesuffix(".jsonl")
    reader = _KINDS.get(kind.removesuffix("s"))
    if is_deleted(row):
        yield unless_deleted(row, base(row, system, kind, name))
    elif reader is None:
        yield LeftOut(f"of the kind {clean_line(kind, 40)}")
    else:
        make, members = reader
        yield from _other_members(row, members, element.place)
        yield from make(row, base(row, system, kind, name))


def _other_members(row: Values, members: frozenset[str], place: str) -> Iterator[LeftOut]:
    """Yield the members of a row that become no part of a memory; numbers are bounds and weights."""
    for member, value in filled(row).items():
        if member not in members and isinstance(value, str | list | dict):
            yield LeftOut(f"of the member {shown(member)}", place)


def base(row: Values, system: str, kind: str, name: str) -> Record:
    scope = mapping_in(row.get("scope"))
    program = text_of(row, "external_system")
    origin = {"system": system if program in {"", "unknown"} else program, "id": row.get("external_id"), "file": name}
    return Record(
        "brain",
        "memory",
        _key(system, row.get("external_id") or f"{name}:{text_of(row, 'content', 'name', 'label', 'fact_text')}"),
        text_of(row, "content"),
        tags=tags_of(row.get("categories")),
        created_at=time_in(row, "created_at"),
        updated_at=time_in(row, "updated_at"),
        origin=filled({**origin, "kind": kind}),
        details={"metadata": {**mapping_in(row.get("metadata")), **filled(scope)}},
    )


def _key(system: str, number: object) -> str:
    return f"{system}:{number}"


def _memory(_row: Values, base: Record) -> Iterator[Item]:
    yield base


def _document(row: Values, base: Record) -> Iterator[Item]:
    title = clean_line(text_of(row, "title") or base.text.strip().partition("\n")[0])
    yield base._replace(kind="note", title=title, details={"note_type": "document"})


def _episode(row: Values, base: Record) -> Iterator[Item]:
    """Yield a memory of a session for each turn."""
    scope = mapping_in(row.get("scope"))
    session = text_of(scope, "session_id", "run_id") or str(row.get("external_id") or "episode")
    for number, turn in enumerate(map(mapping_in, list_in(row.get("turns")))):
        yield from _other_members(turn, _TURN, f"{base.key}#{number}")
        yield base._replace(
            dialect="sessions",
            key=f"{base.key}#{number}",
            text=text_of(turn, "content"),
            place=f"{base.origin['system']}:{session}",
            title=clean_line(text_of(row, "title"), 200),
            category=clean_line(text_of(turn, "role"), 40),
            created_at=time_in(turn, "occurred_at") or base.created_at,
        )


def entity(row: Values, base: Record) -> Iterator[Item]:
    name = clean_line(text_of(row, "name"))
    metadata = {**base.details["metadata"], **mapping_in(row.get("attributes"))}
    details = {"metadata": metadata, "aliases": texts_in(row.get("aliases"))}
    category = clean_line(text_of(row, "entity_type"), 100)
    text = text_of(row, "description")
    if name:
        yield base._replace(kind="entity", title=name, text=text, category=category, details=details)
    else:
        yield LeftOut("without a name")


def fact(row: Values, base: Record) -> Iterator[Item]:
    """Yield a memory, and a link if both ends are entities of the source."""
    subject, predicate, target = (text_of(row, name) for name in ("subject_ref", "predicate", "object_ref"))
    details = {
        **base.details,
        "valid_from": time_in(row, "valid_at"),
        "valid_until": time_in(row, "invalid_at"),
        "confidence": share_in(row.get("confidence")),
    }
    text = text_of(row, "fact_text") or " ".join(part for part in (subject, predicate, target) if part)
    yield base._replace(text=text, category="fact", details=details)
    if subject and predicate and target:
        system = base.key.partition(":")[0]
        ends = (("entity", _key(system, subject)), ("entity", _key(system, target)))
        key = f"{base.key}>"
        yield base._replace(kind="link", key=key, title=clean_line(predicate, 100), text="", details={"ends": ends})


def _block(row: Values, base: Record) -> Iterator[Item]:
    label = text_of(row, "label") or "block"
    yield base._replace(dialect="paths", kind="memory block", place="blocks", key=label, text=text_of(row, "value"))


def _reader(make: Callable[[Values, Record], Iterator[Item]], *members: str) -> _Reader:
    return make, _EVERY_ROW.union(members)


_EVERY_ROW = frozenset({"kind", "external_system", "external_id", "created_at", "updated_at"})
_TURN = frozenset({"role", "content", "occurred_at"})
_MEMORY = _reader(_memory, "content", "categories", "metadata", "scope")
_ENTITY = _reader(entity, "name", "entity_type", "description", "aliases", "attributes", "metadata", "scope")
_FACT = ("subject_ref", "predicate", "object_ref", "fact_text", "valid_at", "invalid_at", "confidence")
_KINDS: Mapping[str, _Reader] = MappingProxyType(
    {
        "memorie": _MEMORY,
        "memory": _MEMORY,
        "document": _reader(_document, "content", "title", "categories"),
        "episode": _reader(_episode, "turns", "title", "categories", "metadata", "scope"),
        "entitie": _ENTITY,
        "entity": _ENTITY,
        "fact": _reader(fact, *_FACT, "categories", "metadata", "scope"),
        "memory_block": _reader(_block, "label", "value"),
    }
)
