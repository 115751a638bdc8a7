"""The options of `quipu import` and `quipu export`."""

import argparse
from pathlib import Path
from typing import Any


def add_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    """Adds both commands."""
    import_ = commands.add_parser("import", parents=[data], help="import the memories of another program")
    import_.add_argument("kind", nargs="?", help="format of the data, unless it says so; an unknown name lists all")
    import_.add_argument("path", type=Path, help="file or folder to read; it is not modified")
    import_.add_argument(
        "--into", metavar="NAME", default="", help="database of brain, project of scopes or session to put memories in"
    )
    import_.add_argument("--dry-run", action="store_true", help="count what would be imported, and write nothing")
    import_.add_argument(
        "--password-env", metavar="NAME", help="environment variable with the password of encrypted files"
    )
    export = commands.add_parser("export", parents=[data], help="write everything, or a dialect, into a file or folder")
    export.add_argument("kind", help="what to export; an unknown name lists what there is")
    export.add_argument("path", type=Path, help="file or folder to write, which must not be there")
