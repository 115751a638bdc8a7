-- As kernel/engines/postgres/full_text.py writes them: a long stem that could be stored, since it could be compressed.
UPDATE quipu_data.doc_words AS w
SET
    stems = ARRAY(
        SELECT
            CASE
                WHEN octet_length(s.stem) > 2600
                    THEN left(s.stem, 60) || encode(sha256(convert_to(s.stem, 'UTF8')), 'hex')
                ELSE s.stem
            END
        FROM unnest(w.stems) WITH ORDINALITY AS s (stem, n)
        ORDER BY s.n
    )
WHERE
    octet_length(array_to_string(w.stems, '')) > 2600
    AND EXISTS (SELECT 1 FROM unnest(w.stems) AS s (stem) WHERE octet_length(s.stem) > 2600);
