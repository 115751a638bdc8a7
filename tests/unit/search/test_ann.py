"""Vectors in memory: the nearest are found exactly or by sketch, within the filters; no row is lost or duplicated."""

import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.search import ann
from kernel.search.ann import Block, Deletion, Row, Sketcher, VectorFeed, VectorIndex
from tests.unit.vectors import clustered, fixed

DIMENSIONS = 256
SKETCHERS = {size: Sketcher(size) for size in (8, 32, 64, DIMENSIONS)}


@pytest.fixture(params=["exact", "sketches"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Holds the vectors, or sketches as in a large store."""
    if request.param == "sketches":
        monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    return request.param


class Stored(NamedTuple):
    id: int
    vector: bytes
    partition: int | None = 1

    def row(self, exact: bool) -> Row:
        """The row of the feed; document 1000 + id, so that ids and documents differ."""
        scale = 1 / float(np.linalg.norm(np.frombuffer(self.vector, np.int8).astype(float)))
        code = self.vector if exact else SKETCHERS[len(self.vector)].sketch([self.vector])[0]
        return Row(self.id, 1000 + self.id, self.partition, scale, code)


def stored(vectors: Sequence[bytes], partition: int = 1, first: int = 1) -> list[Stored]:
    return [Stored(number, vector, partition) for number, vector in enumerate(vectors, start=first)]


def block(rows: Sequence[Row], last: int) -> Block:
    """Rows as one stored block."""
    ids, docs, partitions, scales, codes = zip(*rows, strict=True) if rows else ([], [], [], [], [])
    columns = ((ids, np.int64), (docs, np.int64), (partitions, np.uint32), (scales, np.float64))
    packed = [np.array(values, kind).tobytes() for values, kind in columns]
    return Block(last, packed[0], packed[1], packed[2], packed[3], b"".join(codes))


@dataclass
class Store:
    """A store in memory, read two rows and one block at a time."""

    rows: list[Stored]
    blocks: list[list[Stored]] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    page_size: int = 2

    def feed(self) -> VectorFeed:
        def blocks(last: int, exact: bool) -> list[Block]:
            found = [rows for rows in self.blocks if rows[-1].id > last][:1]
            return [block([one.row(exact) for one in rows], rows[-1].id) for rows in found]

        def rows(last: int, exact: bool) -> list[Row]:
            return [one.row(exact) for one in itertools.islice((r for r in self.rows if r.id > last), self.page_size)]

        def deletions(seen: int) -> list[Deletion]:
            return [row for row in self.deletions if row.id == 0 or row.id > seen]

        return VectorFeed(lambda: len(self.rows), blocks, rows, deletions, self.page_size)

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
        after = self.blocks[-1][-1].id if self.blocks else 0
        if loose := [row for row in self.rows if row.id > after]:
            self.blocks.append(loose[:size])

    def rewrite(self, size: int) -> None:
        """Rewrites all blocks without deleted rows, and trims the log."""
        if self.blocks:
            left = [row for row in self.rows if row.id <= self.blocks[-1][-1].id]
            self.blocks = [left[at : at + size] for at in range(0, len(left), size)]
            self.deletions = [Deletion(0, self._last_deletion())] if self.deletions else []


def empty(dimensions: int = DIMENSIONS) -> VectorIndex:
    return VectorIndex(lambda: SKETCHERS[dimensions])


def loaded(rows: Sequence[Stored], dimensions: int = DIMENSIONS) -> VectorIndex:
    index = empty(dimensions)
    index.extend(Store([*rows], page_size=8192).feed())
    return index


def nearest(index: VectorIndex, vector: bytes, limit: int, partitions: Sequence[int] | None = None) -> list[int]:
    """Row ids, nearest first."""
    found = index.nearest(vector, 1 / 1000, limit, partitions)
    if found is None:
        return index.shortlist(vector, limit, partitions)
    return [doc - 1000 for doc in sorted(found, key=lambda doc: -found[doc])]


def all_ids(index: VectorIndex, dimensions: int = DIMENSIONS) -> list[int]:
    """The ids of all rows held."""
    return sorted(nearest(index, b"\1" * dimensions, 1 << 18))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_sketches_find_nearly_all_true_neighbours(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    vectors = clustered(20_000, 60, seed)
    index = loaded(stored(vectors))
    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    queries = clustered(40, 60, seed)

    found = 0
    for query in queries:
        values = np.frombuffer(query, np.int8).astype(np.float32)
        closest = np.argsort(-(unit @ values), kind="stable")[:10] + 1
        found += len(set(closest.tolist()) & set(index.shortlist(query, 512)))

    assert found / (10 * len(queries)) >= 0.99


@pytest.mark.slow
def test_exact_search_returns_the_cosines_of_the_nearest_and_of_the_documents_asked_for() -> None:
    vectors = clustered(3000, 20, 3)
    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS).astype(np.float64)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    query = unit[1500]
    cosines = unit @ query

    scale = 1 / float(np.linalg.norm(matrix[1500]))
    found = loaded(stored(vectors)).nearest(vectors[1500], scale, 5, also=[1001, 1700, 9999])
    assert found is not None

    expected = {1000 + row + 1 for row in np.argsort(-cosines)[:5]} | {1001, 1700}
    assert set(found) == expected
    assert found == pytest.approx({doc: cosines[doc - 1001] for doc in expected})
    assert found[2501] == pytest.approx(1, abs=1e-12)


def test_exact_search_is_limited_to_documents_and_to_rows_up_to_an_id() -> None:
    vectors = fixed(40, DIMENSIONS)
    index = loaded(stored(vectors))

    assert (index.nearest(vectors[0], 1, 100, docs=[1003, 1040, 1077]) or {}).keys() == {1003, 1040}
    assert (index.nearest(vectors[0], 1, 100, upto=3) or {}).keys() == {1001, 1002, 1003}
    assert index.nearest(vectors[0], 1, 100, docs=[]) == {}


@pytest.mark.slow
def test_nearest_returns_the_limit_with_the_vector_itself_first(kind: str) -> None:
    vectors = clustered(3000, 20, 3)
    index = loaded(stored(vectors))

    for number in (0, 1500, 2999):
        near = nearest(index, vectors[number], 100)
        assert near[0] == number + 1
        assert len(near) == len(set(near)) == 100


def test_nearest_returns_all_rows_below_the_limit(kind: str) -> None:
    vectors = fixed(7, DIMENSIONS)

    near = nearest(loaded(stored(vectors)), vectors[0], 10)

    assert (near[0], sorted(near)) == (1, [1, 2, 3, 4, 5, 6, 7])
    assert nearest(empty(), vectors[0], 10) == []


def test_partition_filter_applies_before_ranking(kind: str) -> None:
    vector, *others = fixed(4, DIMENSIONS)
    index = loaded([*stored([vector] * 3000), *stored(others, partition=2, first=3001)])

    assert len(nearest(index, vector, 2, [2])) == 2
    for partitions in ([2], [2, 9], [2, 3, 4, 5]):
        assert set(nearest(index, vector, 10, partitions)) == {3001, 3002, 3003}
    assert len(nearest(index, vector, 9999, [1])) == 3000
    assert len(nearest(index, vector, 9999, [1, 2])) == 3003
    assert nearest(index, vector, 10, [9]) == []
    assert nearest(index, vector, 10, []) == []


@pytest.mark.slow
def test_newest_of_many_equal_sketches_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    vector, other = fixed(2, DIMENSIONS)
    index = loaded([*stored([vector] * 5000), *stored([other] * 5, first=5001)])

    near = index.shortlist(vector, 10)

    assert len(near) == 10
    assert set(near) <= set(range(5001 - 10 * 16 * 4, 5001))


@pytest.mark.slow
def test_extend_reads_only_new_rows(kind: str) -> None:
    kept = stored(fixed(5000, 32))
    index = empty(32)
    starts: list[int] = []

    for size in (1, 2, 2, 1500, 5000):
        feed = Store(kept[:size], page_size=4000).feed()

        def read(last: int, exact: bool, feed: VectorFeed = feed) -> Sequence[Row]:
            starts.append(last)
            return feed.rows(last, exact)

        index.extend(feed._replace(rows=read))

    assert starts == [0, 1, 2, 2, 1500]
    assert index.last == 5000
    assert all_ids(index, 32) == list(range(1, 5001))


def test_rows_beyond_the_room_of_a_table_are_found(kind: str) -> None:
    kept = stored(fixed(1, 8) * 5000)
    index = empty(8)

    for size in (1025, 5000):
        index.extend(Store(kept[:size], [kept[:1000], kept[1000:1024]], page_size=99).feed())
        assert all_ids(index, 8) == list(range(1, size + 1))


def test_store_that_grows_large_is_loaded_again_as_sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_ROWS", 20)
    kept = stored(fixed(25, DIMENSIONS))
    store, index = Store(kept[:15]), empty()

    seen: list[tuple[bool, list[int]]] = []
    for size in (15, 20, 25):
        store.rows = kept[:size]
        index.extend(store.feed())
        seen.append((index.exact, all_ids(index)))

    assert seen == [(True, [*range(1, 16)]), (True, [*range(1, 21)]), (False, [*range(1, 26)])]


def test_searches_find_every_row_while_a_large_store_is_loaded_as_sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_ROWS", 20)
    kept = stored(fixed(25, DIMENSIONS))
    store, index = Store(kept[:20]), empty()
    index.extend(store.feed())
    store.rows = kept
    feed, found = store.feed(), list[int]()

    def rows(last: int, exact: bool) -> Sequence[Row]:
        if not exact:
            found.append(len(all_ids(index)))
        return feed.rows(last, exact)

    index.extend(feed._replace(rows=rows))

    assert {*found} == {25}
    assert not index.exact


def test_rows_of_another_model_are_skipped_and_not_read_again(kind: str) -> None:
    kept = [row if row.id % 3 else row._replace(partition=None) for row in stored(fixed(9, 32))]
    index = loaded(kept, 32)

    assert (all_ids(index, 32), index.last) == ([1, 2, 4, 5, 7, 8], 9)


def test_deleted_rows_stay_deleted_while_new_rows_arrive(kind: str) -> None:
    store = Store(stored(fixed(30, DIMENSIONS)))
    later, store.rows = store.rows[20:], store.rows[:20]
    index = empty()
    index.extend(store.feed())

    store.drop(1, 2, 3, 20, 99)
    index.extend(store.feed())
    assert all_ids(index) == list(range(4, 20))

    store.rows += later
    store.drop(4, 30)
    index.extend(store.feed())
    assert all_ids(index) == [*range(5, 20), *range(21, 30)]

    store.drop(*range(5, 30))
    index.extend(store.feed())
    assert (index.last, all_ids(index)) == (29, [])


@pytest.mark.slow
def test_remaining_rows_keep_partition_and_vector_after_deletions(kind: str) -> None:
    vectors = clustered(3000, 20, 4)
    kept = [row._replace(partition=row.id % 3 + 1) for row in stored(vectors)]

    for deleted in (range(1, 3000, 2), range(1, 3000, 20)):  # enough for a copy without them, and too few
        store, index = Store(kept, page_size=8192), empty()
        index.extend(store.feed())
        store.drop(*deleted)
        index.extend(store.feed())

        alone = loaded(store.rows)
        for vector in vectors[:5]:
            for partitions in (None, [2], [1, 3], [7]):
                assert sorted(nearest(index, vector, 50, partitions)) == sorted(nearest(alone, vector, 50, partitions))


def test_unit_vectors_of_documents_are_those_of_their_rows() -> None:
    vectors = fixed(9, DIMENSIONS)
    index = loaded(stored(vectors))

    found = index.unit_vectors([1002, 1008, 1100], upto=7)
    assert found is not None
    docs, units = found

    values = np.frombuffer(vectors[1], np.int8)
    assert docs.tolist() == [1002]
    assert units[0] == pytest.approx(values / np.linalg.norm(values.astype(float)), abs=1e-6)
    assert empty().unit_vectors([1002]) is None


def test_missed_trimmed_deletions_cause_a_full_reload(kind: str) -> None:
    kept = stored(fixed(9, DIMENSIONS))
    store, behind, ahead = Store(kept), empty(), empty()
    behind.extend(store.feed())
    store.drop(1, 2, 3)
    ahead.extend(store.feed())
    store.blocks, store.deletions = [store.rows[:4]], [Deletion(0, 3)]

    for index in (behind, ahead):
        index.extend(store.feed())
        assert all_ids(index) == [4, 5, 6, 7, 8, 9]


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "drop", "seal", "rewrite", "read", "start"]), st.integers(1, 12)), max_size=40
)


@pytest.mark.slow
@settings(max_examples=60)
@given(STEPS)
@example([("add", 2), ("seal", 1), ("read", 1), ("drop", 1), ("rewrite", 1), ("rewrite", 1)])
def test_index_equals_the_store_after_any_sequence_of_changes(steps: list[tuple[str, int]]) -> None:
    (vector,) = fixed(1, 32)
    store, index, next_ids = Store([]), empty(32), itertools.count(1)
    for what, number in steps:
        match what:
            case "add":
                store.rows += [Stored(next(next_ids), vector) for _ in range(number)]
            case "drop":
                store.drop(*[row.id for row in store.rows[number % 3 :: number]])
            case "seal":
                store.seal(number)
            case "rewrite":
                store.rewrite(number)
            case "read":
                index.extend(store.feed())
            case _:
                index = empty(32)
    index.extend(store.feed())

    assert all_ids(index, 32) == [row.id for row in store.rows]


@pytest.mark.slow
def test_concurrent_extend_and_search_lose_and_duplicate_nothing(kind: str) -> None:
    kept = stored(fixed(6000, 64))
    index = empty(64)
    size = itertools.count(1, 97)
    wrong: list[list[int]] = []
    barrier = threading.Barrier(6)

    def extend() -> None:
        barrier.wait()
        while (limit := next(size)) < len(kept):
            index.extend(Store(kept[:limit], page_size=1000).feed())
            near = all_ids(index, 64)
            if near != list(range(1, len(near) + 1)) or len(near) < limit:
                wrong.append(near)

    threads = [threading.Thread(target=extend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index.extend(Store(kept, page_size=1000).feed())

    assert wrong == []
    assert all_ids(index, 64) == list(range(1, 6001))


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """The interpreter switches threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.usefixtures("frequent_switches")
def test_search_concurrent_with_deletions_never_fails(kind: str) -> None:
    count, deleted = 4000, 1500
    vector, probe = fixed(2, DIMENSIONS)
    rows = stored([vector] * count)
    store = Store([], page_size=count)
    index = loaded(rows)
    failures: list[BaseException] = []

    def delete() -> None:
        for number in range(1, deleted + 1):
            store.deletions = [Deletion(number, number)]
            index.extend(store.feed())

    def search() -> None:
        try:
            while thread.is_alive():
                assert len(nearest(index, probe, 4)) == 4
        except (AssertionError, RuntimeError) as error:
            failures.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    search()
    thread.join()
    assert (failures, len(nearest(index, probe, count))) == ([], count - deleted)


def test_comparisons_leave_the_references_to_none_as_they_are() -> None:
    """Python 3.11 counts them, and aborts at zero."""
    vectors = np.ones((2, DIMENSIONS), np.int8)
    before = sys.getrefcount(None)
    for _ in range(1000):
        ann.compare(vectors[0], vectors)
    assert abs(sys.getrefcount(None) - before) < 500
