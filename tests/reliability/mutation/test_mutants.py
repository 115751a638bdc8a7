"""Each mutant of a module is that module with one mistake, and a test that looks at it fails."""

import ast
import os
import subprocess

from tests.reliability.mutation.mutants import COMMAND, lines, mutants, mutated
from tests.unit.sql.code import ROOT

SOURCE = '''"""What it is for."""
LIMIT: int = 3


def fits(size: int, known: bool = True) -> bool:
    """Whether it does."""
    note(size)
    return size < LIMIT and not known
'''


def test_every_place_where_a_mistake_can_be_made_is_found_once() -> None:
    assert list(lines(mutants(SOURCE))) == [
        "2: 4 for 3",
        "5: False for True",
        "7: without note(size)",
        "8: None for size < LIMIT and (not known)",
        "8: and for or, or for and, in size < LIMIT and (not known)",
        "8: LtE in size < LIMIT",
        "8: without not in not known",
    ]


def test_a_mutant_differs_in_its_line_alone() -> None:
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants(SOURCE):
        changed = ast.unparse(mutated(SOURCE, mutant.number)).splitlines()
        differing = [at for at, (one, other) in enumerate(zip(plain, changed, strict=True)) if one != other]
        assert len(differing) == 1, mutant


def test_the_tests_run_on_the_module_with_the_mistake_in_it() -> None:
    source = (ROOT / "kernel" / "core" / "ids.py").read_text(encoding="utf-8")
    number = next(mutant.number for mutant in mutants(source) if mutant.what.startswith('None for f"{prefix}_'))
    done = subprocess.run(
        [*COMMAND, "tests/unit/core/test_ids.py"],
        cwd=ROOT,
        env={**os.environ, "MUTANT": f"kernel.core.ids:{number}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout
