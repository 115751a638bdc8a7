"""The state of a store itself: the key that seals state kept by clients, and whether there were API keys."""

import os
from typing import NamedTuple

from kernel.store.context import CallContext
from kernel.store.engine import CommandConnection
from kernel.store.transaction import Tx

_SEAL_KEY = "seal_key"
_HAD_KEYS = "had_keys"


class Stored(NamedTuple):
    """Of a store: its seal key, the number of its migrations, whether there were API keys, and whether the process that
    had the file before did not close it.
    """

    seal_key: bytes
    schema: int
    had_keys: bool
    unclean: bool = False


def note_keys(tx: Tx) -> None:
    tx.run("kernel.setting.add_if_missing", name=_HAD_KEYS, value="1")


def settled(db: CommandConnection, needed: bool) -> Stored:
    """Return the stored state of a database, which gets its seal key; keys that are `needed` now are remembered."""
    while (state := db.read(CallContext(), read_stored)) is None or needed > state.had_keys:
        with db.writing() as tx:
            tx.run("kernel.setting.add_if_missing", name=_SEAL_KEY, value=os.urandom(32).hex())
            if needed:
                note_keys(tx)
    return state


def read_stored(tx: Tx) -> Stored | None:
    """Return the stored state of a database; None before it has a seal key."""
    key = tx.one("kernel.setting.get", bytes.fromhex, name=_SEAL_KEY)
    had_keys = tx.one("kernel.setting.get", str, name=_HAD_KEYS) is not None
    return Stored(key, tx.one("kernel.setting.count_migrations", int) or 0, had_keys) if key else None
