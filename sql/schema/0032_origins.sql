-- An import asks for the memories of an origin: its id, and the number of an exchange.
CREATE INDEX sessions_memory_by_origin ON sessions_memory (
    substr(coalesce(CAST(CAST(metadata ->> 'from' AS TEXT) ->> 'id' AS TEXT), ''), 1, 100),
    coalesce(CAST(CAST(metadata ->> 'from' AS TEXT) ->> 'exchange' AS TEXT), '')
) WHERE instr(metadata, '"from":{"system":') > 0;
