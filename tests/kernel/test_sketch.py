"""Sketches are the same everywhere, find nearly every true neighbour, and lose or double no row."""

import hashlib
import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kernel.sketch import ROTATIONS, Row, Sketcher, Sketches

DIMENSIONS = 256


def fixed(count: int, dimensions: int) -> list[bytes]:
    """Vectors from arithmetic alone, so that no library's random numbers are in the digests below."""
    state = 1
    vectors: list[bytes] = []
    for _ in range(count):
        letters = bytearray()
        for _ in range(dimensions):
            state = (state * 48271) % 0x7FFFFFFF
            letters.append(state % 255 - 127 & 0xFF)
        vectors.append(bytes(letters))
    return vectors


def clustered(count: int, centres: int, seed: int) -> list[bytes]:
    """Int8 vectors around some centres, as texts on a few subjects are."""
    random = np.random.default_rng(seed)
    middle = random.normal(size=(centres, DIMENSIONS))
    points = middle[random.integers(0, centres, count)] + random.normal(size=(count, DIMENSIONS)) * 0.8
    whole = np.rint(points / np.abs(points).max(axis=1, keepdims=True) * 127).astype(np.int8)
    return [row.tobytes() for row in whole]


def rows(vectors: Sequence[bytes], sketcher: Sketcher, place: int = 1, first: int = 1) -> list[Row]:
    return [Row(number, place, sketch) for number, sketch in enumerate(sketcher.sketch(vectors), start=first)]


def filled(kept: Sequence[Row], dimensions: int = DIMENSIONS) -> Sketches:
    sketches = Sketches(lambda: Sketcher(dimensions))
    sketches.extend(after(kept))
    return sketches


def after(kept: Sequence[Row]) -> Callable[[int], list[Row]]:
    """Reads the rows after an id, as the index does."""
    return lambda last: [row for row in kept if row.id > last]


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


def test_a_sketch_is_the_signs_of_a_hadamard_transform() -> None:
    (vector,) = fixed(1, 64)
    (sketch,) = Sketcher(64).sketch([vector])
    signs = Sketcher(64)._flips  # the one thing that the transform leaves open

    turned = [
        sum((-1) ** (row & column).bit_count() * int(value) for column, value in enumerate(flipped))
        for flipped in signs * np.frombuffer(vector, np.int8)
        for row in range(64)
    ]

    assert np.unpackbits(np.frombuffer(sketch, np.uint8)).tolist() == [value > 0 for value in turned]


@pytest.mark.parametrize(
    ("dimensions", "words"), [(1, 1), (8, 1), (32, 1), (33, 2), (64, 2), (100, 4), (256, 8), (300, 16), (768, 32)]
)
def test_a_sketch_has_two_bits_for_every_dimension_up_to_the_next_power_of_two(dimensions: int, words: int) -> None:
    sketcher = Sketcher(dimensions)

    assert sketcher.words == words
    assert {len(sketch) for sketch in sketcher.sketch(fixed(3, dimensions))} == {words * 8}


def test_a_vector_is_sketched_alike_alone_and_among_others() -> None:
    sketcher, vectors = Sketcher(DIMENSIONS), fixed(40, DIMENSIONS)

    assert [sketcher.sketch([vector])[0] for vector in vectors] == sketcher.sketch(vectors)
    assert sketcher.sketch([]) == []


def test_opposite_vectors_differ_in_nearly_every_bit_and_a_scaled_one_in_none() -> None:
    (vector,) = fixed(1, DIMENSIONS)
    whole = np.frombuffer(vector, np.int8) // 2
    sketcher = Sketcher(DIMENSIONS)

    same, half, turned = (
        np.frombuffer(sketcher.sketch([given.astype(np.int8).tobytes()])[0], np.uint64)
        for given in (whole, whole * 2, -whole)
    )

    assert np.bitwise_count(same ^ half).sum() == 0
    assert np.bitwise_count(same ^ turned).sum() > DIMENSIONS * ROTATIONS * 0.95


@pytest.mark.parametrize("seed", [1, 2])
def test_the_coarse_stage_holds_nearly_all_of_the_true_neighbours(seed: int) -> None:
    vectors = clustered(20_000, 60, seed)
    sketches = filled(rows(vectors, Sketcher(DIMENSIONS)))
    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    queries = clustered(40, 60, seed)

    found = 0
    for query in queries:
        asked = np.frombuffer(query, np.int8).astype(np.float32)
        nearest = np.argsort(-(unit @ asked), kind="stable")[:10] + 1
        found += len(set(nearest.tolist()) & set(sketches.nearest(query, 512, None)))

    assert found / (10 * len(queries)) >= 0.95


def test_candidates_are_about_as_many_as_asked_for_and_the_vector_itself_is_among_them() -> None:
    vectors = clustered(3000, 20, 3)
    sketches = filled(rows(vectors, Sketcher(DIMENSIONS)))

    for number in (0, 1500, 2999):
        near = sketches.nearest(vectors[number], 100, None)
        assert number + 1 in near
        assert 100 <= len(near) < 200


def test_everything_is_a_candidate_where_less_is_held_than_asked_for() -> None:
    vectors = fixed(7, DIMENSIONS)

    assert filled(rows(vectors, Sketcher(DIMENSIONS))).nearest(vectors[0], 10, None) == [1, 2, 3, 4, 5, 6, 7]
    assert Sketches(lambda: Sketcher(DIMENSIONS)).nearest(vectors[0], 10, None) == []


def test_a_small_place_is_searched_as_if_it_stood_alone() -> None:
    sketcher, (vector, *others) = Sketcher(DIMENSIONS), fixed(4, DIMENSIONS)
    crowd = rows([vector] * 3000, sketcher)
    few = rows(others, sketcher, place=2, first=3001)
    sketches = filled([*crowd, *few])

    assert sketches.nearest(vector, 2, [2])
    assert set(sketches.nearest(vector, 10, [2])) == {3001, 3002, 3003}
    assert set(sketches.nearest(vector, 10, [2, 9])) == {3001, 3002, 3003}
    assert len(sketches.nearest(vector, 10, [1])) == 3000
    assert sketches.nearest(vector, 10, [9]) == []
    assert sketches.nearest(vector, 10, []) == []


def test_only_new_rows_are_read_and_each_is_kept_once() -> None:
    kept = rows(fixed(5000, 32), Sketcher(32))
    sketches = Sketches(lambda: Sketcher(32))
    asked: list[int] = []

    for size in (1, 2, 2, 1500, 5000):

        def read(last: int, size: int = size) -> list[Row]:
            asked.append(last)
            return [row for row in kept[:size] if row.id > last]

        sketches.extend(read)

    assert asked == [0, 1, 2, 2, 1500]
    assert sketches.last == 5000
    assert sketches.nearest(b"\1" * 32, 9999, None) == list(range(1, 5001))


def test_rows_read_twice_by_overlapping_readers_are_kept_once() -> None:
    kept = rows(fixed(20, DIMENSIONS), Sketcher(DIMENSIONS))
    sketches = Sketches(lambda: Sketcher(DIMENSIONS))

    def slow(last: int) -> list[Row]:
        sketches.extend(after(kept[:15]))  # another reader overtakes this one
        return [row for row in kept[:10] if row.id > last]

    sketches.extend(slow)

    assert sketches.nearest(bytes(DIMENSIONS), 99, None) == list(range(1, 16))


def test_dropped_rows_are_gone_for_good_while_new_ones_still_come() -> None:
    kept = rows(fixed(30, DIMENSIONS), Sketcher(DIMENSIONS))
    sketches = filled(kept[:20])

    sketches.drop({1, 2, 3, 20, 99})
    sketches.extend(after(kept[:20]))
    assert sketches.nearest(bytes(DIMENSIONS), 99, None) == list(range(4, 20))

    sketches.extend(after(kept))
    assert sketches.nearest(bytes(DIMENSIONS), 99, None) == [*range(4, 20), *range(21, 31)]

    sketches.drop(set())
    sketches.drop(set(range(1, 31)))
    assert (sketches.last, sketches.nearest(bytes(DIMENSIONS), 99, None)) == (30, [])


def test_nothing_is_dropped_from_nothing() -> None:
    sketches = Sketches(lambda: Sketcher(DIMENSIONS))

    sketches.drop({1})

    assert (sketches.last, sketches.nearest(bytes(DIMENSIONS), 9, None)) == (0, [])


def test_a_row_that_remains_keeps_its_place_and_its_sketch_when_others_are_dropped() -> None:
    sketcher, vectors = Sketcher(DIMENSIONS), clustered(3000, 20, 4)
    kept = [row._replace(place=row.id % 3) for row in rows(vectors, sketcher)]
    sketches, gone = filled(kept), set(range(1, 3000, 2))

    sketches.drop(gone)

    alone = filled([row for row in kept if row.id not in gone])
    for vector in vectors[:20]:
        for places in (None, [1], [0, 2]):
            assert sketches.nearest(vector, 50, places) == alone.nearest(vector, 50, places)


def test_threads_that_grow_and_search_at_once_lose_and_double_nothing() -> None:
    kept = rows(fixed(6000, 64), Sketcher(64))
    sketches = Sketches(lambda: Sketcher(64))
    size = itertools.count(1, 7)
    wrong: list[list[int]] = []
    begin = threading.Barrier(6)

    def grow() -> None:
        begin.wait()
        while (limit := next(size)) < len(kept):
            sketches.extend(after(kept[:limit]))
            near = sketches.nearest(bytes(64), 9999, None)
            if near != list(range(1, len(near) + 1)) or len(near) < limit:
                wrong.append(near)

    threads = [threading.Thread(target=grow) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sketches.extend(after(kept))

    assert wrong == []
    assert sketches.nearest(bytes(64), 9999, None) == list(range(1, 6001))
