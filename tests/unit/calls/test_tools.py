"""A tool is its function: name, description, types and mode come from there."""

from typing import Any

import msgspec
import pytest

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Dispatch
from kernel.calls.tools import Hints, Hooks, Reply, Tool, exclusive, read, write


class Question(msgspec.Struct):
    text: str


class Answer(msgspec.Struct):
    text: str


def answer(tx: Any, request: Question) -> Answer:
    """Answers a question,
    in two lines.
    """
    return Answer(request.text)


def silent(tx: Any, request: Question) -> Answer:
    return Answer(request.text)


@pytest.mark.parametrize(("make", "mode"), [(read, "read"), (write, "write"), (exclusive, "exclusive")])
def test_tool_takes_description_and_types_from_its_handler(make: Any, mode: Any) -> None:
    hints = Hints("Answer", idempotent=True)
    wanted = Tool("answer", "Answers a question, in two lines.", Question, Answer, answer, mode, hints)
    assert make(answer, hints) == wanted


def test_tool_without_docstring_has_no_description() -> None:
    assert read(silent) == Tool("silent", "", Question, Answer, silent, "read", Hints("", False, False, False))


def test_options_are_set_by_name() -> None:
    def texts(request: Question) -> list[str]:
        return [request.text]

    def many(tx: Any, requests: Any) -> list[Any]:
        return []

    tool = write(answer, hooks=Hooks(texts=texts, batch=many))
    assert (tool.hooks, tool.interactive, tool.input) == (Hooks(texts=texts, batch=many), False, None)


def test_tool_name_in_two_dialects_is_refused() -> None:
    def reply(tool: Tool, result: Any) -> Reply:
        return Reply(b"", "text/plain")

    one, two = (Dialect(name, "", (read(answer),), reply, lambda fault: Reply(b"", "")) for name in ("one", "two"))
    with pytest.raises(ValueError, match="tool answer stands in two dialects"):
        Dispatch(None, (one, two))  # pyrefly: ignore[bad-argument-type]
