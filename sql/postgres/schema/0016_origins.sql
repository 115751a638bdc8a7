-- As sql/schema/0032.
CREATE INDEX sessions_memory_by_origin ON quipu_data.sessions_memory (
    tenant,
    substr(coalesce(CAST(CAST(metadata ->> 'from' AS text) ->> 'id' AS text), ''), 1, 100),
    coalesce(CAST(CAST(metadata ->> 'from' AS text) ->> 'exchange' AS text), '')
) WHERE instr(metadata, '"from":{"system":') > 0;
