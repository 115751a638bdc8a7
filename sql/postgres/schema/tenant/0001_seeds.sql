-- What a new tenant begins with, as sql/schema has it.
INSERT INTO scopes_predefined_tag (name, category, description)
VALUES
    ('python', 'language', 'Python'),
    ('typescript', 'language', 'TypeScript'),
    ('javascript', 'language', 'JavaScript'),
    ('rust', 'language', 'Rust'),
    ('go', 'language', 'Go'),
    ('sql', 'language', 'SQL and its dialects'),
    ('bash', 'language', 'Shell scripts'),
    ('web', 'domain', 'Web pages and web applications'),
    ('cli', 'domain', 'Command-line programs'),
    ('api', 'domain', 'Interfaces that other programs call'),
    ('database', 'domain', 'Databases and how they are used'),
    ('ml', 'domain', 'Machine learning'),
    ('devops', 'domain', 'Builds, deployment and operation'),
    ('security', 'domain', 'Security and protection of data'),
    ('testing', 'domain', 'Tests and quality'),
    ('code_style', 'category', 'How code is written and laid out'),
    ('architecture', 'category', 'How the parts of a system fit together'),
    ('behavior', 'category', 'How an agent is to act'),
    ('performance', 'category', 'Speed and use of resources'),
    ('error_handling', 'category', 'How failures are met'),
    ('logging', 'category', 'What is logged, and how'),
    ('deprecated', 'meta', 'No longer to be used'),
    ('experimental', 'meta', 'Not settled yet'),
    ('stable', 'meta', 'Settled and fit for use'),
    ('required', 'meta', 'Has to be followed'),
    ('optional', 'meta', 'May be followed');

INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
SELECT 'tag_' || name, name, name, category, 1, description, '2026-01-01T00:00:00.000Z'
FROM scopes_predefined_tag
ORDER BY position;

INSERT INTO files_store (id, name, description, metadata, created_at, updated_at)
SELECT 'memstore_memories', 'memories', '', '{}', n.now, n.now
FROM (SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS now) AS n;
