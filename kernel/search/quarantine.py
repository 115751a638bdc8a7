"""Memories that look written to steer whoever reads them: marked when they are put, and kept apart until let go."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kernel.errors import Fault
from kernel.security.injection import matched_rule
from kernel.store import audit
from kernel.store.transaction import Tx

OFF, FLAG, QUARANTINE = MODES = ("off", "flag", "quarantine")
_BATCH = 1000


class Suspect(NamedTuple):
    """A document with where it comes from; the `rule` it breaks and the time it was marked, None where it is not."""

    doc: int
    space: str
    key: str
    text: str
    dialect: str = ""
    tool: str = ""
    actor: str = ""
    rule: str | None = None
    at: str | None = None

    @property
    def id(self) -> str:
        """As recall calls it."""
        return f"{self.space}/{self.key}"


def is_quarantining(tx: Tx) -> bool:
    """Whether what is marked is kept apart, rather than shown with its mark."""
    return tx.context.injection_mode == QUARANTINE


def mark(tx: Tx, documents: Sequence[tuple[int, str, str, str]]) -> None:
    """Marks those of (number, space, key, text) that look written to steer their reader, unless they were let go."""
    if tx.context.injection_mode == OFF:
        return
    found = [(Suspect(*document), rule) for document in documents if (rule := matched_rule(document[3]))]
    if found:
        free = _released(tx, [suspect for suspect, _ in found])
        rows = [(suspect.doc, rule) for suspect, rule in found if _digest(suspect) not in free]
        tx.run("kernel.quarantine.flag", rows=_json(rows), now=tx.now)


def forget(tx: Tx, docs: Sequence[int]) -> None:
    """Takes the marks off documents, such as those that are gone."""
    tx.run("kernel.quarantine.unflag", ids=_json(docs))


def held(tx: Tx) -> list[Suspect]:
    """Every marked document, the oldest mark first."""
    tx.flush_deferred()
    return tx.all("kernel.quarantine.flagged", Suspect)


def release(tx: Tx, name: str) -> Suspect:
    """Lets a marked document go, for as long as its text is the same; raises Fault("not_found")."""
    found = next((suspect for suspect in held(tx) if suspect.id == name), None)
    if found is None:
        raise Fault("not_found", f"{name} is not in quarantine.")
    tx.run("kernel.quarantine.release", digest=_digest(found), space=found.space, key=found.key, now=tx.now)
    forget(tx, [found.doc])
    audit.record(tx, f"released {name}")
    return found


def agree(tx: Tx, *, repair: bool) -> int:
    """How many documents are not marked as the rules of today say, before `repair` marks them so."""
    wrong, last = 0, 0
    while tx.context.injection_mode != OFF and (
        batch := tx.all("kernel.quarantine.documents_after", Suspect, id=last, limit=_BATCH)
    ):
        last = batch[-1].doc
        said = {suspect.doc: matched_rule(suspect.text) for suspect in batch}
        free = _released(tx, [suspect for suspect in batch if said[suspect.doc]])
        differing = [
            suspect
            for suspect in batch
            if (suspect.rule or "") != ("" if _digest(suspect) in free else said[suspect.doc])
        ]
        wrong += len(differing)
        if repair and differing:
            forget(tx, [suspect.doc for suspect in differing])
            mark(tx, [suspect[:4] for suspect in differing])
    return wrong


def _released(tx: Tx, suspects: Sequence[Suspect]) -> frozenset[str]:
    digests = [_digest(suspect) for suspect in suspects]
    return frozenset(tx.all("kernel.quarantine.released", str, digests=_json(digests)) if digests else ())


def _digest(suspect: Suspect) -> str:
    return hashlib.sha256("\0".join((suspect.space, suspect.key, suspect.text)).encode()).hexdigest()


def _json(rows: Sequence[object]) -> str:
    return msgspec.json.encode(rows).decode()
