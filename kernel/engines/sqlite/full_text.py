"""Full text in SQLite: its tokenizers, checks of the indexes without the write lock, and their renewal in slices.

A check compares copies. What is made anew grows beside the indexes in use, until it is whole and takes their place.
"""

import re
from typing import TYPE_CHECKING, cast

import apsw

from kernel.store.context import Token
from kernel.store.long_work import Steps

if TYPE_CHECKING:
    from kernel.engines.sqlite.connection import Connection

_WORDS = ("porter", ["unicode61", "remove_diacritics", "2"])  # the tokenizer of doc_fts (sql/schema/0001)
_TRIGRAMS = ("trigram", list[str]())  # that of doc_part (sql/schema/0013)


class Tokenizers:
    """The tokenizers of `doc_fts` and `doc_part`, made at the first use."""

    def __init__(self) -> None:
        self._made: tuple[apsw.FTS5Tokenizer, apsw.FTS5Tokenizer] | None = None

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text as (start byte, end byte, stem)."""
        words, _ = self._tokenizers()
        return cast("list[Token]", words(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None))

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        if not text:
            return []
        tokens = self._tokenizers()[trigrams](
            text.replace("\0", " ").encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return cast("list[str]", tokens)

    def _tokenizers(self) -> tuple[apsw.FTS5Tokenizer, apsw.FTS5Tokenizer]:
        if self._made is None:
            db = apsw.Connection(":memory:")
            self._made = db.fts5_tokenizer(*_WORDS), db.fts5_tokenizer(*_TRIGRAMS)
        return self._made


_STEP_ROWS = 8  # documents; a slice is cut between steps, so that a small step keeps slices short
_STEP_BLOCKS = 32  # rows of an index that nobody reads any more, of up to 4 KB each
_INDEXES = ("doc_fts", "doc_part")
_CONTENTS = {"doc_fts": ("doc_content", "id, text, grams, place"), "doc_part": ("doc_part_content", "id, text")}
_TABLES = ("data", "idx", "docsize", "config")
_ROWS = ("data", "idx", "docsize")  # FTS5 keeps an index in tables with these endings
_LAST = "CAST((SELECT value FROM setting WHERE name = 'full_text_copied_to') AS INTEGER)"
_ADDED = """
    INSERT INTO doc_fts_next (rowid, text, grams, place)
    SELECT id, text, grams, place FROM doc_content WHERE {where};
    INSERT INTO doc_part_next (rowid, text) SELECT id, text FROM doc_part_content WHERE {where};
"""
_GONE = """
    INSERT INTO doc_fts_next (doc_fts_next, rowid, text, grams, place)
    SELECT 'delete', id, text, grams, place FROM doc_content WHERE id = old.id;
    INSERT INTO doc_part_next (doc_part_next, rowid, text)
    SELECT 'delete', id, text FROM doc_part_content WHERE id = old.id;
"""
# Who writes meanwhile changes the index in use; up to the last document that was copied, these do the same to the next.
_TRIGGERS = (
    f"CREATE TRIGGER doc_next_added AFTER INSERT ON doc WHEN new.id <= {_LAST} "
    f"BEGIN {_ADDED.format(where='id = new.id')} END",
    f"CREATE TRIGGER doc_next_gone BEFORE DELETE ON doc WHEN old.id <= {_LAST} BEGIN {_GONE} END",
    f"CREATE TRIGGER doc_next_before BEFORE UPDATE OF text, grams, place, space ON doc WHEN old.id <= {_LAST} "
    f"BEGIN {_GONE} END",
    f"CREATE TRIGGER doc_next_after AFTER UPDATE OF text, grams, place, space ON doc WHEN new.id <= {_LAST} "
    f"BEGIN {_ADDED.format(where='id = new.id')} END",
)
_LEAVE = """
DROP TRIGGER IF EXISTS doc_next_added;
DROP TRIGGER IF EXISTS doc_next_gone;
DROP TRIGGER IF EXISTS doc_next_before;
DROP TRIGGER IF EXISTS doc_next_after;
DELETE FROM setting WHERE name = 'full_text_copied_to';
"""
_SET_LAST = """
INSERT INTO setting (name, value) VALUES ('full_text_copied_to', CAST(:last AS TEXT))
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_COMPARE = "INSERT INTO copy.{name} ({name}, rank) VALUES ('integrity-check', 1)"
_NEXT = "SELECT max(id), count(*) FROM (SELECT id FROM doc WHERE id > :last ORDER BY id LIMIT :limit)"
_KNOWN_TRIGGERS = "SELECT sql FROM sqlite_schema WHERE type = 'trigger'"
_DEFINITION = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :name"
# The first rows with both keys: a table of FTS5 has either `id` or `segid` and `term`.
_EMPTY = "DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} LIMIT {limit})"


def check(db: "Connection") -> tuple[bool, bool]:
    """Return whether words and parts of words agree with the documents, of which one snapshot is compared.

    FTS5 compares by a statement that writes, so it is given copies, in a temporary file of the size of texts and index.
    """
    db.keep_temporary_pages(in_file=True)
    db.script("ATTACH '' AS copy")
    try:
        with db.writing_shadow_tables():
            for name, (content, columns) in _CONTENTS.items():
                _define(db, name, f"copy.{name}")
                db.script(f"CREATE TABLE copy.{content} ({columns.replace('id', 'id INTEGER PRIMARY KEY', 1)})")
            db.script("BEGIN")
            for name in _INDEXES:
                _copy(db, name)
            words, parts = (db.passes_check(_COMPARE.format(name=name), {}) for name in _INDEXES)
            return words, parts
    finally:
        db.rollback()
        db.script("DETACH copy")


def _copy(db: "Connection", name: str) -> None:
    for table in (f"{name}_{ending}" for ending in _TABLES):
        if db.has_table(table):
            db.script(f"DELETE FROM copy.{table}; INSERT INTO copy.{table} SELECT * FROM main.{table};")  # noqa: S608
    content, columns = _CONTENTS[name]
    for view in (content, content.replace("doc_", "doc_dropped_", 1)):
        db.script(f"INSERT INTO copy.{content} ({columns}) SELECT {columns} FROM main.{view}")  # noqa: S608


def _define(db: "Connection", name: str, other: str) -> None:
    """Makes an empty index like another, under another name."""
    ((text,),) = db.values(_DEFINITION, {"name": name})
    db.script(re.sub(rf'"?{name}"?', other, text, count=1))


def has_own_triggers_only(db: "Connection") -> bool:
    """Return whether a file has no triggers but those of a rebuild: others, of whoever made the file, must not run."""
    return all(text in _TRIGGERS for (text,) in db.values(_KNOWN_TRIGGERS))


def rebuild_steps(db: "Connection") -> Steps[None]:
    """Makes both indexes anew, and goes on after an interruption; searches use the old indexes until the last step."""
    yield
    yield from _discard(db, "old")
    if not db.has_table("doc_fts_next"):
        _begin(db)
    while _copy_some(db):
        yield
    _replace(db)
    yield
    yield from _discard(db, "old")


def _begin(db: "Connection") -> None:
    for name in _INDEXES:
        _define(db, name, f"{name}_next")
    db.script(_LEAVE)
    db.values(_SET_LAST, {"last": 0})
    for text in _TRIGGERS:
        db.script(text)


def _copy_some(db: "Connection") -> bool:
    """Copies the next documents; False if none are left, which others may add to between two steps."""
    ((last,),) = db.values(f"SELECT {_LAST}")
    ((upto, count),) = db.values(_NEXT, {"last": last, "limit": _STEP_ROWS})
    if not count:
        return False
    for text in _ADDED.format(where="id > :last AND id <= :upto").split(";")[:-1]:
        db.values(text, {"last": last, "upto": upto})
    db.values(_SET_LAST, {"last": upto})
    return count == _STEP_ROWS


def _replace(db: "Connection") -> None:
    db.script(_LEAVE)
    db.script("DELETE FROM doc_dropped")  # the next indexes hold no words of those
    for name in _INDEXES:
        db.script(f"ALTER TABLE {name} RENAME TO {name}_old; ALTER TABLE {name}_next RENAME TO {name};")


def _discard(db: "Connection", ending: str) -> Steps[None]:
    """Drops indexes that nobody reads, their rows first: to drop a large table takes long."""
    for name in _INDEXES:
        table = f"{name}_{ending}"
        if db.has_table(table):
            for rows in _ROWS:
                if db.has_table(f"{table}_{rows}"):
                    yield from _emptied(db, f"{table}_{rows}")
            db.script(f"DROP TABLE {table}")
            yield


def _emptied(db: "Connection", table: str) -> Steps[None]:
    key = "(segid, term)" if table.endswith("_idx") else "id"
    text = _EMPTY.format(table=table, key=key, limit=_STEP_BLOCKS).replace("SELECT (segid, term)", "SELECT segid, term")
    more = True
    while more:
        with db.writing_shadow_tables():
            db.values(text)
        more = db.changes() > 0
        yield
