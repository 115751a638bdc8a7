"""Calls are kept for each tenant: the clients of one do not push out the calls of another."""

import pytest

from kernel.calls.dispatch import Call
from kernel.core.ids import current_call
from kernel.observe.call_log import CallLog
from kernel.security.permissions import FULL_ACCESS, Caller
from kernel.server.app import Kernel
from tests.conftest import entry_named


@pytest.fixture
def log() -> CallLog:
    return CallLog("calls")


def observe(log: CallLog, kernel: Kernel, tenant: str, actor: str) -> None:
    call = Call(entry_named(kernel.dispatch, "recall"), b"{}", Caller(actor, FULL_ACCESS, tenant, ""))
    log.observe(call)("ok", 0.001, None)
    current_call.set("")  # a dispatch does so after each call


def test_names_of_the_clients_of_one_tenant_are_counted_beside_those_of_another(kernel: Kernel, log: CallLog) -> None:
    for number in range(1100):
        observe(log, kernel, "main", f"client-{number}")
    observe(log, kernel, "bob", "bob")
    assert [(count.client, count.calls) for count in log.counts("bob", None)] == [("bob", 1)]
    counts = log.counts("main", None)
    assert (len(counts), sum(count.calls for count in counts)) == (1001, 1100)


def test_calls_of_one_tenant_do_not_push_out_those_of_another(kernel: Kernel, log: CallLog) -> None:
    observe(log, kernel, "bob", "bob")
    for _ in range(1100):
        observe(log, kernel, "main", "client")
    assert [call.client for call in log.newest("bob", None)] == ["bob"]
    assert len(log.newest("main", None)) == 1000


@pytest.mark.slow
def test_the_calls_of_all_tenants_are_bounded(kernel: Kernel, log: CallLog) -> None:
    observe(log, kernel, "bob", "bob")
    for number in range(6):
        for _ in range(1000):
            observe(log, kernel, f"tenant-{number}", "client")
    kept = {name: len(log.newest(name, None)) for name in ("bob", *(f"tenant-{number}" for number in range(6)))}
    assert (sum(kept.values()), kept["bob"]) == (4000, 1)
    assert min(kept[f"tenant-{number}"] for number in range(6)) >= 600
