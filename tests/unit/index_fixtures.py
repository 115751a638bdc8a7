"""An index over one file with nothing above it: a writer, a reader, and what they share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel import app
from kernel.config import MODEL
from kernel.search import index
from kernel.search.index import Hit
from kernel.store.context import CallContext
from kernel.store.migrations import migrate
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx

SOMEBODY = CallContext("shelf", "put", "tester")


class Undone(Exception):
    """Raised to roll a transaction back."""


class Shelf:
    """Documents as `(space, key)`; every write is a transaction of its own."""

    def __init__(self, folder: Path, model: Path | None) -> None:
        self.world = app.base_context(model)
        self.file = folder / "shelf.db"
        self.writer = Connection(self.file, self.world, readonly=False, durable=False)
        self.writer.load_vectors()
        migrate(self.writer)
        self.reader = Connection(self.file, self.world, readonly=True)
        self.reader.load_vectors()

    def write(self, work: Callable[[Tx], Any], who: CallContext = SOMEBODY) -> Any:
        """The answer of `work` in a committed transaction."""
        with self.writer.writing(who) as tx:
            return work(tx)

    def undo(self, work: Callable[[Tx], Any]) -> Any:
        """The answer of `work` in a transaction that is rolled back."""
        answer = None
        try:
            with self.writer.writing(SOMEBODY) as tx:
                answer = work(tx)
                raise Undone
        except Undone:
            return answer

    def put(self, texts: Sequence[str], space: str = "shelf", *, scope: str = "", first: int = 0) -> None:
        """Puts texts under the keys `0`, `1`, ... of a space."""

        def work(tx: Tx) -> None:
            for number, text in enumerate(texts, start=first):
                index.put(tx, space, str(number), text, scope=scope)

        self.write(work)

    def drop(self, keys: Sequence[str], space: str = "shelf") -> None:
        """Drops the documents of these keys."""

        def work(tx: Tx) -> None:
            for key in keys:
                index.drop(tx, space, key)

        self.write(work)

    def search(self, text: str, **options: Any) -> list[Hit]:
        """The hits of a committed read."""
        return self.reader.read(SOMEBODY, lambda tx: index.search(tx, text, **options))

    def keys(self, text: str, **options: Any) -> set[str]:
        """The keys of the hits."""
        return {hit.id for hit in self.search(text, **options)}

    def by_words(self, text: str, **options: Any) -> set[str]:
        """The keys found by words alone."""
        return self.keys(text, semantic=False, **options)

    def close(self) -> None:
        """Closes both connections."""
        self.reader.close()
        self.writer.close()


@contextmanager
def shelf_in(folder: Path, model: Path | None = MODEL) -> Iterator[Shelf]:
    """A shelf that is closed at the end."""
    shelf = Shelf(folder, model)
    try:
        yield shelf
    finally:
        shelf.close()
