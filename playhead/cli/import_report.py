"""What an import has to say: to a person as a table and sentences, to a program as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from playhead.agents.quoting import counted
from playhead.cli.documents import document
from playhead.cli.failures import message
from playhead.cli.table import Column, Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.formats.imported import Counts, Skipped
from playhead.formats.importing import Imported
from playhead.formats.jsonl import SessionImported
from playhead.formats.registry import FORMATS, Found


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
    """Everything that an import has to say.

    stopped: what ended it before its end. source_counts: sources by format. unchanged_count: those with nothing new in
    them. silent: those in which nobody said anything, by format. unreached_count: those that it did not come to.
    purged: ids of sessions that were deleted here and were left alone. taken: ids that are taken here. others: what was
    passed over in folders, since it is of no format.
    """

    is_dry_run: bool = False
    is_interrupted: bool = False
    stopped: Exception | None = None
    source_counts: dict[str, int] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    unchanged_count: int = 0
    silent: Counter[str] = field(default_factory=Counter)
    unreached_count: int = 0
    purged: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
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

    @property
    def pending_count(self) -> int:
        """Those of them that their writers may still be at."""
        return sum(skipped.is_pending for outcome in self.outcomes for skipped in outcome.skipped)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "is_dry_run": self.is_dry_run,
            "is_interrupted": self.is_interrupted,
            "stopped": None if self.stopped is None else message(self.stopped),
            "added_count": self.added_count,
            "new_session_count": self.new_session_count,
            "unchanged_count": self.unchanged_count,
            "silent_count": self.silent.total(),
            "unreached_count": self.unreached_count,
            "skipped_count": self.skipped_count,
            "formats": [self._format_document(name) for name in self.source_counts],
            "sessions": [_outcome_document(outcome) for outcome in self.outcomes],
            "purged": self.purged,
            "taken": self.taken,
            "others": self.others,
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
            "silent_count": self.silent[name],
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
    for sentence in _sentences(report):
        terminal.note(sentence)


def print_failures(terminal: Terminal, failures: Iterable[dict[str, str]]) -> None:
    """Write why sources could not be brought in, each with its place."""
    for failure in failures:
        is_named = failure["source"] in failure["error"]
        terminal.error(failure["error"] if is_named else f"{failure['source']}: {failure['error']}")


def print_surprises(terminal: Terminal, report: Report, *, names_pending: bool = True) -> None:
    """Write what was left out and what was odd. names_pending: also last lines that their writer may still be at."""
    for outcome in report.outcomes:
        for skipped in outcome.skipped:
            place = f"{skipped.source} line {skipped.line}, byte {skipped.offset}, {counted(skipped.length, 'byte')}"
            if not skipped.is_pending:
                terminal.note(f"Left out: {place}: {skipped.reason}")
            elif names_pending:
                terminal.note(f"Not read yet: {place}: the last line has no end; the next import looks at it again.")
        for warning in outcome.warnings:
            terminal.note(f"{outcome.id} has a surprise: {warning}")
    for id in report.purged:
        terminal.note(f"{id} was deleted here and stays so; --again brings it back.")
    for id in report.taken:
        terminal.note(f"{id} is there already and was left alone; --on-conflict merge or rename brings it in.")
    for other in report.others:
        terminal.note(f"Passed over: {other}.")


def print_change(terminal: Terminal, outcome: Outcome) -> None:
    """Write one line for a session that changed, at once: to a person, or tab-separated to a program."""
    if terminal.is_interactive:
        added = f"+{counted(outcome.added_count, 'event')}"
        title = one_line(outcome.title or "")
        terminal.line(Styled(one_line(outcome.id), "cyan"), f"  {title}  ", Styled(added, "green"))
    else:
        terminal.table(_COLUMNS, [_row(outcome)])
    terminal.flush()


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
    verb = "would be added" if report.is_dry_run else "added"
    silent = f", {report.silent[name]} without a word" if report.silent[name] else ""
    sessions = counted(report.source_counts[name], "session")
    return f"{FORMATS[name].title}: {sessions}, {counted(added, 'event')} {verb}, {new} new{silent}."


def _sentences(report: Report) -> Iterator[str]:
    """Yield what became of all sources. Those that failed were named before, and count as nothing here."""
    same_count = report.unchanged_count + len(report.outcomes) - len(report.changed)
    same_count += len(report.purged) + len(report.taken)
    if report.changed:
        verb = "Would add" if report.is_dry_run else "Added"
        sessions = counted(len(report.changed), "session")
        yield f"{verb} {counted(report.added_count, 'event')} to {sessions}, {report.new_session_count} of them new."
    elif same_count:
        yield f"Nothing new in {counted(same_count, 'session')}."
    elif not report.source_counts and not report.failures:
        yield "There are no sessions here to import."
    if silent := report.silent.total():
        were, them = ("was", "it") if silent == 1 else ("were", "them")
        yield f"{counted(silent, 'session')} {were} passed over: nobody said anything in {them}."
    if left_out := report.skipped_count - report.pending_count:
        yield f"{counted(left_out, 'stretch', 'stretches')} {'was' if left_out == 1 else 'were'} left out."
    if report.stopped is not None or report.is_interrupted:
        unread = f" {counted(report.unreached_count, 'session')} of {sum(report.source_counts.values())} to go."
        what = "Interrupted" if report.is_interrupted else "Stopped"
        yield f"{what}. What was imported stays; run it again to go on from there.{unread}"
