-- As sql/schema/0021: documents up to this one hold the words and vectors of an earlier release.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT tenant, 'index_outdated_to', CAST(max(id) AS text) FROM quipu_data.doc WHERE tenant > 0 GROUP BY tenant;

-- The value of a name in a text that is a JSON object.
CREATE FUNCTION quipu.text_at(whole text, name text) RETURNS quipu.item LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT ROW(nullif(quipu.as_json(whole) -> name, 'null'))::quipu.item
$$;

CREATE OPERATOR quipu.->> (LEFTARG = text, RIGHTARG = text, FUNCTION = quipu.text_at);
