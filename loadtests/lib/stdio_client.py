"""An MCP client over stdio: several calls in flight, every reply checked."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import psutil

from loadtests.lib.http_load import Result
from loadtests.lib.http_requests import CLIENT
from loadtests.lib.servers import ROOT, clean_environ

_VERSION = "2025-06-18"  # the newest that all of the servers speak
_TIMEOUT_SECONDS = 60.0


class ToolCall(NamedTuple):
    """A tool, its arguments, and a piece that the answer must contain."""

    tool: str
    arguments: Mapping[str, Any]
    expect: str = ""


OnReply = Callable[[ToolCall], None]


class StdioClient:
    """One server process after the handshake.

    `started` is the seconds from its start to its first answer, `cpu_started` their processor time.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: IO[bytes]) -> None:
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**clean_environ(), **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        self._number = 0
        hello = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": CLIENT}
        self.ask("initialize", hello)
        self.started = time.perf_counter() - begun
        self.cpu_started = self.cpu()
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request; the whole response."""
        number = self._request(method, params)
        while (answer := self._next())["id"] != number:
            pass
        return answer

    def call(self, call: ToolCall) -> str:
        """Call one tool; the error in its answer, or an empty string."""
        return _wrong(self.ask("tools/call", _params(call)), call)

    def drive(
        self,
        calls: Iterable[ToolCall],
        *,
        in_flight: int,
        seconds: float = 3600.0,
        on_reply: OnReply = lambda _calling: None,
    ) -> Result:
        """Make `calls`, `in_flight` at a time, until they or the time run out, and wait for all answers.

        `on_reply` is called for each correct answer.
        """
        todo = iter(calls)
        sent: dict[int, tuple[float, ToolCall]] = {}
        latencies: list[float] = []
        errors, complaint = 0, ""
        begun = time.perf_counter()
        self._fill(sent, todo, in_flight)
        while sent:
            answer = self._next()
            now = time.perf_counter()
            then, call = sent.pop(answer["id"])
            latencies.append(now - then)
            wrong = _wrong(answer, call)
            errors, complaint = errors + bool(wrong), complaint or wrong
            if not wrong:
                on_reply(call)
            if now < begun + seconds:
                self._fill(sent, todo, in_flight)
        return Result(len(latencies), errors, time.perf_counter() - begun, sorted(latencies), complaint)

    def cpu(self) -> float:
        """Seconds of processor time of the process and its children so far."""
        return sum(_cpu(one.pid) for one in self._family())

    def rss(self) -> float:
        """Resident memory of the process and its children, in MB of 10**6 bytes."""
        return sum(one.memory_info().rss for one in self._family()) / 1e6

    def close(self) -> None:
        """Close standard input, and wait for the exit."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_TIMEOUT_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL if the process still runs."""
        for one in self._family():
            one.kill()
        self._process.wait(_TIMEOUT_SECONDS)

    def _family(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _fill(self, sent: dict[int, tuple[float, ToolCall]], todo: Iterator[ToolCall], in_flight: int) -> None:
        while len(sent) < in_flight and (call := next(todo, None)) is not None:
            now = time.perf_counter()
            sent[self._request("tools/call", _params(call))] = now, call

    def _request(self, method: str, params: Mapping[str, Any]) -> int:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(message) + b"\n")
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        """The next response; notifications and lines that are not JSON are skipped."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                message = msgspec.json.decode(line)
                if "id" in message:
                    return message
        raise ConnectionError("the server closed its end")


def _params(call: ToolCall) -> dict[str, Any]:
    return {"name": call.tool, "arguments": call.arguments}


def _wrong(answer: Mapping[str, Any], call: ToolCall) -> str:
    result = answer.get("result", {})
    text = "".join(block.get("text", "") for block in result.get("content", ()))
    if "error" in answer or result.get("isError") or call.expect.lower() not in text.lower():
        return f"{call.tool}: {str(answer)[:300]}, expected {call.expect!r}"
    return ""


def _cpu(pid: int) -> float:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (OSError, IndexError):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system
