"""File names and types are made of titles and names as the original makes them, without its losses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.notes.slug import kebab, slug, title_of


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Architectural Decision", "architectural-decision"),
        ("architecturalDecision", "architectural-decision"),
        ("architectural_decision", "architectural-decision"),
        ("architectural/decision", "architectural-decision"),
        ("architectural-decision", "architectural-decision"),
        ("MyProject", "my-project"),
        ("myAwesomeProject", "my-awesome-project"),
        ("  --a  b__c// ", "a-b-c"),
        ("", ""),
        ("/", ""),
    ],
)
def test_every_notation_of_a_type_gives_one_name(name: str, made: str) -> None:
    assert kebab(name) == made


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("  Spaced   Title -- x ", "spaced-title-x"),
        ("Use PostgreSQL: as primary (2026)!", "use-postgresql-as-primary-2026"),
        ("../../etc/x", "etcx"),
        ("snake_case", "snakecase"),
        ("会議 メモ", "会議-メモ"),
        ("Größe", "größe"),
        ("Cafe\u0301", "caf\u00e9"),
        ("हिन्दी", "हिन्दी"),
        ("🎉 ✨", "memory"),
        ("\u3164\u200b", "memory"),
        ("...", "memory"),
        ("x" * 500, "x" * 120),
        ("語" * 500, "語" * 40),
    ],
)
def test_a_title_names_its_file(title: str, stem: str) -> None:
    assert slug(title) == stem


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80))
def test_an_ascii_title_names_its_file_as_in_the_original_less_hyphens_at_the_edges(title: str) -> None:
    original = re.sub(r"-+", "-", re.sub(r"\s+", "-", re.sub(r"[^a-z0-9\s-]", "", title.lower())))

    assert slug(title) == (original.strip("-") or "memory")


@given(st.text(max_size=300))
def test_slug_has_no_separators_and_bounded_length(title: str) -> None:
    stem = slug(title)

    assert stem
    assert not set(stem) & set('/\\.\0:*?"<>| \n')
    assert len(f"{stem}-12345.md".encode()) <= 255
    assert slug(stem) == stem


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("learning/use-postgresql-as-primary-2026.md", "Use Postgresql As Primary 2026"),
        ("a.md", "A"),
        ("x/.md", ""),
        ("x/éa--b.md", "Éa B"),
        ("x/CamelCase.md", "CamelCase"),
    ],
)
def test_a_file_without_a_title_is_called_after_its_name(path: str, title: str) -> None:
    assert title_of(path) == title
