"""The console script: hand over to the command line, or say in one sentence what it still needs."""

import contextlib
import importlib.util
import os
import sys


def main() -> int:
    """Run the command line and return its exit code; 2 when its optional packages are absent."""
    try:
        missing = [name for name in ("typer", "platformdirs") if importlib.util.find_spec(name) is None]
        if missing:
            sys.stderr.write(
                f"The playhead command needs {' and '.join(missing)}, which a plain install leaves out: "
                'run pip install "playhead[cli]".\n'
            )
            return 2
        from playhead.cli.main import main as run

        code = run()
    except KeyboardInterrupt:  # Before the command line could look after it itself.
        sys.stderr.write("Interrupted.\n")
        return 130
    if code == 130:
        # All is stored and closed. A thread of an agent that does not end, or a task that does not stop, would keep
        # the person waiting, and fill the screen at the next Ctrl-C.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
