"""One run of the locust users of `locustfile.py`, and its report."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import ROOT, clean_environ


class LocustRun(NamedTuple):
    """A locust report: calls, failures, refusals, calls a second, and latencies in milliseconds."""

    calls: int
    failures: int
    busy: int
    rate: float
    latencies: dict[str, float]


def locust(port: int, users: int, seconds: float, prefix: Path, *options: str) -> LocustRun:
    """Run so many users, every profile over every protocol; files that begin with `prefix` keep the report."""
    command = [
        *(sys.executable, "-m", "locust", "-f", "loadtests/locustfile.py", "--headless", "--only-summary"),
        *("-u", str(users), "-r", "128", "-t", f"{seconds:.0f}s", "--host", f"http://127.0.0.1:{port}"),
        *("--csv", str(prefix), *options),
    ]
    done = subprocess.run(command, cwd=ROOT, env=clean_environ(), capture_output=True, text=True)
    with Path(f"{prefix}_stats.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    total = rows[-1]
    failures = int(total["Failure Count"])
    if failures or done.returncode not in (0, 1):
        print(done.stderr[-3000:], file=sys.stderr)
    return LocustRun(
        int(total["Request Count"]),
        failures,
        sum(int(row["Request Count"]) for row in rows if row["Name"].endswith("(busy)")),
        float(total["Requests/s"]),
        {"p50": float(total["50%"]), "p95": float(total["95%"]), "p99": float(total["99%"])},
    )
