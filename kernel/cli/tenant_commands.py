"""`quipu tenant list` and `quipu tenant remove`: the tenants of a data directory or of a database, and their keys."""

import argparse
from collections import Counter

from kernel.cli.output import confirm, show
from kernel.core.config import Config
from kernel.core.data_dir import tenant_name
from kernel.operations.shared_store import changing_keys
from kernel.operations.tenant_removal import erase, places, require_removable
from kernel.security import api_keys

_UNUSED = "no call yet"


def list_tenants(arguments: argparse.Namespace, config: Config) -> int:
    """Print every tenant, where it is, and the number of its keys; some have a key and no call yet."""
    stores = places(config)
    with changing_keys(config):
        keys = Counter(key.tenant for key in api_keys.read(config.data))
    for name in sorted({*stores, *keys}):
        line = f"{name}  {stores.get(name, _UNUSED)}" + (f"  keys: {keys[name]}" if keys[name] else "")
        show({"tenant": name, "store": stores.get(name), "keys": keys[name]}, line, as_json=arguments.json)
    return 0


def remove_tenant(arguments: argparse.Namespace, config: Config) -> int:
    name = tenant_name(arguments.name)
    require_removable(config, name)
    if not arguments.yes:
        confirm(f"Erase all memories and keys of the tenant {name}, which no command brings back?", "tenant remove")
    receipt = erase(config, name)
    counts = f"{receipt.keys} keys, {receipt.files} files of {receipt.bytes} bytes"
    rows = f", {receipt.rows} rows" if config.store else ""
    line = f"{name} was erased at {receipt.at}: {counts}{rows}; backups still have it"
    show(receipt._asdict(), line, as_json=arguments.json)
    return 0
