"""A memory has the content of its file; its path and its time fill gaps."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handlers.notes.note_file import (
    ParsedMemory,
    decode_exact,
    decode_lossy,
    encode_exact,
    index_text,
    new_text,
    parse_memory,
    title_line,
    updated_text,
)

NOON = 1_771_237_800_000_000_000  # 2026-02-16T10:30:00Z
TIME = "2026-02-16T10:30:00.000Z"
CONTRACT = """---
memory_type: architectural-decision
tags: [database, infrastructure]
created: 2026-02-16T10:30:00.000Z
modified: 2026-02-16T10:30:00.000Z
---

## Decision

Content here...

## Rationale

- Point 1
- Point 2
"""
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).map(str.strip).filter(bool)


def test_a_new_file_is_the_example_of_the_contract_to_the_byte() -> None:
    content = CONTRACT.partition("---\n\n")[2].removesuffix("\n")
    memory = ParsedMemory("A Title", "architectural-decision", ("database", "infrastructure"), TIME, TIME, content)

    assert new_text("architectural-decision/a-title.md", memory) == CONTRACT
    assert parse_memory("architectural-decision/a-title.md", CONTRACT, 0) == memory


def test_title_is_written_if_file_name_does_not_give_it() -> None:
    assert title_line("x/use-sql.md", "Use Sql") == {}
    assert title_line("x/use-sql.md", "Use SQL: now") == {"title": 'title: "Use SQL: now"'}
    assert title_line("x/memory.md", "🎉") == {"title": 'title: "🎉"'}


@pytest.mark.slow
@given(LINES, st.lists(LINES, max_size=4, unique=True), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_memory_round_trips_and_pyyaml_agrees(title: str, tags: list[str], content: str) -> None:
    memory = ParsedMemory(title, "learning", tuple(tags), TIME, TIME, content)
    text = new_text("learning/x.md", memory)
    head = yaml.safe_load(text.split("---\n")[1])

    assert parse_memory("learning/x.md", decode_lossy(text.encode()), 0) == memory
    assert (head["memory_type"], head["tags"], head.get("title", "X")) == ("learning", tags, title)


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("learning/some-note.md", "plain text\n", ParsedMemory("Some Note", "learning", (), TIME, TIME, "plain text")),
        ("note.md", "x", ParsedMemory("Note", "context", (), TIME, TIME, "x")),
        ("decision/architectural/a.md", "x\n", ParsedMemory("A", "decision", (), TIME, TIME, "x")),
        ("learning/.md", "", ParsedMemory("learning/.md", "learning", (), TIME, TIME, "")),
        ("Some Folder/a.md", "", ParsedMemory("A", "some-folder", (), TIME, TIME, "")),
        (
            "learning/a.md",
            "---\nid: 1\ntags: one, two\nmemory_type: 'Design Decision'\ntitle: ''\n---\nbody",
            ParsedMemory("A", "design-decision", ("one", "two"), TIME, TIME, "body"),
        ),
        (
            "learning/a.md",
            "---\ntags: '[\"one\", \"two\"]'\ncreated: '2026-01-02'\nmodified: 2026-01-02 03:04:05+01:00\n---\n",
            ParsedMemory("A", "learning", ("one", "two"), "2026-01-02T00:00:00.000Z", "2026-01-02T02:04:05.000Z", ""),
        ),
        (
            "learning/a.md",
            "---\ncreated: last week\nmemory_type:\n  - odd\ntitle: [odd]\ntags: {a: b}\n---\n\n---\nhr\n---\n",
            ParsedMemory("A", "learning", ("{a: b}",), TIME, TIME, "---\nhr\n---"),
        ),
        (
            "learning/a.md",
            '\ufeff---\r\ntags:\r\n  - a\r\nmodified: "2026-01-02T00:00:00.000Z"\r\n---\r\nx\r\n',
            ParsedMemory("A", "learning", ("a",), "2026-01-02T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "x"),
        ),
    ],
)
def test_real_world_files_are_read(path: str, text: str, found: ParsedMemory) -> None:
    assert parse_memory(path, text, NOON) == found


def test_update_keeps_unrelated_lines() -> None:
    before = "---\nid: 7\ntags: a, b\nrelated:\n  - /x\nodd line\ncreated: '2026-01-01'\n---\nold\n"
    was = parse_memory("issue/a.md", before, NOON)
    now = was._replace(memory_type="issue", modified=TIME, content="new")

    assert updated_text(before, "issue/a.md", was, now) == (
        "---\nid: 7\ntags: a, b\nrelated:\n  - /x\nodd line\ncreated: '2026-01-01'\n"
        f"memory_type: issue\nmodified: {TIME}\n---\n\nnew\n"
    )
    assert "tags: [c]\nrelated" in updated_text(before, "issue/a.md", was, now._replace(tags=("c",)))


def test_update_adds_front_matter_with_inferred_values() -> None:
    was = parse_memory("issue/a.md", "old\n", NOON)
    later = "2026-03-01T00:00:00.000Z"

    assert updated_text("old\n", "issue/a-2.md", was, was._replace(modified=later, content="new")) == (
        f"---\nmemory_type: issue\ncreated: {TIME}\nmodified: {later}\ntitle: A\n---\n\nnew\n"
    )


def test_invalid_utf8_is_kept_in_file_and_replaced_in_answers() -> None:
    data = b"---\nodd: \xff\xfe\nmemory_type: issue\n---\nold\xff\n"
    was = parse_memory("issue/a.md", decode_lossy(data), NOON)
    assert was.content == "old\ufffd"

    text = updated_text(decode_exact(data), "issue/a.md", was, was._replace(modified=TIME, content="new"))
    assert encode_exact(text).startswith(b"---\nodd: \xff\xfe\nmemory_type: issue\n")


def test_a_memory_is_found_by_title_tags_and_content() -> None:
    assert index_text(ParsedMemory("Title", "issue", ("a", "b"), "", "", "Body")) == "Title\na, b\nBody"
    assert index_text(ParsedMemory("Title", "issue", (), "", "", "")) == "Title"


@pytest.mark.parametrize("time", [-(10**30), -1, 0, 10**18, 10**30])
def test_a_file_of_any_time_is_read(time: int) -> None:
    assert parse_memory("a.md", "x", time).created.endswith("Z")
