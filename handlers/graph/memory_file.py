"""The file of the reference memory server, one entity or relation a line: `quipu import` and `quipu export`."""

import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast
from zipfile import BadZipFile, ZipFile, is_zipfile

import msgspec
from msgspec import Struct

from handlers.graph import changes
from handlers.graph.changes import MAX_NAME, MAX_OBSERVATIONS, RELATION_SPACE, composed_ends, relation_text
from handlers.graph.nodes import SPACE, Entity, each_entity, each_relation, relations_of, with_names
from kernel.core.errors import Fault
from kernel.core.text import composed, spellings
from kernel.memories.import_records import (
    DELETED,
    REDACTED,
    SECRET,
    STAYS,
    UNDO,
    Imported,
    LeftOut,
    Remarks,
    Source,
    shown,
    without_private,
)
from kernel.memories.json_rows import Element, rows
from kernel.security.rules.secrets import redact
from kernel.store import history
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import Tx

_Open = Callable[[], AbstractContextManager[IO[bytes]]]
_UNREADABLE = (OSError, EOFError, BadZipFile, NotImplementedError, RuntimeError, zlib.error)  # of archives too
_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_HEAD_BYTES = 1 << 16
_MOST_LOOKED_AT = 20  # rows of the beginning of a file
_MOST_LEVELS = 4  # of an answer: the response, its result, the list of parts, a part
_MEMBERS = ("entities", "relations")  # of an answer of `read_graph`, which some keep as a file
_WRAPPED = (b'{\\"entities\\":', b'{\\n  \\"entities\\":')  # within a text, as answers of tools have it
_KINDS = {"entity", "entities", "relation", "relations"}
# The names that forks and other programs give to members.
_ALIASES = {
    "name": ("name", "entityName", "id"),
    "entityType": ("entityType", "entity_type"),
    "from": ("from", "from_id", "from_entity", "source"),
    "to": ("to", "to_id", "to_entity", "target"),
    "relationType": ("relationType", "relation_type"),
}
_OF_ENTITY = {"type", "observations", *_ALIASES["name"], *_ALIASES["entityType"]}
_OF_RELATION = {"type", *_ALIASES["from"], *_ALIASES["to"], *_ALIASES["relationType"]}
_OBSERVATION_TEXTS = ("content", "text", "observation")


class _Entity(Struct, tag_field="type", tag="entity"):
    name: str
    entityType: str
    observations: list[str]


class _Relation(Struct, tag_field="type", tag="relation"):
    from_: str = msgspec.field(name="from")
    to: str
    relationType: str


_Item = _Entity | _Relation
_Deletions = dict[str, tuple[bool, set[int]]]
"""Of names whether somebody has deleted the entity here, and the lines of observations that were deleted."""


def _reading(path: Path, remarks: Remarks) -> Iterator[tuple[_Item, str]]:
    """Yield the items of a file with their places; the others are counted and named."""
    try:
        for row in (row for name, opened in _files(path) for row in _rows(name, opened)):
            for item in _items(row):
                if isinstance(item, LeftOut):
                    remarks.add(item)
                elif isinstance(row, Element):
                    yield item, row.place
    except _UNREADABLE as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise Fault("invalid", f"{shown(path.name)} cannot be read: {shown(reason)}.") from None


def _rows(name: str, opened: _Open | None) -> Iterator[Element | LeftOut]:
    """Yield the rows of a file; a damaged member of an archive costs no other."""
    if opened is None:
        yield LeftOut("is no file of JSON", name)
        return
    try:
        with opened() as file:
            yield from chain.from_iterable(map(_unwrapped, rows(file, name, _MEMBERS)))
    except _UNREADABLE as error:
        if not name:
            raise
        yield LeftOut(f"cannot be read: {shown(str(error))}", name, is_damage=True)


def _files(path: Path) -> Iterator[tuple[str, _Open | None]]:
    """Yield a file, unpacked if it is compressed, or those of a folder or ZIP archive by name, and None for no JSON."""
    if path.is_dir():
        for entry in sorted(path.iterdir()):
            is_json = entry.name.endswith(_ENDINGS) and entry.is_file() and not entry.is_symlink()
            yield entry.name, partial(_unpacked_member, entry.name, partial(entry.open, "rb")) if is_json else None
        return
    with path.open("rb") as file:
        start = file.read(4)
        is_archive = start == b"PK\3\4" or is_zipfile(file)
        file.seek(0)
        if is_archive:
            with ZipFile(file) as archive:
                for info in (info for info in archive.infolist() if not info.is_dir()):
                    is_json = info.filename.endswith(_ENDINGS)
                    opens = partial(_unpacked_member, info.filename, partial(archive.open, info))
                    yield info.filename, opens if is_json else None
        else:
            yield "", partial(_unpacked, file) if start.startswith(b"\x1f\x8b") else partial(nullcontext, file)


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(file))


def _unpacked_member(name: str, opens: Callable[[], IO[bytes]]) -> IO[bytes]:
    return _unpacked(opens()) if name.endswith(".gz") else opens()


def _tell_type(entity: _Entity, place: str, here: str | None, types: dict[str, str], remarks: Remarks) -> None:
    """Tell of an entity that is merged into an entity of another type, of the file or `here` in the store."""
    first = types.setdefault(composed(entity.name), entity.entityType if here is None else here)
    if first != entity.entityType:
        remarks.add(LeftOut("another type of a name, which keeps its first", place), "merged")


def import_graph(source: Source) -> Steps[Imported]:
    """Import entities, observations and relations in their order; existing rows stay as they are."""
    total = _checked(source)
    tx = yield
    begin_steps(tx, total)
    remarks, types, counts, deletions = Remarks(), dict[str, str](), _no_counts(), _Deletions()
    for item, place in _reading(source.path, remarks):
        tx = yield
        if isinstance(item, _Entity):
            here = _present(tx, item.name)
            _tell_type(item, place, here.entityType if here else None, types, remarks)
            if (rest := _left_of(tx, item, here, deletions, remarks)) is not None:
                _add_entity(tx, rest, counts)
        elif _is_left(tx, item, remarks):
            ends = changes.RelationEnds(item.from_, item.to, item.relationType)
            counts["relations"] += len(changes.create_relations(tx, changes.CreateRelations([ends])).relations)
        count_step(tx)
    return _imported(counts, remarks)


def preview_graph(tx: Tx, source: Source) -> Imported:
    """Count the additions of `import_graph`."""
    _checked(source)
    remarks, types, counts, deletions = Remarks(), dict[str, str](), _no_counts(), _Deletions()
    observations: dict[str, set[int]] = {}
    ends: set[tuple[str, str, str]] = set()
    for item, place in _reading(source.path, remarks):
        if isinstance(item, _Entity):
            name = composed(item.name)
            entity = None if name in observations else _present(tx, item.name)
            _tell_type(item, place, entity.entityType if entity else None, types, remarks)
            if (rest := _left_of(tx, item, entity, deletions, remarks)) is None:
                continue
            if name not in observations:
                counts["entities"] += entity is None
                observations[name] = _hashes(entity.observations if entity else ())
            new = _hashes(rest.observations) - observations[name]
            counts["observations"] += len(new)
            observations[name] |= new
        elif (triple := composed_ends((item.from_, item.to, item.relationType))) not in ends:
            ends.add(triple)
            if not _is_left(tx, item, remarks):
                continue
            here = relations_of(tx, spellings([item.from_]))
            counts["relations"] += triple not in (composed_ends((r.from_, r.to, r.relationType)) for r in here)
    return _imported(counts, remarks)


def _left_of(tx: Tx, item: _Entity, here: Entity | None, deletions: _Deletions, remarks: Remarks) -> _Entity | None:
    """Return an entity without the observations that were deleted here, or None if it was deleted itself."""
    name = composed(item.name)
    if name not in deletions:
        deletions[name] = _deletions_of(tx, SPACE, item.name)
    is_deleted, lines = deletions[name]
    if is_deleted and here is None:
        remarks.add(LeftOut(STAYS, item.name), DELETED)
        return None
    if not lines:
        return item
    present = _hashes(here.observations) if here else set[int]()
    rest = list[str]()
    for text in item.observations:
        if hash(composed(text)) in present or not _hashes(text.split("\n")) <= lines:
            rest.append(text)
        else:
            remarks.add(LeftOut(STAYS, text), DELETED)
    return msgspec.structs.replace(item, observations=rest)


def _is_left(tx: Tx, item: _Relation, remarks: Remarks) -> bool:
    """Return whether a relation was not deleted here."""
    text = relation_text((item.from_, item.to, item.relationType))
    is_deleted, _ = _deletions_of(tx, RELATION_SPACE, text)
    if is_deleted:
        remarks.add(LeftOut(STAYS, text), DELETED)
    return not is_deleted


def _deletions_of(tx: Tx, space: str, key: str) -> tuple[bool, set[int]]:
    """Return whether a key was deleted last, and the lines of texts that were deleted and not written again."""
    is_deleted, lines = False, set[int]()
    for name in history.known(tx, space, spellings([key])):
        for event in history.read(tx, space, name):
            before, after = (_hashes((text or "").split("\n")) for text in (event.before, event.after))
            is_deleted = event.after is None and event.tool != UNDO
            lines = lines - before - after if event.tool == UNDO else (lines | before) - after
    return is_deleted, lines


def _present(tx: Tx, name: str) -> Entity | None:
    entities = {entity.name: entity for entity in with_names(tx, spellings([name]))}
    return entities.get(name) or next(iter(entities.values()), None)


def _hashes(texts: Iterable[str]) -> set[int]:
    return {hash(composed(text)) for text in texts}


def is_memory_file(path: Path) -> bool:
    """Return whether a file begins as the files of the reference memory server do, in any form that they have.

    A folder is one if it holds nothing else than such files by the names that a fork gives to its databases.
    """
    try:
        if path.is_dir() and not all(entry.match("memory*.json*") for entry in path.iterdir()):
            return False
        return any(_is_of_graph(opened) for _, opened in islice(_files(path), _MOST_LOOKED_AT) if opened is not None)
    except _UNREADABLE:
        return False


def _is_of_graph(opened: _Open) -> bool:
    try:
        with opened() as file:
            head = file.read(_HEAD_BYTES)
    except _UNREADABLE:
        return False
    unwrapped = chain.from_iterable(map(_unwrapped, rows(io.BytesIO(head), members=_MEMBERS)))
    first = islice(unwrapped, _MOST_LOOKED_AT)
    is_wrapped = any(mark in head for mark in _WRAPPED)
    return is_wrapped or any(not isinstance(item, LeftOut) for row in first for item in _items(row, strict=True))


def export_graph(tx: Tx) -> Iterator[bytes]:
    for entity in each_entity(tx):
        yield msgspec.json.encode(_Entity(entity.name, entity.entityType, entity.observations))
    for relation in each_relation(tx):
        yield msgspec.json.encode(_Relation(relation.from_, relation.to, relation.relationType))


def _no_counts() -> dict[str, int]:
    return {"entities": 0, "observations": 0, "relations": 0}


def _checked(source: Source) -> int:
    remarks = Remarks()
    total = sum(1 for _ in _reading(source.path, remarks))
    remarks.check(source, total)
    return total


def _imported(counts: dict[str, int], remarks: Remarks) -> Imported:
    if count := remarks.count_of(DELETED):
        counts[DELETED] = count
    if remarks.left_out:
        counts["left out"] = remarks.left_out
    return Imported(counts, remarks.lines())


def _add_entity(tx: Tx, item: _Entity, counts: dict[str, int]) -> None:
    first, rest = item.observations[:MAX_OBSERVATIONS], item.observations
    request = changes.CreateEntities([changes.NewEntity(item.name, item.entityType, first)])
    entities = changes.create_entities(tx, request).entities
    counts["entities"] += len(entities)
    counts["observations"] += sum(len(entity.observations) for entity in entities)
    for at in range(MAX_OBSERVATIONS if entities else 0, len(rest), MAX_OBSERVATIONS):
        more = changes.NewObservations(item.name, rest[at : at + MAX_OBSERVATIONS])
        (result,) = changes.add_observations(tx, changes.AddObservations([more])).results
        counts["observations"] += len(result.addedObservations)


def _unwrapped(row: Element | LeftOut, level: int = 0) -> Iterator[Element | LeftOut]:
    """Yield the rows of an answer of a tool, as clients keep it: a response, a result, or its parts with text."""
    value: dict[str, Any] = {} if isinstance(row, LeftOut) else row.row
    inner = value.get("result") or value.get("structuredContent") or (not value.get("name") and value.get("content"))
    text = value.get("text") if value.get("type") == "text" else None
    data = text.encode() if isinstance(text, str) and text.lstrip().startswith(("{", "[")) else b""
    data = msgspec.json.encode(inner) if isinstance(inner, dict | list) else data
    if data and isinstance(row, Element) and level < _MOST_LEVELS:
        for part in rows(io.BytesIO(data), row.place, _MEMBERS):
            yield from _unwrapped(part, level + 1)
    else:
        yield row


def _items(row: Element | LeftOut, *, strict: bool = False) -> Iterator[_Item | LeftOut]:
    """Yield the item of a row, and its parts that are left out; a `strict` reading takes no row of another program."""
    if isinstance(row, LeftOut):
        yield row
        return
    value = row.row
    kind = value.get("type")
    if not isinstance(kind, str):  # agents write entities into the list of relations too
        kind = "entity" if "entityType" in value else row.member
    if kind in {"entity", "entities"} or (kind not in _KINDS and "entityType" in value):
        yield from _entity(value, row.place)
    elif kind in _KINDS or "relationType" in value:
        names = _texts(value, ("from", "to", "relationType"))
        yield LeftOut(names, row.place, is_damage=True) if isinstance(names, str) else _Relation(*names)
        yield from _other_members(value, _OF_RELATION, row.place)
    elif kind.startswith("_") and not strict:
        yield LeftOut("a mark of the program", row.place)
    else:
        yield LeftOut("is no entity and no relation", row.place, is_damage=True)


def _entity(value: Mapping[str, Any], place: str) -> Iterator[_Item | LeftOut]:
    names = _texts(value, ("name", "entityType"))
    if isinstance(names, str):
        yield LeftOut(names, place, is_damage=True)
        return
    observations: object = value.get("observations")
    observations = [] if observations is None else observations
    observation_list = cast("list[object]", observations if isinstance(observations, list) else [observations])
    texts = [text for text in map(_observation, observation_list) if text is not None]
    public = [*map(without_private, texts)]
    safe = [redact(text, REDACTED) for text in public]
    kept = [new for new, old in zip(safe, texts, strict=True) if new.strip() or new == old]
    yield _Entity(names[0], names[1], kept)
    if safe != public or REDACTED in names[0]:
        yield LeftOut(SECRET, f"{place}: {shown(names[0])}")
    yield from [LeftOut("an observation of private text", place)] * (len(texts) - len(kept))
    yield from [LeftOut("an observation without text", place, is_damage=True)] * (len(observation_list) - len(texts))
    yield from _other_members(value, _OF_ENTITY, place)
    for observation in observation_list:
        if isinstance(observation, dict):
            yield from _other_members(cast("dict[str, Any]", observation), _OBSERVATION_TEXTS, place)


def _other_members(value: Mapping[str, Any], known: Collection[str], place: str) -> Iterator[LeftOut]:
    """Yield the members of a row that no entity and no relation has, such as the times of forks."""
    others = (name for name, part in value.items() if name not in known and part not in (None, "", [], {}))
    yield from (LeftOut(f"of the member {shown(name)}", place) for name in others)


def _texts(value: Mapping[str, Any], names: tuple[str, ...]) -> list[str] | str:
    """Return the texts of a row, or their fault."""
    members = {name: [value[alias] for alias in _ALIASES[name] if isinstance(value.get(alias), str)] for name in names}
    missing = [name for name in names if not members[name]]
    if missing:
        return f"no {' and no '.join(missing)}"
    texts = [redact(members[name][0], REDACTED) for name in names]
    return f"a name or type of more than {MAX_NAME} characters" if max(map(len, texts)) > MAX_NAME else texts


def _observation(value: object) -> str | None:
    if isinstance(value, dict):
        row = cast("dict[str, object]", value)
        value = next((row[name] for name in _OBSERVATION_TEXTS if name in row), None)
    if isinstance(value, int | float):
        return msgspec.json.encode(value).decode()
    return value if isinstance(value, str) else None
