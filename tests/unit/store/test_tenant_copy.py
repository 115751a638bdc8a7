"""A tenant is copied into an empty store, whatever its engine, and the copy has the same rows."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from kernel.search import index
from kernel.store.context import CallContext
from kernel.store.tenant_copy import Copied, copy
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = ["the mill wheel turns", "the barn is empty"]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[IndexedStore]]:
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("source", "target")]
        for folder in folders:
            folder.mkdir()
        yield [stack.enter_context(open_indexed_store(folder, None)) for folder in folders]


def copied(source: IndexedStore, target: IndexedStore, steps: list[int]) -> Copied:
    def progress(rows: int, _total: int) -> None:
        steps.append(rows)

    with target.writer.writing(CallContext()) as into:
        return source.reader.read(CallContext(), lambda tx: copy(tx, into, progress))


def test_a_copy_finds_the_same_documents(stores: list[IndexedStore]) -> None:
    source, target = stores
    source.put(TEXTS)
    steps: list[int] = []
    size = copied(source, target, steps)
    assert steps == sorted(steps)
    assert steps[-1] == size.rows > 0
    assert target.lexical_keys("mill") == source.lexical_keys("mill") == {"0"}


def test_new_ids_go_on_after_those_of_the_original(stores: list[IndexedStore]) -> None:
    source, target = stores
    source.put(TEXTS)
    source.drop(["1"])
    copied(source, target, [])
    target.put(["the inn is full"], first=2)
    last = target.reader.read(CALLER, index.last_doc_id)
    assert last > source.reader.read(CALLER, index.last_doc_id)


def test_a_store_with_memories_is_no_target(stores: list[IndexedStore]) -> None:
    source, target = stores
    source.put(TEXTS)
    target.put(["the inn is full"])
    with pytest.raises(Fault, match="The target has memories already"):
        copied(source, target, [])
    assert target.lexical_keys("inn") == {"0"}
