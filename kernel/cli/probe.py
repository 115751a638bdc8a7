"""Probes of a running server: its health, its MCP handshake, and which process holds a port."""

import http.client
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from kernel.errors import Fault
from kernel.lazy_regex import regex

_HELLO = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "quipu-doctor", "version": "1"},
        },
    }
)
_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_SECONDS = 5
_LISTENING = "0A"
_SOCKET = regex(r"socket:\[(\d+)\]")


class Answered(NamedTuple):
    """What an MCP server said to a greeting: the HTTP status, and who it is where it said so."""

    status: int
    name: str = ""
    version: str = ""


class _Info(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Result(msgspec.Struct, frozen=True):
    serverInfo: _Info = _Info()


class _Reply(msgspec.Struct, frozen=True):
    result: _Result = _Result()


def greet(host: str, port: int) -> Answered | None:
    """Greets whoever listens at /mcp; None where nobody does. Raises OSError for one that cannot be understood."""
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.connect()
    except OSError:
        return None
    try:
        connection.request("POST", "/mcp", _HELLO, _HEADERS)
        answer = connection.getresponse()
        body = answer.read(1 << 20)
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
    finally:
        connection.close()
    try:
        info = msgspec.json.decode(body, type=_Reply).result.serverInfo
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Answered(answer.status)
    return Answered(answer.status, info.name, info.version)


def holder(port: int, proc: Path = Path("/proc")) -> str:
    """The program that listens on `port`, with its process id; empty where the system does not tell us."""
    sockets = {inode for table in ("tcp", "tcp6") for inode in _listening(proc / "net" / table, port)}
    for folder in proc.glob("[0-9]*"):
        if sockets & set(_held(folder)):
            with suppress(OSError):
                return f"{(folder / 'comm').read_text(encoding='utf-8').strip()} (process {folder.name})"
    return ""


def _held(process: Path) -> Iterator[str]:
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                found = _SOCKET.match(str(link.readlink()))
                if found:
                    yield found[1]


def _listening(table: Path, port: int) -> list[str]:
    try:
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]


_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def ask(host: str, port: int) -> None:
    """Returns if the server that listens on `host` and `port` answers /healthz well; raises Fault with the reason."""
    connection = http.client.HTTPConnection(_ANY_ADDRESS.get(host, host), port, timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error
        raise Fault("busy", f"no answer on port {port}: {reason}") from None
    finally:
        connection.close()
    if status != 200:
        raise Fault("busy", f"the server on port {port} answers {status}")
