"""Run the MCP conformance suite against a server it starts, and judge the result.

Usage: run.py [--output DIR] [command ...]; `--port N` is appended to the command.
Exit status 0 means: every scored scenario and every pending scenario in `PENDING` passed, and the expected failures,
those and no others, failed. A warning of the suite is printed and fails nothing.
"""

import argparse
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance"
EXPECTED = HERE / "expected-failures.yml"
PENDING = {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}
REVISIONS = ("2026-07-28", "2025-11-25")
LEGACY = "2025-11-25"
START_SECONDS = 30
SUITE_SECONDS = 420

MISSING = {"status": "FAILURE", "id": "-", "description": "the suite did not run it"}

Checks = dict[str, list[dict[str, str]]]


def yaml_list(path: Path, key: str) -> list[str]:
    """The plain strings listed under a top-level key; all the YAML that the suite's lists need."""
    match = re.search(rf"^{key}:\n((?:[ \t#].*\n|\n)*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"^  - ([\w-]+)$", match[1], re.MULTILINE) if match else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ready(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
        return answer.status == 200
    return False


@contextlib.contextmanager
def serving(command: list[str], log: Path) -> Generator[int]:
    port = free_port()
    with log.open("wb") as sink:
        server = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready(port):
            if server.poll() is not None:
                tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                sys.exit(f"{tail}\nthe server ended with status {server.returncode} before it was ready")
            if time.monotonic() > deadline:
                sys.exit(f"the server was not ready within {START_SECONDS} s")
            time.sleep(0.1)
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def run_suite(port: int, revision: str, output: Path) -> Checks:
    """Each scenario's checks, as the suite left them in `server-NAME-TIMESTAMP/checks.json`."""
    output.mkdir(parents=True)
    command = ["node", str(SUITE / "dist" / "index.js"), "server", "--url", f"http://localhost:{port}/mcp"]
    command += ["--requirements", revision, "--output-dir", str(output)]
    with (output / "suite.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=SUITE_SECONDS, check=False)
    found: Checks = {}
    for path in sorted(output.glob("server-*/checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name).removeprefix("server-")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def judge(revision: str, checks: Checks) -> bool:
    """Print the results of one revision; true if all of them were expected."""
    scored = yaml_list(SUITE / "requirements" / f"{revision}.yaml", "server")
    expected = set(yaml_list(EXPECTED, "server")) if revision == LEGACY else set[str]()
    wanted = [*scored, *(name for name in checks if name in PENDING)]
    if revision != LEGACY:
        wanted += [name for name in sorted(PENDING) if name not in checks]
    failed = {name for name in wanted if not checks.get(name) or any(c["status"] == "FAILURE" for c in checks[name])}
    for name in wanted:
        for check in checks.get(name, [MISSING]):
            if check["status"] == "WARNING" or (check["status"] == "FAILURE" and name not in expected):
                print(f"  {check['status']} {name} {check['id']}: {check.get('errorMessage') or check['description']}")
    stale = expected - failed
    for name in sorted(stale):
        print(f"  STALE {name} passes now: remove it from {EXPECTED.name}")
    pending = [name for name in wanted if name in PENDING]
    print(
        f"{revision}: {len(scored) - len(failed & set(scored))}/{len(scored)} scored, "
        f"{len(expected & failed)} expected to fail; "
        f"{len(pending) - len(failed & set(pending))}/{len(pending)} pending"
    )
    return bool(scored) and not stale and failed <= expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="keep the suite's results in this new folder")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command or [sys.executable, "-m", "tests.contracts.conformance.app"]
    with tempfile.TemporaryDirectory() as scratch:
        output: Path = options.output or Path(scratch)
        output.mkdir(parents=True, exist_ok=True)
        with serving(command, output / "server.log") as port:
            verdicts = [judge(revision, run_suite(port, revision, output / revision)) for revision in REVISIONS]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
