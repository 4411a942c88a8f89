"""What is odd in a source, as one readable sentence for each sort of trouble."""

from __future__ import annotations

from collections import Counter

PLACES_MAX = 5
"""Places that one sentence names; its count is always whole."""


class Troubles:
    """Counts troubles as they are met, and remembers where the first ones are."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, problem: str, place: str) -> None:
        """Take in one record with this problem. place: how a person finds it, `line 7`."""
        self._counts[problem] += 1
        places = self._places.setdefault(problem, [])
        if len(places) < PLACES_MAX:
            places.append(place)

    def sentences(self) -> list[str]:
        """Return one sentence for each sort of trouble, in the order in which they were first met."""
        return [
            f"{problem} (records: {self._counts[problem]}; "
            f"{', '.join(places)}{', …' if self._counts[problem] > len(places) else ''})"
            for problem, places in self._places.items()
        ]
