"""Fixtures of the tests that need PostgreSQL: one cluster for the run, a database for each test that asks for it."""

import itertools
from collections.abc import Iterator

import pytest

from kernel.store.postgres import database
from tests.postgres import stores
from tests.postgres.cluster import running

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a database server."""
    if stores.ADDRESS:
        yield stores.ADDRESS
    else:
        with running() as cluster:
            yield cluster.address


@pytest.fixture
def address(server: str) -> Iterator[str]:
    """The address of a new, empty database."""
    made = stores.new_database(f"test_{next(_numbers)}", server)
    yield made
    database.forget_pool(made)
