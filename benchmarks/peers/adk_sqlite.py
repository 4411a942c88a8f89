"""ADK's SqliteSessionService: `python -m benchmarks.peers.adk_sqlite append --count 2000 --dir EMPTY`."""
# mypy: disable-error-code="import-not-found"

from pathlib import Path

from google.adk.sessions.sqlite_session_service import SqliteSessionService

from benchmarks.peers import adk


def open_service(directory: Path) -> SqliteSessionService:
    """Open the service as its users do, with the settings it comes with."""
    return SqliteSessionService(str(directory / "sessions.db"))


if __name__ == "__main__":
    adk.measure("ADK SqliteSessionService", open_service)
