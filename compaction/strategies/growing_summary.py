"""A summary that grows only at its end: its earlier parts stay byte for byte, so that a prompt cache keeps them.

Each time the oldest groups are removed, a short part is added after the earlier ones. When the parts together become too long,
they are rewritten as one, from everything that they replaced. Until then nothing before the newest part changes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import attrs

from .. import summarizers
from ..checks import count, share
from ..index import Drop, GroupKind, MarkCeiling, MessageGroup, MessageIndex, Replace
from ..messages import Message
from ..summarizers import Summarizer, SummaryRequest, as_summarizer
from ..triggers import always, tokens_exceed
from .base import Failed, Steps, gain, group_tokens, tokens_in
from .prepared import prepared_answer
from .questions import questions_of
from .summaries import SummaryStrategy, is_content, is_own, own_words, replaced_by

_SIZES: Final = ("tokens", "initial_tokens", "added_tokens", "max_tokens", "user_tokens", "keep_tokens")
_A_QUARTER: Final = attrs.Factory(lambda growing: growing.tokens // 4, takes_self=True)
_MOST_PARTS: Final = 100  # that are known again in a list; a preset had at most 7 on recorded conversations
_MOST_REQUESTS: Final = 4  # to a summarizer without a model, until its part uses the room
_LEAST_FACTS: Final = 16  # tokens; a list of facts that has fewer says nothing


@attrs.frozen
class GrowingSummary(SummaryStrategy):
    """Cuts the view to its newest groups, and keeps the important facts of the others in a summary that grows at its end.

    The system messages, the last user message and the summary stay, and as many of the newest groups as also fit into
    ``tokens``. The summary consists of *parts*: each run appends one. Its content is chosen from the whole conversation,
    including messages that earlier runs removed. If the user said something before what a part replaced, and it leaves later,
    all parts are rewritten as one, so that it is not read after newer words.

    Each part ends with what the user said in the messages that it replaces, word for word, as far as it fits into
    ``user_tokens``; the task comes first, then the newest messages. If a part cannot be written, or would not be shorter than
    what it replaces, these words stand alone. If even they do not fit, the user's messages stay in the view.

    If the system messages and the last user message are large, a summary of full size would leave so little room that every
    turn would cut again. Therefore, if less than 0.65 of ``tokens`` remains beside them, all sizes of the summary shrink in
    proportion: down to 0.35 of their values, or 0.75 if the first part would otherwise have fewer than 400 tokens.

    Cost: O(groups), and one request to the summarizer. The default summarizer takes O(characters of the conversation), and at
    most O(``tokens`` squared) to compare the summary with the messages that stay.

    Args:
        summarizer: Writes each part; by default a list of exact facts, without a model. If it fails, that list is written
            instead.
        tokens: Tokens the view is cut to, > 0.
        initial_tokens: Most tokens of the first part, and of the single part that replaces all parts in a rewrite, > 0.
        added_tokens: Most tokens of each later part, > 0.
        max_tokens: Most tokens of all parts together, > 0. If they would have more, they are rewritten as one part.
        user_tokens: Most tokens of the user's own words in the first part and in a rewritten summary, beside the answer of the
            summarizer, >= 0; by default a quarter of ``tokens``. All parts together may have a third more. If new words would
            exceed even that, the parts are rewritten as one.
        extra_tokens: How many of all these tokens may exceed ``tokens``, >= 0. If only they do, the strategy stops, whatever
            ``target`` says.
        keep_tokens: Tokens of the newest groups that stay in any case, >= 0.
        slack: Share of ``tokens`` that may stay unused, above 0 and at most 1. With it, the sizes above only decide which
            groups leave: a part fills the room beside those that stay. If a part written without a model leaves more unused, it
            is written again, in place of fewer groups. ``None``: a part has the sizes above.
        trigger: When to run. Set it well above ``tokens``; otherwise every turn cuts again.
        target: When to stop; evaluated before each cut.
        keep: Other groups that stay.
        text: The text around a part.
        focus: The topic that a summarizer should cover in most detail.

    In a forced run (see `Strategy.forced`) it cuts the request to ``tokens``, or to half of its size if that is less; all other
    sizes then shrink in proportion.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import tokens_exceed
    >>> said = [{"role": "user", "content": f"Shelf {n} holds box BX-{n * 7}. " + "So it is. " * 30} for n in range(20)]
    >>> growing = GrowingSummary(tokens=500, initial_tokens=120, added_tokens=60, max_tokens=200, trigger=tokens_exceed(1_200))
    >>> result = compact_sync(said, growing, counter="chars/4")
    >>> result.outcome, "BX-7" in result.messages[0]["content"], result.messages[-1] is said[-1]
    ('compacted', True, True)
    """

    summarizer: Summarizer = attrs.field(
        factory=lambda: summarizers.FactSummarizer(),  # noqa: PLW0108 - it is loaded at its first use
        converter=as_summarizer,
    )
    tokens: int = attrs.field(kw_only=True, validator=count(1))
    initial_tokens: int = attrs.field(kw_only=True, validator=count(1))
    added_tokens: int = attrs.field(kw_only=True, validator=count(1))
    max_tokens: int = attrs.field(kw_only=True, validator=count(1))
    user_tokens: int = attrs.field(default=_A_QUARTER, kw_only=True, validator=count())
    extra_tokens: int = attrs.field(default=0, kw_only=True, validator=count())
    keep_tokens: int = attrs.field(default=0, kw_only=True, validator=count())
    slack: float | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(share))
    focus: str | None = attrs.field(default=None, kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        most = 2 * (max(self.initial_tokens, self.max_tokens) + self.user_tokens) + self.text.extra_tokens
        return {self.name: MarkCeiling(most, messages=_MOST_PARTS, frames=(self.text.frame,))}

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "focus": focus or self.focus}

    def edits(self, index: MessageIndex) -> Steps:
        sized = self if self.unforced is self else self._halving(index.tokens)
        while not sized.target(index) and not sized._words_fill_it(index) and (yield from sized._cut(index)):
            pass

    def _words_fill_it(self, index: MessageIndex) -> bool:
        """Return whether the request exceeds ``tokens`` only by the user's words that ``extra_tokens`` allows."""
        above = index.tokens - self.tokens
        if not 0 < above <= self.extra_tokens:
            return False
        own = [group for group in self.candidates(index) if is_own(self, group)]
        return above <= _extra_words(self, _quoted_tokens(self, index, own))

    def _halving(self, tokens: int) -> GrowingSummary:
        """Return the strategy with sizes that cut a request of so many tokens to half of them, and to ``tokens`` or less."""
        ratio = min(1.0, tokens / 2 / self.tokens)
        now: dict[str, int] = {name: getattr(self, name) for name in _SIZES}
        fewer: dict[str, Any] = {name: max(min(1, size), int(ratio * size)) for name, size in now.items()}
        return attrs.evolve(self, **fewer, extra_tokens=0, target=~tokens_exceed(fewer["tokens"]))

    def _cut(self, index: MessageIndex) -> Generator[Any, Any, bool]:
        """Let the oldest groups leave once; return whether to cut again if the target does not hold yet."""
        planner = _planner(self, index)
        request = self._request(planner, planner.of_sizes() if self.slack is None else planner.filling())
        if request is None:
            return False
        if not planner.can_quote(replaced_by(index, request), self.user_tokens):
            return (yield from _drop_silent(request))
        asks_model = summarizers.asks_model(self.summarizer)
        part = yield from (self._from_model(index, request) if asks_model else self._of_facts(planner, request))
        is_replaced = yield from self._replace(index, part)
        # what came since a prepared summary was asked for leaves in the next turn
        return is_replaced and (not part.is_prepared or self.trigger(index))

    def _request(self, planner: _PartPlanner, plan: _PartPlan) -> SummaryRequest | None:
        """Return the request for a part as planned; ``None`` if no group has to leave."""
        index, gone = planner.index, {group.id for group in plan.replaced}
        new = tuple([group for group in planner.content if group.id in gone])
        if not new:
            return None
        shown = index.included_groups
        after = shown[[group.id for group in shown].index(new[-1].id) + 1 :]
        shortened = _next_sources(index, [group for group in after if group.id not in gone])
        request = SummaryRequest(
            summarizer=self.summarizer,
            groups=new,
            previous=self.earlier([group for group in planner.earlier if group.id in gone]),
            originals=own_words(index, planner.earlier),
            sources=own_words(index, new) + shortened,
            shortened=len(shortened),
            kept=tuple([group for group in shown if group.id not in gone]),
            budget=max(1, plan.answer_tokens),
            counter=index.counter,
            focus=self.focus,
            notes=index.notes,
        )
        return self.with_excerpt(index, request, planner.words, most=plan.tokens)

    # ---------------------------------------------------------------- the part, by the kind of its summarizer

    def _of_facts(self, planner: _PartPlanner, request: SummaryRequest) -> Generator[Any, Any, _Part]:
        """Return a part that is written without a model.

        While it leaves more room unused than ``slack`` allows, one that replaces fewer groups is written. If that fails, or
        would not be shorter than what it replaces, the one before it counts.
        """
        index, part = planner.index, _Part(request)
        if request.said and request.budget < _LEAST_FACTS:
            return part
        with self.failures(index, pauses=False) as failed:
            for _ in range(_MOST_REQUESTS):
                messages = self.answered(index, request, (yield request))
                if messages is None:
                    break
                part = _Part(request, messages)
                fewer = self._request_for_fewer(planner, part)
                if fewer is None:
                    break
                request = fewer
        kept = "only the user's own words were kept" if part.messages is None else "the list before it was kept"
        yield from self._reported(failed, part.request, kept)
        return part

    def _request_for_fewer(self, planner: _PartPlanner, part: _Part) -> SummaryRequest | None:
        """Return the request for a part of the same size, with room for as many words of the user, that replaces fewer groups.

        ``None`` if the given part leaves no more room unused than ``slack`` allows, or if no fewer groups can leave.
        """
        index, request = planner.index, part.request
        if part.messages is None or self.slack is None:
            return None
        unused = self.tokens - index.tokens + gain(index, replaced_by(index, request), part.messages)
        if unused <= self.slack * self.tokens:
            return None
        of_words = self.tokens_around(index, index.counter.count_text(request.said) + _OVERHEAD) if request.said else 0
        fewer = self._request(planner, planner.filling_beside(max(tokens_in(index, part.messages), of_words)))
        return None if fewer is None or len(fewer.groups) >= len(request.groups) else fewer

    def _from_model(self, index: MessageIndex, request: SummaryRequest) -> Generator[Any, Any, _Part]:
        """Return a part from a model, which may be prepared.

        If the model failed, now or so lately that it rests, the part is a list of facts.
        """
        messages: tuple[Message, ...] | None = None
        prepared = None
        if not self.is_paused(index):
            prepared = prepared_answer(self, index, request, self.candidates(index))
            if prepared is not None:
                request = self.with_excerpt(index, prepared[0], self.user_tokens)
            with self.failures(index) as failed:
                messages = self.answered(index, request, (yield request) if prepared is None else prepared[1])
            yield from self._reported(failed, request, "facts were listed without a model")
        if messages is None:
            messages = self.without_model(index, request, summarizers.FactSummarizer())
        return _Part(request, messages, is_prepared=prepared is not None)

    def _reported(self, failed: Sequence[Exception], request: SummaryRequest, policy: str) -> Steps:
        """Report a failure and the reaction to it, or else the summarizers that failed before another one answered."""
        for failure in failed or request.failures:
            yield Failed(self.name, failure, policy if failed else "the next summarizer was asked")

    def _replace(self, index: MessageIndex, part: _Part) -> Generator[Any, Any, bool]:
        """Replace the groups with the part; return whether any edit was applied.

        Without a part, the user's words alone replace the groups. Where they save nothing, only groups in which the user says
        nothing are dropped.
        """
        request = part.request
        replaced = replaced_by(index, request)
        why = partial(self.why, index, replaced, request.said)
        if part.messages is not None and (yield Replace(replaced, part.messages, why("the oldest make room; a summary grows"))):
            return True
        words = self.fitting(index, request.said, replaced) if request.said else None
        if words is not None and (yield Replace(replaced, words, why("the oldest make room; the user's words stay"))):
            return True
        return (yield from _drop_silent(request))


@attrs.frozen
class _Part:
    """The request for a part, and its messages; ``None`` if it failed, or would not be shorter than what it replaces."""

    request: SummaryRequest
    messages: tuple[Message, ...] | None = None
    is_prepared: bool = attrs.field(default=False, kw_only=True)


def _next_sources(index: MessageIndex, kept: Iterable[MessageGroup]) -> tuple[Message, ...]:
    """Return the source messages of these groups, without summaries, up to the last group that another strategy shortened.

    The next request begins with the same messages, so that a summarizer need not read them again.
    """
    found: list[Message] = []
    end = 0
    for group in filter(is_content, kept):
        own = own_words(index, [group])
        found += own
        end = len(found) if own != group.messages else end
    return tuple(found[:end])


def _drop_silent(request: SummaryRequest) -> Generator[Any, Any, bool]:
    """Drop the groups of a request in which the user says nothing; return whether any was dropped."""
    silent = [group for group in request.groups if not group.is_spoken]
    return bool(silent and (yield Drop(silent, "the oldest make room; the user said nothing in them")))


# ---------------------------------------------------------------- the plan of a part: its size, and the groups that it replaces

_OVERHEAD: Final = 8  # tokens of the room that stay free, for differences in the text around a part
# Chosen together with the shares of `presets.adaptive`; not measured one by one.
_LARGEST_PART: Final = 0.6  # of what a part replaces; the rest is for the newest groups
_ANY_PART: Final = 160  # tokens; a part of so few need not be that much shorter than what it replaces
_ADDED_WORDS: Final = 1 / 3  # of `user_tokens`: what later parts may add together
_ENOUGH: Final = 0.65  # of the strategy's tokens: if less remains beside what lasts, all sizes shrink
_MIN_SCALE: Final = 0.35  # of the sizes, at the least
_SMALL_SCALE: Final = 0.75  # at the least, if the first part would otherwise have fewer tokens than `_SMALL_PART`
_SMALL_PART: Final = 400
_MARGIN: Final = 1.1  # of the tokens of quotes, for their indents
_HEADING: Final = 20  # tokens of the heading of an excerpt
_AROUND_QUESTION: Final = 8  # tokens of the words around a question that an answer is quoted with
_MOST_GROWTHS: Final = 4  # of a plan, each O(groups); in recorded sessions, two were enough
_LASTING: Final = (GroupKind.SYSTEM, GroupKind.USER)  # a tool call that waits for the next turn does not last


@attrs.frozen
class _PartPlan:
    """The groups that a part replaces, and the most tokens of the part and of what the summarizer writes in it."""

    replaced: Sequence[MessageGroup]
    tokens: int
    answer_tokens: int


@attrs.frozen(kw_only=True)
class _PartPlanner:
    """Plans the next part of a summary, from figures that are read once.

    A part and what it replaces determine each other:

    - A larger part leaves less room for other groups, so it replaces more of them.
    - A part has at most 0.6 of the tokens that it replaces, or 160 if it is small.
    - It is to quote what the user says in the groups that it replaces.

    `of_sizes` therefore begins with the largest part, makes it smaller by the second rule, and then makes it and what it
    replaces larger, until the third one holds or all that can leave does.

    In figures: twenty messages of the user have 60 tokens each, 1,200 together, and are cut to 500. The last one stays in any
    case, so there is room for 440 tokens of the part and of other messages. The part may have 245: 120 of facts, and 125, a
    quarter of 500, of the user's own words. That leaves 195, in which the newest 3 of the other messages stay, and 16 leave::

        before |----------- 960: 16 messages that leave ------------|-- 180: 3 messages --|-- 60: the last --|
        after                      |----- 245: the part -----|-- 195, at most, stay --|-- 60: the last --|
                                   |-------------------- 440: room -------------------|

    >>> index = MessageIndex([{"role": "user", "content": "12345678" * 28}] * 20, counter="chars/4")
    >>> planner = _planner(GrowingSummary(tokens=500, initial_tokens=120, added_tokens=60, max_tokens=200), index)
    >>> index.tokens, planner.room, planner.facts, planner.words
    (1200, 440, 120, 125)
    >>> plan = planner.of_sizes()
    >>> plan.tokens, group_tokens(plan.replaced), len(plan.replaced)
    (245, 960, 16)
    """

    strategy: GrowingSummary
    index: MessageIndex
    earlier: Sequence[MessageGroup]  # the parts written before
    content: Sequence[MessageGroup]  # the other groups that can leave, oldest first
    rewrites: bool  # whether the part replaces all earlier parts
    facts: int  # the most tokens of what the summarizer writes
    words: int  # the most tokens of the user's own words
    room: int  # the tokens that the part and the groups of `content` beside it may have
    newest: int  # the tokens of the newest groups of `content`, which stay in any case

    def of_sizes(self) -> _PartPlan:
        """Return the plan for a part with the sizes that the user set, even if room stays unused."""
        tokens = self._most_tokens()
        tokens = min(tokens, _largest_part(self._replaced_by(tokens)))
        replaced = self._replaced_by(tokens)  # a smaller part leaves more groups, and may have to be still smaller
        return self._with_room_for_words(_PartPlan(replaced, min(tokens, _largest_part(replaced)), self.facts))

    def filling(self) -> _PartPlan:
        """Return the plan for a part that replaces the same groups, but may use all the room."""
        tokens = self._most_tokens()
        return self._filled(self._with_room_for_words(_PartPlan(self._replaced_by(tokens), tokens, self.facts)).replaced)

    def filling_beside(self, tokens: int) -> _PartPlan:
        """Return the plan for a part that replaces as few groups as one of so many tokens, and fills the room."""
        return self._filled(self._replaced_by(tokens + _OVERHEAD))

    def can_quote(self, replaced: Sequence[MessageGroup], words: int, most: int | None = None) -> bool:
        """Return whether a part that replaces these groups, of at most ``most`` tokens, can hold the user's words whole.

        Of what they say, it is to hold at most ``words`` tokens.
        """
        room = self.strategy.excerpt_room(self.index, replaced, most)
        return min(words, self._wanted(replaced)) <= room

    def _most_tokens(self) -> int:
        """Return the most tokens of a part of the strategy's sizes."""
        return self.facts + min(self.words, self._wanted(self.content))

    def _wanted(self, groups: Sequence[MessageGroup]) -> int:
        """Return about how many tokens an excerpt of these groups has with the questions that short answers need."""
        asked = questions_of(self.index, {group.id for group in groups if group.kind is GroupKind.USER}).values()
        around = sum(self.index.counter.count_text(question) + _AROUND_QUESTION for question in asked)
        return _quoted_size(self.strategy, self.index, groups) + around

    def _filled(self, replaced: Sequence[MessageGroup]) -> _PartPlan:
        gone = {group.id for group in replaced}
        unused = self.room - group_tokens(group for group in self.content if group.id not in gone) - _OVERHEAD
        return _PartPlan(replaced, unused, unused)

    def _with_room_for_words(self, plan: _PartPlan) -> _PartPlan:
        """Return the plan in which the part, and what it replaces, have grown until it can quote the user's words.

        With what it replaces, the words grow, too. It ends when they fit, when all that can leave does, or after four rounds.
        """
        for _ in range(_MOST_GROWTHS):
            if self.can_quote(plan.replaced, self.words, plan.tokens):
                break
            words = min(self.words, self._wanted(plan.replaced))
            needed = self.strategy.tokens_around(self.index, words)
            least_replaced = int(needed / _LARGEST_PART)
            replaced = self._oldest(max(0, min(self.room - plan.tokens, group_tokens(self.content) - least_replaced)))
            plan = _PartPlan(replaced, max(plan.tokens, min(needed, _largest_part(replaced))), plan.answer_tokens)
        return plan

    def _replaced_by(self, tokens: int) -> Sequence[MessageGroup]:
        """Return what a part of so many tokens replaces."""
        return self._oldest(max(self.newest, self.room - tokens))

    def _oldest(self, stay: int) -> Sequence[MessageGroup]:
        """Return what the part replaces if at most ``stay`` tokens stay: the oldest groups, and earlier parts to rewrite.

        The cut is where the format prefers one, or, where it prefers none of the places, where it allows one.
        """
        count = len(self.content)
        while count and self.content[count - 1].tokens <= stay:
            count -= 1
            stay -= self.content[count].tokens
        going = self._leaving(count, preferred_only=True) or self._leaving(count, preferred_only=False)
        if self.rewrites:
            going.update([group.id for group in self.earlier])
        return self.index.replaceable([group for group in self.index.included_groups if group.id in going])

    def _leaving(self, count: int, *, preferred_only: bool) -> set[int]:
        """Return the ids of the oldest groups that can leave together: ``count`` of them, a few more, or all that there are."""
        going: set[int] = set()
        for step in self.index.steps(self.content, preferred_only=preferred_only, replaced=True) if count else ():
            if len(going) >= count:
                break
            going.update(step)
        return going


def _largest_part(replaced: Sequence[MessageGroup]) -> int:
    """Return how many tokens a part may have that replaces these groups."""
    tokens = group_tokens(replaced)
    return max(int(_LARGEST_PART * tokens), min(tokens, _ANY_PART))


def _quoted_size(growing: GrowingSummary, index: MessageIndex, groups: Iterable[MessageGroup]) -> int:
    """Return about how many tokens an excerpt of these groups has, with its heading and indents, if it is not shortened."""
    said = 0
    for group in groups:
        if group.kind is GroupKind.SUMMARY:
            said += _quoted_tokens(growing, index, [group])
        elif group.kind is GroupKind.USER:
            said += group.tokens
        elif group.is_spoken:  # beside results
            said += sum(index.counter.count_text(message.said) for message in group.messages if message.said)
    return int(_MARGIN * said) + _HEADING if said else 0


def _most_words(growing: GrowingSummary) -> int:
    """Return the most tokens of the user's own words that all parts together may quote."""
    return growing.user_tokens + int(_ADDED_WORDS * growing.user_tokens)


def _extra_words(growing: GrowingSummary, quoted: int) -> int:
    """Return how many of the quoted tokens of the user's words do not count against the strategy's ``tokens``."""
    return max(0, min(growing.extra_tokens, quoted - (_most_words(growing) - growing.extra_tokens)))


def _quoted_tokens(growing: GrowingSummary, index: MessageIndex, summaries: Iterable[MessageGroup]) -> int:
    """Return the tokens of the user's words in summaries, without what stands around them."""
    texts = [growing.text.read(group.messages[0]) or "" for group in summaries]
    return sum(index.counter.count_text(entry) for text in texts for entry in summarizers.extractive.split_excerpt(text)[0])


def _planner(growing: GrowingSummary, index: MessageIndex) -> _PartPlanner:
    """Return a planner for the next part of a summary; O(groups).

    With ``user_tokens=180`` and ``extra_tokens=120``, all parts may quote 240 tokens of the user, and those beyond 120 are in
    addition to ``tokens``:

    | quoted before | new words | the part | may quote | in addition |
    |---|---|---|---|---|
    | | 100 | is the first | 180 | 0 |
    | | 300 | is the first | 180 | 60 |
    | 100 | 80 | is added | 140 | 60 |
    | 200 | 80 | replaces all | 180 | 60 |
    """
    free = growing.candidates(index)
    earlier = [group for group in free if is_own(growing, group)]
    content = [group for group in free if is_content(group)]
    scale = _scale(growing, index, free)
    written, quoted = group_tokens(earlier), _quoted_tokens(growing, index, earlier)
    new = _quoted_size(growing, index, content)
    most_words = _most_words(growing)
    most_added = most_words - growing.user_tokens
    is_too_long = written - quoted + scale * growing.added_tokens > scale * growing.max_tokens
    covered = max(chain.from_iterable(map(index.ordinals, earlier)), default=-1)
    is_late = any(group.is_spoken and group.id < covered for group in content)  # it would be quoted after newer words
    rewrites = not earlier or is_late or is_too_long or quoted + min(new, most_added) > most_words
    facts, words, leaving = growing.added_tokens, most_words - quoted, group_tokens(content)
    if rewrites:
        facts, words, leaving = growing.initial_tokens, growing.user_tokens, leaving + written
    quoted_after = min(quoted + new, growing.user_tokens if rewrites else most_words)
    extra = _extra_words(growing, quoted_after)
    return _PartPlanner(
        strategy=growing,
        index=index,
        earlier=earlier,
        content=content,
        rewrites=rewrites,
        facts=int(scale * facts),
        words=words,
        room=growing.tokens + extra - (index.tokens - leaving),  # if all that can leave does
        newest=int(scale * growing.keep_tokens),
    )


def _scale(growing: GrowingSummary, index: MessageIndex, free: Sequence[MessageGroup]) -> float:
    """Return the share of its sizes that a part has, at most 1: they shrink beside large groups that last."""
    ids = {group.id for group in free}
    lasting = [group for group in index.included_groups if group.id not in ids and group.kind in _LASTING]
    beside = growing.tokens - index.context.overhead_tokens - group_tokens(lasting)
    least = max(_MIN_SCALE, min(_SMALL_SCALE, _SMALL_PART / growing.initial_tokens))
    return min(1.0, max(least, beside / (_ENOUGH * growing.tokens)))
