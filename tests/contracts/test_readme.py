"""What the README shows of a dialect works as it stands, through the official client and as plain JSON."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.server_process import ROOT, Client, Server, serving

README = (ROOT / "README.md").read_text(encoding="utf-8")
LAST = "anyio.run(main, by_mcp)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data") as running:
        yield running


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Server]:
    """A second server, which an export goes to."""
    with serving(tmp_path / "elsewhere") as running:
        yield running


def script(dialect: str) -> str:
    """The program under the heading of a dialect."""
    body = README.partition(f"\n### {dialect}\n")[2].partition("\n#")[0]
    found = re.search(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    assert found, dialect
    return found[1]


@pytest.mark.parametrize(
    ("dialect", "last"),
    [("scopes", LAST), ("scopes", "anyio.run(main, by_json)"), ("brain", ""), ("notes", ""), ("sessions", "")],
)
def test_the_program_of_a_dialect_prints_what_it_promises(
    server: Server, elsewhere: Server, dialect: str, last: str
) -> None:
    program = script(dialect)
    promised = re.findall(r"^ +print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert len(promised) == len(re.findall(r"\bprint\(", program)) > 5
    assert (LAST in program) is bool(last)
    for given, meant in ((LAST, last), (":7847", f":{server.port}"), (":7848", f":{elsewhere.port}")):
        program = program.replace(given, meant)

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.splitlines(), done.stderr) == (promised, "")


def test_a_store_of_scopes_goes_elsewhere_as_json(server: Server, elsewhere: Server) -> None:
    here, there = Client(server.port), Client(elsewhere.port)

    def call(tool: str, action: str, **more: Any) -> Any:
        status, said = here.call(tool, action=action, **more)
        assert status == 200, said
        return said

    org = call("memory_org", "create", name="Acme")["organization"]["id"]
    project = call("memory_project", "create", name="Shop", orgId=org)["project"]["id"]
    session = call("memory_session", "start", projectId=project)["session"]["id"]
    tool = call("memory_tool", "add", scopeType="global", name="deploy", description="Ship it")["tool"]["id"]
    rule = call("memory_guideline", "add", scopeType="project", scopeId=project, name="tests", content="Run them")
    call("memory_knowledge", "add", scopeType="session", scopeId=session, title="state", content="Half done")
    call("memory_tool", "update", id=tool, description="Ship it on Fridays")
    call("memory_tag", "attach", entryType="tool", entryId=tool, tagName="release")
    call(
        "memory_relation",
        "create",
        sourceType="guideline",
        sourceId=rule["guideline"]["id"],
        targetType="tool",
        targetId=tool,
        relationType="depends_on",
    )
    call("memory_file_lock", "checkout", file_path="/shop/a", agent_id="ada", session_id=session)
    asked = {"action": "search", "scope": {"type": "session", "id": session}, "search": "ship"}
    whole = {"action": "export", "includeVersions": True, "includeInactive": True}

    for shape in ("json", "yaml"):
        content = here.call("memory_export", **whole, format=shape)[1]["content"]
        said = there.call("memory_import", action="import", content=content, format=shape)[1]
        assert (said["success"], said["errors"]) == (True, [])
    mine, theirs = (client.call("memory_export", **whole)[1] for client in (here, there))
    assert mine["content"].replace(mine["metadata"]["exportedAt"], "") == theirs["content"].replace(
        theirs["metadata"]["exportedAt"], ""
    )
    found = [[hit["id"] for hit in client.call("memory_query", **asked)[1]["results"]] for client in (here, there)]
    assert found[0] == found[1]
    assert found[0][0] == tool
    assert here.call("memory_health")[1]["tables"] == {
        **there.call("memory_health")[1]["tables"],
        "fileLocks": 1,
        "conflicts": 1,
    }
    for client in (here, there):
        client.close()


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
