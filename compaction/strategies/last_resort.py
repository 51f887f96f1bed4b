"""The `LastResort` strategy: what is done when nothing else brought a request below its limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from .. import summarizers
from ..checks import count, share
from ..errors import ConfigurationError, SummaryFailed
from ..index import Drop, GroupKind, MarkCeiling, MessageIndex
from ..selectors import kinds, last, spoken
from ..triggers import Trigger, as_trigger, tokens_below, tokens_exceed
from .base import CompactionStrategy, Failed, Pipeline, Steps, Strategy, group_tokens
from .clip import Clip
from .excerpt import Excerpt
from .token_budget import TokenBudgetComposed
from .tool_result import ToolResult
from .tool_styles import HeadTail
from .truncation import Truncation

_USER_SHARE: Final = 0.25  # of the limit, for an excerpt of what the user said
_CLIPS: Final = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)  # in small steps, so that little more goes than has to
_TARGET: Final = 80  # hundredths of a window to cut to, so that not every call cuts again; chosen, not measured
_OVER: Final = attrs.Factory(lambda resort: tokens_exceed(resort.tokens), takes_self=True)


def _as_shares(shares: Iterable[float]) -> tuple[float, ...]:
    try:
        return tuple(shares)
    except TypeError as error:
        raise ConfigurationError(f"LastResort: 'clips' must be a list of shares (got {shares!r})") from error


@attrs.frozen
class LastResort(CompactionStrategy):
    """Brings a request below a limit, whatever that takes. What the user said goes last.

    Each of these steps runs only while the request exceeds the limit:

    1. Drop the oldest groups in which the user says nothing; summaries, questions with short answers and the newest group stay.
    2. Replace the oldest user messages by an excerpt of them, word for word, of at most a quarter of the limit.
    3. Cut long messages to ever smaller shares of the limit. Of user messages, lines that look pasted go first.
    4. Drop the oldest groups, whatever they contain. If the user says something in them, the outcome is ``degraded``, and
       ``failures`` names the messages that were lost. If what must stay exceeds the limit alone, nothing is dropped.

    Cost: O(groups), and O(characters) of what is cut.

    Args:
        tokens: The most tokens of the request after it, > 0.
        clips: The shares of ``tokens`` to which long messages are cut, one after the other, each above 0 and at most 1.
        trigger: When to run; by default if the request exceeds ``tokens``.
        target: When to stop; by default if the request has at most ``tokens``.
        keep: Groups that stay.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> from compaction import compact_sync
    >>> said = [{"role": "user", "content": "Fix A."}, *[{"role": "assistant", "content": "word " * 40}] * 9]
    >>> result = compact_sync(said, LastResort(tokens=120), counter="chars/4")
    >>> result.after.tokens <= 120, result.messages[0]["content"], result.outcome
    (True, 'Fix A.', 'compacted')
    """

    tokens: int = attrs.field(kw_only=True, validator=count(1))
    clips: tuple[float, ...] = attrs.field(
        default=_CLIPS, kw_only=True, converter=_as_shares, validator=attrs.validators.deep_iterable(share)
    )
    trigger: Trigger = attrs.field(default=_OVER, converter=as_trigger, kw_only=True)
    target: Trigger = attrs.field(
        default=attrs.Factory(lambda resort: ~tokens_exceed(resort.tokens), takes_self=True), converter=as_trigger, kw_only=True
    )

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        return self._excerpt.mark_ceilings

    def edits(self, index: MessageIndex) -> Steps:
        for gentle in self._gentle_steps(index):
            if self.target(index):
                return
            yield from gentle(index)
        oldest = Truncation(keep=self.keep | last(groups=1))
        if not oldest.can_reach(index, max(self.tokens, self.trigger.token_limit(index) or 0)):
            return
        for step in oldest.in_order(index):
            if self.target(index):
                return
            drop = Drop(step, "nothing else is left to drop")
            if places := [place for group in step for place in _places_of_words(index, group)]:
                error = SummaryFailed(f"{self.tokens:,} tokens have no room for an excerpt of what the user said")
                lost = f"what the user said in the messages {', '.join(map(str, places))} was dropped without a summary"
                yield Failed(self.name, error, lost, edit=drop)
            yield drop

    def _gentle_steps(self, index: MessageIndex) -> Iterator[Strategy]:
        """Yield steps 1 to 3; the excerpt has at most the room beside the groups that stay and the text around it."""
        newest = self.keep | last(groups=1)
        yield Truncation(target=self.target, keep=newest | spoken() | kinds(GroupKind.SUMMARY), keep_questions=True)
        excerpt = self._excerpt
        kept = index.tokens - group_tokens(excerpt.candidates(index))
        room = self.tokens - kept - excerpt.frame_tokens(index)
        yield attrs.evolve(excerpt, tokens=max(1, min(excerpt.tokens, room)))
        for most in self.clips:
            yield Clip(tokens=max(1, int(most * self.tokens)), target=self.target, keep=self.keep)

    @property
    def _excerpt(self) -> Excerpt:
        return Excerpt(tokens=max(1, int(_USER_SHARE * self.tokens)), target=self.target, keep=self.keep | last(groups=1))


def _places_of_words(index: MessageIndex, id: int) -> list[int]:
    """Return the positions of a group's source messages that hold the user's words: said, answered to a tool, or quoted."""
    columns, group_of = index.columns, index.columns.grouping.group_of
    found = list[int]()
    for place in index.ordinals(id):
        message = index.format.read(index.source[place])
        is_answer = columns.asks_user(group_of[place]) and any(message.tool_results())
        is_summary = group_of[place] in columns.grouping.made_by
        if message.said or is_answer or (is_summary and summarizers.extractive.quoted_words(message.text)):
            found.append(place)
    return found


def most_tokens(strategy: Strategy) -> int | None:
    """Return the most tokens of a request after a strategy, if a part of it says so: a last resort or a budget."""
    parts = [*strategy.parts()]
    limits = [part.tokens for part in parts if isinstance(part, LastResort)]
    return min(limits + [part.budget for part in parts if isinstance(part, TokenBudgetComposed)], default=None)


def within(strategy: Strategy, tokens: int) -> Strategy:
    """Return a pipeline that runs a strategy and, if the request still has more than ``tokens``, more drastic steps.

    These steps force the strategy (see `Strategy.forced`), then shorten tool results, and then do what `LastResort` does.
    """
    over, most = tokens_exceed(tokens), max(1, tokens * _TARGET // 100)
    last_means = Pipeline(
        ToolResult(HeadTail(), target=tokens_below(most), keep=last(groups=1)),
        LastResort(tokens=most, trigger=over),
        trigger=over,
    )
    return Pipeline(strategy, Pipeline(strategy.forced(), trigger=over), last_means)
