"""Calls, values and checks that several tests of process activation share."""

import http.client
import socket

PATIENCE = 60


def connected(port: int) -> socket.socket:
    """A connection that has asked for nothing yet."""
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def ask(client: socket.socket) -> None:
    """Sends a request."""
    client.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")


def status(client: socket.socket) -> int:
    """Return the answer to it."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    answer.read()
    return answer.status
