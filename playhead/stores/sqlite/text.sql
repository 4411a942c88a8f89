-- The text index (a cache, made when something is first indexed: at a turn's end, or by a search). Contentless: the text itself stays in the log alone.
-- rowid is the event's row. The analyser in front of it is playhead/search/tokenize.py.
CREATE VIRTUAL TABLE IF NOT EXISTS text_index USING fts5(
  content, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
