"""Loads the named statements and lists the migrations of the `sql/` folder."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2] / "sql"
_MARK = "-- name:"
_NO_STATEMENTS = {"schema", "postgres"}  # migrations, and what PostgreSQL has a text of its own for


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
    found: dict[str, Statement] = {}
    for file in sorted(root.rglob("*.sql")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0] not in _NO_STATEMENTS:
            found.update(parse(file.read_text(encoding="utf-8"), ".".join(parts), file))
    return found


def migrations(root: Path = ROOT) -> list[Path]:
    """Return the migration files in the order they apply."""
    return sorted((root / "schema").glob("*.sql"))
