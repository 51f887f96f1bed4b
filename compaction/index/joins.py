"""Joins: pairs of neighbouring messages, and whether the provider accepts them. `editing` asks about every edit.

A format's ``join_problem`` tells which rule two neighbours break. An edit is allowed only if the joins it creates break no rule
that was not broken there before, so that a damaged conversation can still be compacted. *Instructions* are system and developer
messages; to a provider, the message after the leading ones is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from ..formats import Side
from ..messages import Message
from .columns import Columns
from .visibility import Node

_Problem: TypeAlias = "tuple[str, Side] | None"
"""The rule that two neighbours break, and the message that breaks it: the one before, the one after, or both."""


@attrs.frozen
class BadJoin:
    """Two neighbours that break a rule of the format."""

    before: Node | None  # the node on the left; ``None`` at the start
    after: Node | None  # the node on the right; ``None`` at the end
    rule: str
    side: Side

    @property
    def blamed(self) -> list[Node]:
        """The nodes of the messages that break the rule."""
        nodes = {"before": (self.before,), "after": (self.after,), "both": (self.before, self.after)}[self.side]
        return [node for node in nodes if node is not None]


def bad_joins(columns: Columns, nodes: Iterable[Node]) -> list[BadJoin]:
    """Return the joins that break a rule, of those at these nodes, which need not be shown now; O(nodes), amortized."""
    pairs = dict.fromkeys(_joins_at(columns, nodes))
    return [BadJoin(*pair, *problem) for pair in pairs if (problem := _problem(columns, *pair)) is not None]


def new_joins(columns: Columns, bad: Iterable[BadJoin]) -> list[BadJoin]:
    """Return the new ones of these joins: without the edit, which is undone now, their messages did not break that rule."""
    return [each for each in bad if not (each.blamed and all(_breaks(columns, node, each.rule) for node in each.blamed))]


def wrong_joins(columns: Columns, nodes: Iterable[Node]) -> list[BadJoin]:
    """Return the joins at these nodes that break a rule in the view and not in the source."""
    bad = bad_joins(columns, nodes)
    return [each for each in bad if not all(_breaks_in_source(columns, node, each.rule) for node in each.blamed)]


def _breaks(columns: Columns, node: Node, rule: str) -> bool:
    view = columns.visibility
    if not view.is_shown(node):
        return False
    return _is_blamed(_problem(columns, view.before(node), node), _problem(columns, node, view.after(node)), rule)


def _breaks_in_source(columns: Columns, node: Node, rule: str) -> bool:
    if node < 0:
        return False
    read, leading, problem = columns.read, columns.grouping.instructions.leading, columns.format.join_problem
    # to the provider, leading instructions and the first message after them follow nothing
    before = read(node - 1) if node > leading else None
    itself = read(node) if node >= leading else None
    after = read(node + 1) if node + 1 < len(columns.source) else None
    return _is_blamed(problem(before, read(node)), problem(itself, after), rule)


def _is_blamed(left: _Problem, right: _Problem, rule: str) -> bool:
    """Whether a message breaks a rule, by the problems of its joins with the message before and the one after."""
    if left is not None and left[0] == rule and left[1] != "before":
        return True
    return right is not None and right[0] == rule and right[1] != "after"


def groups_at(columns: Columns, join: BadJoin) -> set[int]:
    """Return the groups on either side of a join that exist in the present view."""
    nodes = [node for node in (join.before, join.after) if node is not None and (node >= 0 or node in columns.inserted)]
    return {columns.group_at(node) for node in nodes}


def _problem(columns: Columns, before: Node | None, after: Node | None) -> _Problem:
    following = None if after is None else columns.at(after, end=False)
    return columns.format.join_problem(message_before(columns, before), following)


def message_before(columns: Columns, node: Node | None) -> Message | None:
    """Return a node's last message as the provider sees it; ``None`` for leading instructions, which nothing follows."""
    earlier = node
    while earlier is not None and _instructs(columns, earlier):
        earlier = columns.visibility.before(earlier)
    return None if node is None or earlier is None else columns.at(node, end=True)


def _instructs(columns: Columns, node: Node) -> bool:
    return columns.at(node, end=True).is_system and columns.at(node, end=False).is_system


def opening(columns: Columns) -> Node | None:
    """Return the node of the first message of the view that is not an instruction; O(the instructions before it)."""
    node = columns.visibility.after(None)
    while node is not None and columns.at(node, end=False).is_system:
        node = columns.visibility.after(node)
    return node


def _joins_at(columns: Columns, nodes: Iterable[Node]) -> Iterator[tuple[Node | None, Node | None]]:
    """Yield every pair of neighbours with one of these nodes, or with a hidden one of these nodes between them.

    A change at the start of the view decides whether the instructions after it (``S``) are leading ones, and thus what the
    message after them follows. So that pair is yielded, too::

        view      u0  S1  S2  a3        u0 is hidden:  a3 was the answer to u0, and is now the first message
        pairs     (None, S1)  (S2, a3)
    """
    visibility = columns.visibility
    for node in nodes:
        last = before = visibility.before(node)
        if visibility.is_shown(node):
            yield before, node
            last = node
        yield last, visibility.after(last)
        if message_before(columns, before) is None:
            yield _behind_instructions(columns, last)


def _behind_instructions(columns: Columns, node: Node | None) -> tuple[Node | None, Node | None]:
    """Return the first two neighbours from a node on of which the second is not an instruction."""
    following = columns.visibility.after(node)
    while following is not None and _instructs(columns, following):
        node, following = following, columns.visibility.after(following)
    return node, following
