-- As sql/schema/0028.
CREATE TABLE quipu_data.doc_witness (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    line bigint NOT NULL,
    project text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, doc, path, name, line)
);

CREATE INDEX doc_witness_stale ON quipu_data.doc_witness (tenant, project, doc) WHERE state <> '';

CREATE TABLE quipu_data.audit_shown (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    session text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    memories text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session, at, tool)
);
