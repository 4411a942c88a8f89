-- The text index of the store in memory. The tokenizer is that of the other embedded stores, so that the same words match.

-- name: make_text_index
CREATE VIRTUAL TABLE text_index USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');

-- name: index_text
INSERT INTO text_index (rowid, content) VALUES (?, ?);

-- name: match_text
-- Best first; of equal matches the one that was indexed last.
SELECT rowid, -bm25(text_index) AS score FROM text_index WHERE text_index MATCH ? ORDER BY score DESC, rowid DESC;

-- name: unindex_text
DELETE FROM text_index WHERE rowid = ?;
