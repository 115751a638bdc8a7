"""The pages of the server: how it is, and who has keys."""

import asyncio
from pathlib import Path

from msgspec import Struct

from handlers.console.guide import Finding
from handlers.console.reading import Site, require
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.core import data_dir
from kernel.core.config import VERSION, Config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.observe.metrics import SECONDS, ToolCalls
from kernel.security import api_keys
from kernel.security.permissions import Permission

_MOST_TOOLS = 24  # for which there is a chart; a page has at most 30 KB


class ToolTimes(Struct):
    """The calls of a tool since the start: how many, how many of them failed, and how many took up to each of `bounds`.

    The last of `counts` took longer.
    """

    tool: str
    calls: int
    failed: int
    milliseconds: float
    counts: list[int]


class Metrics(Struct):
    """The counters of all workers since their start, if QUIPU_METRICS is on; `bounds` are in milliseconds."""

    bounds: list[float]
    tools: list[ToolTimes]
    connections: int
    processor: float
    resident: int


class Health(Struct):
    """The state of the server and of the store of the caller's tenant; sizes are in bytes.

    The findings are of the installation, with the stores of all tenants: an operator alone has them.
    """

    version: str
    schema: int
    model: str
    model_state: str
    reads_waiting: int
    writes_waiting: int
    read_seconds: float
    write_seconds: float
    file_bytes: int
    log_bytes: int
    data: str
    tenant: str
    dialects: list[str]
    injection_mode: str
    undo_hours: int
    groups: list[int]
    calls: int
    deep: bool
    findings: list[Finding]
    metrics: Metrics | None


class ListedKey(Struct):
    """A key without its secret; `places` are those that it is held to, if any."""

    id: str
    name: str
    scope: str
    tenant: str
    dialects: list[str]
    places: list[str]
    created: str
    expires: str
    state: str
    last_used: str


class ListedTenant(Struct):
    name: str
    bytes: int


class Keys(Struct):
    """The keys the caller may manage, and the choices for a new key; the tenants for an operator."""

    keys: list[ListedKey]
    tenants: list[ListedTenant]
    scopes: list[str]
    dialects: list[str]
    all_dialects: bool
    in_use: bool


async def load_health(site: Site, dispatch: Dispatch, visit: Visit) -> Health:
    """Return the state of the machine for an admin, with the quick checks."""
    require(visit, "Health", Permission.admin)
    findings = await site.checks.run(deep=False) if is_operator(visit) else []
    return await _health(site, dispatch, visit, findings, deep=False)


async def check_health(site: Site, dispatch: Dispatch, visit: Visit) -> Health:
    """Return the same with all checks, which read every database."""
    require(visit, "Check", Permission.operator)
    return await _health(site, dispatch, visit, await site.checks.run(deep=True), deep=True)


async def _health(site: Site, dispatch: Dispatch, visit: Visit, findings: list[Finding], *, deep: bool) -> Health:
    load, context = dispatch.store.load(), dispatch.store.context
    embedder = context.embedder
    ready = embedder is not None and embedder.ready
    return Health(
        VERSION,
        site.schema,
        "none" if site.config.model is None else site.config.model.name,
        "none" if embedder is None else "ready" if ready else "loading",
        load.reads,
        load.writes,
        load.oldest[1],
        load.oldest[0],
        load.file_bytes,
        load.wal_bytes,
        str(context.data or ""),
        visit.caller.tenant,
        [dialect.name for dialect in dispatch.dialects],
        context.injection_mode,
        site.config.undo_hours,
        list(load.groups),
        load.calls,
        deep,
        findings,
        await _metrics(site) if is_operator(visit) else None,
    )


async def _metrics(site: Site) -> Metrics | None:
    """Return the tools with most calls first."""
    snapshot = None if site.counted is None else await site.counted()
    if snapshot is None or isinstance(snapshot, Fault):
        return None
    tools = [_times(tool, calls) for tool, calls in snapshot.calls.items()]
    tools.sort(key=lambda calls: (-calls.calls, calls.tool))
    bounds = [1000 * bound for bound in SECONDS]
    return Metrics(bounds, tools[:_MOST_TOOLS], snapshot.connections, snapshot.processor, snapshot.resident)


def _times(tool: str, counts: ToolCalls) -> ToolTimes:
    calls, failures = sum(counts.buckets), sum(count for outcome, count in counts.outcomes.items() if outcome != "ok")
    return ToolTimes(tool, calls, failures, 1000 * counts.seconds / max(1, calls), counts.buckets)


async def load_keys(site: Site, dispatch: Dispatch, visit: Visit) -> Keys:
    require(visit, "Keys", Permission.admin)
    keys = await asyncio.to_thread(api_keys.read, site.config.data)
    now, grant = utc_now(), visit.caller.grant
    rows = [_listed(key, now, site.log.last_used(key.id)) for key in keys if manages(visit, key)]
    tenants = await asyncio.to_thread(_tenants, site.config) if is_operator(visit) else []
    scopes = [permission.name for permission in Permission if permission <= grant.permission]
    dialects = [dialect.name for dialect in dispatch.dialects if grant.allows_dialect(dialect.name)]
    return Keys(rows, tenants, scopes, dialects, not grant.dialects, site.needs_key())


def is_operator(visit: Visit) -> bool:
    """Return whether the caller may know of all tenants."""
    return visit.caller.grant.permission >= Permission.operator


def manages(visit: Visit, key: api_keys.Key) -> bool:
    """Return whether a key is of the caller's tenant, of any for an operator, and for no dialects that the caller may
    not.
    """
    own = visit.caller.grant.dialects
    within = not own or (bool(key.dialects) and own.issuperset(key.dialects))
    return within and (is_operator(visit) or visit.caller.tenant == key.tenant)


def _listed(key: api_keys.Key, now: str, last_used: str) -> ListedKey:
    places = [*(f"reads {place}" for place in key.read), *(f"writes {place}" for place in key.write)]
    return ListedKey(
        key.id,
        key.name,
        key.scope,
        key.tenant,
        list(key.dialects),
        places,
        key.created,
        key.expires,
        key.state(now),
        last_used,
    )


def _tenants(config: Config) -> list[ListedTenant]:
    names = (MAIN, *data_dir.other_tenants(config.data))
    return [ListedTenant(name, _size(config._replace(tenant=name).file)) for name in names]


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
