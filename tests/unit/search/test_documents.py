"""Documents by id, key, time and folder, and the partitions by which a search is limited."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.search.documents import (
    count,
    doc_ids,
    documents,
    in_folder,
    last_doc_id,
    matching_partitions,
    newest,
    partition_set,
    partitions_of,
    prefilter,
)
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

OTHER = CallContext("docs", "put", "other")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path, None) as opened:
        opened.put(["the mill", "the barn"])
        opened.put(["the inn"], scope="town", first=2)
        opened.put(["the oven"], "kitchen:core")
        yield opened


def read(store: IndexedStore, work: object) -> object:
    return store.reader.read(CALLER, work)  # type: ignore[arg-type]


def test_documents_are_read_by_id_with_their_provenance(store: IndexedStore) -> None:
    def work(tx: Tx) -> list[tuple[str, str, str, str]]:
        (first,) = doc_ids(tx, [("docs", "2")])
        return [(row.space, row.scope, row.text, row.actor) for row in documents(tx, [first, 99]).values()]

    assert read(store, work) == [("docs", "town", "the inn", "tester")]


def test_ids_come_in_the_order_of_the_keys_and_missing_ones_are_left_out(store: IndexedStore) -> None:
    keys = [("docs", "1"), ("docs", "9"), ("docs", "0")]
    assert read(store, lambda tx: doc_ids(tx, keys)) == [2, 1]
    assert read(store, last_doc_id) == 4


def test_a_scope_limits_a_count_and_none_stands_for_all(store: IndexedStore) -> None:
    assert read(store, lambda tx: count(tx, [("docs", None)])) == 3
    assert read(store, lambda tx: count(tx, [("docs", "town"), ("kitchen:core", "")])) == 2


def test_the_newest_of_an_actor_come_first(store: IndexedStore) -> None:
    assert read(store, lambda tx: newest(tx, "tester", "", "", None, 2)) == [4, 3]
    assert read(store, lambda tx: newest(tx, "nobody", "", "", None, 2)) == []


def test_a_folder_holds_the_keys_below_it(tmp_path: Path) -> None:
    def work(tx: Tx) -> None:
        from kernel.search import index

        for key in ("a/b", "a/b/c", "ab/c", "a"):
            index.put(tx, "paths", key, key)

    with open_indexed_store(tmp_path, None) as opened:
        opened.write(work)
        rows = opened.reader.read(CALLER, lambda tx: documents(tx, in_folder(tx, ["paths"], "a", 10)))
    assert {row.key for row in rows.values()} == {"a/b", "a/b/c"}


def test_a_filter_of_actor_and_partition_leaves_the_ids_of_both(store: IndexedStore) -> None:
    assert read(store, lambda tx: prefilter(tx, "tester", "", "", [("docs", "town")])) == [3]
    assert read(store, lambda tx: prefilter(tx, None, "9999", "", None)) == []


def test_partitions_are_those_of_spaces_dialects_and_scopes(store: IndexedStore) -> None:
    assert read(store, lambda tx: partitions_of(tx, None, ["kitchen"], None)) == [("kitchen:core", "")]
    assert read(store, lambda tx: partitions_of(tx, ["docs"], None, ["town"])) == [("docs", "town")]


def test_small_partitions_are_counted(store: IndexedStore) -> None:
    def work(tx: Tx) -> tuple[int, int, int]:
        sizes = partition_set(tx, matching_partitions(tx, [("docs", None)]))
        return len(sizes.small), len(sizes.large), sizes.docs

    assert read(store, work) == (2, 0, 3)
