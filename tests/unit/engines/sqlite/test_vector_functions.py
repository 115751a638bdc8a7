"""Vector functions: the same values from sqlite-vec and, where that is not installed, from simsimd."""

import random
import struct
import sys
from collections.abc import Iterator
from math import hypot
from operator import mul
from pathlib import Path

import apsw
import pytest

from kernel.engines.sqlite.vector_functions import add_vector_functions, sqlite_vec
from kernel.search import ann
from tests.unit.index_fixtures import open_indexed_store

DISTANCE = "SELECT vec_distance_cosine(vec_int8(?), vec_int8(?))"
DIMENSIONS = 256
FLOAT32_STEP = 2**-23


@pytest.fixture(autouse=True)
def _looked_for_again() -> Iterator[None]:
    yield
    sqlite_vec.cache_clear()


@pytest.fixture(params=["sqlite-vec", "simsimd"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "simsimd":
        hide_sqlite_vec(monkeypatch)
    assert (sqlite_vec() is None) == (request.param == "simsimd")
    return request.param


@pytest.fixture
def db(provider: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    add_vector_functions(connection)
    yield connection
    connection.close()


def hide_sqlite_vec(monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite_vec.cache_clear()
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)


def distance(db: apsw.Connection, one: list[int], other: list[int]) -> float | None:
    return db.execute(DISTANCE, (packed(one), packed(other))).get


def packed(vector: list[int]) -> bytes:
    return struct.pack(f"{len(vector)}b", *vector)


def vectors(count: int, seed: int) -> list[list[int]]:
    chosen = random.Random(seed)
    return [[chosen.randint(-128, 127) for _ in range(DIMENSIONS)] for _ in range(count)]


def test_distance_is_one_less_the_cosine(db: apsw.Connection) -> None:
    for one, other in zip(vectors(40, 1), vectors(40, 2), strict=True):
        cosine = sum(map(mul, one, other)) / hypot(*one) / hypot(*other)
        assert distance(db, one, other) == pytest.approx(1 - cosine, abs=FLOAT32_STEP)


def test_equal_vectors_have_no_distance_and_opposite_ones_two(db: apsw.Connection) -> None:
    for one in [*vectors(40, 3), [-128] * DIMENSIONS, [1] + [0] * (DIMENSIONS - 1)]:
        opposite = [min(-value, 127) for value in one]
        assert distance(db, one, one) == pytest.approx(0, abs=FLOAT32_STEP)
        assert distance(db, one, opposite) == pytest.approx(2, abs=1e-3)


def test_vector_without_a_direction_has_no_distance(db: apsw.Connection) -> None:
    nothing, something = [0] * DIMENSIONS, vectors(1, 4)[0]
    assert [distance(db, nothing, something), distance(db, something, nothing)] == [None, None]


def test_vectors_of_different_lengths_are_an_error_and_the_next_call_works(db: apsw.Connection) -> None:
    one = vectors(1, 5)[0]
    with pytest.raises((apsw.SQLError, ValueError)):
        distance(db, one, one[:7])
    assert distance(db, one, one) == pytest.approx(0, abs=FLOAT32_STEP)


def test_extension_loading_is_off_afterwards(db: apsw.Connection) -> None:
    with pytest.raises(apsw.SQLError, match="not authorized"):
        db.execute("SELECT load_extension('vec0')")


def test_both_providers_rank_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Over all vectors by their sketches, in one small partition, and in one of a scope."""
    monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    texts = [
        f"{subject} {number} {verb}"
        for number in range(20)
        for subject in ("cat", "ship")
        for verb in ("sleeps", "leaves")
    ]
    asks = ({}, {"within": [("docs", None)]}, {"within": [("other", "a")]})
    found: list[list[list[tuple[str, str, float]]]] = []
    for folder in ("sqlite-vec", "simsimd"):
        (tmp_path / folder).mkdir()
        with open_indexed_store(tmp_path / folder) as store:
            store.put(texts)
            store.put(texts[:9], "other", scope="a")
            hits = [store.search("a kitten naps", lexical=False, **ask) for ask in asks]
        found.append([[(hit.space, hit.id, hit.similarity or 0) for hit in some] for some in hits])
        hide_sqlite_vec(monkeypatch)
    for by_extension, by_simsimd in zip(*found, strict=True):
        assert by_simsimd
        assert [hit[:2] for hit in by_simsimd] == [hit[:2] for hit in by_extension]
        assert [hit[2] for hit in by_simsimd] == pytest.approx([hit[2] for hit in by_extension], abs=FLOAT32_STEP)
