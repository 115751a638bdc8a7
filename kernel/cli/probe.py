"""Probes of a running server: its health, its MCP handshake, and which process holds a port."""

import argparse
import http.client
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from kernel.cli.exchange import exchange
from kernel.cli.output import show
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.security.local_access import authority, connectable

_INITIALIZE = msgspec.json.encode(
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
_TIMEOUT_SECONDS = 5
_MOST_BYTES = 1 << 20
_HEALTHY = {"status": "ok"}
_TCP_LISTEN = "0A"  # TCP_LISTEN in the `st` column of /proc/net/tcp
_SOCKET = regex(r"socket:\[(\d+)\]")


class Handshake(NamedTuple):
    """The response to `initialize`: HTTP status, the server's name and version if the body has them, and whether a
    client without a key can log in.
    """

    status: int
    name: str = ""
    version: str = ""
    signs_in: bool = False


class LoginCode(msgspec.Struct, frozen=True):
    """A code with which a browser logs in to the console once, and the seconds for which it is good."""

    code: str
    seconds: int


class _Info(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Result(msgspec.Struct, frozen=True):
    serverInfo: _Info = _Info()


class _Reply(msgspec.Struct, frozen=True):
    result: _Result = _Result()


def handshake(url: str, key: str = "", host: str = "") -> Handshake | None:
    """Send `initialize` to an address, as if it had the name `host`; None if nothing listens there.

    Raises OSError if the response is not HTTP.
    """
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.connect()
    except (OSError, ValueError):  # the latter for a host that can be no name
        return None
    headers = {**_HEADERS, **({"authorization": f"Bearer {key}"} if key else {}), **({"host": host} if host else {})}
    try:
        path = parts._replace(scheme="", netloc="").geturl()
        answer = exchange(connection, "POST", path, _INITIALIZE, headers, seconds=_TIMEOUT_SECONDS, most=_MOST_BYTES)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(str(error)) from None
    signs_in = "resource_metadata=" in answer.headers.get("www-authenticate", "")
    try:
        info = msgspec.json.decode(answer.body, type=_Reply).result.serverInfo
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Handshake(answer.status, signs_in=signs_in)
    return Handshake(answer.status, info.name, info.version, signs_in)


def listening_process(port: int, proc: Path = Path("/proc")) -> str:
    """Name and process id of the program that listens on `port`; empty if the system does not expose it."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _listening_sockets(proc / "net" / table, port)}
    for folder in proc.glob("[0-9]*"):
        if inodes & set(_open_sockets(folder)):
            with suppress(OSError):
                return f"{(folder / 'comm').read_text(encoding='utf-8').strip()} (process {folder.name})"
    return ""


def _open_sockets(process: Path) -> Iterator[str]:
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                match = _SOCKET.match(str(link.readlink()))
                if match:
                    yield match[1]


def _listening_sockets(table: Path, port: int) -> list[str]:
    try:
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _TCP_LISTEN and int(row[1].rpartition(":")[2], 16) == port]


def run(arguments: argparse.Namespace, config: Config) -> int:
    check_health(config.host, config.port)
    if arguments.json:
        show({"status": "ok"}, "", as_json=True)
    return 0


def authority_of(config: Config) -> str:
    """Return the address and port at which a client of this machine reaches a server of this configuration."""
    return authority(connectable(config.host), config.port)


def check_health(host: str, port: int) -> None:
    """Return if GET /healthz answers as a healthy Quipu does; raises Fault("busy") with the reason otherwise."""
    connection = http.client.HTTPConnection(connectable(host), port, timeout=_TIMEOUT_SECONDS)
    try:
        answer = exchange(connection, "GET", "/healthz", seconds=_TIMEOUT_SECONDS, most=_MOST_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error
        raise Fault("busy", f"no answer on port {port}: {reason}") from None
    if answer.status != 200:
        raise Fault("busy", f"the server on port {port} answers {answer.status}")
    if answer.media_type != "application/json" or _json_of(answer.body) != _HEALTHY:
        raise Fault("busy", f"the server on port {port} is not Quipu")


def _json_of(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def login_code(authority: str, key: str) -> LoginCode | None:
    """Return a code for the browser from the server on this host and port; None if it does not accept the key."""
    connection = http.client.HTTPConnection(authority, timeout=_TIMEOUT_SECONDS)
    form = {"content-type": "application/x-www-form-urlencoded", "origin": f"http://{authority}"}
    try:
        headers = {**form, "authorization": f"Bearer {key}"}
        answer = exchange(connection, "POST", "/ui/do/code", b"", headers, seconds=_TIMEOUT_SECONDS, most=_MOST_BYTES)
        return msgspec.json.decode(answer.body, type=LoginCode) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, msgspec.DecodeError, UnicodeDecodeError):
        return None
