"""The commands `quipu backup`, `quipu restore` and `quipu replica`."""

import argparse
import signal
import sys
import threading
from contextlib import closing
from pathlib import Path

from kernel.calls.dispatch import catch_faults
from kernel.cli.commands import BACKUP_KEEP
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar, working
from kernel.core import data_dir
from kernel.core.config import Config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.text import counted
from kernel.operations.backup import (
    BackupLoop,
    Manifest,
    Schedule,
    Tenant,
    back_up_now,
    backup_file,
    backup_time,
    read_manifest,
)
from kernel.operations.data_access import open_shared
from kernel.operations.replica import Replica
from kernel.operations.restore import restore, tenants_of
from kernel.security import api_keys
from kernel.server import app
from kernel.server.process import stop_signals


def backup(arguments: argparse.Namespace, config: Config) -> int:
    app.require_database(config)
    if arguments.to is not None:
        return _backup_to(arguments, config)
    if arguments.every or arguments.keep != BACKUP_KEEP:
        raise Fault("invalid", "--every and --keep are for --to DIR")
    if arguments.all is not None:
        if arguments.target is not None or config.tenant != MAIN:
            raise Fault("invalid", "--all DIR takes everything of every tenant: leave FILE and --tenant out")
        with closing(ProgressBar("backup", sys.stderr)) as bar:
            return _show_all(arguments.all, app.back_up_all(config, arguments.all, bar), as_json=arguments.json)
    target = arguments.target or config.home / f"quipu-{backup_time()}.db"
    with closing(open_shared(config)), closing(ProgressBar("backup", sys.stderr)) as bar:
        backup_file(config.file, app.base_context(None), target, bar)
    left = _left_out(config)
    show({"file": str(target), "left_out": left}, str(target), as_json=arguments.json)
    if left:
        note(f"not in this copy: {', '.join(left)}; `quipu backup --all DIR` copies everything")
    return 0


def _show_all(target: Path, manifest: Manifest, *, as_json: bool) -> int:
    size = sum(count for count, _ in manifest.files.values())
    counts = {"tenants": len(manifest.tenants), "files": len(manifest.files), "bytes": size}
    show({"folder": str(target), **counts}, str(target), as_json=as_json)
    note(f"{counted(counts['tenants'], 'tenant')}, {counted(counts['files'], 'file')}, {size} bytes")
    return 0


def _backup_to(arguments: argparse.Namespace, config: Config) -> int:
    """Return one dated backup beside those before it, or one after the other until it is interrupted."""
    if arguments.target is not None or arguments.all is not None or config.tenant != MAIN:
        raise Fault("invalid", "--to DIR takes everything of every tenant: leave FILE, --all and --tenant out")
    schedule = Schedule(arguments.to, arguments.every or 0, arguments.keep)

    def back_up(target: Path) -> Manifest | Fault:
        return catch_faults(app.back_up_all, config, target)

    if arguments.every:
        for number in set(stop_signals()) - {signal.SIGINT}:  # which ends it with its own status
            signal.signal(number, lambda _number, _frame: sys.exit())
        BackupLoop(schedule, back_up, lambda: True).run(threading.Event())
    folder = back_up_now(schedule, back_up)
    return _show_all(folder, read_manifest(folder), as_json=arguments.json)


def _left_out(config: Config) -> list[str]:
    context = app.context_of(config)
    parts = [f"the files of {folder.dialect}" for folder in app.folders_of(config, context) if folder.path.is_dir()]
    if (config.data / api_keys.FILE).exists():
        parts.append("the keys")
    tenants = [MAIN, *data_dir.other_tenants(config.data)]
    return [*dict.fromkeys(parts), *(["other tenants"] if set(tenants) - {config.tenant} else [])]


def restore_backup(arguments: argparse.Namespace, config: Config) -> int:
    """Put a backup in the place of the present data, which is kept under another name."""
    source: Path = arguments.source
    places: dict[str, Tenant] = {}
    for name in tenants_of(source, config.tenant):
        own = config._replace(tenant=name)
        shared = app.context_of(own)
        places[name] = Tenant(name, own.file, shared, app.folders_of(own, shared))
    context = app.base_context(None)
    with working("restore"):
        restored = restore(config.data, places, source, context, tenant=config.tenant, time=backup_time())
    for line in restored.lines:
        show({"restored": line}, line, as_json=arguments.json)
    if source.is_dir():
        for name, text in read_manifest(source).settings.items():
            if config.environment.get(name) != text:
                note(f"{name} was {text!r} when the backup was made")
    if restored.is_kept:
        note("what was there is kept beside it, in names with -before-restore-")
    note(f"{config.data} is ready: start the server again")
    return 0


def keep_replica(arguments: argparse.Namespace, config: Config) -> int:
    """Follows until it is interrupted or terminated, or its source is damaged."""
    if config.store:
        raise Fault("invalid", "`quipu replica` copies files, and QUIPU_STORE names a database: see docs/scaling.md.")
    app.require_database(config)
    stopping = threading.Event()
    for number in stop_signals():
        signal.signal(number, lambda _number, _frame: stopping.set())
    with closing(Replica(config, arguments.target)) as replica:
        replica.begin(app.context_of(config._replace(model=None)), app.DIALECTS)
        note(f"{arguments.target} follows {config.data}")
        sys.stderr.flush()
        replica.run(stopping, catch_faults)
    return 0
