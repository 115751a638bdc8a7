"""The facts of `quipu setup`, `quipu doctor` and `quipu tools --tokens`, for the console."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from handlers.console.guide import ClientSetup, Finding, Guide, Ran
from kernel.calls.tools import Tool
from kernel.cli import client_entries, doctor
from kernel.cli.clients import CLIENTS, Client, Target, config_file, entry_of, install_link_of
from kernel.cli.hook_files import rekey_command
from kernel.cli.import_command import import_formats
from kernel.cli.token_cost import tool_list_tokens
from kernel.core.config import FIRST_DIALECTS, Config

# Those that take milliseconds; the others read the whole database, load a model, or ask the server.
_QUICK = (doctor.sqlite, doctor.folder, doctor.settings, doctor.disk, doctor.access)
_DEEP = (doctor.database, doctor.model, doctor.server)


def guide(config: Config) -> Guide:

    def clients(url: str, key: str) -> list[ClientSetup]:
        return [_setup(config, client, Target(url=url, key=key)) for client in CLIENTS]

    def findings(deep: bool) -> list[Finding]:
        checks = (*_QUICK, partial(doctor.clients, platform=sys.platform), *(_DEEP if deep else ()))
        return [*doctor.findings(config, checks)]

    async def run(words: Sequence[str]) -> Ran:
        program = client_entries.this_program(config)
        store = ["--store", config.store] if config.store else []
        where = ["--data", str(config.data), *store, "--model", str(config.model or "none")]
        process = await asyncio.create_subprocess_exec(
            *program.words, *words, *where, stdout=PIPE, stderr=PIPE, env={**config.environment, **program.env}
        )
        output, errors = await process.communicate()
        return Ran(process.returncode or 0, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))

    return Guide(clients, findings, _price(), run, import_formats())


def _setup(config: Config, client: Client, target: Target) -> ClientSetup:
    entry = entry_of(client, target)
    file = str(config_file(client, config.environment, sys.platform))
    options = _options(config, target.url) if entry is not None else ["--stdio", *_dialects(config, target.url)]
    options += ["--key", "-"] if entry is not None and target.key else []
    command = " ".join(["quipu", "setup", "--client", client.name, *options])
    if entry is None:
        return ClientSetup(client.name, client.title, command, file, "", "")
    rekey = rekey_command(client, config)
    snippet = client_entries.snippet(client, client_entries.NAME, entry)
    link = install_link_of(client, client_entries.NAME, entry) if client.install_link else ""
    return ClientSetup(client.name, client.title, command, file, snippet, link, rekey)


def _options(config: Config, url: str) -> list[str]:
    """Return the options that lead `quipu setup` to a URL, unless it takes that by itself."""
    own = f"{config.public or f'http://127.0.0.1:{config.port}'}/mcp"
    return [] if url == own + ("" if config.dialects else f"/{','.join(FIRST_DIALECTS)}") else ["--url", url]


def _dialects(config: Config, url: str) -> list[str]:
    """Return the options for the dialects of a URL, unless `quipu setup` takes those by itself."""
    names = urlsplit(url).path.rpartition("/mcp")[2].strip("/").split(",")
    if tuple(names) == FIRST_DIALECTS or config.dialects:
        return []
    return [word for name in names for word in ("--dialect", name or "all")]


def _price() -> Callable[[Sequence[Tool]], int]:
    prices: dict[tuple[str, ...], int] = {}

    def tokens(tools: Sequence[Tool]) -> int:
        names = tuple(tool.name for tool in tools)
        if names not in prices:
            prices[names] = tool_list_tokens(tools, results=False)
        return prices[names]

    return tokens
