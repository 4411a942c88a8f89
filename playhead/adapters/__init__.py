"""Agents of other frameworks as agents of Playhead, each in a file named after its framework and imported on use."""
