"""How many files one call crosses: `add_memory` and `recall` by MCP over HTTP, from the socket to the answer.

Usage: python -m loadtests.benchmarks.call_trace [--list]

The server runs in this process with a profile function in every thread. Counted are the files of `kernel/` and
`handlers/` in which a function was called, and how often the next call was in another file than the one before. The
same call has been made before, so that nothing counts that only the first one does. `--list` prints the files.
"""

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OURS = (f"{ROOT}/kernel/", f"{ROOT}/handlers/")
PORT = 7961
ADD = {"name": "add_memory", "arguments": {"path": "deploy/database", "content": "The database is PostgreSQL 18."}}
RECALL = {"name": "recall", "arguments": {"query": "which database do we use"}}
# The goals of the layout this tree follows: files, changes of file.
GOALS = {"add_memory": (20, 60), "recall": (26, 110)}


class Recorder:
    """The files of the calls made while `on`, in order, whatever the thread."""

    def __init__(self) -> None:
        self.on = False
        self.files: list[str] = []

    def __call__(self, frame: Any, event: str, _argument: Any) -> None:
        if self.on and event == "call":
            file = frame.f_code.co_filename
            if file.startswith(OURS):
                self.files.append(file)


def call(connection: http.client.HTTPConnection, params: dict[str, Any]) -> Any:
    """The result of one tools/call."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", body, headers)
    return json.loads(connection.getresponse().read())["result"]


def waited() -> http.client.HTTPConnection:
    """A connection to the server once its model is read."""
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
        try:
            connection.request("GET", "/readyz")
            if json.loads(connection.getresponse().read()).get("model") == "ready":
                return connection
        except (OSError, json.JSONDecodeError):
            pass
        connection.close()
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def main() -> int:
    """Prints a row for each call; exit status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the files with their number of calls")
    parser.add_argument("--quick", action="store_true", help="the same, for `make bench ARGS=--quick`")
    wanted = parser.parse_args()
    recorder = Recorder()
    threading.setprofile(recorder)
    from kernel.config import Config
    from kernel.server import Server

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Config(Path(folder), port=PORT))
        serving = threading.Thread(target=server.run)
        serving.start()
        try:
            connection = waited()
            for params in (ADD, RECALL):
                call(connection, {**params, "arguments": {**params["arguments"], **first(params)}})
                recorder.files.clear()
                recorder.on = True
                result = call(connection, params)
                time.sleep(0.2)  # what the writer does after the answer
                recorder.on = False
                assert not result.get("isError"), result
                missed += report(params["name"], list(recorder.files), wanted.list)
        finally:
            server.should_exit = True
            serving.join()
            server.end()
    return 1 if missed else 0


def first(params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the call that goes before: a memory needs another path."""
    return {"path": "deploy/first"} if params is ADD else {}


def report(name: str, files: list[str], listed: bool) -> bool:
    """Prints one row; whether a goal is missed."""
    changes = sum(before != after for before, after in pairwise(files))
    most_files, most_changes = GOALS[name]
    count = len(set(files))
    print(f"{name}: {count} files (goal {most_files}), {changes} changes of file (goal {most_changes})")
    if listed:
        for file in dict.fromkeys(files):
            print(f"  {files.count(file):4}  {file.removeprefix(f'{ROOT}/')}")
    return count > most_files or changes > most_changes


if __name__ == "__main__":
    sys.exit(main())
