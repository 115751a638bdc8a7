"""Fixtures that call tools of a kernel with default settings, and of one with the graph."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.server.app import Kernel
from tests.unit.handlers.sessions.calls import Ask, asking, opened


@pytest.fixture
def ask(kernel: Kernel, runner: asyncio.Runner) -> Ask:
    """Calls tools of the kernel of the test."""
    return asking(kernel, runner)


@pytest.fixture
def graph(tmp_path: Path, migrated: Path) -> Iterator[Ask]:
    """Calls tools of a kernel with the graph enabled."""
    with opened(shutil.copytree(migrated, tmp_path / "graph"), ENABLE_GRAPH="1") as (_, found):
        yield found
