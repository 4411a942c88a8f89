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

-- name: two_sessions
SELECT number, app, user, id, summary, summary_seq FROM sessions LIMIT 2;

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

-- The rows of lists. Names in braces stand for the parts that these queries share.

-- name: listing_digest
SELECT digest, active_place FROM listing WHERE number = :number;

-- name: listing_touch
UPDATE listing SET active_place = :active_place WHERE number = :number;

-- name: listing_value_ids
SELECT v.value_id FROM json_each(:values) j
JOIN listing_values v ON v.name = j.value ->> 0 AND v.value = j.value ->> 1 ORDER BY v.value_id;

-- name: listing_new_values
INSERT OR IGNORE INTO listing_values (name, value, count)
SELECT value ->> 0, value ->> 1, 0 FROM json_each(:values);

-- name: listing_put
INSERT INTO listing (number, active_place, created_place, app, user, id, is_readable, parent_app, parent_user,
  parent_id, value_ids, digest, title_place, preview, others)
VALUES (:number, :active_place, :created_place, :app, :user, :id, :is_readable, :parent_app, :parent_user,
  :parent_id, :value_ids, :digest, :title_place, :preview, :others)
ON CONFLICT (number) DO UPDATE SET active_place = :active_place, created_place = :created_place, app = :app,
  user = :user, id = :id, is_readable = :is_readable, parent_app = :parent_app, parent_user = :parent_user,
  parent_id = :parent_id, value_ids = :value_ids, digest = :digest, title_place = :title_place, preview = :preview,
  others = :others;

-- name: listing_remove
DELETE FROM listing WHERE number = :number;

-- name: listing_fits_index
-- What the index listing_by_active can say of a row.
(:app IS NULL OR l.app = :app) AND (:user IS NULL OR l.user = :user)
  AND l.active_place > :active_after AND l.active_place <= :active_until AND (l.is_readable OR NOT :readable)
  AND (:begins IS NULL OR substr(l.id, 1, length(:begins)) = :begins
    OR (instr(l.id, '.') > 0 AND substr(l.id, instr(l.id, '.') + 1, length(:begins)) = :begins)
    OR substr(l.app || '/' || l.user || '/' || l.id, 1, length(:begins)) = :begins)
  AND (:without IS NULL OR l.number NOT IN (SELECT value FROM json_each(:without)))

-- name: listing_fits
{listing_fits_index}
  AND (:value_ids IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:value_ids) j
    WHERE NOT EXISTS (SELECT 1 FROM listing_facets f WHERE f.value_id = j.value AND f.number = l.number)))
  AND (:words IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(:words) w
    WHERE instr(l.title_place, w.value) = 0 AND instr(l.preview, w.value) = 0 AND instr(l.others, w.value) = 0))

-- name: listing_found
-- The rows among which the wanted ones are, one way of four: the three that are not asked for cost nothing.
(SELECT rowid AS number FROM listing_words WHERE :way = 'words' AND listing_words MATCH :match
  UNION ALL SELECT number FROM listing_facets WHERE :way = 'value' AND value_id = :value_id
  UNION ALL SELECT number FROM listing INDEXED BY listing_by_key WHERE :way = 'key' AND app = :app AND user = :user
  UNION ALL SELECT number FROM listing INDEXED BY listing_by_active
    WHERE :way = 'all' AND active_place > :active_after AND active_place <= :active_until)

-- name: listing_rank
-- As listing.relevance has it, and minus, since the best comes first.
CASE WHEN :by_rank THEN (SELECT -sum(CASE WHEN instr(l.title_place, w.value) THEN :title_weight
  WHEN instr(l.preview, w.value) THEN :preview_weight ELSE :other_weight END) FROM json_each(:words) w) ELSE 0 END

-- name: listing_chosen_place
CASE :sort WHEN 'title' THEN l.title_place WHEN 'created' THEN l.created_place ELSE l.active_place END

-- name: listing_fork_count
(SELECT count(*) FROM listing f WHERE f.parent_app = p.app AND f.parent_user = p.user AND f.parent_id = p.id
  AND (:without IS NULL OR f.number NOT IN (SELECT value FROM json_each(:without))))

-- name: listing_count
SELECT count FROM listing_values WHERE value_id = 0;

-- name: listing_activity
SELECT count(*), min(active_place), max(active_place), total(active_place)
FROM listing INDEXED BY listing_by_active
WHERE is_readable = 1 AND (:without IS NULL OR number NOT IN (SELECT value FROM json_each(:without)));

-- name: listing_count_key
SELECT count(*) FROM listing INDEXED BY listing_by_key WHERE app = :app AND user = :user;

-- name: listing_count_index
SELECT count(*) FROM listing l INDEXED BY listing_by_active WHERE {listing_fits_index};

-- name: listing_count_found
SELECT count(*) FROM {listing_found} c CROSS JOIN listing l ON l.number = c.number WHERE {listing_fits};

-- name: listing_found_page
SELECT p.number, {listing_fork_count} FROM (
  SELECT l.number, l.app, l.user, l.id, {listing_rank} AS rank, {listing_chosen_place} AS place
  FROM {listing_found} c CROSS JOIN listing l ON l.number = c.number
  WHERE {listing_fits}
    AND (rank, place, l.app, l.user, l.id) > (:low_rank, :low, :low_app, :low_user, :low_id)
  ORDER BY rank, place, l.app, l.user, l.id LIMIT :limit) p
ORDER BY p.rank, p.place, p.app, p.user, p.id;

-- name: listing_found_page_reversed
SELECT p.number, {listing_fork_count} FROM (
  SELECT l.number, l.app, l.user, l.id, {listing_rank} AS rank, {listing_chosen_place} AS place
  FROM {listing_found} c CROSS JOIN listing l ON l.number = c.number
  WHERE {listing_fits}
    AND (rank, place, l.app, l.user, l.id) < (:high_rank, :high, :high_app, :high_user, :high_id)
  ORDER BY rank DESC, place DESC, l.app DESC, l.user DESC, l.id DESC LIMIT :limit) p
ORDER BY p.rank DESC, p.place DESC, p.app DESC, p.user DESC, p.id DESC;

-- name: listing_page_last_active
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, active_place AS place FROM listing l INDEXED BY listing_by_active
  WHERE (active_place, app, user, id) > (:low, :low_app, :low_user, :low_id) AND {listing_fits}
  ORDER BY active_place, app, user, id LIMIT :limit) p
ORDER BY p.place, p.app, p.user, p.id;

-- name: listing_page_last_active_reversed
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, active_place AS place FROM listing l INDEXED BY listing_by_active
  WHERE (active_place, app, user, id) < (:high, :high_app, :high_user, :high_id) AND {listing_fits}
  ORDER BY active_place DESC, app DESC, user DESC, id DESC LIMIT :limit) p
ORDER BY p.place DESC, p.app DESC, p.user DESC, p.id DESC;

-- name: listing_page_created
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, created_place AS place FROM listing l INDEXED BY listing_by_created
  WHERE (created_place, app, user, id) > (:low, :low_app, :low_user, :low_id) AND {listing_fits}
  ORDER BY created_place, app, user, id LIMIT :limit) p
ORDER BY p.place, p.app, p.user, p.id;

-- name: listing_page_created_reversed
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, created_place AS place FROM listing l INDEXED BY listing_by_created
  WHERE (created_place, app, user, id) < (:high, :high_app, :high_user, :high_id) AND {listing_fits}
  ORDER BY created_place DESC, app DESC, user DESC, id DESC LIMIT :limit) p
ORDER BY p.place DESC, p.app DESC, p.user DESC, p.id DESC;

-- name: listing_page_title
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, title_place AS place FROM listing l INDEXED BY listing_by_title
  WHERE (title_place, app, user, id) > (:low, :low_app, :low_user, :low_id) AND {listing_fits}
  ORDER BY title_place, app, user, id LIMIT :limit) p
ORDER BY p.place, p.app, p.user, p.id;

-- name: listing_page_title_reversed
SELECT p.number, {listing_fork_count} FROM (
  SELECT number, app, user, id, title_place AS place FROM listing l INDEXED BY listing_by_title
  WHERE (title_place, app, user, id) < (:high, :high_app, :high_user, :high_id) AND {listing_fits}
  ORDER BY title_place DESC, app DESC, user DESC, id DESC LIMIT :limit) p
ORDER BY p.place DESC, p.app DESC, p.user DESC, p.id DESC;

-- name: listing_values
SELECT name, value, count FROM listing_values WHERE name IN (SELECT value FROM json_each(:names)) AND count > 0;

-- name: listing_found_values
SELECT v.name, v.value, count(*) FROM {listing_found} c CROSS JOIN listing l ON l.number = c.number
CROSS JOIN json_each(l.value_ids) i CROSS JOIN listing_values v ON v.value_id = i.value
WHERE {listing_fits} GROUP BY v.value_id;

-- name: listing_value
SELECT value_id, count FROM listing_values WHERE name = :name AND value = :value;

-- name: listing_forks
SELECT app, user, id FROM listing WHERE parent_app = :app AND parent_user = :user AND parent_id = :id
  AND (:without IS NULL OR number NOT IN (SELECT value FROM json_each(:without))) ORDER BY app, user, id;

-- name: has_listing
-- The trigger is the last that is made of it.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'listing_session_goes');

-- name: listing_end
-- Where the log of a session ends, as far as its rows tell.
(SELECT e.row & 4294967295 FROM events e WHERE e.row >= s.number << 32 AND e.row <= (s.number << 32) + 4294967295
  ORDER BY e.row DESC LIMIT 1)

-- name: listing_known
-- Up to which event a row holds: 0 where it was not worked out yet.
CASE WHEN k.number IS NOT NULL THEN k.seq WHEN l.is_readable AND typeof(s.summary_seq) = 'integer' THEN s.summary_seq
  ELSE 0 END

-- name: listing_state_columns
l.number, l.app, l.user, l.id, {listing_known}, l.is_readable, iif(k.number IS NULL, s.summary, k.summary),
  k.number IS NOT NULL, k.problem

-- name: listing_state_tables
listing l JOIN sessions s ON s.number = l.number LEFT JOIN listing_kept k ON k.number = l.number

-- name: listing_rows
SELECT {listing_state_columns} FROM {listing_state_tables}
WHERE l.number IN (SELECT value FROM json_each(:numbers));

-- name: listing_state
SELECT {listing_state_columns}, {listing_end} FROM {listing_state_tables} WHERE l.number = :number;

-- name: listing_states
SELECT {listing_state_columns}, {listing_end} FROM {listing_state_tables}
WHERE l.number > :after ORDER BY l.number LIMIT :limit;

-- name: listing_known_of
SELECT l.app, l.user, l.id, {listing_known}, {listing_end}, l.is_readable, k.seq, s.summary_seq, s.summary
FROM {listing_state_tables} WHERE l.number = :number;

-- name: listing_saved
-- The summary of a session whose row was not worked out, where that holds up to the log's end.
SELECT s.summary, s.summary_seq FROM {listing_state_tables}
WHERE l.number = :number AND NOT l.is_readable AND k.number IS NULL AND s.summary_seq = {listing_end};

-- name: listing_is_any_marked
-- Asked first, since mostly nothing is: the look at the sessions themselves costs ten times as much.
SELECT EXISTS (SELECT 1 FROM listing_marks)
  OR EXISTS (SELECT 1 FROM listing_values WHERE name = 'version' AND value <> :version);

-- name: listing_behind
-- Of sessions that have a mark, or a row of another version of rows, those whose rows do not hold. With the summary that
-- was saved where that holds, and only the row has to be made of it. A log whose end cannot be read, and of which that
-- is known, is not behind.
SELECT l.number, l.app, l.user, l.id, {listing_end},
  iif(NOT m.is_due AND NOT l.is_readable AND k.number IS NULL AND s.summary_seq = {listing_end}, s.summary, NULL)
FROM (SELECT number, is_due FROM listing_marks
  UNION ALL SELECT f.number, 1 FROM listing_values v CROSS JOIN listing_facets f ON f.value_id = v.value_id
  WHERE v.name = 'version' AND v.value <> :version) m
CROSS JOIN {listing_state_tables}
WHERE l.number = m.number AND l.app <> '' AND (m.is_due OR {listing_known} <> coalesce({listing_end}, {listing_known})
  OR (NOT l.is_readable AND k.number IS NULL))
LIMIT :limit;

-- name: listing_every_session
-- As the sessions themselves have it, for a file without rows.
SELECT number, app, user, id, summary, summary_seq FROM sessions
WHERE number > :after AND typeof(app) = 'text' AND typeof(user) = 'text' AND typeof(id) = 'text'
  AND NOT (app = '' AND user = '')
ORDER BY number LIMIT :limit;

-- name: listing_fill
-- A row for each session that is seen and has none, as the triggers would have made it.
INSERT INTO listing (number, active_place, created_place, app, user, id, is_readable, value_ids, title_place, preview,
  others)
SELECT number, 0.0, 0.0, iif(is_text, app, ''), iif(is_text, user, ''), iif(is_text, id, printf('#%020d', number)), 0,
  '[1]', char(1114111), '', ''
FROM (SELECT *, typeof(app) = 'text' AND typeof(user) = 'text' AND typeof(id) = 'text' AS is_text FROM sessions)
WHERE NOT (app = '' AND user = '') AND number NOT IN (SELECT number FROM listing);

-- name: listing_mark_unread
INSERT OR IGNORE INTO listing_marks (number)
SELECT number FROM listing WHERE NOT is_readable AND number NOT IN (SELECT number FROM listing_kept);

-- name: listing_drop_strays
DELETE FROM listing WHERE number NOT IN (SELECT number FROM sessions WHERE NOT (app = '' AND user = ''))
RETURNING number;

-- name: listing_keep
INSERT OR REPLACE INTO listing_kept (number, seq, summary, problem) VALUES (:number, :seq, :summary, :problem);

-- name: listing_end_keep
DELETE FROM listing_kept WHERE number = :number;

-- name: listing_mark
INSERT OR REPLACE INTO listing_marks (number, is_due) VALUES (:number, :is_due);

-- name: listing_unmark
DELETE FROM listing_marks WHERE number = :number;
