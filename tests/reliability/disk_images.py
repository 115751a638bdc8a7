"""A disk that remembers every write in order, and a disk that fails on command, both as file systems of SQLite."""

# ruff: noqa: N802  SQLite gives these methods their names

import random
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from kernel.engines.sqlite.unfinished import SUFFIX

_HEAD = struct.Struct("<dBHQI")  # time, kind, length of the name, offset or first unsynced entry, length of the data
_WRITE, _TRUNCATE, _SYNC, _DELETE = range(4)
_BASE = "unix"
_SECTOR = 512


class Entry(NamedTuple):
    """One thing done to a file: `at` is CLOCK_MONOTONIC; a sync covers the entries before number `offset`."""

    at: float
    kind: int
    file: str
    offset: int
    data: bytes


class Recorder(apsw.VFS):
    """The default file system of this process, which records the operations on files named like the database."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("wb", buffering=0)
        self._count = 0
        super().__init__("recorder", _BASE, makedefault=True)

    def note(self, kind: int, file: str, offset: int = 0, data: bytes = b"") -> None:
        """Adds an entry, in the order of the calls."""
        name = Path(file).name.encode()
        self._count += 1
        self._log.write(_HEAD.pack(time.monotonic(), kind, len(name), offset, len(data)) + name + data)

    def count(self) -> int:
        """How many entries there are."""
        return self._count

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """Opens a file whose changes are noted."""
        return _Recorded(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Notes and deletes."""
        super().xDelete(filename, syncdir)
        self.note(_DELETE, filename)


class _Recorded(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        self._recorder = recorder
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__(_BASE, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._recorder.note(_WRITE, self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._recorder.note(_TRUNCATE, self._name, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        before = self._recorder.count()
        super().xSync(flags)
        self._recorder.note(_SYNC, self._name, before)


def entries(log: Path) -> Iterator[Entry]:
    """Return the entries of a recorder; an entry cut off by the end of its process is left out."""
    data = log.read_bytes()
    at = 0
    while at + _HEAD.size <= len(data):
        when, kind, name, offset, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + name + size > len(data):
            return
        yield Entry(when, kind, data[at : at + name].decode(), offset, data[at + name : at + name + size])
        at += name + size


class Crash:
    """Make the states of a disk after a power failure: all synced data, and any part of the rest, in any order.

    As in file systems with a journal, a file that was deleted before another was synced does not come back.
    """

    def __init__(self) -> None:
        self._kept: dict[str, bytearray] = {}
        self._pending: list[tuple[int, Entry]] = []
        self._number = 0

    def add(self, entry: Entry) -> None:
        """Goes one entry further."""
        if entry.kind == _SYNC:
            covered = [
                one
                for one in self._pending
                if one[0] < entry.offset and (one[1].file == entry.file or one[1].kind == _DELETE)
            ]
            for _, one in covered:
                _apply(self._kept, one)
            self._pending = [one for one in self._pending if one not in covered]
        else:
            self._pending.append((self._number, entry))
        self._number += 1

    def write(self, folder: Path, chance: random.Random) -> int:
        """Makes the files of one such disk; how many unsynced changes were lost, torn or moved."""
        files = {name: bytearray(data) for name, data in self._kept.items()}
        unsynced = [entry for _, entry in self._pending]
        if chance.random() < 0.5:
            chance.shuffle(unsynced)
        harmed = 0
        share = chance.choice((0.0, 0.3, 0.7, 1.0))
        for entry in unsynced:
            if chance.random() >= share:
                harmed += 1
            elif entry.kind == _WRITE and chance.random() < 0.3:
                harmed += 1
                _apply(files, _torn(entry, chance))
            else:
                _apply(files, entry)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return harmed


def _apply(files: dict[str, bytearray], entry: Entry) -> None:
    if entry.kind == _DELETE:
        files.pop(entry.file, None)
        return
    data = files.setdefault(entry.file, bytearray())
    end = entry.offset + len(entry.data)
    if entry.kind == _TRUNCATE:
        del data[entry.offset :]
    elif len(data) < end:
        data.extend(bytes(end - len(data)))
    data[entry.offset : end] = entry.data


def _torn(entry: Entry, chance: random.Random) -> Entry:
    """Some sectors of a write, from its start."""
    sectors = len(entry.data) // _SECTOR
    return entry._replace(data=entry.data[: chance.randrange(sectors + 1) * _SECTOR] if sectors else b"")


class Faulty(apsw.VFS):
    """A file system that fails where `plan(operation)` returns an error; operations are write, sync and truncate."""

    def __init__(self, name: str) -> None:
        self.plan: Callable[[str], Exception | None] = lambda _operation: None
        self.seen = 0
        super().__init__(name, _BASE, makedefault=True)

    def check(self, operation: str) -> None:
        """Raises the error of the plan."""
        error = self.plan(operation)
        self.seen += 1
        if error is not None:
            raise error

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """Opens a file that may fail."""
        return _Failing(self, name, flags)


def used(disk: Faulty) -> Iterator[Faulty]:
    """For a fixture: every database that is opened meanwhile lies on this disk."""
    yield disk
    disk.plan = lambda _operation: None
    apsw.set_default_vfs("unix")


class _Failing(apsw.VFSFile):
    def __init__(self, disk: Faulty, name: Any, flags: list[int]) -> None:
        self._disk = disk
        # SQLite cuts and syncs a copy that failed; apsw raises SystemError for a second error of Python meanwhile.
        self._is_copy = SUFFIX in (name if isinstance(name, str) else name.filename() if name else "")
        self._has_failed = False
        super().__init__(_BASE, name, flags)

    def _check(self, operation: str) -> None:
        if self._is_copy and self._has_failed:
            return
        try:
            self._disk.check(operation)
        except BaseException:
            self._has_failed = True
            raise

    def xWrite(self, data: Any, offset: int) -> None:
        self._check("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._check("sync")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        self._check("truncate")
        super().xTruncate(newsize)


class Countdown:
    """A plan: the Nth operation fails, and with `lasting` every one after it.

    Durability does not begin with a sync: if all that is missing of a commit is the sync, nobody can say what remains.
    """

    def __init__(self, nth: int, error: type[Exception], *, lasting: bool, only: str = "") -> None:
        self.left = nth
        self.failed = 0
        self._error = error
        self._lasting = lasting
        self._only = only

    def __call__(self, operation: str) -> Exception | None:
        if self._only and operation != self._only:
            return None
        if not (self._lasting and self.left == 1 and operation == "sync" and not self._only):
            self.left -= 1
        if self.left == 0 or (self._lasting and self.left < 0):
            self.failed += 1
            return self._error()
        return None
