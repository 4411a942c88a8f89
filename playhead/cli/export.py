"""The `export` command: sessions as JSON Lines, Markdown or HTML."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from playhead.agents.quoting import counted
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure, exit_code
from playhead.cli.naming import all_rows, named
from playhead.cli.text import one_line
from playhead.errors import PlayheadError
from playhead.formats.exporting import ExportFormat, export_session, format_of, page, placed
from playhead.formats.jsonl import Written
from playhead.formats.redaction import Redactor
from playhead.model.ids import SessionKey
from playhead.session import Sessions
from playhead.stores.files import make_private_directory
from playhead.stores.names import file_stem

INTEGRITY_PROBLEM = 6


def run(
    here: Here,
    session: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Named as in `show`", show_default=False),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Every session of the store")] = False,
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format", "-f", help="What to write; by the ending of -o where not given, else jsonl", show_default=False
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR",
            help="Where to; stdout where not given. A DIR gets a file for each; several sessions make it",
        ),
    ] = None,
    branch: Annotated[
        int | None, typer.Option("--branch", metavar="SEQ", min=1, help="The path that ends at this event (md, html)")
    ] = None,
    no_artifacts: Annotated[bool, typer.Option("--no-artifacts", help="Leave binary outputs out")] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Mask secrets, home directories and the user's name")
    ] = False,
    redact_pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--redact-pattern",
            metavar="REGEX",
            help="Mask what this matches too, or its first group; may be given several times",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there")] = False,
    json: JsonOption = False,
) -> int:
    """Write the sessions; end with what went wrong first where one could not be written."""
    if all == bool(session):
        raise Failure("name the sessions to export, or give --all", code=2)
    place = _Place.of(output, is_several=all or len(session or []) > 1)
    chosen = format or _format_of(place)
    _check_options(here, place, chosen, branch=branch, json=json)
    redactor = _redactor(here, redact_pattern or []) if redact or redact_pattern else None
    with here.open_existing() as sessions:
        keys, skipped = _keys(sessions, session or [])
        if len(keys) > 1 and branch is not None:
            raise Failure("--branch is of one session; name one", code=2)
        if len(keys) > 1 and chosen == "html" and not place.is_folder:
            raise Failure("an HTML page holds one session; give -o DIR/ to get a file for each", code=2)
        options = _Options(chosen, branch, not no_artifacts, redactor, force)
        reports: list[_Report] = []
        try:
            reports.extend(_exported(here, sessions, keys, place, options))
        except (Failure, KeyboardInterrupt):
            if place.is_folder and (count := sum(1 for one in reports if one.file is not None)):
                here.terminal.note(f"{count} of {counted(len(keys), 'session')} went to {place.path} before that.")
            raise
    here.terminal.end_progress()
    if json:
        here.terminal.json(_document([*reports, *skipped], chosen, output, redactor))
    _tell(here, reports, skipped, place, redactor)
    return next((one.code for one in [*reports, *skipped] if one.code), 0)


COMMAND = Command(
    run,
    about=(
        "JSON Lines (the default) lose nothing: `playhead import FILE` makes the same sessions of them, event for "
        "event with the same hashes, all branches and artifacts included. Markdown and HTML are for people and show "
        "one path; an HTML page is one file that runs no script and asks nothing of anyone.\n\n"
        "A file is written whole or not at all, readable by you alone, and is never overwritten without --force. Where "
        "-o names nothing that is there and has no ending, several sessions make it a folder. "
        "--redact goes by the shape of secrets and leaves artifacts out: look a text over before you give it away."
    ),
    examples=(
        "playhead export @last -o upload.html",
        "playhead export @last --format md | head -20",
        "playhead export --all > sessions.jsonl",
        "playhead export --all --format html -o pages",
        "playhead export @last --redact -o upload.md",
    ),
    exits=(3, 5, 6),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the text goes: to stdout (no path), to a file, or to a file for each session in a folder."""

    path: Path | None
    is_folder: bool = False

    @classmethod
    def of(cls, output: str | None, *, is_several: bool) -> _Place:
        """Return the place that `-o` names. Several sessions go into a folder where the name has no ending."""
        if output is None or output == "-":
            return cls(None)
        path = Path(output)
        is_new_folder = is_several and not path.suffix and not os.path.lexists(path)
        return cls(path, is_folder=output.endswith(("/", os.sep)) or path.is_dir() or is_new_folder)


@dataclass(frozen=True, slots=True)
class _Options:
    format: ExportFormat
    branch: int | None
    artifacts: bool
    redactor: Redactor | None
    force: bool


@dataclass(frozen=True, slots=True)
class _Report:
    """What became of one session. code: the exit code that its problem ends the program with, 0 for none."""

    key: SessionKey
    file: str | None = None
    written: Written | None = None
    problem: str | None = None
    code: int = 0


def _format_of(place: _Place) -> ExportFormat:
    if place.path is None or place.is_folder:
        return "jsonl"
    found = format_of(place.path)
    if found is None:
        raise Failure(f'the name "{place.path}" does not tell the format; give --format jsonl, md or html', code=2)
    return found


def _check_options(here: Here, place: _Place, format: ExportFormat, *, branch: int | None, json: bool) -> None:
    if json and place.path is None:
        raise Failure("--json reports what was written to a file; give -o FILE", code=2)
    if branch is not None and format == "jsonl":
        raise Failure("JSON Lines hold every branch; --branch picks one for --format md or html", code=2)
    if place.path is None and here.terminal.is_interactive and format != "md":
        raise Failure(
            f"{'JSON Lines are' if format == 'jsonl' else 'HTML is'} nothing to read on a terminal; "
            "give -o FILE, send it through a pipe, or take --format md",
            code=2,
        )


def _redactor(here: Here, patterns: Sequence[str]) -> Redactor:
    """Return what masks: this person's home and names are taken from the environment."""
    homes = [home for name in ("HOME", "USERPROFILE") if (home := here.environment.get(name))]
    names = [one for name in ("USER", "LOGNAME", "USERNAME") if (one := here.environment.get(name))]
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as error:
            raise Failure(f'--redact-pattern "{pattern}" is no regular expression: {error}', code=2) from error
    return Redactor(homes=homes, names=[*names, *(Path(home).name for home in homes)], patterns=compiled)


def _keys(sessions: Sessions, names: Sequence[str]) -> tuple[list[SessionKey], list[_Report]]:
    """Return the keys that are meant, each once, and of all sessions those that a list cannot even read."""
    if names:
        return list(dict.fromkeys(named(sessions, name) for name in names)), []
    rows = list(all_rows(sessions))
    skipped = [_Report(row.key, problem=row.problem, code=INTEGRITY_PROBLEM) for row in rows if row.problem is not None]
    return [row.key for row in rows if row.problem is None], skipped


def _exported(
    here: Here, sessions: Sessions, keys: Sequence[SessionKey], place: _Place, options: _Options
) -> Iterator[_Report]:
    """Write the sessions to where they go. In a folder, one that cannot be written leaves the others as they are."""
    if place.path is None and here.terminal.is_interactive:
        yield from _shown(here, sessions, keys, options)
        return
    if place.is_folder and place.path is not None:
        make_private_directory(place.path)
        files = _file_names(keys, place.path, options)
        for index, key in enumerate(keys, start=1):
            _progress(here, index, keys)
            try:
                with _opened(files[key], force=options.force) as out:
                    written = _write(sessions, key, out, options)
                yield _Report(key, str(files[key]), written)
            except PlayheadError as error:
                yield _Report(key, problem=str(error), code=exit_code(error))
        return
    with _opened(place.path, force=options.force) if place.path is not None else _stdout(here) as out:
        for index, key in enumerate(keys, start=1):
            _progress(here, index, keys)
            if index > 1 and options.format == "md":
                out.write(b"---\n\n")
            written = _write(sessions, key, out, options)
            yield _Report(key, None if place.path is None else str(place.path), written)


def _shown(here: Here, sessions: Sessions, keys: Sequence[SessionKey], options: _Options) -> Iterator[_Report]:
    """Show Markdown on the terminal, made safe as everything there is."""
    with here.terminal.paged():
        for key in keys:
            session = sessions.get(key.id, app=key.app, user=key.user)
            pieces = page(
                session, format="md", branch=options.branch, artifacts=options.artifacts, redactor=options.redactor
            )
            for piece in pieces:
                here.terminal.exact(piece)
    yield from (_Report(key) for key in keys)


def _write(sessions: Sessions, key: SessionKey, out: BinaryIO, options: _Options) -> Written:
    return export_session(
        sessions,
        key,
        out,
        format=options.format,
        branch=options.branch,
        artifacts=options.artifacts,
        redactor=options.redactor,
    )


@contextmanager
def _opened(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    try:
        with placed(path, overwrite=force) as out:
            yield out
    except FileExistsError as error:
        advice = "" if force else "; --force overwrites it"
        raise Failure(f"{path}: {error.strerror}{advice}", code=1) from error
    except OSError as error:
        if isinstance(error, PlayheadError):
            raise
        # The system names the temporary file, or none: nobody knows that one.
        raise Failure(f"{path} cannot be written: {error.strerror}", code=1) from error


def _stdout(here: Here) -> AbstractContextManager[BinaryIO]:
    """Return stdout for bytes: what is read back must not pass through the encoding that a terminal happens to have."""
    here.terminal.flush()
    return nullcontext(sys.stdout.buffer)


def _file_names(keys: Sequence[SessionKey], folder: Path, options: _Options) -> dict[SessionKey, Path]:
    """Return a file for each session, its name made of the key, no two the same.

    Raises `Failure` where one is there that may not be overwritten, before anything is written.
    """
    found: dict[SessionKey, Path] = {}
    taken: set[str] = set()
    for key in keys:
        shown = key
        if options.redactor is not None:
            shown = SessionKey(*(options.redactor.text(part) for part in (key.app, key.user, key.id)))
        stem = file_stem(shown)
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        found[key] = folder / f"{name}.{options.format}"
    there = [str(path) for path in found.values() if os.path.lexists(path)]
    if there and not options.force:
        which = "1 of the files is there already; --force overwrites it"
        if len(there) > 1:
            which = f"{len(there)} of the files are there already; --force overwrites them"
        raise Failure(which, code=1, lines=there[:10])
    return found


def _progress(here: Here, index: int, keys: Sequence[SessionKey]) -> None:
    if len(keys) > 1:
        here.terminal.progress(f"Exporting {index} of {len(keys)}: {keys[index - 1]}")


def _tell(
    here: Here, reports: Sequence[_Report], skipped: Sequence[_Report], place: _Place, redactor: Redactor | None
) -> None:
    """Say on stderr what was written where, what was masked, and what is missing."""
    done = [one.written for one in reports if one.written is not None]
    if place.path is not None:
        events = counted(sum(one.event_count for one in done), "event")
        here.terminal.note(f"Wrote {counted(len(done), 'session')} ({events}) to {one_line(str(place.path))}.")
    lost = sum(len(one.lost_artifacts) for one in done)
    if lost:
        what = "1 artifact is" if lost == 1 else f"{lost} artifacts are"
        here.terminal.note(f"{what} missing from the store, or damaged there, and left out.")
    if redactor is not None:
        masked = ", ".join(f"{kind} {count}" for kind, count in sorted(redactor.counts.items()))
        here.terminal.note(f"Masked: {masked or 'nothing'}. It goes by shape alone: look the text over.")
    for one in (*reports, *skipped):
        if one.problem is not None:
            here.terminal.error(f"{one.key} was left out: {one.problem}")


def _document(
    reports: Sequence[_Report], format: ExportFormat, output: str | None, redactor: Redactor | None
) -> dict[str, Any]:
    masked = None
    if redactor is not None:
        masked = [{"kind": kind, "count": count} for kind, count in sorted(redactor.counts.items())]
    return {
        "format": format,
        "output": output,
        "sessions": [
            {
                "id": one.key.id,
                "app": one.key.app,
                "user": one.key.user,
                "file": one.file,
                "event_count": one.written.event_count if one.written else None,
                "artifact_count": one.written.artifact_count if one.written else None,
                "lost_artifact_count": len(one.written.lost_artifacts) if one.written else None,
                "problem": one.problem,
            }
            for one in reports
        ],
        "masked": masked,
    }
