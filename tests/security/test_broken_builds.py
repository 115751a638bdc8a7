"""The tests of abuses find their abuses: each fails on a build that is broken in just that way."""

import os
import subprocess
import sys

import pytest

from tests.catalogue import Catalogue
from tests.security.broken_builds import BUILDS, HERE
from tests.unit.sql.code import ROOT

# All of them take minutes; without BROKEN_BUILDS=all one of them shows that the switch works.
NAMES = list(BUILDS) if os.environ.get("BROKEN_BUILDS") == "all" else ["no clock"]
# A broken build needs no test at full length: one that is slow would go on for hours.
LENGTHS = {
    "FUZZ_REQUESTS",
    "FUZZ_SURFACES",
    "SCHEMA_EXAMPLES",
    "IDLE_SOCKETS",
    "PATTERN_BYTES",
    "BROKEN_BUILDS",
    "RESTORE_ROUNDS",
    "STEPS_EVERY",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_build_is_found(name: str, catalogue: Catalogue) -> None:
    build = BUILDS[name]
    file, *more = build.test.split(" ")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.security.broken_builds",
        "-p",
        "no:cacheprovider",
        "-x",
        "-q",
    ]
    environ = {key: value for key, value in os.environ.items() if key not in LENGTHS}
    done = subprocess.run(
        [*command, os.path.normpath(f"{HERE}/{file}"), *more],
        cwd=ROOT,
        env={**environ, "BROKEN": name},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    catalogue("F04", injected=f"{build.row}: {build.what}", times=1, outcome="found")
