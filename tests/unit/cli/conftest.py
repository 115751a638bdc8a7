"""The argument parser is built once for all tests of the command line: that takes longer than most of them."""

from collections.abc import Iterator
from functools import cache

import pytest

from kernel.cli import main


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Every command of a run is parsed by the same parser, which keeps nothing between two commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "parser", cache(main.parser))
        yield
