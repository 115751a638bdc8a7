"""Runs the command line: `python -m kernel`."""

import sys

from kernel.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
