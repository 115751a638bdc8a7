"""Calls, values and checks that several tests of binding share."""

from tests.reliability.server_process import LOST
from tests.security.authenticated_server import House


def alive(found: House) -> bool:
    try:
        return found.ask("GET", "/healthz").status == 200
    except LOST:
        found.close()
        return False
