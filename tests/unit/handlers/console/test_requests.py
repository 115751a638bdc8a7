"""A text from a form has the line ends of the text that the form showed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.console.requests import with_line_ends_of

TEXTS = st.lists(st.sampled_from(["\r\n", "\n", "\r", "a", "b", "\x0b", "\u2028"]), max_size=12).map("".join)


def by_browser(text: str) -> str:
    """The text as a form returns it, and as it is read from there."""
    return re.sub("\r\n|\r", "\n", text)


@given(TEXTS)
def test_unchanged_text_stays_as_it_was(text: str) -> None:
    assert with_line_ends_of(text, by_browser(text)) == text


@given(TEXTS, TEXTS)
def test_changed_text_is_what_was_typed_but_for_its_line_ends(before: str, typed: str) -> None:
    assert by_browser(with_line_ends_of(before, by_browser(typed))) == by_browser(typed)


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ("a\r\nb\r\n", "a\nc\nb\n", "a\r\nc\r\nb\r\n"),
        ("a\nb\r\nc\n", "a\nB\nc\n", "a\nB\r\nc\n"),
        ("a\r\nb\nc\r\n", "a\nb\nC\n", "a\r\nb\nC\r\n"),
        ("a\r\nb", "a\nb\n", "a\r\nb\r\n"),
        ("a\nb\r\nc", "a\nB\nC", "a\nB\r\nC"),
        ("a", "a\n", "a\n"),
        ("one line", "two\nlines", "two\nlines"),
        ("", "two\nlines\n", "two\nlines\n"),
        ("a\r\n", "", ""),
    ],
)
def test_new_lines_end_as_most_lines_of_the_text_before(before: str, typed: str, after: str) -> None:
    assert with_line_ends_of(before, typed) == after
