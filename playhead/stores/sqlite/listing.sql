-- The rows of lists, made to be found: in a shared file, and in the catalogue of a bundle directory. All of it is worked
-- out from the summaries of the sessions, so it can be dropped and filled again. What is derived from a row is kept by
-- triggers: whoever puts a row in or takes it out cannot forget a part of it.

-- One for each session that a list shows. active_place, created_place: minus the time (UTC seconds), 0 where the session
-- cannot be read: so the order of every index is the order of lists, newest first and then by key. title_place,
-- preview, others: the text that words are looked for in, folded. parent_*: the session it was forked from, or null.
-- value_ids: a JSON array of its values. digest: of all but active_place, to see at once what has to be written; null
-- where that is to be written anew.
CREATE TABLE IF NOT EXISTS listing (
  number INTEGER PRIMARY KEY,
  active_place REAL NOT NULL,
  created_place REAL NOT NULL,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  id TEXT NOT NULL,
  is_readable INTEGER NOT NULL,
  parent_app TEXT,
  parent_user TEXT,
  parent_id TEXT,
  value_ids TEXT NOT NULL,
  digest INTEGER,
  title_place TEXT NOT NULL,
  preview TEXT NOT NULL,
  others TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS listing_by_active ON listing (active_place, app, user, id, is_readable);

CREATE INDEX IF NOT EXISTS listing_by_created ON listing (created_place, app, user, id);

CREATE INDEX IF NOT EXISTS listing_by_title ON listing (title_place, app, user, id);

CREATE INDEX IF NOT EXISTS listing_by_key ON listing (app, user);

-- With the fork's own key: an entry of three texts and a number would pass for one of a session's key where a damaged
-- file is salvaged.
CREATE INDEX IF NOT EXISTS listing_by_parent ON listing (parent_app, parent_user, parent_id, app, user, id)
WHERE parent_id IS NOT NULL;

-- What rows are counted by: a facet's name, a value, and how many rows have it. Besides the facets of lists there is
-- `version`, that of the summary. Number 0 counts all rows, number 1 those that cannot be read: both are always there.
CREATE TABLE IF NOT EXISTS listing_values (
  value_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  count INTEGER NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS listing_values_by_name ON listing_values (name, value);

INSERT OR IGNORE INTO listing_values (value_id, name, value, count) VALUES (0, '', '', 0), (1, 'status', 'unreadable', 0);

-- Which rows have a value.
CREATE TABLE IF NOT EXISTS listing_facets (
  value_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (value_id, number)
) WITHOUT ROWID;

-- Which rows have three characters in a row. Without their places, which doubles as many bytes: who finds a row looks at
-- its text itself.
CREATE VIRTUAL TABLE IF NOT EXISTS listing_words USING fts5(
  content, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1'
);

CREATE TRIGGER IF NOT EXISTS listing_comes AFTER INSERT ON listing BEGIN
  UPDATE listing_values SET count = count + 1
  WHERE value_id = 0 OR value_id IN (SELECT value FROM json_each(NEW.value_ids));
  INSERT OR IGNORE INTO listing_facets (value_id, number) SELECT value, NEW.number FROM json_each(NEW.value_ids);
  INSERT INTO listing_words (rowid, content)
  SELECT NEW.number, NEW.title_place || char(10) || NEW.preview || char(10) || NEW.others WHERE NEW.is_readable;
END;

CREATE TRIGGER IF NOT EXISTS listing_values_change AFTER UPDATE OF value_ids ON listing
WHEN OLD.value_ids <> NEW.value_ids BEGIN
  DELETE FROM listing_facets
  WHERE number = OLD.number AND value_id IN (SELECT value FROM json_each(OLD.value_ids));
  INSERT OR IGNORE INTO listing_facets (value_id, number) SELECT value, NEW.number FROM json_each(NEW.value_ids);
  UPDATE listing_values SET count = count + 1 WHERE value_id IN (SELECT value FROM json_each(NEW.value_ids));
  UPDATE listing_values SET count = count - 1 WHERE value_id IN (SELECT value FROM json_each(OLD.value_ids));
  DELETE FROM listing_values WHERE count <= 0 AND value_id > 1 AND value_id IN (SELECT value FROM json_each(OLD.value_ids));
END;

CREATE TRIGGER IF NOT EXISTS listing_text_changes AFTER UPDATE OF title_place, preview, others, is_readable ON listing
WHEN OLD.title_place <> NEW.title_place OR OLD.preview <> NEW.preview OR OLD.others <> NEW.others
  OR OLD.is_readable <> NEW.is_readable BEGIN
  DELETE FROM listing_words WHERE rowid = OLD.number;
  INSERT INTO listing_words (rowid, content)
  SELECT NEW.number, NEW.title_place || char(10) || NEW.preview || char(10) || NEW.others WHERE NEW.is_readable;
END;

CREATE TRIGGER IF NOT EXISTS listing_goes AFTER DELETE ON listing BEGIN
  DELETE FROM listing_words WHERE rowid = OLD.number;
  DELETE FROM listing_facets
  WHERE number = OLD.number AND value_id IN (SELECT value FROM json_each(OLD.value_ids));
  UPDATE listing_values SET count = count - 1
  WHERE value_id = 0 OR value_id IN (SELECT value FROM json_each(OLD.value_ids));
  DELETE FROM listing_values
  WHERE count <= 0 AND value_id > 1 AND value_id IN (SELECT value FROM json_each(OLD.value_ids));
END;
