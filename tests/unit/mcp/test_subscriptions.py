"""A client that has subscribed to a resource gets a notification of each call that changes it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kernel.mcp.subscriptions import Subscriptions, listen_result
from kernel.server.app import Kernel
from tests.conftest import Call

URI = "memory://graph"
UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}}
ENTITY = {"entities": [{"name": "mill", "entityType": "house", "observations": []}]}
Open = Callable[..., Subscriptions]


@pytest.fixture
def sent() -> list[Any]:
    return []


@pytest.fixture
def subscriptions(kernel: Kernel, sent: list[Any]) -> Subscriptions:
    def send(message: bytes) -> None:
        sent.append(json.loads(message))

    whole = {
        dialect.offers.resources.whole
        for dialect in kernel.dispatch.dialects
        if dialect.offers.resources is not None and dialect.offers.resources.whole
    }
    return Subscriptions(kernel.dispatch, whole, send)


def uri_of(subscriptions: Subscriptions) -> str:
    return next(iter(subscriptions._known))


def test_a_write_of_the_dialect_is_told_and_a_read_is_not(
    subscriptions: Subscriptions, call: Call, sent: list[Any]
) -> None:
    uri = uri_of(subscriptions)
    subscriptions.add(uri)
    call("search_nodes", query="mill")
    assert sent == []
    call("create_entities", **ENTITY)
    subscriptions.close()
    call("create_entities", **ENTITY)
    assert sent == [{**UPDATED, "params": {"uri": uri}}]


def test_an_unknown_resource_is_accepted_without_effect(
    subscriptions: Subscriptions, call: Call, sent: list[Any]
) -> None:
    subscriptions.add("memory://other")
    call("create_entities", **ENTITY)
    subscriptions.close()
    assert sent == []


def test_a_subscription_ends_with_the_id_of_its_request() -> None:
    result = json.loads(listen_result(b"7", {"name": "quipu"}))
    assert (result["id"], result["result"]["resultType"]) == (7, "complete")
