"""Where sessions live: the only SQL and the only database drivers."""
