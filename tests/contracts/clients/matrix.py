"""Runs MCP clients of other people against a server, over HTTP and stdio, and prints a table of the results.

Usage: python -m tests.contracts.clients.matrix [CLIENT ...]. `make clients` builds their environments first.
Each client is a folder beside this file: its packages, by hash, and `tour.py` or `tour.mjs`, which takes the
address and prints its observations: the tools, the answer to adding a memory, a search that finds it, the memory as a
resource, and an error. The official clients then call every tool over stdio. Exit status 0 means that every client
saw everything on both transports.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kernel.calls.schema import input_schema
from kernel.server import app
from tests.contracts.clients.relay import relaying
from tests.reliability.server_process import ROOT, serving
from tests.security.calls import CALLS, is_end

HERE = Path(__file__).resolve().parent
PATIENCE = 120
CONTENT = "The quokka of {} sleeps under the verandah until dusk."
QUERY = "where does the animal of {} rest"
DIALECTS = {"QUIPU_DIALECTS": ",".join(dialect.name for dialect in app.DIALECTS)}
TOOLS = [tool.name for dialect in app.DIALECTS for tool in dialect.tools]
QUIET = {
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
}


class Row(NamedTuple):
    """Hold the outcome of one client: its protocol version over HTTP, and the faults on each transport."""

    package: str
    version: str
    era: str
    http: str
    stdio: str


def package(client: str) -> tuple[str, str]:
    """Return the name and the version of the installed package."""
    folder = HERE / client
    if (folder / "package.json").exists():
        ((name, version),) = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"].items()
        return name, version
    name, _, version = (folder / "requirements.in").read_text(encoding="utf-8").strip().partition("==")
    return name.partition("[")[0], version


def command(client: str) -> list[str]:
    """Return the command of the tour of this client."""
    if (HERE / client / "tour.mjs").exists():
        return ["node", str(HERE / client / "tour.mjs")]
    return [str(ROOT / ".venv-clients" / client / "bin" / "python"), str(HERE / client / "tour.py")]


def toured(client: str, scratch: Path, **where: Any) -> str:
    """Return the faults of the observations of the client; empty if there are none."""
    path = f"{client}/{'http' if 'url' in where else 'stdio'}"
    task = {
        "memory": {"path": path, "content": CONTENT.format(path)},
        "query": QUERY.format(path),
        "uri": f"memory://paths/{path}",
        "missing": "nowhere",
        **where,
    }
    home = scratch / "home" / path
    home.mkdir(parents=True)
    environment = {**os.environ, **QUIET, "HOME": str(home)}
    try:
        done = subprocess.run(
            [*command(client), json.dumps(task)],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {PATIENCE} s"
    if done.returncode or not done.stdout.strip():
        return f"status {done.returncode}: {done.stderr[-2000:]}"
    return judged(json.loads(done.stdout.splitlines()[-1]), path)


def judged(seen: dict[str, Any], path: str) -> str:
    """Return the observations that differ from those expected."""
    right = {
        "tools": seen["tools"] == TOOLS,
        "added": path in seen["added"] and "content_size" in seen["added"],
        "recalled": f"paths/{path}" in seen["recalled"],
        "resource": seen["resource"] == CONTENT.format(path),
        "refused": "MEMORY_NOT_FOUND" in seen["refused"],
        "failed": not seen.get("failed"),
    }
    return "; ".join(f"{part}: {seen.get(part)!r}"[:400] for part, fits in right.items() if not fits)


def every_call() -> list[tuple[str, dict[str, Any]]]:
    """Each action of each tool, as it is and with null for omitted parameters; deletions come last."""
    schemas = {tool.name: input_schema(tool)["properties"] for dialect in app.DIALECTS for tool in dialect.tools}
    ordered = sorted(CALLS.items(), key=is_end)
    return [(name, {**nulls, **given}) for (name, _), given in ordered for nulls in ({}, dict.fromkeys(schemas[name]))]


def row(client: str, port: int, scratch: Path) -> Row:
    """Sends one client over both transports."""
    with relaying(port) as relay:
        http = toured(client, scratch, url=f"http://127.0.0.1:{relay.port}/mcp")
    own = [sys.executable, "-m", "kernel", "stdio", "--data", str(scratch / "data" / client)]
    environment = {**DIALECTS, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    stdio = toured(client, scratch, command=own, env=environment, calls=every_call())
    return Row(*package(client), relay.versions[-1] if relay.versions else "-", http, stdio)


def rendered(rows: Sequence[Row]) -> str:
    """The table, in Markdown."""
    lines = ["| client | version | protocol | HTTP | stdio |", "|---|---|---|---|---|"]
    for one in rows:
        marks = ("passes" if not wrong else "FAILS" for wrong in (one.http, one.stdio))
        lines.append(f"| `{one.package}` | {one.version} | {one.era} | {' | '.join(marks)} |")
    return "\n".join(lines)


def main(wanted: Sequence[str]) -> int:
    """Runs the clients, two at a time; the exit status."""
    clients = list(wanted) or sorted(tour.parent.name for tour in HERE.glob("*/tour.*"))
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "server", **DIALECTS) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        rows = list(pool.map(partial(row, port=server.port, scratch=Path(folder)), clients))
    print(rendered(rows))
    broken = [(one, way, wrong) for one in rows for way, wrong in (("HTTP", one.http), ("stdio", one.stdio)) if wrong]
    for one, way, wrong in broken:
        print(f"\n{one.package} {one.version} over {way}: {wrong}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
