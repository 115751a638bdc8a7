"""The coarse stage finds nearly all true neighbours, filters by partition, and loses or duplicates no row."""

import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.search.ann import Block, Deletion, Row, Sketches, VectorFeed
from kernel.search.binary_codes import Sketcher
from kernel.search.shortlist import CHUNK_ROWS
from tests.unit.vectors import clustered, fixed

DIMENSIONS = 256


def rows(vectors: Sequence[bytes], sketcher: Sketcher, partition: int = 1, first: int = 1) -> list[Row]:
    return [Row(number, partition, sketch) for number, sketch in enumerate(sketcher.sketch(vectors), start=first)]


def block(kept: Sequence[Row], last: int | None = None) -> Block:
    """Rows as one stored block."""
    words = np.frombuffer(b"".join(row.sketch for row in kept), np.uint64).reshape(len(kept), -1 if kept else 0)
    ids = np.array([row.id for row in kept], np.int64).tobytes()
    partitions = np.array([row.partition for row in kept], np.uint32).tobytes()
    return Block(last or kept[-1].id, ids, partitions, np.ascontiguousarray(words.T).tobytes())


@dataclass
class Store:
    """A store in memory, read two rows and one block at a time."""

    rows: list[Row]
    blocks: list[Block] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    page_size: int = 2

    def feed(self) -> VectorFeed:
        return VectorFeed(
            lambda last: [found for found in self.blocks if found.last > last][:1],
            lambda last: [row for row in self.rows if row.id > last][: self.page_size],
            lambda seen: [row for row in self.deletions if row.id == 0 or row.id > seen],
            self.page_size,
        )

    def drop(self, *vectors: int) -> None:
        """Deletes rows and logs the deletions."""
        self.rows = [row for row in self.rows if row.id not in vectors]
        self.deletions += [
            Deletion(number, vector) for number, vector in enumerate(vectors, start=self._last_deletion() + 1)
        ]

    def _last_deletion(self) -> int:
        """The number of the last deletion, in the log or trimmed from it."""
        newest = self.deletions[-1] if self.deletions else Deletion(0, 0)
        return newest.id or newest.vector

    def seal(self, size: int) -> None:
        """Makes a block of rows that are in none."""
        after = self.blocks[-1].last if self.blocks else 0
        if loose := [row for row in self.rows if row.id > after]:
            self.blocks.append(block(loose[:size]))

    def rewrite(self, size: int) -> None:
        """Rewrites all blocks without deleted rows, and trims the log."""
        if self.blocks:
            left = [row for row in self.rows if row.id <= self.blocks[-1].last]
            self.blocks = [block(left[at : at + size]) for at in range(0, len(left), size)]
            self.deletions = [Deletion(0, self._last_deletion())] if self.deletions else []


def loaded(kept: list[Row], dimensions: int = DIMENSIONS) -> Sketches:
    sketches = Sketches(lambda: Sketcher(dimensions))
    sketches.extend(Store(kept, page_size=8192).feed())
    return sketches


def all_ids(sketches: Sketches, dimensions: int = DIMENSIONS) -> list[int]:
    """The ids of all rows held."""
    return sorted(sketches.nearest(b"\1" * dimensions, 1 << 20, None))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_coarse_stage_has_high_recall(seed: int) -> None:
    vectors = clustered(20_000, 60, seed)
    sketches = loaded(rows(vectors, Sketcher(DIMENSIONS)))
    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    queries = clustered(40, 60, seed)

    found = 0
    for query in queries:
        values = np.frombuffer(query, np.int8).astype(np.float32)
        nearest = np.argsort(-(unit @ values), kind="stable")[:10] + 1
        found += len(set(nearest.tolist()) & set(sketches.nearest(query, 512, None)))

    assert found / (10 * len(queries)) >= 0.99


def test_nearest_returns_the_limit_with_the_vector_itself_first() -> None:
    vectors = clustered(3000, 20, 3)
    sketches = loaded(rows(vectors, Sketcher(DIMENSIONS)))

    for number in (0, 1500, 2999):
        near = sketches.nearest(vectors[number], 100, None)
        assert near[0] == number + 1
        assert len(near) == len(set(near)) == 100


def test_nearest_returns_all_rows_below_the_limit() -> None:
    vectors = fixed(7, DIMENSIONS)

    near = loaded(rows(vectors, Sketcher(DIMENSIONS))).nearest(vectors[0], 10, None)

    assert (near[0], sorted(near)) == (1, [1, 2, 3, 4, 5, 6, 7])
    assert Sketches(lambda: Sketcher(DIMENSIONS)).nearest(vectors[0], 10, None) == []


def test_partition_filter_applies_before_ranking() -> None:
    sketcher, (vector, *others) = Sketcher(DIMENSIONS), fixed(4, DIMENSIONS)
    many = rows([vector] * 3000, sketcher)
    others_rows = rows(others, sketcher, partition=2, first=3001)
    sketches = loaded([*many, *others_rows])

    assert len(sketches.nearest(vector, 2, [2])) == 2
    assert set(sketches.nearest(vector, 10, [2])) == {3001, 3002, 3003}
    assert set(sketches.nearest(vector, 10, [2, 9])) == {3001, 3002, 3003}
    assert set(sketches.nearest(vector, 10, [2, 3, 4, 5])) == {3001, 3002, 3003}
    assert len(sketches.nearest(vector, 9999, [1])) == 3000
    assert len(sketches.nearest(vector, 9999, [1, 2])) == 3003
    assert sketches.nearest(vector, 10, [9]) == []
    assert sketches.nearest(vector, 10, []) == []


@pytest.mark.slow
def test_newest_of_many_equal_rows_are_candidates() -> None:
    sketcher, (vector, other) = Sketcher(DIMENSIONS), fixed(2, DIMENSIONS)
    sketches = loaded([*rows([vector] * 5000, sketcher), *rows([other] * 5, sketcher, first=5001)])

    near = sketches.nearest(vector, 10, None)

    assert len(near) == 10
    assert set(near) <= set(range(5001 - 480, 5001))


def test_extend_reads_only_new_rows() -> None:
    kept = rows(fixed(5000, 32), Sketcher(32))
    sketches = Sketches(lambda: Sketcher(32))
    starts: list[int] = []

    for size in (1, 2, 2, 1500, 5000):
        feed = Store(kept[:size], page_size=4000).feed()

        def read(last: int, feed: VectorFeed = feed) -> Sequence[Row]:
            starts.append(last)
            return feed.rows(last)

        sketches.extend(feed._replace(rows=read))

    assert starts == [0, 1, 2, 2, 1500]
    assert sketches.last == 5000
    assert all_ids(sketches, 32) == list(range(1, 5001))


def test_rows_spill_into_further_chunks() -> None:
    kept = rows(fixed(1, 8) * (CHUNK_ROWS + 10), Sketcher(8))
    sketches = Sketches(lambda: Sketcher(8))
    store = Store(kept, [block(kept[: CHUNK_ROWS - 5]), block(kept[CHUNK_ROWS - 5 : CHUNK_ROWS + 5])])

    sketches.extend(store.feed())

    assert all_ids(sketches, 8) == list(range(1, CHUNK_ROWS + 11))


def test_rows_of_another_model_are_skipped_and_not_read_again() -> None:
    kept = [row if row.id % 3 else row._replace(partition=None) for row in rows(fixed(9, 32), Sketcher(32))]
    sketches = loaded(kept, 32)

    assert (all_ids(sketches, 32), sketches.last) == ([1, 2, 4, 5, 7, 8], 9)


def test_deleted_rows_stay_deleted_while_new_rows_arrive() -> None:
    store = Store(rows(fixed(30, DIMENSIONS), Sketcher(DIMENSIONS)))
    later, store.rows = store.rows[20:], store.rows[:20]
    sketches = Sketches(lambda: Sketcher(DIMENSIONS))
    sketches.extend(store.feed())

    store.drop(1, 2, 3, 20, 99)
    sketches.extend(store.feed())
    assert all_ids(sketches) == list(range(4, 20))

    store.rows += later
    store.drop(4, 30)
    sketches.extend(store.feed())
    assert all_ids(sketches) == [*range(5, 20), *range(21, 30)]

    store.drop(*range(5, 30))
    sketches.extend(store.feed())
    assert (sketches.last, all_ids(sketches)) == (29, [])


def test_remaining_rows_keep_partition_and_sketch_after_deletions() -> None:
    sketcher, vectors = Sketcher(DIMENSIONS), clustered(3000, 20, 4)
    kept = [row._replace(partition=row.id % 3 + 1) for row in rows(vectors, sketcher)]

    for deleted in (range(1, 3000, 2), range(1, 3000, 20)):  # enough to compact a chunk, and too few
        store, sketches = Store(kept, page_size=8192), Sketches(lambda: sketcher)
        sketches.extend(store.feed())
        store.drop(*deleted)
        sketches.extend(store.feed())

        alone = loaded(store.rows)
        for vector in vectors[:20]:
            for partitions in (None, [2], [1, 3], [7]):
                assert sorted(sketches.nearest(vector, 50, partitions)) == sorted(alone.nearest(vector, 50, partitions))


def test_missed_trimmed_deletions_cause_a_full_reload() -> None:
    kept = rows(fixed(9, DIMENSIONS), Sketcher(DIMENSIONS))
    store, behind, ahead = Store(kept), *(Sketches(lambda: Sketcher(DIMENSIONS)) for _ in range(2))
    behind.extend(store.feed())
    store.drop(1, 2, 3)
    ahead.extend(store.feed())
    store.blocks, store.deletions = [block(store.rows[:4])], [Deletion(0, 3)]

    for sketches in (behind, ahead):
        sketches.extend(store.feed())
        assert all_ids(sketches) == [4, 5, 6, 7, 8, 9]


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "drop", "seal", "rewrite", "read", "start"]), st.integers(1, 12)), max_size=40
)


@settings(max_examples=60)
@given(STEPS)
@example([("add", 2), ("seal", 1), ("read", 1), ("drop", 1), ("rewrite", 1), ("rewrite", 1)])
def test_sketches_equal_the_store_after_any_sequence_of_changes(steps: list[tuple[str, int]]) -> None:
    sketcher = Sketcher(32)
    bits = sketcher.sketch(fixed(1, 32))[0]
    store, sketches, next_ids = Store([]), Sketches(lambda: sketcher), itertools.count(1)
    for what, number in steps:
        match what:
            case "add":
                store.rows += [Row(next(next_ids), 1, bits) for _ in range(number)]
            case "drop":
                store.drop(*[row.id for row in store.rows[number % 3 :: number]])
            case "seal":
                store.seal(number)
            case "rewrite":
                store.rewrite(number)
            case "read":
                sketches.extend(store.feed())
            case _:
                sketches = Sketches(lambda: sketcher)
    sketches.extend(store.feed())

    assert all_ids(sketches, 32) == [row.id for row in store.rows]


@pytest.mark.slow
def test_concurrent_extend_and_search_lose_and_duplicate_nothing() -> None:
    kept = rows(fixed(6000, 64), Sketcher(64))
    sketches = Sketches(lambda: Sketcher(64))
    size = itertools.count(1, 7)
    wrong: list[list[int]] = []
    barrier = threading.Barrier(6)

    def extend() -> None:
        barrier.wait()
        while (limit := next(size)) < len(kept):
            sketches.extend(Store(kept[:limit], page_size=1000).feed())
            near = all_ids(sketches, 64)
            if near != list(range(1, len(near) + 1)) or len(near) < limit:
                wrong.append(near)

    threads = [threading.Thread(target=extend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sketches.extend(Store(kept, page_size=1000).feed())

    assert wrong == []
    assert all_ids(sketches, 64) == list(range(1, 6001))


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """The interpreter switches threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
def test_search_concurrent_with_deletions_never_fails() -> None:
    count, deleted = CHUNK_ROWS - 1, 8000
    sketcher = Sketcher(DIMENSIONS)
    vector, probe = fixed(2, DIMENSIONS)
    (sketch,) = sketcher.sketch([vector])
    store = Store([], [block([Row(number, 1, sketch) for number in range(1, count + 1)])], page_size=count)
    sketches = Sketches(lambda: sketcher)
    sketches.extend(store.feed())
    failures: list[BaseException] = []

    def delete() -> None:
        for number in range(1, deleted + 1):
            store.deletions = [Deletion(number, number)]
            sketches.extend(store.feed())

    def search() -> None:
        try:
            while thread.is_alive():
                assert len(sketches.nearest(probe, 4, None)) == 4
        except (AssertionError, RuntimeError) as error:
            failures.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    search()
    thread.join()
    assert (failures, len(sketches.nearest(probe, count, None))) == ([], count - deleted)
