"""ADK's DatabaseSessionService on SQLite: `python -m benchmarks.peers.adk_database append --count 2000 --dir EMPTY`."""
# mypy: disable-error-code="import-not-found"

from pathlib import Path

from google.adk.sessions.database_session_service import DatabaseSessionService

from benchmarks.peers import adk


def open_service(directory: Path) -> DatabaseSessionService:
    """Open the service as its users do: through aiosqlite, with the settings it comes with."""
    return DatabaseSessionService(f"sqlite+aiosqlite:///{directory / 'sessions.db'}")


if __name__ == "__main__":
    adk.measure("ADK DatabaseSessionService", open_service)
