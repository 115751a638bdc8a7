"""The command `quipu export`: the data of a dialect in the file of the program that it reproduces."""

import argparse
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from kernel import app
from kernel.cli.faults import or_raise
from kernel.cli.output import show
from kernel.config import Config
from kernel.errors import Fault
from kernel.limits import BOUNDS
from kernel.store.context import CallContext, StoreContext
from kernel.store.imports import Export
from kernel.store.opening import open_reader
from kernel.store.transaction import Tx

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high  # a whole dialect takes longer than a call may


def export_data(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Write a new file, readable by its owner only; one that is there is left as it is."""
    known = {found.kind: found for dialect in app.DIALECTS for found in dialect.exports}
    if arguments.kind not in known:
        raise Fault("invalid", f"Cannot export {arguments.kind}: choose from {', '.join(known) or 'nothing'}")
    target: Path = arguments.path
    patient = shared._replace(call_limits=shared.call_limits._replace(milliseconds=_MAX_MILLISECONDS))
    with open_reader(config.file, patient) as db:
        count: int = or_raise(db.read, CallContext(), partial(_write, known[arguments.kind], target))
    show({"file": str(target), "lines": count}, f"{count} lines", as_json=arguments.json)
    return 0


def _write(chosen: Export, target: Path, tx: Tx) -> int:
    with ExitStack() as unfinished:
        try:
            descriptor = os.open(target, _NEW, 0o600)
            unfinished.callback(target.unlink, missing_ok=True)
            file = unfinished.enter_context(os.fdopen(descriptor, "wb"))
            count = 0
            for line in chosen.lines(tx):
                file.write(b"\n" + line if count else line)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        except FileExistsError:
            said = f"{target.absolute()} is there already: choose another name, or move it away."
            raise Fault("conflict", said) from None
        except OSError as error:
            raise Fault("storage", f"{target.absolute()} cannot be written: {error.strerror}.") from None
        unfinished.pop_all()
        file.close()
    return count
