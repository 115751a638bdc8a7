"""A tool is its function: name, description, types and mode come from there."""

from typing import Any

import msgspec
import pytest

from kernel.dispatch import Dispatch
from kernel.tools import (
    Dialect,
    Hints,
    Hooks,
    InputRequired,
    Interaction,
    Reply,
    Tool,
    exclusive,
    read,
    result_types,
    write,
)


class Question(msgspec.Struct):
    text: str


class Answer(msgspec.Struct):
    text: str


class Other(msgspec.Struct):
    text: str


def answer(tx: Any, request: Question) -> Answer:
    """Answers a question,
    in two lines.
    """
    return Answer(request.text)


def silent(tx: Any, request: Question) -> Answer:
    return Answer(request.text)


def wonder(tx: Any, request: Question, turn: Interaction) -> Answer | Other | InputRequired:
    """Asks back."""
    return InputRequired({})


@pytest.mark.parametrize(("make", "mode"), [(read, "read"), (write, "write"), (exclusive, "exclusive")])
def test_a_tool_takes_its_words_and_types_from_its_function(make: Any, mode: Any) -> None:
    hints = Hints("Answer", idempotent=True)
    wanted = Tool("answer", "Answers a question, in two lines.", Question, Answer, answer, mode, hints)
    assert make(answer, hints) == wanted


def test_a_tool_without_words_has_none_and_the_hints_have_defaults() -> None:
    assert read(silent) == Tool("silent", "", Question, Answer, silent, "read", Hints("", False, False, False))


def test_more_is_said_by_name() -> None:
    def texts(request: Question) -> list[str]:
        return [request.text]

    def many(tx: Any, requests: Any) -> list[Any]:
        return []

    tool = write(answer, hooks=Hooks(texts=texts, batch=many))
    assert (tool.hooks, tool.interactive, tool.input) == (Hooks(texts=texts, batch=many), False, None)


def test_an_ask_is_no_result_type() -> None:
    assert result_types(read(wonder, interactive=True)) == (Answer, Other)
    assert result_types(read(answer)) == (Answer,)


def test_a_name_that_stands_in_two_dialects_is_refused_at_the_start() -> None:
    def reply(tool: Tool, result: Any) -> Reply:
        return Reply(b"", "text/plain")

    one, two = (Dialect(name, "", (read(answer),), reply, lambda fault: Reply(b"", "")) for name in ("one", "two"))
    with pytest.raises(ValueError, match="tool answer stands in two dialects"):
        Dispatch(None, (one, two))  # pyright: ignore[reportArgumentType]
