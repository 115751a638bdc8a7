"""Asks a running server whether it is healthy; imports little, because containers do it every few seconds."""

import http.client

from kernel.errors import Fault

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_SECONDS = 5


def ask(host: str, port: int) -> None:
    """Returns if the server that listens on `host` and `port` answers /healthz well; raises Fault with the reason."""
    connection = http.client.HTTPConnection(_ANY_ADDRESS.get(host, host), port, timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error
        raise Fault("busy", f"no answer on port {port}: {reason}") from None
    finally:
        connection.close()
    if status != 200:
        raise Fault("busy", f"the server on port {port} answers {status}")
