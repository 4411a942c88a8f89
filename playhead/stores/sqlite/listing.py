"""The rows of lists in SQLite: what is derived from them to find, order and count them, in any database that has the
tables of `listing.sql`.

Whoever keeps the rows themselves gives each a number. A page costs what it holds: three indexes have the orders of
`listing.place` in them, and what all rows have in common is counted as they come and go.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from playhead.errors import InvalidName
from playhead.model.ids import SessionKey
from playhead.stores.listing import (
    FACETS,
    NO_TITLE,
    OTHER_WEIGHT,
    PAGE_MAX,
    PREVIEW_WEIGHT,
    TITLE_WEIGHT,
    Activity,
    Facet,
    Place,
    Sort,
    Wanted,
    by_count,
    facet_values,
    parent_key,
    text_of_row,
    words_of,
)
from playhead.views.summary import Summary

CHARS_INDEXED = 3
"""So many characters in a row are looked up in the index of words; a shorter word is looked for in every text."""

TRIGRAMS_MAX = 32
"""So many of them are looked up at most. All words are looked for in what was found, so fewer would do."""

VERSION_FACET = "version"
"""Rows are counted by the version of their summaries too, so that those of another one are found."""

FEW = 1_000
"""So many rows are rather looked at one by one than looked for by their words, or counted in an index of all."""

_ABOVE_ALL = b""
"""Comes after every number and every text in SQLite's order."""

_INTEGER_MAX = 2**63 - 1


class Queries(Protocol):
    """A database as far as the rows need one: `connect.Database` is one."""

    def query(self, name: str, bindings: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a named query and return all rows."""

    def row(self, name: str, bindings: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
        """Run a named query and return its first row, or None."""


class SqliteListingTable:
    """Rows by number. Whoever calls is in a transaction of the database: `put` and `remove` in one that writes."""

    def __init__(self, database: Queries) -> None:
        self._database = database

    def put(self, number: int, key: SessionKey, summary: Summary | None) -> None:
        """Put in what is derived from a row, in place of what was. summary: None where the session cannot be read.

        A row that only says another time of activity, as most do, changes one number in one index.
        """
        active_place = 0.0 - summary.last_active_at if summary is not None else 0.0
        derived = _derived(key, summary)
        kept = self._database.row("listing_digest", {"number": number})
        if kept is None or kept[0] != derived["digest"]:
            derived["value_ids"] = _json(self._value_ids(derived.pop("values")))
            self._database.query("listing_put", derived | {"number": number, "active_place": active_place})
        elif kept[1] != active_place:
            self._database.query("listing_touch", {"number": number, "active_place": active_place})

    def remove(self, number: int) -> None:
        """Take out what is derived from a row, where anything is."""
        self._database.query("listing_remove", {"number": number})

    def page(
        self,
        wanted: Wanted,
        *,
        sort: Sort = "last_active",
        is_reversed: bool = False,
        after: Place | None = None,
        limit: int = 50,
        without: Sequence[int] = (),
    ) -> tuple[list[tuple[int, int]], int]:
        """Return (number, how many rows name it as their parent) in order, and how many rows are wanted in all.

        without: numbers of rows to be left out of everything. Raises `InvalidName` for an `after` that is
        no place in this order.
        """
        by_rank = sort == "relevance" and bool(words_of(wanted.query))
        order = "last_active" if sort == "relevance" else sort
        bounds = _bounds(after, order=order, by_rank=by_rank, is_reversed=is_reversed)
        search = self._search(wanted, without)
        total = self._total(search) if search is not None else 0
        limit = max(0, min(limit, PAGE_MAX))
        if search is None or not total or not limit:
            return [], total
        bindings = search.bindings | bounds | {"limit": limit, "by_rank": by_rank, "sort": order}
        direction = "_reversed" if is_reversed else ""
        # In order, one row in `all / total` is wanted. Those that are looked up first have to be sorted, every one.
        walked = min(self.count(), limit * self.count() // total)
        if by_rank or walked > (search.found if search.found is not None else total):
            return self._database.query(f"listing_found_page{direction}", bindings), total
        if order == "last_active":
            _narrow(bindings)
        return self._database.query(f"listing_page_{order}{direction}", bindings), total

    def facets(
        self, wanted: Wanted, names: Sequence[Facet], *, without: Sequence[int] = ()
    ) -> dict[Facet, dict[str, int]]:
        """Return what `Listing.facets` promises."""
        search = self._search(wanted, without)
        counted: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
        if search is not None and search.is_any:
            rows = self._database.query("listing_values", {"names": _json(names)})
        else:
            rows = self._database.query("listing_found_values", search.bindings) if search is not None else []
        for name, value, count in rows:
            if name in counted:
                counted[name].append((value, count))
        return {name: by_count(dict(counted[name])) for name in names}

    def forks(self, key: SessionKey, *, without: Sequence[int] = ()) -> list[SessionKey]:
        """Return what `Listing.forks` promises."""
        if not is_text(key.app, key.user, key.id):
            return []
        bindings = _key(key) | {"without": _json(without) if without else None}
        return [SessionKey(*row) for row in self._database.query("listing_forks", bindings)]

    def activity(self, *, without: Sequence[int] = ()) -> Activity:
        """Return what `Listing.activity` promises."""
        row = self._database.row("listing_activity", {"without": _json(without) if without else None})
        count, least, most, total = row if row else (0, None, None, 0.0)
        return Activity(
            count, None if most is None else 0.0 - most, None if least is None else 0.0 - least, 0.0 - total
        )

    def count(self) -> int:
        """Return how many rows there are."""
        row = self._database.row("listing_count")
        return int(row[0]) if row else 0

    def _value_ids(self, values: Sequence[tuple[str, str]]) -> list[int]:
        bindings = {"values": _json(values)}
        found = self._database.query("listing_value_ids", bindings)
        if len(found) < len(values):
            self._database.query("listing_new_values", bindings)
            found = self._database.query("listing_value_ids", bindings)
        return [value_id for (value_id,) in found]

    def _search(self, wanted: Wanted, without: Sequence[int]) -> _Search | None:
        """Return how the wanted rows are found; None where there are none for certain."""
        words = words_of(wanted.query)
        asked = [(name, value) for name in FACETS if (value := getattr(wanted, name)) is not None]
        if not is_text(
            wanted.app or "", wanted.user or "", wanted.begins or "", *words, *(value for _, value in asked)
        ):
            return None
        if "\0" in (wanted.begins or ""):
            return None  # In no key, and SQLite's functions end a text there.
        values = [self._database.row("listing_value", {"name": name, "value": value}) for name, value in asked]
        known = sorted((int(value[1]), int(value[0])) for value in values if value is not None)
        if len(known) < len(values):
            return None
        bindings = _filter(wanted, words, [value_id for _, value_id in known])
        bindings["without"] = _json(without) if without else None
        ways: list[tuple[int, Way]] = []
        if known:
            ways.append((known[0][0], "value"))
            bindings["value_id"] = known[0][1]
        if wanted.app is not None and wanted.user is not None:
            row = self._database.row("listing_count_key", bindings)
            ways.append((int(row[0]) if row else 0, "key"))
        found, way = min([*ways, (self.count(), "all")], key=lambda one: one[0])
        match = _match(words)
        if match and found > FEW:
            return _Search(bindings | {"way": "words", "match": match}, found=None)
        has_times = wanted.since is not None or wanted.until is not None
        wishes = len(asked) + (wanted.app is not None) + (wanted.user is not None)
        is_all_of_it = (
            not (words or has_times or without or wanted.begins) and wishes == {"all": 0, "value": 1, "key": 2}[way]
        )
        return _Search(
            bindings | {"way": way},
            found=found,
            total=found if is_all_of_it else None,
            is_any=is_all_of_it and way == "all",
            is_in_index=not words and not asked and found > FEW,
        )

    def _total(self, search: _Search) -> int:
        if search.total is not None:
            return search.total
        row = self._database.row(f"listing_count_{'index' if search.is_in_index else 'found'}", search.bindings)
        return int(row[0]) if row else 0


Way = Literal["words", "value", "key", "all"]


@dataclass(frozen=True)
class _Search:
    """How wanted rows are found. found: how many rows have to be looked at, None where that is not known before.
    total: how many are wanted, where that is known. is_any: all are. is_in_index: one index can tell which are."""

    bindings: dict[str, Any]
    found: int | None
    total: int | None = None
    is_any: bool = False
    is_in_index: bool = False


def _derived(key: SessionKey, summary: Summary | None) -> dict[str, Any]:
    """Return what is kept of a row besides its time of activity."""
    values = [(str(name), value) for name in FACETS for value in facet_values(summary, name)]
    if summary is not None:
        values.append((VERSION_FACET, str(summary.version)))
    title, preview, others, created_place = NO_TITLE, "", "", 0.0
    if summary is not None:
        title, preview = summary.title.casefold(), summary.preview.casefold()
        others = text_of_row(summary)[len(title) + len(preview) + 2 :]
        created_place = 0.0 - summary.created_at
    parent = parent_key(summary)
    parents = (parent.app, parent.user, parent.id) if parent is not None else (None, None, None)
    content = msgspec.json.encode((key, summary is not None, created_place, parents, values, title, preview, others))
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return _key(key) | {
        "created_place": created_place,
        "is_readable": summary is not None,
        "parent_app": parents[0],
        "parent_user": parents[1],
        "parent_id": parents[2],
        "values": values,
        "digest": int.from_bytes(digest, "big", signed=True),
        "title_place": title,
        "preview": preview,
        "others": others,
    }


def _filter(wanted: Wanted, words: Sequence[str], value_ids: Sequence[int]) -> dict[str, Any]:
    """Return what the queries bind to tell wanted rows from others."""
    since, until = _time(wanted.since), _time(wanted.until)
    return {
        "app": wanted.app,
        "user": wanted.user,
        "begins": wanted.begins or None,
        "active_after": -until if until is not None else -math.inf,
        "active_until": -since if since is not None else math.inf,
        "readable": bool(words) or wanted.since is not None or wanted.until is not None,
        "value_ids": _json(value_ids) if value_ids else None,
        "words": _json(words) if words else None,
        "way": "all",
        "match": None,
        "value_id": None,
        "title_weight": TITLE_WEIGHT,
        "preview_weight": PREVIEW_WEIGHT,
        "other_weight": OTHER_WEIGHT,
    }


def _time(at: float | None) -> float | None:
    """Return a time as SQLite compares it; None where no row is on its wrong side, as with what is no number."""
    if at is None or at != at:
        return None
    if isinstance(at, int) and abs(at) > _INTEGER_MAX:
        return math.inf if at > 0 else -math.inf
    return at


def _match(words: Sequence[str]) -> str | None:
    """Return what to ask the index of words: characters that stand together in each of them; None where all are short.

    The index passes NUL over, so what reaches over one is not asked for.
    """
    pieces = [
        word[start : start + CHARS_INDEXED]
        for word in words
        for start in range(min(len(word), TRIGRAMS_MAX + CHARS_INDEXED) - CHARS_INDEXED + 1)
    ]
    asked = list(dict.fromkeys(piece for piece in pieces if "\0" not in piece))[:TRIGRAMS_MAX]
    return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in asked) or None


def _bounds(after: Place | None, *, order: Sort, by_rank: bool, is_reversed: bool) -> dict[str, Any]:
    """Return the places between which a page lies, both exclusive. Raises `InvalidName`."""
    least = "" if order == "title" else -math.inf
    low: tuple[Any, ...] = (-math.inf, least, "", "", "")
    high: tuple[Any, ...] = (math.inf, _ABOVE_ALL, _ABOVE_ALL, _ABOVE_ALL, _ABOVE_ALL)
    if after is not None:
        place = _checked(after, order=order, by_rank=by_rank)
        low, high = (low, place) if is_reversed else (place, high)
    names = ("rank", "", "app", "user", "id")
    return {
        f"{side}_{name}".rstrip("_"): value
        for side, place in (("low", low), ("high", high))
        for name, value in zip(names, place, strict=True)
    }


def _checked(after: Place, *, order: Sort, by_rank: bool) -> tuple[Any, ...]:
    """Return a place with its rank, once it is known to be one of this order. Raises `InvalidName`."""
    place = (*after,) if by_rank else (0, *after)
    numbers, texts = (place[:1], place[1:]) if order == "title" and not by_rank else (place[:2], place[2:])
    times = [_time(number) if isinstance(number, int | float) else None for number in numbers]
    is_place = len(place) == 5 and None not in times and all(isinstance(text, str) for text in texts)
    if not is_place or not is_text(*texts):
        raise InvalidName(f"{after!r} is no place in a list in this order; begin with its first page")
    return (*times, *texts)


def _narrow(bindings: dict[str, Any]) -> None:
    """Begin and end a walk in the order of activity where the times that are asked for do."""
    if bindings["active_after"] >= bindings["low"]:
        bindings |= {"low": bindings["active_after"], "low_app": _ABOVE_ALL}
    if bindings["high"] == _ABOVE_ALL or bindings["active_until"] < bindings["high"]:
        bindings |= {"high": bindings["active_until"], "high_app": _ABOVE_ALL}


def _key(key: SessionKey) -> dict[str, Any]:
    return {"app": key.app, "user": key.user, "id": key.id}


def _json(values: Sequence[Any]) -> str:
    return msgspec.json.encode(values).decode()


def is_text(*texts: str) -> bool:
    """Return False where one holds half a surrogate pair, as no row does."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True
