"""The state that all transactions of one store share, and the provenance of a call."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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

    @property
    def writer(self) -> tuple[str, str, str]:
        """Return the dialect, tool and actor that a row names."""
        return self[:3]


class StoreContext(NamedTuple):
    """The state that every transaction of one store shares: statements, embedder, search cache, settings and
    limits.

    Without an embedder there are no vectors, and search is lexical only. `settings` are those of the dialects, `data`
    is the data directory, `call_limits` bound the cost of one call, `injection_mode` is the treatment of texts that
    match a rule of `kernel.security.rules.injection`, `fts5_functions` are registered on every connection, `dialects`
    are the names of those that are served, `tagged` finds the memories with any of some tags, by dialect: (space, key)
    pairs, `expired` those of some memories that are past their validity, and `past` is how to read the history, by
    dialect (see `kernel/store/history.py`). `connect` opens a connection to another database than the file; None for
    SQLite. `briefs`, `keep_handoff` and `hook_sessions` are for the hooks of clients (see
    `kernel/memories/briefing.py`). `copies` finds the copies of the file that backups of this machine have made.
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
    past: Mapping[str, Any] = _NONE
    connect: "Callable[..., Any] | None" = None
    briefs: "Mapping[str, Brief]" = _NONE
    keep_handoff: "KeepHandoff | None" = None
    hook_sessions: "HookSessions | None" = None
    copies: Callable[[], Iterable[Path]] = tuple
