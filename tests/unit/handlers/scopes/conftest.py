"""Fixtures and helpers for the tests of scopes: decoded results and errors, scopes, a second store, concurrency."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.server.app import Kernel, open_kernel
from tests.conftest import TESTER, Call

Do = Callable[..., Any]
KINDS = ("tool", "guideline", "knowledge")
MANY = {"tool": "tools", "guideline": "guidelines", "knowledge": "knowledge"}
NOW = "2026-01-02T03:04:05.678Z"
Concurrently = Callable[[Sequence[tuple[str, dict[str, Any]]]], list[Reply]]


class ScopeIds(NamedTuple):
    """The ids of an organization, of a project in it, and of a session in that."""

    org: str
    project: str
    session: str


def result_of(reply: Reply) -> Any:
    """The result of a reply; text and structured content are checked to be equal."""
    answer = json.loads(reply.body)
    assert reply.fault is None, answer
    assert reply.media == "application/json"
    assert reply.body.decode() == json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    assert json.loads(reply.structured or b"") == answer
    return answer


def refused(reply: Reply) -> tuple[str | None, str, str, dict[str, Any]]:
    """Kernel code, contract code, message and context of an error reply."""
    answer = json.loads(reply.body)
    assert list(answer) in (["error", "code", "context"], ["error", "code"])
    assert (reply.media, reply.structured) == ("application/json", None)
    return reply.fault, answer["code"], answer["error"], answer.get("context", {})


@pytest.fixture
def do(call: Call) -> Do:
    """The result of a call that succeeds."""

    def done(tool: str, action: str, **arguments: Any) -> Any:
        return result_of(call(tool, action=action, **arguments))

    return done


@pytest.fixture
def scope_ids(do: Do) -> ScopeIds:
    """An organization, a project in it, a session in that."""
    org = do("memory_org", "create", name="Org")["organization"]["id"]
    project = do("memory_project", "create", name="Project", orgId=org)["project"]["id"]
    return ScopeIds(org, project, do("memory_session", "start", projectId=project)["session"]["id"])


class Store(NamedTuple):
    """A separate store: its kernel, calls to it, and calls that succeed."""

    kernel: Kernel
    call: Call
    do: Do


@pytest.fixture
def second_store(tmp_path: Path, migrated: Path, caller: Callable[[Dispatch], Call]) -> Iterator[Store]:
    """An empty second store."""
    folder = shutil.copytree(migrated, tmp_path / "second_store")
    running = open_kernel(Config(data=folder))
    call = caller(running.dispatch)
    yield Store(running, call, lambda tool, action, **given: result_of(call(tool, action=action, **given)))
    running.store.close()


def exported(do: Do, **given: Any) -> dict[str, Any]:
    """The document of an export of everything, without its time."""
    whole: dict[str, Any] = {"includeVersions": True, "includeInactive": True}
    document = json.loads(do("memory_export", "export", **(whole | given))["content"])
    del document["exportedAt"]
    return document


@pytest.fixture
def concurrently(kernel: Kernel, runner: asyncio.Runner) -> Concurrently:
    """Sends many calls concurrently; the replies in the order of the calls."""

    async def all_at_once(calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        tools = kernel.dispatch.tools
        return await asyncio.gather(
            *(kernel.dispatch.call(tools[name], msgspec.json.encode(given), TESTER) for name, given in calls)
        )

    return lambda calls: runner.run(all_at_once(calls))


class Add(NamedTuple):
    """Adds entries."""

    do: Do

    def __call__(self, kind: str, name: str, says: str = "", **more: Any) -> str:
        """Its id."""
        heading = {"title" if kind == "knowledge" else "name": name}
        answer = {"description": says} if kind == "tool" else {"content": says or name}
        return self.do(f"memory_{kind}", "add", **{"scopeType": "global", **heading, **answer, **more})[kind]["id"]


@pytest.fixture
def add(do: Do) -> Add:
    """Adds an entry of a kind by its name."""
    return Add(do)


@pytest.fixture
def search(do: Do) -> Callable[..., Any]:
    """The result of a search."""
    return lambda **given: do("memory_query", "search", **given)


@pytest.fixture
def found(search: Callable[..., Any]) -> Callable[..., list[str]]:
    """The names in the result of a search, best first; its totals are checked."""

    def names(**given: Any) -> list[str]:
        answer = search(**given)
        results = [heading(result) for result in answer["results"]]
        assert answer["meta"]["returnedCount"] == len(results)
        assert answer["meta"]["hasMore"] == (answer["meta"]["totalCount"] > len(results))
        return results

    return names


def heading(result: dict[str, Any]) -> str:
    """The name or the title of a result."""
    inside = result[result["type"]]
    return inside["title"] if result["type"] == "knowledge" else inside["name"]


def inside(scope: str, scope_id: str | None = None, **more: Any) -> dict[str, Any]:
    """The argument that names a scope."""
    return {"scope": {"type": scope, "id": scope_id, **more}}


def scopes(scope_ids: ScopeIds) -> list[tuple[str, str | None]]:
    """The chain of a session, nearest first."""
    return [("session", scope_ids.session), ("project", scope_ids.project), ("org", scope_ids.org), ("global", None)]


def tag(do: Do, kind: str, entry_id: str, *names: str) -> None:
    """Attaches tags to an entry."""
    for name in names:
        do("memory_tag", "attach", entryType=kind, entryId=entry_id, tagName=name)


def relate(do: Do, source: tuple[str, str], target: tuple[str, str], relation: str) -> None:
    """Relates two rows, each given as (type, id)."""
    do(
        "memory_relation",
        "create",
        sourceType=source[0],
        sourceId=source[1],
        targetType=target[0],
        targetId=target[1],
        relationType=relation,
    )
