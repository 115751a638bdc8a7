"""Erases a tenant: its keys first, so that no call opens it again, then its files, and its rows in PostgreSQL."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from kernel.core.config import Config
from kernel.core.data_dir import MAIN, fsync_folder, home, other_tenants
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.engines.sqlite.folder_lock import FolderLock
from kernel.operations.shared_store import changing_keys
from kernel.security import api_keys

_MAIN = f"{MAIN} is the tenant of callers without another, and stays."
_HOME = "home"
_OPEN = (
    "A server has the tenant open, and closes it five minutes after its last call. Its keys are deleted: run this "
    "again then, or stop the server."
)


class Receipt(NamedTuple):
    """What was erased of a tenant, and when: keys, rows of PostgreSQL, files and their bytes."""

    tenant: str
    at: str
    keys: int
    rows: int
    files: int
    bytes: int


def erase(config: Config, tenant: str) -> Receipt:
    require_removable(config, tenant)
    with changing_keys(config):
        keys = api_keys.forget_tenant(config.data, tenant)
    files, size = _erase_files(home(config.data, tenant))
    rows = 0
    if config.store:
        from kernel.engines.postgres.database import pool_of
        from kernel.engines.postgres.tenants.moving import erase_rows

        rows = erase_rows(config.store, tenant, pool_of)
    return Receipt(tenant, utc_now(), keys, rows, files, size)


def _erase_files(folder: Path) -> tuple[int, int]:
    leaving = folder.with_name(f".{folder.name}.removed")  # which is no name of a tenant
    try:
        if folder.is_dir() and not leaving.exists():
            with closing(FolderLock(folder)) as lock:
                if not lock.take("exclusive"):
                    raise Fault("busy", _OPEN)
            folder.rename(leaving)
            fsync_folder(folder.parent)
        files = [path.stat().st_size for path in leaving.rglob("*") if path.is_file()]
        if leaving.exists():
            shutil.rmtree(leaving)
            fsync_folder(folder.parent)
    except OSError as error:
        raise Fault("storage", f"Cannot erase {folder}: {error.strerror}") from None
    return len(files), sum(files)


def require_removable(config: Config, tenant: str) -> None:
    """Raise Fault for the main tenant, and for one of which there is nothing: no place, no folder, no key."""
    if tenant == MAIN:
        raise Fault("invalid", _MAIN)
    folder = home(config.data, tenant)
    leaving = folder.with_name(f".{folder.name}.removed")
    if not (api_keys.opens(config.data, tenant) or folder.is_dir() or leaving.is_dir() or tenant in places(config)):
        raise Fault("not_found", f"There is no tenant {tenant}: `quipu tenant list` shows all.")


def places(config: Config) -> Mapping[str, str]:
    if not config.store:
        names = (MAIN, *other_tenants(config.data)) if config.file.exists() else other_tenants(config.data)
        return {name: str(config._replace(tenant=name).home) for name in names}
    from kernel.engines.postgres.database import pool_of
    from kernel.engines.postgres.tenants.placement import placements

    return {name: address or _HOME for name, address in placements(pool_of(config.store))}
