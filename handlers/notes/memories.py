"""The tools memory_list_types and memory_remember (seed 001)."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from handlers.notes import files, front_matter, journal, memory_types, note_file, sync
from handlers.notes.files import File
from handlers.notes.note_file import ParsedMemory
from handlers.notes.projects import (
    ABSOLUTE_PATH_HINT,
    Project,
    absolute,
    candidate_files,
    is_ambiguous,
    projects,
    select_projects,
)
from handlers.notes.safe_fs import LINK_ERRNOS
from handlers.notes.scan import SUFFIX, is_memory
from handlers.notes.schemas import ListTypes, Remember, Remembered, Types
from handlers.notes.slug import kebab, slug
from kernel.calls.settings import setting
from kernel.calls.tools import Hints, Hooks, Tool, exclusive, read
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

MAX_CONTENT_BYTES = 1_048_576  # 1 MB, so that one memory cannot make every recall too large
_OUTSIDE = "Write operations only allowed within .mnemonics/"
_MAX_REPLACE_ATTEMPTS = 3  # against editors that write the file at the same time
_MAX_COMPARED_FILES = 16  # files of the same title that are read to detect a retry
_MAX_TAGS, _TAG_WIDTH = 64, 100


class _ExistingFile(NamedTuple):
    """The file to update."""

    project: Project
    path: str
    file: File


def memory_list_types(tx: Tx, request: ListTypes) -> Types:
    """List the types a memory can have, and the one to use when no other fits."""
    known = projects(tx)
    more = [project.name for project in known] if len(known) > 1 else msgspec.UNSET
    return Types(list(_known_types(tx, known).values()), memory_types.FALLBACK, memory_types.FALLBACK_ABOUT, more)


def memory_remember(tx: Tx, request: Remember) -> Remembered:
    """Create a memory, or update the one at filePath. Search first with memory_recall: update a memory that is similar
    rather than create another one. The title must not repeat the type; when no type fits, use context.
    """
    known = select_projects(projects(tx), request.project)
    tags = _tags(request.tags)
    if not request.content or len(request.content.encode()) > MAX_CONTENT_BYTES:
        raise Fault("invalid", "content is required, and must not be larger than 1 MB")
    if request.filePath:
        spot = _find_file(tx, known, request.filePath)
        return _update(tx, spot, request.content, _resolve_type(tx, known, request.memoryType), tags)
    memory = ParsedMemory(
        _title(request.title), _resolve_type(tx, known, request.memoryType), tags, tx.now, tx.now, request.content
    )
    return _create(tx, known[0], memory)


def remember_texts(request: Remember) -> list[str]:
    """Return the text that memory_remember embeds, if the request alone determines it."""
    if request.filePath or not isinstance(request.tags, list):
        return []
    return [note_file.index_text_of(request.title.strip(), [tag.strip() for tag in request.tags], request.content)]


def _create(tx: Tx, project: Project, memory: ParsedMemory) -> Remembered:
    # Only our own folder is created: a missing project folder may be an unmounted disk.
    if project.managed:
        project.root.mkdir(mode=0o700, exist_ok=True)
    if not project.root.is_dir():
        raise Fault("storage", f"The folder {project.root} of the project {project.name} is not there.")
    journal.settle(tx, project)
    for number, path in enumerate(_paths_for(memory.memory_type, slug(memory.title))):
        try:
            if files.exists(project.root, path):
                if number < _MAX_COMPARED_FILES and _is_same_memory(project, path, memory):
                    return _remembered(project, path, memory, update=False)
                continue
            data = note_file.encode_exact(note_file.new_text(path, memory))
            file = journal.write(tx, project, path, data)
        except OSError as error:
            raise files.file_fault(error, absolute(project, path)) from None
        if file is not None:
            sync.record(tx, project.name, path, file, None, "created")
            return _remembered(project, path, memory, update=False)
    raise Fault("conflict", "Too many memories of this type have this title.")


def _is_same_memory(project: Project, path: str, memory: ParsedMemory) -> bool:
    """Return whether a file holds this memory already, as after a retry of a call that succeeded."""
    _, found = next(files.read_all(project.root, [path]), (path, None))
    timeless = {"created": "", "modified": ""}
    return found is not None and note_file.parse_file(path, found)._replace(**timeless) == memory._replace(**timeless)


def _update(tx: Tx, spot: _ExistingFile, content: str, kind: str, tags: tuple[str, ...]) -> Remembered:
    project, path = spot.project, spot.path
    try:
        for _ in range(_MAX_REPLACE_ATTEMPTS):
            before = files.read(project.root, path)
            old = note_file.parse_file(path, before)
            target = path if old.memory_type == kind else _target(project, path, kind)
            memory = old._replace(memory_type=kind, tags=tags or old.tags, modified=tx.now, content=content)
            text = note_file.updated_text(note_file.decode_exact(before.data), target, old, memory)
            data = note_file.encode_exact(text)
            file = journal.write(tx, project, target, data, before, moved_from=path)
            if file is not None:
                _record_update(tx, spot._replace(file=before), target, file)
                return _remembered(project, target, memory, update=True)
    except FileNotFoundError:
        raise _missing_file(absolute(project, path)) from None
    except OSError as error:
        raise files.file_fault(error, absolute(project, path)) from None
    raise Fault("conflict", f"Somebody else is changing {absolute(project, path)}, try again.")


def _record_update(tx: Tx, spot: _ExistingFile, target: str, file: File) -> None:
    """Updates rows, index and history for new content of a file, which has moved if its type has changed."""
    project, path, before = spot.project, spot.path, note_file.decode_lossy(spot.file.data)
    if target == path:
        sync.record(tx, project.name, path, file, before, "updated")
        return
    sync.drop(tx, [(project.name, path, before)], "moved")
    sync.record(tx, project.name, target, file, None, "updated")


def _target(project: Project, path: str, kind: str) -> str:
    """Return the path of a file in the folder of another type, numbered if its name is taken."""
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    return next(target for target in _paths_for(kind, stem) if target == path or not files.exists(project.root, target))


def _paths_for(kind: str, stem: str) -> Iterator[str]:
    yield f"{kind}/{stem}{SUFFIX}"
    for number in count(2):
        yield f"{kind}/{stem}-{number}{SUFFIX}"


def _remembered(project: Project, path: str, memory: ParsedMemory, *, update: bool) -> Remembered:
    return Remembered(True, absolute(project, path), memory.memory_type, list(memory.tags), update)


def _find_file(tx: Tx, known: Sequence[Project], given: str) -> _ExistingFile:
    if is_ambiguous(known, given):
        raise Fault("invalid", f"filePath {given} could be of any project: {ABSOLUTE_PATH_HINT}, or name the project")
    places = candidate_files(known, given)
    if not places:
        raise Fault("blocked", _OUTSIDE)
    for project, path in places:
        if not is_memory(path):
            raise Fault("invalid", f"filePath is not that of a memory: {given}")
        journal.settle(tx, project)
        try:
            return _ExistingFile(project, path, files.read(project.root, path))
        except FileNotFoundError:
            continue
        except OSError as error:
            through_link = error.errno in LINK_ERRNOS
            raise Fault("blocked", _OUTSIDE) if through_link else files.file_fault(error, given) from None
    raise _missing_file(given)


def _missing_file(path: str) -> Fault:
    return Fault("not_found", f"File not found: {path}. Cannot update non-existent memory.")


def _known_types(tx: Tx, known: Sequence[Project]) -> dict[str, memory_types.MemoryType]:
    return memory_types.load_types(setting(tx, "QUIPU_NOTES_CONFIG"), [project.root for project in known])


def _resolve_type(tx: Tx, known: Sequence[Project], given: str) -> str:
    built_in = {kind.name: kind for kind in memory_types.BUILT_IN}
    name = kebab(given)
    return name if name in built_in else memory_types.resolve_type(_known_types(tx, known), given)


def _title(given: str) -> str:
    title = given.strip()
    if not title or _has_controls(title):
        raise Fault("invalid", "title is required, on one line and without control characters")
    return title


def _tags(given: list[str] | str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(front_matter.to_list(given)))
    if len(tags) > _MAX_TAGS or any(len(tag) > _TAG_WIDTH or _has_controls(tag) for tag in tags):
        raise Fault(
            "invalid",
            f"tags are at most {_MAX_TAGS} texts of {_TAG_WIDTH} characters, without control characters",
        )
    return tags


def _has_controls(text: str) -> bool:
    return any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text)


TOOLS: tuple[Tool, ...] = (
    read(
        memory_list_types,
        Hints("List memory types"),
        permission="read",
    ),
    exclusive(
        memory_remember,
        Hints("Remember", destructive=True),
        permission="write",
        hooks=Hooks(texts=remember_texts),
    ),
)
