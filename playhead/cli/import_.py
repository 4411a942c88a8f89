"""The `import` command: sessions that another program left on this machine, brought in and kept in step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.table import Column
from playhead.cli.terminal import Terminal
from playhead.errors import ImportFailed, SessionBusy
from playhead.formats import claude_code
from playhead.formats.claude_code import Source
from playhead.formats.imported import ImportedSession, SourcePosition
from playhead.formats.importing import Imported, Purged, import_source
from playhead.session import Sessions

INTEGRITY_PROBLEM = 6
INTERRUPTED = 130


def run(
    here: Here,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH", help="Files or folders; without one, Claude Code's own folder", show_default=False
        ),
    ] = None,
    format: Annotated[Literal["auto", "claude-code"], typer.Option("--format", help="What wrote them")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Read and count everything; write nothing")] = False,
    again: Annotated[bool, typer.Option("--again", help="Bring back sessions that were deleted here, too")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 6 where anything could not be read")] = False,
    json: JsonOption = False,
) -> int:
    """Import what is new since the last time, and report what could not be read."""
    sources = list(_sources(here, paths or ()))
    report = _Report(is_dry_run=dry_run)
    with here.open() as sessions:
        try:
            for number, source in enumerate(sources, start=1):
                here.terminal.progress(f"Reading {number} of {len(sources)}: {source.path}")
                _import(sessions, source, report, at=here.now(), again=again)
        except KeyboardInterrupt:
            report.is_interrupted = True
    here.terminal.end_progress()
    if json:
        here.terminal.json(report.document())
    else:
        _print(here.terminal, report)
    if report.is_interrupted:
        here.terminal.note("Interrupted. What was imported stays; run it again to go on from there.")
        return INTERRUPTED
    if report.failures:
        return 1
    return INTEGRITY_PROBLEM if strict and report.skipped_count else 0


COMMAND = Command(
    run,
    about=(
        "Reads the sessions of Claude Code, in CLAUDE_CONFIG_DIR or else ~/.claude, or the files and folders that are "
        "named. Sources are only read. A second import adds what was written since, and nothing twice. Lines that make "
        "no sense are reported with their place, and everything around them is kept. A session that was deleted here "
        "does not come back unasked."
    ),
    examples=(
        "playhead import",
        "playhead import --dry-run",
        "playhead import ~/backup/.claude --json | jq .added_count",
    ),
    exits=(6, 130),
)


@dataclass(slots=True)
class _Report:
    """Everything that an import has to say. unchanged_count: sources with nothing new in them. purged: ids of sessions
    that were deleted here and were left alone."""

    is_dry_run: bool
    is_interrupted: bool = False
    outcomes: list[Imported] = field(default_factory=list)
    unchanged_count: int = 0
    purged: list[str] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)

    @property
    def added_count(self) -> int:
        return sum(outcome.added_count for outcome in self.outcomes)

    @property
    def new_session_count(self) -> int:
        return sum(outcome.is_new for outcome in self.outcomes)

    @property
    def skipped_count(self) -> int:
        return sum(outcome.session.counts.skipped for outcome in self.outcomes)

    def document(self) -> dict[str, Any]:
        return {
            "is_dry_run": self.is_dry_run,
            "is_interrupted": self.is_interrupted,
            "added_count": self.added_count,
            "new_session_count": self.new_session_count,
            "unchanged_count": self.unchanged_count,
            "skipped_count": self.skipped_count,
            "sessions": [_outcome_document(outcome) for outcome in self.outcomes],
            "purged": self.purged,
            "failures": self.failures,
        }


def _sources(here: Here, paths: Sequence[Path]) -> Iterator[Source]:
    """Yield the sessions to read: under the named places, or where Claude Code keeps its own."""
    if paths:
        for path in paths:
            yield from claude_code.discover(path.expanduser())
        return
    root = claude_code.default_root(here.environment, Path.home())
    if not root.is_dir():
        raise Failure(f"Claude Code has left no sessions in {root}; name the files or folders to import", code=1)
    yield from claude_code.discover(root)


def _import(sessions: Sessions, source: Source, report: _Report, *, at: float, again: bool) -> None:
    """Bring in what one source has beyond the last import. One that cannot be read now does not stop the others."""

    def read(known: dict[str, SourcePosition]) -> ImportedSession | None:
        return claude_code.read(source, known)

    try:
        found = import_source(sessions, source.path, read, at=at, dry_run=report.is_dry_run, again=again)
    except (ImportFailed, SessionBusy) as error:
        report.failures.append({"source": str(source.path), "error": str(error)})
        return
    if found is None:
        report.unchanged_count += 1
    elif isinstance(found, Purged):
        report.purged.append(found.id)
    else:
        report.outcomes.append(found)


def _outcome_document(outcome: Imported) -> dict[str, Any]:
    return {
        "id": outcome.session.id,
        "title": outcome.session.title,
        "is_new": outcome.is_new,
        "added_count": outcome.added_count,
        "known_count": outcome.known_count,
        "counts": document(outcome.session.counts),
        "skipped": [document(skipped) for skipped in outcome.session.skipped],
        "warnings": outcome.session.warnings,
    }


def _print(terminal: Terminal, report: _Report) -> None:
    changed = [outcome for outcome in report.outcomes if outcome.added_count or outcome.is_new]
    terminal.table(
        _COLUMNS,
        (
            [
                outcome.session.id,
                outcome.session.title or "",
                str(outcome.added_count),
                str(outcome.session.counts.skipped),
            ]
            for outcome in changed
        ),
    )
    for outcome in report.outcomes:
        for skipped in outcome.session.skipped:
            place = f"{skipped.source} line {skipped.line}, byte {skipped.offset}, {skipped.length} bytes"
            terminal.note(f"Left out: {place}: {skipped.reason}")
        for warning in outcome.session.warnings:
            terminal.note(f"{outcome.session.id} has a surprise: {warning}")
    for id in report.purged:
        terminal.note(f"{id} was deleted here and stays so; --again brings it back.")
    for failure in report.failures:
        terminal.error(f"{failure['source']}: {failure['error']}")
    terminal.note(_sentence(report))


_COLUMNS = (
    Column("ID", style="cyan"),
    Column("TITLE", is_flexible=True),
    Column("ADDED", is_right=True),
    Column("LEFT OUT", is_right=True),
)


def _sentence(report: _Report) -> str:
    source_count = len(report.outcomes) + report.unchanged_count + len(report.purged) + len(report.failures)
    if source_count == 0:
        return "There are no sessions here to import."
    if not report.added_count and not report.new_session_count:
        return f"Nothing new in {source_count} sessions."
    verb = "Would add" if report.is_dry_run else "Added"
    new = f"{report.new_session_count} of them new"
    left_out = f" {report.skipped_count} stretches were left out." if report.skipped_count else ""
    changed = sum(1 for outcome in report.outcomes if outcome.added_count or outcome.is_new)
    return f"{verb} {report.added_count} events to {changed} sessions, {new}.{left_out}"
