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
