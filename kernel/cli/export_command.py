"""The command `quipu export`: everything, in a file or as a folder of Markdown, or a dialect for its original."""

import argparse
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel.cli.output import note, show
from kernel.cli.progress_bar import working
from kernel.core.config import VERSION, Config
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.core.text import count_of_memories
from kernel.engines.opening import open_reader
from kernel.memories.import_records import Export
from kernel.operations import okf_export, portable_export
from kernel.operations.file_check import find_damage
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high  # a whole dialect takes longer than a call may
_OKF = "okf"
_ALIASES = {"markdown": _OKF, "md": _OKF}


def export_data(arguments: argparse.Namespace, config: Config, context: StoreContext, _alone: bool) -> int:
    """Write a new file or folder, readable by its owner only, unless it exists."""
    kind, exports = _ALIASES.get(arguments.kind, arguments.kind), _exports()
    if kind not in {_OKF, *exports}:
        raise Fault("invalid", f"Cannot export {arguments.kind}: choose from {', '.join(kinds())}")
    target: Path = arguments.path
    patient = context._replace(call_limits=context.call_limits._replace(milliseconds=_MAX_MILLISECONDS))
    with open_reader(config.file, patient) as db:
        if kind == _OKF:
            with working("export"):
                counts = db.read(CallContext(), partial(_write_bundle, target))
            left = f", {counts.quarantined} in quarantine left out" if counts.quarantined else ""
            result = {"folder": str(target), **counts._asdict()}
            show(result, f"{count_of_memories(counts.concepts)}{left}", as_json=arguments.json)
            return _report_damage(config, patient)
        with working("export"):
            count = db.read(CallContext(), partial(_write, exports[kind], target))
    show({"file": str(target), "lines": count}, f"{count} lines", as_json=arguments.json)
    return _report_damage(config, patient)


def kinds() -> list[str]:
    return [_OKF, *_exports()]


def _exports() -> dict[str, Export]:
    about = "every memory of every dialect with its history, as JSON lines that `quipu import` brings back"
    every = [Export("jsonl", about, partial(portable_export.export_lines, app.DIALECTS))]
    every += [export for dialect in app.DIALECTS for export in dialect.exchange.exports]
    return {export.kind: export for export in every}


def _report_damage(config: Config, context: StoreContext) -> int:
    with working("look for damage"):
        damage = "" if config.store else find_damage(config.file, context, app.DIALECTS)
    if damage:
        note(f"quipu: The store is damaged, and so is this export: {damage}. Run `quipu check`.")
    return 1 if damage else 0


def _write_bundle(target: Path, tx: Tx) -> okf_export.Written:
    """Write a folder beside its place, and then rename it."""
    if target.exists():
        raise _taken(target)
    try:
        with TemporaryDirectory(dir=target.absolute().parent, prefix=f"{target.name}.") as beside:
            folder = Path(beside) / "bundle"
            folder.mkdir(mode=0o700)
            counts = okf_export.write_bundle(tx, folder, VERSION, app.DIALECTS)
            folder.rename(target)
        return counts
    except OSError as error:
        raise Fault("storage", f"{target.absolute()} cannot be written: {error.strerror}.") from None


def _taken(target: Path) -> Fault:
    return Fault("conflict", f"{target.absolute()} is there already: choose another name, or move it away.")


def _write(export: Export, target: Path, tx: Tx) -> int:
    try:
        with ExitStack() as stack, os.fdopen(os.open(target, _NEW, 0o600), "wb") as file:
            stack.callback(target.unlink, missing_ok=True)
            count = 0
            for line in export.lines(tx):
                file.write(b"\n" + line if count else line)
                count += 1
            file.flush()
            os.fsync(file.fileno())
            stack.pop_all()
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:  # of a write, or of the end of the file, which tries to write the rest again
        raise Fault("storage", f"{target.absolute()} cannot be written: {error.strerror}.") from None
    return count
