"""The command line: one file per command, and the only layer that reads the environment, the home or the terminal."""
