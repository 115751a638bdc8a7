"""The tool memory_file_lock (seed 000): one holder per file, expiry by the server's clock, fencing numbers."""

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes import errors
from handlers.scopes.deviations import LOCKS
from handlers.scopes.field_types import Id, Object, Text, validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.results import dumps, loads, row_factory
from kernel.errors import Fault
from kernel.lazy_regex import regex
from kernel.store.transaction import Tx
from kernel.text import utc_time
from kernel.tools import Hints, Tool, write

DEFAULT_LOCK_SECONDS = 3600
MAX_LOCK_SECONDS = 86_400
_MIN_LOCK_SECONDS = 0.001  # the resolution of stored times; less would expire at once
_MAX_PATH_LENGTH = 4096  # PATH_MAX of Linux
_MAX_AGENT_LENGTH = 1024
FORCED_UNLOCKS_SHOWN = 10
_ABSOLUTE_PATH = regex(r"/|[A-Za-z]:[\\/]|\\\\")
_PARENT_SEGMENT = regex(r"(?:^|[\\/])\.\.(?:[\\/]|$)")
FilePath = Annotated[str, Meta(description="Absolute filesystem path", min_length=1, max_length=_MAX_PATH_LENGTH)]
AgentId = Annotated[str, Meta(description="Agent/IDE identifier", min_length=1, max_length=_MAX_AGENT_LENGTH)]
SessionId = Annotated[Id | None, Meta(description="Session reference")]
ProjectId = Annotated[Id | None, Meta(description="Project reference")]


class Checkout(Struct, tag="checkout", tag_field="action", forbid_unknown_fields=True):
    """The file and the agent that locks it; a second checkout by the holder extends the lock."""

    file_path: FilePath
    agent_id: AgentId
    session_id: SessionId = None
    project_id: ProjectId = None
    expires_in: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_LOCK_SECONDS)] | None,
        Meta(description="Lock timeout in seconds; 0 for a lock that does not expire"),
    ] = DEFAULT_LOCK_SECONDS
    metadata: Annotated[Object | None, Meta(description="Additional metadata")] = None


class Checkin(Struct, tag="checkin", tag_field="action", forbid_unknown_fields=True):
    """The lock to release."""

    file_path: FilePath
    agent_id: AgentId
    fencing_token: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None,
        Meta(description="fencingToken of the checkout; refused if the file was checked out again since"),
    ] = None


class GetLockStatus(Struct, tag="status", tag_field="action", forbid_unknown_fields=True):
    """The file to look up."""

    file_path: FilePath


class ListLocks(Struct, tag="list", tag_field="action", forbid_unknown_fields=True):
    """Filters of the list; a lock must match all that are given."""

    project_id: ProjectId = None
    session_id: SessionId = None
    agent_id: AgentId | None = None


class ForceUnlock(Struct, tag="force_unlock", tag_field="action", forbid_unknown_fields=True):
    """The file to unlock, the agent that does it, and its reason."""

    file_path: FilePath
    agent_id: AgentId
    reason: Annotated[Text | None, Meta(description="Why the lock is broken")] = None


class Lock(Struct, rename="camel"):
    """A lock; a later checkout of any file has a greater `fencing_token`."""

    id: str
    file_path: str
    checked_out_by: str
    session_id: str | None
    project_id: str | None
    checked_out_at: str
    expires_at: str | None
    metadata: Object | None
    fencing_token: int


_lock_row = row_factory(Lock, "metadata", loads)


class CheckedOut(Struct):
    """Result of checkout."""

    success: bool
    lock: Lock


class LockReleased(Struct):
    """Result of checkin and force_unlock."""

    success: bool
    message: str


class ForcedUnlock(Struct, rename="camel"):
    """One forced unlock: the agent that did it, the holder it was taken from, and the reason."""

    agent_id: str
    holder: str
    reason: str | None
    at: str


class LockStatus(Struct, rename="camel"):
    """Result of status; `force_unlocks` are the last ten of the file, newest first, absent where there are none."""

    success: bool
    is_locked: bool
    lock: Lock | None
    force_unlocks: list[ForcedUnlock] | UnsetType = UNSET


class LockList(Struct):
    """Result of list."""

    success: bool
    locks: list[Lock]
    count: int


def memory_file_lock(
    tx: Tx, request: Checkout | Checkin | GetLockStatus | ListLocks | ForceUnlock
) -> CheckedOut | LockReleased | LockStatus | LockList:
    """Manage file locks for multi-agent coordination."""
    validate(request)
    if isinstance(request, ListLocks):
        locks = tx.all(
            "scopes.locks.list",
            _lock_row,
            project_id=request.project_id,
            session_id=request.session_id,
            agent_id=request.agent_id,
            now=tx.now,
        )
        return LockList(True, locks, len(locks))
    _check_path(request.file_path)
    if isinstance(request, Checkout):
        return CheckedOut(True, _checkout(tx, request))
    if isinstance(request, Checkin):
        return _checkin(tx, request)
    if isinstance(request, ForceUnlock):
        return _force_unlock(tx, request)
    held = _active_lock(tx, request.file_path)
    broken = tx.all("scopes.locks.forced_unlocks", ForcedUnlock, path=request.file_path, limit=FORCED_UNLOCKS_SHOWN)
    return LockStatus(True, held is not None, held, broken or UNSET)


def _checkout(tx: Tx, request: Checkout) -> Lock:
    if request.session_id is not None:
        check_scope(tx, "session", request.session_id, "session_id")
    if request.project_id is not None:
        check_scope(tx, "project", request.project_id, "project_id")
    # Expired locks are removed by the next checkout, not by a timer, so that status and list never write.
    tx.run("scopes.locks.add_expiry_events", now=tx.now)
    tx.run("scopes.locks.delete_expired", now=tx.now)
    # The number of this row is the fencing number: greater than every earlier one, also after a reset.
    fence = _add_event(tx, request.file_path, "checkout", request.agent_id, request.agent_id)
    lock = tx.one(
        "scopes.locks.acquire",
        _lock_row,
        id=tx.new_id("lock"),
        path=request.file_path,
        agent_id=request.agent_id,
        session_id=request.session_id,
        project_id=request.project_id,
        now=tx.now,
        expires_at=_expiry(tx.now, request.expires_in),
        metadata=dumps(request.metadata),
        fence=fence,
    )
    if lock is None:
        held = _active_lock(tx, request.file_path)
        raise _locked_fault(f"File {request.file_path} is already locked by agent {held and held.checked_out_by}", held)
    return lock


def _checkin(tx: Tx, request: Checkin) -> LockReleased:
    path, agent = request.file_path, request.agent_id
    lock = tx.one("scopes.locks.get", _lock_row, path=path)
    # An expired lock is no lock to other agents; its own holder gets the error that names the expiry.
    if lock is None or (lock.checked_out_by != agent and _is_expired(lock, tx.now)):
        raise _not_locked_fault(path)
    if lock.checked_out_by != agent:
        raise _locked_fault(f"File {path} is locked by agent {lock.checked_out_by}, not {agent}", lock)
    if _is_expired(lock, tx.now):
        raise errors.conflict(
            f"File {path} is not locked: the lock of agent {agent} expired at {lock.expires_at}",
            errors.EXPIRED,
            field="file_path",
            expiresAt=lock.expires_at,
        )
    if request.fencing_token is not None and request.fencing_token != lock.fencing_token:
        raise errors.conflict(
            f"File {path} was checked out again: its fencing token is {lock.fencing_token}, "
            f"not {request.fencing_token}",
            field="fencing_token",
            fencingToken=lock.fencing_token,
        )
    tx.run("scopes.locks.release", path=path)
    _add_event(tx, path, "checkin", agent, agent, lock.fencing_token)
    return LockReleased(True, f"File {path} checked in successfully")


def _force_unlock(tx: Tx, request: ForceUnlock) -> LockReleased:
    path = request.file_path
    held = _active_lock(tx, path)
    if held is None:
        raise _not_locked_fault(path)
    tx.run("scopes.locks.release", path=path)
    _add_event(tx, path, "force_unlock", request.agent_id, held.checked_out_by, held.fencing_token, request.reason)
    return LockReleased(True, f"File {path} force unlocked by {request.agent_id}")


def _active_lock(tx: Tx, path: str) -> Lock | None:
    """The lock on a file, unless it has expired."""
    lock = tx.one("scopes.locks.get", _lock_row, path=path)
    return None if lock is None or _is_expired(lock, tx.now) else lock


def _is_expired(lock: Lock, now: str) -> bool:
    return lock.expires_at is not None and lock.expires_at <= now


def _add_event(
    tx: Tx, path: str, operation: str, agent: str, holder: str, fence: int | None = None, reason: str | None = None
) -> int:
    """Adds a row to the log of locks. Its number."""
    number = tx.one(
        "scopes.locks.add_event",
        int,
        path=path,
        operation=operation,
        agent_id=agent,
        holder=holder,
        fence=fence,
        reason=reason,
        now=tx.now,
    )
    return number or 0


def _expiry(now: str, seconds: float | None) -> str | None:
    wanted = DEFAULT_LOCK_SECONDS if seconds is None else seconds
    expires_at = datetime.fromisoformat(now) + timedelta(seconds=max(wanted, _MIN_LOCK_SECONDS))
    return utc_time(expires_at.isoformat()) if wanted else None


def accepts(path: str, agent: str) -> bool:
    """Whether these tools would accept a lock of this path and holder; a lock they reject could not be released."""
    fits = len(path) <= _MAX_PATH_LENGTH and len(agent) <= _MAX_AGENT_LENGTH and bool(agent.strip())
    plain = not any(letter in path for letter in "\0\r\n") and "\0" not in agent
    return fits and plain and bool(_ABSOLUTE_PATH.match(path)) and not _PARENT_SEGMENT.search(path)


def _check_path(path: str) -> None:
    if not _ABSOLUTE_PATH.match(path):
        raise errors.invalid("file_path", "must be absolute", "give the full path from the root")
    if _PARENT_SEGMENT.search(path):
        raise errors.invalid("file_path", "must not hold .. segments", "give the path it stands for")
    if "\r" in path or "\n" in path:
        raise errors.invalid("file_path", "must not hold line breaks")


def _locked_fault(message: str, lock: Lock | None) -> Fault:
    context = {"lockedBy": lock.checked_out_by, "expiresAt": lock.expires_at} if lock else {}
    return errors.conflict(message, errors.LOCKED, field="file_path", **context)


def _not_locked_fault(path: str) -> Fault:
    return Fault("not_found", f"File {path} is not locked", errors.NOT_LOCKED, {"field": "file_path"})


TOOLS: tuple[Tool, ...] = (
    write(
        memory_file_lock,
        Hints("File locks", destructive=True),
        permission={"checkout": "write", "checkin": "write", "status": "read", "list": "read", "force_unlock": "admin"},
        read_arms=(GetLockStatus, ListLocks),
        deviations=LOCKS,
    ),
)
