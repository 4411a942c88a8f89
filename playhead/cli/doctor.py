"""The `doctor` command: what is wrong with the store and its surroundings, and mending what can be mended."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from playhead import __version__
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure, report
from playhead.cli.table import Piece, Style, Styled
from playhead.errors import PlayheadError
from playhead.features.doctor.examining import examine
from playhead.features.doctor.findings import Examination, Finding
from playhead.features.doctor.mending import Mended, Step, mend
from playhead.stores.sqlite.layout import place_of
from playhead.stores.sqlite.looking import sqlite_version

INTEGRITY_PROBLEM = 6

ROUNDS_MAX = 3
"""So often mending begins again: what is mended may bring to light what lay behind it."""


def run(
    here: Here,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended, after a backup")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every artifact, and compare index and listing with the log")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Examine the store, mend it where that is asked for, and say what is left; end with 6 where faults are."""
    settings = _settings_findings(here)
    url = _store_url(here, settings)
    found = _examined(here, url, settings, deep=deep)
    mended: list[Mended] = []
    failure: PlayheadError | None = None
    tried: set[tuple[str, str]] = set()
    while fix and url is not None and _to_mend(found) - tried and len(mended) < ROUNDS_MAX:
        tried |= _to_mend(found)
        try:
            mended.append(mend(url, found, clock=here.now, entropy=os.urandom, on_step=here.terminal.progress))
        except PlayheadError as error:
            failure = error
            break
        finally:
            here.terminal.end_progress()
        found = _examined(here, url, settings, deep=deep)
    if json:
        here.terminal.json(_document(url, found, mended))
    else:
        _print(here, url, found, mended, is_fixing=fix)
    if failure is not None:
        report(Failure(f"nothing was mended, since no backup could be made: {failure}", code=1), here.terminal)
        return 1
    if any(fault.kind not in _OF_THE_SYSTEM for fault in found.faults):
        return INTEGRITY_PROBLEM
    return 1 if found.faults else 0


_OF_THE_SYSTEM = ("place", "disk")
"""What is no fault of what is stored."""


COMMAND = Command(
    run,
    about=(
        "Looks at the settings, permissions, the disk, every database (SQLite's own check, the hash chain, snapshots, "
        "index, listing), artifacts, the trash, and what belongs to nothing. It works where the store cannot be "
        "opened, and changes no byte.\n\n"
        "--fix first copies the whole store beside it and says where. It makes caches and permissions right, puts "
        "all that can be read of a damaged file into a new one (the damaged one is kept), and moves what belongs to "
        "nothing beside the backup. What it cannot mend it says, and why."
    ),
    examples=(
        "playhead doctor",
        "playhead doctor --deep",
        "playhead doctor --fix",
        "playhead doctor --json | jq '.findings[] | select(.is_fault)'",
    ),
    exits=(3, 4, 6, 130),
    needs_settings=False,
)


def _to_mend(found: Examination) -> set[tuple[str, str]]:
    return {(one.kind, one.place) for one in found.findings if one.is_mendable}


def _settings_findings(here: Here) -> list[Finding]:
    """Return what is wrong with the settings files: one that cannot be understood, and what is passed over."""
    findings = []
    for name in ("personal", "project"):
        try:
            file = getattr(here.settings, name)
        except Failure as failure:
            where = str(here.settings.personal_path) if name == "personal" else here.folder
            findings.append(Finding("settings", where, str(failure), "mend the file, or move it away"))
            continue
        for setting, why in file.refused.items() if file is not None else ():
            what, advice = f"{setting} is passed over: {why}", "say it in your own settings, or by a flag"
            findings.append(Finding("settings", str(file.path), what, advice, is_fault=False))
    return findings


def _store_url(here: Here, settings: list[Finding]) -> str | None:
    """Return the URL of the store, None where settings that cannot be understood would have to say it."""
    try:
        url = here.store_url
    except Failure:
        if not any(finding.is_fault for finding in settings):
            raise
        return None
    scheme, place = place_of(url)
    if scheme not in ("bundles", "sqlite"):
        raise Failure(f"{url} has no files to examine", code=2)
    if not os.path.lexists(place) and here.is_store_named:
        raise Failure(f"there is no store at {place}; `playhead run` or `playhead import` makes one", code=3)
    return url


def _examined(here: Here, url: str | None, settings: list[Finding], *, deep: bool) -> Examination:
    if url is None or not os.path.lexists(place_of(url)[1]):
        return Examination(tuple(settings))

    def told(number: int, count: int, name: str) -> None:
        here.terminal.progress(f"Examining {number} of {count}: {name}")

    try:
        found = examine(url, deep=deep, now=here.now(), on_file=told)
    finally:
        here.terminal.end_progress()
    return Examination(
        (*settings, *found.findings),
        *(getattr(found, name) for name in Examination.__struct_fields__ if name != "findings"),
    )


def _document(url: str | None, found: Examination, mended: Sequence[Mended]) -> dict[str, Any]:
    counts = {
        name: getattr(found, name) for name in Examination.__struct_fields__ if name not in ("findings", "holders")
    }
    return {
        "store": url,
        "is_there": url is not None and os.path.lexists(place_of(url)[1]),
        "versions": _versions(),
        **counts,
        "holders": [
            {name: holder.get(name) for name in ("session", "host", "pid", "since", "label")}
            for holder in found.holders
        ],
        "findings": [_finding(one) for one in found.findings],
        "fault_count": len(found.faults),
        "mended": [
            {"place": step.place, "is_done": step.is_done, "what": step.what} for one in mended for step in one.steps
        ],
        "backups": [one.backup for one in mended if one.backup is not None],
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "place": one.place,
        "session": None if one.session is None else str(one.session),
        "what": one.what,
        "advice": one.advice,
        "is_fault": one.is_fault,
        "is_mendable": one.is_mendable,
    }


def _versions() -> dict[str, str]:
    return {
        "playhead": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite_version(),
        "system": platform.platform(),
    }


def _print(here: Here, url: str | None, found: Examination, mended: Sequence[Mended], *, is_fixing: bool) -> None:
    """Print each finding: a paragraph for a person, a row for a program. Facts and what was done go to stderr."""
    terminal = here.terminal
    versions = _versions()
    terminal.note(
        f"Playhead {versions['playhead']}, Python {versions['python']}, SQLite {versions['sqlite']}, "
        f"{versions['system']}."
    )
    terminal.note(_about_store(url, found))
    for holder in found.holders:
        terminal.note(f"{holder['session']} is in a turn: pid {holder.get('pid', '?')} on {holder.get('host', '?')}.")
    for step in (step for one in mended for step in one.steps):
        terminal.note(f"{'Mended' if step.is_done else 'Left'}: {_sentence(step)}")
    for one in mended:
        if one.backup is not None:
            terminal.note(f"The store as it was before: {one.backup}")
    for finding in found.findings:
        if terminal.is_interactive:
            for pieces in _paragraph(finding):
                terminal.line(*pieces)
        else:
            terminal.table((), [[_state(finding), finding.kind, finding.place, finding.what, finding.advice]])
    terminal.note(_summed_up(found, is_fixing=is_fixing))


def _about_store(url: str | None, found: Examination) -> str:
    if url is None:
        return "The store was not examined: the settings that would name it cannot be understood; --store names it."
    place = place_of(url)[1]
    if not os.path.lexists(place):
        return f"There is no store at {place} yet; `playhead run` or `playhead import` makes one."
    free = "" if found.free_bytes is None else f"; {found.free_bytes:,} bytes are free"
    trash = f", {found.trashed_count} in the trash ({found.trash_bytes:,} bytes)" if found.trashed_count else ""
    waiting = f", {found.unindexed_count:,} not indexed yet" if found.unindexed_count else ""
    return (
        f"{url}: {found.session_count:,} sessions with {found.event_count:,} events{waiting} in "
        f"{found.database_count:,} databases{trash}; {found.size_bytes:,} bytes{free}."
    )


def _sentence(step: Step) -> str:
    name = Path(step.place).name
    what = step.what if name in step.what else f"{name}: {step.what}"
    return what if what.endswith(".") else f"{what}."


def _paragraph(finding: Finding) -> list[list[Piece]]:
    style: Style = "red" if finding.is_fault else "yellow"
    return [
        [Styled(f"{_state(finding)}: {finding.kind}", style), "  ", Styled(finding.place, "cyan")],
        [f"  {finding.what}."],
        [Styled(f"  What to do: {finding.advice}.", "dim")],
    ]


def _state(finding: Finding) -> str:
    return "fault" if finding.is_fault else "note"


def _summed_up(found: Examination, *, is_fixing: bool) -> str:
    count = len(found.faults)
    if not count:
        return "No fault was found." if not is_fixing else "No fault is left."
    if not is_fixing and not any(one.is_mendable for one in found.faults):
        return "1 fault." if count == 1 else f"{count} faults."
    faults = "1 fault" if count == 1 else f"{count} faults"
    mendable = sum(1 for one in found.faults if one.is_mendable)
    if is_fixing:
        return f"{faults} left that could not be mended."
    return f"{faults}; `playhead doctor --fix` mends {mendable} of them, after a backup."
