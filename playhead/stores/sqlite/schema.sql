-- The schema of a Playhead database, version 1: a bundle (one session) and a shared file (many) have the same tables.
-- It equals all migrations applied in order; a test proves it. Comments stand outside the statements, since SQLite
-- keeps a statement's text in the file and the smallest bundle should stay small.

-- One row for each session. event_version: the version its events are written in. fence, holder, renewed_at: the lease
-- (holder is JSON, null when nobody is in a turn). summary, summary_seq: the saved listing row and the event up to
-- which it holds. indexed_seq: the event up to which the text index is built. The last three are caches.
CREATE TABLE sessions (
  number INTEGER PRIMARY KEY,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  id TEXT NOT NULL,
  event_version INTEGER NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0,
  holder TEXT,
  renewed_at REAL,
  summary TEXT,
  summary_seq INTEGER NOT NULL DEFAULT 0,
  indexed_seq INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX sessions_by_key ON sessions (app, user, id);

-- The log. row is the session's number times 2^32 plus seq: one b-tree, clustered by session, whose key is at once the
-- compare-and-append (a second writer of the same seq meets a taken key). body is JSON text, null once redacted; then
-- digest stands for it in the chain. fact is 1 for events that lie on no path, else null.
CREATE TABLE events (
  row INTEGER PRIMARY KEY,
  parent INTEGER NOT NULL,
  id TEXT NOT NULL,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  agent TEXT,
  turn TEXT,
  scope TEXT,
  body TEXT,
  salt BLOB,
  digest BLOB,
  hash BLOB NOT NULL,
  fact INTEGER
);

-- Makes an append idempotent. Our own ids ascend with time, so the index grows at its end.
CREATE UNIQUE INDEX events_by_id ON events (row >> 32, id);

-- Facts are few; finding them must not read the log.
CREATE INDEX events_facts ON events (row) WHERE fact = 1;

-- Saved folds (a cache). row as in events; base_seq is 0 for a complete one.
CREATE TABLE snapshots (
  row INTEGER PRIMARY KEY,
  base_seq INTEGER NOT NULL,
  document TEXT NOT NULL
);

-- A transaction that may change events (reclaim, redact) puts a row here and takes it away again before it commits.
CREATE TABLE permits (reason TEXT NOT NULL);

CREATE TRIGGER events_never_change BEFORE UPDATE ON events WHEN NOT EXISTS (SELECT 1 FROM permits)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM permits)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- The log as a person reads it with any SQLite tool.
CREATE VIEW log AS
SELECT s.app, s.user, s.id AS session, e.row & 4294967295 AS seq, e.parent, e.id, e.at, e.kind, e.agent, e.turn,
  e.scope, e.body FROM events e JOIN sessions s ON s.number = e.row >> 32;
