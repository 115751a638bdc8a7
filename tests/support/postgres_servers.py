"""Calls, values and checks that several tests of servers share."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database
from kernel.server.app import Kernel, open_kernel
from tests.postgres import stores
from tests.postgres.calls import Load

ROOT = Path(__file__).parents[2]


MOVED = "acme"


Open = Callable[..., Kernel]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a tenant as another process would."""
    with ExitStack() as stack:

        def another(home: str, tenant: str = MOVED) -> Kernel:
            database.forget_pool(home)
            folder = tmp_path / str(time.monotonic_ns())
            kernel = open_kernel(Config(data=folder, store=home, tenant=tenant, model=None))
            stack.callback(kernel.store.close)
            return kernel

        yield another


def move_process(home: str, to: str, tenant: str = MOVED) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kernel", "tenant", "move", tenant, "--to", to, "--store", home]
    return subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True)


def moved(home: str, to: str, tenant: str = MOVED) -> str:
    process = move_process(home, to, tenant)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


def contents(address: str, tenant: str = MOVED) -> dict[str, list[tuple[Any, ...]]]:
    rows = stores.rows(address, tenant)
    del rows["migration"]
    return {name: found for name, found in rows.items() if found}


def places(addresses: list[str], tenant: str = MOVED) -> list[str]:
    """The databases that say that they have a tenant."""
    found = []
    for address in addresses:
        with stores.connect(address) as db:
            if db.execute("SELECT to_regclass('quipu.directory')::text").fetchone()[0] is None:
                continue
            here = "SELECT 1 FROM quipu.directory WHERE name = %s AND moved_to IS NULL AND mover IS NULL"
            found += [address] if db.execute(here, (tenant,)).fetchone() else []
    return found


@contextmanager
def loaded(*kernels: Kernel) -> Iterator[Load]:
    """Callers that write until the end of the block."""
    load = Load(list(kernels))
    try:
        yield load
    finally:
        load.stop()


def faults(load: Load) -> Counter[str]:
    """Return the answers to callers that were not served."""
    return Counter(reply.fault for reply in load.answers.values() if reply.fault is not None)
