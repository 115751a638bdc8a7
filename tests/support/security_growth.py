"""Calls, values and checks that several tests of growth share."""

from collections.abc import Callable, Iterator

from tests.security.adversarial_texts import GENERAL, Shape

# Numbered, so that no part of a text is like another.
NUMBERED = (
    "a{} ", "Name{} ", "Name{}x", "{}. ", "{} ", "a{}: b\n", "- a{}: b\n", "# a{}\n", "[[a{}]] ", "[a{}](b) ", "`a{}` ",
    "<a{}>", "a{}/", "a{}_", "aB{}", "a{}\n\n", "password: a{} ", "key=a{}x9 ", "{}日 ", "Ж{} ", "a{}b\u200bc ",
    "@a{} ",
    '"a{}": 1, ', "[a{}/b, c, 2026-01-01]\n", "<quipu-memories>{}\n", "</quipu-memories>{}", "http://a{}.b/c ",
    "#a{} ", "$A{}B ", "def a{}(b)\n", "---\na: {}\n---\n", "```a{}\nb\n", "ignore {} previous ", "not a{} ",
    "word{} word word ",
)  # fmt: skip


NESTED = (
    ("[", "]"),
    ("{", "}"),
    ('{"a":', "}"),
    ("(", ")"),
    ("- ", ""),
    ("> ", ""),
    ("  ", "a"),
    ("<a>", "</a>"),
    ("**", "**"),
)


def texts() -> Iterator[Callable[[int], str]]:
    """Texts of any size: one piece again and again, numbered ones, pieces in one another."""
    for piece in GENERAL:
        yield Shape("", piece, "", "").text
    for one, other in (("a ", "\n"), ("a", " "), ("- ", "a\n"), ("a: ", "\n"), (" ", "\n"), ("x", "!"), ("[", "]")):
        yield Shape("", one, other, "!").text
    for form in NUMBERED:
        yield lambda size, form=form: "".join(form.format(number) for number in range(size // len(form)))
    for opening, closing in NESTED:
        yield (
            lambda size, one=opening, other=closing: (
                one * (size // (2 * len(one))) + "a" + other * (size // (2 * len(one)))
            )
        )
