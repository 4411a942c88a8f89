-- Every query of the embedded stores, by name. `:first` and `:last` bound the rows of one session.

-- name: schema
SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT :limit;

-- name: session_number
SELECT number, event_version FROM sessions WHERE app = :app AND user = :user AND id = :id;

-- name: is_on_a_path
SELECT EXISTS (SELECT 1 FROM events WHERE row = :row AND fact IS NULL);

-- name: insert_session
-- A number is never used while events of it remain, be it of a session whose row was removed by hand.
-- The first fence is drawn at random: one given out before a deletion means nothing to a session of the same id.
INSERT INTO sessions (number, app, user, id, event_version, fence)
VALUES (
  1 + max(coalesce((SELECT max(number) FROM sessions), 0), coalesce((SELECT max(row) FROM events), 0) >> 32),
  :app, :user, :id, :event_version, :fence
)
RETURNING number;

-- name: tip
SELECT row & 4294967295, parent, at, hash, fact FROM events WHERE row >= :first AND row <= :last
ORDER BY row DESC LIMIT 1;

-- name: append_one
-- One statement, one commit: it adds the event only where the log still ends with the row and hash that the caller
-- knows, and the lease allows it. Else it fails: on a row that is taken, or on a hash that is null. Look closer then.
-- VALUES, since INSERT ... SELECT that reads its own table goes through a temporary one: 1.4 us.
-- ?13 and ?14: row and hash of the event before. ?15: session number. ?16: fence, or null.
INSERT INTO events (row, parent, id, at, kind, agent, turn, scope, body, salt, hash, fact)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
  CASE WHEN (SELECT hash FROM events WHERE row = ?13) = ?14
    AND EXISTS (SELECT 1 FROM sessions WHERE number = ?15
      AND ((?16 IS NULL AND holder IS NULL) OR (fence = ?16 AND holder IS NOT NULL)))
  THEN ?11 END, ?12);

-- name: insert_event
INSERT INTO events (row, parent, id, at, kind, agent, turn, scope, body, salt, hash, fact)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- name: insert_record
-- As another store had it: the one insertion that may bring a redacted event, whose digest stands for its body.
INSERT INTO events (row, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, fact)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- name: events
SELECT row & 4294967295, parent, id, at, kind, agent, turn, scope, body, fact FROM events
WHERE row > :after AND row <= :until AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
ORDER BY row LIMIT :limit;

-- name: events_newest_first
SELECT row & 4294967295, parent, id, at, kind, agent, turn, scope, body, fact FROM events
WHERE row > :after AND row <= :until AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
ORDER BY row DESC LIMIT :limit;

-- name: events_range
SELECT row & 4294967295, parent, id, at, kind, agent, turn, scope, body, fact FROM events
WHERE row >= :first AND row <= :last ORDER BY row;

-- name: path_tail
-- Walks parents from the head until an event that has a snapshot, which it leaves out. Reads no other branch.
-- With :past, the snapshot at the head itself is passed over (its chain has a link missing).
WITH RECURSIVE walk (row) AS (
  SELECT :head WHERE :past OR NOT EXISTS (SELECT 1 FROM snapshots WHERE row = :head)
  UNION ALL
  SELECT :base + e.parent FROM walk JOIN events e ON e.row = walk.row
  WHERE e.parent > 0 AND e.parent < e.row - :base
    AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.row = :base + e.parent)
)
SELECT e.row & 4294967295, e.parent, e.id, e.at, e.kind, e.agent, e.turn, e.scope, e.body, e.fact
FROM walk JOIN events e ON e.row = walk.row ORDER BY e.row;

-- name: snapshot_chain
-- The snapshot at a row and the ones beneath it, complete one first.
WITH RECURSIVE chain (row, base_seq, document) AS (
  SELECT row, base_seq, document FROM snapshots WHERE row = :row
  UNION ALL
  SELECT s.row, s.base_seq, s.document FROM chain JOIN snapshots s ON s.row = :base + chain.base_seq
  WHERE chain.base_seq > 0 AND :base + chain.base_seq < chain.row
)
SELECT document FROM chain ORDER BY row;

-- name: snapshot_seqs
SELECT row & 4294967295 FROM snapshots WHERE row >= :first AND row <= :last ORDER BY row;

-- name: facts
SELECT row & 4294967295, parent, id, at, kind, agent, turn, scope, body, fact FROM events INDEXED BY events_facts
WHERE fact = 1 AND row >= :first AND row <= :until ORDER BY row;

-- name: seq_of
SELECT id, row & 4294967295 FROM events WHERE row >> 32 = :number AND id IN (SELECT value FROM json_each(:ids));

-- name: records
SELECT row & 4294967295, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, fact IS NOT NULL
FROM events WHERE row > :after AND row <= :last ORDER BY row LIMIT :limit;

-- name: save_snapshot
INSERT OR REPLACE INTO snapshots (row, base_seq, document) VALUES (:row, :base_seq, :document);

-- name: drop_snapshots
DELETE FROM snapshots WHERE row >= :first AND row <= :last;

-- name: save_summary
UPDATE sessions SET summary = :summary, summary_seq = :seq WHERE number = :number AND (typeof(summary_seq) <> 'integer' OR summary_seq <= :seq);

-- name: list_sessions
-- Without the trash, whose app and user are empty.
SELECT number, app, user, id, summary, summary_seq FROM sessions
WHERE typeof(app) = 'text' AND typeof(user) = 'text' AND typeof(id) = 'text'
  AND NOT (app = '' AND user = '')
  AND (:app IS NULL OR app = :app) AND (:user IS NULL OR user = :user)
  AND (:after_app IS NULL OR (app, user, id) > (:after_app, :after_user, :after_id))
ORDER BY app, user, id LIMIT :limit;

-- name: list_nameless
-- Rows whose key is no text: the file is damaged, or somebody's attack.
SELECT number FROM sessions WHERE typeof(app) <> 'text' OR typeof(user) <> 'text' OR typeof(id) <> 'text'
ORDER BY number LIMIT :limit;

-- name: set_aside
-- Into the trash: under a key that no session can have, and with a new fence, so that no writer who knows the session
-- gets anything in any more. holder says what it was.
UPDATE sessions SET app = '', user = '', id = :trash_id, fence = fence + 1, holder = :record, indexed_seq = 0
WHERE number = :number;

-- name: take_back
UPDATE sessions SET app = :app, user = :user, id = :id, holder = NULL WHERE number = :number;

-- name: note_aside
UPDATE sessions SET holder = :record WHERE number = :number;

-- name: aside
SELECT number, id, holder, summary FROM sessions WHERE app = '' AND user = '' AND id = :trash_id;

-- name: list_aside
-- Without what is being built or removed.
SELECT number, id, holder, summary FROM sessions
WHERE app = '' AND user = '' AND typeof(id) = 'text' AND id NOT GLOB '+*' AND (:after IS NULL OR id > :after)
ORDER BY id LIMIT :limit;

-- name: list_hidden
-- What is being built or removed, or was when a process died.
SELECT id FROM sessions WHERE app = '' AND user = '' AND typeof(id) = 'text' AND id GLOB '+*' ORDER BY id LIMIT :limit;

-- name: hide
-- As set_aside, but for good: nobody sees it any more, and its rows can go in as many steps as it takes.
UPDATE sessions SET app = '', user = '', id = :id, fence = fence + 1, holder = '{}', indexed_seq = 0
WHERE number = :number;

-- name: is_empty
SELECT NOT EXISTS (SELECT 1 FROM sessions) AND NOT EXISTS (SELECT 1 FROM events);

-- name: lease
SELECT fence, holder, renewed_at FROM sessions WHERE number = :number;

-- name: take_lease
UPDATE sessions SET fence = fence + 1, holder = :holder, renewed_at = :at WHERE number = :number RETURNING fence;

-- name: renew_lease
-- Never back: an imported event says when it happened, not when it was written.
UPDATE sessions SET renewed_at = max(renewed_at, :at) WHERE number = :number AND fence = :fence;

-- name: release_lease
UPDATE sessions SET holder = NULL WHERE number = :number AND fence = :fence;

-- name: permit
INSERT INTO permits (reason) VALUES (:reason);

-- name: end_permit
DELETE FROM permits;

-- name: delete_events
DELETE FROM events WHERE row >= :first AND row <= :last;

-- name: delete_session
DELETE FROM sessions WHERE number = :number;

-- name: has_text_index
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'text_index');

-- name: has_notes
-- The index is the last that is made of them.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'notes_by_name');

-- name: indexed_seq
SELECT indexed_seq FROM sessions WHERE number = :number;

-- name: set_indexed_seq
UPDATE sessions SET indexed_seq = :seq WHERE number = :number;

-- name: reset_indexed_seq
UPDATE sessions SET indexed_seq = 0;

-- name: index_text
INSERT INTO text_index (rowid, content) VALUES (:row, :text);

-- name: unindex_session
DELETE FROM text_index WHERE rowid >= :first AND rowid <= :last;

-- name: drop_text_index
DROP TABLE IF EXISTS text_index;

-- name: match_text
SELECT s.app, s.user, s.id, e.row & 4294967295, -bm25(text_index) AS score
FROM text_index JOIN events e ON e.row = text_index.rowid JOIN sessions s ON s.number = e.row >> 32
WHERE text_index MATCH :expression AND text_index.rowid >= :first AND text_index.rowid <= :last
  AND (:numbers IS NULL OR e.row >> 32 IN (SELECT value FROM json_each(:numbers)))
  AND (:agents IS NULL OR e.agent IN (SELECT value FROM json_each(:agents)))
  AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:turns IS NULL OR e.turn IN (SELECT value FROM json_each(:turns)))
  AND (:since IS NULL OR e.at >= :since) AND (:until IS NULL OR e.at < :until)
ORDER BY score DESC, e.row DESC LIMIT :limit;

-- name: put_note
INSERT OR IGNORE INTO notes (topic, name, id, at, body) VALUES (:topic, :name, :id, :at, :body);

-- name: drop_earlier_notes
-- The newest stays, so that no place in the order of arrival is ever given twice.
DELETE FROM notes WHERE topic = :topic AND name = :name
  AND position < (SELECT max(position) FROM notes WHERE topic = :topic AND name = :name);

-- name: get_note
SELECT body FROM notes WHERE topic = :topic AND name = :name ORDER BY position DESC LIMIT 1;

-- name: all_notes
SELECT name, body FROM notes n WHERE topic = :topic
  AND position = (SELECT max(position) FROM notes WHERE topic = n.topic AND name = n.name) ORDER BY name;
