"""Fixtures of the tests that need PostgreSQL: one cluster for the run, a database for each test that asks for it."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database
from kernel.server.app import Kernel, open_kernel
from tests.postgres import stores
from tests.postgres.cluster import Cluster, running

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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Kernel]]:
    """Opens servers as other processes would: with data directories and connections of their own."""
    numbers = itertools.count()
    with ExitStack() as stack:

        def another(address: str) -> Kernel:
            database.forget_pool(address)
            folder = tmp_path / f"opened{next(numbers)}"
            kernel = open_kernel(Config(data=folder, store=address, model=None))
            stack.callback(kernel.store.close)
            kernel.store.write_sync(lambda _tx: None)  # after the writes of the start
            return kernel

        yield another


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A database server of its own, which a test may kill."""
    with running() as found:
        yield found
