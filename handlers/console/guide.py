"""The facts of the command line that the console shows: clients and their entries, checks, tokens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from kernel.calls.tools import Tool
from kernel.core.config import Config

FIRST_KEY = "The first key: from now on every client needs one, those on this machine too"
NOT_ADMIN = (
    "Without a key of the scope admin nobody manages keys or sees Health in the console. "
    "`quipu key create --scope admin` on this machine makes one."
)
_FRESH_SECONDS = 10.0


class ClientSetup(Struct):
    """How one client is connected: the command that does it, or the entry for its file, and perhaps a link.

    `rekey` is the command that gives a key to the entry which its file has for this server; empty without that entry.
    """

    name: str
    title: str
    command: str
    file: str
    snippet: str
    link: str
    rekey: str = ""


class Finding(Struct):
    grade: str
    subject: str
    detail: str
    remedy: str


class Ran(NamedTuple):
    status: int
    output: str
    errors: str


async def _no_commands(_words: Sequence[str]) -> Ran:
    return Ran(1, "", "This server runs no commands.")


class Guide(NamedTuple):
    """`clients(url, key)` of a server at an address, `findings(deep)` of this server, `tokens(tools)` of a list.

    `run(words)` runs a command of the terminal on the data of this server; `imports` are the formats of an import, each
    with its description.
    """

    clients: Callable[[str, str], list[ClientSetup]]
    findings: Callable[[bool], list[Finding]]
    tokens: Callable[[Sequence[Tool]], int]
    run: Callable[[Sequence[str]], Awaitable[Ran]] = _no_commands
    imports: Sequence[tuple[str, str]] = ()


GuideOf = Callable[[Config], Guide]


def _nothing(*_arguments: object) -> list[Any]:
    return []


def _no_tokens(_tools: Sequence[Tool]) -> int:
    return 0


NO_GUIDE = Guide(_nothing, _nothing, _no_tokens)


class Checks:
    """The findings of the guide, in a thread.

    Of the quick checks and of all of them one run each at a time, and none sooner than ten seconds after another.
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._locks = {False: asyncio.Lock(), True: asyncio.Lock()}  # so that quick checks do not wait for deep checks
        self._found: dict[bool, tuple[float, list[Finding]]] = {}

    async def run(self, *, deep: bool) -> list[Finding]:
        """Return the findings of the checks; deep checks read the whole database."""
        async with self._locks[deep]:
            at, findings = self._found.get(deep, (-_FRESH_SECONDS, []))
            if time.monotonic() - at >= _FRESH_SECONDS:
                findings = await asyncio.to_thread(self._guide.findings, deep)
                self._found[deep] = (time.monotonic(), findings)
            return findings
