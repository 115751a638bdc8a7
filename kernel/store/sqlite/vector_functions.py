"""The SQL functions of vectors: of sqlite-vec, or by numpy where that has no wheel (musl, Windows on ARM)."""

import importlib.util
from math import sqrt
from pathlib import Path
from typing import Any

import apsw


def add_vector_functions(db: apsw.Connection) -> None:
    """Adds `vec_int8` and `vec_distance_cosine`; extension loading is off before and after."""
    library = sqlite_vec()
    if library is None:
        functions: dict[str, tuple[Any, int]] = {"vec_int8": (bytes, 1), "vec_distance_cosine": (_CosineDistance(), 2)}
        for name, (function, arguments) in functions.items():
            db.create_scalar_function(name, function, arguments, deterministic=True)
        return
    db.enable_load_extension(True)
    db.load_extension(str(library))
    db.enable_load_extension(False)


def sqlite_vec() -> Path | None:
    """The path of the library, found without importing its package; None where it is not installed."""
    spec = importlib.util.find_spec("sqlite_vec")
    return Path(spec.origin).parent / "vec0" if spec is not None and spec.origin is not None else None


class _CosineDistance:
    """The distance of int8 vectors, for one connection: a query is converted once for all rows of a statement.

    Sums of products of int8 are exact in float32 up to 1,040 dimensions, so equal vectors have exactly 0.
    """

    _query_bytes = b""

    def __call__(self, vector: bytes, query: bytes) -> float | None:
        if query != self._query_bytes:
            self._convert(query)
        row = self._row
        row[:] = self._int8s(vector, self._int8)
        squares = float(row.dot(row)) * self._query_square
        return 1 - float(row.dot(self._query)) / sqrt(squares) if squares else None

    def _convert(self, query: bytes) -> None:
        import numpy as np

        self._int8s, self._int8 = np.frombuffer, np.dtype(np.int8)
        self._query = np.frombuffer(query, np.int8).astype(np.float32)
        self._query_square = float(self._query.dot(self._query))
        self._row = np.empty_like(self._query)
        self._query_bytes = query
