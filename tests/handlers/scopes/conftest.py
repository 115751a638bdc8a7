"""What the tests of scopes share: answers read as JSON, refusals taken apart, a place in every scope, many at once."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from kernel.app import Kernel
from kernel.tools import Reply
from tests.conftest import Call

Do = Callable[..., Any]
Storm = Callable[[Sequence[tuple[str, dict[str, Any]]]], list[Reply]]


class Places(NamedTuple):
    """The ids of an organization, of a project in it, and of a session in that."""

    org: str
    project: str
    session: str


def told(reply: Reply) -> Any:
    """What a reply says, which its text and its structured content say alike."""
    said = json.loads(reply.body)
    assert reply.fault is None, said
    assert reply.media == "application/json"
    assert reply.body.decode() == json.dumps(said, indent=2, ensure_ascii=False)
    assert json.loads(reply.structured or b"") == said
    return said


def refused(reply: Reply) -> tuple[str | None, str, str, dict[str, Any]]:
    """Code of the kernel, code of the contract, message and context of a refusal."""
    said = json.loads(reply.body)
    assert list(said) in (["error", "code", "context"], ["error", "code"])
    assert (reply.media, reply.structured) == ("application/json", None)
    return reply.fault, said["code"], said["error"], said.get("context", {})


@pytest.fixture
def do(call: Call) -> Do:
    """A call that succeeds; what it says."""

    def done(tool: str, action: str, **arguments: Any) -> Any:
        return told(call(tool, action=action, **arguments))

    return done


@pytest.fixture
def places(do: Do) -> Places:
    """An organization, a project in it, a session in that."""
    org = do("memory_org", "create", name="Org")["organization"]["id"]
    project = do("memory_project", "create", name="Project", orgId=org)["project"]["id"]
    return Places(org, project, do("memory_session", "start", projectId=project)["session"]["id"])


@pytest.fixture
def storm(kernel: Kernel, runner: asyncio.Runner) -> Storm:
    """Many calls at once; their replies in the order of the calls."""

    async def all_at_once(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        tools = kernel.dispatch.tools
        return await asyncio.gather(
            *(kernel.dispatch.call(tools[name], msgspec.json.encode(given), "tester") for name, given in calls)
        )

    return lambda calls: runner.run(all_at_once(calls))
