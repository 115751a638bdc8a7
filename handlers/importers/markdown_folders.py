"""Folders of Markdown files: basic-memory, Obsidian vaults, and bundles of the Open Knowledge Format."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from handlers.importers import markdown
from handlers.importers.importing import Read
from handlers.importers.note_names import NoteNames, entity_of, linked_entity, names_of, title_of
from handlers.importers.records import (
    MAX_TAGS,
    Item,
    LeftOut,
    clean_line,
    damaged,
    filled,
    fitting,
    list_in,
    mapping_in,
    tags_of,
    text_of,
    texts_in,
    time_in,
    utc_of,
)
from handlers.importers.rules import is_rules
from handlers.importers.text_files import TextFile, files_below, names_below, opened, read_or_name, root_of
from kernel.core.errors import Fault
from kernel.core.times import utc_time
from kernel.memories.import_records import PARTS, Record, Source

SUFFIXES = (".md", ".markdown")
_OF_FILES = (*SUFFIXES, ".txt")  # of a file that is a vault by itself
_RESERVED = {"index.md", "log.md"}  # of the Open Knowledge Format: lists, not concepts
_OKF, _OBSIDIAN = "okf", "obsidian"
_TAGGED = {_OBSIDIAN, "basic-memory"}  # whose texts hold tags
_TAG_KEYS = ("tags", "tag", "Tags")
_OWN_KEYS = {"title", "type", "permalink", "tags", "created", "modified", "description", "name", "key_points"}
_TEXTS, _TIMES = {"title", "type", "permalink", "description", "name"}, {"created", "modified"}
_OF_QUIPU = {"generated", "sources", "tool", "scope"}  # the source of a page of an export, no text of it
_OLD = {"deprecated", "archived", "deleted"}
_COLUMNS = {"category", "note_type"}  # of a page of an export
_HEAD_BYTES = 4096
_VERSION = "okf_version:"
_NO_PAGE = "is no Markdown file"
_MOST_LOOKED_AT = 50


class Vault(NamedTuple):
    """The folder that notes belong to: the names of its notes, its root, and its name in their keys.

    Without a root, all folders of its name are the same.
    """

    names: NoteNames
    root: str = ""
    name: str = ""


def open_folder(system: str, source: Source, _stack: ExitStack) -> Read:
    """Return the notes of a folder, with their observations and links."""
    path, is_file = source.path, is_note(source.path)
    if not path.is_dir() and not is_file:
        raise damaged(path.name, "is no folder and no text")
    folder = path.parent if is_file else path
    return partial(_items, system, folder, source.root or root_of(folder), path.name if is_file else "")


def is_okf(path: Path) -> bool:
    """Return whether a page of a folder names the version of the format, or its index lists pages that all have a type.

    Bundles need not name the version, and only a vault has settings of its program.
    """
    if not path.is_dir() or (path / ".obsidian").is_dir():
        return False
    index = _head(path, "index.md")
    heads = [_head(path, name) for name in _first_names(path) if not _is_reserved(_OKF, name)]
    if any(_VERSION in head for head in (index, *heads)):
        return True
    keys = [markdown.page(head).head for head in heads]
    return bool(index and keys) and all(text_of(head, "type") and "permalink" not in head for head in keys)


def is_basic_memory(path: Path) -> bool:
    """Return whether any of the first notes has a permalink, which only basic-memory writes."""
    return path.is_dir() and any("\npermalink:" in _head(path, name) for name in _first_names(path))


def is_note(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(_OF_FILES)


def is_obsidian(path: Path) -> bool:
    """Return whether a folder is a vault, or holds Markdown at all, as may a file, and no rules for agents."""
    if (path / ".obsidian").is_dir():
        return True
    return (is_note(path) or (path.is_dir() and bool(_first_names(path)))) and not is_rules(path)


def _first_names(path: Path) -> list[str]:
    return [*islice(names_below(path, *SUFFIXES), _MOST_LOOKED_AT)]


def _head(folder: Path, name: str) -> str:
    try:
        with opened(folder, name) as file:
            return file.read(_HEAD_BYTES).decode("utf-8-sig", "replace")
    except (OSError, Fault):
        return ""


def _items(system: str, folder: Path, root: str, file: str) -> Iterator[Item]:
    """Yield the items of a folder, or of a single file in it."""
    own = [file] if file else [name for name in names_below(folder, *SUFFIXES) if not _is_reserved(system, name)]
    vault = Vault(names_of(system, pages(folder, zip(own, own, strict=True))), root, Path(root).name)
    for name in own if file else files_below(folder, *SUFFIXES, others=_NO_PAGE if own else ""):
        if isinstance(name, LeftOut):
            yield name
        elif not file and _is_reserved(system, name):
            yield LeftOut("a list of other pages", name)
        else:
            yield from note_items(system, read_or_name(folder, name), vault)


def pages(folder: Path, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, markdown.Page]]:
    """Yield some files of a folder in their parts, each with its label."""
    for name, label in files:
        if isinstance(file := read_or_name(folder, name, label), TextFile):
            yield label, markdown.screened(label, file.text)[0]


def _is_reserved(system: str, name: str) -> bool:
    return system == _OKF and name.rpartition("/")[2] in _RESERVED


def note_items(system: str, file: TextFile | LeftOut, vault: Vault) -> Iterator[Item]:
    """Yield a note, its observations, and its links to other pages; a file that is left out as it is."""
    if isinstance(file, LeftOut):
        yield file
        return
    page, secrets = markdown.screened(file.name, file.text)
    yield from secrets
    title = title_of(file.name, page)
    origin = filled({"system": system, "id": text_of(page.head, "permalink"), "file": file.name})
    own = page.head if _is_of_quipu(page.head) else {}
    points = _points(system, page.head)
    told = {point.partition(": ")[0] for point in points if own}  # by an earlier export of the same memory
    points += [f"{key}: {_compact(value)}" for key, value in _unknown(page.head).items() if key not in told]
    note = Record(
        "brain",
        "note",
        f"{system}:{vault.name}/{file.name}" if vault.name else f"{system}:{file.name}",
        page.body.strip() or text_of(page.head, "description") or "\n".join(points),
        title=title,
        category=clean_line(text_of(own, "category") or file.name.rpartition("/")[0]),
        tags=tags_of(_tags(system, page)),
        created_at=_created(page.head, file),
        updated_at=_updated(page.head, file),
        origin=origin,
        details={
            "root": vault.root,
            "note_type": text_of(own, "note_type")
            or text_of(page.head, "type")
            or text_of(mapping_in(page.head.get("metadata")), "type"),
            "summary": text_of(page.head, "description"),
            "points": points,
        },
    )
    yield note
    entity, name = entity_of(vault.names, file.name)
    observations = [*markdown.observations(page.body)]
    links = [*_page_links(system, page)]
    if observations or any(link.target and linked_entity(vault.names, link.target, file.name) for link in links):
        yield _entity(note, entity, name)
    records = [*_observations(note, page, observations, entity)]
    yield from records
    keys = [record.key for record in records if record.kind == "memory"]
    yield note._replace(kind=PARTS, text="", details={**_root(note), "entity": entity, "keys": keys})
    yield from _links(note, file.name, vault, links)


def _tags(system: str, page: markdown.Page) -> list[str]:
    """Return the tags of a page: of its front matter, and in the text of a vault."""
    tags = [tag for key in _TAG_KEYS for tag in _texts(page.head.get(key), system)]
    return [tag.lstrip("#") for tag in tags] + ([*markdown.tags(page.body)] if system in _TAGGED else [])


def _page_links(system: str, page: markdown.Page) -> Iterator[markdown.Link]:
    """Yield the links in the text of a page, and of a vault those in its front matter, by the names of the values."""
    yield from markdown.links(page.body)
    for key, value in page.head.items() if system == _OBSIDIAN else ():
        yield from markdown.links_in(value, key)


def _texts(value: object, system: str) -> list[str]:
    """Return the tags in a value of front matter: numbers as text, and those of a vault apart at blanks too."""
    if items := list_in(value):
        return [_compact(tag) for tag in items if isinstance(tag, str | int | float)]
    if isinstance(value, dict):
        return []
    return texts_in(value.replace(" ", ",") if isinstance(value, str) and system == _OBSIDIAN else str(value or ""))


def _observations(
    note: Record, page: markdown.Page, observations: Iterable[markdown.Observation], entity: str
) -> Iterator[Record]:
    """Yield a memory for each observation, and a link from it to the subject of the page."""
    head = _unknown(page.head)
    states = {state.lower() for state in texts_in(page.head.get("status"))}
    is_old = bool(states & _OLD) or any(page.head.get(name) is True for name in _OLD)
    for observation in observations:
        own = tags_of([*observation.tags])
        start, end = markdown.span(observation.text)
        key = f"{note.key}#{observation.category}#{observation.text}"  # not its place, which an item above it moves
        yield note._replace(
            kind="memory",
            key=key,
            text=observation.text,
            title="",
            category=observation.category or "fact",
            tags=tags_of([*own], [*fitting(note.tags)])[: max(len(own), MAX_TAGS)],
            details={
                "root": note.details["root"],
                "metadata": filled({"context": observation.context, "note": note.title, "front_matter": head}),
                "valid_from": utc_time(start) if start else None,
                "valid_until": utc_time(end or text_of(page.head, "stale_after") or "-"),
                "status": "archived" if is_old else "active",
            },
        )
        yield _link(note, f"{key}>", ("memory", key), ("entity", entity), "part_of", "")


def _links(note: Record, path: str, vault: Vault, links: Iterable[markdown.Link]) -> Iterator[Item]:
    here, _ = entity_of(vault.names, path)
    for link in links:
        there = linked_entity(vault.names, link.target, path) if link.target else None
        if there is not None:
            yield _entity(note, *there)
            key = f"{note.key}>{link.relation}>{there[0]}"
            yield _link(note, key, ("entity", here), ("entity", there[0]), clean_line(link.relation), link.context)


def _entity(note: Record, key: str, name: str) -> Record:
    return note._replace(kind="entity", key=key, text="", title=name, category="concept", tags=(), details=_root(note))


def _link(
    note: Record, key: str, source: tuple[str, str], target: tuple[str, str], relation: str, context: str
) -> Record:
    ends = {"ends": (source, target), **_root(note)}
    return note._replace(kind="link", key=key, text=context, title=relation, category="", tags=(), details=ends)


def _root(note: Record) -> dict[str, Any]:
    return {"root": note.details["root"]}


def _created(head: dict[str, Any], file: TextFile) -> str:
    origin = mapping_in(head.get("generated"))
    return time_in(head, "created", "created_at", "date", "timestamp") or time_in(origin, "at") or file.modified


def _updated(head: dict[str, Any], file: TextFile) -> str:
    return time_in(head, "modified", "updated", "updated_at", "last_modified") or _created(head, file)


def _compact(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _points(system: str, head: dict[str, Any]) -> list[str]:
    """Return the key points of a page that Quipu exported, without the point that names the source of an import."""
    points = [point for point in list_in(head.get("key_points")) if isinstance(point, str)]
    return [point for point in points if point.strip() and not point.startswith(f"source: {system} ")]


def _unknown(head: dict[str, Any]) -> dict[str, Any]:
    own_keys = _OWN_KEYS | _OF_QUIPU | _COLUMNS if _is_of_quipu(head) else _OWN_KEYS
    return {key: value for key, value in head.items() if key not in own_keys or not _is_used(key, value)}


def _is_of_quipu(head: dict[str, Any]) -> bool:
    return text_of(mapping_in(head.get("generated")), "by").startswith("quipu/")


def _is_used(key: str, value: object) -> bool:
    """Tell whether the value of a key of ours has its place in a note."""
    if key in _TIMES:
        return bool(utc_of(value))
    if key == "tags":
        return not isinstance(value, dict)
    return key not in _TEXTS | _COLUMNS or isinstance(value, str) or value is None
