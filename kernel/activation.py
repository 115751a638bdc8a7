"""Listening sockets that whoever started the server gave it: socket activation as systemd's sd_listen_fds(3) has it."""

import socket
from collections.abc import Mapping, Sequence

from kernel.config import on_loopback
from kernel.errors import Fault

_FIRST = 3


def given(environment: Mapping[str, str], process: int) -> list[socket.socket]:
    """The sockets meant for this `process`, none where there are none; raises Fault for what nobody can listen on."""
    count = environment.get("LISTEN_FDS", "0")
    if environment.get("LISTEN_PID") != str(process):
        return []
    if not count.isascii() or not count.isdigit():
        raise Fault("invalid", "LISTEN_FDS is a number")
    return [_listening(number) for number in range(_FIRST, _FIRST + int(count))]


def reached(sockets: Sequence[socket.socket]) -> str:
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
