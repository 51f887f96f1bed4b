"""A summary that grows at its end: what was written stays as it was, byte for byte, so that a prompt cache keeps it.

Each time the oldest groups go, a short part is added after the earlier ones. When the parts together have become too long,
they are written anew as one, from all that they stand for. Between these, whatever stands before the newest part never changes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

import attrs

from ..checks import count
from ..edits import Drop, Replace
from ..errors import ConfigurationError, SummaryFailed, SyncDriverError
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..marks import read_mark
from ..messages import Message
from ..summarizers import FactSummarizer, Summarizer, SummaryRequest
from .base import CompactionStrategy, Failed, Steps
from .seams import neighbours, replaceable, steps_to_seams
from .summary_text import SummaryText

__all__ = ["GrowingSummary"]

_ROOMY: Final = 0.5
_LEAST_SCALE: Final = 0.5
_TEXT: Final = SummaryText(preface="From earlier messages that are left out here, for reference:", end="[end]")


@attrs.frozen
class GrowingSummary(CompactionStrategy):
    """Cuts the view to its newest groups, and keeps what is worth keeping of the others in a summary that grows at its end.

    The newest groups stay, whole, as many as fit ``tokens`` beside the system messages, the last user message and the summary.
    Memory does not end with a round: each part is chosen with all that was ever said at hand. Where the system messages and the
    last user message leave less than half of ``tokens``, the figures of the summary shrink with what they leave, to a half at
    least: else it would take up what a cut is to free, and every turn would cut again.

    Cost: O(groups), and one request to the summarizer, which for the default is O(characters of the conversation).

    Args:
        summarizer: Who writes each part; by default a list of exact facts made without a model. If it fails, that list is
            written instead.
        tokens: Tokens the view goes down to, > 0.
        first: Tokens the first part may have, and a summary written anew, > 0.
        more: Tokens each later part may have, > 0.
        most: Tokens of all parts past which they are written anew as one.
        least: Tokens of the newest groups that stay, whatever the rest takes.
        trigger: When to run. Keep it well above ``tokens``, or every turn cuts again.
        target: When there is nothing to do; asked before each cut.
        keep: What it must not cut, besides.
        text: The words around a part.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import tokens_exceed
    >>> said = [{"role": "user", "content": f"Shelf {n} holds box BX-{n * 7}. " + "So it is. " * 30} for n in range(20)]
    >>> growing = GrowingSummary(tokens=500, first=120, more=60, most=200, trigger=tokens_exceed(1_200))
    >>> result = compact_sync(said, growing, counter="chars/4")
    >>> result.outcome, "BX-7" in result.messages[0]["content"], result.messages[-1] is said[-1]
    ('compacted', True, True)
    """

    summarizer: Summarizer = attrs.field(factory=FactSummarizer)
    tokens: int = attrs.field(kw_only=True, validator=count(1))
    first: int = attrs.field(kw_only=True, validator=count(1))
    more: int = attrs.field(kw_only=True, validator=count(1))
    most: int = attrs.field(kw_only=True, validator=count(1))
    least: int = attrs.field(default=0, kw_only=True, validator=count())
    text: SummaryText = attrs.field(default=_TEXT, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        while not self.target(index):
            request = self._request(index)
            if request is None:
                return
            if not (yield from self._answered(index, request)):
                return

    # ---------------------------------------------------------------- asking

    def _request(self, index: MessageIndex) -> SummaryRequest | None:
        """The next part to ask for; ``None`` if no group has to go."""
        free = self.candidates(index)
        mine = [group for group in free if group.kind is GroupKind.SUMMARY and group.made_by == self.name]
        others = [group for group in free if group.kind is not GroupKind.SUMMARY or group.is_collapsed]
        written = sum(group.tokens for group in mine)
        room = self.tokens - index.tokens + written + sum(group.tokens for group in others)
        scale = min(1.0, max(_LEAST_SCALE, room / (_ROOMY * self.tokens)))
        anew = not mine or written + scale * self.more > scale * self.most
        budget = int(scale * (self.first if anew else self.more))
        going = self._going(index, others, max(int(scale * self.least), room - budget - (0 if anew else written)))
        leaving = [group for group in index.included_groups if group.id in going or (anew and group in mine)]
        replaced = {group.id for group in replaceable(index, leaving)}
        if going.isdisjoint(replaced):
            return None
        words = index.counter.count_text(self.text.render("", originals="", by=self.name))
        return SummaryRequest(
            summarizer=self.summarizer,
            groups=tuple([group for group in others if group.id in going & replaced]),
            previous="\n".join(filter(None, [self.text.read(group.messages[0]) for group in mine if group.id in replaced]))
            or None,
            originals=tuple([each for group in mine for each in index.read_originals(group) if read_mark(each) is None]),
            kept=tuple([group for group in index.included_groups if group.id not in replaced]),
            budget=max(1, budget - words),
            counter=index.counter,
        )

    def _going(self, index: MessageIndex, free: Sequence[MessageGroup], room: int) -> set[int]:
        """The oldest groups, so many that the rest fit the room; up to a place where the format allows a cut."""
        stays = len(free)
        while stays and free[stays - 1].tokens <= room:
            stays -= 1
            room -= free[stays].tokens
        going: set[int] = set()
        for step in steps_to_seams(index, free):
            if len(going) >= stays:
                break
            going.update(step)
        return going

    # ---------------------------------------------------------------- answering

    def _answered(self, index: MessageIndex, request: SummaryRequest) -> Generator[Any, Any, bool]:
        """Put the part the summarizer writes in place of the groups, or drop them if it saves nothing; says if it was done."""
        replaced = _replaced(index, request)
        part: tuple[Message, ...] | None = None
        own = isinstance(self.summarizer, FactSummarizer)
        if own or not index.is_cooling(self.name):
            try:
                part = self._part(index, request, replaced, (yield request))
                index.note_success(self.name)
            except (ConfigurationError, SyncDriverError):
                raise
            except Exception as error:
                if not own:
                    index.note_failure(self.name)
                    yield Failed(self.name, error, "facts were listed without a model")
        if part is None and not own:
            part = self._listed(index, request, replaced)
        if part is not None and (yield Replace(replaced, part, "the oldest make room; a summary grows")):
            return True
        return bool((yield Drop(request.groups, "the oldest make room")))

    def _listed(
        self, index: MessageIndex, request: SummaryRequest, replaced: Sequence[MessageGroup]
    ) -> tuple[Message, ...] | None:
        try:
            return self._part(index, request, replaced, FactSummarizer().summarize(request))
        except SummaryFailed:
            return None

    def _part(
        self, index: MessageIndex, request: SummaryRequest, replaced: Sequence[MessageGroup], answer: object
    ) -> tuple[Message, ...]:
        """The answer as messages that can take the place of the groups.

        Raises:
            SummaryFailed: If it says nothing, or is not shorter than what it is to stand for.
        """
        if not isinstance(answer, str) or not answer.strip():
            raise SummaryFailed(f"the summarizer answered {answer!r}: a summary is a text that says something")
        rounds = [mark.round for group in index.included_groups if (mark := read_mark(group.messages[0])) is not None]
        text = self.text.render(answer, originals="", by=self.name, round=max(rounds, default=0) + 1)
        messages = index.format.summary(text, *neighbours(index, {group.id for group in replaced}))
        tokens, stood_for = sum(index.measure(message)[0] for message in messages), sum(group.tokens for group in replaced)
        if tokens >= stood_for:
            raise SummaryFailed(f"the summary has {tokens:,} tokens, what it stands for {stood_for:,}: it would save nothing")
        return messages


def _replaced(index: MessageIndex, request: SummaryRequest) -> list[MessageGroup]:
    """The groups a part stands for: those that go, and the earlier parts if it is written anew."""
    kept = {group.id for group in request.kept}
    return [group for group in index.included_groups if group.id not in kept]
