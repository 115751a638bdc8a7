"""A collection in a store of this process, for what is computed from the evidence and not from answers."""

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kernel.core.config import Config
from kernel.search import index
from kernel.search.hits import Candidates
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store.transaction import Tx
from loadtests.quality.dataset import Collection

_SPACE = "sessions"


class Filled(NamedTuple):
    """A store with the texts of a collection, and the id of each document."""

    kernel: Kernel
    ids: Mapping[int, str]


@contextmanager
def filled(collection: Collection) -> Generator[Filled]:
    """A store on an empty folder with the texts of a collection."""

    def put(tx: Tx) -> Mapping[int, str]:
        for doc in collection.docs:
            index.put(tx, _SPACE, doc.id, doc.text, scope=doc.scope)
        pairs = [(_SPACE, doc.id) for doc in collection.docs]
        return dict(zip(index.doc_ids(tx, pairs), (doc.id for doc in collection.docs), strict=True))

    with tempfile.TemporaryDirectory() as folder:
        kernel = app.open_kernel(Config(Path(folder)))
        try:
            yield Filled(kernel, kernel.store.write_sync(put))
        finally:
            kernel.store.close()


def candidates(tx: Tx, text: str, scope: str) -> Candidates:
    """The candidates of a question within a scope, as `recall` finds them."""
    return index.find(tx, text, within=[(_SPACE, scope)])
