"""The import of a database of the original: new ids, idempotent, with its graph, without secrets."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from handlers.sessions.import_code_memory import code_memory
from kernel.core.errors import Fault
from kernel.memories.import_records import Imported, Source
from kernel.server.app import Kernel
from kernel.store.long_work import run_steps
from tests.unit.handlers.sessions.calls import Ask, opened

SCHEMA = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, kind TEXT, content TEXT NOT NULL,
    summary TEXT, tags TEXT, priority INTEGER DEFAULT 3, metadata TEXT, hash TEXT,
    created_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE VIRTUAL TABLE memories_fts USING fts5(content, summary, tags, metadata);
CREATE TABLE entities (id INTEGER PRIMARY KEY, memory_id INTEGER, entity_type TEXT, name TEXT, source TEXT, path TEXT);
CREATE TABLE graph_entities (id INTEGER PRIMARY KEY, name TEXT UNIQUE, entity_type TEXT, created_at TEXT);
CREATE TABLE graph_observations (id INTEGER PRIMARY KEY, entity_id INTEGER, content TEXT, memory_id INTEGER,
    created_at TEXT);
CREATE TABLE graph_relations (id INTEGER PRIMARY KEY, source_id INTEGER, target_id INTEGER, relation_type TEXT,
    memory_id INTEGER, created_at TEXT);
"""
ROWS = """
INSERT INTO memories VALUES
    (3, 'a', 'note', 'green tea in parse_config()', 'Tea', 'drinks,tea', 1, '{"k": 1}', 'h', '2026-01-04 10:02:03'),
    (5, NULL, NULL, 'no session', NULL, NULL, NULL, '[1, 2]', NULL, '2026-01-05 00:00:00'),
    (6, 'a', NULL, 'password: hunter2', NULL, NULL, 3, NULL, NULL, '2026-01-06 00:00:00'),
    (7, 'a', NULL, x'00ff', NULL, NULL, 3, NULL, NULL, '2026-01-06 00:00:00'),
    (8, 'a', NULL, 'odd time', '', '', 9, 'not json', NULL, 'yesterday'),
    (9, 'a', NULL, 'green tea in parse_config()', NULL, NULL, 3, NULL, NULL, '2026-02-04 10:02:03');
INSERT INTO graph_entities VALUES (1, 'parse_config', 'function', '2026-01-04 10:02:03'),
    (2, 'Settings', 'entity', NULL),
    (4, '', 'entity', NULL);
INSERT INTO graph_observations VALUES (1, 1, 'Tea', 3, '2026-01-04 10:02:03'), (2, 1, 'gone', 6, NULL),
    (3, 1, 'free', NULL, NULL);
INSERT INTO graph_relations VALUES (1, 1, 2, 'fills', 3, NULL), (2, 1, 2, 'fills', NULL, NULL),
    (3, 1, 9, 'fills', NULL, NULL);
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database as the original leaves it."""
    file = tmp_path / "code_memory.db"
    db = sqlite3.connect(file)
    db.executescript(SCHEMA + ROWS)
    db.close()
    return file


def brought(kernel: Kernel, file: Path) -> Imported:
    steps = code_memory(Source(file, None, {}, file.parent))
    return kernel.store.write_sync(lambda tx: run_steps(tx, steps), exclusive=True)


@pytest.mark.slow
def test_memories_are_imported_completely(kernel: Kernel, ask: Ask, old: Path) -> None:
    assert dict(brought(kernel, old).counts) == {
        "memories": 4,
        "already there": 0,
        "sensitive, left out": 1,
        "unreadable, left out": 1,
        "entities": 2,
        "observations": 2,
        "relations": 1,
    }
    listed = {memory["content"]: memory for memory in ask("list_recent") if memory["id"] != 4}
    assert listed["green tea in parse_config()"] == {
        "id": 1,
        "session_id": "a",
        "kind": "note",
        "content": "green tea in parse_config()",
        "summary": "Tea",
        "tags": "drinks,tea",
        "priority": 1,
        "metadata": {"k": 1},
        "created_at": "2026-01-04 10:02:03",
    }
    plain: dict[str, Any] = listed["no session"]
    assert (plain["session_id"], plain["summary"], plain["tags"], plain["priority"], plain["metadata"]) == (
        "imported",
        "no session",
        "general",
        3,
        {"metadata": "[1, 2]"},
    )
    assert (listed["odd time"]["priority"], listed["odd time"]["metadata"]) == (5, {"metadata": "not json"})
    assert [found["id"] for found in ask("search_memory", query="tea", session_id="a", limit=2)] == [1, 4]
    assert ask("list_entities", memory_id=1)[0]["name"] == "parse_config"


def test_the_graph_is_imported_once(tmp_path: Path, old: Path) -> None:
    with opened(tmp_path / "data", ENABLE_GRAPH="1") as (kernel, ask):
        brought(kernel, old)
        seen = ask("diagnostics")["counts"]
        found = ask("get_entity", name="parse_config")
        assert (found["entity_type"], found["created_at"]) == ("function", "2026-01-04 10:02:03")
        seen_by = set(zip(found["observations"], found["memory_ids"], strict=True))
        assert seen_by == {("Tea", 1), ("free", None), ("green tea in parse_config()", 4)}
        assert found["relations"] == [{"type": "fills", "source": "parse_config", "target": "Settings"}]
        again = brought(kernel, old)
        assert (again.counts["memories"], again.counts["already there"]) == (0, 4)
        assert ask("diagnostics")["counts"]["memories"] == seen["memories"] == 4


def test_other_files_are_refused(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE observations (id INTEGER)")
    db.close()
    with pytest.raises(Fault, match="has no table of memories"):
        brought(kernel, file)


def test_an_old_database_without_graph_and_sessions_is_imported(kernel: Kernel, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "code_memory.db"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT, created_at TEXT)")
    db.execute("INSERT INTO memories VALUES (1, 'green tea', '2026-01-04 10:02:03')")
    db.commit()
    db.close()
    assert brought(kernel, file).counts["memories"] == 1
    assert ask("list_recent")[0]["session_id"] == "imported"
