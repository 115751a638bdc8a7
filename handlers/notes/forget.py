"""The tool memory_forget (seed 001): deletes memory files."""

from collections.abc import Sequence

import msgspec

from handlers.notes import files, journal, note_file, sync
from handlers.notes.projects import ABSOLUTE_PATH_HINT, Project, absolute, candidate_files, is_ambiguous, projects
from handlers.notes.safe_fs import LINK_ERRNOS
from handlers.notes.scan import SUFFIX, is_memory
from handlers.notes.schemas import Forget, Forgotten
from kernel.calls.tools import Hints, Tool, exclusive
from kernel.core.errors import Fault
from kernel.store.transaction import Tx


def memory_forget(tx: Tx, request: Forget) -> Forgotten:
    """Delete memory files for good. First find them with memory_recall, show them and ask the user; never delete
    without confirmation.
    """
    paths = _paths(request.filePaths)
    if not paths:
        raise Fault("invalid", "filePaths array is required and cannot be empty")
    known = projects(tx)
    deleted: dict[str, None] = {}
    errors: list[str] = []
    for given in dict.fromkeys(paths):
        wrong = _skip_reason(known, given) or _forget(tx, known, given, deleted)
        errors.extend([wrong] if wrong else [])
    return Forgotten(bool(deleted), len(deleted), list(deleted), errors or msgspec.UNSET)


def _skip_reason(known: Sequence[Project], given: str) -> str:
    """Return why a path cannot be a memory to delete, judged by the path alone; empty if it can."""
    if is_ambiguous(known, given):
        return f"Skipped {given}: could be of any project, {ABSOLUTE_PATH_HINT}"
    places = candidate_files(known, given)
    if not any(path for _, path in places):
        return f"Skipped {given}: not within .mnemonics/"
    if not given.endswith(SUFFIX):
        return f"Skipped {given}: not a .md file"
    return "" if all(is_memory(path) for _, path in places) else f"Skipped {given}: not a memory file"


def _forget(tx: Tx, known: Sequence[Project], given: str, deleted: dict[str, None]) -> str:
    for project, path in candidate_files(known, given):
        if (name := absolute(project, path)) in deleted:
            continue
        journal.settle(tx, project)
        try:
            before = files.read(project.root, path)
            journal.remove(tx, project, path, before)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in LINK_ERRNOS:
                return f"Skipped {given}: not within .mnemonics/"
            return f"Error deleting {given}: {error.strerror}"
        sync.drop(tx, [(project.name, path, note_file.decode_lossy(before.data))], "deleted")
        deleted[name] = None
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


TOOLS: tuple[Tool, ...] = (
    exclusive(
        memory_forget,
        Hints("Forget", destructive=True),
        permission="write",
    ),
)
