"""Calls, values and checks that several tests of undo share."""

from functools import partial

from kernel.operations.undo import UNDO_HOURS, whole_undo
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit
from kernel.store.context import CallContext
from kernel.store.long_work import run_steps
from kernel.store.transaction import Tx
from tests.conftest import Rows, everything


def online(kernel: Kernel, number: int) -> audit.Entry:
    context = CallContext("kernel", "undo")
    return kernel.store.write_sync(partial(undo_call, number=number), context)


def undo_call(tx: Tx, number: int, hours: int = UNDO_HOURS) -> audit.Entry:
    """Undo a call in one transaction."""
    return run_steps(tx, whole_undo(app.DIALECTS, number, hours))


def last_call(kernel: Kernel) -> audit.Entry:
    return kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0]


def memories(kernel: Kernel) -> Rows:
    """Every row of a dialect."""
    ours = ("doc", "history", "audit", "undo", "sqlite_", "setting", "migration", "brain_query")
    return {name: sorted(rows, key=repr) for name, rows in everything(kernel).items() if not name.startswith(ours)}
