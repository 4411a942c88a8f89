"""Settings: what holds for every call of the command line, and where each of them was said.

The nearest word counts: the flag, then the environment (`PLAYHEAD_MODEL`), then `.playhead.toml` in the current folder
or the nearest one above it, then the person's own `config.toml`, then the default.

A project's file came with the project, often from somebody else. It only chooses what can do no harm: it starts no
code, sends nothing to another address, and names no place outside its own folder. What it may not say is passed over,
with a note that says why. No file holds a key or a password.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import platformdirs

from playhead.cli.failures import Failure
from playhead.cli.text import one_line

SESSIONS_FOLDER = "sessions"
CONFIG_FILE = "config.toml"
PROJECT_FILE = ".playhead.toml"
FILE_BYTES_MAX = 64 * 1024

Said = str | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. kind: what its value is; a `store` and a `folder` are places. refused: why a project's file may not
    say it, None where it may; a place that a project names has to be inside the project."""

    name: str
    kind: Literal["text", "switch", "url", "store", "folder"]
    meaning: str
    refused: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable that says it."""
        return f"PLAYHEAD_{self.name.upper()}"


SETTINGS: Mapping[str, Setting] = {
    one.name: one
    for one in (
        Setting("store", "store", "Where the sessions are: bundles:DIR or sqlite:FILE"),
        Setting("agent", "text", "The agent that answers, as --agent takes it", "it names code that would be run"),
        Setting("model", "text", "The model that answers, as --model takes it"),
        Setting("base_url", "url", "The endpoint of the model", "conversations and the key would be sent there"),
        Setting("documents", "folder", "The folder of documents that the built-in agent answers from"),
        Setting("quiet", "switch", "Write nothing to stderr but errors", "a project does not silence messages"),
    )
}

_SECRET = re.compile(r"(^|[_-])(key|token|secret|password|passwd)s?$", re.IGNORECASE)
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Found:
    """What holds: the value (None where nobody said one and there is no default), and who said it: a flag, a variable,
    the path of a file, or `default`."""

    value: Said | None
    origin: str


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store's URL, and what named it: `--store`, `PLAYHEAD_STORE`, `PLAYHEAD_HOME`, the path of a file, `default`."""

    url: str
    named_by: str


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file's settings. refused: those that are passed over, each with the reason."""

    path: Path
    values: Mapping[str, Said] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class Settings:
    """The settings of one call. Files are read when somebody first asks, once.

    Reading raises `Failure` (usage) for a file with an unknown key, a value of the wrong kind or a secret in it.
    """

    def __init__(self, environment: Mapping[str, str], folder: str | Path) -> None:
        self._environment = environment
        self._folder = Path(folder)
        self._told: set[str] = set()

    @property
    def home(self) -> Path | None:
        """The folder that PLAYHEAD_HOME names, or None."""
        named = self._environment.get("PLAYHEAD_HOME")
        return Path(named).expanduser() if named else None

    @property
    def personal_path(self) -> Path:
        """Where the person's own settings are, whether or not the file is there."""
        folder = self.home or platformdirs.user_config_path("playhead", appauthor=False, ensure_exists=False)
        return folder / CONFIG_FILE

    @cached_property
    def personal(self) -> SettingsFile:
        """The person's own settings; none where there is no file."""
        return _read(self.personal_path, is_project=False)

    @cached_property
    def project(self) -> SettingsFile | None:
        """The settings of the project that the current folder belongs to, or None."""
        path = _nearest(self._folder)
        return _read(path, is_project=True) if path is not None else None

    def found(self, name: str, flag: Said | None = None) -> Found:
        """Return what holds for a setting. An empty flag or variable counts as absent."""
        setting = SETTINGS[name]
        if flag:
            return Found(flag, f"--{name.replace('_', '-')}")
        if text := self._environment.get(setting.variable):
            return Found(_from_environment(setting, text), setting.variable)
        for file in self._files(name):
            if name in file.values:
                return Found(file.values[name], str(file.path))
        return Found(False if setting.kind == "switch" else None, "default")

    def refusal(self, name: str) -> str | None:
        """Return, once, the sentence about a setting that the project's file may not say, where it would count."""
        project = self.project if self.home is None or name != "store" else None
        if project is None or name not in project.refused or name in self._told:
            return None
        if self.found(name).origin == SETTINGS[name].variable:
            return None
        self._told.add(name)
        return f"{name} in {project.path} is passed over: {project.refused[name]}."

    def _files(self, name: str) -> list[SettingsFile]:
        """Return the files that have a say, the nearest first. PLAYHEAD_HOME keeps all sessions together, so a project
        names no store beside it."""
        has_project = self.project is not None and not (name == "store" and self.home is not None)
        return [*([self.project] if has_project and self.project else []), self.personal]


def store_place(flag: str | None, settings: Settings) -> StorePlace:
    """Return where the sessions are. Nothing is created."""
    found = settings.found("store", flag)
    if isinstance(found.value, str):
        return StorePlace(_at_home(found.value), found.origin)
    if settings.home is not None:
        return StorePlace(f"bundles:{settings.home / SESSIONS_FOLDER}", "PLAYHEAD_HOME")
    folder = platformdirs.user_data_path("playhead", appauthor=False, ensure_exists=False) / SESSIONS_FOLDER
    return StorePlace(f"bundles:{folder}", "default")


def setting_named(name: str) -> Setting:
    """Return a setting. Raises `Failure` (usage) for an unknown name, with the nearest, and for that of a secret."""
    if name in SETTINGS:
        return SETTINGS[name]
    raise Failure(_about_unknown(name), code=2)


def checked(setting: Setting, value: Any, *, where: str, folder: Path) -> Said:
    """Return a value as it holds: of the right kind, a place absolute, with relative ones below `folder`.

    where: what the message begins with. Raises `Failure` (usage).
    """
    if setting.kind == "switch":
        if isinstance(value, bool):
            return value
        raise Failure(f"{where}: {setting.name} is true or false, not {_short(value)}", code=2)
    if not isinstance(value, str) or not value.strip():
        raise Failure(f"{where}: {setting.name} is a text, not {_short(value)}", code=2)
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in value):
        raise Failure(f"{where}: {setting.name} holds a control character", code=2)
    if setting.kind == "url" and not re.fullmatch(r"https?://[^\s/@?#]+([/?#]\S*)?", value):
        raise Failure(
            f"{where}: {setting.name} is an address that begins with http:// or https:// and holds no name or password",
            code=2,
        )
    return _absolute(setting, value, where=where, folder=folder)


def _absolute(setting: Setting, value: str, *, where: str, folder: Path) -> str:
    if setting.kind == "folder":
        return str(folder / _expanded(value))
    if setting.kind != "store":
        return value
    scheme, colon, place = value.partition(":")
    if not colon or not scheme or (scheme in _FILE_SCHEMES and not place):
        raise Failure(f"{where}: {setting.name} is bundles:DIR or sqlite:FILE, not {_short(value)}", code=2)
    return f"{scheme}:{folder / _expanded(place)}" if scheme in _FILE_SCHEMES else value


_FILE_SCHEMES = ("bundles", "sqlite")


def _nearest(folder: Path) -> Path | None:
    """Return the settings file of the project that a folder is in: the nearest one upwards."""
    return next((path for one in (folder, *folder.parents) if (path := one / PROJECT_FILE).is_file()), None)


def _read(path: Path, *, is_project: bool) -> SettingsFile:
    text = text_of_file(path)
    if text is None:
        return SettingsFile(path)
    if is_project and not _is_trusted(path):
        why = "the file belongs to another user of this machine"
        return SettingsFile(path, refused=dict.fromkeys(SETTINGS, why))
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        raise Failure(f"{path} is no TOML: {one_line(str(error))}", code=2) from error
    values: dict[str, Said] = {}
    refused: dict[str, str] = {}
    for name, value in table.items():
        where = f"{path}, line {_line_of(text, name)}"
        if name not in SETTINGS:
            raise Failure(f"{where}: {_about_unknown(name)}", code=2)
        held = checked(SETTINGS[name], value, where=where, folder=path.parent)
        reason = _why_refused(SETTINGS[name], held, path.parent) if is_project else None
        if reason is None:
            values[name] = held
        else:
            refused[name] = reason
    return SettingsFile(path, values, refused)


def text_of_file(path: Path) -> str | None:
    """Return what is in a file, None where there is none. A pipe or a device in its place is not waited for.

    Raises `Failure` where it cannot be read, is too large, or is not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Failure(f"{path} is no regular file", code=2)
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}", code=1) from error
    if len(content) > FILE_BYTES_MAX:
        raise Failure(f"{path} is larger than {FILE_BYTES_MAX} bytes, which no settings are", code=2)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is not UTF-8 text", code=2) from error


def _is_trusted(path: Path) -> bool:
    """Return True unless another user of this machine could have put the file there, as in a folder that all share."""
    if not hasattr(os, "getuid"):
        return True
    return path.stat().st_uid in (os.getuid(), 0)


def _why_refused(setting: Setting, value: Said, folder: Path) -> str | None:
    """Return why a project's file may not say this, or None."""
    if setting.refused is not None:
        return setting.refused
    if setting.kind not in ("store", "folder"):
        return None
    scheme, _, place = str(value).partition(":") if setting.kind == "store" else ("bundles", "", str(value))
    try:
        if scheme in _FILE_SCHEMES and Path(place).resolve().is_relative_to(folder.resolve()):
            return None
    except (OSError, RuntimeError):
        pass  # Links that lead in a circle lead nowhere inside.
    return "a project names places inside its own folder only"


def _from_environment(setting: Setting, text: str) -> Said:
    if setting.kind != "switch":
        return text
    if text.lower() not in _SWITCH:
        raise Failure(f"{setting.variable} is 1 or 0, not {_short(text)}", code=2)
    return _SWITCH[text.lower()]


def _about_unknown(name: str) -> str:
    shown = one_line(name)[:60]
    if _SECRET.search(name):
        return f"{shown} is not kept in a file; put the key into the environment, as OPENAI_API_KEY"
    nearest = get_close_matches(name, SETTINGS, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(SETTINGS)}"
    return f'there is no setting "{shown}"; {hint}'


def _line_of(text: str, name: str) -> int:
    """Return the line on which a key stands, counted from 1."""
    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if key.match(line)), 1)


def _short(value: Any) -> str:
    return one_line(repr(value))[:60]


def _at_home(url: str) -> str:
    """Return the URL with a `~` after its scheme replaced: a shell does that only at the beginning of a word."""
    scheme, colon, place = url.partition(":")
    if not place.startswith("~"):
        return url
    return f"{scheme}{colon}{_expanded(place)}"


def _expanded(place: str) -> Path:
    """Return a path with a leading `~` replaced; that of an unknown user stays as it is written."""
    try:
        return Path(place).expanduser()
    except RuntimeError:
        return Path(place)
