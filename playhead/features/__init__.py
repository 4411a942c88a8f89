"""Verbs on a session, one file each."""
