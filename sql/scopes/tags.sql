-- fragment: tag
id, name, category, is_predefined, description, created_at;

-- fragment: entry_tag
id, entry_type, entry_id, tag_id, created_at;

-- name: add
-- Returns the row only if neither the id nor the name was taken.
INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
VALUES (:id, :name, :fold, :category, :is_predefined, :description, :created_at)
ON CONFLICT DO NOTHING
RETURNING {tag};

-- name: by_name
-- In any case; the spelling itself first, since an imported database may have several.
SELECT {tag} FROM scopes_tag
WHERE fold = :fold
ORDER BY name <> :name, seq
LIMIT 1;

-- name: get
SELECT {tag} FROM scopes_tag WHERE id = :id;

-- name: list
SELECT {tag} FROM scopes_tag
WHERE (:category IS NULL OR category = :category) AND (:is_predefined IS NULL OR is_predefined = :is_predefined)
ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: attach
-- Returns the row only if the tag was not attached yet.
INSERT INTO scopes_entry_tag ({entry_tag})
VALUES (:id, :entry_type, :entry_id, :tag_id, :created_at)
ON CONFLICT DO NOTHING
RETURNING {entry_tag};

-- name: attachment
SELECT {entry_tag} FROM scopes_entry_tag
WHERE entry_id = :entry_id AND entry_type = :entry_type AND tag_id = :tag_id;

-- name: detach
DELETE FROM scopes_entry_tag
WHERE entry_id = :entry_id AND entry_type = :entry_type
    AND tag_id = coalesce(
        :tag_id,
        (
            SELECT t.id
            FROM scopes_entry_tag AS m
            JOIN scopes_tag AS t ON t.id = m.tag_id
            WHERE m.entry_id = :entry_id AND m.entry_type = :entry_type AND t.fold = :fold
            ORDER BY t.name <> :name, t.seq
            LIMIT 1
        )
    )
RETURNING {entry_tag};

-- name: of_entry
SELECT t.{tag}
FROM scopes_entry_tag AS m
JOIN scopes_tag AS t ON t.id = m.tag_id
WHERE m.entry_id = :entry_id AND m.entry_type = :entry_type
ORDER BY m.seq;

-- name: names_of_entry
SELECT t.name
FROM scopes_entry_tag AS m
JOIN scopes_tag AS t ON t.id = m.tag_id
WHERE m.entry_id = :entry_id AND m.entry_type = :entry_type
ORDER BY m.seq;

-- name: count
SELECT count(*) FROM scopes_tag
WHERE (:category IS NULL OR category = :category) AND (:is_predefined IS NULL OR is_predefined = :is_predefined);

-- name: tagged
-- The active entries with any of these tags, by case-folded name.
SELECT e.kind, e.id
FROM json_each(:tags) AS w
CROSS JOIN scopes_tag AS t ON t.fold = w.value
CROSS JOIN scopes_entry_tag AS m ON m.tag_id = t.id
CROSS JOIN scopes_entry AS e ON e.id = m.entry_id AND e.kind = m.entry_type
WHERE e.deactivated_at IS NULL;
