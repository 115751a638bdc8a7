"""The process: sockets it inherits, file descriptors it may hold, idle exit, memory returned to the system."""

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from uvicorn.server import ServerState

from kernel.config import on_loopback
from kernel.errors import Fault

_FIRST = 3


def inherited_sockets(environment: Mapping[str, str], process: int) -> list[socket.socket]:
    """The sockets meant for this `process`, none where there are none; raises Fault for what nobody can listen on."""
    count = environment.get("LISTEN_FDS", "0")
    if environment.get("LISTEN_PID") != str(process):
        return []
    if not count.isascii() or not count.isdigit():
        raise Fault("invalid", "LISTEN_FDS is a number")
    return [_listening(number) for number in range(_FIRST, _FIRST + int(count))]


def most_reachable_host(sockets: Sequence[socket.socket]) -> str:
    """The address from which most can reach these sockets, empty for none; a socket with a path is this machine's."""
    routed = {socket.AF_INET, socket.AF_INET6}
    found = [str(one.getsockname()[0]) if one.family in routed else "localhost" for one in sockets]
    return next((host for host in found if not on_loopback(host)), found[0] if found else "")


def _listening(number: int) -> socket.socket:
    try:
        found = socket.socket(fileno=number)
    except OSError:
        raise _refused(number) from None
    if found.type != socket.SOCK_STREAM or not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        found.detach()
        raise _refused(number)
    found.set_inheritable(False)
    return found


def _refused(number: int) -> Fault:
    return Fault("invalid", f"LISTEN_FDS: descriptor {number} is no stream socket that listens")


_OWN = 128  # files, threads' pipes, listeners
_ENOUGH = 1 << 20


def connection_limit(wanted: int) -> int:
    """At most `wanted` connections: as many as there are descriptors for, after asking for all we may have."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < min(most, wanted + _OWN):
        soft = min(most, wanted + _OWN)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - _OWN))


class IdleTimer:
    """Over once no request was under way for `seconds`; connections that only stay open do not count."""

    def __init__(self, seconds: float, state: ServerState, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._state = state
        self._clock = clock
        self._answered = -1
        self._since = clock()

    def expired(self) -> bool:
        """Whether the time has passed; asked several times a second."""
        now = self._clock()
        if self._state.total_requests != self._answered:
            self._answered = self._state.total_requests
            self._since = now
        if now - self._since < self._seconds:
            return False
        if self._state.tasks or any(_waits(connection) for connection in self._state.connections):
            self._since = now
        return self._since != now


def _waits(connection: object) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete


def trim_memory() -> bool:
    """Whether anything was given back; False too where the C library keeps nothing, or cannot be asked."""
    return _trim()(0) == 1


@cache
def _trim() -> Callable[[int], int]:
    """`malloc_trim` of glibc, which keeps what was freed between what is still used; looked for at the first use."""
    try:
        import ctypes

        return ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return _nothing


def _nothing(_keep: int) -> int:
    return 0
