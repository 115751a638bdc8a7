"""Sketches are the same on every machine, and approximate the cosine."""

import hashlib

import numpy as np
import pytest

from kernel.search.ann import ROTATIONS, Sketcher
from tests.unit.vectors import clustered, fixed

DIMENSIONS = 256


@pytest.mark.parametrize(
    ("dimensions", "digest"),
    [
        (256, "ed3481c420fc026e"),
        (384, "2a58bb0091901f30"),
        (100, "7130d9759bbaf0f2"),
        (8, "e6d942e07683d0eb"),
    ],
)
def test_sketches_are_the_same_on_every_machine(dimensions: int, digest: str) -> None:
    sketches = Sketcher(dimensions).sketch(fixed(50, dimensions))

    assert hashlib.sha256(b"".join(sketches)).hexdigest()[:16] == digest


def test_sketch_is_the_signs_of_a_hadamard_transform() -> None:
    (vector,) = fixed(1, 64)
    (sketch,) = Sketcher(64).sketch([vector])
    signs = Sketcher(64)._flips  # the only free choice in the transform

    rotated = [
        sum((-1) ** (row & column).bit_count() * int(value) for column, value in enumerate(flipped))
        for flipped in signs * np.frombuffer(vector, np.int8)
        for row in range(64)
    ]

    assert np.unpackbits(np.frombuffer(sketch, np.uint8)).tolist() == [value > 0 for value in rotated]


@pytest.mark.parametrize(
    ("dimensions", "words"), [(1, 1), (8, 1), (32, 1), (33, 2), (64, 2), (100, 4), (256, 8), (300, 16), (768, 32)]
)
def test_sketch_has_two_bits_per_dimension_of_the_next_power_of_two(dimensions: int, words: int) -> None:
    sketcher = Sketcher(dimensions)

    assert sketcher.words == words
    assert {len(sketch) for sketch in sketcher.sketch(fixed(3, dimensions))} == {words * 8}


def test_sketch_does_not_depend_on_the_batch() -> None:
    sketcher, vectors = Sketcher(DIMENSIONS), fixed(40, DIMENSIONS)

    assert [sketcher.sketch([vector])[0] for vector in vectors] == sketcher.sketch(vectors)
    assert sketcher.sketch([]) == []


def test_opposite_vectors_differ_in_nearly_every_bit_and_scaled_ones_in_none() -> None:
    (vector,) = fixed(1, DIMENSIONS)
    whole = np.frombuffer(vector, np.int8) // 2
    sketcher = Sketcher(DIMENSIONS)

    same, half, opposite = (
        np.frombuffer(sketcher.sketch([given.astype(np.int8).tobytes()])[0], np.uint64)
        for given in (whole, whole * 2, -whole)
    )

    assert np.bitwise_count(same ^ half).sum() == 0
    assert np.bitwise_count(same ^ opposite).sum() > DIMENSIONS * ROTATIONS * 0.95


def table(sketches: list[bytes]) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(sketches), np.uint8).reshape(len(sketches), -1)


@pytest.mark.parametrize("dimensions", [8, 100, 256, 384])
def test_dot_correlates_with_the_product_of_values_and_signs(dimensions: int) -> None:
    sketcher, (query, *vectors) = Sketcher(dimensions), fixed(200, dimensions)
    sketches = sketcher.sketch(vectors)
    rotated = sketcher._rotated([query])[0]
    signs = np.unpackbits(np.frombuffer(b"".join(sketches), np.uint8)).reshape(len(sketches), -1) * 2.0 - 1

    products = signs @ rotated
    dots = sketcher.query(query).dot(table(sketches))

    assert np.corrcoef(products, dots)[0, 1] > 0.99


def test_query_of_zeros_is_accepted() -> None:
    sketcher = Sketcher(DIMENSIONS)

    query = sketcher.query(bytes(DIMENSIONS))

    assert query.dot(table(sketcher.sketch(fixed(3, DIMENSIONS)))).shape == (3,)


@pytest.mark.slow
def test_dot_has_higher_recall_than_hamming() -> None:
    vectors = clustered(20_000, 60, 1)
    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    sketcher = Sketcher(DIMENSIONS)
    sketches = table(sketcher.sketch(vectors))

    found = {"hamming": 0, "dot": 0}
    for query in clustered(40, 60, 1):
        nearest = np.argsort(-(unit @ np.frombuffer(query, np.int8).astype(np.float32)))[:10]
        query = sketcher.query(query)
        for name, order in (("hamming", _hamming(query.signs, sketches)), ("dot", -query.dot(sketches))):
            found[name] += len(set(nearest.tolist()) & set(np.argsort(order, kind="stable")[:256].tolist()))

    assert found["dot"] > found["hamming"]
    assert found["dot"] >= 0.97 * 400


def _hamming(
    signs: np.ndarray[tuple[int], np.dtype[np.uint8]], sketches: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.bitwise_count(sketches ^ signs).sum(axis=1)
