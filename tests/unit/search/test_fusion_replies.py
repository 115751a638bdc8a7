"""In a conversation the turn after a question that matches rises; in a list of questions it does not."""

from pathlib import Path

import pytest

from kernel.core.lazy_numpy import np
from kernel.search import index
from kernel.search.fusion import Candidates, fuse_candidates, turns_of
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TALK = """
Ann: I finally moved into the new flat by the river last week.
Bob: The flat sounds lovely, I like rooms with a view of the river.
Ann: Which instrument does your daughter play in the school orchestra?
Bob: The cello, since she was six.
Ann: The concert of the orchestra last spring was a joy to hear.
Bob: The orchestra has rehearsals for a new concert on Fridays.
Ann: My garden suffers from the heat, the tomatoes dry out.
Bob: Water the tomatoes in your garden in the evening.
Ann: When do you leave for the holiday in Norway?
Bob: On the ninth, by train and ferry.
Ann: Norway is wonderful in summer, we had a cabin by a fjord.
Bob: A cabin by the fjord is what we have booked for the holiday too.
""".strip().splitlines()


def first(store: IndexedStore, query: str) -> list[str]:
    def read(tx: Tx) -> list[int]:
        return index.rerank(tx, query, index.find(tx, query), index.Weights()).fused.found.docs.tolist()

    return [TALK[doc - 1] for doc in store.reader.read(CALLER, read)[:3]]


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        ("Which instrument does Bob's daughter play?", "Bob: The cello, since she was six."),
        ("When does Bob leave for Norway?", "Bob: On the ninth, by train and ferry."),
    ],
)
def test_reply_to_a_question_that_matches_is_among_the_first_three(tmp_path: Path, query: str, reply: str) -> None:
    with open_indexed_store(tmp_path) as store:
        store.put(TALK, scope="talk")
        assert reply in first(store, query)


def test_only_a_short_reply_in_a_conversation_gains() -> None:
    docs = np.arange(1, 5)
    nothing = np.full(4, np.nan)
    matches = Candidates(docs, np.array([4.0, 1.0, 2.0, 2.5]), nothing, nothing, nothing, nothing, nothing)
    windows = np.array([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [2, 3, 4, 0, 0]])

    def order(sizes: list[int], replies: list[int]) -> list[int]:
        turns = turns_of(np.array(sizes), np.array(replies))
        return fuse_candidates(matches, index.Weights(), windows, 0.3, turns=turns).found.docs.tolist()

    assert order([60] * 4, [0] * 4) == [1, 3, 4, 2]
    assert order([60] * 4, [60, 0, 0, 0]) == [1, 2, 3, 4]
    assert order([60] * 4, [4000, 0, 0, 0]) == [1, 3, 4, 2]
    assert order([60, 60, 90_000, 60], [4000, 0, 0, 0]) == [1, 4, 2, 3]
    assert turns_of(np.array([60] * 20), np.array([60, *[0] * 19])) is None
