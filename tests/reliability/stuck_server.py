"""Serves, but GET /stuck/loop and /stuck/pattern keep the event loop for ever, the questions of these names a reader.

A pattern holds the lock of the interpreter as long as it runs.
"""

import re
import sys
from typing import Any

import handlers.common as common
from kernel.cli.entry import main
from kernel.server import server

_serve, _find = server.StartupGate.__call__, common.find


def get_stuck(how: str) -> None:
    """Never returns for the two ways to get stuck."""
    if how.endswith("stuck/pattern"):
        re.match(r"(?:a+)+$", "a" * 100 + "b")
    while how.endswith("stuck/loop"):
        pass


async def _stuck(gate: Any, scope: Any, receive: Any, send: Any) -> None:
    get_stuck(scope["path"])
    await _serve(gate, scope, receive, send)


def _find_stuck(tx: Any, asked: Any) -> Any:
    get_stuck(asked.request.query)
    return _find(tx, asked)


server.StartupGate.__call__ = _stuck  # type: ignore[method-assign]
common.find = _find_stuck  # type: ignore[attr-defined]

if __name__ == "__main__":
    sys.exit(main())
