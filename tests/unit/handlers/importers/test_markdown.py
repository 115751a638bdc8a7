"""Markdown of other programs: front matter within bounds, sections, observations and links."""

import time

import pytest

from handlers.importers import markdown
from handlers.importers.markdown import Link, Observation, Section


def test_front_matter_is_read_and_what_is_no_yaml_by_lines() -> None:
    assert markdown.page("---\ntitle: A\ntags: [x, y]\n---\n\nBody.\n") == (
        {"title": "A", "tags": ["x", "y"]},
        "Body.\n",
        False,
    )
    assert markdown.page("---\nglobs: *.ts\n---\nBody.") == ({"globs": "*.ts"}, "Body.", True)
    assert markdown.page("No front matter.") == ({}, "No front matter.", False)
    assert markdown.page("---\nnever closed") == ({}, "---\nnever closed", False)


def test_sections_begin_at_headings_outside_of_code() -> None:
    text = "Before.\n# One #\na\n```\n# not this\n```\n## Empty\n## Two\nb\n"
    assert list(markdown.sections(text)) == [
        Section("", "Before."),
        Section("One", "a\n```\n# not this\n```"),
        Section("Two", "b", ("One",)),
    ]


def test_a_section_names_the_headings_above_it() -> None:
    text = "# Never do\n\n## Force push\na\n### To main\nb\n# Do\nc\n## Test\nd\n"
    assert [(*one.above, one.heading) for one in markdown.sections(text)] == [
        ("Never do", "Force push"),
        ("Never do", "Force push", "To main"),
        ("Do",),
        ("Do", "Test"),
    ]


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("Never do\n========\n\n### Force push\na\n", ("Never do",)),
        ("# Rules\n\nNever do\n--------\n### Force push\na\n", ("Rules", "Never do")),
        ("A paragraph\nof two lines.\n---\n### Force push\na\n", ()),
        ("Never do\nany of this\n---\n### Force push\na\n", ("Never do any of this",)),
        ("a\nb\nc\nd\ne\n---\n### Force push\na\n", ()),
        ("a\nb\nc\nd\nNever do\n===\n### Force push\na\n", ("Never do",)),
        ("<h2 id='x'><b>Never</b> do</h2>\n\n### Force push\na\n", ("Never do",)),
        ("- item\n---\n### Force push\na\n", ()),
        ("```\nls\n```\n---\n### Force push\na\n", ()),
        ("\n---\n### Force push\na\n", ()),
        ("```\nNever do\n===\n```\n### Force push\na\n", ()),
        ("#### Deep\n# Never do\n## Force push\na\n", ("Never do",)),
    ],
)
def test_headings_may_be_underlined(text: str, above: tuple[str, ...]) -> None:
    assert [*markdown.sections(text)][-1] == Section("Force push", "a", above)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("- [decision] Use SQLite #db (fast)", Observation("decision", "Use SQLite #db", ("db",), "fast")),
        ("* likes #tea", Observation("", "likes #tea", ("tea",), "")),
        ("- [ ] a task", None),
        ("- [x] a task #tag", None),
        ("- [text](url)", None),
        ("- [[link]]", None),
        ("- [10:30] at a time", None),
        ("> - [fact] quoted", None),
        ("- plain", None),
    ],
)
def test_observations_have_a_category_or_a_tag(line: str, found: Observation | None) -> None:
    assert list(markdown.observations(line)) == ([found] if found else [])


def test_links_are_relations_where_a_word_stands_before_them() -> None:
    text = '- depends_on [[B]] (why)\n- "part of" [[C|c]]\nsee [[D#x]] and [e](sub/E.md#y) not [f](https://f.md)\n'
    assert list(markdown.links(text)) == [
        Link("depends_on", "B", "why"),
        Link("part of", "C", ""),
        Link("links_to", "D", ""),
        Link("links_to", "sub/E", ""),
    ]


def test_a_time_qualifier_gives_both_ends_of_a_range() -> None:
    assert markdown.span("@effective[2026-06-10,2026-07-27) moved") == ("2026-06-10", "2026-07-27")
    assert markdown.span("@occurred:2026-07-27 moved") == markdown.span("moved") == ("", "")


@pytest.mark.parametrize("letter", ["#", "# ", "[", "[[", "(", "`", "- [", "@", "> ", "a](", "|"])
def test_long_lines_take_time_in_proportion(letter: str) -> None:
    def took(size: int) -> float:
        text = f"- {letter * (size // len(letter))}"
        began = time.thread_time()
        for _ in (*markdown.sections(text), *markdown.observations(text), *markdown.links(text)):
            pass
        return time.thread_time() - began

    assert took(400_000) < 60 * (took(20_000) + 0.002)
