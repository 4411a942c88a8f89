"""What an import has to say: to a person as a table and sentences, to a program as one object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from playhead.cli.documents import document
from playhead.cli.table import Column, Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.formats.imported import Counts, Skipped
from playhead.formats.importing import Imported
from playhead.formats.jsonl import SessionImported
from playhead.formats.registry import FORMATS, Found

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one source brought. counts: what was read of it, None for a source that is brought in as it is."""

    format: str
    source: str
    id: str
    title: str | None
    is_new: bool
    added_count: int
    known_count: int
    counts: Counts | None = None
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_change(self) -> bool:
        """True where the session has something that it had not."""
        return bool(self.added_count or self.is_new)

    @property
    def skipped_count(self) -> int:
        """Stretches of the source that were left out."""
        return self.counts.skipped if self.counts else 0


def of_imported(found: Found, imported: Imported) -> Outcome:
    """Return the outcome of a source that was read on from where it was left."""
    session = imported.session
    return Outcome(
        found.format,
        str(found.path),
        session.id,
        session.title,
        imported.is_new,
        imported.added_count,
        imported.known_count,
        session.counts,
        tuple(session.skipped),
        tuple(session.warnings),
    )


def of_exported(found: Found, imported: SessionImported) -> Outcome:
    """Return the outcome of a session that came as Playhead wrote it."""
    is_new = imported.outcome in ("new", "renamed")
    known_count = imported.event_count - imported.added_count
    warnings = []
    if imported.is_cut:
        warnings.append(f"the file is damaged; {imported.event_count} events of it were whole")
    if imported.is_masked:
        warnings.append("its texts were masked before it was exported")
    return Outcome(
        found.format,
        str(found.path),
        str(imported.key),
        imported.title,
        is_new,
        imported.added_count,
        known_count,
        warnings=tuple(warnings),
    )


@dataclass(slots=True)
class Report:
    """Everything that an import has to say. source_counts: sources by format. unchanged_count: those with nothing new
    in them. purged: ids of sessions that were deleted here and were left alone. taken: ids that are taken here."""

    is_dry_run: bool = False
    is_interrupted: bool = False
    source_counts: dict[str, int] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    unchanged_count: int = 0
    purged: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)

    def count_sources(self, found: Iterable[Found]) -> None:
        """Take down how many sources there are of each format."""
        for one in found:
            self.source_counts[one.format] = self.source_counts.get(one.format, 0) + 1

    def failed(self, source: object, error: object) -> None:
        """Take down a source that could not be brought in."""
        self.failures.append({"source": str(source), "error": str(error)})

    @property
    def changed(self) -> list[Outcome]:
        """The sessions that have something which they had not."""
        return [outcome for outcome in self.outcomes if outcome.is_change]

    @property
    def added_count(self) -> int:
        """Events that were added to all sessions."""
        return sum(outcome.added_count for outcome in self.outcomes)

    @property
    def new_session_count(self) -> int:
        """Sessions that were not there before."""
        return sum(outcome.is_new for outcome in self.outcomes)

    @property
    def skipped_count(self) -> int:
        """Stretches of all sources that were left out."""
        return sum(outcome.skipped_count for outcome in self.outcomes)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "is_dry_run": self.is_dry_run,
            "is_interrupted": self.is_interrupted,
            "added_count": self.added_count,
            "new_session_count": self.new_session_count,
            "unchanged_count": self.unchanged_count,
            "skipped_count": self.skipped_count,
            "formats": [self._format_document(name) for name in self.source_counts],
            "sessions": [_outcome_document(outcome) for outcome in self.outcomes],
            "purged": self.purged,
            "taken": self.taken,
            "failures": self.failures,
        }

    def of_format(self, name: str) -> list[Outcome]:
        """Return what the sources of one format brought."""
        return [outcome for outcome in self.outcomes if outcome.format == name]

    def _format_document(self, name: str) -> dict[str, Any]:
        outcomes = self.of_format(name)
        return {
            "format": name,
            "title": FORMATS[name].title,
            "source_count": self.source_counts[name],
            "added_count": sum(outcome.added_count for outcome in outcomes),
            "new_session_count": sum(outcome.is_new for outcome in outcomes),
            "skipped_count": sum(outcome.skipped_count for outcome in outcomes),
        }


def print_report(terminal: Terminal, report: Report) -> None:
    """Write the sessions that changed to stdout, and everything else in sentences to stderr."""
    terminal.table(_COLUMNS, (_row(outcome) for outcome in report.changed))
    print_surprises(terminal, report)
    print_failures(terminal, report.failures)
    if len(report.source_counts) > 1:
        for name in report.source_counts:
            terminal.note(_format_sentence(report, name))
    terminal.note(_sentence(report))


def print_failures(terminal: Terminal, failures: Iterable[dict[str, str]]) -> None:
    """Write why sources could not be brought in, each with its place."""
    for failure in failures:
        is_named = failure["source"] in failure["error"]
        terminal.error(failure["error"] if is_named else f"{failure['source']}: {failure['error']}")


def print_surprises(terminal: Terminal, report: Report) -> None:
    """Write what was left out and what was odd."""
    for outcome in report.outcomes:
        for skipped in outcome.skipped:
            place = f"{skipped.source} line {skipped.line}, byte {skipped.offset}, {skipped.length} bytes"
            terminal.note(f"Left out: {place}: {skipped.reason}")
        for warning in outcome.warnings:
            terminal.note(f"{outcome.id} has a surprise: {warning}")
    for id in report.purged:
        terminal.note(f"{id} was deleted here and stays so; --again brings it back.")
    for id in report.taken:
        terminal.note(f"{id} is there already and was left alone; --on-conflict merge or rename brings it in.")


def print_change(terminal: Terminal, outcome: Outcome) -> None:
    """Write one line for a session that changed, at once: to a person, or tab-separated to a program."""
    if terminal.is_interactive:
        added = f"+{outcome.added_count} event{'' if outcome.added_count == 1 else 's'}"
        title = one_line(outcome.title or "")
        terminal.line(Styled(one_line(outcome.id), "cyan"), f"  {title}  ", Styled(added, "green"))
    else:
        terminal.table(_COLUMNS, [_row(outcome)])
    terminal.flush()


def sized(count: int) -> str:
    """Return a number of bytes for a person: 812 bytes, 4.2 MB."""
    size = float(count)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("the last unit has no end")


_COLUMNS = (
    Column("ID", style="cyan"),
    Column("TITLE", is_flexible=True),
    Column("ADDED", is_right=True),
    Column("LEFT OUT", is_right=True),
)


def _row(outcome: Outcome) -> list[str]:
    return [outcome.id, outcome.title or "", str(outcome.added_count), str(outcome.skipped_count)]


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.id,
        "format": outcome.format,
        "source": outcome.source,
        "title": outcome.title,
        "is_new": outcome.is_new,
        "added_count": outcome.added_count,
        "known_count": outcome.known_count,
        "counts": document(outcome.counts) if outcome.counts is not None else None,
        "skipped": [document(skipped) for skipped in outcome.skipped],
        "warnings": list(outcome.warnings),
    }


def _format_sentence(report: Report, name: str) -> str:
    outcomes = report.of_format(name)
    added = sum(outcome.added_count for outcome in outcomes)
    new = sum(outcome.is_new for outcome in outcomes)
    count = report.source_counts[name]
    verb = "would be added" if report.is_dry_run else "added"
    return f"{FORMATS[name].title}: {count} session{'' if count == 1 else 's'}, {added} events {verb}, {new} new."


def _sentence(report: Report) -> str:
    source_count = sum(report.source_counts.values())
    if source_count == 0:
        return "There are no sessions here to import."
    if not report.changed:
        return f"Nothing new in {source_count} sessions."
    verb = "Would add" if report.is_dry_run else "Added"
    new = f"{report.new_session_count} of them new"
    left_out = f" {report.skipped_count} stretches were left out." if report.skipped_count else ""
    return f"{verb} {report.added_count} events to {len(report.changed)} sessions, {new}.{left_out}"
