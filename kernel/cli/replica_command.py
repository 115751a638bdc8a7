"""The command `quipu replica`: keeps a copy of the data directory, which `quipu serve --follow` serves."""

import argparse
import signal
import sys
import threading
from contextlib import closing

from kernel.calls.dispatch import catch_faults
from kernel.cli.faults import or_raise
from kernel.cli.output import note
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations.replica import Replica
from kernel.server import app


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Follows until it is interrupted or terminated, or its source is damaged."""
    if config.store:
        raise Fault("invalid", "`quipu replica` copies files, and QUIPU_STORE names a database: see docs/scaling.md.")
    app.require_database(config)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    with closing(or_raise(Replica, config, arguments.target)) as replica:
        or_raise(replica.begin, app.context_of(config._replace(model=None)), app.DIALECTS)
        note(f"{arguments.target} follows {config.data}")
        sys.stderr.flush()
        or_raise(replica.run, stopping, catch_faults)
    return 0
