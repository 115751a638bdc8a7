"""What every system must do: `quipu`, installed beside this Python, is set up, stores, finds by meaning, is killed.

Plain Python without packages, for CI and for empty roots: python smoke.py [FOLDER]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

TOOL = Path(sys.executable).parent / ("quipu.exe" if os.name == "nt" else "quipu")
TEXTS = {
    "car": "My automobile goes to the garage in May.",
    "hike": "We walked the ridge above the lake.",
    "deploy/日本": "Releases go out on Tuesday mornings.",
}


def quipu(*arguments: str, folder: Path) -> str:
    """What a command prints; its last line is shown."""
    settings = {**os.environ, "QUIPU_DATA": str(folder / "data"), "HOME": str(folder), "USERPROFILE": str(folder)}
    settings["APPDATA"] = str(folder)
    done = subprocess.run([TOOL, *arguments], env=settings, capture_output=True, text=True, encoding="utf-8")
    shown = (done.stdout.strip() or done.stderr.strip()).splitlines()
    print(f"$ quipu {' '.join(arguments)}\n{shown[-1] if shown else ''}", flush=True)
    if done.returncode:
        raise SystemExit(f"status {done.returncode}: {done.stderr}")
    return done.stdout


def post(port: int, tool: str, **arguments: Any) -> Any:
    """The answer of a tool."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/tools/{tool}", json.dumps(arguments).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def serve(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A server on a free port, and the port."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(TOOL), "serve", "--port", str(port), "--data", str(folder / "data")]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    line = server.stderr.readline()
    if not re.search(rf"listens on http://127\.0\.0\.1:{port}/mcp", line):
        raise SystemExit(f"the server says {line!r}")
    return server, port


def found(port: int, query: str) -> str:
    """The key of the first memory that `recall` finds."""
    began = time.perf_counter()
    answer = json.dumps(post(port, "recall", query=query), ensure_ascii=False)
    first = next(iter(re.findall(r"(?:car|hike|deploy/日本)", answer)), "nothing")
    print(f"recall {query!r}: {first} ({(time.perf_counter() - began) * 1000:.0f} ms)", flush=True)
    return first


def main(folder: Path) -> None:
    """Raises SystemExit or AssertionError where something does not work."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    quipu("--version", folder=folder)
    quipu("setup", "--client", "cursor", folder=folder)
    server, port = serve(folder)
    for path, content in TEXTS.items():
        post(port, "add_memory", path=path, content=content)
    assert found(port, "vehicle maintenance") == "car"
    assert found(port, "when do we ship?") == "deploy/日本"
    server.terminate()  # on Windows this ends it without a warning
    server.wait(timeout=30)
    assert quipu("check", folder=folder) == "ok\n"
    quipu("doctor", folder=folder)
    server, port = serve(folder)
    assert found(port, "vehicle maintenance") == "car"
    server.kill()
    server.wait(timeout=30)
    assert quipu("check", folder=folder) == "ok\n"
    print(f"works on {sys.platform}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
            main(Path(made))
