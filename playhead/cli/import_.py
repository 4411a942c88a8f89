"""The `import` command: sessions that other programs left on this machine, brought in and kept in step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from playhead.agents.quoting import counted
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure
from playhead.cli.import_report import (
    Report,
    of_exported,
    of_imported,
    print_change,
    print_failures,
    print_report,
    print_surprises,
)
from playhead.cli.table import Column
from playhead.cli.terminal import Terminal
from playhead.errors import ImportFailed, InvalidEvent, SessionBusy
from playhead.formats.importing import Purged, Silent, import_source
from playhead.formats.jsonl import OnConflict, import_jsonl
from playhead.formats.registry import FORMATS, Found, look, places
from playhead.formats.shown import size_text
from playhead.formats.watching import Watch
from playhead.session import Sessions

INTEGRITY_PROBLEM = 6
INTERRUPTED = 130

STDIN = Path("-")

INTERVAL_S_MIN = 0.1
LOOKS_UNTIL_AGAIN = 10
"""A place that could not be looked at is looked at again so many looks later: finding out what it holds is dear."""

ANSWERS_MAX = 3
"""So often a person is asked which programs are meant, before it counts as none."""

FormatName = Literal["auto", "claude-code", "codex", "aider", "chatgpt", "jsonl"]


def run(
    here: Here,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            path_type=str,  # A `Path` of no text is the current folder, and nobody would see that it was empty.
            help="Files or folders; - for an export on stdin; without one, what is on this machine",
        ),
    ] = None,
    format: Annotated[FormatName, typer.Option("--format", help="What wrote them")] = "auto",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep in step until Ctrl-C")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=INTERVAL_S_MIN, help="How often --watch looks")
    ] = 1.0,
    on_conflict: Annotated[
        OnConflict, typer.Option("--on-conflict", help="What becomes of an exported session whose id is taken here")
    ] = "skip",
    salvage: Annotated[bool, typer.Option("--salvage", help="Bring in what is whole of a damaged export, too")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Read and count everything; write nothing")] = False,
    again: Annotated[bool, typer.Option("--again", help="Bring back sessions that were deleted here, too")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 6 where anything could not be read")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Import all that is found, without asking")] = False,
    json: JsonOption = False,
) -> int:
    """Import what is new since the last time, and report what could not be read."""
    if watch and dry_run:
        raise Failure("--watch imports; it cannot be a --dry-run", code=2)
    named = _named(paths or ())
    if STDIN in named:
        return _piped(here, named, on_conflict, salvage=salvage, dry_run=dry_run, strict=strict, json=json)
    roots = _roots(here, named, None if format == "auto" else format)
    if watch and (pipe := next((root.path for root in roots if root.path.is_fifo()), None)):
        raise Failure(f"{pipe} is a pipe; it is read once and cannot be watched", code=2)
    # Looked at before anything is read, so that what is written meanwhile is a change.
    changes = Watch([root.path for root in roots]) if watch else None
    report = Report(is_dry_run=dry_run)
    found, unread = _found(roots, report, needs_sessions=bool(named) and not watch)
    if not named:
        if not (watch or any(root.path.exists() for root in roots)):
            looked = ", ".join(str(root.path) for root in roots)
            raise Failure(f"there are no sessions in {looked}; name the files or folders to import", code=1)
        wanted = _wanted(here.terminal, roots, found, is_asking=not (yes or json or dry_run))
        if found and not wanted:
            here.terminal.note("Nothing was imported.")
            return 0
        found = [source for source in found if source.format in wanted]
        unread = [root for root in unread if root.format in wanted]
        roots = [root for root in roots if root.format in wanted or not root.path.exists()]
    job = _Job(here, report, on_conflict, salvage=salvage, again=again)
    job.run(found)
    if not json:
        print_report(here.terminal, report)
    elif watch:
        here.terminal.json_line(report.document())
    else:
        here.terminal.json(report.document())
    if report.stopped is not None:
        raise report.stopped
    if changes is not None and not report.is_interrupted:
        _keep_in_step(job, _Followed(roots, changes, found, unread), interval_s=interval, json=json)
        return INTERRUPTED
    if report.is_interrupted:
        return INTERRUPTED
    if report.failures:
        return 1
    return INTEGRITY_PROBLEM if strict and report.skipped_count else 0


def _piped(
    here: Here,
    paths: Sequence[Path],
    on_conflict: OnConflict,
    *,
    salvage: bool,
    dry_run: bool,
    strict: bool,
    json: bool,
) -> int:
    """Bring in what `playhead export` wrote and somebody pipes here."""
    if len(paths) > 1:
        raise Failure("- stands for stdin and is given alone", code=2)
    if sys.stdin is None or sys.stdin.isatty():
        raise Failure("there is nothing on stdin; `playhead export SESSION | playhead import -` brings one in", code=2)
    report = Report(is_dry_run=dry_run)
    _Job(here, report, on_conflict, salvage=salvage, again=False).run([Found("jsonl", STDIN, (), None)])
    if json:
        here.terminal.json(report.document())
    else:
        print_report(here.terminal, report)
    if report.stopped is not None:
        raise report.stopped
    if report.is_interrupted:
        return INTERRUPTED
    return 1 if report.failures else INTEGRITY_PROBLEM if strict and report.skipped_count else 0


def _named(paths: Sequence[str]) -> list[Path]:
    if "" in paths:
        raise Failure("a PATH is empty text; . stands for the current folder", code=2)
    return [Path(os.path.expanduser(path)) for path in paths]


COMMAND = Command(
    run,
    about=(
        "Reads the sessions of Claude Code, Codex and aider, ChatGPT's data export (the zip, or what is in it), and "
        "what `playhead export` wrote. Which of them a file is shows by what is in it. Without a path it looks where "
        "these programs keep their sessions (for aider in the current folder and its git root), and asks a person at a "
        "terminal which to import.\n\n"
        "Sources are only read. A second import adds what was written since, and nothing twice; --watch goes on doing "
        "that until Ctrl-C. A folder that is named is looked through to its bottom. Lines that make no sense are "
        "reported with their place, and everything around them is kept. Sessions in which nobody said anything are "
        "passed over. A session that was deleted here does not come back unasked."
    ),
    examples=(
        "playhead import",
        "playhead import --dry-run",
        "playhead import --format claude-code --yes",
        "playhead export @last | playhead --store bundles:elsewhere import -",
        "playhead import ~/backup/.claude --json | jq .added_count",
    ),
    exits=(6, 130),
)


@dataclass(frozen=True, slots=True)
class _Root:
    """A place to look in. format: the only one that is looked for, None for any. is_named: it was named, so it has to
    be there."""

    path: Path
    format: str | None
    is_named: bool


def _roots(here: Here, paths: Sequence[Path], format: str | None) -> list[_Root]:
    """Return the named places, or those where programs keep their sessions."""
    if paths:
        return [_Root(path, format, is_named=True) for path in paths]
    known = places(here.environment, Path.home(), Path(here.folder))
    roots = [
        _Root(path, name, is_named=False) for name, found in known.items() for path in found if format in (None, name)
    ]
    if not roots:
        raise Failure(f"nothing of the format {format} is found by itself; name the files", code=2)
    return roots


def _found(roots: Iterable[_Root], report: Report, *, needs_sessions: bool = False) -> tuple[list[Found], list[_Root]]:
    """Return the sessions at all places, and the places that could not be looked at; why goes into the report.

    needs_sessions: a place without any is a failure.
    """
    found: dict[tuple[str, str, str], Found] = {}
    unread: list[_Root] = []
    for root in roots:
        if root.is_named or root.path.exists():
            # A program's own folder holds much else, and its layout says which files are sessions.
            looked = look(root.path, root.format) if root.is_named else look(root.path, root.format, is_searched=False)
            sessions, missed = looked
            found |= {one.key: one for one in sessions}
            others = [place.error for place in missed if place.is_other]
            for place in missed:
                if not place.is_other:
                    report.failed(place.path, place.error)
                    unread.append(_Root(place.path, root.format, is_named=True))
            if needs_sessions and not sessions and len(others) == len(missed):
                wanted = f" of {FORMATS[root.format].title}" if root.format else ""
                report.failed(root.path, "; ".join([f"there are no sessions{wanted} in {root.path}", *others]))
            else:
                report.others.extend(others)
    return list(found.values()), unread


def _wanted(terminal: Terminal, roots: Sequence[_Root], found: Sequence[Found], *, is_asking: bool) -> set[str]:
    """Return the formats to import: all that were found, or those that a person picks."""
    groups: dict[str, list[Found]] = {}
    for one in found:
        groups.setdefault(one.format, []).append(one)
    if not is_asking or not terminal.can_ask or not groups:
        for name, group in groups.items():
            terminal.note(
                f"Found {counted(len(group), 'session')} of {FORMATS[name].title}, {size_text(_size_bytes(group))}."
            )
        return set(groups)
    where = {root.format: str(root.path) for root in reversed(roots) if root.path.exists()}
    rows = [
        [str(number), FORMATS[name].title, str(len(group)), size_text(_size_bytes(group)), where[name]]
        for number, (name, group) in enumerate(groups.items(), start=1)
    ]
    terminal.table(_PROGRAM_COLUMNS, rows)
    return _picked(terminal, list(groups))


_PROGRAM_COLUMNS = (
    Column("", is_right=True),
    Column("PROGRAM", style="cyan"),
    Column("SESSIONS", is_right=True),
    Column("SIZE", is_right=True),
    Column("WHERE", is_flexible=True),
)


def _picked(terminal: Terminal, names: Sequence[str]) -> set[str]:
    for _ in range(ANSWERS_MAX):
        terminal.start("Import which? Enter for all, numbers such as 1,3, or n for none: ")
        line = sys.stdin.readline()
        if not line:
            terminal.line()
            return set()
        answer = line.strip().lower()
        if answer in ("", "a", "all", "y", "yes"):
            return set(names)
        if answer in ("n", "no", "none"):
            return set()
        numbers = answer.replace(",", " ").split()
        if all(number.isascii() and number.isdigit() and 1 <= int(number) <= len(names) for number in numbers):
            return {names[int(number) - 1] for number in numbers}
        terminal.note(f"That is none of 1 to {len(names)}.")
    return set()


@dataclass(slots=True)
class _Job:
    """Brings sources in, and writes down what came of each."""

    here: Here
    report: Report
    on_conflict: OnConflict
    salvage: bool
    again: bool

    def run(self, found: Sequence[Found]) -> None:
        """Bring in the sources one after the other. Ctrl-C ends it between two appends.

        So does what stands in the way of all of them, a full disk for one: the report has it, and what came before.
        """
        self.report.count_sources(found)
        self.report.unreached_count = len(found)
        try:
            with self.here.open() as sessions:
                for number, source in enumerate(found, start=1):
                    self.here.terminal.progress(f"Reading {number} of {len(found)}: {source.path}")
                    self._bring_in(sessions, source)
                    self.report.unreached_count -= 1
        except KeyboardInterrupt:
            self.report.is_interrupted = True
        except Exception as error:
            # Whoever called raises it, behind the report.
            self.report.stopped = error
        self.here.terminal.end_progress()

    def _bring_in(self, sessions: Sessions, source: Found) -> None:
        """Bring in what one source has beyond the last import. One that cannot be had now does not stop the others."""
        try:
            if source.read is None:
                self._bring_in_export(sessions, source)
                return
            imported = import_source(
                sessions,
                source.path,
                source.read,
                at=self.here.now(),
                name=source.position_name,
                dry_run=self.report.is_dry_run,
                again=self.again,
            )
        except (ImportFailed, InvalidEvent, SessionBusy) as error:
            self.report.failed(source.path, error)
            return
        if imported is None:
            self.report.unchanged_count += 1
        elif isinstance(imported, Silent):
            self.report.silent[source.format] += 1
        elif isinstance(imported, Purged):
            self.report.purged.append(imported.id)
        else:
            self.report.outcomes.append(of_imported(source, imported))

    def _bring_in_export(self, sessions: Sessions, source: Found) -> None:
        is_dry_run = self.report.is_dry_run
        imported = import_jsonl(
            sessions,
            sys.stdin.buffer if source.path == STDIN else source.path,
            on_conflict=self.on_conflict,
            salvage=self.salvage,
            dry_run=is_dry_run,
        )
        for one in imported:
            if one.outcome == "same":
                self.report.unchanged_count += 1
            elif one.outcome == "skipped":
                self.report.taken.append(str(one.key))
            else:
                self.report.outcomes.append(of_exported(source, one))


# Keeping in step.


class _Followed:
    """The sources that `--watch` follows: which of them a changed file belongs to.

    unread: places that could not be looked at so far. What changed in one is not forgotten before it could be.
    """

    def __init__(
        self, roots: Sequence[_Root], changes: Watch, found: Iterable[Found], unread: Iterable[_Root] = ()
    ) -> None:
        self._roots = roots
        self._changes = changes
        self._unread = dict.fromkeys(unread)
        self._missed: set[Path] = set()
        self._look_count = 0
        self._known: dict[Path, Found] = {}
        self._know(found)

    @property
    def unread(self) -> set[str]:
        """The places that could not be looked at, as a report names them."""
        return {str(root.path) for root in self._unread}

    def changed(self, report: Report) -> list[Found]:
        """Return the sources that changed since the last look, and new ones."""
        # Resolved, since a format may name a file by another way than the folder that it was found in.
        files = {file.resolve() for file in self._changes.changed()}
        places = dict.fromkeys(self._places_of(files)) if files else {}
        self._look_count += 1
        if self._look_count % LOOKS_UNTIL_AGAIN == 0:
            places |= self._unread
        if not places:
            return []
        self._missed |= files
        found, unread = _found(places, report)
        self._unread = dict.fromkeys([*(root for root in self._unread if root not in places), *unread])
        changed = [source for source in found if any(self._is_news(file.resolve()) for file in source.files)]
        self._know(found)
        seen = {file.resolve() for source in found for file in source.files}
        self._missed = self._missed - seen if self._unread else set()
        return changed

    def _places_of(self, files: set[Path]) -> list[_Root]:
        """Return where to look for the sessions of changed files: at these alone where all are known, however many
        there are beside them; else everywhere."""
        if files <= self._known.keys():
            known = (self._known[file] for file in files)
            return [_Root(source.path, source.format, is_named=True) for source in known]
        return [root for root in self._roots if root.path.exists()]

    def _is_news(self, file: Path) -> bool:
        return file in self._missed or file not in self._known

    def _know(self, found: Iterable[Found]) -> None:
        self._known |= {file.resolve(): source for source in found for file in source.files}


def _keep_in_step(job: _Job, followed: _Followed, *, interval_s: float, json: bool) -> None:
    """Import what changes until Ctrl-C. What fails is tried again at every look, and said once; a place that could not
    be looked at is so at some of them."""
    terminal = job.here.terminal
    terminal.flush()
    terminal.note("Watching for more; Ctrl-C ends it.")
    said = {failure["source"]: failure["error"] for failure in job.report.failures}
    failed: list[Found] = []
    try:
        while not job.report.is_interrupted:
            time.sleep(interval_s)
            job.report = Report()
            sources = {source.key: source for source in (*failed, *followed.changed(job.report))}
            if sources:
                job.run(list(sources.values()))
            elif not job.report.failures:
                continue
            errors = {failure["source"]: failure["error"] for failure in job.report.failures}
            failed = [source for source in sources.values() if str(source.path) in errors]
            _print_round(terminal, job.report, said, json=json)
            if job.report.stopped is not None:
                raise job.report.stopped
            said = {place: error for place, error in said.items() if place in followed.unread} | errors
    except KeyboardInterrupt:
        pass
    terminal.note("Stopped watching. What was imported stays.")


def _print_round(terminal: Terminal, report: Report, said: dict[str, str], *, json: bool) -> None:
    new_failures = [one for one in report.failures if said.get(one["source"]) != one["error"]]
    if json:
        if report.changed or new_failures:
            terminal.json_line(report.document())
        return
    for outcome in report.changed:
        print_change(terminal, outcome)
    print_failures(terminal, new_failures)
    # A last line that is being written is how a source looks that somebody is at.
    print_surprises(terminal, report, names_pending=False)


def _size_bytes(found: Iterable[Found]) -> int:
    size = 0
    for file in {file for one in found for file in one.files}:
        with suppress(OSError):
            size += file.stat().st_size
    return size
