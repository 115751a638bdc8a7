-- name: count_shadowed_as_of
SELECT coalesce(sum(n.active - n.nearest_is_active), 0)
FROM (
    SELECT
        count(*) FILTER (WHERE e.deactivated_at IS NULL) AS active,
        (
            array_agg(
                CASE WHEN e.deactivated_at IS NULL THEN 1 ELSE 0 END ORDER BY s.key * 1000000 + e.twin
            )
        ) [1] AS nearest_is_active
    {in_chain}
    WHERE e.shared = 1 AND e.created_at <= :at AND (e.deactivated_at IS NULL OR e.deactivated_at > :at)
    GROUP BY e.kind, e.name
) AS n;
