"""The `config` command: the settings, what they are and who said so, and the person's own file of them."""

from __future__ import annotations

import json as json_
import os
import re
import secrets
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure
from playhead.cli.settings import SETTINGS, Said, Settings, checked, setting_named, store_place, text_of_file
from playhead.cli.table import Cell, Column, Styled
from playhead.stores.files import make_private_directory, sync_directory, write_all

Action = Literal["show", "get", "set", "unset", "path"]


def run(
    here: Here,
    action: Annotated[
        Action, typer.Argument(metavar="ACTION", help="show, get KEY, set KEY VALUE, unset KEY, or path")
    ] = "show",
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="The setting", show_default=False)] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="What it is to be", show_default=False)] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Also say who said each value")] = False,
    json: JsonOption = False,
) -> None:
    """Do what the action says; without one, show all settings."""
    _check_count(action, key, value)
    if action == "show":
        _show(here, with_origin=origin, as_json=json)
    elif action == "path":
        _path(here, as_json=json)
    elif action == "get" and key is not None:
        _get(here, key, with_origin=origin, as_json=json)
    elif key is not None:
        _change(here, key, value, as_json=json)


def _about() -> str:
    rows = "\n".join(
        f"  {one.name:<10} {one.meaning}{f'. Not in a project: {one.refused}' if one.refused else ''}"
        for one in SETTINGS.values()
    )
    return (
        "`set` and `unset` change the person's own file and leave its comments alone. The nearest word about a setting "
        "counts: a flag of the command, the environment (PLAYHEAD_MODEL), .playhead.toml in the current folder or the "
        "nearest one above, the person's own config.toml, the default. PLAYHEAD_HOME moves that file and the sessions "
        "into a folder of its own, whatever a project says of a store.\n\n"
        f"\b\nSettings:\n{rows}\n\n"
        "A project's file often comes from somebody else, so it runs no code, sends nothing elsewhere, and names "
        "places inside its own folder only; the rest is passed over with a note. No file holds a key or a password: "
        "those come from the environment alone. A relative place in a file is relative to that file."
    )


COMMAND = Command(
    run,
    about=_about(),
    examples=(
        "playhead config",
        "playhead config show --origin",
        "playhead config set model gpt-5-mini",
        "playhead config get model",
        "playhead config unset model",
        "playhead config path",
    ),
    needs_settings=False,
)

_PARAMETERS = {"show": 0, "path": 0, "get": 1, "unset": 1, "set": 2}


def _check_count(action: str, key: str | None, value: str | None) -> None:
    wanted, given = _PARAMETERS[action], (key is not None) + (value is not None)
    if wanted != given:
        call = " ".join([action, "KEY", "VALUE"][: wanted + 1])
        raise Failure(f"write: playhead config {call}", code=2)


# Reading.


def _show(here: Here, *, with_origin: bool, as_json: bool) -> None:
    rows = [_facts(here, name) for name in SETTINGS]
    refused = _refused(here.settings)
    if as_json:
        here.terminal.json({"settings": rows, "passed_over": refused, "path": str(here.settings.personal_path)})
        return
    columns = [Column("KEY", style="cyan"), Column("VALUE", is_flexible=True)]
    if with_origin:
        columns.append(Column("ORIGIN", is_flexible=True))
    here.terminal.table(columns, [_cells(row)[: len(columns)] for row in rows])
    for one in refused:
        here.terminal.note(f"{one['key']} in {one['path']} is passed over: {one['reason']}.")


def _get(here: Here, name: str, *, with_origin: bool, as_json: bool) -> None:
    setting_named(name)
    facts = _facts(here, name)
    if as_json:
        here.terminal.json({"setting": facts})
        return
    if facts["value"] is None:
        raise Failure(f"{name} is not set, and has no default", code=1)
    here.terminal.line(_shown(facts["value"]), Styled(f"  {facts['origin']}", "dim") if with_origin else "")


def _path(here: Here, *, as_json: bool) -> None:
    path = here.settings.personal_path
    if as_json:
        here.terminal.json({"path": str(path), "exists": path.is_file()})
        return
    here.terminal.line(str(path))


def _facts(here: Here, name: str) -> dict[str, Any]:
    if name == "store":
        place = store_place(here.store_flag, here.settings)
        value: Said | None = place.url
        origin = place.named_by
    else:
        found = here.settings.found(name)
        value, origin = found.value, found.origin
    return {"key": name, "value": _without_password(value), "origin": origin, "meaning": SETTINGS[name].meaning}


def _refused(settings: Settings) -> list[dict[str, str]]:
    file = settings.project
    if file is None:
        return []
    return [{"key": name, "path": str(file.path), "reason": reason} for name, reason in file.refused.items()]


def _cells(row: dict[str, Any]) -> list[Cell | str]:
    value = row["value"]
    shown = Cell("not set", "", style="dim") if value is None else _shown(value)
    return [row["key"], shown, row["origin"]]


def _shown(value: Said) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _without_password(value: Said | None) -> Said | None:
    """Return a value with the password of an address hidden; only a variable can bring one."""
    return re.sub(r"(?<=://)[^/@\s]+@", "…@", value) if isinstance(value, str) else value


# Changing.


def _change(here: Here, name: str, value: str | None, *, as_json: bool) -> None:
    setting = setting_named(name)
    path = here.settings.personal_path
    text = text_of_file(path) or ""
    wanted = None
    if value is not None:
        given: Said = {"true": True, "false": False}.get(value, value) if setting.kind == "switch" else value
        wanted = checked(setting, given, where="config set", folder=Path(here.folder))
    changed = edited(text, name, wanted, path=path)
    if changed != text:
        _write(path, changed)
    if as_json:
        here.terminal.json({"key": name, "value": wanted, "path": str(path), "is_changed": changed != text})
        return
    if wanted is not None:
        here.terminal.note(f"{name} is {_shown(wanted)} in {path}.")
    else:
        here.terminal.note(f"{name} {'is no longer' if changed != text else 'is not'} set in {path}.")
    try:
        found = here.settings.found(name)
    except Failure as failure:
        here.terminal.note(f"Written; the settings as a whole still make no sense: {failure}.")
        return
    if found.origin not in (str(path), "default"):
        here.terminal.note(f"Here {found.origin} says otherwise, and counts.")


def edited(text: str, name: str, value: Said | None, *, path: Path) -> str:
    """Return the text of a settings file with one key set (None takes it out), all other lines as they were.

    The result is read again and has to say what was wanted: a file that is written in a way this cannot change is a
    `Failure`, and left alone.
    """
    try:
        before = tomllib.loads(text)
    except ValueError as error:
        raise Failure(f"{path} is no TOML: {error}; mend it by hand first", code=2) from error
    wanted = {one: held for one, held in before.items() if one != name} | ({} if value is None else {name: value})
    after = _with_line(text.splitlines(keepends=True), name, value)
    try:
        if tomllib.loads(after) == wanted:
            return after
    except ValueError:
        pass  # Such as a value of several lines, of which only the first was changed.
    raise Failure(f"{path} is written in a way that this command cannot change; edit it by hand", code=1)


_VALUE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^#"'\s]*)(\s*(?:\#.*)?)""", re.DOTALL)
"""A value on one line, and what follows it: white space and a comment."""


def _with_line(lines: list[str], name: str, value: Said | None) -> str:
    end = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    key = re.compile(rf"""\s*(?:{name}|"{name}"|'{name}')\s*=\s*""")
    at, found = next(((index, found) for index, line in enumerate(lines) if (found := key.match(line))), (-1, None))
    if found is None and value is not None:
        # A key after a table's heading would belong to the table.
        place = next((index for index, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
        if place and not lines[place - 1].endswith("\n"):
            lines[place - 1] += end
        lines.insert(place, f"{name} = {_toml(value)}{end}")
    elif found is not None and value is not None:
        rest = _VALUE.fullmatch(lines[at][found.end() :])
        lines[at] = f"{found[0]}{_toml(value)}{rest[1] if rest else end}"
    elif found is not None:
        del lines[at]
    return "".join(lines)


def _toml(value: Said) -> str:
    """Return a value as TOML writes it. Of a text without control characters JSON's spelling is TOML's as well."""
    return json_.dumps(value, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all, for its owner alone. A link to it (from a folder of settings that is kept
    elsewhere) stays a link. Raises `Failure` where the system refuses."""
    place = Path(os.path.realpath(path))
    make_private_directory(place.parent, durable=False)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(8)}.new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, place)
    except OSError as error:
        # The system names the temporary file, or none: nobody knows that one.
        raise Failure(f"{path} cannot be written: {error.strerror}; it is as it was", code=1) from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(place.parent)
