"""Replacing old groups by a summary.

A summary is accepted only if it is not empty, is not far too long, and keeps the conversation valid. Otherwise ``on_failure``
decides, and the result reports it. A summary that is not shorter than the groups it would replace is not a failure: nothing is
written. An earlier summary is updated, not summarized again. The summarizer is not asked while there are no new groups, or too
few, shortly after it failed, or about the same groups after it saved nothing. Only the first two count while a request would
not fit the window, and in a forced run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs

from .. import summarizers
from ..errors import ConfigurationError, SummaryFailed, SyncDriverError
from ..index import DEFAULT_CEILING, Drop, GroupKind, MarkCeiling, MessageGroup, MessageIndex, Replace, Rewrite, Together
from ..messages import Message
from ..selectors import Selector, as_selector, last
from ..summarizers import (
    Summarizer,
    SummaryBudget,
    SummaryRequest,
    SummaryTemplate,
    as_summarizer,
    as_template,
    default_template,
)
from ..triggers import always, never
from .base import CompactionStrategy, Failed, Steps
from .prepared import prepared_answer
from .summary_text import SummaryText, answered_text, checked_summary, next_round, own_words, replaced_by

OnFailure: TypeAlias = Literal["keep", "digest", "drop", "raise"]
"""What to do if the summarizer failed: keep the conversation as it is, write a digest without a model, drop the groups, or
raise."""

_FRAME_TOKENS: Final = 400  # of the mark, the preface and the end, with room for other counters


def _digest() -> Summarizer:
    return summarizers.DigestSummarizer()


@attrs.frozen
class Summarization(CompactionStrategy):
    """Replaces the groups that ``keep`` leaves free by one summary, and updates it in later rounds.

    Cost: O(groups + messages of the earlier summary), and one request to the summarizer.

    Args:
        summarizer: Writes the summary: an object with ``summarize(request)``, or with ``generate(prompt)``; by default a digest
            made without a model.
        trigger: When to run.
        target: When there is nothing to do; asked once, before the summarizer.
        keep: Groups that stay; by default the last 4 groups, as in Agent Framework's documentation.
        budget: How long the summary may be. The room it refers to is the trigger's `Trigger.token_limit` less the kept groups,
            and at least half of that limit; without such a limit, as where a pipeline's trigger decides, there is none. O(1).
        on_failure: What to do if the summarizer failed.
        least_share: Share of the view's tokens that the new groups must have, or no summary is asked for: without it, a
            conversation whose kept part alone is too large would be summarized again on every turn. After a summary that saved
            nothing, they must have changed by as much.
        focus: The subject on which the summary should say most.
        template: Its sections and wording: a template, a text with placeholders, the path of one, or a plain instruction, with
            which the model writes prose: ``"Summarize the key decisions and user preferences only."``.
        language: The language to write in; ``None`` for the conversation's own.
        system_note: A sentence appended to the first system message together with the first summary, once.
        text: The words around the summary.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import messages_exceed
    >>> said = [{"role": "user", "content": f"Please remember that shelf {n} holds box {n * 7}. " * 30} for n in range(9)]
    >>> result = compact_sync(said, Summarization(trigger=messages_exceed(8), keep=last(messages=2)), counter="chars/4")
    >>> [message["role"] for message in result.messages], result.outcome
    (['user', 'user', 'user'], 'compacted')
    """

    summarizer: Summarizer = attrs.field(factory=_digest, converter=as_summarizer)
    keep: Selector = attrs.field(default=last(groups=4), converter=as_selector, kw_only=True)
    budget: SummaryBudget = attrs.field(factory=SummaryBudget, kw_only=True)
    on_failure: OnFailure = attrs.field(
        default="keep", validator=attrs.validators.in_(("keep", "digest", "drop", "raise")), kw_only=True
    )
    least_share: float = attrs.field(default=0.1, kw_only=True)
    focus: str | None = attrs.field(default=None, kw_only=True)
    template: SummaryTemplate = attrs.field(factory=default_template, converter=as_template, kw_only=True)
    language: str | None = attrs.field(default=None, kw_only=True)
    system_note: str | None = attrs.field(default=None, kw_only=True)
    text: SummaryText = attrs.field(factory=SummaryText, kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        ceiling = self.budget.ceiling
        return {self.name: MarkCeiling(DEFAULT_CEILING.tokens if ceiling is None else 2 * ceiling + _FRAME_TOKENS)}

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "target": never, "least_share": 0.0, "focus": focus or self.focus}

    def edits(self, index: MessageIndex) -> Steps:
        request = self._request(index)
        if request is None or self.target(index) or self.is_paused(index) or self._saved_nothing(index, request):
            return
        ready = prepared_answer(self, index, request, replaced_by(index, request))
        pauses = index.context.pauses
        try:
            if ready is None:
                answer = yield request
            else:
                request, answer = ready
            summary = self._summary(index, request, answer)
        except (ConfigurationError, SyncDriverError):
            raise
        except Exception as error:
            pauses.record_failure(self.pauses_as, index.context.now)
            yield from self._without_summary(index, request, error)
            return
        for failure in request.failures:
            yield Failed(self.name, failure, "the next summarizer was asked")
        if summary is None:
            pauses.record_no_gain(self.pauses_as, _tokens(request.groups))
            return
        pauses.record_success(self.pauses_as)
        yield from self._put(index, request, summary)

    # ---------------------------------------------------------------- asking

    def _request(self, index: MessageIndex) -> SummaryRequest | None:
        """Return the request; ``None`` while there are no new groups, or too few."""
        free = index.replaceable([group for group in self.candidates(index) if not self._is_of_another(group)])
        mine = [group for group in free if group.kind is GroupKind.SUMMARY and group.made_by == self.name]
        fresh = tuple([group for group in free if group.kind is not GroupKind.SUMMARY or group.is_collapsed])
        tokens = _tokens(fresh)
        if not fresh or tokens < self.least_share * index.included.tokens:
            return None
        gone = {group.id for group in (*mine, *fresh)}
        previous = "\n\n".join(filter(None, [self.text.read(group.messages[0]) for group in mine])) or None
        originals = own_words(index, mine)
        content = tokens + sum(index.measure(each)[0] for each in originals)
        return SummaryRequest(
            summarizer=self.summarizer,
            groups=fresh,
            previous=previous,
            originals=originals,
            kept=tuple([group for group in index.included_groups if group.id not in gone]),
            budget=self.budget.tokens(
                content,
                update_of=0 if previous is None else index.counter.count_text(previous),
                room=self._room(index, sum(group.tokens for group in (*mine, *fresh))),
            ),
            counter=index.counter,
            focus=self.focus,
            template=self.template,
            language=self.language,
        )

    def _saved_nothing(self, index: MessageIndex, request: SummaryRequest) -> bool:
        """Return whether a summary of about as many tokens saved nothing, so that it should wait for other content."""
        tried = index.context.pauses.no_gain(self.pauses_as)
        if tried is None or self.is_past_window(index):
            return False
        return abs(_tokens(request.groups) - tried) < max(1, self.least_share * index.included.tokens)

    def _room(self, index: MessageIndex, replaced: int) -> int | None:
        """Return the tokens that the trigger leaves beside what is kept, and at least half of its limit, if it has one."""
        limit = self.trigger.token_limit(index)
        return None if limit is None else max(limit - (index.tokens - replaced), limit // 2)

    def _is_of_another(self, group: MessageGroup) -> bool:
        """Whether it is a summary that another strategy updates, which therefore stays."""
        return group.kind is GroupKind.SUMMARY and group.made_by != self.name and not group.is_collapsed

    # ---------------------------------------------------------------- answering

    def _summary(self, index: MessageIndex, request: SummaryRequest, answer: object) -> tuple[Message, ...] | None:
        """Return the answer as messages that can replace the groups; the errors are those of the functions it calls."""
        text, replaced = answered_text(answer), replaced_by(index, request)
        places = _ranges([ordinal for group in replaced for ordinal in index.ordinals(group)])
        body = self.text.body(text, originals=places)
        return checked_summary(index, self, body, replaced, round=next_round(replaced, self.name))

    def _put(self, index: MessageIndex, request: SummaryRequest, summary: tuple[Message, ...]) -> Steps:
        """Replace the groups; with the first summary, add the note to the system prompt, if the sum still shrinks."""
        replace = Replace(replaced_by(index, request), summary, "summarized")
        note = None if self.system_note is None else _noted(index, self.system_note)
        if note is None or not (yield Together(note, replace)):
            yield replace

    def _without_summary(self, index: MessageIndex, request: SummaryRequest, error: Exception) -> Steps:
        """Do what ``on_failure`` says."""
        groups = replaced_by(index, request)
        if self.on_failure == "raise":
            raise error
        if self.on_failure == "keep":
            yield Failed(self.name, error, "nothing was summarized; the conversation stays as it is")
        elif self.on_failure == "drop":
            dropped = 0
            for step in index.steps(groups, preferred_only=True):
                if (yield Drop(step, "dropped: no summary was to be had")):
                    dropped += len(step)
            yield Failed(self.name, error, f"{dropped} groups were dropped without a summary")
        else:
            yield from self._digest(index, request, error)

    def _digest(self, index: MessageIndex, request: SummaryRequest, error: Exception) -> Steps:
        try:
            summary = self._summary(index, request, summarizers.DigestSummarizer().summarize(request))
        except SummaryFailed:
            summary = None
        if summary is None:
            yield Failed(self.name, error, "nothing was summarized, a digest would not do either: it is too long")
            return
        yield Failed(self.name, error, "a digest was written without a model")
        yield from self._put(index, request, summary)


def _tokens(groups: Sequence[MessageGroup]) -> int:
    return sum(group.tokens for group in groups)


def _noted(index: MessageIndex, note: str) -> Rewrite | None:
    """Return the edit that adds the note to the first system message; ``None`` if it is empty or has the note."""
    group = next((group for group in index.included_groups if group.kind is GroupKind.SYSTEM), None)
    if group is None or not index.is_rewritable(group):
        return None
    message = group.messages[0]
    if not message.text or note in message.text:
        return None
    return Rewrite(group, [message.evolve(text=f"{message.text}\n\n{note}")], "a note that there is a summary")


def _ranges(ordinals: Sequence[int]) -> str:
    """Return places of messages as ``messages 3-17, 20``, counted from 0."""
    runs: list[list[int]] = []
    for ordinal in sorted(ordinals):
        if runs and ordinal == runs[-1][1] + 1:
            runs[-1][1] = ordinal
        else:
            runs.append([ordinal, ordinal])
    return "messages " + ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
