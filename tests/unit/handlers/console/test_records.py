"""The beginnings of texts as the lists of the console show them."""

import pytest

from handlers.console.records import plain, preview, without_key

MARKED = "# Plan\n\n- **Call** the `bank`\n  * on Monday\n\n---\n| day | who |\n|---|---|\n| Friday | Mia |"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (MARKED, "Plan · Call the bank · on Monday · day | who · Friday | Mia"),
        ("The API listens on 8114,\nsince March.", "The API listens on 8114, since March."),
        ("--force is forbidden, and so is -5.", "--force is forbidden, and so is -5."),
        ("\u3000\n \t\n***\n```\nx = 1\n```", "x = 1"),
        ("", ""),
    ],
)
def test_preview_is_one_line_without_marks(text: str, shown: str) -> None:
    assert preview(text) == shown


@pytest.mark.parametrize("marks", ["", "- **a**\n" * 20])
def test_preview_of_a_longer_text_ends_with_an_ellipsis(marks: str) -> None:
    shown = preview(marks + "word " * 200)
    assert shown.endswith("…")
    assert len(shown) <= 140


def test_plain_keeps_the_lines_that_say_something() -> None:
    assert plain(MARKED, 400) == "Plan\nCall the bank\non Monday\nday | who\nFriday | Mia"
    assert plain("one two three", 9) == "one two…"
    assert plain("x" * 20, 9) == f"{'x' * 9}…"


def test_key_before_a_text_is_left_out() -> None:
    assert without_key("home/car\nAbout cars", "paths/home/car") == "About cars"
    assert without_key("home/cars\nAbout cars", "paths/home/car") == "home/cars\nAbout cars"
