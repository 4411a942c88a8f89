-- What is asked of a database that is only looked at, by name. `:first` and `:last` bound the rows of one session.

-- name: is_shared
-- Whether it has a store log, which no bundle has.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'notes');

-- name: is_emptied
SELECT NOT EXISTS (SELECT 1 FROM sessions) AND NOT EXISTS (SELECT 1 FROM events);

-- name: numbers_without_session
-- Events whose session's row is gone.
SELECT DISTINCT row >> 32 FROM events WHERE row >> 32 NOT IN (SELECT number FROM sessions) LIMIT :limit;

-- name: indexed_rows
SELECT id & 4294967295 FROM text_index_docsize WHERE id >= :first AND id <= :last ORDER BY id;

-- name: bodies_naming_bytes
-- Bodies that may name an artifact.
SELECT body FROM events WHERE row >= :first AND row <= :last AND body LIKE '%sha256-%';
