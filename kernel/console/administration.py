"""The pages of the server: how to connect a client, how the server is, and who has keys."""

import asyncio

from msgspec import Struct

from kernel.config import VERSION
from kernel.console.reading import Site, require
from kernel.console.requests import Visit
from kernel.dispatch import Dispatch
from kernel.ids import utc_now
from kernel.security import api_keys
from kernel.security.permissions import Permission

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "vscode", "gemini", "opencode", "windsurf")


class Address(Struct):
    """An address of MCP, what it serves, and how many tools that are."""

    path: str
    about: str
    tools: int


class Connect(Struct):
    """How a client reaches this server."""

    base: str
    addresses: list[Address]
    needs_key: bool


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


class Keys(Struct):
    """The keys the caller may manage, and what it may choose for a new one."""

    keys: list[ListedKey]
    scopes: list[str]
    dialects: list[str]
    in_use: bool


async def load_connect(site: Site, dispatch: Dispatch, _visit: Visit) -> Connect:
    """The addresses of all dialects and of each."""
    config = site.config
    host = f"[{config.host}]" if ":" in config.host else config.host
    every = sum(len(dialect.tools) for dialect in dispatch.dialects)
    addresses = [Address("/mcp", "Every memory tool", every)]
    addresses += [Address(f"/mcp/{one.name}", one.about, len(one.tools)) for one in dispatch.dialects]
    return Connect(config.public or f"http://{host}:{config.port}", addresses, site.needs_key())


async def load_health(site: Site, dispatch: Dispatch, visit: Visit) -> Health:
    """What an admin may know of the machine."""
    require(visit, "Health", Permission.admin)
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
        load.read_limit,
        load.write_limit,
        load.file_bytes,
        load.wal_bytes,
        str(context.data or ""),
        visit.caller.tenant,
        [dialect.name for dialect in dispatch.dialects],
        context.injection_mode,
        site.config.undo_hours,
    )


async def load_keys(site: Site, dispatch: Dispatch, visit: Visit) -> Keys:
    """The keys of the caller's tenant; all of them for an operator."""
    require(visit, "Keys", Permission.admin)
    known = await asyncio.to_thread(api_keys.read, site.config.data)
    now, grant = utc_now(), visit.caller.grant
    shown = [
        ListedKey(key.id, key.name, key.scope, key.tenant, list(key.dialects), key.created, key.expires, key.state(now))
        for key in known
        if manages(visit, key.tenant)
    ]
    scopes = [permission.name for permission in Permission if permission <= grant.permission]
    return Keys(shown, scopes, [dialect.name for dialect in dispatch.dialects], site.needs_key())


def manages(visit: Visit, tenant: str) -> bool:
    """Whether the caller manages the keys of a tenant."""
    return visit.caller.grant.permission >= Permission.operator or visit.caller.tenant == tenant
