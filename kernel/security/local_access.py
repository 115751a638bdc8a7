"""How programs of this machine find the server of a data directory: a file with its address and a token.

The server holds a lock on the file as long as it lives, so an address that no process holds is never used. Who can read
the file can read the database next to it, so its token opens what the database has.
"""

import hashlib
import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import Any, NamedTuple, Protocol, Self

FILE = "server.address"
TOKEN_HEADER, TENANT_HEADER = b"x-quipu-local", b"x-quipu-tenant"
LOCKED_BYTE = 1 << 20  # behind the content: Windows refuses to read locked bytes
_LOCK_ROUNDS, _LOCK_POLL_SECONDS = 20, 0.01
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # if a server listens everywhere


class _Listening(Protocol):
    """A socket, or asyncio's view of a socket."""

    @property
    def family(self) -> int: ...

    def getsockname(self) -> Any: ...


class LocalAccess(NamedTuple):
    """The token of a server, for those who can read its data directory."""

    data: Path
    token: str
    process: int = 0

    @classmethod
    def fresh(cls, data: Path) -> Self:
        """Return a token of its own for each start."""
        return cls(data, secrets.token_urlsafe(24), os.getpid())

    def publish(self, sockets: Sequence[_Listening]) -> None:
        """Writes the file with the address of these sockets, and holds it until the process ends.

        It is left as it is where another server holds it, and if it cannot be written.
        """
        addresses = [sock.getsockname() for sock in sockets if sock.family in {AF_INET, AF_INET6}]
        if not addresses:
            return
        host, port, *_ = addresses[0]
        descriptor = -1
        try:
            descriptor = os.open(self.data / FILE, os.O_RDWR | os.O_CREAT, 0o600)
            _lock_soon(descriptor)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{connectable(host)} {port} {self.token}\n".encode())
        except OSError:
            if descriptor >= 0:
                os.close(descriptor)

    def close(self) -> None:
        """Deletes the file, if it is this one's and this is the process that made the token: workers share it."""
        with suppress(OSError):
            if os.getpid() == self.process and self.token.encode() in (self.data / FILE).read_bytes():
                (self.data / FILE).unlink()


def proof(secret: str, nonce: bytes, port: int) -> bytes:
    """Return the keyed hash of a nonce and of the port that this server listens on, in hex."""
    return hashlib.blake2b(b"%d %b" % (port, nonce), key=secret.encode()).hexdigest().encode()


def connectable(host: str) -> str:
    """Return the address to connect to for a server that listens on `host`."""
    return _LOOPBACK_OF.get(host, host)


def authority(host: str, port: int) -> str:
    """Return an address and port as they stand in a URL."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _lock_soon(descriptor: int) -> None:
    """Takes the lock; clients that look whether it is held hold it for a moment. Raises OSError."""
    for _ in range(_LOCK_ROUNDS):
        with suppress(OSError):
            _lock(descriptor)
            return
        time.sleep(_LOCK_POLL_SECONDS)
    _lock(descriptor)


def _lock(descriptor: int) -> None:
    """Raises OSError if another process has it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
