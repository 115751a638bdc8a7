"""The command `quipu import`: the data of another memory server, in slices, beside a server that may be running."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing

from kernel import app
from kernel.cli.faults import or_raise
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.config import Config
from kernel.dispatch import catch_faults
from kernel.errors import Fault
from kernel.store.context import CallContext, StoreContext
from kernel.store.group_runner import GroupRunner
from kernel.store.imports import Import, Imported, Source
from kernel.store.opening import open_writer
from kernel.store.progress import Progress, with_progress
from kernel.store.queue import Job, discard
from kernel.store.slices import MORE, Slices, Steps, Unfinished
from kernel.store.sqlite.errors import CONSTRAINTS
from kernel.store.sqlite.unfinished import temporary_folder
from kernel.store.transaction import Tx

_CUT_OFF = "What came before it is imported: another import goes on from there, and `quipu undo` takes it back."


def import_data(arguments: argparse.Namespace, config: Config, shared: StoreContext) -> int:
    """Import the data of another memory server; an import that was cut off goes on when it is run again."""
    known = {found.kind: (dialect, found) for dialect in app.DIALECTS for found in dialect.imports}
    if arguments.kind not in known:
        raise Fault("invalid", f"Cannot import {arguments.kind}: choose from {', '.join(known) or 'nothing'}")
    dialect, chosen = known[arguments.kind]
    secret: str | None = arguments.password_env
    password = config.environment.get(secret) if secret else None
    if secret and not password:
        raise Fault("invalid", f"The variable {secret} is unset or empty")
    with temporary_folder(config.home / "import") as copies:
        source = Source(arguments.path, password, shared.settings, copies)
        done = or_raise(_import, config, shared, CallContext(dialect.name, f"import {chosen.kind}"), chosen, source)
    if arguments.json:
        show({"counts": done.counts}, "", as_json=True)
    else:
        for name, count in done.counts.items():
            print(f"{name}: {count}")
    for remark in done.remarks:
        note(remark)
    return 0


def _import(config: Config, shared: StoreContext, origin: CallContext, chosen: Import, source: Source) -> Imported:
    """Runs an import to its end, a slice a transaction."""
    with closing(chosen.steps(source)) as steps, closing(ProgressBar("import", sys.stderr)) as bar:
        job = Job(with_progress(Progress(bar), _work(source, steps)), origin, discard)
        job.exclusive = job.undoable = True
        runner = GroupRunner(shared, catch_faults, config.undo_hours)
        with open_writer(config.file, shared) as db:
            while job.answer in (None, MORE):
                with db.writing(origin) as tx:
                    job.answer = runner.run_audited(db, tx, job)
        if isinstance(job.answer, Fault):
            if job.earlier is not None and job.earlier.parts:
                raise Fault(job.answer.code, f"{job.answer.message} {_CUT_OFF}")
            raise job.answer
        return job.answer


def _work(source: Source, steps: Steps[Imported]) -> Callable[[Tx], Imported | Unfinished]:
    slices = Slices(steps)

    def work(tx: Tx) -> Imported | Unfinished:
        try:
            return slices(tx)
        except CONSTRAINTS as error:  # such as two rows of one id
            raise Fault("invalid", f"{source.path.name} cannot be imported: {error}.") from None

    return work
