"""What the README shows of a dialect works as it stands, through the official client and as plain JSON."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.serving import ROOT, Client, Server, serving

README = (ROOT / "README.md").read_text(encoding="utf-8")
TOLD = {
    "scopes": [
        "One for each ticket",
        "True",
        "['One for each change', 'One for each ticket']",
        "['commits']",
        "1",
        "1",
    ],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data") as running:
        yield running


def script(dialect: str) -> str:
    """The program under the heading of a dialect."""
    body = README.partition(f"\n### {dialect}\n")[2].partition("\n#")[0]
    found = re.search(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    assert found, dialect
    return found[1]


@pytest.mark.parametrize("dialect", sorted(TOLD))
def test_the_program_of_a_dialect_says_what_the_readme_says(server: Server, dialect: str) -> None:
    program = script(dialect).replace("127.0.0.1:7847", f"127.0.0.1:{server.port}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.splitlines(), done.stderr) == (TOLD[dialect], "")


def test_the_calls_of_scopes_are_the_same_as_json(server: Server) -> None:
    client = Client(server.port)
    status, made = client.call("memory_org", action="create", name="Acme")
    assert (status, list(made)) == (200, ["success", "organization"])
    org = made["organization"]["id"]
    rule = {"scopeType": "org", "scopeId": org, "name": "commits"}
    assert client.call("memory_tool", action="add", **rule)[0] == 200
    assert client.call("memory_tool", action="add", **rule)[0] == 409
    status, seen = client.call("memory_tool", action="get", **rule)
    assert (status, seen["tool"]["name"]) == (200, "commits")
    assert client.call("memory_tool", action="get", id="nobody")[0] == 404
    assert client.call("memory_tool")[0] == 400
    client.close()
