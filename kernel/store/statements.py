"""Loads the named statements and lists the migrations of the `sql/` folder."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2] / "sql"
_MARK = "-- name:"
_POSTGRES = "postgres"  # folders with the texts that PostgreSQL has of its own


class TableFacts(msgspec.Struct, frozen=True):
    """Facts of tables that the kernel does not know by itself, from `sql/schema/tables.json`."""

    unrecorded: tuple[str, ...]  # prefixes of tables whose rows follow files, so that undo does not record them
    seeded: frozenset[str]  # tables that every store has the same rows in, from its migrations
    paths: frozenset[str]  # tables whose column `path` is a path in the store


class Statement(NamedTuple):
    """One statement: its SQL, the comment after its name, and its file."""

    text: str
    about: str
    file: Path


def parse(source: str, prefix: str, file: Path) -> dict[str, Statement]:
    """Return the `-- name:` blocks of one file, keyed `prefix.name`; raises ValueError on a repeated or empty block."""
    found: dict[str, Statement] = {}
    for block in source.split(_MARK)[1:]:
        name, _, rest = block.partition("\n")
        lines = rest.splitlines()
        about: list[str] = []
        while lines and lines[0].startswith("--"):
            about.append(lines.pop(0).lstrip("- ").strip())
        key = f"{prefix}.{name.strip()}"
        text = "\n".join(lines).strip().removesuffix(";")
        if key in found or not text:
            raise ValueError(f"{file}: statement {key} is empty or is defined twice")
        found[key] = Statement(text, " ".join(about), file)
    return found


def load(root: Path = ROOT) -> dict[str, Statement]:
    """Return every named statement under `root`, keyed by dotted path and name; migrations are left out."""
    return _parsed((parts, file) for parts, file in _files(root) if _POSTGRES not in parts)


def load_postgres(root: Path = ROOT) -> dict[str, Statement]:
    """Return the statements of PostgreSQL alone: its texts for those that `load` returns, and those of its engine."""
    own = ((parts, file) for parts, file in _files(root) if _POSTGRES in parts and "schema" not in parts)
    return _parsed((tuple(part for part in parts if part != _POSTGRES), file) for parts, file in own)


def _files(root: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    for file in sorted(root.rglob("*.sql")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0] != "schema":
            yield parts, file


def _parsed(files: Iterator[tuple[tuple[str, ...], Path]]) -> dict[str, Statement]:
    statements: dict[str, Statement] = {}
    for parts, file in files:
        statements.update(parse(file.read_text(encoding="utf-8"), ".".join(parts), file))
    return statements


def migrations(root: Path = ROOT) -> list[Path]:
    """Return the migration files in the order they apply."""
    return sorted((root / "schema").glob("*.sql"))


@cache
def table_facts() -> TableFacts:
    """Return the facts of `sql/schema/tables.json`."""
    return msgspec.json.decode((ROOT / "schema" / "tables.json").read_bytes(), type=TableFacts)
