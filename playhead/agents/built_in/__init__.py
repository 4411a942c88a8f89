"""The built-in agent: what it understands, what it does, and how it words it. `default.py` is where it begins."""
