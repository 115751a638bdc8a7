"""How many files one call crosses: `add_memory` and `recall` by MCP over HTTP, from the socket to the answer.

Usage: python -m loadtests.benchmarks.call_trace [--list]

The server runs in this process with a profile function in every thread. Counted are the files of `kernel/` and
`handlers/` in which a function was called, and how often the next call was in another file than the one before. The
same call has been made three times before, so that nothing counts that only the first ones do, nor what a timer of the
server does meanwhile. `--list` prints the files.
"""

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
OURS = (f"{ROOT}/kernel/", f"{ROOT}/handlers/")
PORT = 7961
TIMER = "on_tick"  # of the HTTP server, ten times a second
WARM_CALLS = 3
HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ncontent-length: %d\r\n\r\n"
)
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
            if file.startswith(OURS) and frame.f_code.co_name != TIMER:
                self.files.append(file)


def call(connection: socket.socket, params: dict[str, Any]) -> Any:
    """The result of one tools/call, which is sent in one segment."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    connection.sendall(HEAD % len(body) + body)
    answer = b""
    while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < content_length(answer):
        answer += connection.recv(65536)
    return json.loads(answer.partition(b"\r\n\r\n")[2])["result"]


def content_length(answer: bytes) -> int:
    """The length of the body of an answer whose head is there."""
    return int(answer.lower().partition(b"content-length:")[2].split(maxsplit=1)[0])


def wait_until_ready() -> None:
    """Returns once the server has read its model."""
    for _ in range(600):
        with suppress(OSError, json.JSONDecodeError), urlopen(f"http://127.0.0.1:{PORT}/readyz") as response:
            if json.load(response).get("model") == "ready":
                return
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
    from kernel.core.config import Config
    from kernel.security.local_access import LocalAccess
    from kernel.server.server import Server

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Config(Path(folder), port=PORT), "", LocalAccess.fresh(Path(folder)))
        serving = threading.Thread(target=server.run)
        serving.start()
        try:
            wait_until_ready()
            connection = socket.create_connection(("127.0.0.1", PORT))
            for params in (ADD, RECALL):
                for number in range(WARM_CALLS):
                    call(connection, {**params, "arguments": {**params["arguments"], **other(params, number)}})  # pyrefly: ignore[invalid-argument]
                recorder.files.clear()
                recorder.on = True
                result = call(connection, params)
                time.sleep(0.2)  # what the writer does after the answer
                recorder.on = False
                assert not result.get("isError"), result
                missed += report(params["name"], list(recorder.files), wanted.list)  # pyrefly: ignore[bad-argument-type]
        finally:
            server.should_exit = True
            serving.join()
            server.end()
    return 1 if missed else 0


def other(params: dict[str, Any], number: int) -> dict[str, Any]:
    """Arguments of a call that goes before: a memory needs another path."""
    return {"path": f"deploy/{number}"} if params is ADD else {}


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
