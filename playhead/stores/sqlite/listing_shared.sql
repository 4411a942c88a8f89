-- The rows of lists in a file of many sessions: one for each session that is seen, which comes and goes with it, whoever
-- brings it, hides it or takes it away. listing.sql has the tables of the rows.

-- Sessions whose rows may be behind: whoever writes to the log leaves a mark in the same transaction, and whoever keeps a
-- row that holds up to the log's end takes it away in the same transaction as that. is_due: 1 where the row is to be
-- worked out again however it is.
CREATE TABLE IF NOT EXISTS listing_marks (
  number INTEGER PRIMARY KEY,
  is_due INTEGER NOT NULL DEFAULT 0
);

-- Rows that somebody who listed worked out, where they are newer than the summary that was saved with the session: the
-- event up to which it holds, and the summary, or null and what is wrong. One that is not readable and not here was not
-- worked out yet.
CREATE TABLE IF NOT EXISTS listing_kept (
  number INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  summary TEXT,
  problem TEXT
);

CREATE TRIGGER IF NOT EXISTS listing_log_grows AFTER INSERT ON events
WHEN NOT EXISTS (SELECT 1 FROM listing_marks WHERE number = NEW.row >> 32) BEGIN
  INSERT OR IGNORE INTO listing_marks (number) VALUES (NEW.row >> 32);
END;

-- A key that is no text is that of a damaged file; what stands for it is as in the store's list of sessions.
CREATE TRIGGER IF NOT EXISTS listing_session_comes AFTER INSERT ON sessions
WHEN NOT (NEW.app = '' AND NEW.user = '') BEGIN
  INSERT OR REPLACE INTO listing (number, active_place, created_place, app, user, id, is_readable, value_ids, title_place,
    preview, others)
  SELECT NEW.number, 0.0, 0.0, iif(is_text, NEW.app, ''), iif(is_text, NEW.user, ''),
    iif(is_text, NEW.id, printf('#%020d', NEW.number)), 0, '[1]', char(1114111), '', ''
  FROM (SELECT typeof(NEW.app) = 'text' AND typeof(NEW.user) = 'text' AND typeof(NEW.id) = 'text' AS is_text);
  INSERT OR IGNORE INTO listing_marks (number) VALUES (NEW.number);
END;

CREATE TRIGGER IF NOT EXISTS listing_session_changes AFTER UPDATE OF number, app, user, id, summary ON sessions
WHEN NEW.summary IS NULL OR NEW.number <> OLD.number OR NEW.app <> OLD.app OR NEW.user <> OLD.user OR NEW.id <> OLD.id
BEGIN
  DELETE FROM listing WHERE number = OLD.number;
  DELETE FROM listing_kept WHERE number = OLD.number;
  INSERT OR REPLACE INTO listing (number, active_place, created_place, app, user, id, is_readable, value_ids, title_place,
    preview, others)
  SELECT NEW.number, 0.0, 0.0, iif(is_text, NEW.app, ''), iif(is_text, NEW.user, ''),
    iif(is_text, NEW.id, printf('#%020d', NEW.number)), 0, '[1]', char(1114111), '', ''
  FROM (SELECT typeof(NEW.app) = 'text' AND typeof(NEW.user) = 'text' AND typeof(NEW.id) = 'text' AS is_text)
  WHERE NOT (NEW.app = '' AND NEW.user = '');
  INSERT OR IGNORE INTO listing_marks (number) VALUES (NEW.number);
END;

CREATE TRIGGER IF NOT EXISTS listing_session_goes AFTER DELETE ON sessions BEGIN
  DELETE FROM listing WHERE number = OLD.number;
  DELETE FROM listing_kept WHERE number = OLD.number;
  DELETE FROM listing_marks WHERE number = OLD.number;
END;
