"""What the paths of other systems tell of the file system below them."""

from pathlib import PureWindowsPath
from typing import Any

from kernel.cli import file_systems


def test_share_of_windows_is_a_network_file_system() -> None:
    share: Any = PureWindowsPath(r"\\server\share\memories")
    assert file_systems.kind_of(share) in file_systems.NETWORK
