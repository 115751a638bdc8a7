-- name: used_relation_ids
SELECT r.id FROM json_each(:ids) AS i CROSS JOIN scopes_relation AS r ON r.id = i.value;

-- name: add_tag
-- Returns the id only if neither it nor the name was taken.
INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
VALUES (:id, :name, :fold, :category, :predefined, :description, :now)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: detach_others
DELETE FROM scopes_entry_tag
WHERE entry_id = :id AND entry_type = :kind AND tag_id NOT IN (SELECT value FROM json_each(:tags))
RETURNING id, entry_type, entry_id, tag_id, created_at;

-- name: delete_other_relations
DELETE FROM scopes_relation
WHERE source_id = :id AND source_type = :kind AND id NOT IN (SELECT value FROM json_each(:kept))
RETURNING {relation};
