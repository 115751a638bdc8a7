"""`quipu` on a disk that remembers every write: the first argument is where it writes them down."""

import sys
from pathlib import Path

from kernel.cli.main import main
from tests.reliability.disk_images import Recorder

if __name__ == "__main__":
    recorder = Recorder(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
