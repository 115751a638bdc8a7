"""The tool memory_file_lock (seed 000): one holder per file, expiry by the server's clock, fencing numbers."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from handlers.scopes import errors
from handlers.scopes.field_types import Id, Object, Text, validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.results import dumps, loads, row_factory
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.text import composed
from kernel.core.times import utc_time
from kernel.store.transaction import Tx

_MIN_LOCK_SECONDS = 0.001  # the resolution of stored times; less would expire at once
FORCED_UNLOCKS_SHOWN = 10
MAX_PATH_LENGTH = 4096  # PATH_MAX of Linux
MAX_AGENT_LENGTH = 1024
_ABSOLUTE_PATH = regex(r"/|[A-Za-z]:[\\/]|\\\\")
_PARENT_SEGMENT = regex(r"(?:^|[\\/])\.\.(?:[\\/]|$)")
DEFAULT_LOCK_SECONDS = 3600
MAX_LOCK_SECONDS = 86_400
FilePath = Annotated[str, Meta(description="Absolute filesystem path", min_length=1, max_length=MAX_PATH_LENGTH)]
AgentId = Annotated[str, Meta(description="Agent/IDE identifier", min_length=1, max_length=MAX_AGENT_LENGTH)]
SessionId = Annotated[
    Id | None, Meta(description="Session reference; a lock taken with it is closed to the agent's other sessions")
]
ProjectId = Annotated[Id | None, Meta(description="Project reference")]


class Checkout(Struct, tag="checkout", tag_field="action", forbid_unknown_fields=True):
    """The file and the agent that locks it; a second checkout by the holder in the same session extends the lock."""

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
    file_path: FilePath
    agent_id: AgentId
    session_id: SessionId = None
    fencing_token: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None,
        Meta(description="fencingToken of the checkout; refused if the file was checked out again since"),
    ] = None


class GetLockStatus(Struct, tag="status", tag_field="action", forbid_unknown_fields=True):
    file_path: FilePath


class ListLocks(Struct, tag="list", tag_field="action", forbid_unknown_fields=True):
    """Filters of the list; a lock must match all that are given."""

    project_id: ProjectId = None
    session_id: SessionId = None
    agent_id: AgentId | None = None


class ForceUnlock(Struct, tag="force_unlock", tag_field="action", forbid_unknown_fields=True):
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


class CheckedOut(Struct):
    success: bool
    lock: Lock


class LockReleased(Struct):
    success: bool
    message: str


class ForcedUnlock(Struct, rename="camel"):
    """One forced unlock: the agent that did it, the holder it was taken from, and the reason."""

    agent_id: str
    holder: str
    reason: str | None
    at: str


class LockStatus(Struct, rename="camel"):
    """Result of status; `force_unlocks` are the last ten of the file, newest first, absent if there are none."""

    success: bool
    is_locked: bool
    lock: Lock | None
    force_unlocks: list[ForcedUnlock] | UnsetType = UNSET


class LockList(Struct):
    success: bool
    locks: list[Lock]
    count: int


_lock_row = row_factory(Lock, "metadata", loads)


def memory_file_lock(
    tx: Tx, request: Checkout | Checkin | GetLockStatus | ListLocks | ForceUnlock
) -> CheckedOut | LockReleased | LockStatus | LockList:
    """Manage file locks for multi-agent coordination."""
    validate(request)
    if isinstance(request, ListLocks):
        _check_references(tx, request)
        locks = tx.all("scopes.locks.list", _lock_row, **asdict(request), now=tx.now)
        return LockList(True, locks, len(locks))
    _check_path(request.file_path)
    path = normal_path(request.file_path)
    if path != request.file_path:  # a lock of an earlier release has the path as it was sent
        path = tx.one("scopes.locks.stored_path", str, path=path, given=request.file_path) or path
    if isinstance(request, Checkout):
        return CheckedOut(True, _checkout(tx, path, request))
    if isinstance(request, Checkin):
        return _checkin(tx, path, request)
    if isinstance(request, ForceUnlock):
        return _force_unlock(tx, path, request)
    lock = _active_lock(tx, path)
    unlocks = tx.all("scopes.locks.forced_unlocks", ForcedUnlock, path=path, limit=FORCED_UNLOCKS_SHOWN)
    return LockStatus(True, lock is not None, lock, unlocks or UNSET)


def normal_path(path: str) -> str:
    """Return a valid path in NFC, without empty segments, `.` segments and a separator at its end.

    A drive is in upper case with slashes, `C:/src/a.py`; a network path has backslashes, `\\\\host\\share`.
    """
    normal = composed(path)
    if normal.startswith("/"):
        return "/" + "/".join(_segments(normal))
    segments = _segments(normal.replace("\\", "/"))
    if normal.startswith("\\"):
        return "\\\\" + "\\".join(segments)
    drive, *rest = segments
    return f"{drive.upper()}/{'/'.join(rest)}"


def _check_path(path: str) -> None:
    if not _ABSOLUTE_PATH.match(path):
        raise errors.invalid("file_path", "must be absolute", "give the full path from the root")
    if _PARENT_SEGMENT.search(path):
        raise errors.invalid("file_path", "must not hold .. segments", "give the path it stands for")
    if "\r" in path or "\n" in path:
        raise errors.invalid("file_path", "must not hold line breaks")


def accepts(path: str, agent: str) -> bool:
    """Return whether these tools accept this path and holder; another lock could not be released."""
    fits = len(path) <= MAX_PATH_LENGTH and len(agent) <= MAX_AGENT_LENGTH and bool(agent.strip())
    plain = not any(letter in path for letter in "\0\r\n") and "\0" not in agent
    return fits and plain and bool(_ABSOLUTE_PATH.match(path)) and not _PARENT_SEGMENT.search(path)


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment not in {"", "."}]


def _check_references(tx: Tx, request: Checkout | ListLocks) -> None:
    if request.session_id is not None:
        check_scope(tx, "session", request.session_id, "session_id")
    if request.project_id is not None:
        check_scope(tx, "project", request.project_id, "project_id")


def _checkout(tx: Tx, path: str, request: Checkout) -> Lock:
    _check_references(tx, request)
    # Expired locks are removed by the next checkout, not by a timer, so that status and list never write.
    tx.run("scopes.locks.add_expiry_events", now=tx.now)
    tx.run("scopes.locks.delete_expired", now=tx.now)
    # The number of this row is the fencing number: greater than every earlier one, also after a reset.
    fence = _add_event(tx, path, "checkout", request.agent_id, request.agent_id)
    times = {"expires_at": _expiry(tx.now, request.expires_in), "metadata": dumps(request.metadata), "now": tx.now}
    columns = {**asdict(request), **times, "id": tx.new_id("lock"), "path": path, "fence": fence}
    lock = tx.one("scopes.locks.acquire", _lock_row, **columns)
    if lock is None:
        current = _active_lock(tx, path)
        raise _locked_fault(f"File {path} is already locked by {_holder(current, request.agent_id)}", current)
    return lock


def _checkin(tx: Tx, path: str, request: Checkin) -> LockReleased:
    agent = request.agent_id
    lock = tx.one("scopes.locks.get", _lock_row, path=path)
    if lock is None or lock.checked_out_by != agent:
        # None if the last lock of the agent ended in another way.
        by_force = tx.one("scopes.locks.unlocked_by_force", ForcedUnlock, path=path, agent_id=agent)
        # An expired lock is no lock to other agents; its own holder gets the error that names the expiry.
        if lock is None or _is_expired(lock, tx.now):
            raise _not_locked_fault(path, by_force)
        raise _locked_fault(f"File {path} is locked by agent {lock.checked_out_by}, not {agent}", lock, by_force)
    if _is_expired(lock, tx.now):
        raise errors.conflict(
            f"File {path} is not locked: the lock of agent {agent} expired at {lock.expires_at}",
            errors.EXPIRED,
            field="file_path",
            expiresAt=lock.expires_at,
        )
    _check_own(path, lock, request)
    tx.run("scopes.locks.release", path=path)
    _add_event(tx, path, "checkin", agent, agent, lock.fencing_token)
    return LockReleased(True, f"File {path} checked in successfully")


def _check_own(path: str, lock: Lock, request: Checkin) -> None:
    """Raises a Fault if another session of the agent holds the lock, or has checked it out since."""
    if None not in {lock.session_id, request.session_id} and lock.session_id != request.session_id:
        holder = _holder(lock, request.agent_id)
        raise _locked_fault(f"File {path} is locked by {holder}, not session {request.session_id}", lock)
    if request.fencing_token is not None and request.fencing_token != lock.fencing_token:
        raise errors.conflict(
            f"File {path} was checked out again: its fencing token is {lock.fencing_token}, "
            f"not {request.fencing_token}",
            field="fencing_token",
            fencingToken=lock.fencing_token,
        )


def _force_unlock(tx: Tx, path: str, request: ForceUnlock) -> LockReleased:
    lock = _active_lock(tx, path)
    if lock is None:
        raise _not_locked_fault(path)
    tx.run("scopes.locks.release", path=path)
    _add_event(tx, path, "force_unlock", request.agent_id, lock.checked_out_by, lock.fencing_token, request.reason)
    return LockReleased(True, f"File {path} force unlocked by {request.agent_id}")


def _active_lock(tx: Tx, path: str) -> Lock | None:
    lock = tx.one("scopes.locks.get", _lock_row, path=path)
    return None if lock is None or _is_expired(lock, tx.now) else lock


def _is_expired(lock: Lock, now: str) -> bool:
    return lock.expires_at is not None and lock.expires_at <= now


def _add_event(
    tx: Tx, path: str, operation: str, agent: str, holder: str, fence: int | None = None, reason: str | None = None
) -> int:
    event = {"operation": operation, "agent_id": agent, "holder": holder, "fence": fence, "reason": reason}
    return tx.one("scopes.locks.add_event", int, path=path, now=tx.now, **event) or 0


def _expiry(now: str, seconds: float | None) -> str | None:
    duration = DEFAULT_LOCK_SECONDS if seconds is None else seconds
    expires_at = datetime.fromisoformat(now) + timedelta(seconds=max(duration, _MIN_LOCK_SECONDS))
    return utc_time(expires_at.isoformat()) if duration else None


def _holder(lock: Lock | None, agent: str) -> str:
    """Return the holder in words; the session too if it alone distinguishes the holder from the caller."""
    if lock is None:
        return "another agent"
    session = f" in session {lock.session_id}" if lock.checked_out_by == agent else ""
    return f"agent {lock.checked_out_by}{session}"


def _locked_fault(message: str, lock: Lock | None, by_force: ForcedUnlock | None = None) -> Fault:
    context: dict[str, Any] = {"field": "file_path"}
    if lock is not None:
        context |= {"lockedBy": lock.checked_out_by, "sessionId": lock.session_id, "expiresAt": lock.expires_at}
    return _with_forced_unlock(Fault("conflict", message, errors.LOCKED, context), by_force)


def _not_locked_fault(path: str, by_force: ForcedUnlock | None = None) -> Fault:
    fault = Fault("not_found", f"File {path} is not locked", errors.NOT_LOCKED, {"field": "file_path"})
    return _with_forced_unlock(fault, by_force)


def _with_forced_unlock(fault: Fault, by_force: ForcedUnlock | None) -> Fault:
    if by_force is None:
        return fault
    reason = f": {by_force.reason}" if by_force.reason else ", without a reason"
    message = f"{fault.message}. Agent {by_force.agent_id} broke your lock at {by_force.at}{reason}"
    context = {**fault.context, "forceUnlock": msgspec.to_builtins(by_force)}
    return Fault(fault.code, message, fault.label, context)


TOOLS: tuple[Tool, ...] = (
    write(
        memory_file_lock,
        Hints("File locks", destructive=True),
        permission={"checkout": "write", "checkin": "write", "status": "read", "list": "read", "force_unlock": "admin"},
        read_arms=(GetLockStatus, ListLocks),
    ),
)
