"""Who calls, what all transactions of one store share, and where the engine's extension lies."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kernel.embed.model import Embedder
from kernel.errors import Fault
from kernel.store.sqlite.query_budget import Engine


class Origin(NamedTuple):
    """Who is calling: the dialect and tool that answer, and the actor the transport vouches for."""

    dialect: str = "kernel"
    tool: str = "kernel"
    actor: str = "local"


class World(NamedTuple):
    """What every transaction of one store shares: the statements, the embedder and what search remembers.

    Without an embedder there are no vectors, and search goes by words alone. `settings` are the dialects' own,
    `data` is the data directory, `engine` what one call may cost, `suspects` what becomes of what looks like poison.
    """

    statements: Mapping[str, str]
    embedder: Embedder | None = None
    memory: Any = None
    settings: Mapping[str, Any] = MappingProxyType({})
    data: Path | None = None
    engine: Engine = Engine()
    suspects: str = "off"


def vector_extension() -> Path:
    """The path of sqlite-vec's library, found without importing its package."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise Fault("storage", "The sqlite-vec package is not installed.")
    return Path(spec.origin).parent / "vec0"
