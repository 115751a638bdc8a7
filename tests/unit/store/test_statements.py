"""Named blocks become statements; repeated and empty ones are errors."""

from pathlib import Path

import pytest

from kernel.store import statements
from kernel.store.statements import Statement, parse

FILE = Path("brain/links.sql")


def test_block_has_name_description_and_one_statement() -> None:
    source = """-- name: add
-- Gives the id back
-- only if it was free.
INSERT INTO brain_link (id) VALUES (:id)
RETURNING id;

-- name: count

SELECT count(*) -- all of them
FROM brain_link;
"""
    assert parse(source, "brain.links", FILE) == {
        "brain.links.add": Statement(
            "INSERT INTO brain_link (id) VALUES (:id)\nRETURNING id",
            "Gives the id back only if it was free.",
            FILE,
        ),
        "brain.links.count": Statement("SELECT count(*) -- all of them\nFROM brain_link", "", FILE),
    }


@pytest.mark.parametrize(
    "source", ["-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "-- name: a\n", "-- name: a\n-- only words"]
)
def test_repeated_or_empty_block_is_an_error_with_its_name(source: str) -> None:
    with pytest.raises(ValueError, match=r"brain/links\.sql: statement brain\.links\.a is empty or is defined twice"):
        parse(source, "brain.links", FILE)


def test_fragments_stand_in_the_statements_of_their_dialect(tmp_path: Path) -> None:
    for name, text in {
        "brain.sql": "-- fragment: pair\nleft_id,\nright_id;\n",
        "brain/links.sql": (
            "-- fragment: chosen\nFROM link AS l WHERE l.id = :id;\n\n"
            "-- name: get\nSELECT l.{pair} {chosen};\n-- name: add\nINSERT INTO link ({pair}) SELECT {fields 2};\n"
        ),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert {key: statement.text for key, statement in statements.load(tmp_path).items()} == {
        "brain.links.get": "SELECT l.left_id,\nl.right_id FROM link AS l WHERE l.id = :id",
        "brain.links.add": "INSERT INTO link (left_id,\nright_id) SELECT value ->> 0, value ->> 1",
    }


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"brain.sql": "-- fragment: a\nx;", "paths.sql": "-- name: b\nSELECT {a};"}, "paths.b refers to a"),
        ({"brain.sql": "-- fragment: a\nx;", "brain/links.sql": "-- fragment: a\ny;"}, "is defined twice"),
    ],
)
def test_unknown_or_repeated_fragment_is_an_error(tmp_path: Path, files: dict[str, str], error: str) -> None:
    (tmp_path / "brain").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=error):
        statements.load(tmp_path)


def test_keys_are_path_and_name_without_migrations(tmp_path: Path) -> None:
    for name, text in {
        "paths.sql": "-- name: get\nSELECT 1;",
        "brain/links.sql": "-- name: get\nSELECT 2;",
        "schema/0001_kernel.sql": "CREATE TABLE doc (id INTEGER);",
        "schema/0002_paths.sql": "CREATE TABLE paths (id INTEGER);",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert {key: statement.text for key, statement in statements.load(tmp_path).items()} == {
        "brain.links.get": "SELECT 2",
        "paths.get": "SELECT 1",
    }
    assert [file.name for file in statements.migrations(tmp_path)] == ["0001_kernel.sql", "0002_paths.sql"]
