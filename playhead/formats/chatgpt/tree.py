"""A conversation's tree: in which order its messages are written, and which of them are shown.

The tree comes from the parents that nodes name; `children` says only in which order siblings come. Links that lead
nowhere or in a circle are cut, and reported. The path that is shown comes last among its siblings everywhere, so that
writing the messages one by one ends where the conversation stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from playhead.formats.chatgpt.messages import seconds_of
from playhead.formats.troubles import Troubles
from playhead.formats.values import mapping, sequence, text


class Tree(msgspec.Struct, frozen=True):
    """order: nodes that hold a message, each after its parent. parent: of each of them the nearest above it that holds
    one. shown: the nodes of the path that is shown. head: the last of them, or None where there is no message at all.
    """

    order: list[str]
    parent: dict[str, str | None]
    head: str | None
    shown: set[str]


def tree(nodes: Mapping[str, Any], current: Any, troubles: Troubles) -> Tree:
    """Return the tree of a conversation's `mapping`. current: its `current_node`."""
    known = {id: mapping(node) for id, node in nodes.items()}
    parents = _without_circles(_parents(known, troubles), troubles)
    holds = {id for id, node in known.items() if isinstance(node.get("message"), dict)}
    above = _above(parents, holds)
    shown = _current(known, parents, current, troubles)
    head = shown if shown in holds or shown is None else above[shown]
    live = _line(parents, shown)
    order = [id for id in _walk(known, parents, live) if id in holds]
    return Tree(order, {id: above[id] for id in order}, head, live)


def _parents(known: Mapping[str, dict[str, Any]], troubles: Troubles) -> dict[str, str | None]:
    parents: dict[str, str | None] = {}
    for id, node in known.items():
        parent = text(node.get("parent"))
        if parent is not None and parent not in known:
            troubles.add("a message names a parent that is not there, and begins a branch of its own", id)
            parent = None
        parents[id] = parent
    return parents


def _without_circles(parents: dict[str, str | None], troubles: Troubles) -> dict[str, str | None]:
    settled: set[str] = set()
    for start in parents:
        trail: dict[str, None] = {}
        id: str | None = start
        while id is not None and id not in settled and id not in trail:
            trail[id] = None
            id = parents[id]
        if id is not None and id in trail:
            troubles.add("messages follow each other in a circle, which was cut", id)
            parents[id] = None
        settled.update(trail)
    return parents


def _above(parents: Mapping[str, str | None], holds: set[str]) -> dict[str, str | None]:
    """Return for each node the nearest above it that holds a message."""
    above: dict[str, str | None] = {}
    for start in parents:
        trail = []
        id: str | None = start
        while id is not None and id not in above:
            trail.append(id)
            id = parents[id]
        for one in reversed(trail):
            parent = parents[one]
            above[one] = parent if parent is None or parent in holds else above[parent]
    return above


def _current(
    known: Mapping[str, dict[str, Any]], parents: Mapping[str, str | None], current: Any, troubles: Troubles
) -> str | None:
    """Return the node that the conversation stands at: the stated one, else the newest that nothing follows."""
    stated = text(current)
    if stated in known:
        return stated
    if stated is not None:
        troubles.add("the conversation stands at a message that is not there; its newest one was taken", stated)
    inner = set(parents.values())
    leaves = [id for id in known if id not in inner]
    return max(
        leaves, key=lambda id: seconds_of(mapping(known[id].get("message")).get("create_time")) or 0.0, default=None
    )


def _line(parents: Mapping[str, str | None], end: str | None) -> set[str]:
    line: set[str] = set()
    while end is not None:
        line.add(end)
        end = parents[end]
    return line


def _walk(known: Mapping[str, dict[str, Any]], parents: Mapping[str, str | None], live: set[str]) -> list[str]:
    """Return all nodes, parents first; among siblings in the order that the parent states, the live one last."""
    children: dict[str | None, list[str]] = {}
    for id, parent in parents.items():
        children.setdefault(parent, []).append(id)
    order: list[str] = []
    waiting: list[str] = _siblings(children.get(None, []), [], live)[::-1]
    while waiting:
        id = waiting.pop()
        order.append(id)
        waiting.extend(_siblings(children.get(id, []), sequence(known[id].get("children")), live)[::-1])
    return order


def _siblings(ids: list[str], stated: list[Any], live: set[str]) -> list[str]:
    place = {id: number for number, id in enumerate(stated) if isinstance(id, str)}
    return sorted(ids, key=lambda id: (id in live, place.get(id, len(place))))
