"""What clients have seen of the places that memories name, and which memories they have shown to a session."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from kernel.core.times import later
from kernel.memories.citations import Citation, citations_of
from kernel.search.documents import Document, doc_ids, documents
from kernel.store.transaction import Tx

_SHOWN_KEPT = timedelta(days=365)
_EXPIRED_ROWS = 64  # deleted in one transaction


class Met(NamedTuple):
    """A place that a memory names, with its digest of when a client met it first, its state, and the project."""

    doc: int
    path: str
    name: str
    line: int
    digest: str = ""
    state: str = ""
    project: str = ""


Place = tuple[str, str, int, str, str, str]  # the same without the document


class Stale(NamedTuple):
    """A place in a project that is not as it was when a document named it."""

    project: str
    doc: int
    path: str
    name: str
    line: int
    state: str

    @property
    def words(self) -> str:
        return f"{self.state}: {' '.join(filter(None, (self.path, self.name or str(self.line or ''))))}"


class Shown(NamedTuple):
    """The memories that a hook added to a session, each as its id and the time of its last change."""

    session: str
    at: str
    tool: str
    memories: list[tuple[str, str]]


def marks(tx: Tx, memories: Iterable[Document], mark: str, *, plain: bool = False) -> dict[int, str]:
    """Return for each document that names places the mark that a client replaces by two words."""
    sides = ("", "") if plain else (" (", ")")
    return {
        row[0]: f"{mark}{b64encode(msgspec.json.encode((*sides, *row))).decode()}{mark}" for row in cited(tx, memories)
    }


def cited(tx: Tx, memories: Iterable[Document]) -> list[tuple[int, float, list[Place]]]:
    """Return the documents that name places, with the times of their last changes, and all that is known of these."""
    places_of = {memory: places for memory in memories if (places := citations_of(memory.text))}
    docs = [memory.doc for memory in places_of]
    rows = tx.all("kernel.witness.of_documents", Met, docs=docs) if docs else []
    by_place = {(row.doc, Citation(row.path, row.name, row.line)): row for row in rows}
    return [
        (
            memory.doc,
            datetime.fromisoformat(memory.updated_at).timestamp(),
            [by_place.get((memory.doc, place), Met(0, *place))[1:] for place in places],
        )
        for memory, places in places_of.items()
    ]


def stale_in(tx: Tx, project: str | None) -> list[Stale]:
    """Return the stale places of a project, or of all."""
    return tx.all("kernel.witness.stale", Stale, project=project)


def in_project(tx: Tx, project: str) -> list[Document]:
    """Return the documents that name a place which a client has met in a project."""
    return [*documents(tx, tx.all("kernel.witness.in_project", int, project=project)).values()]


def keep(tx: Tx, project: str, places: Sequence[tuple[int, str, str, int, str, str]]) -> int:
    """Keeps the states in which a client saw the places that documents name, and returns their number."""
    by_id = documents(tx, [*{row[0] for row in places}])
    citations = {doc: {*citations_of(memory.text)} for doc, memory in by_id.items()}
    rows = [
        (*row, project, tx.now) for row in places if row[0] in citations and Citation(*row[1:4]) in citations[row[0]]
    ]
    tx.run("kernel.witness.sweep")
    tx.run("kernel.witness.keep", rows=rows)
    return len(rows)


def confirm(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Takes the places that memories name as they are now, from when a client meets them next."""
    tx.run("kernel.witness.confirm", docs=doc_ids(tx, keys))


def sweep(tx: Tx) -> None:
    """Deletes the states of places that only deleted memories name."""
    tx.run("kernel.witness.sweep")


def record_shown(tx: Tx, session: str, tool: str, ids: Sequence[str]) -> None:
    """Records the memories that a hook has added to a session, in the state they are in."""
    keys = [(space, key) for space, _, key in (id_.partition("/") for id_ in ids)]
    memories = documents(tx, doc_ids(tx, keys)).values()
    tx.run("kernel.witness.expire_shown", before=later(tx.now, -_SHOWN_KEPT), limit=_EXPIRED_ROWS)
    versions = [(f"{memory.space}/{memory.key}", memory.updated_at) for memory in memories]
    tx.run("kernel.witness.add_shown", session=session, now=tx.now, tool=tool, memories=versions)


def shown_in(tx: Tx, sessions: Sequence[str]) -> list[Shown]:
    """Return what hooks have added to these sessions."""
    return tx.all("kernel.witness.shown", _shown, sessions=sessions)


def _shown(session: str, at: str, tool: str, memories: str) -> Shown:
    return Shown(session, at, tool, msgspec.json.decode(memories, type=list[tuple[str, str]]))
