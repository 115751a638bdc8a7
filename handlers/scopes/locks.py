"""The tool memory_file_lock (seed 000): one holder per file, expiry by the server's clock, fencing numbers."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from handlers.scopes import errors
from handlers.scopes.field_types import validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.lock_paths import check_path, normal_path
from handlers.scopes.lock_schemas import (
    DEFAULT_LOCK_SECONDS,
    CheckedOut,
    Checkin,
    Checkout,
    ForcedUnlock,
    ForceUnlock,
    GetLockStatus,
    ListLocks,
    Lock,
    LockList,
    LockReleased,
    LockStatus,
)
from handlers.scopes.results import dumps, loads, row_factory
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.core.times import utc_time
from kernel.store.transaction import Tx

_MIN_LOCK_SECONDS = 0.001  # the resolution of stored times; less would expire at once
FORCED_UNLOCKS_SHOWN = 10
_lock_row = row_factory(Lock, "metadata", loads)


def memory_file_lock(
    tx: Tx, request: Checkout | Checkin | GetLockStatus | ListLocks | ForceUnlock
) -> CheckedOut | LockReleased | LockStatus | LockList:
    """Manage file locks for multi-agent coordination."""
    validate(request)
    if isinstance(request, ListLocks):
        return _list(tx, request)
    path = _path_of(tx, request.file_path)
    if isinstance(request, Checkout):
        return CheckedOut(True, _checkout(tx, path, request))
    if isinstance(request, Checkin):
        return _checkin(tx, path, request)
    if isinstance(request, ForceUnlock):
        return _force_unlock(tx, path, request)
    held = _active_lock(tx, path)
    broken = tx.all("scopes.locks.forced_unlocks", ForcedUnlock, path=path, limit=FORCED_UNLOCKS_SHOWN)
    return LockStatus(True, held is not None, held, broken or UNSET)


def _path_of(tx: Tx, given: str) -> str:
    """Return the normal form of a path; as it is given if a lock of an earlier release has it in that form."""
    check_path(given)
    path = normal_path(given)
    return path if path == given else tx.one("scopes.locks.stored_path", str, path=path, given=given) or path


def _list(tx: Tx, request: ListLocks) -> LockList:
    _check_references(tx, request)
    locks = tx.all(
        "scopes.locks.list",
        _lock_row,
        project_id=request.project_id,
        session_id=request.session_id,
        agent_id=request.agent_id,
        now=tx.now,
    )
    return LockList(True, locks, len(locks))


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
    lock = tx.one(
        "scopes.locks.acquire",
        _lock_row,
        id=tx.new_id("lock"),
        path=path,
        agent_id=request.agent_id,
        session_id=request.session_id,
        project_id=request.project_id,
        now=tx.now,
        expires_at=_expiry(tx.now, request.expires_in),
        metadata=dumps(request.metadata),
        fence=fence,
    )
    if lock is None:
        held = _active_lock(tx, path)
        raise _locked_fault(f"File {path} is already locked by {_holder(held, request.agent_id)}", held)
    return lock


def _checkin(tx: Tx, path: str, request: Checkin) -> LockReleased:
    agent = request.agent_id
    lock = tx.one("scopes.locks.get", _lock_row, path=path)
    # An expired lock is no lock to other agents; its own holder gets the error that names the expiry.
    if lock is None or (lock.checked_out_by != agent and _is_expired(lock, tx.now)):
        raise _not_locked_fault(path, _unlocked_by_force(tx, path, agent))
    if lock.checked_out_by != agent:
        by_force = _unlocked_by_force(tx, path, agent)
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
    held = _active_lock(tx, path)
    if held is None:
        raise _not_locked_fault(path)
    tx.run("scopes.locks.release", path=path)
    _add_event(tx, path, "force_unlock", request.agent_id, held.checked_out_by, held.fencing_token, request.reason)
    return LockReleased(True, f"File {path} force unlocked by {request.agent_id}")


def _active_lock(tx: Tx, path: str) -> Lock | None:
    """Return the lock on a file, unless it has expired."""
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


def _holder(held: Lock | None, agent: str) -> str:
    """Return the holder in words; the session too if it alone distinguishes the holder from the caller."""
    if held is None:
        return "another agent"
    session = f" in session {held.session_id}" if held.checked_out_by == agent else ""
    return f"agent {held.checked_out_by}{session}"


def _unlocked_by_force(tx: Tx, path: str, agent: str) -> ForcedUnlock | None:
    """Return the forced unlock that ended the last lock of an agent on a file; None if its last lock ended in another
    way.
    """
    return tx.one("scopes.locks.unlocked_by_force", ForcedUnlock, path=path, agent_id=agent)


def _locked_fault(message: str, lock: Lock | None, by_force: ForcedUnlock | None = None) -> Fault:
    context: dict[str, Any] = {"field": "file_path"}
    if lock is not None:
        context |= {"lockedBy": lock.checked_out_by, "sessionId": lock.session_id, "expiresAt": lock.expires_at}
    return _with_forced_unlock(Fault("conflict", message, errors.LOCKED, context), by_force)


def _not_locked_fault(path: str, by_force: ForcedUnlock | None = None) -> Fault:
    fault = Fault("not_found", f"File {path} is not locked", errors.NOT_LOCKED, {"field": "file_path"})
    return _with_forced_unlock(fault, by_force)


def _with_forced_unlock(fault: Fault, by_force: ForcedUnlock | None) -> Fault:
    """Return the fault, and who broke the lock of the caller, when and why."""
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
