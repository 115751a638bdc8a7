-- As sql/schema/0027.
CREATE TABLE quipu_data.audit_answer (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    caller text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    targets text COLLATE "C" NOT NULL,
    answer bytea NOT NULL,
    PRIMARY KEY (tenant, caller, key)
);

CREATE INDEX audit_answer_by_time ON quipu_data.audit_answer (tenant, at);
