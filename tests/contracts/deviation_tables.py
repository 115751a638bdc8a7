"""Read the deviations of a dialect from the table in its README, which is their only place."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- deviations -->"
END = "<!-- end of deviations -->"
COLUMNS = ["tool", "what", "contract", "ours", "reason"]
_SEPARATOR = re.compile(r"(?<!\\)\|")


class Deviation(NamedTuple):
    """Hold one row: a difference between tools and their contract, with the reason.

    `tools` are names, separated by commas, or a text such as `every tool`. `what` begins with a kind: `tool`,
    `parameter NAME`, `required NAME`, `default NAME`, `values NAME` and `type NAME` are compared with the contract by a
    test; other kinds are text.
    """

    tools: str
    what: str
    contract: str
    ours: str
    reason: str


def parse_deviations(text: str) -> list[Deviation]:
    """Return the rows of the table between the markers of a README; raise ValueError if it is malformed."""
    _, begin, rest = text.partition(BEGIN)
    table, end, _ = rest.partition(END)
    if not begin:
        return []
    if not end:
        raise ValueError(f"{BEGIN} without {END}")
    rows = [_cells(line) for line in table.strip().splitlines()]
    if rows[0] != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"each row has the columns {', '.join(COLUMNS)}")
    return [Deviation(*row) for row in rows[2:]]


@cache
def read_deviations(dialect: str) -> list[Deviation]:
    """Return the deviations of a dialect by its name."""
    return parse_deviations((ROOT / "handlers" / dialect / "README.md").read_text(encoding="utf-8"))


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _SEPARATOR.split(line.strip())[1:-1]]
