"""Quarantine: documents that match a prompt-injection rule are flagged, until an operator releases them."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from kernel.core.errors import Fault
from kernel.security.rules.injection import matched_rule
from kernel.store import audit
from kernel.store.long_work import Steps
from kernel.store.transaction import SLICE_BYTES, Tx

OFF, FLAG, QUARANTINE = ("off", "flag", "quarantine")
_PAGE_ROWS = 1000  # documents read at once, if their texts are short; not measured
_STEP_ROWS = 8  # if others wait for the lock


class Suspect(NamedTuple):
    """A document with its provenance; the `rule` it matched and the time it was flagged, None if it is not flagged."""

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
        """Return the id that `recall` returns."""
        return f"{self.space}/{self.key}"


def is_quarantining(tx: Tx) -> bool:
    """Return whether flagged documents are withheld from results, rather than returned with their flag."""
    return tx.context.injection_mode == QUARANTINE


def flag(tx: Tx, suspects: Sequence[tuple[Suspect, str]]) -> None:
    """Flags documents with the rule that each matches, unless it has been released."""
    digests = _released(tx, [suspect for suspect, _ in suspects])
    rows = [(suspect.doc, rule) for suspect, rule in suspects if _digest(suspect) not in digests]
    tx.run("kernel.quarantine.flag", rows=rows, now=tx.now)


def rules_of(tx: Tx, suspects: Sequence[Suspect]) -> list[str | None]:
    """For each text the rule for which it would be flagged, None for none."""
    if tx.context.injection_mode == OFF:
        return [None] * len(suspects)
    rules = [matched_rule(suspect.text) for suspect in suspects]
    rows = _released(tx, [suspect for suspect, rule in zip(suspects, rules, strict=True) if rule])
    return [
        None if not rule or _digest(suspect) in rows else rule for suspect, rule in zip(suspects, rules, strict=True)
    ]


def unflag(tx: Tx, docs: Sequence[int]) -> None:
    """Removes the flags of documents."""
    tx.send("kernel.quarantine.unflag", ids=docs)


def flagged(tx: Tx) -> list[Suspect]:
    """Return every flagged document, the oldest flag first."""
    tx.flush_deferred()
    return tx.all("kernel.quarantine.flagged", Suspect)


def release(tx: Tx, name: str) -> Suspect:
    """Releases a flagged document, for as long as its text does not change; raises Fault("not_found")."""
    suspect = next((suspect for suspect in flagged(tx) if suspect.id == name), None)
    if suspect is None:
        raise Fault("not_found", f"{name} is not in quarantine.")
    tx.run("kernel.quarantine.release", digest=_digest(suspect), space=suspect.space, key=suspect.key, now=tx.now)
    unflag(tx, [suspect.doc])
    audit.record(tx, f"released {name}")
    return suspect


def flag_steps(*, repair: bool) -> Steps[int]:
    """Return the number of documents with another flag than the current rules give; `repair` corrects those flags."""
    tx = yield
    wrong, last = 0, 0
    rows = _STEP_ROWS if repair else _PAGE_ROWS
    while tx.context.injection_mode != OFF and (
        page := tx.all("kernel.quarantine.documents_after", Suspect, id=last, limit=rows, bytes=SLICE_BYTES)
    ):
        last = page[-1].doc
        rules = {suspect.doc: matched_rule(suspect.text) for suspect in page}
        digests = _released(tx, [suspect for suspect in page if rules[suspect.doc]])
        differing = [
            suspect
            for suspect in page
            if (suspect.rule or "") != ("" if _digest(suspect) in digests else rules[suspect.doc])
        ]
        wrong += len(differing)
        if repair and differing:
            unflag(tx, [suspect.doc for suspect in differing])
            flag(tx, [(suspect, rule) for suspect in differing if (rule := rules[suspect.doc])])
        tx = yield
    return wrong


def _released(tx: Tx, suspects: Sequence[Suspect]) -> frozenset[str]:
    digests = [_digest(suspect) for suspect in suspects]
    return frozenset(tx.all("kernel.quarantine.released", str, digests=digests) if digests else ())


def _digest(suspect: Suspect) -> str:
    return hashlib.sha256("\0".join((suspect.space, suspect.key, suspect.text)).encode()).hexdigest()
