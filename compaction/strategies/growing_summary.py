"""A summary that grows only at its end: its earlier parts stay byte for byte, so that a prompt cache keeps them.

Each time the oldest groups are removed, a short part is added after the earlier ones. When the parts together become too long,
they are rewritten as one, from everything that they replaced. Until then nothing before the newest part changes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import attrs

from .. import summarizers
from ..checks import count, share
from ..errors import ConfigurationError, SummaryFailed, SyncDriverError
from ..index import Drop, GroupKind, MarkCeiling, MessageGroup, MessageIndex, Replace
from ..messages import Message
from ..summarizers import Summarizer, SummaryRequest, as_summarizer
from .base import CompactionStrategy, Failed, Steps
from .prepared import prepared_answer
from .summary_text import SummaryText, answered_text, checked_summary, next_round, own_words, replaced_by

_MOST_PARTS: Final = 100  # that are known again in a list; a preset had at most 7 on recorded conversations
_ROOMY: Final = 0.65
_MIN_SCALE: Final = 0.35
_SMALL_PART: Final = 400  # tokens below which the first part shrinks to three quarters only
_TRIES: Final = 3
_OVERHEAD: Final = 8


def _facts() -> Summarizer:
    return summarizers.FactSummarizer()


def _is_extractive(summarizer: Summarizer) -> bool:
    return isinstance(summarizer, summarizers.FactSummarizer | summarizers.DigestSummarizer)


def _next_sources(index: MessageIndex, kept: Sequence[MessageGroup], after: int) -> tuple[Message, ...]:
    """Return the source messages of the kept groups after a group, up to the last one that another strategy shortened.

    They are complete and in order, so that those of the next request mostly continue them.
    """
    later = [group for group in kept if group.id > after]
    sources = [own_words(index, [group]) for group in later]
    shortened = [at for at, (own, group) in enumerate(zip(sources, later, strict=True), 1) if own != group.messages]
    return tuple(chain.from_iterable(sources[: shortened[-1] if shortened else 0]))


@attrs.frozen
class GrowingSummary(CompactionStrategy):
    """Cuts the view to its newest groups, and keeps the important facts of the others in a summary that grows at its end.

    The system messages, the last user message and the summary stay, and as many of the newest groups as also fit into
    ``tokens``. The summary consists of *parts*: each run appends one. Its content is chosen from the whole conversation,
    including messages that earlier runs removed.

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
        keep_tokens: Tokens of the newest groups that stay in any case, >= 0.
        slack: Share of ``tokens`` that may stay unused, above 0 and at most 1 (`Clip.slack` is a different number). If a part
            written without a model is so short that more would stay unused, it is written again for fewer groups, so that more
            of the newest groups stay. Below 1, the part may also use the room that is too small for one more group.
        trigger: When to run. Set it well above ``tokens``; otherwise every turn cuts again.
        target: When to stop; evaluated before each cut.
        keep: Other groups that stay.
        text: The text around a part.

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

    summarizer: Summarizer = attrs.field(factory=_facts, converter=as_summarizer)
    tokens: int = attrs.field(kw_only=True, validator=count(1))
    initial_tokens: int = attrs.field(kw_only=True, validator=count(1))
    added_tokens: int = attrs.field(kw_only=True, validator=count(1))
    max_tokens: int = attrs.field(kw_only=True, validator=count(1))
    keep_tokens: int = attrs.field(default=0, kw_only=True, validator=count())
    slack: float = attrs.field(default=1.0, kw_only=True, validator=share)
    text: SummaryText = attrs.field(factory=SummaryText, kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        return {self.name: MarkCeiling(2 * max(self.initial_tokens, self.max_tokens), messages=_MOST_PARTS)}

    def candidates(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups that may be removed and are not in ``keep``, oldest first; O(groups).

        A message of the user that is marked as a summary stays while it is the last one, also where a part follows it.
        """
        newest = (group for group in reversed(index.included_groups) if group.made_by != self.name)
        last_user = next((group for group in newest if any(message.role == "user" for message in group.messages)), None)
        kept = last_user.id if last_user is not None and last_user.id >= 0 else None
        return [group for group in super().candidates(index) if group.id != kept]

    def edits(self, index: MessageIndex) -> Steps:
        while not self.target(index):
            request = self._request(index)
            if request is None:
                return
            ready = self._prepared(index, request)
            if not (yield from self._answered(index, request, None) if ready is None else self._answered(index, *ready)):
                return
            if ready is not None and not self.trigger(index):
                return  # what came since the summary was asked for leaves in the next turn

    # ---------------------------------------------------------------- asking

    def _request(self, index: MessageIndex, part: int | None = None) -> SummaryRequest | None:
        """Return the request for the next part; ``None`` if no group has to leave.

        Args:
            index: The conversation.
            part: The tokens that the part takes, if that is known.
        """
        free = self.candidates(index)
        mine = [group for group in free if group.kind is GroupKind.SUMMARY and group.made_by == self.name]
        others = [group for group in free if group.kind is not GroupKind.SUMMARY or group.is_collapsed]
        written = sum(group.tokens for group in mine)
        room = self.tokens - index.tokens + written + sum(group.tokens for group in others)
        least = max(_MIN_SCALE, min(0.75, _SMALL_PART / self.initial_tokens))
        scale = min(1.0, max(least, self._lasting_room(index, free) / (_ROOMY * self.tokens)))
        rewrite = not mine or written + scale * self.added_tokens > scale * self.max_tokens
        budget = int(scale * (self.initial_tokens if rewrite else self.added_tokens))
        room -= 0 if rewrite else written
        going = self._going(index, others, max(int(scale * self.keep_tokens), room - (budget if part is None else part)))
        leaving = going | {group.id for group in mine} if rewrite else going
        replaced = {group.id for group in index.replaceable([group for group in index.included_groups if group.id in leaving])}
        new = going & replaced
        if not new:
            return None
        kept = tuple([group for group in index.included_groups if group.id not in replaced])
        words = index.counter.count_text(self.text.render("", originals="", by=self.name))
        if self.slack < 1:
            budget = room - sum(group.tokens for group in others if group.id not in new) - _OVERHEAD
        return SummaryRequest(
            summarizer=self.summarizer,
            groups=tuple([group for group in others if group.id in new]),
            previous="\n".join(filter(None, [self.text.read(group.messages[0]) for group in mine if group.id in replaced]))
            or None,
            originals=own_words(index, mine),
            sources=own_words(index, [group for group in others if group.id in new]) + _next_sources(index, kept, max(new)),
            kept=kept,
            budget=max(1, budget - words),
            counter=index.counter,
        )

    def _lasting_room(self, index: MessageIndex, free: Sequence[MessageGroup]) -> int:
        """Return the tokens beside the messages that always stay; a tool call that waits for the next turn is not one."""
        ids = {group.id for group in free}
        return self.tokens - sum(
            group.tokens
            for group in index.included_groups
            if group.id not in ids and group.kind in (GroupKind.SYSTEM, GroupKind.USER)
        )

    def _going(self, index: MessageIndex, free: Sequence[MessageGroup], room: int) -> set[int]:
        """Return the oldest groups, so many that the rest fit the room, up to a place where the format prefers a cut.

        Where it prefers none of the places, the cut is at one that it allows.
        """
        stays = len(free)
        while stays and free[stays - 1].tokens <= room:
            stays -= 1
            room -= free[stays].tokens
        going: set[int] = set()
        for preferred_only in (True, False):
            for step in index.steps(free, preferred_only=preferred_only, replaced=True):
                if len(going) >= stays:
                    return going
                going.update(step)
            if going:
                break
        return going

    # ---------------------------------------------------------------- answering

    def _prepared(self, index: MessageIndex, request: SummaryRequest) -> tuple[SummaryRequest, object] | None:
        """Return the part that was written before it was due, with the request it answers."""
        if _is_extractive(self.summarizer) or self.is_paused(index):
            return None
        return prepared_answer(self, index, request, self.candidates(index))

    def _answered(self, index: MessageIndex, request: SummaryRequest, answer: object) -> Generator[Any, Any, bool]:
        """Replace the groups with the part, or drop them if it saves nothing; return whether either was applied.

        The summarizer is asked for the part unless there is an answer already.
        """
        replaced = replaced_by(index, request)
        part: tuple[Message, ...] | None = None
        own = _is_extractive(self.summarizer)
        if own or not self.is_paused(index):
            try:
                part = self._part(index, request, replaced, (yield request) if answer is None else answer)
                for _ in range(_TRIES if own else 0):
                    fuller = self._fuller(index, replaced, part)
                    if fuller is None or len(fuller.groups) >= len(request.groups):
                        break
                    request, replaced = fuller, replaced_by(index, fuller)
                    part = self._part(index, request, replaced, (yield request))
                index.context.pauses.record_success(self.pauses_as)
                for failure in request.failures:
                    yield Failed(self.name, failure, "the next summarizer was asked")
            except (ConfigurationError, SyncDriverError):
                raise
            except Exception as error:
                if not own:
                    index.context.pauses.record_failure(self.pauses_as, index.context.now)
                yield Failed(self.name, error, "the groups were dropped" if own else "facts were listed without a model")
        if part is None and not own:
            part = self._listed(index, request, replaced)
        if part is not None and (yield Replace(replaced, part, "the oldest make room; a summary grows")):
            return True
        return bool((yield Drop(request.groups, "the oldest make room")))

    def _fuller(
        self, index: MessageIndex, replaced: Sequence[MessageGroup], part: tuple[Message, ...] | None
    ) -> SummaryRequest | None:
        """Return a request that leaves more groups, if a part takes so little that too much room stays unused."""
        if part is None:
            return None
        tokens = sum(index.measure(message)[0] for message in part)
        unused = self.tokens - index.tokens + sum(group.tokens for group in replaced) - tokens
        return self._request(index, tokens + _OVERHEAD) if unused > self.slack * self.tokens else None

    def _listed(
        self, index: MessageIndex, request: SummaryRequest, replaced: Sequence[MessageGroup]
    ) -> tuple[Message, ...] | None:
        try:
            return self._part(index, request, replaced, summarizers.FactSummarizer().summarize(request))
        except SummaryFailed:
            return None

    def _part(
        self, index: MessageIndex, request: SummaryRequest, replaced: Sequence[MessageGroup], answer: object
    ) -> tuple[Message, ...] | None:
        """Return the answer as messages that can replace the groups; the errors are those of the functions it calls."""
        body = self.text.body(answered_text(answer), originals="")
        return checked_summary(index, self, body, replaced, round=next_round(index.included_groups, self.name))
