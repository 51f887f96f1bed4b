"""The plan for the next part of a growing summary: its size, and the groups that it replaces.

An example in figures: twenty messages of the user have 60 tokens each, 1,200 together, and are cut to 500. The last one stays
in any case, so there is room for 440 tokens of the part and of other messages. The part may have 245: 120 of facts, and 125,
a quarter of 500, of the user's own words. That leaves 195, in which the newest 3 of the other messages stay, and 16 leave::

    before |----------- 960: 16 messages that leave ------------|-- 180: 3 messages --|-- 60: the last --|
    after                      |----- 245: the part -----|-- 195, at most, stay --|-- 60: the last --|
                               |-------------------- 440: room -------------------|

    >>> from compaction import MessageIndex
    >>> from compaction.strategies import GrowingSummary
    >>> index = MessageIndex([{"role": "user", "content": "12345678" * 28}] * 20, counter="chars/4")
    >>> sizes = PartSizes(tokens=500, initial_tokens=120, added_tokens=60, max_tokens=200, user_tokens=125, keep_tokens=0)
    >>> planner = part_planner(GrowingSummary(**attrs.asdict(sizes)), index, sizes)
    >>> index.tokens, planner.room, planner.facts, planner.words
    (1200, 440, 120, 125)
    >>> plan = planner.of_sizes()
    >>> plan.tokens, group_tokens(plan.replaced), len(plan.replaced)
    (245, 960, 16)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ..index import GroupKind, MessageGroup, MessageIndex
from ..summarizers.extractive import split_excerpt
from .base import group_tokens
from .summaries import SummaryStrategy, is_content, is_own


@attrs.frozen(kw_only=True)
class PartSizes:
    """The sizes of a growing summary in tokens, as `GrowingSummary` explains them."""

    tokens: int
    initial_tokens: int
    added_tokens: int
    max_tokens: int
    user_tokens: int
    keep_tokens: int


@attrs.frozen
class PartPlan:
    """The groups that a part replaces, and the most tokens of the part and of what the summarizer writes in it."""

    replaced: Sequence[MessageGroup]
    tokens: int
    answer_tokens: int


_OVERHEAD: Final = 8  # tokens of the room that stay free, for differences in the text around a part
_HEADING: Final = 20  # tokens of the heading of an excerpt


@attrs.frozen(kw_only=True)
class PartPlanner:
    """Plans the next part of a summary, from figures that `part_planner` read once."""

    strategy: SummaryStrategy
    index: MessageIndex
    earlier: Sequence[MessageGroup]  # the parts written before
    content: Sequence[MessageGroup]  # the other groups that can leave, oldest first
    rewrites: bool  # whether the part replaces all earlier parts
    facts: int  # the most tokens of what the summarizer writes
    words: int  # the most tokens of the user's own words
    room: int  # the tokens that the part and the groups of `content` beside it may have
    newest: int  # the tokens of the newest groups of `content`, which stay in any case

    def of_sizes(self) -> PartPlan:
        """Return the plan for a part with the sizes that the user set, even if room stays unused."""
        tokens = self._most()
        tokens = min(tokens, _largest_part(self._leaving_for(tokens)))
        replaced = self._leaving_for(tokens)  # a smaller part leaves more groups, and may have to be still smaller
        tokens = min(tokens, _largest_part(replaced))
        return PartPlan(*self._with_room_for_words(replaced, tokens), self.facts)

    def filling(self) -> PartPlan:
        """Return the plan for a part that replaces the same groups, but may use all the room."""
        tokens = self._most()
        replaced, _ = self._with_room_for_words(self._leaving_for(tokens), tokens)
        return self._filled(replaced)

    def filling_beside(self, tokens: int) -> PartPlan:
        """Return the plan for a part that replaces as few groups as one of so many tokens, and fills the room."""
        return self._filled(self._leaving_for(tokens + _OVERHEAD))

    def can_quote(self, replaced: Sequence[MessageGroup], words: int, most: int | None = None) -> bool:
        """Return whether a part that replaces these groups, of at most ``most`` tokens, can hold the user's words whole.

        Of what they say, it is to hold at most ``words`` tokens.
        """
        return min(words, _quoted_size(replaced)) <= self.strategy.excerpt_room(self.index, replaced, most)

    def _most(self) -> int:
        """Return the most tokens of a part of the strategy's sizes."""
        return self.facts + min(self.words, group_tokens(group for group in self.content if group.is_spoken))

    def _filled(self, replaced: Sequence[MessageGroup]) -> PartPlan:
        gone = {group.id for group in replaced}
        unused = self.room - group_tokens(group for group in self.content if group.id not in gone) - _OVERHEAD
        return PartPlan(replaced, unused, unused)

    def _with_room_for_words(self, replaced: Sequence[MessageGroup], tokens: int) -> tuple[Sequence[MessageGroup], int]:
        """Return what a part replaces and its tokens; both grow if the user's words would not stand whole in it."""
        if self.can_quote(replaced, self.words, tokens):
            return replaced, tokens
        needed = self.strategy.tokens_around(self.index, min(self.words, _quoted_size(replaced)))
        stay = min(self.room - tokens, group_tokens(self.content) - int(needed / _LARGEST_PART))
        replaced = self._leaving(max(0, stay))
        return replaced, max(tokens, min(needed, _largest_part(replaced)))

    def _leaving_for(self, tokens: int) -> Sequence[MessageGroup]:
        """Return what a part of so many tokens replaces."""
        return self._leaving(max(self.newest, self.room - tokens))

    def _leaving(self, stay: int) -> Sequence[MessageGroup]:
        """Return what the part replaces: the oldest groups, so many that at most ``stay`` tokens stay, and parts to rewrite.

        The cut is where the format prefers one, or, where it prefers none of the places, where it allows one.
        """
        count = len(self.content)
        while count and self.content[count - 1].tokens <= stay:
            count -= 1
            stay -= self.content[count].tokens
        going = self._oldest(count, preferred_only=True) or self._oldest(count, preferred_only=False)
        if self.rewrites:
            going.update([group.id for group in self.earlier])
        return self.index.replaceable([group for group in self.index.included_groups if group.id in going])

    def _oldest(self, count: int, *, preferred_only: bool) -> set[int]:
        """Return the ids of the oldest groups that can leave together: ``count`` of them, a few more, or all that there are."""
        going: set[int] = set()
        for step in self.index.steps(self.content, preferred_only=preferred_only, replaced=True) if count else ():
            if len(going) >= count:
                break
            going.update(step)
        return going


_LARGEST_PART: Final = 0.6  # of what a part replaces; the rest is for the newest groups
_ANY_PART: Final = 160  # a part of so few tokens need not be that much shorter than what it replaces


def _largest_part(replaced: Sequence[MessageGroup]) -> int:
    """Return how many tokens a part may have that replaces these groups."""
    tokens = group_tokens(replaced)
    return max(int(_LARGEST_PART * tokens), min(tokens, _ANY_PART))


def _quoted_size(groups: Iterable[MessageGroup]) -> int:
    """Return about how many tokens an excerpt of these groups has, with its heading and indents, if it is not shortened."""
    said = group_tokens(group for group in groups if group.is_spoken)
    return int(1.1 * said) + _HEADING if said else 0


# -------------------------------------------------------------------- the figures of a planner

_ADDED_WORDS: Final = 0.10  # of the user's words that a part may always add
_MOST_WORDS: Final = 2.0  # of them, in all parts together


def part_planner(strategy: SummaryStrategy, index: MessageIndex, sizes: PartSizes) -> PartPlanner:
    """Return a planner for the next part of a strategy's summary; O(groups)."""
    free = strategy.candidates(index)
    earlier = [group for group in free if is_own(strategy, group)]
    content = [group for group in free if is_content(group)]
    scale = _scale(sizes, index, free)
    written = group_tokens(earlier)
    entries = [entry for group in earlier for entry in split_excerpt(strategy.text.read(group.messages[0]) or "")[0]]
    quoted = sum(map(index.counter.count_text, entries))  # of the user's words
    too_long = written - quoted + scale * sizes.added_tokens > scale * sizes.max_tokens
    rewrites = not earlier or too_long or quoted > _MOST_WORDS * sizes.user_tokens
    if rewrites:
        facts, words = sizes.initial_tokens, sizes.user_tokens
    else:
        facts, words = sizes.added_tokens, max(sizes.user_tokens - quoted, int(_ADDED_WORDS * sizes.user_tokens))
    leaving = group_tokens(content) + (written if rewrites else 0)  # if all that can leave does
    return PartPlanner(
        strategy=strategy,
        index=index,
        earlier=earlier,
        content=content,
        rewrites=rewrites,
        facts=int(scale * facts),
        words=words,
        room=sizes.tokens - (index.tokens - leaving),
        newest=int(scale * sizes.keep_tokens),
    )


_LASTING: Final = (GroupKind.SYSTEM, GroupKind.USER)  # a tool call that waits for the next turn does not last
_ENOUGH: Final = 0.65  # of the strategy's tokens: if less remains beside what lasts, all sizes shrink
_MIN_SCALE: Final = 0.35  # of the sizes, at the least
_SMALL_PART: Final = 400  # tokens; the first part shrinks to fewer only down to `_SMALL_SCALE`
_SMALL_SCALE: Final = 0.75


def _scale(sizes: PartSizes, index: MessageIndex, free: Sequence[MessageGroup]) -> float:
    """Return the share of its sizes that a part has, at most 1: they shrink beside large groups that last."""
    ids = {group.id for group in free}
    lasting = [group for group in index.included_groups if group.id not in ids and group.kind in _LASTING]
    beside = sizes.tokens - index.context.overhead_tokens - group_tokens(lasting)
    least = max(_MIN_SCALE, min(_SMALL_SCALE, _SMALL_PART / sizes.initial_tokens))
    return min(1.0, max(least, beside / (_ENOUGH * sizes.tokens)))
