"""Finds out which program a SQLite file belongs to, and opens it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from handlers.importers.archives import head_of
from handlers.importers.records import damaged
from kernel.engines.foreign_file import ExternalDatabase, open_external
from kernel.memories.import_records import Source

_MAGIC = b"SQLite format 3\0"
_LOOKED_AT_BYTES = 16 << 20  # the schema of a file was written before its rows
_CREATED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[\"'`\[]?(\w{1,64})")


def is_sqlite(path: Path) -> bool:
    """Return whether a file begins as a SQLite database does."""
    return head_of(path, len(_MAGIC)) == _MAGIC


def has_tables(path: Path, *names: str) -> bool:
    """Return whether a SQLite file has these tables, by the text of its schema; the file is not opened as a
    database.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT_BYTES)
        log = path.with_name(f"{path.name}-wal")
        if head.startswith(_MAGIC) and log.is_file():
            with log.open("rb") as file:
                head += file.read(_LOOKED_AT_BYTES)
    except OSError:
        return False
    return head.startswith(_MAGIC) and {name.encode() for name in names} <= set(_CREATED.findall(head))


def open_tables(
    given: Source, stack: ExitStack, needed: Mapping[str, Sequence[str]], required: str
) -> ExternalDatabase:
    """Return a copy of the file, with its tables read to their end; raises Fault if the required one is missing."""
    source = stack.enter_context(open_external(given.path, given.copies))
    if required not in source.tables():
        raise damaged(given.path.name, f"has no table {required}")
    source.check(needed)
    return source
