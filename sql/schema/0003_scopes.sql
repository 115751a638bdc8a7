CREATE TABLE scopes_org (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    metadata TEXT
) STRICT;

-- fold is the name without case. twin is 0, and more only for a namesake that an import brought along.
CREATE TABLE scopes_project (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    org_id TEXT REFERENCES scopes_org (id),
    name TEXT NOT NULL,
    fold TEXT NOT NULL,
    description TEXT,
    root_path TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    metadata TEXT,
    twin INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX scopes_project_by_name ON scopes_project (fold, coalesce(org_id, ''), twin);
CREATE INDEX scopes_project_by_org ON scopes_project (org_id);

CREATE TABLE scopes_session (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project_id TEXT REFERENCES scopes_project (id),
    name TEXT,
    purpose TEXT,
    agent_id TEXT,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    metadata TEXT
) STRICT;

CREATE INDEX scopes_session_by_project ON scopes_session (project_id);

-- Tools, guidelines and knowledge. scope is what a chain of scopes is made of: global, or type:id. shared is 1 where
-- another entry has or had the name, so that only those need to be looked at for what shadows them. standing orders
-- entries as their scores do while they are fresh, in days: a point of priority is worth .9 of them.
CREATE TABLE scopes_entry (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('tool', 'guideline', 'knowledge')),
    scope_type TEXT NOT NULL,
    scope_id TEXT,
    scope TEXT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN scope_id IS NULL THEN scope_type ELSE scope_type || ':' || scope_id END
    ) STORED,
    name TEXT NOT NULL,
    category TEXT,
    priority INTEGER,
    current_version_id TEXT NOT NULL,
    deactivated_at TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT,
    twin INTEGER NOT NULL DEFAULT 0,
    shared INTEGER NOT NULL DEFAULT 0,
    standing REAL GENERATED ALWAYS AS (0.9 * coalesce(priority, 0) + julianday(created_at)) VIRTUAL
) STRICT;

CREATE UNIQUE INDEX scopes_entry_active ON scopes_entry (kind, name, scope, twin) WHERE deactivated_at IS NULL;
CREATE INDEX scopes_entry_by_name ON scopes_entry (kind, name, scope);
CREATE INDEX scopes_entry_by_scope ON scopes_entry (kind, scope, priority DESC);
CREATE INDEX scopes_entry_by_kind ON scopes_entry (kind, priority DESC);
CREATE INDEX scopes_entry_by_standing ON scopes_entry (kind, scope, deactivated_at, standing DESC, created_at DESC);
CREATE INDEX scopes_entry_by_priority ON scopes_entry (kind, scope, deactivated_at, priority DESC, created_at DESC)
WHERE priority IS NOT NULL;
CREATE INDEX scopes_entry_shared ON scopes_entry (kind, scope, deactivated_at, name) WHERE shared = 1;

-- Append-only. A tool says description, parameters, examples, constraints; a guideline content, rationale, examples;
-- knowledge content, source, confidence, valid_until.
CREATE TABLE scopes_version (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entry_id TEXT NOT NULL REFERENCES scopes_entry (id),
    version_num INTEGER NOT NULL,
    description TEXT,
    parameters TEXT,
    examples TEXT,
    constraints TEXT,
    content TEXT,
    rationale TEXT,
    source TEXT,
    confidence REAL,
    valid_until TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT,
    change_reason TEXT,
    conflict_flag INTEGER NOT NULL DEFAULT 0,
    UNIQUE (entry_id, version_num)
) STRICT;

CREATE TABLE scopes_conflict (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entry_type TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    version_a_id TEXT NOT NULL,
    version_b_id TEXT NOT NULL,
    detected_at TEXT NOT NULL,
    resolved INTEGER NOT NULL DEFAULT 0,
    resolution TEXT,
    resolved_at TEXT,
    resolved_by TEXT
) STRICT;

CREATE INDEX scopes_conflict_by_time ON scopes_conflict (resolved, detected_at);

-- fold is the name without case.
CREATE TABLE scopes_tag (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    fold TEXT NOT NULL,
    category TEXT NOT NULL,
    is_predefined INTEGER NOT NULL DEFAULT 0,
    description TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX scopes_tag_by_fold ON scopes_tag (fold);

CREATE TABLE scopes_entry_tag (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entry_type TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    tag_id TEXT NOT NULL REFERENCES scopes_tag (id),
    created_at TEXT NOT NULL,
    UNIQUE (entry_id, entry_type, tag_id)
) STRICT;

CREATE INDEX scopes_entry_tag_by_tag ON scopes_entry_tag (tag_id, entry_id);

CREATE TABLE scopes_relation (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source_type TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    relation_type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT,
    UNIQUE (source_id, source_type, target_id, target_type, relation_type)
) STRICT;

CREATE INDEX scopes_relation_by_target ON scopes_relation (target_id, target_type, relation_type);

-- What happened to locks; the id of a checkout is its fencing number, which AUTOINCREMENT never gives twice.
CREATE TABLE scopes_lock_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file_path TEXT NOT NULL,
    operation TEXT NOT NULL,
    agent_id TEXT,
    holder TEXT NOT NULL,
    fencing_token INTEGER,
    reason TEXT,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX scopes_lock_event_by_path ON scopes_lock_event (file_path, operation);

CREATE TABLE scopes_lock (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    file_path TEXT NOT NULL UNIQUE,
    checked_out_by TEXT NOT NULL,
    session_id TEXT REFERENCES scopes_session (id),
    project_id TEXT REFERENCES scopes_project (id),
    checked_out_at TEXT NOT NULL,
    expires_at TEXT,
    metadata TEXT,
    fencing_token INTEGER NOT NULL UNIQUE
) STRICT;

CREATE INDEX scopes_lock_by_expiry ON scopes_lock (expires_at);

CREATE TABLE scopes_predefined_tag (
    name TEXT PRIMARY KEY,
    category TEXT NOT NULL,
    description TEXT NOT NULL
) STRICT;

INSERT INTO scopes_predefined_tag (name, category, description)
VALUES
    ('python', 'language', 'Python'),
    ('typescript', 'language', 'TypeScript'),
    ('javascript', 'language', 'JavaScript'),
    ('rust', 'language', 'Rust'),
    ('go', 'language', 'Go'),
    ('sql', 'language', 'SQL and its dialects'),
    ('bash', 'language', 'Shell scripts'),
    ('web', 'domain', 'Web pages and web applications'),
    ('cli', 'domain', 'Command-line programs'),
    ('api', 'domain', 'Interfaces that other programs call'),
    ('database', 'domain', 'Databases and how they are used'),
    ('ml', 'domain', 'Machine learning'),
    ('devops', 'domain', 'Builds, deployment and operation'),
    ('security', 'domain', 'Security and protection of data'),
    ('testing', 'domain', 'Tests and quality'),
    ('code_style', 'category', 'How code is written and laid out'),
    ('architecture', 'category', 'How the parts of a system fit together'),
    ('behavior', 'category', 'How an agent is to act'),
    ('performance', 'category', 'Speed and use of resources'),
    ('error_handling', 'category', 'How failures are met'),
    ('logging', 'category', 'What is logged, and how'),
    ('deprecated', 'meta', 'No longer to be used'),
    ('experimental', 'meta', 'Not settled yet'),
    ('stable', 'meta', 'Settled and fit for use'),
    ('required', 'meta', 'Has to be followed'),
    ('optional', 'meta', 'May be followed');

INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
SELECT 'tag_' || name, name, name, category, 1, description, '2026-01-01T00:00:00.000Z'
FROM scopes_predefined_tag
ORDER BY rowid;
