-- What mends a database in place, by name.

-- name: forget_summaries
UPDATE sessions SET summary = NULL, summary_seq = 0;

-- name: drop_all_snapshots
DELETE FROM snapshots;
