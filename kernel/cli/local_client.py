"""Asks the server of a data directory. Nothing of the kernel is imported here, and of the standard library only C:
`quipu recall` starts in little more time than the interpreter takes, and `http.client` alone takes three times that.
"""

import _socket
import os
import sys
import time
from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "server.address"  # that of kernel.security.local_access
_LOCKED_BYTE = 1 << 20
_SECONDS = 60.0  # for an answer; a server with a full queue refuses long before
_ERASING_SECONDS = 3600.0  # which rewrites the file
_PIECE_BYTES = 1 << 16
_TIME_MARK = b"\x02"  # around a time, in seconds since 1970; no text of a memory has it

Server = tuple[str, int, str]  # host, port and token


class _Decoder:
    """The options of `json.loads` that the scanner reads."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


_scan = make_scanner(_Decoder)  # type: ignore[arg-type]


def read_json(content: bytes) -> "Any":
    """Return the value of JSON in UTF-8 as `json.loads` does, which takes a quarter of the time of `quipu recall` to
    import. Raises ValueError and RecursionError.
    """
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogatepass").strip(" \t\n\r")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # the scanner finds no error class before json.decoder is imported
        value, end = None, -1
    if end != len(text):
        raise ValueError("no JSON")
    return value


def write_json(members: "Mapping[str, str]") -> bytes:
    quoted = encode_basestring_ascii
    return f"{{{','.join(f'{quoted(name)}:{quoted(text)}' for name, text in members.items())}}}".encode()


def default_data(values: "Mapping[str, str]") -> str:
    """Return the data directory, as kernel.core.config has it."""
    if values.get("QUIPU_DATA"):
        return values["QUIPU_DATA"]
    home = values.get("HOME") or values.get("USERPROFILE") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return f"{home}/Library/Application Support/quipu"
    if sys.platform == "win32":
        return (values.get("LOCALAPPDATA") or f"{home}/AppData/Local") + "/quipu"
    return (values.get("XDG_DATA_HOME") or f"{home}/.local/share") + "/quipu"


def find(data: str) -> Server | None:
    """Return the server that runs on a data directory; None if none does, or if it is another user's."""
    try:
        descriptor = os.open(os.path.join(data, FILE), os.O_RDWR)
    except OSError:
        return None
    try:
        words = os.read(descriptor, 1024).decode("ascii", "replace").split()
        if len(words) != 3 or not words[1].isdigit() or not _is_held(descriptor):
            return None
        return words[0], int(words[1]), words[2]
    finally:
        os.close(descriptor)


def url(data: str) -> str:
    """Return the address of the server that runs on a data directory; empty as `token` is."""
    server = find(data) if os.path.isabs(data) else None
    return f"http://{_authority(*server[:2])}" if server else ""


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def token(data: str) -> str:
    """Return the secret of the server that runs on a data directory; empty if none is written, or not for this user.

    A relative data directory is not looked at: it would lie in the folder that a client works in.
    """
    try:
        with open(os.path.join(data, FILE), encoding="ascii") as file:
            words = file.read(1024).split() if os.path.isabs(data) else []
    except (OSError, ValueError):
        return ""
    return words[2] if len(words) == 3 else ""


def ask(
    server: Server, command: str, body: bytes, style: str, tenant: str = "main", mark: str = ""
) -> tuple[int, bytes] | None:
    """Return status and body of the answer; None if no process listens, and nothing was sent.

    Raises TimeoutError, ConnectionError or another OSError if it is not known whether the server has done it.
    """
    host, port, token = server
    connection = _socket.socket(_socket.AF_INET6 if ":" in host else _socket.AF_INET, _socket.SOCK_STREAM)
    seconds = seconds_for(command)
    deadline = time.monotonic() + seconds
    try:
        connection.settimeout(seconds)
        try:
            connection.connect((host, port))
        except OSError:
            return None
        lines = (
            f"POST {path(command, style, mark)} HTTP/1.1",
            f"host: {_authority(host, port)}",
            f"x-quipu-local: {token}",
            f"x-quipu-tenant: {tenant}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
        )
        connection.sendall("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body)
        return _parsed(b"".join(iter(lambda: _piece(connection, deadline), b"")))
    finally:
        connection.close()


def _piece(connection: _socket.socket, deadline: float) -> bytes:
    """Return the next bytes of an answer, empty at its end; each wait is within the time of the whole."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    connection.settimeout(left)
    return connection.recv(_PIECE_BYTES)


def seconds_for(command: str) -> float:
    return _ERASING_SECONDS if command == "erase" else _SECONDS


def path(command: str, style: str, mark: str) -> str:
    return f"/memories/{command}?as={style}&times=seconds&mark={mark}"


def in_local_time(output: bytes) -> bytes:
    """Return the output of a command with its times in the zone of this process, which the server may not have."""
    parts = output.split(_TIME_MARK)
    parts[1::2] = [local_time(int(seconds)).encode() for seconds in parts[1::2]]
    return b"".join(parts)


def local_time(seconds: int) -> str:
    zone = "%z" if sys.platform == "win32" else "%Z"  # Windows has whole sentences for names
    return time.strftime(f"%Y-%m-%d %H:%M {zone}", time.localtime(max(seconds, 0)))


def _parsed(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    length = next((field for field in fields if field.lower().startswith(b"content-length:")), b"").partition(b":")[2]
    status = first.split(b" ")[1:2]
    if not status or not status[0].isdigit() or length.strip() != b"%d" % len(body):
        raise ConnectionError("the answer of the server is not whole")
    return int(status[0]), body


def _is_held(descriptor: int) -> bool:
    """Return whether a living server holds the file; it is read if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
