"""Three tools of the contract: list the types, remember in a file, forget files (seed 001)."""

import errno
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from handlers.notes import files, front_matter, memory_types, note_file, sync
from handlers.notes.files import File
from handlers.notes.note_file import Said
from handlers.notes.projects import Project, absolute, ambiguous, located, picked, projects
from handlers.notes.scan import SUFFIX, TEMPORARY, is_memory
from handlers.notes.schemas import Forget, Forgotten, ListTypes, Remember, Remembered, Types
from handlers.notes.slug import kebab, slug
from kernel.errors import Fault
from kernel.settings import setting
from kernel.store.transaction import Tx

MAX_BYTES = 1_048_576
_OUTSIDE = "Write operations only allowed within .mnemonics/"
_WHOLE = "give the absolute path that memory_recall answers with"
_TRIES = 3
_COMPARED = 16
_TAGS, _TAG = 64, 100
_LINKS = {errno.ELOOP, errno.ENOTDIR}


class _Spot(NamedTuple):
    """A file that is there."""

    project: Project
    path: str
    file: File


def memory_list_types(tx: Tx, request: ListTypes) -> Types:
    """List the types a memory can have, and the one to use when no other fits."""
    known = projects(tx)
    more = [project.name for project in known] if len(known) > 1 else msgspec.UNSET
    return Types(list(_kinds(tx, known).values()), memory_types.FALLBACK, memory_types.FALLBACK_ABOUT, more)


def memory_remember(tx: Tx, request: Remember) -> Remembered:
    """Create a memory, or update the one at filePath. Search first with memory_recall: update a memory that is similar
    rather than create another one. The title must not repeat the type; when no type fits, use context.
    """
    known = picked(projects(tx), request.project)
    tags = _tags(request.tags)
    if not request.content or len(request.content.encode()) > MAX_BYTES:
        raise Fault("invalid", "content is required, and must not be larger than 1 MB")
    if request.filePath:
        spot = _spot(known, request.filePath)
        return _update(tx, spot, request.content, _kind(tx, known, request.memoryType), tags)
    memory = Said(_title(request.title), _kind(tx, known, request.memoryType), tags, tx.now, tx.now, request.content)
    return _create(tx, known[0], memory)


def remember_texts(request: Remember) -> list[str]:
    """What memory_remember will embed, as far as the request alone tells it."""
    if request.filePath or not isinstance(request.tags, list):
        return []
    return [note_file.indexed_as(request.title.strip(), [tag.strip() for tag in request.tags], request.content)]


def memory_forget(tx: Tx, request: Forget) -> Forgotten:
    """Delete memory files for good. First find them with memory_recall, show them and ask the user; never delete
    without confirmation.
    """
    paths = _paths(request.filePaths)
    if not paths:
        raise Fault("invalid", "filePaths array is required and cannot be empty")
    known = projects(tx)
    deleted: list[str] = []
    errors: list[str] = []
    for given in dict.fromkeys(paths):
        wrong = _why_not(known, given) or _forget(tx, known, given, deleted)
        errors.extend([wrong] if wrong else [])
    return Forgotten(bool(deleted), len(deleted), deleted, errors or msgspec.UNSET)


def _create(tx: Tx, project: Project, memory: Said) -> Remembered:
    if project.ours:
        project.root.mkdir(mode=0o700, exist_ok=True)
    if not project.root.is_dir():
        raise Fault("storage", f"The folder {project.root} of the project {project.name} is not there.")
    for number, path in enumerate(_paths_for(memory.memory_type, slug(memory.title))):
        try:
            if files.taken(project.root, path):
                if number < _COMPARED and _says(project, path, memory):
                    return _answer(project, path, memory, update=False)
                continue
            data = note_file.encoded(note_file.new(path, memory))
            stamp = files.create(project.root, path, data, tx.new_id(TEMPORARY))
        except OSError as error:
            raise sync.refused(error, absolute(project, path)) from None
        if stamp is not None:
            sync.tell(tx, project.name, path, File(data, stamp), None, "created")
            return _answer(project, path, memory, update=False)
    raise Fault("conflict", "Too many memories of this type have this title.")


def _says(project: Project, path: str, memory: Said) -> bool:
    """Whether a file is this very memory, as it is where a caller tries again what has succeeded."""
    _, found = next(files.read_all(project.root, [path]), (path, None))
    timeless = {"created": "", "modified": ""}
    return found is not None and note_file.read(path, found)._replace(**timeless) == memory._replace(**timeless)


def _update(tx: Tx, spot: _Spot, content: str, kind: str, tags: tuple[str, ...]) -> Remembered:
    project, path = spot.project, spot.path
    try:
        for _ in range(_TRIES):
            before = files.read(project.root, path)
            said = note_file.read(path, before)
            target = path if said.memory_type == kind else _target(project, path, kind)
            memory = said._replace(memory_type=kind, tags=tags or said.tags, modified=tx.now, content=content)
            data = note_file.encoded(note_file.changed(note_file.decoded(before.data), target, said, memory))
            stamp = files.replace(project.root, path, data, before, tx.new_id(TEMPORARY))
            if stamp is not None:
                return _updated(tx, spot._replace(file=before), target, File(data, stamp), memory)
    except FileNotFoundError:
        raise _missing(absolute(project, path)) from None
    except OSError as error:
        raise sync.refused(error, absolute(project, path)) from None
    raise Fault("conflict", f"Somebody else is changing {absolute(project, path)}, try again.")


def _updated(tx: Tx, spot: _Spot, target: str, file: File, memory: Said) -> Remembered:
    """Moves the file where its type has changed, and makes rows, index and history follow."""
    project, path, before = spot.project, spot.path, note_file.stored(spot.file.data)
    moved = None if target == path else files.move(project.root, path, target)
    if moved is None:
        sync.tell(tx, project.name, path, file, before, "updated")
        return _answer(project, path, memory, update=True)
    sync.drop(tx, [(project.name, path, before)], "moved")
    sync.tell(tx, project.name, target, file._replace(stamp=moved), before, "updated")
    return _answer(project, target, memory, update=True)


def _target(project: Project, path: str, kind: str) -> str:
    """Where a file of another type belongs: under its own name, numbered where that is taken."""
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    return next(target for target in _paths_for(kind, stem) if target == path or not files.taken(project.root, target))


def _paths_for(kind: str, stem: str) -> Iterator[str]:
    yield f"{kind}/{stem}{SUFFIX}"
    for number in count(2):
        yield f"{kind}/{stem}-{number}{SUFFIX}"


def _answer(project: Project, path: str, memory: Said, *, update: bool) -> Remembered:
    return Remembered(True, absolute(project, path), memory.memory_type, list(memory.tags), update)


def _spot(known: Sequence[Project], given: str) -> _Spot:
    if ambiguous(known, given):
        raise Fault("invalid", f"filePath {given} could be of any project: {_WHOLE}, or name the project")
    places = located(known, given)
    if not places:
        raise Fault("blocked", _OUTSIDE)
    for project, path in places:
        if not is_memory(path):
            raise Fault("invalid", f"filePath is not that of a memory: {given}")
        try:
            return _Spot(project, path, files.read(project.root, path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Fault("blocked", _OUTSIDE) if error.errno in _LINKS else sync.refused(error, given) from None
    raise _missing(given)


def _missing(path: str) -> Fault:
    return Fault("not_found", f"File not found: {path}. Cannot update non-existent memory.")


def _why_not(known: Sequence[Project], given: str) -> str:
    """Why a path cannot be that of a memory to delete, by its words alone."""
    if ambiguous(known, given):
        return f"Skipped {given}: could be of any project, {_WHOLE}"
    places = located(known, given)
    if not any(path for _, path in places):
        return f"Skipped {given}: not within .mnemonics/"
    if not given.endswith(SUFFIX):
        return f"Skipped {given}: not a .md file"
    return "" if all(is_memory(path) for _, path in places) else f"Skipped {given}: not a memory file"


def _forget(tx: Tx, known: Sequence[Project], given: str, deleted: list[str]) -> str:
    for project, path in located(known, given):
        try:
            before = files.read(project.root, path)
            files.remove(project.root, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in _LINKS:
                return f"Skipped {given}: not within .mnemonics/"
            return f"Error deleting {given}: {error.strerror}"
        sync.drop(tx, [(project.name, path, note_file.stored(before.data))], "deleted")
        deleted.append(absolute(project, path))
        return ""
    return f"Skipped {given}: file not found"


def _paths(given: list[str] | str) -> list[str]:
    if isinstance(given, list):
        return given
    if given.startswith("["):
        try:
            return msgspec.json.decode(given, type=list[str])
        except msgspec.DecodeError:
            raise Fault("invalid", "filePaths is not an array of paths") from None
    return [given] if given else []


def _kinds(tx: Tx, known: Sequence[Project]) -> dict[str, memory_types.Kind]:
    return memory_types.known(setting(tx, "QUIPU_NOTES_CONFIG"), [project.root for project in known])


def _kind(tx: Tx, known: Sequence[Project], given: str) -> str:
    built_in = {kind.name: kind for kind in memory_types.BUILT_IN}
    name = kebab(given)
    return name if name in built_in else memory_types.chosen(_kinds(tx, known), given)


def _title(given: str) -> str:
    title = given.strip()
    if not title or _controls(title):
        raise Fault("invalid", "title is required, on one line and without control characters")
    return title


def _tags(given: list[str] | str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(front_matter.listed(given)))
    if len(tags) > _TAGS or any(len(tag) > _TAG or _controls(tag) for tag in tags):
        raise Fault("invalid", f"tags are at most {_TAGS} texts of {_TAG} characters, without control characters")
    return tags


def _controls(text: str) -> bool:
    return any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text)
