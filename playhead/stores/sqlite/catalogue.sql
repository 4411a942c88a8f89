-- The catalogue of a bundle directory, version 1: what is known of each bundle without opening it. All of it can be read
-- again from the bundles. The tables of the rows themselves are in listing.sql.

-- One row for each bundle. name: of its file; inode: of that file. print: what the file and its write-ahead log were
-- like when they were read (catalogue.py says which figures), empty where that was too lately to be trusted. stamp
-- changes with every write to the row, so that nobody overwrites what they did not see. is_watched: 1 while somebody
-- may be writing to it. app, user, id: the key that lists show; of one that cannot be read, by its file's name. seq, at,
-- summary, summary_seq, problem: as in a listing. trouble: why its summary could not be
-- worked out. copy_of: the file that counts where two hold one session. is_listed:
-- 0 for what is in the trash or was emptied. is_behind: 1 where the summary does not hold up to seq.
CREATE TABLE bundles (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  inode INTEGER NOT NULL,
  print TEXT NOT NULL,
  stamp INTEGER NOT NULL,
  is_watched INTEGER NOT NULL,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at REAL NOT NULL,
  summary TEXT,
  summary_seq INTEGER NOT NULL,
  problem TEXT,
  trouble TEXT,
  copy_of TEXT,
  is_listed INTEGER NOT NULL,
  is_behind INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL
);

CREATE INDEX bundles_by_key ON bundles (app, user, id);

CREATE INDEX bundles_watched ON bundles (number) WHERE is_watched = 1;

CREATE INDEX bundles_behind ON bundles (number) WHERE is_behind = 1;

CREATE INDEX bundles_hidden ON bundles (number) WHERE is_listed = 0;

CREATE INDEX bundles_copies ON bundles (copy_of) WHERE copy_of IS NOT NULL;

-- How the directory was when it was looked at last. seen_at: its own time in nanoseconds, 0 where a change since then
-- may bear the same one. boot: which run of the machine that was.
CREATE TABLE looks (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seen_at INTEGER NOT NULL,
  boot TEXT NOT NULL
);
