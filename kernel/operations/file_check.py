"""SQLite's integrity check of a file: the table or index of an error, and new derived tables."""

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from kernel.calls.dialect import Dialect
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import DAMAGED, MALFORMED, WRONG_SCHEMA
from kernel.operations.index_check import LOST_OR_DAMAGED, Finding, Report, check_dialect
from kernel.search import ann
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

_OF_TREE = regex(r"Tree (\d+)\b")  # an error in the structure of the tree with this root page
_OF_PAGE = regex(r"(?:of|on) page (\d+)$")  # an error within a page
_OF_INDEX = regex(r"missing from index|wrong # of entries in index|non-unique entry in index")
_OF_FREE_PAGES = regex(r"[Ff]reelist|never used")
_FULL_TEXT = frozenset(
    f"{index}{stage}_{rows}"
    for index in ("doc_fts", "doc_part")
    for stage in ("", "_next", "_old")  # of a rebuild
    for rows in ("data", "idx", "docsize")
) | {"doc_dropped"}
_BLOCKS = frozenset({"doc_block", "doc_gone", "doc_sketch"})
_COUNTS = frozenset({"doc_day"})
_ATTEMPTS = 3  # damage may hide other damage from the check


class _Tree(NamedTuple):
    name: str
    type: str
    root: int
    without_rowid: int


def check_file(
    db: Connection, context: StoreContext, dialects: Sequence[Dialect], *, repair: bool, report: Report | None
) -> list[Finding]:
    """Return the errors of SQLite's integrity check; `repair` makes the derived tables and indexes anew that have any.

    Raise Fault("storage") for damage without `repair`, and for damage in tables from which no other part derives.
    """
    first = errors = db.integrity_errors()
    for _ in range(_ATTEMPTS):
        if not errors:
            break
        trees, lasting = _damaged_trees(db, context, errors)
        if lasting:
            if report:
                _report_memories(db, dialects, report)
            raise Fault("storage", f"The file is damaged: {lasting}; put a backup in its place: `quipu restore`")
        if not repair:
            raise Fault("storage", f"The file is damaged: {first[0]}; mend it with `quipu check --repair`")
        _mend(db, trees, errors)
        errors = db.integrity_errors()
    if errors:
        raise Fault("storage", f"The file is damaged: {errors[0]}; put a backup in its place: `quipu restore`")
    return [Finding("file", len(first), "errors of SQLite's integrity check")]


def damage_of(file: Path, context: StoreContext, *, quick: bool = False, full_text: bool = True) -> str:
    """Return the first error of SQLite's check of a file that others may use meanwhile; empty for none.

    A `quick` check does not compare indexes with their tables.
    """
    try:
        with closing(Connection(file, context, readonly=True)) as reader:
            return next(iter(reader.integrity_errors(quick=quick, full_text=full_text)), "")
    except DAMAGED as error:
        return str(error)


def find_damage(file: Path, context: StoreContext, dialects: Sequence[Dialect]) -> str:
    """Return the first damage that a reader can find, empty for none: also a row that index and history contradict."""
    damage = damage_of(file, context, full_text=False)
    if damage:
        return damage
    lines: list[str] = []
    with closing(Connection(file, context, readonly=True)) as reader:
        tx = Tx(reader, CallContext(), readonly=True)
        try:
            for dialect in dialects:
                lines.clear()
                findings = check_dialect(tx, dialect, [], lines.append)
                if any(finding.kept and finding.rows for finding in findings):
                    return next(line for line in lines if line.endswith(LOST_OR_DAMAGED))
        except (*DAMAGED, *WRONG_SCHEMA, UnicodeDecodeError) as error:
            return str(error)
        finally:
            reader.rollback()
    return ""


def _damaged_trees(db: Connection, context: StoreContext, errors: Sequence[str]) -> tuple[list[_Tree], str]:
    """Return the derived trees whose structure is damaged, and the first error in another one, empty for none.

    An error without a place, with which SQLite ended the check, follows from an error with a place.
    """
    with db.writing() as tx:
        trees = tx.all("kernel.consistency.trees", _Tree)
    derived_names = _FULL_TEXT | _BLOCKS | _COUNTS | ({"doc_vector"} if context.embedder is not None else set[str]())
    by_root, by_name = {str(tree.root): tree for tree in trees}, {tree.name: tree for tree in trees}
    bad_trees: dict[str, _Tree] = {}
    for text in errors:
        of_tree, of_page = _OF_TREE.match(text), _OF_PAGE.search(text)
        if of_tree or of_page:
            tree = by_root.get(of_tree[1]) if of_tree else by_name.get(_owner(db, of_page[1]) if of_page else "")
            if tree is None or (tree.type != "index" and tree.name not in derived_names):
                return [], f"{text} ({tree.name})" if tree else text
            bad_trees[tree.name] = tree
        elif not _OF_INDEX.search(text) and not _OF_FREE_PAGES.search(text) and (text != MALFORMED or not bad_trees):
            return [], text
    return list(bad_trees.values()), ""


def _owner(db: Connection, page: str) -> str:
    with suppress(*DAMAGED), db.writing() as tx:
        return tx.one("kernel.consistency.page_owner", str, page=int(page)) or ""
    return ""


def _mend(db: Connection, trees: Sequence[_Tree], errors: Sequence[str]) -> None:
    for tree in trees:
        db.empty_tree(tree.name, rowid_table=tree.type == "table" and not tree.without_rowid)
    names = {tree.name for tree in trees}
    if names & _BLOCKS or "doc_vector" in names:
        with db.writing() as tx:
            ann.clear(tx)
    if names or any(_OF_INDEX.search(text) for text in errors):
        db.script("REINDEX")
    db.vacuum()  # leaves out the pages of the damaged trees
    db.checkpoint(truncate=True)


def _report_memories(db: Connection, dialects: Sequence[Dialect], report: Report) -> None:
    with closing(Connection(Path(db.filename), db.context, readonly=True)) as reader:
        for dialect in dialects:
            with suppress(*DAMAGED, *WRONG_SCHEMA, UnicodeDecodeError):
                check_dialect(Tx(reader, CallContext(), readonly=True), dialect, [], report)
            reader.rollback()
