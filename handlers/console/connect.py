"""How a client is connected: an address, the tokens of its tool list, and the entry for each client."""

import asyncio
from ipaddress import ip_address

from msgspec import Struct

from handlers.console.guide import ClientSetup
from handlers.console.reading import Site, allowed_dialects
from handlers.console.requests import CONSOLE, Visit
from kernel.calls.dispatch import Dispatch
from kernel.core.config import FIRST_DIALECTS
from kernel.observe.call_log import Count
from kernel.security.local_access import authority

_EVERYWHERE = {str(ip_address(0)), "::"}  # if a server listens on all interfaces
_KEY = "KEY"  # stands for a key in an entry


class Choice(Struct):
    name: str
    about: str
    tools: int
    chosen: bool


class Connect(Struct):
    """An address of MCP with the dialects that were chosen, and the entries of clients for it.

    `tokens` is the estimate for its list of tools in the context of a model. `last` is the last call of a client.
    """

    url: str
    reading: bool
    tools: int
    tokens: int
    choices: list[Choice]
    clients: list[ClientSetup]
    needs_key: bool
    last: Count | None


async def load_connect(site: Site, dispatch: Dispatch, visit: Visit) -> Connect:
    """Return the address of the dialects whose names are among the parameters, or of those that `quipu setup` takes."""
    query, reading = visit.query, visit.query.get("tools") == "read"
    selected_dialects = [dialect for dialect in dispatch.dialects if query.get(dialect.name)]
    first = [dialect for dialect in dispatch.dialects if dialect.name in FIRST_DIALECTS and not site.config.dialects]
    selection = selected_dialects or first or list(dispatch.dialects)
    names = ",".join(dialect.name for dialect in selection)
    path = "/mcp" if len(selection) == len(dispatch.dialects) else f"/mcp/{names}"
    url = f"{base(site)}{path}{'?tools=read' if reading else ''}"
    tools = [tool for dialect in selection for tool in dialect.tools if not reading or tool.mode == "read"]
    key = _KEY if site.needs_key() else ""
    tokens, clients = await asyncio.to_thread(lambda: (site.guide.tokens(tools), site.guide.clients(url, key)))
    counts = site.log.counts(visit.caller.tenant, allowed_dialects(visit))
    last = next((count for count in counts if not count.client.endswith(CONSOLE)), None)
    choices = [
        Choice(dialect.name, dialect.about, len(dialect.tools), dialect in selection) for dialect in dispatch.dialects
    ]
    return Connect(url, reading, len(tools), tokens, choices, clients, site.needs_key(), last)


def base(site: Site) -> str:
    """Return the public address of the server, or its address for clients of this machine."""
    config = site.config
    host = "127.0.0.1" if config.host in _EVERYWHERE else config.host
    return config.public or f"http://{authority(host, config.port)}"
