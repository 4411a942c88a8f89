"""The embedded stores: many sessions in one SQLite file, or one file for each session."""
