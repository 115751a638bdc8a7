"""Configuration tools of `brain`, which set the weights of hybrid_search (companions of seed 003)."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from handlers.brain.schemas import WRITTEN, ConfigRow, Id
from handlers.brain.scoring import CONFIG_KEYS, CONFIG_PREFIX, parse_weight
from kernel.calls.tools import Hints, Tool, read, write
from kernel.core.errors import Fault
from kernel.store.transaction import Tx


class GetConfig(Struct, forbid_unknown_fields=True):
    """Which values to get; all of them if nothing is given."""

    key: Annotated[Id | None, Meta(description="Exactly this key")] = None
    prefix: Annotated[Id | None, Meta(description="Every key that begins so, such as `retrieval.`")] = None


class SetConfig(Struct, forbid_unknown_fields=True):
    key: Annotated[
        str, Meta(description="The key, with dots between its parts", pattern=WRITTEN, min_length=1, max_length=128)
    ]
    value: Annotated[str, Meta(description="The value as JSON text, such as 0.4", max_length=100_000)]
    description: Annotated[Annotated[str, Meta(max_length=10_000)] | None, Meta(description="What it is for")] = None


def get_config(tx: Tx, request: GetConfig) -> ConfigRow | list[ConfigRow]:
    """Get one configuration value by its key, or all whose keys begin with a prefix. Search reads its weights from
    retrieval.vector_weight, retrieval.fts_weight, retrieval.recency_weight and retrieval.importance_weight.
    """
    if request.key is None:
        return tx.all("brain.config.page", ConfigRow, prefix=request.prefix or "")
    row = tx.one("brain.config.get", ConfigRow, key=request.key)
    if row is None:
        raise Fault("not_found", f"Config key '{request.key}' not found")
    return row


def set_config(tx: Tx, request: SetConfig) -> ConfigRow:
    """Set a configuration value for every database, such as a default weight of hybrid_search, from 0 to 1."""
    _check_effect(request)
    row = tx.one("brain.config.set", ConfigRow, **asdict(request), now=tx.now)
    return row or ConfigRow(request.key, request.value, request.description, tx.now)


def _check_effect(request: SetConfig) -> None:
    """Raises Fault("invalid") for a key or value under `retrieval.` that hybrid_search would ignore."""
    if not request.key.startswith(CONFIG_PREFIX):
        return
    if request.key not in CONFIG_KEYS:
        raise Fault("invalid", f"Invalid arguments: key under {CONFIG_PREFIX} is one of {', '.join(CONFIG_KEYS)}")
    if parse_weight(request.value) is None:
        raise Fault("invalid", f"Invalid arguments: value of {request.key} is a number from 0 to 1")


TOOLS: tuple[Tool, ...] = (
    read(get_config, Hints("Get configuration"), permission="read"),
    write(set_config, Hints("Set configuration", destructive=True, idempotent=True), permission="admin"),
)
