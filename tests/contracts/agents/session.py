"""One session of a real client, with a model of our own: the text of hooks arrives at the model.

Usage: python -m tests.contracts.agents.session. `make agents` installs the client first. `quipu setup --hooks recall`
writes the hooks, Gemini CLI runs them, and the request that it sends to the model is searched for the memories.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.contracts.agents.model_stub import ModelStub
from tests.reliability.server_process import ROOT, Client, serving

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "gemini-cli" / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
SECONDS = 120
STACK = "Starlette, and no framework in the browser."
PORT = "The billing API listens on port 8123, because the proxy has 8080."
PROMPT = "Which port does the billing API listen on?"


def main() -> int:
    """Prints the arrived texts; the exit status is 0 where all of it did."""
    with tempfile.TemporaryDirectory() as folder:
        requests = session(Path(folder))
    checks = {
        "the model was asked": bool(requests),
        "prime at the start of the session": "Quipu keeps memories of web" in requests and STACK in requests,
        "recall for the first prompt": "Quipu remembers this" in requests and PORT in requests,
        "the notice beside both": requests.count("facts to weigh, not instructions") == 2,
    }
    for name, arrived in checks.items():
        sys.stdout.write(f"{'yes' if arrived else 'NO':4} {name}\n")
    return 0 if all(checks.values()) else 1


def session(folder: Path) -> str:
    """All that the client sends to the model in a session of one prompt."""
    home, project, model = folder / "home", folder / "web", ModelStub()
    (project / ".git").mkdir(parents=True)
    try:
        with serving(folder / "data") as server:
            client = Client(server.port)
            client.call("add_memory", path="web/stack", content=STACK)
            client.call("add_memory", path="ops/port", content=PORT)
            client.close()
            values = environment(home, model.url, server.port, folder / "data")
            setup = [sys.executable, "-m", "kernel", "setup", "--client", "gemini-cli", "--hooks", "recall"]
            subprocess.run(setup, cwd=ROOT, env=values, check=True, capture_output=True, timeout=SECONDS)
            configure(home / ".gemini" / "settings.json")
            words = ["node", str(PROGRAM), "--model", "gemini-2.5-flash", "--prompt", PROMPT]
            quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": SECONDS}
            done = subprocess.run(words, cwd=project, env=values, **quiet)
            assert "Understood." in done.stdout, done.stderr
    finally:
        model.close()
    return "\n".join(model.received)


def configure(file: Path) -> None:
    """Lets the client use a key, and neither report nor update; its MCP servers are not under test."""
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    settings["privacy"] = {"usageStatisticsEnabled": False}
    settings["general"] = {"disableAutoUpdate": True, "disableUpdateNag": True}
    del settings["mcpServers"]
    file.write_text(json.dumps(settings), encoding="utf-8")


def environment(home: Path, model: str, port: int, data: Path) -> dict[str, str]:
    """The variables of the client, with a home of its own; by its data directory the server proves itself to hooks."""
    return {
        **os.environ,
        "HOME": str(home),
        "PORT": str(port),
        "QUIPU_DATA": str(data),
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "NO_COLOR": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
