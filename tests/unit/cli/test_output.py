"""What commands print: times as people type them, colours for terminals that have them, and questions."""

import io

import pytest

from kernel.cli.output import confirm, has_colours, moment, note, paint
from kernel.core.errors import Fault


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_typed_time_is_stored_in_utc() -> None:
    assert moment("--until", "2026-03-01T12:00:00+02:00") == "2026-03-01T10:00:00.000Z"
    assert moment("--until", "") == ""


def test_a_time_that_is_none_is_refused_by_the_name_of_its_option() -> None:
    with pytest.raises(Fault, match="--until must be"):
        moment("--until", "soonish")


def test_colours_are_for_terminals_that_have_them() -> None:
    terminal = Terminal()
    assert has_colours(terminal, {"TERM": "xterm"})
    assert not has_colours(terminal, {"TERM": "dumb"})
    assert not has_colours(terminal, {"TERM": "xterm", "NO_COLOR": "1"})
    assert not has_colours(io.StringIO(), {"TERM": "xterm"})
    assert paint("ok", "green", terminal, {"TERM": "xterm"}) == "\x1b[32mok\x1b[0m"
    assert paint("ok", "green", io.StringIO(), {}) == "ok"


def test_a_name_in_a_note_gives_the_terminal_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    note("folder \x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


def test_without_a_terminal_a_question_is_answered_by_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(Fault, match="quipu restore needs --yes"):
        confirm("Replace it?", "quipu restore")


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), (" YES \n", True), ("n\n", False), ("\n", False)])
def test_only_yes_is_agreement(monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if agreed:
        confirm("Replace it?", "quipu restore")
    else:
        with pytest.raises(Fault, match="Nothing was changed"):
            confirm("Replace it?", "quipu restore")
