"""Keeps a copy of a data directory that others serve read-only: its databases and keys, as they change."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from kernel.calls.dialect import Dialect
from kernel.core.config import Config
from kernel.core.data_dir import MAIN, file_lock, home, make_private, other_tenants, write_private
from kernel.core.errors import CatchFaults, Fault
from kernel.core.ordinary_files import read_bytes
from kernel.engines.migrations import pending_migrations
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database import ReadOnlyDatabase
from kernel.engines.sqlite.folder_lock import FolderLock
from kernel.engines.sqlite.following_copy import FollowingCopy, source_damaged
from kernel.operations.backup import DATABASE
from kernel.operations.file_check import find_damage
from kernel.security import api_keys
from kernel.store.context import CallContext, StoreContext
from kernel.store.statements import migrations
from kernel.store.transaction import Tx

R = TypeVar("R")
MARK = "replica.json"
_LOCK = "replica.lock"
_POLL_SECONDS = 0.05
_PAUSE_BY_COPY = 2  # pauses as many times as long as a copy takes, so that a large store does not take a core
_TENANTS_SECONDS = 1.0  # how late a new tenant is found
_log = logging.getLogger("quipu")


def is_replica(data: Path) -> bool:
    with suppress(OSError):  # the folder is of another user, which those who open it will tell
        return (data / MARK).is_file()
    return False


class _Mark(msgspec.Struct):
    source: str
    schema: int = 0


def source_of(data: Path) -> str:
    mark = _mark_of(data)
    return mark.source if mark else "another data directory"


def _mark_of(data: Path) -> _Mark | None:
    with suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode(read_bytes(data / MARK), type=_Mark)
    return None


def refuse_replica(data: Path) -> None:
    if is_replica(data):
        raise Fault("conflict", f"{data} follows {source_of(data)}: `quipu serve --follow` serves it, read-only.")


def open_replica(
    config: Config, context: StoreContext, state_of: Callable[[Tx], R | None]
) -> tuple[ReadOnlyDatabase, R]:
    """Return a copy that another process keeps, and its state; raises Fault without a copy of this version."""
    data = config.data
    if not is_replica(data) or not config.file.is_file():
        raise Fault("not_found", f"{config.home} follows no other data directory: `quipu replica` makes it do so.")
    if config.backup_to is not None:
        raise Fault("invalid", "QUIPU_BACKUP_TO is for the source: leave it out where --follow is.")
    with ExitStack() as stack:
        lock = stack.enter_context(closing(FolderLock(data)))
        if not lock.take("shared"):
            raise Fault("busy", f"Another process is making {data} anew, try again.")
        with closing(Connection(config.file, context, readonly=True)) as db:
            state = None if pending_migrations(db) else db.read(CallContext(), state_of)
        if state is None:
            raise Fault("storage", f"{data} has the schema of an older version: start that of its source first.")
        stack.pop_all()
    refusal = f"This server only reads: it follows {source_of(data)}. Write there."
    return ReadOnlyDatabase(config.file, context, refusal, lock.close), state


class Replica:
    """The copy of a data directory, which only one process makes. Raises Fault if the target must not be a copy."""

    def __init__(self, config: Config, target: Path) -> None:
        self._config = config
        self._target = target
        self._copies: dict[str, FollowingCopy] = {}
        self._tenants_at = 0.0
        self._keys: tuple[int, ...] | None = None
        self._stack = ExitStack()
        with ExitStack() as stack:
            if target.absolute() == config.data.absolute() or config.data.absolute() in target.absolute().parents:
                raise Fault("invalid", f"{target} is in the data directory itself: choose another folder.")
            refuse_replica(config.data)
            make_private(target)
            stack.enter_context(file_lock(target / _LOCK, 0))
            self._claim()
            for folder in (config.data, target):
                lock = stack.enter_context(closing(FolderLock(folder)))
                if not lock.take("shared"):
                    raise Fault("busy", f"Another process is opening or restoring {folder}, try again.")
            self._stack = stack.pop_all()

    def begin(self, context: StoreContext, dialects: Sequence[Dialect]) -> None:
        """Compare the memories of every source with its index and history, then copy the changes. Raises Fault."""
        self._find_tenants()
        for copy in self._copies.values():
            damage = find_damage(copy.source, context, dialects)
            if damage:
                raise source_damaged(damage)
        self.refresh()

    def refresh(self) -> bool:
        """Copy the changes; return whether there were any. Raises Fault."""
        self._copy_keys()
        if time.monotonic() >= self._tenants_at:
            self._find_tenants()
        changes = [copy.refresh() for copy in self._copies.values()]
        return any(changes)

    def run(self, stopping: threading.Event, catch_faults: CatchFaults) -> None:
        """Follow until `stopping` is set; a failure is logged once, and tried again.

        Raises Fault if a source is damaged.
        """
        wait, last_message = 0.0, ""
        while not stopping.wait(wait):
            start = time.monotonic()
            outcome = catch_faults(self.refresh)
            if isinstance(outcome, Fault) and any(copy.damaged for copy in self._copies.values()):
                raise outcome
            wait = max(_POLL_SECONDS, _PAUSE_BY_COPY * (time.monotonic() - start))
            if isinstance(outcome, Fault) and outcome.message != last_message:
                _log.error("the copy does not follow: %s", outcome.message)
            last_message = outcome.message if isinstance(outcome, Fault) else ""

    def close(self) -> None:
        for copy in self._copies.values():
            copy.close()
        self._stack.close()

    def _claim(self) -> None:
        """Mark the folder as a copy; refuse a folder with a store of its own, or served by another schema."""
        target, schema = self._target, len(migrations())
        if (target / DATABASE).exists() and not is_replica(target):
            raise Fault("conflict", f"{target} holds a store of its own: choose an empty folder.")
        mark = _Mark(str(self._config.data.absolute()), schema)
        if is_replica(target) and _mark_of(target) == mark:
            return
        with closing(FolderLock(target)) as lock:
            if not lock.take("exclusive"):
                raise Fault("conflict", f"{target} is served as a copy of another source or version: stop that first.")
            try:
                write_private(target / MARK, msgspec.json.encode(mark))
            except OSError as error:
                raise Fault("storage", f"Cannot write {target / MARK}: {error.strerror}") from None

    def _find_tenants(self) -> None:
        self._tenants_at = time.monotonic() + _TENANTS_SECONDS
        data = self._config.data
        for name in (MAIN, *other_tenants(data)):
            source = home(data, name) / DATABASE
            if name not in self._copies and source.is_file():
                folder = home(self._target, name)
                make_private(folder)
                self._copies[name] = FollowingCopy(source, folder / DATABASE, len(migrations()))

    def _copy_keys(self) -> None:
        """Copy the keys with the databases: a copy admits those that its source admits."""
        source, target = self._config.data / api_keys.FILE, self._target / api_keys.FILE
        try:
            status = source.stat()
        except FileNotFoundError:
            target.unlink(missing_ok=True)
            self._keys = None
            return
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp != self._keys:
            try:
                write_private(target, read_bytes(source))
            except OSError as error:
                raise Fault("storage", f"Cannot copy {source}: {error.strerror}") from None
            self._keys = stamp
