"""`quipu tenant list` and `quipu tenant remove`: the tenants of a data directory or of a database, and their keys."""

import argparse
from collections import Counter
from collections.abc import Mapping

from kernel.cli.output import confirm, show
from kernel.core.config import Config
from kernel.core.data_dir import MAIN, other_tenants, tenant_name
from kernel.core.errors import Fault
from kernel.operations.shared_store import changing_keys
from kernel.operations.tenant_removal import erase, is_known
from kernel.security import api_keys

_HOME = "home"
_UNUSED = "no call yet"


def list_tenants(arguments: argparse.Namespace, config: Config) -> int:
    """Print every tenant, where it is, and the number of its keys; some have a key and no call yet."""
    places = _places(config)
    with changing_keys(config):
        keys = Counter(key.tenant for key in api_keys.read(config.data))
    for name in sorted({*places, *keys}):
        line = f"{name}  {places.get(name, _UNUSED)}" + (f"  keys: {keys[name]}" if keys[name] else "")
        show({"tenant": name, "store": places.get(name), "keys": keys[name]}, line, as_json=arguments.json)
    return 0


def remove_tenant(arguments: argparse.Namespace, config: Config) -> int:
    """Erase a tenant, its keys, and its files or rows; print a receipt."""
    name = tenant_name(arguments.name)
    if name != MAIN and name not in _places(config) and not is_known(config, name):
        raise Fault("not_found", f"There is no tenant {name}: `quipu tenant list` shows all.")
    if not arguments.yes:
        confirm(f"Erase all memories and keys of the tenant {name}, which no command brings back?", "tenant remove")
    receipt = erase(config, name)
    counts = f"{receipt.keys} keys, {receipt.files} files of {receipt.bytes} bytes"
    rows = f", {receipt.rows} rows" if config.store else ""
    line = f"{name} was erased at {receipt.at}: {counts}{rows}; backups still have it"
    show(receipt._asdict(), line, as_json=arguments.json)
    return 0


def _places(config: Config) -> Mapping[str, str]:
    """Return the database of each tenant, or its folder."""
    if not config.store:
        names = (MAIN, *other_tenants(config.data)) if config.file.exists() else other_tenants(config.data)
        return {name: str(config._replace(tenant=name).home) for name in names}
    from kernel.engines.postgres.database import pool_of
    from kernel.engines.postgres.tenants.placement import placements

    return {name: address or _HOME for name, address in placements(pool_of(config.store))}
