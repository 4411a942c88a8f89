"""Ids and names: what may be one, how a new one is spelled, and how agent paths are built.

Nothing here draws randomness or reads a clock; both arrive as arguments.
"""

from __future__ import annotations

import re

import msgspec

from playhead.errors import InvalidName

ID_CHARS_MAX = 512
"""Longest id or name, in characters. Frameworks' own ids are far below it; a bound keeps keys and file names sane."""

LABEL_CHARS_MAX = 2_048
"""Longest agent label or scope, in characters: a path of several names."""

DEFAULT_APP = "default"
DEFAULT_USER = "default"

_ENTROPY_BYTES = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_LOW_HALF = 2**50 - 1
_MILLISECONDS_MAX = 2**48 - 1
# Nine digits: far more runs than a session has, and short enough for any reader's integers.
_run = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)


class SessionKey(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """What names a session: the app and the user it belongs to, and its id. All three are matched exactly."""

    app: str
    user: str
    id: str

    def __str__(self) -> str:
        if self.app == DEFAULT_APP and self.user == DEFAULT_USER:
            return self.id
        return f"{self.app}/{self.user}/{self.id}"


def session_key(id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> SessionKey:
    """Return the checked key of a session.

    Raises `InvalidName` when a part is empty, longer than `ID_CHARS_MAX`, or holds NUL or half a surrogate pair.
    """
    return SessionKey(check_name(app, "app"), check_name(user, "user"), check_name(id, "session id"))


def check_name(name: str, what: str, *, chars_max: int = ID_CHARS_MAX) -> str:
    """Return `name` unchanged, or raise `InvalidName` saying what is wrong with this `what`."""
    if not isinstance(name, str) or not name:
        raise InvalidName(f"{what} must be a string of at least one character, not {name!r}")
    if len(name) > chars_max:
        raise InvalidName(f"{what} may have {chars_max} characters at most; this one has {len(name)}")
    if "\0" in name:
        raise InvalidName(f"{what} {name!r} holds a NUL character")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise InvalidName(f"{what} {name!r} is not valid Unicode (half a surrogate pair)") from error
    return name


def time_ordered_id(at: float, entropy: bytes) -> str:
    """Return a 20-character id whose text order is the order of `at` (UTC seconds, to the millisecond).

    `entropy` is 6 random bytes. The alphabet is lower-case base 32 (0-9, a-v): safe in file names that ignore case.
    Times before 1970 are spelled as 1970, so that a wrong clock still gives an id.
    """
    if len(entropy) != _ENTROPY_BYTES:
        raise ValueError(f"entropy must be {_ENTROPY_BYTES} bytes, not {len(entropy)}")
    milliseconds = min(max(int(at * 1000), 0), _MILLISECONDS_MAX)
    # 96 bits, and 4 zero bits behind them, as ten pairs of base 32 digits: the same as base32hex in lower case.
    # Two halves of 50 bits, written out: twice as fast as a loop, and every event needs an id.
    bits = ((milliseconds << 48) | int.from_bytes(entropy, "big")) << 4
    high, low = bits >> 50, bits & _LOW_HALF
    return (
        f"{_PAIRS[high >> 40]}{_PAIRS[high >> 30 & 1023]}{_PAIRS[high >> 20 & 1023]}{_PAIRS[high >> 10 & 1023]}"
        f"{_PAIRS[high & 1023]}{_PAIRS[low >> 40]}{_PAIRS[low >> 30 & 1023]}{_PAIRS[low >> 20 & 1023]}"
        f"{_PAIRS[low >> 10 & 1023]}{_PAIRS[low & 1023]}"
    )


def agent_path(parent: str, name: str, run: int) -> str:
    """Return the label of a sub-agent's run: `coordinator/researcher:2`. `run` counts from 1 and never repeats."""
    return f"{parent}/{escape_agent(name)}:{run}"


def run_of(label: str) -> tuple[str, int] | None:
    """Return a sub-agent's label without its last run number, and that number; None for an agent that is no run.

    `coordinator/researcher:2` gives `("coordinator/researcher", 2)`.
    """
    parent, slash, step = label.rpartition("/")
    found = _run.fullmatch(step) if slash else None
    return (f"{parent}/{found[1]}", int(found[2])) if found else None


def without_runs(label: str) -> str:
    """Return an agent's label with no run numbers: the name that all runs of a sub-agent share."""
    if "/" not in label:
        return label
    first, *steps = label.split("/")
    return "/".join([first, *(found[1] if (found := _run.fullmatch(step)) else step for step in steps)])


def escape_agent(name: str) -> str:
    """Return an agent's name with `%`, `/` and `:` percent-encoded, so that paths of names stay unambiguous."""
    return check_name(name, "agent name").replace("%", "%25").replace("/", "%2F").replace(":", "%3A")


def unescape_agent(label: str) -> str:
    """Return the name that `escape_agent` was given."""
    return label.replace("%3A", ":").replace("%2F", "/").replace("%25", "%")
