"""Memories that a person adds, imports, exports and backs up from the console.

An import, an export and a backup are the commands of the terminal, run beside the server.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from handlers.console.actions import Action, Done, Fields
from handlers.console.commands import Add, add
from handlers.console.reading import PAGE_ROWS, Site, read, require
from handlers.console.records import NEWEST, calls
from handlers.console.requests import Upload, Visit
from kernel.calls.dispatch import Dispatch
from kernel.core import data_dir
from kernel.core.errors import Fault
from kernel.core.limits import UPLOAD_BYTES
from kernel.engines.sqlite.unfinished import temporary_folder
from kernel.security.permissions import Forbidden, Permission

_KEPT_SECONDS = 3600  # for which an uploaded file waits for its import
_MOST_KEPT = 4
_MOST_COMING = 4  # files, each of which is held in memory
_NAME_BYTES = 200  # file systems take 255
_MOST_REMARKS = 50
_MESSAGE_CHARS = 2000
_NO_FILE = "Choose a file first."
_TOO_LARGE = "The export has {size:,} MB, more than a page hands out: `quipu export jsonl FILE` writes it."


class New(Struct):
    """The form for a memory: the dialects that can add it."""

    dialects: list[str]


class ImportPage(Struct):
    """The form for an import: its formats, and the counts of a file that was looked into, with its token."""

    kinds: list[tuple[str, str]]
    name: str = ""
    token: str = ""
    kind: str = ""
    into: str = ""
    counts: dict[str, int] = {}
    remarks: list[str] = []


class _Counted(Struct):
    kind: str
    counts: dict[str, int]
    remarks: list[str]


class _Kept(NamedTuple):
    file: Path
    token: str
    at: float
    folder: ExitStack


class Uploads:
    """The files that wait for their import, one of each caller; a stopped server leaves theirs to the next import."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._coming = set[tuple[str, str]]()

    @contextmanager
    def room(self, visit: Visit) -> Iterator[None]:
        """Lets a file come; raises Fault("busy") if the caller sends one already, or too many do."""
        owner = _owner(visit)
        if owner in self._coming or len(self._coming) >= _MOST_COMING:
            raise Fault("busy", "Another file is being looked into: try again after it.")
        self._coming.add(owner)
        try:
            yield
        finally:
            self._coming.remove(owner)

    def keep(self, visit: Visit, home: Path, name: str, content: bytes | memoryview) -> tuple[Path, str]:
        """Write a file into a private folder; return its path and the token that names it."""
        self.drop(visit)
        for owner, kept in list(self._kept.items()):
            if time.monotonic() - kept.at > _KEPT_SECONDS or len(self._kept) >= _MOST_KEPT:
                self._kept.pop(owner).folder.close()
        folder = ExitStack()
        file = folder.enter_context(temporary_folder(home / "import")) / _file_name(name)
        file.write_bytes(content)
        token = secrets.token_urlsafe(16)
        self._kept[_owner(visit)] = _Kept(file, token, time.monotonic(), folder)
        return file, token

    def file(self, visit: Visit, token: str) -> Path:
        kept = self._kept.get(_owner(visit))
        if kept is None or kept.token != token:
            raise Fault("not_found", "The file is not kept any more: choose it again.")
        return kept.file

    def drop(self, visit: Visit) -> None:
        kept = self._kept.pop(_owner(visit), None)
        if kept is not None:
            kept.folder.close()


def _owner(visit: Visit) -> tuple[str, str]:
    return visit.caller.tenant, visit.caller.key


def _file_name(name: str) -> str:
    """Return the last part of a name, by which an importer may know the file, as a safe name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(letter if letter.isalnum() or letter in "._- " else "_" for letter in last)
    return safe.encode()[-_NAME_BYTES:].decode("utf-8", "ignore").lstrip(". ") or "upload"


async def load_new(_site: Site, dispatch: Dispatch, visit: Visit) -> New:
    require(visit, "New", Permission.write)
    grant = visit.caller.grant
    able = (dialect.name for dialect in dispatch.dialects if dialect.memories.compose is not None)
    return New([name for name in able if grant.allows_dialect(name)])


async def load_import(site: Site, _dispatch: Dispatch, visit: Visit) -> ImportPage:
    require_all(visit, "Import")
    return ImportPage([*site.guide.imports])


def require_all(visit: Visit, name: str) -> None:
    """Raises Forbidden unless the caller is an admin of every dialect."""
    require(visit, name, Permission.admin)
    if visit.caller.grant.dialects:
        raise Forbidden(f"{name} of every dialect", None)


async def look_into(site: Site, visit: Visit, upload: Upload) -> ImportPage:
    """Keep an uploaded file, and return the counts that its import would have."""
    if not upload.name:
        raise Fault("invalid", _NO_FILE)
    home = data_dir.home(site.config.data, visit.caller.tenant)
    file, token = await asyncio.to_thread(site.uploads.keep, visit, home, upload.name, upload.content)
    kind, into = upload.fields.get("kind", ""), upload.fields.get("into", "").strip()
    try:
        counted = await _import(site, visit, file, kind, into, "--dry-run")
    except Fault:
        site.uploads.drop(visit)
        raise
    remarks = counted.remarks[:_MOST_REMARKS]
    return ImportPage([*site.guide.imports], file.name, token, counted.kind, into, counted.counts, remarks)


async def _import(site: Site, visit: Visit, file: Path, kind: str, into: str, *options: str) -> _Counted:
    if kind and kind not in dict(site.guide.imports):
        raise Fault("invalid", "kind: there is none of this name")
    place = [f"--into={into}"] if into else []
    words = ["import", *([kind] if kind else []), str(file), *place, *options, "--json"]
    return msgspec.json.decode(await _run(site, visit, words), type=_Counted)


async def _run(site: Site, visit: Visit, words: Sequence[str]) -> str:
    """Return the output of a command of the terminal, for the tenant of the caller; raises Fault in its words."""
    status, output, errors = await site.guide.run([*words, f"--tenant={visit.caller.tenant}"])
    if status:
        message = "" if "Traceback" in errors else errors.strip()[-_MESSAGE_CHARS:].removeprefix("quipu: ")
        raise Fault("invalid", message or "The command has failed: on a terminal it shows the reason.")
    return output


async def import_kept(site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    require_all(visit, "Import")
    file = site.uploads.file(visit, fields.get("token", ""))
    before = await read(dispatch, visit, lambda tx: sum(call.number for call in calls(tx, NEWEST, 1, dialects=None)))
    counted = await _import(site, visit, file, fields.get("kind", ""), fields.get("into", ""))
    await asyncio.to_thread(site.uploads.drop, visit)
    newest = await read(dispatch, visit, lambda tx: calls(tx, NEWEST, PAGE_ROWS, dialects=None))
    tool = f"import {counted.kind}"
    number = next((call.number for call in newest if call.tool == tool and call.number > before and call.undoable), 0)
    return Done(f"/ui/audit?calls={number}&done=imported" if number else "/ui/import?done=nothing")


async def export(site: Site, _dispatch: Dispatch, visit: Visit, _fields: Fields) -> Done:
    """Returns everything as JSON lines, which an import brings back."""
    require_all(visit, "Export")
    with ExitStack() as stack:
        home = data_dir.home(site.config.data, visit.caller.tenant)
        file = stack.enter_context(temporary_folder(home / "export")) / "memories.jsonl"
        await _run(site, visit, ["export", "jsonl", str(file)])
        size = file.stat().st_size
        if size > UPLOAD_BYTES:
            raise Fault("invalid", _TOO_LARGE.format(size=size >> 20))
        return Done("", file=await asyncio.to_thread(file.read_bytes))


async def back_up(site: Site, _dispatch: Dispatch, visit: Visit, _fields: Fields) -> Done:
    """Copies the database into a file beside it."""
    require_all(visit, "Backup")
    await _run(site, visit, ["backup"])
    return Done("/ui?done=backup")


async def add_memory(_site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    require(visit, "New", Permission.write)
    text, name = fields.get("text", ""), fields.get("name", "")
    if not text.strip():
        raise Fault("invalid", "text: is empty; nothing was written.")
    changed = await add(dispatch, visit, Add(text, fields.get("dialect", ""), name, visit.end(fields.get("until", ""))))
    return Done.at_memory(changed.id, "added")


ACTIONS: Mapping[str, Action] = {
    "add": add_memory,
    "import-kept": import_kept,
    "export": export,
    "backup": back_up,
}
