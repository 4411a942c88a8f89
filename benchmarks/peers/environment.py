"""The peers' own virtual environment, made on demand: `python -m benchmarks.peers.environment`.

It is `benchmarks/.peers-venv`, about 800 MB, because a peer's dependencies must never meet the project's. The copy of
`requirements.txt` inside it is written last: it is there only after a complete install of exactly those requirements.
"""

import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
DIRECTORY = Path(__file__).parents[1] / ".peers-venv"
INSTALL_TIMEOUT_S = 1_800

_PYTHON = DIRECTORY / "bin" / "python"
_INSTALLED = DIRECTORY / "requirements.txt"


def python() -> Path | None:
    """Return the peers' interpreter, or None if the environment is absent, incomplete or of other requirements."""
    if _INSTALLED.exists() and _INSTALLED.read_text() == REQUIREMENTS.read_text() and _PYTHON.exists():
        return _PYTHON
    return None


def build() -> Path:
    """Make the environment anew unless it is ready, and return its interpreter.

    Raises subprocess.CalledProcessError if an install fails; the environment is then made anew the next time.
    """
    ready = python()
    if ready is not None:
        return ready
    venv.create(DIRECTORY, clear=True, with_pip=True)
    (DIRECTORY / ".gitignore").write_text("*\n")
    install = [str(_PYTHON), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)]
    subprocess.run(install, check=True, timeout=INSTALL_TIMEOUT_S, stdout=sys.stderr)
    _INSTALLED.write_text(REQUIREMENTS.read_text())
    return _PYTHON


if __name__ == "__main__":
    print(build())
