"""Statements of keys that are held to places: every one compiles or is refused, and no table is forgotten."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernel.core.errors import Fault
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.limited import limited
from kernel.security.permissions import Reach
from kernel.server import app
from kernel.store.context import StoreContext
from kernel.store.statements import load, table_facts

STATEMENTS = {name: statement.text for name, statement in load().items()}
REACH = Reach(frozenset({"brain"}), frozenset({"paths:work"}))
# Statements of maintenance, the audit and the index, which calls of keys never need.
REFUSED = (
    "kernel.audit.",
    "kernel.dropped.",
    "kernel.history.",
    "kernel.index.",
    "kernel.portable_",
    "kernel.quarantine.",
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    file: Path = tmp_path_factory.mktemp("limited") / "quipu.db"
    with closing(
        Connection(file, StoreContext(STATEMENTS, fts5_functions=app.FTS5_FUNCTIONS), readonly=False)
    ) as found:
        migrate(found)
        found.load_vectors()
        yield found


@pytest.mark.slow
def test_every_statement_compiles_or_is_refused_by_a_table(db: Connection) -> None:
    refused, messages = list[str](), set[str]()
    nothing: dict[str, Any] = defaultdict(lambda: None)
    db.limit(REACH)
    for name, text in STATEMENTS.items():
        try:
            held = limited(text)
        except Fault as fault:
            refused.append(name)
            messages.add(fault.message.partition(":")[0])
        else:
            db.values(f"EXPLAIN {held}", nothing)
    others = [name for name in refused if not name.startswith(REFUSED)]
    assert messages == {"This key is held to places"}
    assert sorted(others) == [
        "kernel.dispatch.clear",
        "kernel.dispatch.expire",
        "kernel.dispatch.keep",
        "kernel.dispatch.kept",
        "kernel.dispatch.targets",
    ]


def test_every_table_and_view_says_which_rows_a_key_may_read(db: Connection) -> None:
    names = {name for (name,) in db.values("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")}
    derived = re.compile(r"sqlite_\w+|doc_(fts|part)_(data|idx|docsize|config)")
    assert {name for name in names if not derived.fullmatch(name)} == set(table_facts().reach)
    assert table_facts().whole <= STATEMENTS.keys()


def test_changes_are_those_of_rows_that_are_seen() -> None:
    rule = "may_read('paths', m.path)"
    text = limited("UPDATE paths_memory AS m SET content = (SELECT 1 WHERE 1) WHERE m.path = :path OR 1 RETURNING path")
    assert text.endswith(f"WHERE ({rule}) AND ( m.path = :path OR 1 ) RETURNING path")
    assert limited("DELETE FROM graph_entity").endswith("DELETE FROM graph_entity WHERE may_read('graph', NULL) ")


def test_a_rollback_leaves_no_write_unguarded(db: Connection) -> None:
    for _ in range(2):
        db.script("BEGIN")
        db.limit(REACH)
        with pytest.raises(Fault, match="may not write to paths:diary"):
            db.values("INSERT INTO paths_memory VALUES ('diary', '', 0, '', '')")
        db.limit(None)
        db.values("INSERT INTO paths_memory VALUES ('diary', '', 0, '', '')")
        db.rollback()
