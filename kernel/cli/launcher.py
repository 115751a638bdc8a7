"""The installed command: in the wheel this file is `quipu_memory/__main__.py`, and beside it `_app` holds the code."""

import sys
from pathlib import Path

_OURS = {"kernel", "handlers"}


def main() -> None:
    """Runs the command line with the code of the wheel in front of everything else, whoever has the same names."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
        del sys.modules[name]
    sys.path.insert(0, str(Path(__file__).resolve().parent / "_app"))
    from kernel.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
