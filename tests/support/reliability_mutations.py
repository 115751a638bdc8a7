"""Calls, values and checks that several tests of mutations share."""

import socket

from tests.reliability import mutations


class Wire:
    """A keep-alive connection that starts anew whenever the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, call: mutations.Call) -> tuple[int, bytes]:
        """Status and body of the answer; (0, b"") where there was none.

        Nothing is closed before: who hangs up has given up the call, and may get no answer.
        """
        connection = self._socket or socket.create_connection(("127.0.0.1", self._port), timeout=20)
        self._socket = None
        try:
            connection.sendall(call.encode())
            status, headers, body = _answer(connection, call.method)
        except OSError:
            connection.close()
            return 0, b""
        if status in (0, 400, 431) or b"close" in headers.get(b"connection", b"") or call.length is not None:
            connection.close()
        else:
            self._socket = connection
        return status, body

    def close(self) -> None:
        """Ends the connection, if one is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _answer(connection: socket.socket, method: str) -> tuple[int, dict[bytes, bytes], bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return 0, {}, b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.split(b"\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in rest)}
    length = int(headers.get(b"content-length", b"0")) if method != "HEAD" else 0
    chunked = headers.get(b"transfer-encoding") == b"chunked"
    if headers.get(b"content-type", b"").startswith(b"text/event-stream"):  # goes on until the client ends it
        return int(first.split()[1]), {**headers, b"connection": b"close"}, b""
    while len(body) < length or (chunked and not body.endswith(b"0\r\n\r\n")):
        if not (more := connection.recv(65536)):
            break
        body += more
    # The bytes of a request beyond its stated length is answered too, as a request of its own.
    return int(first.split()[1]), headers, body if chunked else body[:length]
