"""Every code has a status, and a Fault has its code and message."""

from typing import get_args

from kernel.core.errors import HTTP_STATUS, Code, Fault


def test_every_code_has_a_status() -> None:
    assert set(HTTP_STATUS) == set(get_args(Code))


def test_caller_errors_are_4xx_and_server_errors_5xx() -> None:
    ours = {code for code, status in HTTP_STATUS.items() if status >= 500}
    assert ours == {"busy", "storage", "internal"}


def test_fault_carries_code_message_and_label() -> None:
    fault = Fault("not_found", "There is no such memory", "MEMORY_NOT_FOUND")
    assert (fault.code, fault.message, fault.label, str(fault)) == (
        "not_found",
        "There is no such memory",
        "MEMORY_NOT_FOUND",
        "There is no such memory",
    )
    assert (Fault("busy", "Later").label, Fault("busy", "Later").context) == ("", {})
    assert Fault("invalid", "No", "E1", {"field": "name"}).context == {"field": "name"}
    assert Fault("busy", "Later").tool == ""
