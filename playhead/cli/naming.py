"""How a person names a session: one rule for every command.

In this order: `@last` and `@-N` by last activity; the whole id; then whatever one session alone answers to: an id that
begins with these characters (four at least) or a title (in any case). An imported session also answers to the beginning
of the id that its own program gave it: `claude-code.4f9a…` to `4f9a`.

The library knows whole ids only, so nobody but a person at a command line ever gets a session by half a name.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from playhead.cli.failures import Failure
from playhead.cli.rows import pages, rows
from playhead.cli.text import one_line
from playhead.errors import InvalidName, SessionNotFound
from playhead.features.listing import PAGE_MAX, Listed, Wanted, all_sessions
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey, session_key
from playhead.session import Sessions
from playhead.stores.listing import place

PREFIX_CHARS_MIN = 4
CANDIDATES_MAX = 10
NEAREST_MAX = 3
NEAREST_LOOKED_AT = 1_000
"""So many of the most recently active sessions are compared with a name that none answers to."""
SHORT_CHARS = 20


def named(sessions: Sessions, name: str) -> SessionKey:
    """Return the key of the session that a person means by `name`.

    Raises `Failure`: exit code 5 with the candidates where several fit, 3 with the nearest names where none does.
    """
    found = surely_named(sessions, name)
    if found is not None:
        return found
    return _chosen(sessions, name, _answering(sessions, name))


def surely_named(sessions: Sessions, name: str) -> SessionKey | None:
    """Return the key that `name` cannot but mean: `@last` or `@-N`, or a whole id. Else None.

    Raises `Failure` for a rank that no session has.
    """
    rank = _rank(name)
    return _by_rank(sessions, name, rank) if rank is not None else _by_whole_id(sessions, name)


def named_event(sessions: Sessions, name: str) -> tuple[SessionKey, int | None]:
    """Return the key that a person means, and the seq where they wrote `SESSION#SEQ`, as answers and links do.

    A session whose own id ends like that comes first, then an event of a session named by its whole id or rank, which
    costs no listing; then a title that ends like that. Raises `Failure` as `named` does.
    """
    found = re.fullmatch(r"(.+)#([0-9]{1,10})", name, re.DOTALL)
    if found is None or _by_whole_id(sessions, name) is not None:
        return named(sessions, name), None
    sure = surely_named(sessions, found[1])
    if sure is not None:
        return sure, int(found[2])
    answering = _answering(sessions, name)
    if answering.count:
        return _chosen(sessions, name, answering), None
    return _chosen(sessions, found[1], _answering(sessions, found[1])), int(found[2])


def all_rows(sessions: Sessions) -> list[Listed]:
    """Return the listing row of every session of every app and user, the most recently active first."""
    return all_sessions(sessions.store, Wanted(), clock=time.time, entropy=os.urandom)


def check_new_id(id: str) -> str:
    """Return an id that a person gives a session here. Raises `Failure` for one that could not be typed again, or that
    means something else wherever a session is named."""
    if not _PLAIN_ID.fullmatch(id) or re.search(r"#[0-9]+\Z", id):
        raise Failure(
            f'"{one_line(id)}" cannot be an id here: it is of letters, digits and . _ - and begins with no sign', code=2
        )
    return id


_PLAIN_ID = re.compile(r"\w[\w.-]{0,199}")


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
    if name == "@last":
        return 1
    found = re.fullmatch(r"@-([1-9]\d{0,5})", name)
    return int(found[1]) if found else None


def _by_rank(sessions: Sessions, name: str, rank: int) -> SessionKey:
    cursor: str | None = None
    left = rank
    while True:
        page = sessions.list(limit=min(left, PAGE_MAX), cursor=cursor)
        if left <= len(page.items):
            return page.items[left - 1].key
        left, cursor = left - len(page.items), page.next_cursor
        if cursor is None:
            break
    none = "there is none yet; `playhead run` or `playhead import` brings one"
    raise Failure(f"no session is {name}: {f'there are {page.total}' if page.total else none}", code=3)


@dataclass(slots=True)
class _Answering:
    """The sessions that answer to a name: how many they are, and the first of them, the most recently active first."""

    count: int = 0
    first: list[Listed] = field(default_factory=list)

    def add(self, row: Listed) -> None:
        """Take one that comes after the others in the order of lists; of many, only the first are kept."""
        self.count += 1
        if len(self.first) < CANDIDATES_MAX:
            self.first.append(row)

    def with_others(self, others: _Answering) -> _Answering:
        together = sorted((*self.first, *others.first), key=lambda row: place(row, "last_active"))
        return _Answering(self.count + others.count, together[:CANDIDATES_MAX])


def _chosen(sessions: Sessions, name: str, answering: _Answering) -> SessionKey:
    """Return the key of the one session that answers to a name. Raises `Failure` as `named` does."""
    if answering.count == 1:
        return answering.first[0].key
    if answering.count:
        raise Failure(
            f'"{name}" fits {answering.count} sessions; name one of them by its whole id',
            code=5,
            lines=_described(answering.first, more=answering.count - CANDIDATES_MAX),
        )
    raise Failure(f'no session answers to "{name}"{_hint(name)}', code=3, lines=_nearest(sessions, name))


def _answering(sessions: Sessions, name: str) -> _Answering:
    """Return the sessions of this very id, else those that it is the beginning or the title of.

    The store looks for what a name can fit; what it fits is judged here, by one rule for every store.
    """
    whole, begun, titled = _Answering(), _Answering(), _Answering()
    for row in rows(sessions, Wanted(begins=name)) if name else ():
        if row.key.id == name:
            whole.add(row)
        if _is_begun(row, name):
            begun.add(row)
    if whole.count:
        return whole
    for row in rows(sessions, Wanted(query=name)) if _folded(name) else ():
        if _is_titled(row, name) and not _is_begun(row, name):
            titled.add(row)
    return begun.with_others(titled)


def _is_begun(row: Listed, name: str) -> bool:
    return len(name) >= PREFIX_CHARS_MIN and any(spelling.startswith(name) for spelling in _spellings(row))


def _is_titled(row: Listed, name: str) -> bool:
    return row.summary is not None and _folded(row.summary.title) == _folded(name)


def _spellings(row: Listed) -> list[str]:
    """Return what a prefix may be the beginning of: the id, what its own program called it, the whole key."""
    _, _, own_id = row.key.id.partition(".")
    return [spelling for spelling in (row.key.id, own_id, str(row.key)) if spelling]


def _nearest(sessions: Sessions, name: str) -> list[str]:
    """Return lines about the sessions whose id or title looks most like the name."""
    wanted = _folded(name)
    looks_like: dict[str, Listed] = {}
    for row in reversed(next(pages(sessions, first=NEAREST_LOOKED_AT)).items):
        # An id is compared by as many characters as were typed: a slip in a prefix is still near.
        for spelling in (*(spelling[: len(name)] for spelling in _spellings(row)), title_of(row)):
            looks_like[_folded(spelling)] = row
    near = get_close_matches(wanted, looks_like, n=2 * NEAREST_MAX)
    near += [spelling for spelling in looks_like if wanted and wanted in spelling]
    unique = {looks_like[spelling].key: looks_like[spelling] for spelling in near}
    return _described(list(unique.values())[:NEAREST_MAX])


def _described(described: Sequence[Listed], *, more: int = 0) -> list[str]:
    lines = [f"{row.key}  {one_line(title_of(row))}" for row in described]
    return [*lines, f"… and {more} more"] if more > 0 else lines


def _hint(name: str) -> str:
    if 0 < len(name) < PREFIX_CHARS_MIN:
        return f"; the beginning of an id needs {PREFIX_CHARS_MIN} characters"
    return "; `playhead list` shows which there are"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
