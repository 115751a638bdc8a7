-- name: tables
SELECT tablename FROM pg_tables WHERE schemaname = 'quipu_data' ORDER BY tablename;
