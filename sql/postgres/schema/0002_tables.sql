-- The tables of sql/schema, each with the tenant first in its keys. Text is compared byte by byte, as SQLite does.
CREATE TABLE quipu_data.setting (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE quipu_data.doc_model (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('doc_model', 'id'),
    identity text COLLATE "C" NOT NULL,
    dimensions bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, identity)
);

CREATE TABLE quipu_data.doc_place (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('doc_place', 'id'),
    space text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, space, scope)
);

CREATE INDEX doc_place_by_scope ON quipu_data.doc_place (tenant, scope);

CREATE TABLE quipu_data.doc (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('doc'),
    space text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    grams text COLLATE "C" NOT NULL,
    dialect text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, space, key)
);

CREATE INDEX doc_by_place ON quipu_data.doc (tenant, place, id);

CREATE INDEX doc_by_actor ON quipu_data.doc (tenant, actor, updated_at, place);

CREATE INDEX doc_by_time ON quipu_data.doc (tenant, updated_at, place);

CREATE TABLE quipu_data.doc_vector (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('doc_vector'),
    doc bigint NOT NULL,
    model bigint NOT NULL,
    place bigint NOT NULL,
    scale double precision NOT NULL,
    vector bytea NOT NULL,
    sketch bytea NOT NULL,
    tokens bytea NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, doc)
);

CREATE TABLE quipu_data.history (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('history', 'id'),
    space text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    before text COLLATE "C",
    after text COLLATE "C",
    reason text COLLATE "C",
    dialect text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX history_by_key ON quipu_data.history (tenant, space, key, id);

CREATE INDEX history_by_change ON quipu_data.history (tenant, at, space, key) WHERE before IS NOT NULL;

CREATE TABLE quipu_data.scopes_org (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_org', 'seq'),
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    metadata text COLLATE "C",
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE TABLE quipu_data.scopes_project (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_project', 'seq'),
    id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C",
    name text COLLATE "C" NOT NULL,
    fold text COLLATE "C" NOT NULL,
    description text COLLATE "C",
    root_path text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    metadata text COLLATE "C",
    twin bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE UNIQUE INDEX scopes_project_by_name ON quipu_data.scopes_project (tenant, fold, coalesce(org_id, ''), twin);

CREATE INDEX scopes_project_by_org ON quipu_data.scopes_project (tenant, org_id);

CREATE TABLE quipu_data.scopes_session (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_session', 'seq'),
    id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C",
    name text COLLATE "C",
    purpose text COLLATE "C",
    agent_id text COLLATE "C",
    status text COLLATE "C" NOT NULL,
    started_at text COLLATE "C" NOT NULL,
    ended_at text COLLATE "C",
    metadata text COLLATE "C",
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_session_by_project ON quipu_data.scopes_session (tenant, project_id);

CREATE TABLE quipu_data.scopes_entry (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_entry', 'seq'),
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('tool', 'guideline', 'knowledge')),
    scope_type text COLLATE "C" NOT NULL,
    scope_id text COLLATE "C",
    scope text COLLATE "C" GENERATED ALWAYS AS (
        CASE WHEN scope_id IS NULL THEN scope_type ELSE scope_type || ':' || scope_id END
    ) STORED,
    name text COLLATE "C" NOT NULL,
    category text COLLATE "C",
    priority bigint,
    current_version_id text COLLATE "C" NOT NULL,
    deactivated_at text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    created_by text COLLATE "C",
    twin bigint NOT NULL DEFAULT 0,
    shared bigint NOT NULL DEFAULT 0,
    standing double precision GENERATED ALWAYS AS (0.9 * coalesce(priority, 0) + quipu.julianday(created_at)) STORED,
    late bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE UNIQUE INDEX scopes_entry_active ON quipu_data.scopes_entry (
    tenant, kind, name, scope, twin
) WHERE deactivated_at IS NULL;

CREATE INDEX scopes_entry_by_name ON quipu_data.scopes_entry (tenant, kind, name, scope);

CREATE INDEX scopes_entry_by_scope ON quipu_data.scopes_entry (tenant, kind, scope, priority DESC);

CREATE INDEX scopes_entry_by_kind ON quipu_data.scopes_entry (tenant, kind, priority DESC);

CREATE INDEX scopes_entry_by_standing ON quipu_data.scopes_entry (
    tenant, kind, scope, deactivated_at, standing DESC, created_at DESC
);

CREATE INDEX scopes_entry_by_priority ON quipu_data.scopes_entry (
    tenant, kind, scope, deactivated_at, priority DESC, created_at DESC
) WHERE priority IS NOT NULL;

CREATE INDEX scopes_entry_shared ON quipu_data.scopes_entry (
    tenant, kind, scope, deactivated_at, name
) WHERE shared = 1;

CREATE INDEX scopes_entry_late ON quipu_data.scopes_entry (tenant, kind, scope) WHERE late = 1;

CREATE TABLE quipu_data.scopes_version (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_version', 'seq'),
    id text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    version_num bigint NOT NULL,
    description text COLLATE "C",
    parameters text COLLATE "C",
    examples text COLLATE "C",
    constraints text COLLATE "C",
    content text COLLATE "C",
    rationale text COLLATE "C",
    source text COLLATE "C",
    confidence double precision,
    valid_until text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    created_by text COLLATE "C",
    change_reason text COLLATE "C",
    conflict_flag bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, entry_id, version_num),
    UNIQUE (tenant, id)
);

CREATE TABLE quipu_data.scopes_conflict (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_conflict', 'seq'),
    id text COLLATE "C" NOT NULL,
    entry_type text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    version_a_id text COLLATE "C" NOT NULL,
    version_b_id text COLLATE "C" NOT NULL,
    detected_at text COLLATE "C" NOT NULL,
    resolved bigint NOT NULL DEFAULT 0,
    resolution text COLLATE "C",
    resolved_at text COLLATE "C",
    resolved_by text COLLATE "C",
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_conflict_by_time ON quipu_data.scopes_conflict (tenant, resolved, detected_at);

CREATE TABLE quipu_data.scopes_tag (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_tag', 'seq'),
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    fold text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    is_predefined bigint NOT NULL DEFAULT 0,
    description text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, name),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_tag_by_fold ON quipu_data.scopes_tag (tenant, fold);

CREATE TABLE quipu_data.scopes_entry_tag (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_entry_tag', 'seq'),
    id text COLLATE "C" NOT NULL,
    entry_type text COLLATE "C" NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    tag_id text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, entry_id, entry_type, tag_id),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_entry_tag_by_tag ON quipu_data.scopes_entry_tag (tenant, tag_id, entry_id);

CREATE TABLE quipu_data.scopes_relation (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_relation', 'seq'),
    id text COLLATE "C" NOT NULL,
    source_type text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    target_type text COLLATE "C" NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    relation_type text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    created_by text COLLATE "C",
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, source_id, source_type, target_id, target_type, relation_type),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_relation_by_target ON quipu_data.scopes_relation (tenant, target_id, target_type, relation_type);

CREATE TABLE quipu_data.scopes_lock_event (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('scopes_lock_event'),
    file_path text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C",
    holder text COLLATE "C" NOT NULL,
    fencing_token bigint,
    reason text COLLATE "C",
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX scopes_lock_event_by_path ON quipu_data.scopes_lock_event (tenant, file_path, operation);

CREATE TABLE quipu_data.scopes_lock (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_lock', 'seq'),
    id text COLLATE "C" NOT NULL,
    file_path text COLLATE "C" NOT NULL,
    checked_out_by text COLLATE "C" NOT NULL,
    session_id text COLLATE "C",
    project_id text COLLATE "C",
    checked_out_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C",
    metadata text COLLATE "C",
    fencing_token bigint NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, fencing_token),
    UNIQUE (tenant, file_path),
    UNIQUE (tenant, id)
);

CREATE INDEX scopes_lock_by_expiry ON quipu_data.scopes_lock (tenant, expires_at);

CREATE TABLE quipu_data.scopes_predefined_tag (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    position bigint NOT NULL DEFAULT quipu.next_row('scopes_predefined_tag', 'position'),
    name text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE quipu_data.brain_memory (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    subcategory text COLLATE "C",
    tags text COLLATE "C",
    source text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    superseded_by text COLLATE "C",
    project_id text COLLATE "C",
    importance bigint NOT NULL,
    memory_type text COLLATE "C" NOT NULL,
    last_accessed_at text COLLATE "C",
    access_count bigint NOT NULL,
    valid_from text COLLATE "C",
    valid_until text COLLATE "C",
    decay_score double precision NOT NULL,
    confidence double precision NOT NULL,
    has_embedding bigint NOT NULL,
    embedding_model text COLLATE "C",
    metadata text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, db, id)
);

CREATE INDEX brain_memory_by_rank ON quipu_data.brain_memory (
    tenant, db, status, importance DESC, updated_at DESC, id, category, project_id, created_at
);

CREATE INDEX brain_memory_by_project ON quipu_data.brain_memory (tenant, db, project_id) WHERE project_id IS NOT NULL;

CREATE INDEX brain_memory_unembedded ON quipu_data.brain_memory (tenant, db) WHERE has_embedding = 0;

CREATE TABLE quipu_data.brain_entity (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    subtype text COLLATE "C",
    description text COLLATE "C",
    tags text COLLATE "C",
    aliases text COLLATE "C",
    status text COLLATE "C" NOT NULL,
    mention_count bigint NOT NULL,
    first_mentioned text COLLATE "C",
    last_mentioned text COLLATE "C",
    has_embedding bigint NOT NULL,
    embedding_model text COLLATE "C",
    metadata text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, db, id)
);

CREATE INDEX brain_entity_by_change ON quipu_data.brain_entity (tenant, db, status, updated_at DESC, id);

CREATE INDEX brain_entity_unembedded ON quipu_data.brain_entity (tenant, db) WHERE has_embedding = 0;

CREATE TABLE quipu_data.brain_link (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    source_type text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    target_type text COLLATE "C" NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    relationship text COLLATE "C" NOT NULL,
    strength double precision NOT NULL,
    context text COLLATE "C",
    bidirectional bigint NOT NULL,
    metadata text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, db, id),
    UNIQUE (tenant, db, source_id, source_type, target_type, target_id, relationship)
);

CREATE INDEX brain_link_by_target ON quipu_data.brain_link (
    tenant, db, target_id, target_type, source_type, source_id, relationship
);

CREATE INDEX brain_link_by_age ON quipu_data.brain_link (tenant, db, created_at DESC, id DESC);

CREATE TABLE quipu_data.brain_note (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    note_type text COLLATE "C" NOT NULL,
    summary text COLLATE "C",
    key_points text COLLATE "C",
    tags text COLLATE "C",
    category text COLLATE "C",
    parent_note_id text COLLATE "C",
    version bigint NOT NULL,
    previous_version_id text COLLATE "C",
    project_id text COLLATE "C",
    entity_id text COLLATE "C",
    word_count bigint NOT NULL,
    has_embedding bigint NOT NULL,
    embedding_model text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, db, id)
);

CREATE INDEX brain_note_by_change ON quipu_data.brain_note (tenant, db, updated_at DESC, id);

CREATE INDEX brain_note_unembedded ON quipu_data.brain_note (tenant, db) WHERE has_embedding = 0;

CREATE TABLE quipu_data.brain_resource (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    url text COLLATE "C",
    resource_type text COLLATE "C",
    description text COLLATE "C",
    notes text COLLATE "C",
    key_takeaways text COLLATE "C",
    tags text COLLATE "C",
    category text COLLATE "C",
    status text COLLATE "C" NOT NULL,
    quality_rating bigint,
    project_id text COLLATE "C",
    source_memory_id text COLLATE "C",
    domain text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    accessed_at text COLLATE "C",
    access_count bigint NOT NULL,
    has_embedding bigint NOT NULL,
    embedding_model text COLLATE "C",
    PRIMARY KEY (tenant, db, id)
);

CREATE INDEX brain_resource_by_age ON quipu_data.brain_resource (tenant, db, created_at DESC, id);

CREATE INDEX brain_resource_unembedded ON quipu_data.brain_resource (tenant, db) WHERE has_embedding = 0;

CREATE TABLE quipu_data.brain_config (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    description text COLLATE "C",
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE quipu_data.brain_query (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    db text COLLATE "C" NOT NULL,
    query_text text COLLATE "C" NOT NULL,
    query_source text COLLATE "C" NOT NULL,
    result_count bigint NOT NULL,
    result_ids text COLLATE "C",
    execution_time_ms double precision NOT NULL,
    session_id text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX brain_query_by_age ON quipu_data.brain_query (tenant, created_at);

CREATE TABLE quipu_data.notes_file (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    project text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    modified bigint NOT NULL,
    changed bigint NOT NULL,
    doubtful bigint NOT NULL,
    memory_type text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, path)
);

CREATE INDEX notes_file_stamps ON quipu_data.notes_file (tenant, project, path, size, modified, changed);

CREATE INDEX notes_file_doubtful ON quipu_data.notes_file (tenant, project, path) WHERE doubtful = 1;

CREATE TABLE quipu_data.sessions_memory (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('sessions_memory'),
    session_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C",
    content text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    tags text COLLATE "C" NOT NULL,
    priority bigint NOT NULL CHECK (priority BETWEEN 1 AND 5),
    metadata text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX sessions_memory_by_hash ON quipu_data.sessions_memory (tenant, hash, session_id, created_at);

CREATE INDEX sessions_memory_by_session ON quipu_data.sessions_memory (tenant, session_id, created_at, id);

CREATE INDEX sessions_memory_by_time ON quipu_data.sessions_memory (tenant, created_at, id);

CREATE TABLE quipu_data.sessions_mention (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('sessions_mention', 'id'),
    memory_id bigint NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    path text COLLATE "C",
    PRIMARY KEY (tenant, id)
);

CREATE INDEX sessions_mention_by_memory ON quipu_data.sessions_mention (tenant, memory_id, id);

CREATE TABLE quipu_data.sessions_entity (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('sessions_entity'),
    name text COLLATE "C" NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    stated bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name)
);

CREATE INDEX sessions_entity_by_name ON quipu_data.sessions_entity (tenant, lower(name));

CREATE TABLE quipu_data.sessions_observation (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('sessions_observation', 'id'),
    entity_id bigint NOT NULL,
    content text COLLATE "C" NOT NULL,
    memory_id bigint,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX sessions_observation_by_entity ON quipu_data.sessions_observation (tenant, entity_id, id);

CREATE INDEX sessions_observation_by_memory ON quipu_data.sessions_observation (
    tenant, memory_id
) WHERE memory_id IS NOT NULL;

CREATE TABLE quipu_data.sessions_relation (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('sessions_relation'),
    source_id bigint NOT NULL,
    target_id bigint NOT NULL,
    relation_type text COLLATE "C" NOT NULL,
    stated bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, source_id, target_id, relation_type)
);

CREATE INDEX sessions_relation_by_target ON quipu_data.sessions_relation (tenant, target_id);

CREATE TABLE quipu_data.sessions_relation_memory (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    memory_id bigint NOT NULL,
    relation_id bigint NOT NULL,
    PRIMARY KEY (tenant, memory_id, relation_id)
);

CREATE INDEX sessions_relation_memory_by_relation ON quipu_data.sessions_relation_memory (tenant, relation_id);

CREATE TABLE quipu_data.audit (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('audit', 'id'),
    at text COLLATE "C" NOT NULL,
    dialect text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    touched bigint NOT NULL,
    targets text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE quipu_data.doc_gone (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_id('doc_gone'),
    vector bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE quipu_data.doc_flag (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    rule text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, doc)
);

CREATE TABLE quipu_data.doc_release (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    digest text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, digest)
);

CREATE TABLE quipu_data.paths_memory (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    path text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    content_size bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, path)
);

CREATE TABLE quipu_data.undo_part (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    call text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    targets text COLLATE "C" NOT NULL,
    changes bytea NOT NULL,
    PRIMARY KEY (tenant, call, part)
);

CREATE TABLE quipu_data.undo (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    audit bigint NOT NULL,
    at text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, audit)
);

CREATE INDEX undo_by_time ON quipu_data.undo (tenant, at);

CREATE INDEX undo_by_call ON quipu_data.undo (tenant, call);

CREATE TABLE quipu_data.notes_change (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint NOT NULL DEFAULT quipu.next_row('notes_change', 'id'),
    call text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    temporary text COLLATE "C",
    before text COLLATE "C",
    after text COLLATE "C",
    PRIMARY KEY (tenant, id)
);

CREATE TABLE quipu_data.doc_block (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    last bigint NOT NULL,
    model bigint NOT NULL,
    ids bytea NOT NULL,
    docs bytea NOT NULL,
    places bytea NOT NULL,
    scales bytea NOT NULL,
    sketches bytea NOT NULL,
    vectors bytea NOT NULL,
    PRIMARY KEY (tenant, last)
);

CREATE TABLE quipu_data.graph_entity (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_id('graph_entity'),
    name text COLLATE "C" NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    lowered text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, name)
);

CREATE TABLE quipu_data.graph_observation (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_id('graph_observation'),
    entity bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX graph_observation_by_entity ON quipu_data.graph_observation (tenant, entity);

CREATE TABLE quipu_data.graph_relation (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_id('graph_relation'),
    from_name text COLLATE "C" NOT NULL,
    to_name text COLLATE "C" NOT NULL,
    relation_type text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, from_name, to_name, relation_type)
);

CREATE INDEX graph_relation_by_end ON quipu_data.graph_relation (tenant, to_name);

CREATE TABLE quipu_data.files_store (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_id('files_store'),
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    metadata text COLLATE "C" NOT NULL,
    archived_at text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE TABLE quipu_data.files_memory (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id text COLLATE "C" NOT NULL,
    store text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, store, path)
);

CREATE TABLE quipu_data.files_version (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_id('files_version'),
    id text COLLATE "C" NOT NULL,
    memory text COLLATE "C" NOT NULL,
    store text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    path text COLLATE "C",
    sha256 text COLLATE "C",
    size bigint,
    created_by text COLLATE "C",
    created_at text COLLATE "C" NOT NULL,
    redacted_by text COLLATE "C",
    redacted_at text COLLATE "C",
    content text COLLATE "C",
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, id)
);

CREATE INDEX files_version_by_store ON quipu_data.files_version (tenant, store);

CREATE INDEX files_version_by_memory ON quipu_data.files_version (tenant, memory);

CREATE TABLE quipu_data.doc_day (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    space text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    documents bigint NOT NULL,
    PRIMARY KEY (tenant, space, day)
);

-- The words of the documents, by the tokenizer of SQLite's index, with their numbers; `:` and a number is a partition.
CREATE TABLE quipu_data.doc_words (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    size bigint NOT NULL,
    stems text [] COLLATE "C" NOT NULL,
    counts smallint [] NOT NULL,
    PRIMARY KEY (tenant, doc)
);

CREATE INDEX doc_words_by_stem ON quipu_data.doc_words USING gin (tenant, stems);

-- Trigrams of the documents whose contract has a search for parts of words.
CREATE TABLE quipu_data.doc_trigrams (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    trigrams text [] COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, doc)
);

CREATE INDEX doc_trigrams_by_trigram ON quipu_data.doc_trigrams USING gin (tenant, trigrams);

-- A mark of each transaction that has changed something. The number of a transaction does not tell it after a crash: of
-- one that was lost another has it.
CREATE TABLE quipu_data.commit_mark (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    mark bigint NOT NULL,
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, mark)
);

CREATE INDEX commit_mark_by_time ON quipu_data.commit_mark (tenant, at);
