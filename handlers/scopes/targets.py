"""What a tag or a relation can be put on: the three types of entry, and projects."""

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
    """Refuses what does not exist; `field` is the argument that named it."""
    if not tx.one("scopes.targets.exists", int, kind=kind, id=identifier):
        raise errors.not_found(LABELS[kind], identifier, field)
