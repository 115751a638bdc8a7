-- name: insert
INSERT INTO brain_query (
    id, db, query_text, query_source, result_count, result_ids, execution_time_ms, session_id, created_at
)
SELECT {fields 9} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: totals
SELECT
    count(*), count(DISTINCT query_text),
    count(*) FILTER (WHERE query_source = 'hybrid'),
    count(*) FILTER (WHERE query_source = 'semantic'),
    count(*) FILTER (WHERE query_source = 'fts'),
    round(avg(result_count), 1), CAST(round(avg(execution_time_ms)) AS INTEGER)
FROM brain_query
WHERE created_at >= :since;

-- name: by_tool
SELECT
    query_source, count(*), round(avg(result_count), 1), CAST(round(avg(execution_time_ms)) AS INTEGER),
    min(created_at), max(created_at)
FROM brain_query
WHERE created_at >= :since
GROUP BY query_source
ORDER BY count(*) DESC, query_source
LIMIT :limit;

-- name: by_query
SELECT query_text, query_source, count(*), round(avg(result_count), 1), max(created_at)
FROM brain_query
WHERE created_at >= :since
GROUP BY query_text, query_source
ORDER BY count(*) DESC, max(created_at) DESC, query_text, query_source
LIMIT :limit;

-- name: by_day
SELECT
    substr(created_at, 1, 10) AS day, count(*), count(DISTINCT query_source), round(avg(result_count), 1),
    CAST(round(avg(execution_time_ms)) AS INTEGER)
FROM brain_query
WHERE created_at >= :since
GROUP BY day
ORDER BY day DESC
LIMIT :limit;

-- name: delete
DELETE FROM brain_query WHERE created_at < :before;

-- name: erase
-- Deletes the queries that found a memory.
DELETE FROM brain_query WHERE instr(result_ids, '"' || :id || '"') > 0;
