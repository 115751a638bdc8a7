"""The commands `quipu backup` and `quipu restore`."""

import argparse
import sys
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from kernel import app, data_dir
from kernel.cli.faults import or_raise
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.config import Config
from kernel.data_dir import MAIN
from kernel.errors import Fault
from kernel.maintenance.backup import Tenant, backup_all, backup_file, read_manifest
from kernel.maintenance.consistency import backup_time
from kernel.maintenance.data_access import open_shared
from kernel.maintenance.restore import Place, restore, tenants_of
from kernel.security import api_keys

_SETTINGS = ("QUIPU_", "CODE_MEMORY_")


def backup(arguments: argparse.Namespace, config: Config) -> int:
    """Copy one database to a file, or everything in the data directory to a folder."""
    app.require_database(config)
    if arguments.all is not None:
        if arguments.target is not None or config.tenant != MAIN:
            raise Fault("invalid", "--all DIR takes everything of every tenant: leave FILE and --tenant out")
        return _backup_all(arguments.all, config, as_json=arguments.json)
    target = arguments.target or config.home / f"quipu-{backup_time()}.db"
    with closing(open_shared(config)), closing(ProgressBar("backup", sys.stderr)) as bar:
        or_raise(backup_file, config.file, app.base_context(None), target, bar)
    left = _left_out(config)
    show({"file": str(target), "left_out": left}, str(target), as_json=arguments.json)
    if left:
        note(f"not in this copy: {', '.join(left)}; `quipu backup --all DIR` copies everything")
    return 0


def _backup_all(target: Path, config: Config, *, as_json: bool) -> int:
    others = [name for name in data_dir.other_tenants(config.data) if config._replace(tenant=name).file.exists()]
    with ExitStack() as stack:
        tenants: list[Tenant] = []
        for name in (MAIN, *others):
            own = config._replace(tenant=name)
            shared = app.context_of(own)
            stack.enter_context(closing(open_shared(own)))
            tenants.append(Tenant(name, own.file, shared, app.folders_of(own, shared)))
        bar = stack.enter_context(closing(ProgressBar("backup", sys.stderr)))
        made = or_raise(backup_all, config.data, tenants, _settings(config), target, bar)
    size = sum(count for count, _ in made.files.values())
    counts = {"tenants": len(made.tenants), "files": len(made.files), "bytes": size}
    show({"folder": str(target), **counts}, str(target), as_json=as_json)
    note(f"{counts['tenants']} tenants, {counts['files']} files, {size} bytes")
    return 0


def _left_out(config: Config) -> list[str]:
    """What a copy of the database alone does not hold."""
    shared = app.context_of(config)
    found = [f"the files of {folder.dialect}" for folder in app.folders_of(config, shared) if folder.path.is_dir()]
    if (config.data / api_keys.FILE).exists():
        found.append("the keys")
    others = [MAIN, *data_dir.other_tenants(config.data)]
    return [*dict.fromkeys(found), *(["other tenants"] if set(others) - {config.tenant} else [])]


def _settings(config: Config) -> dict[str, str]:
    return {name: text for name, text in sorted(config.environment.items()) if name.startswith(_SETTINGS)}


def restore_backup(arguments: argparse.Namespace, config: Config) -> int:
    """Put a backup in the place of what is there, which is kept under another name."""
    source: Path = arguments.source
    places: dict[str, Place] = {}
    for name in tenants_of(source, config.tenant):
        own = config._replace(tenant=name)
        places[name] = Place(name, own.home, app.folders_of(own, app.context_of(own)))
    work = partial(restore, tenant=config.tenant, time=backup_time())
    told = or_raise(work, config.data, places, source, app.base_context(None))
    for line in told:
        show({"restored": line}, line, as_json=arguments.json)
    if source.is_dir():
        now = _settings(config)
        differing = {name: text for name, text in read_manifest(source).settings.items() if now.get(name) != text}
        for name, text in differing.items():
            note(f"{name} was {text!r} when the backup was made")
    note("what was there is kept beside it, in names with -before-restore-")
    return 0


COMMANDS = {"backup": backup, "restore": restore_backup}
