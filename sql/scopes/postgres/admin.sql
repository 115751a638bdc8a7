-- name: engine
SELECT 'PostgreSQL';

-- name: seed_tags
INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
SELECT 'tag_' || name, name, name, category, 1, description, :now
FROM scopes_predefined_tag
ORDER BY position;
