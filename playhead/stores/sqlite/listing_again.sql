-- Works out anew what is derived from the rows of lists, and lets the rows themselves be written anew when they are put.
UPDATE listing SET digest = NULL;

DELETE FROM listing_facets;

INSERT OR IGNORE INTO listing_facets (value_id, number) SELECT i.value, l.number FROM listing l, json_each(l.value_ids) i;

UPDATE listing_values SET count = (SELECT count(*) FROM listing_facets f WHERE f.value_id = listing_values.value_id);

UPDATE listing_values SET count = (SELECT count(*) FROM listing) WHERE value_id = 0;

INSERT INTO listing_words (listing_words) VALUES ('delete-all');

INSERT INTO listing_words (rowid, content)
SELECT number, title_place || char(10) || preview || char(10) || others FROM listing WHERE is_readable;
