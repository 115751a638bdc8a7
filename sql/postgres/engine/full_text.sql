-- name: insert_documents
-- As kernel.index.insert_docs.
INSERT INTO doc (id, space, key, place, text, grams, dialect, tool, actor, created_at, updated_at)
SELECT
    given_id('doc', value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10
FROM json_each(:rows);

-- name: documents
SELECT d.id, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: documents_after
SELECT id, text, grams, place FROM doc WHERE id > :after ORDER BY id LIMIT :limit;

-- name: add
-- For each document the number of words, its stems, and how often each occurs, both between blanks.
INSERT INTO doc_words (doc, size, stems, counts)
SELECT r.doc, r.size, string_to_array(r.stems, ' '), CAST(string_to_array(r.counts, ' ') AS smallint [])
FROM unnest(
    CAST(:docs AS bigint []), CAST(:sizes AS bigint []), CAST(:stems AS text []), CAST(:counts AS text [])
) AS r (doc, size, stems, counts);

-- name: delete
-- Takes the documents and their words from the numbers of both, and begins an era, so that no process goes on with the
-- words that it holds.
WITH gone AS (
    DELETE FROM doc_words WHERE doc IN (SELECT value FROM json_each(:ids))
    RETURNING size
), begun AS (
    INSERT INTO counter (name, last) VALUES ('words_era', :era)
    ON CONFLICT (name) DO UPDATE SET last = excluded.last
)
INSERT INTO counter (name, last)
SELECT 'words_docs', -count(*) FROM gone
UNION ALL
SELECT 'words_size', -CAST(coalesce(sum(size), 0) AS bigint) FROM gone
ON CONFLICT (name) DO UPDATE SET last = counter.last + excluded.last;

-- name: begin_era
INSERT INTO counter (name, last) VALUES ('words_era', :era)
ON CONFLICT (name) DO UPDATE SET last = excluded.last;

-- name: count
-- Adds to the numbers of documents and of their words; a negative number takes away.
INSERT INTO counter (name, last) VALUES ('words_docs', :docs), ('words_size', :size)
ON CONFLICT (name) DO UPDATE SET last = counter.last + excluded.last;

-- name: totals
SELECT
    coalesce((SELECT last FROM counter WHERE name = 'words_docs'), 0),
    coalesce((SELECT last FROM counter WHERE name = 'words_size'), 0);

-- name: sequences
-- As kernel.index.sequences, in a transaction that writes.
SELECT
    last_id('doc'), last_id('doc_vector'), last_id('doc_gone'),
    coalesce((SELECT last FROM counter WHERE name = 'words_docs'), 0);

-- name: seen
-- The same in a transaction that reads, with the totals and the era.
SELECT
    coalesce(max(last) FILTER (WHERE name = 'doc'), 0), coalesce(max(last) FILTER (WHERE name = 'doc_vector'), 0),
    coalesce(max(last) FILTER (WHERE name = 'doc_gone'), 0), coalesce(max(last) FILTER (WHERE name = 'words_docs'), 0),
    coalesce(max(last) FILTER (WHERE name = 'words_size'), 0), coalesce(max(last) FILTER (WHERE name = 'words_era'), 0)
FROM counter;

-- name: occurrences
-- For each stem the documents that hold it, in any order, each with its size and count, as 14 bytes.
SELECT a.stem, p.records
FROM unnest(CAST(:stems AS text [])) AS a (stem)
CROSS JOIN LATERAL (
    SELECT string_agg(int8send(o.doc) || int4send(CAST(o.size AS integer)) || int2send(o.held), '') AS records
    FROM (
        SELECT w.doc, w.size, w.counts [array_position(w.stems, a.stem)] AS held
        FROM doc_words AS w
        WHERE w.stems @> ARRAY[a.stem]
        LIMIT :most
    ) AS o
) AS p;

-- name: added
SELECT doc, size, stems, counts FROM doc_words WHERE doc > :after ORDER BY doc LIMIT :limit;

-- name: frequencies
-- The number of documents that hold each stem.
SELECT a.stem, (SELECT count(*) FROM doc_words AS w WHERE w.stems @> ARRAY[a.stem])
FROM unnest(CAST(:stems AS text [])) AS a (stem);

-- name: matching
-- The newest documents that hold all of some stems and any of others, with the counts of the stems asked for; null
-- excludes nothing.
WITH found AS MATERIALIZED (
    SELECT w.doc, w.size, w.stems, w.counts
    FROM doc_words AS w
    WHERE
        (CAST(:every AS text []) IS NULL OR w.stems @> CAST(:every AS text []))
        AND (CAST(:some AS text []) IS NULL OR w.stems && CAST(:some AS text []))
        AND (CAST(:other AS text []) IS NULL OR w.stems && CAST(:other AS text []))
        AND (CAST(:places AS text []) IS NULL OR w.stems && CAST(:places AS text []))
        AND (CAST(:ids AS bigint []) IS NULL OR w.doc = ANY (CAST(:ids AS bigint [])))
)
SELECT
    f.doc, f.size,
    ARRAY(
        SELECT coalesce(f.counts [array_position(f.stems, a.stem)], 0)
        FROM unnest(CAST(:asked AS text [])) AS a (stem)
    )
FROM (SELECT doc, size, stems, counts FROM found ORDER BY doc DESC LIMIT :limit) AS f
ORDER BY f.doc DESC;

-- name: differing
-- Documents without words, and words without a document.
SELECT d.id FROM doc AS d WHERE NOT EXISTS (SELECT 1 FROM doc_words AS w WHERE w.doc = d.id)
UNION ALL
SELECT w.doc FROM doc_words AS w WHERE NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.id = w.doc)
LIMIT 1;

-- name: without_document
SELECT w.doc FROM doc_words AS w WHERE NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.id = w.doc) LIMIT :limit;

-- name: sums
-- The numbers of documents and of their words, counted.
SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint) FROM doc_words;

-- name: clear
DELETE FROM doc_words;

-- name: clear_totals
DELETE FROM counter WHERE name IN ('words_docs', 'words_size');

-- name: part_texts
-- As the view doc_part_content in sql/schema/0013.
SELECT d.id, d.text
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
WHERE d.space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools');

-- name: part_texts_after
SELECT id, text
FROM doc
WHERE space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools') AND id > :after
ORDER BY id
LIMIT :limit;

-- name: add_parts
INSERT INTO doc_trigrams (doc, trigrams)
SELECT r.value ->> 0, ARRAY(SELECT jsonb_array_elements_text((r.value).j -> 1))
FROM json_each(:rows) AS r;

-- name: delete_parts
DELETE FROM doc_trigrams WHERE doc IN (SELECT value FROM json_each(:ids));

-- name: differing_parts
SELECT d.id
FROM doc AS d
WHERE
    d.space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools')
    AND NOT EXISTS (SELECT 1 FROM doc_trigrams AS t WHERE t.doc = d.id)
UNION ALL
SELECT t.doc FROM doc_trigrams AS t WHERE NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.id = t.doc)
LIMIT 1;

-- name: delete_parts_without_document
DELETE FROM doc_trigrams
WHERE
    NOT EXISTS (
        SELECT 1
        FROM doc AS d
        WHERE d.id = doc_trigrams.doc AND d.space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools')
    );

-- name: clear_parts
DELETE FROM doc_trigrams;

-- name: holding_parts
SELECT d.key, d.text
FROM doc_trigrams AS t
CROSS JOIN doc AS d ON d.id = t.doc
WHERE t.trigrams @> CAST(:trigrams AS text []) AND d.place IN (SELECT value FROM json_each(:partitions));
