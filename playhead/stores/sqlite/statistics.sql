-- Makes the tables in which SQLite keeps statistics, as a person may with any SQLite tool.
ANALYZE;
