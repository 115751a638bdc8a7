"""Marks for bulk: of many equal cases `make test` runs a few, and `make test-rest` runs the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], quick: int) -> list[Any]:
    """Parameters of a test, all but `quick` of them marked as slow: evenly spaced ones and the first stay quick."""
    cases = list(values)
    kept = {number * len(cases) // quick for number in range(quick)}
    return [case if number in kept else _slow(case) for number, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    values = case if type(case) is tuple else (case,)  # a NamedTuple is one value
    return pytest.param(*values, marks=pytest.mark.slow)
