"""The path of the sqlite-vec library."""

import importlib.util
from pathlib import Path

from kernel.errors import Fault


def vector_extension() -> Path:
    """The path of the library, found without importing its package; raises Fault("storage") where it is missing."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise Fault("storage", "The sqlite-vec package is not installed.")
    return Path(spec.origin).parent / "vec0"
