"""The table has the report of each test of the catalogue, and its failure."""

import subprocess
import sys
from pathlib import Path

from tests.unit.sql.code import ROOT

CONFTEST = "from tests.conftest import catalogue, pytest_collection_modifyitems\n" + (
    "from tests.conftest import pytest_runtest_makereport, pytest_terminal_summary\n"
)
TESTS = """
def test_two_rows(catalogue):
    catalogue("S02", injected="a foreign page", times=3, outcome="turned away")
    catalogue("R01", injected="kill -9", times=12000, outcome="0 lost")

def test_that_fails(catalogue):
    catalogue("R02", injected="a power cut", times=1, outcome="0 lost")
    assert False

def test_that_fails_at_once(catalogue):
    assert False

def test_of_something_else():
    assert False
"""


def test_the_table_tells_what_was_injected_and_what_failed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers = catalogue")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "catalogue"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("row "))
    assert lines[at : at + 5] == [
        "row  injected                  times  outcome",
        "?    test_that_fails_at_once       0  FAILED",
        "R01  kill -9                  12,000  0 lost",
        "R02  a power cut                   1  FAILED",
        "S02  a foreign page                3  turned away",
    ]
    assert "2 failed, 1 passed, 1 deselected" in done.stdout
