-- name: kept
SELECT digest, answer FROM audit_answer WHERE caller = :caller AND key = :key AND at > :after;

-- name: expire
DELETE FROM audit_answer
WHERE (caller, key) IN (SELECT a.caller, a.key FROM audit_answer AS a WHERE a.at <= :before ORDER BY a.at LIMIT :limit);

-- name: keep
INSERT INTO audit_answer (caller, key, digest, at, targets, answer)
VALUES (:caller, :key, :digest, :now, :targets, :answer)
ON CONFLICT (caller, key) DO UPDATE
SET digest = excluded.digest, at = excluded.at, targets = excluded.targets, answer = excluded.answer;

-- name: targets
SELECT targets FROM audit_answer WHERE caller = :caller AND key = :key;

-- name: clear
DELETE FROM audit_answer;
