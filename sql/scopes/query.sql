-- fragment: in_chain
-- The entries of some kinds in a chain of scopes.
FROM json_each(:kinds) AS k
CROSS JOIN json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e ON e.kind = k.value AND e.scope = s.value;

-- fragment: visible
-- The entry `i` of the scope `s` is shadowed by no active entry of its name in a nearer scope, or :shadowed is set.
(
    :shadowed
    OR i.shared = 0
    OR NOT EXISTS (
        SELECT 1
        FROM json_each(:scopes) AS n
        CROSS JOIN scopes_entry AS o ON o.kind = i.kind AND o.name = i.name AND o.scope = n.value
        WHERE o.deactivated_at IS NULL AND (n.key < s.key OR (n.key = s.key AND o.twin < i.twin))
    )
);

-- fragment: visible_as_of
-- The same by the entries that were active at a time.
(
    :shadowed
    OR i.shared = 0
    OR NOT EXISTS (
        SELECT 1
        FROM json_each(:scopes) AS n
        CROSS JOIN scopes_entry AS o ON o.kind = i.kind AND o.name = i.name AND o.scope = n.value
        WHERE
            (n.key < s.key OR (n.key = s.key AND o.twin < i.twin))
            AND o.created_at <= :at AND (o.deactivated_at IS NULL OR o.deactivated_at > :at)
    )
);

-- fragment: not_excluded
-- The entry has none of the tags :excluded.
(
    :excluded IS NULL
    OR NOT EXISTS (
        SELECT 1
        FROM scopes_entry_tag AS t
        WHERE t.entry_id = i.id AND t.tag_id IN (SELECT value FROM json_each(:excluded))
    )
);

-- fragment: version_at
-- The current version of an entry, or its version at a time.
CROSS JOIN scopes_version AS v ON v.id = CASE
    WHEN :at IS NULL THEN e.current_version_id
    ELSE (
        SELECT p.id
        FROM scopes_version AS p
        WHERE p.entry_id = e.id AND p.created_at <= :at
        ORDER BY p.version_num DESC
        LIMIT 1
    )
END;

-- name: count_shadowed
-- The number of shadowed active entries in a chain of scopes: of each name all but one.
SELECT coalesce(sum(n.held - 1), 0)
FROM (
    SELECT count(*) AS held
    {in_chain}
    WHERE e.shared = 1 AND e.deactivated_at IS NULL
    GROUP BY e.kind, e.name
) AS n;

-- fragment: ends
-- Whether the end of a version is a time as they are stored: an import keeps other texts, and these never end.
substr(v.valid_until, 11, 1) = 'T' AND length(v.valid_until) = 24;

-- name: by_score
-- The active entries of each kind and scope with the highest scores while they are fresh; either expired entries or
-- others.
SELECT e.seq, e.id, e.kind, e.scope, e.priority, e.created_at, CAST(:expired AS INTEGER), 1
FROM json_each(:kinds) AS k
CROSS JOIN json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e
WHERE e.seq IN (
    SELECT i.seq
    FROM scopes_entry AS i
    WHERE
        i.kind = k.value AND i.scope = s.value AND i.deactivated_at IS NULL
        AND :expired = EXISTS (
            SELECT 1
            FROM scopes_version AS v
            WHERE i.kind = 'knowledge' AND v.id = i.current_version_id AND v.valid_until <= :now
                AND {ends}
        )
        AND {visible}
        AND {not_excluded}
    ORDER BY i.standing DESC, i.created_at DESC
    LIMIT :limit
);

-- name: count_expired
-- The number of active knowledge entries whose validity has ended.
SELECT count(*)
FROM scopes_version AS v
CROSS JOIN scopes_entry AS i ON i.id = v.entry_id
CROSS JOIN json_each(:scopes) AS s ON s.value = i.scope
WHERE
    v.valid_until <= :now AND {ends} AND i.current_version_id = v.id AND i.kind = 'knowledge'
    AND i.deactivated_at IS NULL
    AND {visible}
    AND {not_excluded};

-- name: by_priority
-- The active guidelines of each scope with the highest scores after recency has fallen to 0.
SELECT e.seq, e.id, e.kind, e.scope, e.priority, e.created_at, 0, 1
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e
WHERE e.seq IN (
    SELECT i.seq
    FROM scopes_entry AS i
    WHERE
        i.kind = 'guideline' AND i.scope = s.value AND i.deactivated_at IS NULL AND i.priority IS NOT NULL
        AND {visible}
        AND {not_excluded}
    ORDER BY i.priority DESC, i.created_at DESC
    LIMIT :limit
);

-- name: by_score_as_of
-- The same as of a time, of the entries that are still active and have the priority that they had. `top` is the
-- greatest standing without a priority of an entry that existed then, so that the index skips younger entries. Only a
-- late entry may have had no version then, and only knowledge expires: the others need no look at their versions. The
-- last column is not looked up.
SELECT e.seq, e.id, e.kind, e.scope, e.priority, e.created_at, CAST(:expired AS INTEGER), 0
FROM json_each(:kinds) AS k
CROSS JOIN json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e
WHERE e.seq IN (
    SELECT i.seq
    FROM scopes_entry AS i
    WHERE
        i.kind = k.value AND i.scope = s.value AND i.deactivated_at IS NULL
        AND i.standing <= CASE WHEN k.value = 'guideline' THEN 9e999 ELSE :top END AND i.created_at <= :at
        AND NOT EXISTS (SELECT 1 FROM scopes_entry_was AS h WHERE h.entry_id = i.id AND h.until > :at)
        AND CASE
            WHEN k.value <> 'knowledge' AND i.late = 0 THEN :expired = 0
            ELSE :expired = (
                SELECT coalesce(v.valid_until <= :at AND {ends}, false)
                FROM scopes_version AS v
                WHERE v.entry_id = i.id AND v.created_at <= :at
                ORDER BY v.version_num DESC
                LIMIT 1
            )
        END
        AND {visible_as_of}
        AND {not_excluded}
    ORDER BY i.standing DESC, i.created_at DESC
    LIMIT :limit
);

-- name: count_expired_as_of
-- The same as of a time, of the entries that by_score_as_of reads.
SELECT count(*)
FROM scopes_version AS v
CROSS JOIN scopes_entry AS i ON i.id = v.entry_id
CROSS JOIN json_each(:scopes) AS s ON s.value = i.scope
WHERE
    v.valid_until <= :at AND {ends} AND v.created_at <= :at AND i.kind = 'knowledge'
    AND i.deactivated_at IS NULL
    AND i.created_at <= :at
    AND NOT EXISTS (
        SELECT 1
        FROM scopes_version AS w
        WHERE w.entry_id = v.entry_id AND w.created_at <= :at AND w.version_num > v.version_num
    )
    AND NOT EXISTS (SELECT 1 FROM scopes_entry_was AS h WHERE h.entry_id = i.id AND h.until > :at)
    AND {visible_as_of}
    AND {not_excluded};

-- name: by_priority_as_of
-- The same of the guidelines with the highest scores after recency has fallen to 0.
SELECT e.seq, e.id, e.kind, e.scope, e.priority, e.created_at, 0, 0
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e
WHERE e.seq IN (
    SELECT i.seq
    FROM scopes_entry AS i
    WHERE
        i.kind = 'guideline' AND i.scope = s.value AND i.deactivated_at IS NULL AND i.priority IS NOT NULL
        AND i.created_at <= :at
        AND NOT EXISTS (SELECT 1 FROM scopes_entry_was AS h WHERE h.entry_id = i.id AND h.until > :at)
        AND (i.late = 0 OR EXISTS (SELECT 1 FROM scopes_version AS w WHERE w.entry_id = i.id AND w.created_at <= :at))
        AND {visible_as_of}
        AND {not_excluded}
    ORDER BY i.priority DESC, i.created_at DESC
    LIMIT :limit
);

-- name: deactivated_since
-- Entries that were active at a time and are no longer.
SELECT e.id
{in_chain}
WHERE e.deactivated_at > :at AND e.created_at <= :at;

-- name: changed_since
-- Entries that are active and had another category or priority at a time.
SELECT DISTINCT e.id
FROM scopes_entry_was AS w
CROSS JOIN scopes_entry AS e ON e.id = w.entry_id
WHERE
    w.until > :at AND e.deactivated_at IS NULL
    AND e.kind IN (SELECT value FROM json_each(:kinds)) AND e.scope IN (SELECT value FROM json_each(:scopes));

-- name: count_as_of
-- The entries that were active at a time and still are, from the index alone.
SELECT count(*)
FROM json_each(:kinds) AS k
CROSS JOIN json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e INDEXED BY scopes_entry_by_standing ON e.kind = k.value AND e.scope = s.value
WHERE e.deactivated_at IS NULL AND e.created_at <= :at;

-- name: count_shadowed_as_of
-- The number of shadowed entries among those that were active at a time: of each name all but one. An entry that is no
-- longer active may have shadowed the others, and is not counted itself.
SELECT coalesce(sum(n.active - n.nearest_is_active), 0)
FROM (
    -- Beside min(), a column is that of its row (https://sqlite.org/lang_select.html#bareagg).
    SELECT sum(e.deactivated_at IS NULL) AS active, e.deactivated_at IS NULL AS nearest_is_active,
        min(s.key * 1000000 + e.twin)
    FROM json_each(:kinds) AS k
    CROSS JOIN json_each(:scopes) AS s
    CROSS JOIN scopes_entry AS e INDEXED BY scopes_entry_shared ON e.kind = k.value AND e.scope = s.value
    WHERE e.shared = 1 AND e.created_at <= :at AND (e.deactivated_at IS NULL OR e.deactivated_at > :at)
    GROUP BY e.kind, e.name
) AS n;

-- name: count_versionless
-- The number of entries that are active, existed at a time and were not shadowed, but had no version yet.
SELECT count(*)
FROM json_each(:kinds) AS k
CROSS JOIN json_each(:scopes) AS s
CROSS JOIN scopes_entry AS i INDEXED BY scopes_entry_late ON i.kind = k.value AND i.scope = s.value AND i.late = 1
WHERE
    i.deactivated_at IS NULL AND i.created_at <= :at
    AND NOT EXISTS (SELECT 1 FROM scopes_version AS w WHERE w.entry_id = i.id AND w.created_at <= :at)
    AND {visible_as_of};

-- name: entries
-- Entries by id, whether each is expired, and whether the index holds it; without shadowed entries unless `shadowed`.
SELECT
    e.seq, e.id, e.kind, e.scope, e.priority, e.created_at,
    e.kind = 'knowledge' AND EXISTS (
        SELECT 1
        FROM scopes_version AS v
        WHERE v.id = e.current_version_id AND v.valid_until <= :now AND {ends}
    ),
    e.deactivated_at IS NULL
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value
WHERE
    (:inactive OR e.deactivated_at IS NULL)
    AND (
        :shadowed
        OR e.shared = 0
        OR NOT EXISTS (
            SELECT 1
            FROM json_each(:scopes) AS s
            CROSS JOIN json_each(:scopes) AS n
            CROSS JOIN scopes_entry AS o ON o.kind = e.kind AND o.name = e.name AND o.scope = n.value
            WHERE
                s.value = e.scope AND (n.key < s.key OR (n.key = s.key AND o.twin < e.twin))
                AND o.deactivated_at IS NULL
        )
    );

-- name: entries_as_of
-- The same as of a time, with the version and the priority of that time.
SELECT
    e.seq, e.id, e.kind, e.scope, CASE WHEN w.seq IS NULL THEN e.priority ELSE w.priority END, e.created_at,
    v.valid_until IS NOT NULL AND v.valid_until <= :at AND {ends},
    e.deactivated_at IS NULL AND v.id = e.current_version_id
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value
CROSS JOIN scopes_version AS v ON v.id = (
    SELECT p.id FROM scopes_version AS p WHERE p.entry_id = e.id AND p.created_at <= :at
    ORDER BY p.version_num DESC
    LIMIT 1
)
{was}
WHERE
    e.created_at <= :at
    AND (:inactive OR e.deactivated_at IS NULL OR e.deactivated_at > :at)
    AND (
        :shadowed
        OR e.shared = 0
        OR NOT EXISTS (
            SELECT 1
            FROM json_each(:scopes) AS s
            CROSS JOIN json_each(:scopes) AS n
            CROSS JOIN scopes_entry AS o ON o.kind = e.kind AND o.name = e.name AND o.scope = n.value
            WHERE
                s.value = e.scope AND (n.key < s.key OR (n.key = s.key AND o.twin < e.twin))
                AND o.created_at <= :at AND (o.deactivated_at IS NULL OR o.deactivated_at > :at)
        )
    );

-- name: entry_ids
-- Every entry in a chain of scopes, active or not.
SELECT e.id
{in_chain};

-- name: unindexed
-- Entries that the index does not hold in the requested version: inactive entries, and those changed since `at`.
SELECT
    e.id, e.kind, e.name, v.{version}
{in_chain}
{version_at}
WHERE e.deactivated_at IS NOT NULL OR v.id <> e.current_version_id;

-- name: unindexed_by_ids
-- The same for the given entries.
SELECT e.id, e.kind, e.name, v.{version}
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value
{version_at}
WHERE e.deactivated_at IS NOT NULL OR v.id <> e.current_version_id;

-- name: tag_ids
SELECT id, fold FROM scopes_tag WHERE fold IN (SELECT value FROM json_each(:folds));

-- name: ids_with_tags
-- Entries with any of these tags.
SELECT DISTINCT t.entry_id
FROM json_each(:tags) AS g
CROSS JOIN scopes_entry_tag AS t ON t.tag_id = g.value;

-- name: matching_tags
-- Which of these tags each of these entries has.
SELECT t.entry_id, t.tag_id
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry_tag AS t ON t.entry_id = i.value
WHERE t.tag_id IN (SELECT value FROM json_each(:tags));

-- name: related
-- The rows related to one row in either direction, and that row itself.
SELECT source_id FROM scopes_relation
WHERE target_id = :id AND target_type = :type AND (:relation IS NULL OR relation_type = :relation)
UNION
SELECT target_id FROM scopes_relation
WHERE source_id = :id AND source_type = :type AND (:relation IS NULL OR relation_type = :relation)
UNION
SELECT :id;

-- name: page
-- Entries with their current versions, or with the version, the category and the priority of a time.
SELECT {entry_as_of}
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value
{version_at}
{was};

-- name: tags
-- The tags of these entries, in the order they were attached.
SELECT t.entry_id, g.id, g.name
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry_tag AS t ON t.entry_id = i.value
CROSS JOIN scopes_tag AS g ON g.id = t.tag_id
ORDER BY t.seq;

-- name: versions
-- The versions of these entries up to the time `at`, newest first.
SELECT v.{version}
FROM json_each(:ids) AS i
CROSS JOIN scopes_version AS v ON v.entry_id = i.value
WHERE :at IS NULL OR v.created_at <= :at
ORDER BY v.entry_id, v.version_num DESC;
