"""The installed command: in the wheel this file is `quipu/__main__.py`, and the code beside it lies in `_app`."""

import sys
from pathlib import Path


def main() -> None:
    """Runs the command line with the code of the wheel in front of everything else on the path."""
    sys.path.insert(0, str(Path(__file__).resolve().parent / "_app"))
    from kernel.__main__ import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
