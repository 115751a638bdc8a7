"""JSON log lines have the fields of a record, and of an error only its type and stack."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from kernel.server import logs

SECRET = "behind the old mill"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restores the logging of the test run."""
    root, calls = logging.getLogger(), logging.getLogger("quipu.calls")
    before = root.handlers[:], root.level, calls.level
    yield
    root.handlers[:], root.level, calls.level = before


def line(monkeypatch: pytest.MonkeyPatch, *, as_json: bool) -> str:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.set_up(as_json=as_json, calls=False)
    try:
        raise KeyError(SECRET)
    except KeyError:
        logging.getLogger("quipu").exception("call %s failed", "1-2", extra={"fields": {"tool": "recall"}})
    return stderr.getvalue()


def test_json_line_of_an_error_has_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    text = line(monkeypatch, as_json=True)
    assert text.count("\n") == 1
    found = json.loads(text)
    assert found.pop("time").endswith("Z")
    (place,) = found.pop("where")
    assert place.endswith(" line")
    assert found == {
        "level": "error",
        "logger": "quipu",
        "message": "call 1-2 failed",
        "tool": "recall",
        "error": "KeyError",
    }
    assert SECRET not in text


def test_text_line_has_traceback_and_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    text = line(monkeypatch, as_json=False)
    assert text.startswith("ERROR call 1-2 failed\nTraceback")
    assert text.endswith("tool=recall\n")


@pytest.mark.parametrize(("calls", "lines"), [(True, 1), (False, 0)])
def test_calls_are_logged_only_if_configured(monkeypatch: pytest.MonkeyPatch, calls: bool, lines: int) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    logs.set_up(as_json=True, calls=calls)
    logging.getLogger("quipu.calls").info("call", extra={"fields": {"tool": "recall"}})
    assert stderr.getvalue().count("\n") == lines
