"""A collection in a store of this process, for what is computed from the evidence and not from answers."""

import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from kernel.core.config import Config
from kernel.search import index
from kernel.search.fusion import Candidates
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store.transaction import Tx
from loadtests.quality.dataset import Collection, Doc

_SPACE = "sessions"
_AT_ONCE = 500  # documents in a write, whose time is limited


class Filled(NamedTuple):
    """A store with the texts of a collection, and the id of each document."""

    kernel: Kernel
    ids: Mapping[int, str]


@contextmanager
def filled(collection: Collection) -> Generator[Filled]:
    """A store on an empty folder with the texts of a collection."""

    def put(tx: Tx, docs: Sequence[Doc]) -> Iterable[tuple[int, str]]:
        for doc in docs:
            index.put(tx, _SPACE, doc.id, doc.text, scope=doc.scope, origin=_origin(doc.time))
        return zip(index.doc_ids(tx, [(_SPACE, doc.id) for doc in docs]), (doc.id for doc in docs), strict=True)

    with tempfile.TemporaryDirectory() as folder:
        kernel = app.open_kernel(Config(Path(folder)))
        try:
            slices = (collection.docs[at : at + _AT_ONCE] for at in range(0, len(collection.docs), _AT_ONCE))
            writes = (kernel.store.write_sync(partial(put, docs=docs)) for docs in slices)
            yield Filled(kernel, dict(chain.from_iterable(writes)))
        finally:
            kernel.store.close()


def candidates(tx: Tx, text: str, scope: str) -> Candidates:
    """The candidates of a question within a scope, as `recall` finds them."""
    return index.find(tx, text, within=[(_SPACE, scope)])


def _origin(time: str) -> index.Origin | None:
    """Return the time at which a text was written, if its collection says it, so that questions may name days."""
    for form in ("%Y-%m-%d %H:%M:%S", "%I:%M %p on %d %B, %Y"):
        with suppress(ValueError):
            at = datetime.strptime(f"{time} +0000", f"{form} %z").strftime("%Y-%m-%dT%H:%M:%S.000Z")
            return index.Origin((_SPACE, "remember", ""), at, at)
    return None
