"""Assembles the console from the parts of the server."""

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from handlers.console.console import Console
from handlers.console.guide import NO_GUIDE, Checks, GuideOf
from handlers.console.reading import Site
from handlers.console.visitors import Visitors
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.limits import Limits
from kernel.http.access import AccessControl
from kernel.observe.call_log import CallLog
from kernel.observe.metrics import Snapshot
from kernel.security.login_codes import LoginCodes

if TYPE_CHECKING:
    from kernel.server.worker import Worker

Seen = tuple[Config, int, Callable[[], bool], CallLog, Callable[[], bool]]  # the first fields of a Site


def console_of(
    seen: Seen,
    guide_of: GuideOf | None,
    counted: Callable[[], Awaitable[Snapshot | Fault]] | None,
    limits: Limits,
    access: AccessControl,
    worker: "Worker | None",
) -> Console:
    """Return the console of a server, or of one of several workers, which share its sessions."""
    secret, codes = (os.urandom(32), LoginCodes()) if worker is None else (worker.secret, worker.codes)
    guide = guide_of(seen[0]) if guide_of else NO_GUIDE
    site = Site(*seen, guide, Checks(guide), counted)
    return Console(site, limits, access, Visitors(access.auth, secret, codes))
