"""How a person names a session: one rule for every command.

In this order: the whole id; `@last` (or `last`) and `@-N` by last activity; then whatever one session alone answers
to: an id that begins with these characters (four at least) or a title (in any case). An imported session also answers
to the beginning of the id that its own program gave it: `claude-code.4f9a…` to `4f9a`.

The library knows whole ids only, so nobody but a person at a command line ever gets a session by half a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from playhead.cli.failures import Failure
from playhead.cli.text import one_line
from playhead.errors import InvalidName, SessionNotFound
from playhead.features.listing import PAGE_MAX, Listed
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey, session_key
from playhead.session import Sessions

PREFIX_CHARS_MIN = 4
CANDIDATES_MAX = 10
NEAREST_MAX = 3
SHORT_CHARS = 20


def named(sessions: Sessions, name: str) -> SessionKey:
    """Return the key of the session that a person means by `name`.

    Raises `Failure`: exit code 5 with the candidates where several fit, 3 with the nearest names where none does.
    """
    found = _by_whole_id(sessions, name)
    if found is not None:
        return found
    rows = list(all_rows(sessions))
    rank = _rank(name)
    if rank is not None:
        return _by_rank(rows, name, rank)
    whole = [row for row in rows if row.key.id == name]
    fitting = whole or [row for row in rows if _answers_to(row, name)]
    if len(fitting) == 1:
        return fitting[0].key
    if fitting:
        raise Failure(
            f'"{name}" fits {len(fitting)} sessions; name one of them by its whole id',
            code=5,
            lines=_described(fitting[:CANDIDATES_MAX], more=len(fitting) - CANDIDATES_MAX),
        )
    raise Failure(f'no session answers to "{name}"{_hint(name)}', code=3, lines=_nearest(rows, name))


def surely_named(sessions: Sessions, name: str) -> SessionKey | None:
    """Return the key that `name` cannot but mean: a whole id, or a rank such as `@last` (with its `@`). Else None.

    Raises `Failure` for a rank that no session has.
    """
    found = _by_whole_id(sessions, name)
    if found is None and name.startswith("@") and _rank(name) is not None:
        return named(sessions, name)
    return found


def named_event(sessions: Sessions, name: str) -> tuple[SessionKey, int | None]:
    """Return the key that a person means, and the seq where they wrote `SESSION#SEQ`, as answers and links do.

    A session whose own id ends like that comes first. Raises `Failure` as `named` does.
    """
    found = re.fullmatch(r"(.+)#([0-9]{1,10})", name, re.DOTALL)
    if found is None or _by_whole_id(sessions, name) is not None:
        return named(sessions, name), None
    return named(sessions, found[1]), int(found[2])


def all_rows(sessions: Sessions) -> Iterator[Listed]:
    """Yield the listing rows of every app and user, the most recently active first, page by page."""
    cursor: str | None = None
    while True:
        page = sessions.list(limit=PAGE_MAX, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def title_of(row: Listed) -> str:
    """Return what the list calls a session; one that cannot be read is called by what is wrong with it."""
    return row.summary.title if row.summary is not None else f"({row.problem or 'unreadable'})"


def short_names(keys: Iterable[SessionKey]) -> dict[SessionKey, str]:
    """Return what to call each of these sessions in a table: the first `SHORT_CHARS` of its id, whole where several
    begin so. An id that Playhead made is that short; one that another program made leaves no room for the title."""
    whole = {key: str(key) for key in keys}
    begun = Counter(name[:SHORT_CHARS] for name in whole.values())
    return {key: name[:SHORT_CHARS] if begun[name[:SHORT_CHARS]] == 1 else name for key, name in whole.items()}


def _by_whole_id(sessions: Sessions, name: str) -> SessionKey | None:
    """Return the key whose id, or whose `app/user/id`, is exactly this name."""
    spellings = [(DEFAULT_APP, DEFAULT_USER, name)]
    if name.count("/") >= 2:
        app, user, id = name.split("/", 2)
        spellings.append((app, user, id))
    for app, user, id in spellings:
        try:
            # Of the store itself: to the library `@last` is one person's last session, here it is anybody's.
            key = session_key(id, app=app, user=user)
            sessions.store.tip(key)
            return key
        except (SessionNotFound, InvalidName):
            continue
    return None


def _rank(name: str) -> int | None:
    """Return which most recent session an `@` name means, 1 for the last; None where it is no such name."""
    if name in ("@last", "last"):
        return 1
    found = re.fullmatch(r"@-(\d{1,6})", name)
    return max(int(found[1]), 1) if found else None


def _by_rank(rows: Sequence[Listed], name: str, rank: int) -> SessionKey:
    if rank <= len(rows):
        return rows[rank - 1].key
    known = f"there are {len(rows)}" if rows else "there is none yet; `playhead run` or `playhead import` brings one"
    raise Failure(f"no session is {name}: {known}", code=3)


def _answers_to(row: Listed, name: str) -> bool:
    if len(name) >= PREFIX_CHARS_MIN and any(spelling.startswith(name) for spelling in _spellings(row)):
        return True
    return row.summary is not None and _folded(row.summary.title) == _folded(name)


def _spellings(row: Listed) -> list[str]:
    """Return what a prefix may be the beginning of: the id, what its own program called it, the whole key."""
    _, _, own_id = row.key.id.partition(".")
    return [spelling for spelling in (row.key.id, own_id, str(row.key)) if spelling]


def _nearest(rows: Sequence[Listed], name: str) -> list[str]:
    """Return lines about the sessions whose id or title looks most like the name."""
    wanted = _folded(name)
    looks_like: dict[str, Listed] = {}
    for row in reversed(rows):
        # An id is compared by as many characters as were typed: a slip in a prefix is still near.
        for spelling in (*(spelling[: len(name)] for spelling in _spellings(row)), title_of(row)):
            looks_like[_folded(spelling)] = row
    near = get_close_matches(wanted, looks_like, n=2 * NEAREST_MAX)
    near += [spelling for spelling in looks_like if wanted and wanted in spelling]
    unique = {looks_like[spelling].key: looks_like[spelling] for spelling in near}
    return _described(list(unique.values())[:NEAREST_MAX])


def _described(rows: Sequence[Listed], *, more: int = 0) -> list[str]:
    lines = [f"{row.key}  {one_line(title_of(row))}" for row in rows]
    return [*lines, f"… and {more} more"] if more > 0 else lines


def _hint(name: str) -> str:
    if 0 < len(name) < PREFIX_CHARS_MIN:
        return f"; the beginning of an id needs {PREFIX_CHARS_MIN} characters"
    return "; `playhead list` shows which there are"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
