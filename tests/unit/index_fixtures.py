"""A search index over one file without the layers above it: a writer, a reader, and the context they share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel.core.config import MODEL
from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.search.index import Hit
from kernel.server import app
from kernel.store.context import CallContext
from kernel.store.transaction import Tx

# Facts that have nothing to do with each other.
FACTS = """
My sister Nora is allergic to shellfish.
The nightly backup starts at half past two.
We moved from Oslo to Lisbon last autumn.
The wifi password is changed every ninety days.
Grandfather turns eighty in February.
The orders are stored in PostgreSQL.
The car goes to the garage on Thursday.
Peter plays the cello in an orchestra.
The spare key is with the neighbour on the third floor.
Anna drinks her coffee without sugar.
The meeting with the bank was postponed to Friday.
The dog must not eat chocolate.
Tomatoes and basil grow on the balcony.
The library closes at eight in the evening.
We use tabs instead of spaces in the code.
Tickets for the concert cost forty euros.
The washing machine broke down on Sunday.
The tests run on every commit.
The museum is closed on Mondays.
Logs are deleted after two weeks.
""".strip().splitlines()
CALLER = CallContext("docs", "put", "tester")


class RolledBack(Exception):
    """Raised to roll a transaction back."""


class IndexedStore:
    """A file with documents under `(space, key)`; every write is a transaction of its own."""

    def __init__(self, folder: Path, model: Path | None) -> None:
        self.context = app.base_context(model)
        self.file = folder / "index.db"
        self.writer = Connection(self.file, self.context, readonly=False, durable=False)
        self.writer.load_vectors()
        app.migrate(self.writer)
        self.reader = Connection(self.file, self.context, readonly=True)
        self.reader.load_vectors()

    def write(self, work: Callable[[Tx], Any], caller: CallContext = CALLER) -> Any:
        """The result of `work` in a committed transaction."""
        with self.writer.writing(caller) as tx:
            return work(tx)

    def roll_back(self, work: Callable[[Tx], Any]) -> Any:
        """The result of `work` in a transaction that is rolled back."""
        result = None
        try:
            with self.writer.writing(CALLER) as tx:
                result = work(tx)
                raise RolledBack
        except RolledBack:
            return result

    def put(self, texts: Sequence[str], space: str = "docs", *, scope: str = "", first: int = 0) -> None:
        """Puts texts under the keys `first`, `first + 1`, ... of a space."""

        def work(tx: Tx) -> None:
            for number, text in enumerate(texts, start=first):
                index.put(tx, space, str(number), text, scope=scope)

        self.write(work)

    def drop(self, keys: Sequence[str], space: str = "docs") -> None:
        """Drops the documents of these keys."""

        def work(tx: Tx) -> None:
            for key in keys:
                index.drop(tx, space, key)

        self.write(work)

    def search(self, text: str, **options: Any) -> list[Hit]:
        """The hits of a committed read."""
        return self.reader.read(CALLER, lambda tx: index.search(tx, text, **options))

    def keys(self, text: str, **options: Any) -> set[str]:
        """The keys of the hits."""
        return {hit.id for hit in self.search(text, **options)}

    def lexical_keys(self, text: str, **options: Any) -> set[str]:
        """The keys found by lexical search only."""
        return self.keys(text, semantic=False, **options)

    def close(self) -> None:
        """Closes both connections."""
        self.reader.close()
        self.writer.close()


@contextmanager
def open_indexed_store(folder: Path, model: Path | None = MODEL) -> Iterator[IndexedStore]:
    """An indexed store that is closed at the end."""
    store = IndexedStore(folder, model)
    try:
        yield store
    finally:
        store.close()
