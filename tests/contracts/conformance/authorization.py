"""The scenarios of the MCP conformance suite for authorization servers, against that of the server.

A person's part, the consent, is done by a form that is sent as the page would send it.
"""

import json
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from kernel.core.config import Config
from tests.contracts.conformance.run import SUITE, SUITE_SECONDS, free_port
from tests.security.authenticated_server import House, house

SCENARIOS = {"authorization-server-metadata-endpoint", "authorization-code-grant"}
# The only warning is the rule that no connection goes outward: documents of clients are not fetched.
WARNING = "authorization-server-metadata-cimd"
URL = re.compile(r"^https?://\S+/ui/authorize\?\S+$", re.MULTILINE)


def consent(running: House, address: str, key: str, url: str) -> None:
    """Allows a request as its page would, and goes where the answer leads."""

    def send(path: str, fields: Mapping[str, str], cookie: str = "") -> Mapping[str, str]:
        headers = {"content-type": "application/x-www-form-urlencoded", "origin": address, "cookie": cookie}
        return running.ask("POST", path, "", urlencode(fields).encode(), headers).headers

    cookie = send("/ui/do/login", {"key": key})["set-cookie"].partition(";")[0]
    fields = {**dict(parse_qsl(urlsplit(url).query)), "decision": "allow", "period": "30d"}
    with urllib.request.urlopen(send("/ui/do/authorize", fields, cookie)["location"], timeout=10):
        pass


def registered(running: House, redirect: str) -> str:
    body = json.dumps({"redirect_uris": [redirect], "client_name": "Conformance"}).encode()
    answer = running.ask("POST", "/oauth/register", "", body, {"content-type": "application/json"})
    return json.loads(answer.body)["client_id"]


def run(output: Path) -> bool:
    """Run every scenario for authorization servers, and print the failures; true if there are none."""
    port, listening = free_port(), free_port()
    address = f"http://127.0.0.1:{port}"
    output.mkdir(parents=True)
    with house(Config(data=output / "data", model=None, public=address), port) as running:
        key = running.key()
        running.told()
        client = registered(running, f"http://127.0.0.1:{listening}/callback")
        command = ["node", str(SUITE / "dist" / "index.js"), "authorization", "--url", address, "--client-id", client]
        command += ["--resource", f"{address}/mcp", "--port", str(listening), "--output-dir", str(output)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
            assert suite.stdout
            for line in suite.stdout:
                if URL.match(line):
                    consent(running, address, key, line.strip())
            suite.wait(SUITE_SECONDS)
    checks = [
        (re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name), check)
        for path in sorted(output.glob("*/checks.json"))
        for check in json.loads(path.read_text(encoding="utf-8"))
    ]
    bad = [
        f"  {check['status']} {name} {check['id']}: {check.get('errorMessage')}"
        for name, check in checks
        if check["status"] != "SUCCESS" and (check["status"], check["id"]) != ("WARNING", WARNING)
    ]
    seen = {scenario for scenario in SCENARIOS for name, _ in checks if name.endswith(scenario)}
    for line in (*bad, *(f"  MISSING {name}" for name in sorted(SCENARIOS - seen))):
        print(line)
    print(
        f"authorization: {len(seen)}/{len(SCENARIOS)} scenarios, {len(checks)} checks, {len(bad)} unexpected failures"
    )
    return not bad and seen == SCENARIOS


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        raise SystemExit(not run(Path(scratch) / "authorization"))
