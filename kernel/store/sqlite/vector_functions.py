"""The SQL functions of vectors: of sqlite-vec, or by simsimd where that has no wheel (musl, Windows on ARM)."""

import importlib.util
from math import sqrt
from pathlib import Path

import apsw


def add_vector_functions(db: apsw.Connection) -> None:
    """Adds `vec_int8` and `vec_distance_cosine`; extension loading is off before and after."""
    library = sqlite_vec()
    if library is None:
        db.create_scalar_function("vec_int8", bytes, 1, deterministic=True)
        db.create_scalar_function("vec_distance_cosine", _cosine_distance, 2, deterministic=True)
        return
    db.enable_load_extension(True)
    db.load_extension(str(library))
    db.enable_load_extension(False)


def sqlite_vec() -> Path | None:
    """The path of the library, found without importing its package; None where it is not installed."""
    spec = importlib.util.find_spec("sqlite_vec")
    return Path(spec.origin).parent / "vec0" if spec is not None and spec.origin is not None else None


def _cosine_distance(vector: bytes, query: bytes) -> float | None:
    """The distance of int8 vectors, by exact products: equal vectors have exactly 0."""
    import simsimd

    one, other = memoryview(vector).cast("b"), memoryview(query).cast("b")
    squares = simsimd.dot(one, one) * simsimd.dot(other, other)
    return 1 - simsimd.dot(one, other) / sqrt(squares) if squares else None
