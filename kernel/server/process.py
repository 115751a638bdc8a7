"""The process: inherited sockets, the limit of file descriptors, idle exit, memory returned to the system."""

import faulthandler
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING

from kernel.core.config import on_loopback
from kernel.core.errors import Fault

if TYPE_CHECKING:  # uvicorn takes a tenth of a second to import, and commands on the file serve nothing
    from uvicorn.server import ServerState

_BACKLOG = 2048  # connections that wait to be accepted: that of uvicorn
_FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START of systemd's socket activation


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask this process to end; the loss of the terminal is none for a process of `nohup`."""
    signals = (signal.SIGTERM, signal.SIGINT)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        return (*signals, signal.SIGHUP)
    return signals


def end_within(seconds: float) -> None:
    """End this process after so many seconds with status 1, whatever its threads do, and log their stacks.

    The thread that ends it belongs to no interpreter: it needs no lock that a stuck thread may hold.
    """
    try:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.stderr)
    except (AttributeError, OSError, ValueError):  # standard error is closed, or is no file
        faulthandler.dump_traceback_later(seconds, exit=True, file=os.open(os.devnull, os.O_WRONLY))


def inherited_sockets(environment: Mapping[str, str], process: int) -> list[socket.socket]:
    """Return the listening sockets passed to `process` by socket activation; raises Fault for a socket that does
    not listen.
    """
    count = environment.get("LISTEN_FDS", "0")
    if environment.get("LISTEN_PID") != str(process):
        return []
    if not count.isascii() or not count.isdigit():
        raise Fault("invalid", "LISTEN_FDS is a number")
    return [_listening(number) for number in range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + int(count))]


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of a host, as asyncio opens them; raises OSError."""
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(infos):
            sock = stack.enter_context(socket.socket(family, kind, protocol))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(_BACKLOG)
            sockets.append(sock)
        stack.pop_all()
        return sockets


def most_reachable_host(sockets: Sequence[socket.socket]) -> str:
    """Return the host of these sockets that is reachable from most places, empty for none; a Unix socket is
    `localhost`.
    """
    families = {socket.AF_INET, socket.AF_INET6}
    names = [str(one.getsockname()[0]) if one.family in families else "localhost" for one in sockets]
    return next((host for host in names if not on_loopback(host)), names[0] if names else "")


def _listening(number: int) -> socket.socket:
    try:
        sock = socket.socket(fileno=number)
    except OSError:
        raise _refused(number) from None
    if sock.type != socket.SOCK_STREAM or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.detach()
        raise _refused(number)
    sock.set_inheritable(False)
    return sock


def _refused(number: int) -> Fault:
    return Fault("invalid", f"LISTEN_FDS: descriptor {number} is no stream socket that listens")


_M_ARENA_MAX, _ARENAS = -8, 2  # malloc.h; several, since SQLite runs without the interpreter's lock
_OWN_DESCRIPTORS = 128  # database files, pipes, listeners
_MAX_DESCRIPTORS = 1 << 20  # asked for if the hard limit is infinite
_SHARES = 2  # of the descriptors: connections, and the files of tenants


def connection_limit(most: int) -> int:
    """Return the connections that the limit of file descriptors allows, at most `most`."""
    return max(1, min(most, (descriptors() - _OWN_DESCRIPTORS) // _SHARES))


def descriptors() -> int:
    """Return how many files the process may open; raises the soft limit to the hard limit."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return _MAX_DESCRIPTORS


class IdleTimer:
    """Expires after `seconds` without a request; connections that are only open do not count."""

    def __init__(self, seconds: float, state: "ServerState", clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._state = state
        self._clock = clock
        self._answered = -1
        self._since = clock()

    def expired(self) -> bool:
        now = self._clock()
        if self._state.total_requests != self._answered:
            self._answered = self._state.total_requests
            self._since = now
        if now - self._since < self._seconds:
            return False
        if self._state.tasks or any(_is_busy(connection) for connection in self._state.connections):
            self._since = now
        return self._since != now


def _is_busy(connection: object) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete


def trim_memory() -> bool:
    """Returns freed memory to the system; False if there was none, or the C library has no such function."""
    return _trim()(0) == 1


@cache
def share_memory() -> None:
    """Lets threads that begin from now on share the memory that is free: glibc gives each some of its own."""
    with suppress(ImportError, OSError, TypeError, AttributeError):
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


@cache
def _trim() -> Callable[[int], int]:
    """Return `malloc_trim` of glibc, which otherwise keeps freed memory between blocks in use; looked up at the first
    use.
    """
    try:
        import ctypes

        return ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return lambda _keep: 0
