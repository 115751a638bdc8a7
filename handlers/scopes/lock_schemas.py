"""Request and result types of memory_file_lock (seed 000)."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes.field_types import Id, Object, Text
from handlers.scopes.lock_paths import MAX_AGENT_LENGTH, MAX_PATH_LENGTH

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
    """The lock to release."""

    file_path: FilePath
    agent_id: AgentId
    session_id: SessionId = None
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
    """Result of status; `force_unlocks` are the last ten of the file, newest first, absent if there are none."""

    success: bool
    is_locked: bool
    lock: Lock | None
    force_unlocks: list[ForcedUnlock] | UnsetType = UNSET


class LockList(Struct):
    """Result of list."""

    success: bool
    locks: list[Lock]
    count: int
