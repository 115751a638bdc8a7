"""One server for all HTTP tests of a run."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.http.mcp_fixture import Served, served

# How long an example takes says more about the machine than about the code.
settings.register_profile("wire", deadline=None)
settings.load_profile("wire")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Both fixture dialects on a loopback port, behind uvicorn."""
    with served(tmp_path_factory.mktemp("wire")) as running:
        yield running
