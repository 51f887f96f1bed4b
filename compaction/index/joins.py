"""Joins: whether the messages that an edit made neighbours may follow one another.

A format says which neighbours its provider takes (``join_problem``). An edit is allowed only if none of the joins it makes is a
new problem: a join that is wrong may stay as wrong as it was, so that a damaged conversation can still be compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import attrs

from ..formats import MessageFormat, Side
from ..messages import Message
from .projection import Projection
from .visibility import Node

_Pair: TypeAlias = "tuple[Node | None, Node | None]"
_JoinProblem: TypeAlias = "tuple[str, Side]"


@attrs.frozen
class BadJoin:
    """Two neighbours of which the provider does not take one.

    Args:
        before: The place on the left; ``None`` at the start.
        after: The place on the right; ``None`` at the end.
        rule: The rule of the format.
        side: At which of the two the problem is, or whether it is at both.
    """

    before: Node | None
    after: Node | None
    rule: str
    side: Side

    @property
    def blamed(self) -> list[Node]:
        """The places where the problem is."""
        nodes = {"before": (self.before,), "after": (self.after,), "both": (self.before, self.after)}[self.side]
        return [node for node in nodes if node is not None]


def bad_joins(projection: Projection, format: MessageFormat, places: Iterable[int]) -> list[BadJoin]:
    """The joins at these places that the provider does not take; O(places), amortized.

    Args:
        projection: The view as it is now.
        format: Its wire format.
        places: Ordinals and ids of inserted groups at which the view changed, shown now or not.
    """
    found: list[BadJoin] = []
    for pair in dict.fromkeys(_joins_at(projection, places)):
        problem = _problem(projection, format, *pair)
        if problem is not None:
            found.append(BadJoin(*pair, *problem))
    return found


def was_bad(projection: Projection, format: MessageFormat, bad: BadJoin) -> bool:
    """Whether the messages at fault break the same rule in the view as it is now, with the neighbours they have there."""
    return bool(bad.blamed) and all(_is_bad(projection, format, node, bad.rule) for node in bad.blamed)


def _is_bad(projection: Projection, format: MessageFormat, node: Node, rule: str) -> bool:
    if not projection.visibility.is_shown(node):
        return False
    left = _problem(projection, format, projection.visibility.before(node), node)
    right = _problem(projection, format, node, projection.visibility.after(node))
    return blames(left, rule, "after") or blames(right, rule, "before")


def blames(problem: _JoinProblem | None, rule: str, side: Literal["before", "after"]) -> bool:
    """Whether a join breaks a rule at that side."""
    return problem is not None and problem[0] == rule and problem[1] in (side, "both")


def message_before(projection: Projection, node: Node | None) -> Message | None:
    """The last message at a place, as what follows it is judged by; ``None`` for the instructions that lead the view."""
    if node is None:
        return None
    message = projection.at(node, end=True)
    earlier: Node | None = node
    while earlier is not None:
        if not (projection.at(earlier, end=True).is_system and projection.at(earlier, end=False).is_system):
            return message
        earlier = projection.visibility.before(earlier)
    return None


def opening(projection: Projection) -> Message | None:
    """The message that opens the view, behind the instructions that lead it; O(those)."""
    node = projection.visibility.first()
    while node is not None and projection.at(node, end=False).is_system:
        node = projection.visibility.after(node)
    return None if node is None else projection.at(node, end=False)


def _problem(projection: Projection, format: MessageFormat, before: Node | None, after: Node | None) -> _JoinProblem | None:
    if before is not None and after == before:
        return format.join_problem(projection.at(before, end=False), projection.at(before, end=True))
    return format.join_problem(message_before(projection, before), None if after is None else projection.at(after, end=False))


def _joins_at(projection: Projection, places: Iterable[int]) -> Iterator[_Pair]:
    """Every pair of neighbours of which one stands at one of these places, or which now meet there.

    The two messages of one summary are a pair of the same place.
    """
    for place in places:
        before = projection.visibility.before(place)
        if not projection.visibility.is_shown(place):
            yield before, projection.visibility.first() if before is None else projection.visibility.after(before)
            continue
        yield before, place
        yield place, projection.visibility.after(place)
        if place < 0 and len(projection.inserted[place].messages) > 1:
            yield place, place
