"""One request of a client over HTTP: it ends in time, however slowly the server answers."""

import http.client
import socket
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Timer
from typing import NamedTuple


class Answer(NamedTuple):
    """An answer, of which the body is cut at the limit: the listener may be any program."""

    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] = {},
    *,
    seconds: float,
    most: int,
) -> Answer:
    """Return the answer to a request, after which the connection is closed.

    Raises TimeoutError if the answer is not whole within these seconds: the timeout of a socket starts anew with each
    byte.
    """
    is_late = Event()
    try:
        if connection.sock is None:
            connection.connect()
        timer = Timer(seconds, _hang_up, (connection.sock, is_late))
        timer.daemon = True
        timer.start()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read(most), response.headers)
            if not is_late.is_set():
                return answer
        except (OSError, ValueError, http.client.HTTPException):
            if not is_late.is_set():
                raise
        finally:
            timer.cancel()
    finally:
        connection.close()
    raise TimeoutError("timed out")


def _hang_up(sock: socket.socket, is_late: Event) -> None:
    is_late.set()
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # that of TLS would set aside what the other thread reads with
