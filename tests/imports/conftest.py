"""A store to import into, and one more."""

from pathlib import Path

import pytest

from kernel.core.config import Config
from tests.imports.harness import Shell


@pytest.fixture
def shell(config: Config, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    """The commands on a store of its own."""
    return Shell(config, capsys, tmp_path)


@pytest.fixture
def other(config: Config, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    """The commands on another store."""
    return Shell(config._replace(data=tmp_path / "other"), capsys, tmp_path)
