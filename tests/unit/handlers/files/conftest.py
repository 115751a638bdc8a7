"""A client of /v1/memory_stores over a running kernel."""

import asyncio
from collections.abc import Iterator

import pytest

from kernel.server.app import Kernel
from tests.unit.rest_client import RestClient


@pytest.fixture
def rest(kernel: Kernel, runner: asyncio.Runner) -> Iterator[RestClient]:
    """`rest("POST", "", {"name": "a"})` makes a store."""
    client = RestClient(kernel, runner)
    yield client
    client.close()


@pytest.fixture
def store(rest: RestClient) -> str:
    """The path of a new store below /v1/memory_stores."""
    return f"/{rest('POST', '', {'name': 'Notes'})['id']}"
