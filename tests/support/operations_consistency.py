"""Calls, values and checks that several tests of consistency share."""

from collections.abc import Callable
from typing import Any

from kernel.server import app

WRITER = app.CallContext("paths", "add_memory", "tester")


def adding(path: str, content: str) -> Callable[[Any], Any]:
    tool = next(tool for tool in app.DIALECTS[0].tools if tool.name == "add_memory")
    return lambda tx: tool.handler(tx, tool.request(path, content))
