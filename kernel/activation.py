"""Listening sockets that whoever started the server gave it: socket activation as systemd's sd_listen_fds(3) has it."""

import ipaddress
import socket
from collections.abc import Mapping, Sequence

from kernel.errors import Fault

_FIRST = 3
_INTERNET = (socket.AF_INET, socket.AF_INET6)


def given(environment: Mapping[str, str], process: int) -> list[socket.socket]:
    """The sockets meant for this `process`, none where there are none; raises Fault for what nobody can listen on."""
    count = environment.get("LISTEN_FDS", "0")
    if environment.get("LISTEN_PID") != str(process):
        return []
    if not count.isascii() or not count.isdigit():
        raise Fault("invalid", "LISTEN_FDS is a number")
    return [_listening(number) for number in range(_FIRST, _FIRST + int(count))]


def address(sockets: Sequence[socket.socket]) -> tuple[str, int]:
    """Host and port of the socket that most can reach: one beyond this machine, if there is one among them."""
    names: list[tuple[str, int]] = [one.getsockname()[:2] for one in sockets if one.family in _INTERNET]
    wide = [name for name in names if not ipaddress.ip_address(name[0].partition("%")[0]).is_loopback]
    return (wide or names or [("localhost", 0)])[0]


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
