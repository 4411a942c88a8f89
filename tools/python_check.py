"""Say plainly what is wrong with the Python that `make` was given, before anything is installed.

Kept to what Python 3.6 can read: an old one has to get as far as the message.
"""

import importlib.util
import sys


def problem(version: "tuple[int, ...]", absent: "list[str]") -> str:
    """Return one sentence that says what to do, or "" if this Python will do.

    version: such as (3, 11, 4). absent: modules of the standard library that this Python came without.
    """
    running = f"{version[0]}.{version[1]}"
    if version < (3, 11):
        return f"Playhead needs Python 3.11 or newer, and this is {running}. Name another: make PYTHON=python3.11 ..."
    if absent:
        return (
            f"This Python came without {' and '.join(absent)}, which the virtual environment needs. On Debian and "
            f"Ubuntu the package python{running}-venv brings it, elsewhere the distribution's full Python package."
        )
    return ""


if __name__ == "__main__":
    sentence = problem(
        tuple(sys.version_info[:3]),
        [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None],
    )
    if sentence:
        sys.exit(f"{sys.executable}: {sentence}")
