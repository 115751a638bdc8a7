"""Text that PostgreSQL can hold, and errors of its driver as Faults."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kernel.core.errors import NO_SPACE
from kernel.engines.postgres.driver import UNREACHABLE, as_fault, escape, is_lost, unescape


class OperationalError(Exception):
    """As the driver calls an error of the connection or the server."""

    def __init__(self, sqlstate: str | None = None) -> None:
        super().__init__()
        self.sqlstate = sqlstate


@given(some.text(some.sampled_from("a\0\ue00001")))
def test_every_text_comes_back_without_nul_on_the_way(text: str) -> None:
    assert "\0" not in escape(text)
    assert unescape(escape(text)) == text


@pytest.mark.parametrize(
    ("state", "code", "message"),
    [
        ("40001", "busy", "The store is busy, try again."),
        ("53100", "storage", NO_SPACE),
        ("25006", "storage", "The database takes no changes: it is a standby, or set to only read."),
        ("08006", "busy", UNREACHABLE),
        (None, "busy", UNREACHABLE),
    ],
)
def test_an_error_of_the_server_is_a_fault(state: str | None, code: str, message: str) -> None:
    fault = as_fault(OperationalError(state))
    assert fault is not None
    assert (fault.code, fault.message) == (code, message)


def test_a_cancelled_statement_was_cancelled_or_took_too_long() -> None:
    cancelled, late = as_fault(OperationalError("57014"), cancelled=True), as_fault(OperationalError("57014"))
    assert cancelled is not None
    assert late is not None
    assert (cancelled.code, late.code) == ("busy", "invalid")


def test_a_bug_is_no_fault_and_no_lost_connection() -> None:
    assert as_fault(ValueError()) is None
    assert not is_lost(OperationalError("42601"))
