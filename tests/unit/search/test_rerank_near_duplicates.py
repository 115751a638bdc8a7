"""Near-duplicates form one group, in any order and batches."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.search.rerank import DUPLICATE_COSINE, LONG_DUPLICATE_COSINE, MOST_COMPARED, NearDuplicates
from tests.security.growth import growth

PLANE = st.lists(
    st.sampled_from([(127, 0), (120, 40), (95, 84), (60, 112), (0, 127), (-127, 0), (-120, 40)]), max_size=9
)


def units(vectors: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    whole = np.array(vectors, np.float32).reshape(-1, 2)
    return whole / np.linalg.norm(whole, axis=1, keepdims=True)


def grouped(vectors: list[tuple[int, int]], sizes: list[int]) -> NearDuplicates:
    duplicates, docs = NearDuplicates(2), list(enumerate(vectors))
    for size in [*sizes, len(docs)]:
        some, docs = docs[:size], docs[size:]
        duplicates.add([doc for doc, _ in some], units([vector for _, vector in some]), [False] * len(some))
    return duplicates


@given(PLANE, st.lists(st.integers(1, 4), max_size=4))
def test_groups_are_transitive(vectors: list[tuple[int, int]], sizes: list[int]) -> None:
    leaders = grouped(vectors, sizes).leaders

    expected = list(range(len(vectors)))
    for _ in vectors:
        for one, first in enumerate(vectors):
            for other, second in enumerate(vectors):
                if _cosine(first, second) >= DUPLICATE_COSINE:
                    expected[one] = min(expected[one], expected[other])
    assert [leaders[doc] for doc in range(len(vectors))] == expected


def test_chain_of_near_duplicates_is_one_group() -> None:
    row = [(127, 0), (120, 40), (95, 84), (60, 112), (30, 124), (0, 127)]
    assert all(_cosine(one, other) >= DUPLICATE_COSINE for one, other in pairwise(row))
    duplicates = grouped(row, [2])

    assert set(duplicates.leaders.values()) == {0}
    assert [duplicates.ranks.get(doc, 0) for doc in range(7)] == [0, 1, 2, 3, 4, 5, 0]


def test_long_text_needs_a_higher_cosine() -> None:
    one, other = (127, 0), (112, 60)
    assert DUPLICATE_COSINE <= _cosine(one, other) < LONG_DUPLICATE_COSINE

    def leaders(*long: int) -> dict[int, int]:
        together, apart = NearDuplicates(2), NearDuplicates(2)
        together.add([0, 1], units([one, other]), [doc in long for doc in (0, 1)])
        for doc, vector in enumerate([one, other]):
            apart.add([doc], units([vector]), [doc in long])
        assert together.leaders == apart.leaders
        return together.leaders

    assert leaders() == {0: 0, 1: 0}
    assert leaders(0) == leaders(1) == leaders(0, 1) == {0: 0, 1: 1}


def _cosine(one: tuple[int, int], other: tuple[int, int]) -> float:
    dot = one[0] * other[0] + one[1] * other[1]
    return dot / ((one[0] ** 2 + one[1] ** 2) * (other[0] ** 2 + other[1] ** 2)) ** 0.5


def test_a_flood_is_one_group_beyond_what_is_compared() -> None:
    """So is a second one that begins after it, and a text like neither stays by itself."""
    angles = [0.0] * MOST_COMPARED + [0.1] * 3000 + [1.5] * 3000 + [3.0, 4.5]
    vectors = np.array([(np.cos(angle), np.sin(angle)) for angle in angles], np.float32)
    duplicates = NearDuplicates(2)
    for begin in range(0, len(vectors), 1000):
        some = vectors[begin : begin + 1000]
        duplicates.add(range(begin, begin + len(some)), some, [False] * len(some))
    first, second = 0, MOST_COMPARED + 3000
    assert list(duplicates.leaders.values()) == [first] * second + [second] * 3000 + [second + 3000, second + 3001]
    assert [doc for doc in duplicates.docs if duplicates.ranks.get(doc, 0) < 3] == [
        *(0, 1, 2),
        *(second, second + 1, second + 2),
        *(second + 3000, second + 3001),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_time_of_a_flood_grows_with_its_size(spread: float) -> None:
    random = np.random.default_rng(1)

    def flood(size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        found = random.normal(0, spread, (size, 64)).astype(np.float32) + 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def add(vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> None:
        duplicates = NearDuplicates(64)
        for begin in range(0, len(vectors), 800):
            some = vectors[begin : begin + 800]
            duplicates.add(range(begin, begin + len(some)), some, [False] * len(some))

    grown = growth(add, flood, (1600, 12_800))
    assert grown.linear, grown
