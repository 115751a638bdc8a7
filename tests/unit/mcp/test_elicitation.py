"""Progress, logs and input requests of handlers, and which of them reach the client."""

import json
from typing import Any

import msgspec
import pytest

from kernel.mcp.elicitation import Emitter, missing
from kernel.mcp.messages import Capabilities

FORM = {"method": "elicitation/create", "params": {"message": "Who?"}}
PAGE = {"method": "elicitation/create", "params": {"message": "Open", "mode": "url", "url": "https://x.invalid/"}}
MODEL = {"method": "sampling/createMessage", "params": {"messages": []}}
TOOLS = {"method": "sampling/createMessage", "params": {"messages": [], "tools": []}}
ROOTS = {"method": "roots/list"}


@pytest.mark.parametrize(
    ("wanted", "offered", "lacking"),
    [
        (FORM, {}, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": {}}, {}),
        (FORM, {"elicitation": {"form": {}}}, {}),
        (FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (PAGE, {"elicitation": {"url": {}}}, {}),
        (MODEL, {}, {"sampling": {}}),
        (MODEL, {"sampling": {}}, {}),
        (TOOLS, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (TOOLS, {"sampling": {"tools": {}}}, {}),
        (ROOTS, {}, {"roots": {}}),
        (ROOTS, {"roots": {}}, {}),
    ],
)
def test_missing_capability_is_reported_as_the_client_would_declare_it(wanted: Any, offered: Any, lacking: Any) -> None:
    assert missing({"a": wanted}, msgspec.convert(offered, Capabilities)) == lacking


def test_all_missing_capabilities_are_reported_at_once() -> None:
    lacking = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {"tools": {}}}
    inputs = {"a": FORM, "b": PAGE, "c": ROOTS, "d": TOOLS, "e": MODEL}
    assert missing(inputs, Capabilities()) == lacking


def test_progress_is_sent_only_when_it_increases_and_is_finite() -> None:
    sent: list[bytes] = []
    emitter = Emitter(sent.append, "t", None, "first")
    for value in (0, 0, -1, 1, 0.5, float("nan"), float("inf"), 2):
        emitter.progress(value, float("inf"), None)
    assert [json.loads(one)["params"] for one in sent] == [
        {"progressToken": "t", "progress": value} for value in (0, 1, 2)
    ]


def test_emitter_without_a_client_sends_nothing() -> None:
    emitter = Emitter(None, "t", "debug", "first")
    emitter.progress(1)
    emitter.log("emergency", "text")


def test_unknown_log_level_raises() -> None:
    with pytest.raises(KeyError):
        Emitter(lambda _: None, None, "debug", "first").log("loud", "text")
