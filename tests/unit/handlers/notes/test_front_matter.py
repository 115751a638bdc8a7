"""Front matter is read in every form people write, replaced line by line, and kept if it cannot be parsed."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handlers.notes.front_matter import content, parse, render, to_list, value
from kernel.core.text import yaml_block, yaml_flow

CONTRACT = """---
memory_type: architectural-decision
tags: [database, infrastructure]
created: 2026-02-16T10:30:00.000Z
modified: 2026-02-16T10:30:00.000Z
---

## Decision

Content here...
"""
ODD = r"""---
# the team's own
title: "It's \"quoted\" \u00e9 \U0001F600"
'single': 'it''s'
tags:
- one
-   'two, three'   # with a comment
- # nothing

nested:
  memory_type: not this one
  list: [1, 2]
folded: >-
  two
  lines
literal: |
  a: b

  c
flow: [
  a, "b, c",
  'd'
]
plain: two
  lines # and a comment
empty:
tilde: ~
no key here
? complex
: key
memory_type: learning
---
body
"""


def test_the_example_of_the_contract_is_read() -> None:
    page = parse(CONTRACT)

    assert [value(page, key) for key in ("memory_type", "tags", "created", "id")] == [
        "architectural-decision",
        ["database", "infrastructure"],
        "2026-02-16T10:30:00.000Z",
        None,
    ]
    assert content(page) == "## Decision\n\nContent here..."


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("title", 'It\'s "quoted" é 😀'),
        ("single", "it's"),
        ("tags", ["one", "two, three"]),
        ("folded", "two lines"),
        ("literal", "a: b\n\nc"),
        ("flow", ["a", "b, c", "d"]),
        ("plain", "two lines"),
        ("empty", None),
        ("tilde", None),
        ("memory_type", "learning"),
        ("list", None),
    ],
)
def test_values_are_read_in_every_form_people_use(key: str, expected: object) -> None:
    assert value(parse(ODD), key) == expected


def test_only_the_changed_line_differs() -> None:
    page = parse(ODD)

    assert render(page, {}, "body").replace("---\n\nbody", "---\nbody") == ODD
    changed = render(page, {"memory_type": "memory_type: issue", "modified": "modified: now"}, "new")
    assert changed == ODD.replace("memory_type: learning\n---\nbody", "memory_type: issue\nmodified: now\n---\n\nnew")


def test_last_of_repeated_keys_is_read_and_replaced() -> None:
    text = "---\nmemory_type: one\nmemory_type: two\n---\n\nx\n"

    assert value(parse(text), "memory_type") == "two"
    assert render(parse(text), {"memory_type": "memory_type: three"}, "x") == text.replace("two", "three")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "\n",
        "---",
        "---\n",
        "---\nmemory_type: x\n",
        "--- \nprose, then a line\n---\nmore",
        "---\n\n---\n\nbetween two rules",
        "----\na: b\n----\n",
        " ---\na: b\n---\n",
        "text\n---\na: b\n---\n",
    ],
)
def test_text_without_front_matter_is_content(text: str) -> None:
    page = parse(text)

    assert page.entries is None
    assert content(page) == text.removesuffix("\n")
    assert [value(page, "a"), value(page, "memory_type")] == [None, None]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_are_kept(end: str, mark: str) -> None:
    text = mark + "---\ntags: a, b\nkey: 'x'\n---\n\ntwo\nlines\n".replace("\n", end)
    page = parse(text)

    assert [value(page, "tags"), value(page, "key"), content(page)] == ["a, b", "x", f"two{end}lines"]
    assert render(page, {}, content(page)) == text
    assert render(page, {"tags": "tags: [c]"}, "one") == mark + "---\ntags: [c]\nkey: 'x'\n---\n\none\n".replace(
        "\n", end
    )


HOSTILE = [
    "---\nmemory_type: evil\n---\n",
    "---",
    "--- ",
    "...",
    "\n---\n",
    "\n\n\n",
    "\r\n",
    "a\r",
    "\ufeff",
    "\ufeffx",
    "key: value",
    "- a\n- b",
    "```\n---\n```",
    "%TAG ! tag:x,2000:",
    "&a [*a]",
    "!!python/object:os.system",
    "# x\n\n",
    "<script>",
    "a\0b",
    "\x1b[31m",
    "\u2028\u2029\x85",
    "tab\there",
    "trailing \n ",
    "|",
    ">",
    "'",
    '"',
    "{}",
    "[]",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("head", [CONTRACT, CONTRACT.replace("\n", "\r\n"), "\ufeff" + CONTRACT, ODD, "no head"])
def test_hostile_content_round_trips(text: str, head: str) -> None:
    file = render(parse(head), {"modified": "modified: x"}, text)

    assert content(parse(file)) == text
    assert value(parse(file), "memory_type") == value(parse(head), "memory_type")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(HOSTILE), st.booleans())
def test_any_content_round_trips(text: str, crlf: bool) -> None:
    page = parse(CONTRACT.replace("\n", "\r\n") if crlf else CONTRACT)

    assert content(parse(render(page, {}, text))) == text


@given(st.text(alphabet="-.: \n\r#'\"[]{}|>ab,&*!?%", max_size=80))
def test_any_file_parses_and_rewrite_keeps_every_line(text: str) -> None:
    page = parse(text)
    for key in ("a", "b", "ab", ""):
        value(page, key)
    again = parse(render(page, {}, "body"))

    assert content(again) == "body"
    assert [entry.lines for entry in again.entries or ()] == [entry.lines for entry in page.entries or ()]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40))
def test_written_text_is_read_back_by_us_and_pyyaml(text: str) -> None:
    line = yaml_block([("title", text)]).rstrip("\n")
    page = parse(f"---\n{line}\n---\n\nx\n")

    assert value(page, "title") == text == yaml.safe_load(line)["title"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=12)))
def test_written_list_is_read_back_by_us_and_pyyaml(items: list[str]) -> None:
    line = f"tags: {yaml_flow(items)}"

    assert value(parse(f"---\n{line}\n---\n\nx\n"), "tags") == items == yaml.safe_load(line)["tags"]


YAML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@pytest.mark.slow
@given(st.dictionaries(YAML_TEXT, YAML_TEXT | st.lists(YAML_TEXT, min_size=1, max_size=4), max_size=5), st.booleans())
def test_pyyaml_output_is_read_like_pyyaml(pairs: dict[str, object], flow: bool) -> None:
    head = yaml.safe_dump(pairs, allow_unicode=True, default_flow_style=None if flow else False, width=1000)
    page = parse(f"---\n{head}---\n\nx\n")
    for key, wanted in pairs.items():
        if not head.startswith(("{", "?")) and f"? {key}" not in head:
            assert value(page, key) == wanted


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ("a, b", ["a", "b"]),
        ("one", ["one"]),
        ('["a", "b, c"]', ["a", "b, c"]),
        (["a ", "", "b"], ["a", "b"]),
        (None, []),
        ("", []),
        (" , ", []),
        ("[a", ["a"]),
    ],
)
def test_every_notation_of_a_list_is_read(given: str | list[str] | None, items: list[str]) -> None:
    assert to_list(given) == items


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a: b\n", "- x\n", "\n", '"', "[", "\\", " ", "a:", "'", "#", "k: [\n", ", '"])
def test_parse_time_is_linear(piece: str) -> None:
    """A hundred times the text takes ten thousand times as long where something is quadratic."""

    def took(count: int) -> float:
        text = f"---\nkey: {piece * count}\n---\n"
        begun = time.thread_time()  # threads that other tests have left count in the time of the process
        value(parse(text), "key")
        return time.thread_time() - begun

    took(1000)
    assert min(took(100_000) for _ in range(3)) < 1000 * max(took(1000), 0.001)
