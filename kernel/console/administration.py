"""The pages of the server: how it is, and who has keys."""

import asyncio
from pathlib import Path

from msgspec import Struct

from kernel import data_dir
from kernel.config import VERSION, Config
from kernel.console.guide import Finding
from kernel.console.reading import Site, require
from kernel.console.requests import Visit
from kernel.data_dir import MAIN
from kernel.dispatch import Dispatch
from kernel.ids import utc_now
from kernel.security import api_keys
from kernel.security.permissions import Permission


class Health(Struct):
    """The state of the server and of the store of the caller's tenant; sizes are in bytes."""

    version: str
    schema: int
    model: str
    model_state: str
    reads_waiting: int
    writes_waiting: int
    read_limit: int
    write_limit: int
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


class ListedKey(Struct):
    """A key without its secret."""

    id: str
    name: str
    scope: str
    tenant: str
    dialects: list[str]
    created: str
    expires: str
    state: str
    last_used: str


class ListedTenant(Struct):
    """A tenant, and the bytes of its database."""

    name: str
    bytes: int


class Keys(Struct):
    """The keys the caller may manage, and what it may choose for a new one; the tenants for an operator."""

    keys: list[ListedKey]
    tenants: list[ListedTenant]
    scopes: list[str]
    dialects: list[str]
    in_use: bool


async def load_health(site: Site, dispatch: Dispatch, visit: Visit) -> Health:
    """What an admin may know of the machine."""
    require(visit, "Health", Permission.admin)
    load, context = dispatch.store.load(), dispatch.store.context
    embedder, deep = context.embedder, bool(visit.query.get("deep"))
    ready = embedder is not None and embedder.ready
    return Health(
        VERSION,
        site.schema,
        "none" if site.config.model is None else site.config.model.name,
        "none" if embedder is None else "ready" if ready else "loading",
        load.reads,
        load.writes,
        load.read_limit,
        load.write_limit,
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
        await site.checks.run(deep),
    )


async def load_keys(site: Site, dispatch: Dispatch, visit: Visit) -> Keys:
    """The keys of the caller's tenant; all of them for an operator."""
    require(visit, "Keys", Permission.admin)
    known = await asyncio.to_thread(api_keys.read, site.config.data)
    now, grant = utc_now(), visit.caller.grant
    shown = [_listed(key, now, site.log.last_used(key.id)) for key in known if manages(visit, key.tenant)]
    tenants = await asyncio.to_thread(_tenants, site.config) if grant.permission >= Permission.operator else []
    scopes = [permission.name for permission in Permission if permission <= grant.permission]
    return Keys(shown, tenants, scopes, [dialect.name for dialect in dispatch.dialects], site.needs_key())


def manages(visit: Visit, tenant: str) -> bool:
    """Whether the caller manages the keys of a tenant."""
    return visit.caller.grant.permission >= Permission.operator or visit.caller.tenant == tenant


def _listed(key: api_keys.Key, now: str, last_used: str) -> ListedKey:
    dialects = list(key.dialects)
    state = key.state(now)
    return ListedKey(key.id, key.name, key.scope, key.tenant, dialects, key.created, key.expires, state, last_used)


def _tenants(config: Config) -> list[ListedTenant]:
    names = (MAIN, *data_dir.other_tenants(config.data))
    return [ListedTenant(name, _size(config._replace(tenant=name).file)) for name in names]


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
