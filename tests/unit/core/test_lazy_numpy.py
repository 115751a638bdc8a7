"""numpy is imported at its first use, not with the modules that use it."""

import subprocess
import sys

import pytest

from kernel.core.lazy_numpy import np

PROGRAM = """
import sys
from kernel.core.lazy_numpy import np
before = "numpy" in sys.modules
total = int(np.arange(4).sum())
print(before, total, "numpy" in sys.modules)
"""


@pytest.mark.slow
def test_numpy_is_imported_by_the_first_use() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "6", "True"]


def test_names_are_those_of_numpy() -> None:
    import numpy

    assert np.float32 is numpy.float32
