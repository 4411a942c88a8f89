"""The console script: hand over to the command line, or say in one sentence what it still needs."""

import importlib.util
import sys


def main() -> int:
    """Run the command line and return its exit code; 2 when its optional packages are absent."""
    missing = [name for name in ("typer", "platformdirs") if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"The playhead command needs {' and '.join(missing)}, which a plain install leaves out: "
            'run pip install "playhead[cli]".\n'
        )
        return 2
    try:
        from playhead.cli.main import main as run

        return run()
    except KeyboardInterrupt:  # Before the command line could look after it itself.
        sys.stderr.write("Interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
