"""Exact cosines of stored vectors, made in the process, for vectors that are not in memory."""

from collections.abc import Mapping
from typing import Any


def score(db: Any, params: Mapping[str, Any]) -> list[tuple[int, float]]:
    import numpy as np

    filters = {name: value for name, value in params.items() if name not in ("vector", "limit")}
    rows: list[tuple[int, bytes]] = db.query("engine.vectors.candidates", **filters)
    if not rows:
        return []
    query = np.frombuffer(params["vector"], np.int8).astype(np.float64)
    vectors = np.frombuffer(b"".join([row[1] for row in rows]), np.int8).reshape(len(rows), -1).astype(np.float64)
    sizes = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * np.sqrt(query @ query)
    distances = (1.0 - vectors @ query / sizes).astype(np.float32)  # which the functions of SQLite's engine return
    hits = [(row[0], 1.0 - float(distance)) for row, distance in zip(rows, distances, strict=True)]
    hits.sort(key=lambda pair: (-pair[1], pair[0]))
    return hits[: params["limit"]]
