"""Days that a question names, and documents of them, which come first."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from kernel.search import index
from kernel.search.named_values import periods
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TODAY = date(2026, 11, 26)  # a Thursday


def days(first: str, last: str) -> list[tuple[date, date]]:
    return [(date.fromisoformat(first), date.fromisoformat(last) + timedelta(1))]


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did Maria share on 16 June, 2023?", "2023-06-16", "2023-06-16"),
        ("What happened on June 16th, 2023?", "2023-06-16", "2023-06-16"),
        ("who called on 2023-06-16", "2023-06-16", "2023-06-16"),
        ("Was geschah am 16. Juni 2023?", "2023-06-16", "2023-06-16"),
        ("What did John host in May 2023?", "2023-05-01", "2023-05-31"),
        ("¿Qué pasó en diciembre de 2025?", "2025-12-01", "2025-12-31"),
        ("Where did we go last May?", "2026-05-01", "2026-05-31"),
        ("Where did we go in December?", "2025-12-01", "2025-12-31"),
        ("How often was she at the beach in 2023?", "2023-01-01", "2023-12-31"),
        ("Who called yesterday?", "2026-11-25", "2026-11-25"),
        ("Who came last Friday?", "2026-11-20", "2026-11-20"),
        ("Who came last Thursday?", "2026-11-19", "2026-11-19"),
        ("What was decided last week?", "2026-11-16", "2026-11-22"),
        ("What did we do last weekend?", "2026-11-21", "2026-11-22"),
        ("What was spent last month?", "2026-10-01", "2026-10-31"),
        ("What was spent last year?", "2025-01-01", "2025-12-31"),
        ("What did I say three days ago?", "2026-11-23", "2026-11-23"),
        ("What did I say two weeks ago?", "2026-11-09", "2026-11-15"),
    ],
)
def test_a_question_names_days(question: str, first: str, last: str) -> None:
    assert periods(question, TODAY) == days(first, last)


@pytest.mark.parametrize(
    "question",
    [
        "What may I eat?",
        "How long does the march last?",
        "When is the deadline on 3 May 2031?",
        "Which of the 2023 models is best?",
        "mark the report",
        "in Mark's car",
        "99999999 years ago",
        "",
        "What ends on 31.12.9999?",
    ],
)
def test_other_questions_name_none(question: str) -> None:
    assert periods(question, TODAY) == []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path) as opened:
        yield opened


def test_text_of_the_day_that_a_question_names_comes_first(store: IndexedStore) -> None:
    def put(tx: Tx) -> None:
        for month in range(1, 13):
            at = f"2025-{month:02}-16T09:00:00.000Z"
            origin = index.Origin(("docs", "put", "ann"), at, at)
            index.put(tx, "docs", str(month), f"Maria went to the market with friend number {month}", origin=origin)

    def first(query: str) -> int:
        def read(tx: Tx) -> int:
            return int(index.rerank(tx, query, index.find(tx, query), index.Weights()).fused.found.docs[0])

        return store.reader.read(CALLER, read)

    store.write(put)
    asked = {
        "Who went to the market with Maria on 16 June 2025?": 6,
        "Who went to the market with Maria in September 2025?": 9,
        "Who went to the market with Maria on 2025-11-16?": 11,
    }
    assert {query: first(query) for query in asked} == asked


def test_text_of_the_day_is_a_candidate_among_many_that_are_more_like_the_question(store: IndexedStore) -> None:
    def put(tx: Tx) -> None:
        for number in range(300):
            index.put(tx, "docs", str(number), f"Maria bought tomatoes and bread at the market, list {number}")
        at = "2025-06-16T09:00:00.000Z"
        index.put(tx, "docs", "day", "Seven jars of honey", origin=index.Origin(("docs", "put", "ann"), at, at))

    store.write(put)
    query = "What did Maria buy at the market on 16 June 2025?"
    assert 301 in store.reader.read(CALLER, lambda tx: index.find(tx, query)).docs
    assert 301 not in store.reader.read(CALLER, lambda tx: index.find(tx, query.replace("2025", "2024"))).docs
