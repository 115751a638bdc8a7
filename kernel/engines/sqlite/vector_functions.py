"""The SQL functions of vectors: of sqlite-vec, or by simsimd if that has no wheel (musl, Windows on ARM)."""

import importlib.util
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import apsw


def add_vector_functions(db: apsw.Connection) -> None:
    """Adds `vec_int8` and `vec_distance_cosine`; extension loading is off before and after."""
    library = sqlite_vec()
    if library is None:
        functions: dict[str, tuple[Any, int]] = {"vec_int8": (bytes, 1), "vec_distance_cosine": (_cosine_distance, 2)}
        for name, (function, arguments) in functions.items():
            db.create_scalar_function(name, function, arguments, deterministic=True)
        return
    db.enable_load_extension(True)
    db.load_extension(str(library))
    db.enable_load_extension(False)


@cache
def sqlite_vec() -> Path | None:
    """Return the path of the library, found without importing its package; None if it is not installed.

    It is looked up once: a server opens many connections.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    return Path(spec.origin).parent / "vec0" if spec is not None and spec.origin is not None else None


def _cosine_distance(vector: bytes, query: bytes) -> float | None:
    """Return the distance of int8 vectors, by exact products: equal vectors have exactly 0."""
    import simsimd

    dot: Any = simsimd.dot  # a float, of vectors
    first, second = memoryview(vector).cast("b"), memoryview(query).cast("b")
    squares: float = dot(first, first) * dot(second, second)
    return 1 - dot(first, second) / sqrt(squares) if squares else None
