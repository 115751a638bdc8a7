"""Simulated agents: readers, writers and both, over both MCP protocol versions and plain JSON; see README.md.

`--tags reader`, `writer` or `mixed` selects one profile. A call that the server refused as busy is counted on a
separate line and is not a failure.
"""

import random
import uuid
from argparse import ArgumentParser
from typing import Any, NamedTuple, cast

import msgspec
from locust import FastHttpUser, TaskSet, events, tag, task

from loadtests.lib import corpus, http_requests

_BUSY = "is busy"
_SPREAD = 1_000_000
_JSON = {"content-type": "application/json"}
_INITIALIZE = {
    "protocolVersion": http_requests.VERSIONS["legacy"],
    "capabilities": {},
    "clientInfo": http_requests.CLIENT,
}


@events.init_command_line_parser.add_listener
def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--key", env_var="QUIPU_KEY", default="", help="key of the server", is_secret=True)
    parser.add_argument("--closed", action="store_true", help="send the next call at once, without a pause")


class Outcome(NamedTuple):
    """A parsed reply: the structured result, or the error."""

    result: dict[str, Any] | None
    complaint: str = ""


class Agent(FastHttpUser):
    """An agent with memories of its own, over one of the protocols."""

    abstract = True
    wire_name = ""

    def wait_time(self) -> float:
        """The pause before the next task."""
        return 0.0 if self.environment.parsed_options.closed else random.uniform(0.05, 0.5)

    def on_start(self) -> None:
        """Connect, and write the first memories."""
        self.home = f"agents/{uuid.uuid4().hex[:12]}"
        self.written: dict[str, str] = {}
        self.next = random.randrange(_SPREAD)
        self.greet()
        for _ in range(3):
            self.add()

    def credentials(self) -> dict[str, str]:
        """The header with the key, if there is one."""
        key = self.environment.parsed_options.key
        return {"authorization": f"Bearer {key}"} if key else {}

    def greet(self) -> None:
        """The handshake of this protocol."""

    def post(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Path, headers and body of a tool call."""
        raise NotImplementedError

    def judge(self, status: int, body: bytes) -> Outcome:
        """Parse a reply."""
        raise NotImplementedError

    def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """Call a tool; its structured result, or None if it failed or the server was busy."""
        name, request = f"{self.wire_name} {tool}", self.post(tool, arguments)
        request["headers"] |= self.credentials()
        with self.client.request("POST", name=name, catch_response=True, **request) as reply:
            outcome = self.judge(reply.status_code, reply.content or b"")
            if outcome.result is not None:
                reply.success()
            elif _BUSY in outcome.complaint:
                reply.request_meta["name"] = f"{name} (busy)"
                reply.success()
            else:
                reply.failure(outcome.complaint[:200])
            return outcome.result

    def add(self) -> None:
        """Write the next memory of the corpus."""
        memory = corpus.memory(self.next)
        self.next += 1
        path = f"{self.home}/{memory.path}"
        if self.call("add_memory", path=path, content=memory.text) is not None:
            self.written[path] = memory.text

    def check(self, what: str, right: bool) -> None:
        """Count a wrong answer as a failure on its own line."""
        if not right:
            wrong = AssertionError(what)
            self.environment.events.request.fire(
                request_type="CHECK", name=what, response_time=0, response_length=0, exception=wrong, context={}
            )


class Doing(TaskSet):
    """The actions of every profile."""

    @property
    def agent(self) -> Agent:
        """The agent that runs the task."""
        return cast("Agent", self.user)

    def recall(self) -> list[dict[str, Any]]:
        """Search for one of the memories written by this agent."""
        number = self.agent.next - 1 - random.randrange(3)
        query = corpus.question(number).text
        answer = self.agent.call("recall", query=query)
        if answer is not None and not answer["memories"]:
            # All hits are weak, as of some questions in a thousand among 20,000 memories: they are there all the same.
            answer = self.agent.call("recall", query=query, floor="none")
            self.agent.check("recall finds something", answer is None or bool(answer["memories"]))
        return answer["memories"] if answer else []

    def read(self) -> None:
        """Read back a memory of this agent."""
        if self.agent.written:
            path = random.choice(list(self.agent.written))
            found = self.agent.call("read_memory", path=path)
            if found is not None:
                self.agent.check("read_memory gives what was written", found["content"] == self.agent.written[path])

    def replace(self) -> None:
        """Replace a memory of this agent."""
        if self.agent.written:
            path = random.choice(list(self.agent.written))
            text = f"{self.agent.written[path]} As of now this is so."
            if self.agent.call("replace_memory", path=path, content=text) is not None:
                self.agent.written[path] = text

    def drop(self) -> None:
        """Drop the oldest memory of this agent if it has enough."""
        if len(self.agent.written) > 3:
            path = next(iter(self.agent.written))
            if self.agent.call("drop_memory", path=path) is not None:
                del self.agent.written[path]


@tag("reader")
class Reader(Doing):
    """Searches, reads, lists."""

    @task(6)
    def searching(self) -> None:
        """Hybrid search."""
        self.recall()

    @task(3)
    def reading(self) -> None:
        """Read by path."""
        self.read()

    @task(1)
    def listing(self) -> None:
        """List the agent's own prefix."""
        found = self.agent.call("list_memories", prefix=f"{self.agent.home}/")
        if found is not None:
            self.agent.check("list_memories counts what was written", found["total"] == len(self.agent.written))


@tag("writer")
class Writer(Doing):
    """Adds, replaces, drops."""

    @task(6)
    def adding(self) -> None:
        """Add a memory."""
        self.agent.add()

    @task(3)
    def replacing(self) -> None:
        """Replace a memory."""
        self.replace()

    @task(1)
    def dropping(self) -> None:
        """Drop a memory."""
        self.drop()


@tag("mixed")
class Mixed(Doing):
    """A turn of an agent: recall, read the relevant memories in full, and sometimes add one."""

    @task(3)
    def turn(self) -> None:
        """Recall previews, then read the best two in full."""
        found = self.recall()
        if found:
            ids = [memory["id"] for memory in found[:2]]
            self.agent.call("recall", ids=ids, max_tokens=4000)

    @task(1)
    def remember(self) -> None:
        """Add the outcome."""
        self.agent.add()
        self.read()


_PROFILES: Any = {Reader: 4, Writer: 1, Mixed: 5}


class ModernAgent(Agent):
    """MCP 2026-07-28."""

    tasks = _PROFILES
    weight = 4
    wire_name = "modern"
    era: http_requests.Era = "modern"

    def post(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        body = msgspec.json.encode(http_requests.message(self.era, tool, arguments))
        return {"url": "/mcp", "data": body, "headers": {**_JSON, **http_requests.headers(self.era, tool)}}

    def judge(self, status: int, body: bytes) -> Outcome:
        if status != 200:
            return Outcome(None, f"HTTP {status}: {body[:150]!r}")
        result = msgspec.json.decode(body).get("result")
        if result is None or result.get("isError"):
            return Outcome(None, result["content"][0]["text"] if result else body.decode(errors="replace"))
        return Outcome(result["structuredContent"])


class LegacyAgent(ModernAgent):
    """MCP 2025-11-25, with its handshake."""

    weight = 3
    wire_name = "legacy"
    era: http_requests.Era = "legacy"

    def greet(self) -> None:
        """The handshake."""
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _INITIALIZE}
        headers = {**_JSON, "accept": "application/json, text/event-stream", **self.credentials()}
        with self.client.request(
            "POST",
            "/mcp",
            name="legacy initialize",
            data=msgspec.json.encode(hello).decode(),
            headers=headers,
            catch_response=True,
        ) as reply:
            if b'"serverInfo"' not in (reply.content or b""):
                reply.failure("no serverInfo")


class JsonAgent(Agent):
    """POST /tools/{name}."""

    tasks = _PROFILES
    weight = 3
    wire_name = "json"

    def post(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        headers = {**_JSON, "accept": "application/json"}
        return {"url": f"/tools/{tool}", "data": msgspec.json.encode(arguments), "headers": headers}

    def judge(self, status: int, body: bytes) -> Outcome:
        if status != 200:
            return Outcome(None, f"{body[:150].decode(errors='replace')} (HTTP {status})")
        return Outcome(msgspec.json.decode(body))
