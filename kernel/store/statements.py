"""Loads the named statements and lists the migrations of the `sql/` folder."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2] / "sql"
_MARK = re.compile(r"^-- (name|fragment): (.*)\n", re.MULTILINE)
_REFERENCE = re.compile(r"(?:\b(\w+)\.)?\{([a-z_]+)(?: (\d+))?\}")
_POSTGRES = "postgres"  # folders with the texts that PostgreSQL has of its own


class TableFacts(msgspec.Struct, frozen=True):
    """Facts of tables that the kernel does not know by itself, from `sql/schema/tables.json`."""

    unrecorded: tuple[str, ...]  # prefixes of tables whose rows follow files, so that undo does not record them
    seeded: frozenset[str]  # tables that every store has the same rows in, from its migrations
    paths: frozenset[str]  # tables whose column `path` is a path in the store
    divided: frozenset[str]  # dialects of which a partition holds several places, so that a reach may hold a part of it
    whole: frozenset[str]  # statements whose rows no answer holds, so that a reach does not limit them
    reach: Mapping[str, str | None]  # by table the rows that a reach may read; null for none, so that it is refused
    guard: Mapping[str, str]  # the condition to write rows, all or those of one event, if it is not that to read them


class Statement(NamedTuple):
    """One statement: its SQL, the comment after its name, and its file."""

    text: str
    about: str
    file: Path


def parse(source: str, prefix: str, file: Path) -> dict[str, Statement]:
    """Return the `-- name:` blocks of a file, keyed `prefix.name`, and its fragments, keyed `dialect.{name}`.

    Raises ValueError on a repeated or empty block.
    """
    blocks: dict[str, Statement] = {}
    parts = _MARK.split(source)[1:]
    for kind, name, rest in zip(parts[0::3], parts[1::3], parts[2::3], strict=True):
        lines = rest.splitlines()
        about: list[str] = []
        while lines and lines[0].startswith("--"):
            about.append(lines.pop(0).lstrip("- ").strip())
        key = f"{prefix}.{name}" if kind == "name" else _fragment_key(prefix, name)
        text = "\n".join(lines).strip().removesuffix(";")
        if key in blocks or not text:
            raise ValueError(f"{file}: statement {key} is empty or is defined twice")
        blocks[key] = Statement(text, " ".join(about), file)
    return blocks


def load(root: Path = ROOT) -> dict[str, Statement]:
    """Return every named statement under `root`, keyed by dotted path and name; migrations are left out."""
    blocks = _blocks(root, postgres=False)
    return _expanded(blocks, blocks)


def load_postgres(root: Path = ROOT) -> dict[str, Statement]:
    """Return the statements of PostgreSQL alone: its texts for those that `load` returns, and those of its engine."""
    own = _blocks(root, postgres=True)
    return _expanded(own, _blocks(root, postgres=False) | own)


def _blocks(root: Path, *, postgres: bool) -> dict[str, Statement]:
    """Parse the files of PostgreSQL, or the others; raises ValueError on a repeated fragment of a dialect."""
    blocks: dict[str, Statement] = {}
    for file in sorted(root.rglob("*.sql")):
        parts = file.relative_to(root).with_suffix("").parts
        if "schema" in parts or (_POSTGRES in parts) != postgres:
            continue
        prefix = ".".join(part for part in parts if part != _POSTGRES)
        for key, block in parse(file.read_text(encoding="utf-8"), prefix, file).items():
            if key in blocks:
                raise ValueError(f"{file}: statement {key} is defined twice")
            blocks[key] = block
    return blocks


def _expanded(blocks: Mapping[str, Statement], fragments: Mapping[str, Statement]) -> dict[str, Statement]:
    """Return the statements with the text of fragments instead of references; raises ValueError on an unknown name."""

    def expand(key: str, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            alias, name, fields = match.groups()
            if fields:
                return ", ".join(f"value ->> {number}" for number in range(int(fields)))
            fragment = fragments.get(_fragment_key(key, name))
            if fragment is None:
                raise ValueError(f"{key} refers to {name}, which is no fragment of its dialect")
            columns = re.sub(r"\w+", rf"{alias}.\g<0>", fragment.text) if alias else fragment.text
            return expand(key, columns)

        return _REFERENCE.sub(replace, text) if "{" in text else text

    statements = {key: block for key, block in blocks.items() if not key.endswith("}")}
    return {key: block._replace(text=expand(key, block.text)) for key, block in statements.items()}


def _fragment_key(key: str, name: str) -> str:
    return f"{key.partition('.')[0]}.{{{name}}}"


def migrations(root: Path = ROOT) -> Sequence[Path]:
    """Return the migration files in the order they apply."""
    return _own_migrations() if root == ROOT else sorted((root / "schema").glob("*.sql"))


@cache
def _own_migrations() -> Sequence[Path]:
    """Return those of this program, looked up once: a server opens many tenants."""
    return sorted((ROOT / "schema").glob("*.sql"))


@cache
def table_facts() -> TableFacts:
    return msgspec.json.decode((ROOT / "schema" / "tables.json").read_bytes(), type=TableFacts)
