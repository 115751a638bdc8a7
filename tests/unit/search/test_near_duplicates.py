"""Near-duplicates form one group, in any order and batches."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kernel.search.near_duplicates import DUPLICATE_COSINE, LONG_DUPLICATE_COSINE, NearDuplicates

PLANE = st.lists(
    st.sampled_from([(127, 0), (120, 40), (95, 84), (60, 112), (0, 127), (-127, 0), (-120, 40)]), max_size=9
)


def grouped(vectors: list[tuple[int, int]], sizes: list[int]) -> NearDuplicates:
    duplicates, docs = NearDuplicates(), list(enumerate(vectors))
    for size in [*sizes, len(docs)]:
        duplicates.add({doc: bytes(part % 256 for part in vector) for doc, vector in docs[:size]})
        docs = docs[size:]
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
    vectors = {doc: bytes(vector) for doc, vector in enumerate([one, other])}

    def leaders(*long: int) -> dict[int, int]:
        together, apart = NearDuplicates(), NearDuplicates()
        together.add(vectors, long)
        for doc, vector in vectors.items():
            apart.add({doc: vector}, long)
        assert together.leaders == apart.leaders
        return together.leaders

    assert leaders() == {0: 0, 1: 0}
    assert leaders(0) == leaders(1) == leaders(0, 1) == {0: 0, 1: 1}


def _cosine(one: tuple[int, int], other: tuple[int, int]) -> float:
    dot = one[0] * other[0] + one[1] * other[1]
    return dot / ((one[0] ** 2 + one[1] ** 2) * (other[0] ** 2 + other[1] ** 2)) ** 0.5
