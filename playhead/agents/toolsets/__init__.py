"""Tools by what they are for, for any agent: its sessions, notes, documents, triggers and channels."""
