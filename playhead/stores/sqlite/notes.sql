-- The store log: facts that belong to no session. In a bundle directory it is a file of its own (`_store.playhead`).
CREATE TABLE IF NOT EXISTS notes (
  position INTEGER PRIMARY KEY,
  topic TEXT NOT NULL,
  name TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  at REAL NOT NULL,
  body TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS notes_by_name ON notes (topic, name, position);
