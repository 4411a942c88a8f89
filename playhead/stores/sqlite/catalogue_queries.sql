-- The queries of the catalogue of a bundle directory, by name.

-- name: looks
SELECT seen_at, boot FROM looks;

-- name: set_looks
INSERT OR REPLACE INTO looks (one, seen_at, boot) VALUES (1, :seen_at, :boot);

-- name: bundle_names
SELECT name, inode, is_watched, print, stamp FROM bundles;

-- name: bundle_named
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles WHERE name = :name;

-- name: stamps_numbered
SELECT number, stamp FROM bundles WHERE number IN (SELECT value FROM json_each(:numbers));

-- name: bundles_numbered
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles WHERE number IN (SELECT value FROM json_each(:numbers));

-- name: bundles_in_order
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles WHERE is_listed = 1 AND (:app IS NULL OR app = :app) AND (:user IS NULL OR user = :user)
  AND (:after_app IS NULL OR (app, user, id) > (:after_app, :after_user, :after_id))
ORDER BY app, user, id, name LIMIT :limit;

-- name: watched_bundles
SELECT name, print, stamp FROM bundles INDEXED BY bundles_watched WHERE is_watched = 1;

-- name: behind_bundles
SELECT app, user, id FROM bundles INDEXED BY bundles_behind WHERE is_behind = 1 LIMIT :limit;

-- name: is_any_unplaced
-- Whether there is a session whose place in lists nobody knows yet.
SELECT EXISTS (SELECT 1 FROM bundles INDEXED BY bundles_behind WHERE is_behind = 1 AND summary IS NULL);

-- name: hidden_bundles
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles INDEXED BY bundles_hidden WHERE is_listed = 0;

-- name: bundle_of
-- The file that holds a session that can be read, and counts.
SELECT name FROM bundles WHERE app = :app AND user = :user AND id = :id AND is_listed = 1 AND problem IS NULL;

-- name: readable_of
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles WHERE app = :app AND user = :user AND id = :id AND is_listed = 1 AND problem IS NULL;

-- name: unreadable_of
SELECT number, name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem, trouble,
  copy_of, is_listed, is_behind, size_bytes
FROM bundles WHERE app = :app AND user = :user AND id = :id AND is_listed = 1 AND problem IS NOT NULL;

-- name: copies_of
SELECT name FROM bundles INDEXED BY bundles_copies WHERE copy_of = :name;

-- name: watch
UPDATE bundles SET is_watched = 1, stamp = :stamp WHERE name = :name;

-- name: watch_all
UPDATE bundles SET is_watched = 1, stamp = :stamp WHERE name IN (SELECT value FROM json_each(:names));

-- name: unwatch
UPDATE bundles SET is_watched = 0, stamp = :stamp WHERE name = :name AND stamp = :seen;

-- name: put_bundle
INSERT INTO bundles (name, inode, print, stamp, is_watched, app, user, id, seq, at, summary, summary_seq, problem,
  trouble, copy_of, is_listed, is_behind, size_bytes)
VALUES (:name, :inode, :print, :stamp, :is_watched, :app, :user, :id, :seq, :at, :summary, :summary_seq, :problem,
  :trouble, :copy_of, :is_listed, :is_behind, :size_bytes)
ON CONFLICT (name) DO UPDATE SET inode = :inode, print = :print, stamp = :stamp, is_watched = :is_watched, app = :app,
  user = :user, id = :id, seq = :seq, at = :at, summary = :summary, summary_seq = :summary_seq, problem = :problem,
  trouble = :trouble, copy_of = :copy_of, is_listed = :is_listed, is_behind = :is_behind, size_bytes = :size_bytes
RETURNING number;

-- name: set_bundle_summary
UPDATE bundles SET summary = :summary, summary_seq = :summary_seq, trouble = :trouble, is_behind = :is_behind,
  stamp = :stamp
WHERE number = :number;

-- name: remove_bundle
DELETE FROM bundles WHERE name = :name RETURNING number;

-- name: bundle_bytes
SELECT total(size_bytes) FROM bundles WHERE is_listed = 1;

-- name: count_bundles
SELECT count(*), total(problem IS NOT NULL OR trouble IS NOT NULL) FROM bundles WHERE is_listed = 1;
