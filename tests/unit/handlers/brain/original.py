"""A folder of project-brain: one file for each database (notes on seed 003, section 6).

Run with an interpreter that has apsw-sqlite3mc in place of apsw, this module writes the encrypted files of `sealed/`:
`PYTHONPATH=. python -m tests.unit.handlers.brain.original tests/unit/handlers/brain/sealed`.
"""

import shutil
import sys
from pathlib import Path

import apsw

PASSWORD = "correct horse battery staple"
OLD = "2025-03-01 10:00:00"

SCHEMA = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, category TEXT NOT NULL, subcategory TEXT, tags TEXT,
    source TEXT DEFAULT 'claude_code', status TEXT DEFAULT 'active', superseded_by TEXT, project_id TEXT,
    importance INTEGER DEFAULT 3, memory_type TEXT DEFAULT 'permanent', last_accessed_at TEXT,
    access_count INTEGER DEFAULT 0, valid_from TEXT, valid_until TEXT, decay_score REAL DEFAULT 1.0,
    confidence REAL DEFAULT 1.0, has_embedding INTEGER DEFAULT 0, embedding_model TEXT, metadata TEXT,
    created_at TEXT, updated_at TEXT
);
CREATE TABLE links (
    id TEXT PRIMARY KEY, source_type TEXT NOT NULL, source_id TEXT NOT NULL, target_type TEXT NOT NULL,
    target_id TEXT NOT NULL, relationship TEXT NOT NULL, strength REAL DEFAULT 1.0, context TEXT,
    bidirectional INTEGER DEFAULT 0, metadata TEXT, created_at TEXT,
    UNIQUE (source_type, source_id, target_type, target_id, relationship)
);
CREATE TABLE memory_history (
    id TEXT PRIMARY KEY, db TEXT, memory_id TEXT NOT NULL, operation TEXT NOT NULL, content_before TEXT,
    content_after TEXT, reason TEXT, changed_at TEXT
);
CREATE VIRTUAL TABLE memories_fts USING fts5 (content, category, tags, content = 'memories', content_rowid = 'rowid');
"""
MORE = """
CREATE TABLE entities (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, subtype TEXT, description TEXT, tags TEXT,
    status TEXT DEFAULT 'active', has_embedding INTEGER DEFAULT 0, metadata TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE notes (
    id TEXT PRIMARY KEY, db TEXT, title TEXT NOT NULL, content TEXT NOT NULL, note_type TEXT DEFAULT 'note',
    summary TEXT, tags TEXT, version INTEGER DEFAULT 1, created_at TEXT, updated_at TEXT
);
CREATE TABLE resources (
    id TEXT PRIMARY KEY, db TEXT, title TEXT NOT NULL, url TEXT, description TEXT, status TEXT DEFAULT 'captured',
    quality_rating INTEGER, created_at TEXT
);
CREATE TABLE config (key TEXT PRIMARY KEY, value TEXT, description TEXT, updated_at TEXT);
CREATE TABLE query_log (
    id TEXT PRIMARY KEY, db TEXT, query_text TEXT, query_source TEXT, result_count INTEGER, result_ids TEXT,
    execution_time_ms REAL, session_id TEXT, created_at TEXT
);
CREATE TABLE daily_logs (id TEXT PRIMARY KEY, content TEXT);
"""
CORE = f"""
INSERT INTO memories (id, content, category, tags, importance, decay_score, metadata, created_at, updated_at) VALUES
    ('mem_a', 'The staging server is in Frankfurt', 'fact', '["infra"]', 4, 0.5, NULL, '{OLD}', '{OLD}'),
    ('mem_b', 'Never push on Fridays', 'hard_constraint', NULL, 5, 1.0, '{{"immutable":true}}', '{OLD}', '{OLD}'),
    ('mem_c', 'The staging server is in Dublin', 'fact', NULL, 2.5, 1.0, NULL, '{OLD}', '{OLD}');
UPDATE memories SET status = 'superseded', superseded_by = 'mem_a' WHERE id = 'mem_c';
INSERT INTO memories (id, content, category, source, created_at, updated_at)
    VALUES ('val_000', 'Be honest', 'value', 'founding', '{OLD}', '{OLD}');
INSERT INTO links (id, source_type, source_id, target_type, target_id, relationship, context, created_at) VALUES
    ('lnk_a', 'memory', 'mem_a', 'memory', 'mem_c', 'supersedes', 'moved', '{OLD}'),
    ('lnk_b', 'memory', 'mem_a', 'entity', 'ent_gone', 'relates_to', NULL, '{OLD}');
INSERT INTO memory_history (id, db, memory_id, operation, content_before, content_after, reason, changed_at) VALUES
    ('mhist_2', 'core', 'mem_a', 'corrected', 'It is in Dublin', 'The staging server is in Frankfurt', 'moved',
     '2025-03-02 10:00:00'),
    ('mhist_1', 'core', 'mem_a', 'created', NULL, 'It is in Dublin', 'Proactive save', '{OLD}'),
    ('mhist_3', 'core', 'mem_gone', 'created', NULL, 'Something deleted since', NULL, '{OLD}');
"""
CORE_MORE = f"""
INSERT INTO entities (id, name, type, description, created_at, updated_at)
    VALUES ('ent_a', 'Falcon', 'project', 'The payment service', '{OLD}', '{OLD}');
INSERT INTO notes (id, db, title, content, created_at, updated_at)
    VALUES ('note_a', 'core', 'Backups', 'Every night to another continent', '{OLD}', '{OLD}');
INSERT INTO resources (id, db, title, url, description, quality_rating, created_at)
    VALUES ('res_a', 'core', 'SQLite manual', 'https://sqlite.org', 'How the file format works', 5, '{OLD}');
INSERT INTO config VALUES ('retrieval.vector_weight', '0.6', NULL, '{OLD}');
INSERT INTO query_log VALUES
    ('qlog_a', 'core', 'password: hunter2', 'hybrid_search', 1, '["mem_a"]', 12.5, NULL, '2026-01-01 00:00:00');
INSERT INTO daily_logs VALUES ('dlog_a', 'x'), ('dlog_b', 'y');
"""
DND = f"""
INSERT INTO memories (id, content, category, created_at, updated_at)
    VALUES ('mem_d', 'The dragon sleeps under the tower', 'fact', '{OLD}', '{OLD}');
"""


def plain(folder: Path) -> Path:
    """Two plain files with their vectors, and one that is none of the databases."""
    import sqlite_vec

    folder.mkdir(parents=True)
    for name, script in (("core", SCHEMA + MORE + CORE + CORE_MORE), ("dnd", SCHEMA + DND), ("core-copy", SCHEMA)):
        db = apsw.Connection(str(folder / f"{name}.db"))
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.execute(script)
        db.execute("CREATE VIRTUAL TABLE vec_memories USING vec0 (embedding float[4])")
        db.execute("INSERT INTO vec_memories VALUES (1, '[1, 0, 0, 0]')")
        db.close()
    return folder


def encrypted(folder: Path) -> None:
    """core.sealed, as the core.db of a server that was killed: the last memory and an update are in the log alone."""
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / "work.db"
    db = apsw.Connection(str(work))
    db.pragma("key", PASSWORD)
    db.pragma("page_size", 1024)
    db.pragma("journal_mode", "wal")
    db.execute(SCHEMA + CORE)
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.execute("UPDATE memories SET importance = 1 WHERE id = 'mem_a'")
    db.execute(DND)
    shutil.copyfile(work, folder / "core.sealed")
    shutil.copyfile(folder / "work.db-wal", folder / "core.sealed-wal")
    db.close()
    work.unlink()
    folder.joinpath("work.db-wal").unlink(missing_ok=True)


if __name__ == "__main__":
    encrypted(Path(sys.argv[1]))
