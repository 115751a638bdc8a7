"""Observers see each call once with its outcome; unexpected errors are logged with the id of the call."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.dispatch import Call, Dispatch, Observer, OnOutcome
from kernel.calls.tools import Tool, write
from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER, Caller, Forbidden, Permission, grant
from kernel.server import logs
from kernel.server.app import Kernel, open_kernel
from tests.http import mcp_fixture
from tests.http.mcp_fixture import FIRST, MARKS, RELEASED, STARTED, Words

Calls = list[tuple[str, str]]


def bug(tx: Any, request: Words) -> None:
    """Has a bug on the writer's thread."""
    raise KeyError(request.text)


def observed(folder: Path, *observers: Observer, more: tuple[Tool, ...] = ()) -> Iterator[Dispatch]:
    dialect = FIRST._replace(tools=(*FIRST.tools, *more))
    with mcp_fixture.opened(folder, dialect) as dispatch:
        yield Dispatch(dispatch.store, dispatch.dialects, observers)


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def dispatch(tmp_path: Path, calls: Calls) -> Iterator[Dispatch]:
    def observe(call: Call) -> OnOutcome:
        return lambda outcome, _seconds, _answer: calls.append((call.entry.tool.name, outcome))

    yield from observed(tmp_path, observe)


def call(dispatch: Dispatch, name: str, caller: Caller = ANONYMOUS_CALLER, **arguments: Any) -> Any:
    return asyncio.run(dispatch.call(dispatch.tools[name], msgspec.json.encode(arguments), caller))


def test_observer_sees_each_call_once(dispatch: Dispatch, calls: Calls) -> None:
    call(dispatch, "echo", text="a")
    call(dispatch, "keep", text="a")
    call(dispatch, "fail", code="conflict")
    call(dispatch, "keep", text=3)
    call(dispatch, "echo", text=3)
    call(dispatch, "crash")
    assert calls == [
        ("echo", "ok"),
        ("keep", "ok"),
        ("fail", "conflict"),
        ("keep", "invalid"),
        ("echo", "invalid"),
        ("crash", "internal"),
    ]


def test_forbidden_call_is_reported_as_denied(dispatch: Dispatch, calls: Calls) -> None:
    reader = Caller("reader", grant(Permission.read, frozenset(), True))
    for name in ("echo", "keep"):
        with pytest.raises(Forbidden):
            call(dispatch, name, reader, text="a")
    assert calls == [("echo", "denied"), ("keep", "denied")]


def test_call_cancelled_in_the_queue_is_not_reported(dispatch: Dispatch, calls: Calls) -> None:
    STARTED.clear()
    RELEASED.clear()
    MARKS.clear()

    async def leave() -> None:
        holding = asyncio.ensure_future(dispatch.call(dispatch.tools["hold"], b"{}", ANONYMOUS_CALLER))
        await asyncio.to_thread(STARTED.wait, 10)
        waiting = asyncio.ensure_future(dispatch.call(dispatch.tools["mark"], b'{"text": "late"}', ANONYMOUS_CALLER))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait([waiting])
        RELEASED.set()
        await holding

    asyncio.run(leave())
    call(dispatch, "keep", text="a")
    assert MARKS == []
    assert calls == [("hold", "ok"), ("keep", "ok")]


def test_all_observers_get_the_outcome(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def named(name: str) -> Observer:
        return lambda _call: lambda outcome, _seconds, _answer: outcomes.append(f"{name} {outcome}")

    for dispatch in observed(tmp_path, named("one"), named("two")):
        call(dispatch, "echo", text="a")
    assert outcomes == ["one ok", "two ok"]


def test_failure_is_logged_with_the_id_of_its_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "quipu.calls"):
        for dispatch in observed(tmp_path, logs.observe, more=(write(bug),)):
            call(dispatch, "crash")
            call(dispatch, "bug", text="the mill")
            call(dispatch, "fail", code="conflict")
            call(dispatch, "keep", text="a")
    lines = [record for record in caplog.records if record.name == "quipu.calls"]
    failures = [record for record in caplog.records if record.name == "quipu"]
    ids = [vars(record)["fields"]["call"] for record in lines]
    assert [vars(record)["fields"]["outcome"] for record in lines] == ["internal", "internal", "conflict", "ok"]
    assert [record.getMessage() for record in failures] == [f"call {id_} failed" for id_ in ids[:2]]
    assert len(set(ids)) == 4


def test_kernel_has_no_observers_unless_configured(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.dispatch.observers == []
    observing = open_kernel(Config(tmp_path / "observed", model=None, metrics=True))
    observing.store.close()
    assert len(observing.dispatch.observers) == 1
    assert observing.dispatch.over(observing.store).observers is observing.dispatch.observers
