"""The types of rows that a tag or a relation can refer to: the three kinds of entries, and projects."""

from collections.abc import Mapping
from typing import Literal

from handlers.scopes import errors
from kernel.store.transaction import Tx

TargetType = Literal["tool", "guideline", "knowledge", "project"]
LABELS: Mapping[str, str] = {
    "tool": "Tool",
    "guideline": "Guideline",
    "knowledge": "Knowledge entry",
    "project": "Project",
}


def check_target(tx: Tx, kind: TargetType, identifier: str, field: str) -> None:
    """Raises a Fault for a row that does not exist; `field` is the argument that holds the id."""
    if not tx.one("scopes.targets.exists", int, kind=kind, id=identifier):
        raise errors.not_found(LABELS[kind], identifier, field)


def check_known_target(tx: Tx, kind: TargetType | None, identifier: str, field: str) -> None:
    """Raises a Fault for a row that does not exist and has no relations; None stands for any kind of row.

    An imported database may have relations of rows that were not in it, which stay readable.
    """
    if not tx.one("scopes.targets.known", int, kind=kind, id=identifier):
        raise errors.not_found("Entry" if kind is None else LABELS[kind], identifier, field)
