"""The state that all transactions of one store share, the provenance of a call, and the protocols of an engine."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kernel.core.limits import CallLimits
from kernel.embed.model import Embedder
from kernel.security.permissions import Reach

if TYPE_CHECKING:
    from kernel.memories.briefing import Brief, HookSessions, KeepHandoff
    from kernel.search.cache import SearchCache

_NONE: Mapping[str, Any] = MappingProxyType({})


class CallContext(NamedTuple):
    """The provenance of a call: its dialect and tool, and the actor that the transport has authenticated.

    `key` is the id of the caller's key, empty without a key; `reach` holds the statements of the call to its places.
    """

    dialect: str = "kernel"
    tool: str = "kernel"
    actor: str = "local"
    key: str = ""
    reach: Reach | None = None


class StoreContext(NamedTuple):
    """The state that every transaction of one store shares: statements, embedder, search cache, settings and
    limits.

    Without an embedder there are no vectors, and search is lexical only. `settings` are those of the dialects, `data`
    is the data directory, `call_limits` bound the cost of one call, `injection_mode` is the treatment of texts that
    match a rule of `kernel.security.rules.injection`, `fts5_functions` are registered on every connection, `dialects`
    are the names of those that are served, `tagged` finds the memories with any of some tags, by dialect: (space, key)
    pairs, `expired` those of some memories that are past their validity, `sources_of` what the index must hold of some
    memories, and `past` is how to read the history, by dialect (see `kernel/store/history.py`). `connect` opens a
    connection to another database than the file; None for SQLite. `briefs`, `keep_handoff` and `hook_sessions` are for
    the hooks of clients (see `kernel/memories/briefing.py`). `copies` finds the copies of the file that backups of this
    machine have made. `derived` are functions of a text whose results the index holds, see `Tx.derived`.
    """

    statements: Mapping[str, str]
    embedder: Embedder | None = None
    search_cache: "SearchCache" = cast("SearchCache", None)  # set wherever documents are indexed or searched
    settings: Mapping[str, Any] = _NONE
    data: Path | None = None
    call_limits: CallLimits = CallLimits()
    injection_mode: str = "off"
    fts5_functions: Mapping[str, Callable[..., Any]] = _NONE
    dialects: tuple[str, ...] = ()
    tagged: Mapping[str, Callable[..., list[tuple[str, str]]]] = _NONE
    expired: Mapping[str, Callable[..., list[tuple[str, str]]]] = _NONE
    sources_of: Mapping[str, Callable[..., Iterator[Any]]] = _NONE
    past: Mapping[str, Any] = _NONE
    connect: "Callable[..., Any] | None" = None
    briefs: "Mapping[str, Brief]" = _NONE
    keep_handoff: "KeepHandoff | None" = None
    hook_sessions: "HookSessions | None" = None
    copies: Callable[[], Iterable[Path]] = tuple
    derived: tuple[Callable[[str], Any], ...] = ()


Params = Mapping[str, object]  # text, numbers, bytes and None; `Tx` makes JSON of lists and tuples
Token = tuple[int, int, str]  # start byte, end byte, stem

TOO_LONG = "The call takes too long, ask for less."


class ConstraintFailed(Exception):
    """A constraint of a table was violated, in an engine whose own errors are not known here."""


class Cursor(Protocol):
    """The rows of one executed statement."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Rows:
    """The rows of a statement; those of a stream are read as they are needed."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)


class StatementBudget(Protocol):
    """The cost limit of a call; `new_statement` marks that a statement begins, so that the time before it is free.

    `streamed` marks that the rows of the next statement are streamed, and may be too many for memory.
    """

    new_statement: bool
    streamed: bool


class Tables(Protocol):
    """Whole rows of any table, for an export of everything and for the copy of a tenant."""

    def names(self) -> list[str]:
        """Return the names of the tables, each after those that it refers to."""
        ...

    def columns(self, table: str) -> list[str]: ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return every row, in the order of the primary key."""
        ...

    def found(self, table: str, row: dict[str, Any]) -> dict[str, Any] | None:
        """Return the row with the primary key of this one; None if there is none."""
        ...

    def put(self, table: str, row: dict[str, Any], *, replace: bool) -> None: ...

    def copied(self) -> Mapping[str, Sequence[str]]:
        """Return the columns that hold values of each table that is not derived from others."""
        ...

    def replace_all(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None: ...

    def last_ids(self) -> Mapping[str, int]:
        """Return the last ids of the tables that never give an id twice."""
        ...

    def set_last_ids(self, ids: Mapping[str, int]) -> None: ...


class Engine(Protocol):
    """What a transaction needs of a database engine."""

    @property
    def context(self) -> StoreContext: ...

    @property
    def filename(self) -> str: ...

    @property
    def clock(self) -> Callable[[], int]:
        """Return nanoseconds since 1970, by a clock that all writers of the store share; only in a transaction."""
        ...

    @property
    def execute(self) -> Callable[[str, Params | None], Cursor]: ...

    @property
    def run_ahead(self) -> Callable[[str, Params], object]:
        """Runs one statement for its effect, at once or with the next."""
        ...

    @property
    def ahead(self) -> Callable[[str, Params], Iterable[tuple[Any, ...]]]:
        """Begins one statement, which sees what was done before it: its rows may come with those of the next."""
        ...

    @property
    def changes(self) -> Callable[[], int]: ...

    @property
    def tables(self) -> Tables: ...

    @property
    def budget(self) -> StatementBudget: ...

    def limit(self, reach: Reach | None) -> Mapping[str, str]:
        """Return the statements for a reach, which sees and changes rows of its places alone, until the next call.

        Raises Fault("disabled") if the engine cannot hold them to it.
        """
        ...

    def tokenize(self, text: str) -> list[Token]: ...

    def can_revert(self, parts: Callable[[], Iterable[bytes]]) -> bool:
        """Return whether no row of recorded changes, the last first, has changed since, as far as a read can tell."""
        ...

    def revert_changes(self, changes: bytes) -> bool:
        """Reverts recorded changes; False, with nothing changed, if a row has changed again since."""
        ...

    def backup_committed(self, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Copies the committed state to `target`, without the writes of the open transaction."""
        ...
