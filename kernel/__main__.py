"""`python -m kernel`: the command line."""

import sys

from kernel.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
