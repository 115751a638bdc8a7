"""Reading for every page: the rights of its caller, and work on a reader of its tenant."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from handlers.console.guide import Checks, Guide
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.core.errors import Fault, unless_fault
from kernel.observe.call_log import CallLog
from kernel.observe.metrics import Snapshot
from kernel.security.permissions import Forbidden, Permission
from kernel.security.sign_in import SignIn
from kernel.store.context import CallContext
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from handlers.console.transfers import Uploads

R = TypeVar("R")
PAGE_ROWS = 50
SHOWN_CHARS = 20_000  # of a text, unless all of it is asked for


class Site(NamedTuple):
    """The parts of the server that the pages show: settings, schema, calls, whether it needs keys and whether it ends.

    `counted` are the counters of all workers, if metrics are on; `sign_in` makes the authorization server, if there is
    one.
    """

    config: Config
    schema: int
    needs_key: Callable[[], bool]
    log: CallLog
    stopping: Callable[[], bool]
    guide: Guide
    checks: Checks
    counted: Callable[[], Awaitable[Snapshot | Fault]] | None
    uploads: "Uploads"
    sign_in: Callable[[], SignIn] | None = None


class Place(NamedTuple):
    space: str
    key: str

    @property
    def dialect(self) -> str:
        return self.space.partition(":")[0]

    @property
    def id(self) -> str:
        return f"{self.space}/{self.key}"


async def read(dispatch: Dispatch, visit: Visit, work: Callable[[Tx], R]) -> R:
    _, future = dispatch.store.read(work, console_context(visit))
    return unless_fault(await future)


def console_context(visit: Visit, tool: str = "console") -> CallContext:
    return CallContext("kernel", tool, visit.caller.actor, reach=visit.caller.grant.reach)


def ordered(rows: Sequence[R], sort: str, columns: Mapping[str, Callable[[R], Any]]) -> list[R]:
    """Return the rows in the order of a column, the largest first if its name follows a minus; as they are without."""
    key = columns.get(sort.removeprefix("-"))
    return sorted(rows, key=key, reverse=sort.startswith("-")) if key else [*rows]


def allowed_dialects(visit: Visit) -> list[str] | None:
    """Return the dialects whose memories the caller may see; None for all."""
    return sorted(visit.caller.grant.dialects) or None


def place_of(visit: Visit, memory_id: str) -> Place:
    """Return the place of an id; raises Fault for no id, and Forbidden for a dialect the caller may not call."""
    space, slash, key = memory_id.partition("/")
    if not slash:
        raise Fault("invalid", "id: a memory is named by its space and key, such as paths/notes/today")
    place = Place(space, key)
    if not visit.caller.grant.allows_dialect(place.dialect):
        raise Forbidden(memory_id[:80], None)
    return place


def require(visit: Visit, what: str, least: Permission) -> None:
    if visit.caller.grant.permission < least:
        raise Forbidden(what, least)
