"""A write with an idempotency key runs once, by every door, and its retry is answered as it was."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernel.core.config import Config
from tests.security.authenticated_server import Answer, House, house

FACT = {"db": "core", "content": "The mill wheel turns at dawn.", "category": "fact"}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server without keys."""
    with house(Config(data=tmp_path_factory.mktemp("retries") / "data", model=None)) as served:
        yield served


@pytest.fixture
def stored(running: House) -> Callable[[], int]:
    """How many memories there are more than when the test began."""

    def count() -> int:
        return len(json.loads(running.tool("get_memories", {"db": "core", "limit": 100}).body))

    before = count()
    return lambda: count() - before


def by_rest(running: House, key: str, arguments: Any, tool: str = "save_memory") -> Answer:
    headers = {**JSON, "idempotency-key": key}
    return running.ask("POST", f"/tools/{tool}", body=json.dumps(arguments).encode(), headers=headers)


def by_mcp(running: House, key: str, arguments: Any, *, in_header: bool) -> Answer:
    meta = {} if in_header else {"_meta": {"idempotencyKey": key}}
    params = {"name": "save_memory", "arguments": arguments, **meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {**JSON, "mcp-protocol-version": "2025-11-25", **({"idempotency-key": key} if in_header else {})}
    return running.ask("POST", "/mcp", body=body, headers=headers)


def by_command(running: House, key: str, text: str) -> Answer:
    headers = {**JSON, "idempotency-key": key}
    body = json.dumps({"text": text, "dialect": "brain"}).encode()
    return running.ask("POST", "/memories/add", body=body, headers=headers)


def test_a_retry_by_rest_is_answered_as_the_first_and_stores_nothing(running: House, stored: Any) -> None:
    first = by_rest(running, "rest-1", FACT)
    again = by_rest(running, '"rest-1"', FACT)  # as a structured string
    assert (first.status, again.status, again.body, stored()) == (200, 200, first.body, 1)
    assert by_rest(running, "rest-2", FACT).body != first.body
    assert stored() == 2


@pytest.mark.parametrize("in_header", [True, False], ids=["header", "_meta"])
def test_a_retry_by_mcp_is_answered_as_the_first_and_stores_nothing(
    running: House, stored: Any, in_header: bool
) -> None:
    first, again = (by_mcp(running, f"mcp-{in_header}", FACT, in_header=in_header) for _ in range(2))
    assert (first.status, again.body, stored()) == (200, first.body, 1)


def test_a_retry_by_another_door_is_the_same_call(running: House, stored: Any) -> None:
    assert by_rest(running, "doors", FACT).status == 200
    assert by_mcp(running, "doors", FACT, in_header=True).status == 200
    assert stored() == 1


def test_a_retried_command_stores_one_memory(running: House, stored: Any) -> None:
    first, again = (by_command(running, "command", "The oven is hot at six.") for _ in range(2))
    assert (first.status, again.body, stored()) == (200, first.body, 1)


def test_a_key_of_another_call_is_refused(running: House, stored: Any) -> None:
    assert by_rest(running, "taken", FACT).status == 200
    other = by_rest(running, "taken", {**FACT, "content": "Another fact."})
    assert (other.status, b"Use a new key" in other.body) == (409, True)
    other_tool = by_rest(running, "taken", {"path": "a", "content": "b"}, tool="add_memory")
    assert (other_tool.status, stored()) == (409, 1)


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
def test_a_key_that_is_none_is_refused_by_name(running: House, stored: Any, key: str) -> None:
    refused = by_rest(running, key, FACT)
    assert (refused.status, b"Idempotency-Key" in refused.body, stored()) == (400, True, 0)


def test_a_refused_write_keeps_no_answer(running: House, stored: Any) -> None:
    taken = {"path": "twice", "content": "once"}
    assert by_rest(running, "", taken, tool="add_memory").status == 400
    assert by_rest(running, "first", taken, tool="add_memory").status == 200
    assert by_rest(running, "second", taken, tool="add_memory").status == 409
    assert running.tool("drop_memory", {"path": "twice"}).status == 200
    assert by_rest(running, "second", taken, tool="add_memory").status == 200


def test_a_key_of_a_read_is_ignored(running: House) -> None:
    assert by_rest(running, "read", {}, tool="list_memories").status == 200
    assert by_rest(running, "read", {"limit": 1}, tool="list_memories").status == 200


def test_callers_with_keys_of_their_own_do_not_share_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    with house(Config(data=tmp_path_factory.mktemp("keyed") / "data", model=None)) as locked:
        keys = [locked.key(), locked.key()]
        locked.told()
        headers = [{**JSON, "idempotency-key": "same", "authorization": f"Bearer {key}"} for key in keys]
        body = json.dumps(FACT).encode()
        answers = [locked.ask("POST", "/tools/save_memory", body=body, headers=one) for one in headers * 2]
        assert [answer.status for answer in answers] == [200] * 4
        assert [answer.body for answer in answers[2:]] == [answer.body for answer in answers[:2]]
        assert answers[0].body != answers[1].body
