"""What the index holds of documents besides what finds them: their text, where they lie, whose they are and of when."""

from collections.abc import Sequence
from typing import NamedTuple

from kernel.search.evidence import as_json
from kernel.store.transaction import Tx

_FEW = 2000
_END_OF_TIME = "~"  # follows every time


def count(tx: Tx, within: Sequence[tuple[str, str | None]]) -> int:
    """How many documents these places hold."""
    tx.flush_deferred()
    return tx.one("kernel.index.count", int, pairs=as_json([*within])) or 0


def prefilter(
    tx: Tx, actor: str | None, after: str, before: str, within: Sequence[tuple[str, str | None]] | None
) -> list[int] | None:
    """The documents of an actor, if given, and of this time (ISO 8601, "" for any), in these places; None where
    actor and time leave more than a few, so that searching first and filtering then finds enough.
    """
    tx.flush_deferred()
    asked = {"after": after, "before": before or _END_OF_TIME, "most": _FEW + 1}
    if actor is None:
        rows = tx.all("kernel.index.by_time", _Placed, **asked)
    else:
        rows = tx.all("kernel.index.by_actor", _Placed, actor=actor, **asked)
    if len(rows) > _FEW:
        return None
    if within is None:
        return [row.doc for row in rows]
    places = set(tx.all("kernel.index.partitions_matching", int, pairs=as_json([*within])))
    return [row.doc for row in rows if row.place in places]


class _Placed(NamedTuple):
    doc: int
    place: int


def last(tx: Tx) -> int:
    """The largest document number ever given; 0 before the first."""
    tx.flush_deferred()
    return tx.one("kernel.index.last_doc_id", int) or 0


class Document(NamedTuple):
    """One indexed memory with its provenance; times are ISO 8601 UTC. `flag` is the rule by which it is a suspect."""

    doc: int
    space: str
    key: str
    scope: str
    text: str
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str
    flag: str | None = None


def documents(tx: Tx, ids: Sequence[int]) -> dict[int, Document]:
    """The documents of `ids`; those that are gone are left out."""
    tx.flush_deferred()
    return {row.doc: row for row in tx.all("kernel.index.documents", Document, ids=as_json(ids))}


def find(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[int]:
    """The ids of the documents of the given (space, key) pairs, in that order."""
    tx.flush_deferred()
    return tx.all("kernel.index.ids_of", int, keys=as_json(keys))


def places_of(
    tx: Tx, spaces: Sequence[str] | None, dialects: Sequence[str] | None, scope: str | None
) -> list[tuple[str, str | None]]:
    """The (space, scope) pairs that hold anything, of these spaces, dialects and this scope; None means any.

    A space belongs to the dialect whose name it is, or begins with before a colon.
    """
    shown = None if spaces is None else as_json(spaces)
    owners = None if dialects is None else as_json(dialects)

    def pair(space: str, held: str) -> tuple[str, str | None]:
        return (space, held)

    return tx.all("kernel.index.partitions_of", pair, spaces=shown, dialects=owners, scope=scope)
