"""The catalogue of faults and abuses: the injected fault, how often, and the outcome, as a table after a run.

Tests that use the fixture `catalogue` belong to it: `pytest -m catalogue` runs them, and `make faults` does at full
length. Each reports its work by `catalogue("R01", injected="kill -9", times=200, outcome="0 writes lost")`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import pytest

MARK = "catalogue"


class Row(NamedTuple):
    """The report of one test for one row of the catalogue; `times` is the number of injections."""

    row: str
    injected: str
    times: int
    outcome: str


class Catalogue:
    """Collects the rows of one test."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def __call__(self, row: str, *, injected: str, times: int, outcome: str) -> None:
        self.rows.append(Row(row, injected, times, outcome))


_ROWS = pytest.StashKey[list[Row]]()


@pytest.fixture
def catalogue(request: pytest.FixtureRequest) -> Catalogue:
    """`catalogue(row, injected=..., times=..., outcome=...)`; several rows may come from one test."""
    reported = Catalogue()
    request.node.stash[_ROWS] = reported.rows
    return reported


def mark(items: Sequence[pytest.Item]) -> None:
    """Marks the tests that use the fixture."""
    for item in items:
        if MARK in getattr(item, "fixturenames", ()):
            item.add_marker(MARK)


def collect(item: pytest.Item, report: pytest.TestReport) -> None:
    """Adds the rows of a test that has run to its report; a failed test is in the table as FAILED."""
    rows = item.stash.get(_ROWS, None)
    if rows is None or not (report.when == "call" or report.failed):
        return
    if report.failed:
        rows = [row._replace(outcome="FAILED") for row in rows] or [Row("?", item.name, 0, "FAILED")]
    report.user_properties.append((MARK, [list(row) for row in rows]))


def table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """The lines of the table, sorted by row; none where no test of the catalogue ran."""
    properties = [value for report in reports for name, value in report.user_properties if name == MARK]
    rows = sorted(row for several in msgspec.convert(properties, list[list[Row]]) for row in several)
    if not rows:
        return []
    cells = [("row", "injected", "times", "outcome"), *((*row[:2], f"{row.times:,}", row.outcome) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(3)]
    return [
        f"{row:{widths[0]}}  {injected:{widths[1]}}  {times:>{widths[2]}}  {outcome}"
        for row, injected, times, outcome in cells
    ]
