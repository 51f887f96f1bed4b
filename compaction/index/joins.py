"""Joins: pairs of neighbouring messages, and whether the provider accepts them. `editing` asks about every edit.

A format's ``join_problem`` tells which rule two neighbours break. An edit is allowed only if the joins it creates break no rule
that was not broken there before, so that a damaged conversation can still be compacted. *Instructions* are system and developer
messages; to a provider, the message after the leading ones is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import attrs

from ..formats import Side
from ..messages import Message
from .projection import Node, Projection

_Pair: TypeAlias = "tuple[Node | None, Node | None]"
_JoinProblem: TypeAlias = "tuple[str, Side]"


@attrs.frozen
class BadJoin:
    """Two neighbours that break a rule of the format.

    Args:
        before: The place on the left; ``None`` at the start.
        after: The place on the right; ``None`` at the end.
        rule: The rule of the format.
        side: The message that breaks it: the one before, the one after, or both.
    """

    before: Node | None
    after: Node | None
    rule: str
    side: Side

    @property
    def blamed(self) -> list[Node]:
        """The places of the messages that break the rule."""
        nodes = {"before": (self.before,), "after": (self.after,), "both": (self.before, self.after)}[self.side]
        return [node for node in nodes if node is not None]


def bad_joins(projection: Projection, places: Iterable[int]) -> list[BadJoin]:
    """Return the joins at these places that break a rule; O(places), amortized.

    Args:
        projection: The view.
        places: Ordinals and ids of inserted groups at which the view changed, shown now or not.
    """
    pairs = dict.fromkeys(_joins_at(projection, places))
    return [BadJoin(*pair, *problem) for pair in pairs if (problem := _problem(projection, *pair)) is not None]


def new_joins(projection: Projection, bad: Iterable[BadJoin]) -> list[BadJoin]:
    """Return those of these joins whose messages do not break the same rule in the present view."""
    return [each for each in bad if not (each.blamed and all(_is_bad(projection, node, each.rule) for node in each.blamed))]


def wrong_joins(projection: Projection, places: Iterable[int]) -> Iterator[BadJoin]:
    """Yield the joins at these places that break a rule in the view and not in the source."""
    for each in bad_joins(projection, places):
        if not all(_is_bad_in_source(projection, node, each.rule) for node in each.blamed):
            yield each


def groups_at(projection: Projection, join: BadJoin) -> set[int]:
    """Return the groups on either side of a join that exist in the present view."""
    nodes = [node for node in (join.before, join.after) if node is not None and (node >= 0 or node in projection.inserted)]
    return {node if node < 0 else projection.grouping.group_of[node] for node in nodes}


def _is_bad(projection: Projection, node: Node, rule: str) -> bool:
    visibility = projection.visibility
    if not visibility.is_shown(node):
        return False
    left, right = _problem(projection, visibility.before(node), node), _problem(projection, node, visibility.after(node))
    return _blames(left, rule, "after") or _blames(right, rule, "before")


def _is_bad_in_source(projection: Projection, node: Node, rule: str) -> bool:
    if node < 0:
        return False
    read, leading, problem = projection.read, projection.grouping.leading, projection.format.join_problem
    after = read(node + 1) if node + 1 < len(projection.source) else None
    left = problem(None if node <= leading else read(node - 1), read(node))
    right = problem(None if node < leading else read(node), after)
    return _blames(left, rule, "after") or _blames(right, rule, "before")


def _problem(projection: Projection, before: Node | None, after: Node | None) -> _JoinProblem | None:
    problem = projection.format.join_problem
    if before is not None and after == before:
        return problem(projection.at(before, end=False), projection.at(before, end=True))
    return problem(message_before(projection, before), None if after is None else projection.at(after, end=False))


def _blames(problem: _JoinProblem | None, rule: str, side: Literal["before", "after"]) -> bool:
    """Whether the message on that side of a join breaks the rule."""
    return problem is not None and problem[0] == rule and problem[1] in (side, "both")


def message_before(projection: Projection, node: Node | None) -> Message | None:
    """Return the message that the next one has to follow; ``None`` for an instruction with only instructions before it."""
    if node is None:
        return None
    message = projection.at(node, end=True)
    earlier: Node | None = node
    while earlier is not None:
        if not _instructs(projection, earlier):
            return message
        earlier = projection.visibility.before(earlier)
    return None


def _instructs(projection: Projection, node: Node) -> bool:
    return projection.at(node, end=True).is_system and projection.at(node, end=False).is_system


def opening(projection: Projection) -> Node | None:
    """Return the place of the first message of the view that is not an instruction; O(the instructions before it)."""
    node = projection.visibility.after(None)
    while node is not None and projection.at(node, end=False).is_system:
        node = projection.visibility.after(node)
    return node


def _joins_at(projection: Projection, places: Iterable[int]) -> Iterator[_Pair]:
    """Yield every pair of neighbours with one of these places, or with a hidden one of these places between them.

    The two messages of a summary are a pair with the same place twice. A change at the start of the view decides whether the
    instructions that follow are leading ones, and thus what the message after them follows, so that pair is yielded too.
    """
    visibility = projection.visibility
    for place in places:
        left = before = visibility.before(place)
        if visibility.is_shown(place):
            yield before, place
            left = place
            if place < 0 and len(projection.inserted[place].messages) > 1:
                yield place, place
        right = visibility.after(left)
        yield left, right
        if message_before(projection, before) is None:
            while right is not None and _instructs(projection, right):
                left, right = right, visibility.after(right)
            yield left, right
