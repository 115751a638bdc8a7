"""Makes small mistakes in the modules that matter most, and counts how many of them the tests find.

`make mutation` tries MUTANTS of each module (40; `all` are many hours), drawn by MUTATION_SEED (1), JOBS (2) at a time.
"""

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.reliability.mutation.mutants import COMMAND, Mutant, mutants

ROOT = Path(__file__).resolve().parents[3]
TARGETS: Mapping[str, Sequence[str]] = {
    "kernel.engines.sqlite.connection": (
        "tests/unit/store/test_transaction.py",
        "tests/unit/operations/test_consistency.py",
        "tests/unit/store/test_store.py",
        "tests/unit/search/test_index.py",
        "tests/security/test_costs.py",
        "tests/reliability/test_io_errors.py",
    ),
    "kernel.security.auth": (
        "tests/unit/security/test_auth.py",
        "tests/security/test_keys.py",
        "tests/security/test_tokens.py",
        "tests/security/test_routes.py",
        "tests/security/test_binding.py",
        "tests/security/test_tenants.py",
    ),
    "kernel.core.limits": (
        "tests/unit/core/test_limits.py",
        "tests/http/test_limits.py",
        "tests/security/test_bombs.py",
        "tests/security/test_routes.py",
        "tests/http/test_rest.py",
        "tests/unit/core/test_config.py",
        "tests/security/test_rate.py",
    ),
    "handlers.notes.journal": (
        "tests/unit/handlers/notes/test_journal.py",
        "tests/unit/handlers/notes/test_restore_undo.py",
        "tests/unit/handlers/notes/test_memories.py",
        "tests/reliability/test_notes_faults.py",
        "tests/reliability/test_notes_kill.py",
    ),
    "kernel.calls.dispatch": (
        "tests/unit/calls/test_dispatch.py",
        "tests/unit/store/test_long_work_progress.py",
        "tests/http/test_rest.py",
        "tests/security/test_scopes.py",
        "tests/unit/store/test_audit.py",
        "tests/unit/handlers/notes/test_sync.py",
    ),
}
LEAST = 0.8
LONGEST = 100  # seconds; a mistake that makes the tests hang is found


class Judged(NamedTuple):
    """One mistake and whether a test failed by it."""

    module: str
    mutant: Mutant
    found: bool


def drawn(module: str) -> list[Mutant]:
    """The mistakes to try in a module."""
    every = mutants(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    wanted = os.environ.get("MUTANTS", "40")
    if wanted == "all" or int(wanted) >= len(every):
        return every
    chance = random.Random(f"{os.environ.get('MUTATION_SEED', '1')} {module}")
    return sorted(chance.sample(every, int(wanted)))


def judge(module: str, mutant: Mutant) -> Judged:
    """Runs the tests of a module with one mistake in it, until the first that fails."""
    environment = {**os.environ, "MUTANT": f"{module}:{mutant.number}"}
    try:
        done = subprocess.run(
            [*COMMAND, *TARGETS[module]], cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Judged(module, mutant, True)
    return Judged(module, mutant, done.returncode != 0)


def main(modules: Sequence[str]) -> int:
    """Tries every module that is named, or all of them; 1 where too few mistakes are found."""
    enough = True
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for module in modules or TARGETS:
            judged = list(pool.map(lambda one, module=module: judge(module, one), drawn(module)))
            found = sum(one.found for one in judged)
            print(f"{module}: {found} of {len(judged)} found, {found / len(judged):.0%}", flush=True)
            for one in judged:
                if not one.found:
                    print(f"  {one.mutant.line}: {one.mutant.what}", flush=True)
            enough = enough and found >= LEAST * len(judged)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
