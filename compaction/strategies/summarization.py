"""The `Summarization` strategy, which replaces old groups with a summary and updates that summary in later rounds.

The strategy yields a `SummaryRequest` with the old groups and its earlier summary. It checks the answer, and replaces them with
one new summary: one message, or two if the format requires alternating roles.

A summarizer fails if it raises, or if its answer is empty or has more than 400 tokens plus twice the ceiling of the budget. A
summary that would not be shorter than what it replaces is discarded, which is not a failure. After one, two or more failures
in a row, no request is sent for 1, 5 or 15 minutes (see `RunHistory`); after a discarded summary, not until the tokens to
summarize have changed by ``least_share``. Neither rule applies if the conversation exceeds the model's window, and
`CompactionSession.compact` ends the pauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from .. import summarizers
from ..checks import count, is_number, made, must_be, one_of
from ..index import DEFAULT_CEILING, Drop, GroupKind, MarkCeiling, MessageIndex, Replace, Rewrite, Together
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
from .base import Failed, Steps, group_tokens, tokens_in
from .prepared import prepared_answer
from .summaries import SummaryStrategy, is_content, is_own, own_words, replaced_by

OnFailure: TypeAlias = Literal["keep", "digest", "drop", "raise"]
"""The reaction to a failed summary: ``keep`` the groups in the view, write a ``digest`` of them without a model, ``drop`` them
without a summary, or ``raise`` the error, which undoes the run."""

_FRAME_TOKENS: Final = 400  # of the text around the summary, with a margin for differences between counters
_ABOVE_TARGET: Final = 1.2  # times the target: `presets.hermes` then stays below the threshold that starts its next cut

_SHARE_OR_ZERO: Final = must_be("a share from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)


@attrs.frozen
class Summarization(SummaryStrategy):
    """Replaces the groups that are not in ``keep`` with one summary, and updates the summary in later rounds.

    Cost: O(groups + messages of the earlier summary), and one request to the summarizer.

    Args:
        summarizer: An object with ``summarize(request)`` or ``generate(prompt)``, which writes the summary; by default
            `DigestSummarizer`, which needs no model. `FirstOf` tries several in order.
        trigger: When to run.
        target: If it holds before the request, no summary is requested. Unlike other targets, it is then not evaluated before
            each edit, but only when the strategy has ended.
        keep: The groups that stay; by default the last 4 groups, as in Agent Framework's documentation.
        budget: The length of the summary. It may depend on the room for it: the `Trigger.token_limit` of ``trigger`` minus the
            tokens that are kept, but at least half of that limit. If the trigger has no token limit, for example because only
            the pipeline around this strategy has a trigger, the room is unlimited.
        user_tokens: Most tokens of what the user said in the replaced messages, which stands word for word after the answer of
            the summarizer, >= 0: the task, then the newest messages. ``None`` for as many as the answer may have.
        on_failure: The reaction if there is no usable summary.
        least_share: A summary is requested only if the new groups have at least this share of the view's tokens. With 0, a
            conversation whose kept groups alone exceed the trigger is summarized on every turn. After a summary that saved
            nothing, the tokens to summarize must have changed by this share.
        focus: The topic that the summary should cover in most detail.
        template: The sections and the wording: a `SummaryTemplate`, the ``Path`` of a file, a text with placeholders, or a text
            without any, which is an instruction: ``"Summarize the key decisions and user preferences only."``.
        language: The language of the summary; ``None`` for that of the conversation.
        system_note: A sentence that is added to the first system message in the view, together with a summary, unless it is
            there already. The caller's own message is not changed.
        text: The preface before the summary and the line that ends it.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import messages_exceed
    >>> said = [{"role": "user", "content": f"Please remember that shelf {n} holds box {n * 7}. " * 30} for n in range(9)]
    >>> result = compact_sync(said, Summarization(trigger=messages_exceed(8), keep=last(messages=2)), counter="chars/4")
    >>> [message["role"] for message in result.messages], result.outcome
    (['user', 'user', 'user'], 'compacted')
    """

    summarizer: Summarizer = attrs.field(
        factory=lambda: summarizers.DigestSummarizer(),  # noqa: PLW0108 - it is loaded at its first use
        converter=as_summarizer,
    )
    keep: Selector = attrs.field(default=last(groups=4), converter=as_selector, kw_only=True)
    budget: SummaryBudget = attrs.field(factory=SummaryBudget, validator=made("a SummaryBudget", SummaryBudget), kw_only=True)
    user_tokens: int | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(count()))
    on_failure: OnFailure = attrs.field(default="keep", validator=one_of("keep", "digest", "drop", "raise"), kw_only=True)
    least_share: float = attrs.field(default=0.1, kw_only=True, validator=_SHARE_OR_ZERO)
    focus: str | None = attrs.field(default=None, kw_only=True)
    template: SummaryTemplate = attrs.field(factory=default_template, converter=as_template, kw_only=True)
    language: str | None = attrs.field(default=None, kw_only=True)
    system_note: str | None = attrs.field(default=None, kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        ceiling = self.budget.ceiling
        most = DEFAULT_CEILING.tokens if ceiling is None else 2 * ceiling + _FRAME_TOKENS
        most += most if self.user_tokens is None else 2 * self.user_tokens
        return {self.name: MarkCeiling(most, frames=(self.text.frame,))}

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        return {"trigger": always, "target": never, "least_share": 0.0, "focus": focus or self.focus}

    def edits(self, index: MessageIndex) -> Steps:
        request = self._request(index)
        if request is None or self.target(index) or self.is_paused(index):
            return
        if not self.is_past_window(index) and self.tried_alike(index, group_tokens(request.groups), self.least_share):
            return
        ready = prepared_answer(self, index, request, replaced_by(index, request))
        summary: tuple[Message, ...] | None = None
        with self.failures(index) as failed:
            if ready is None:
                answer = yield request
            else:
                request, answer = self._quoting(index, ready[0]), ready[1]
            summary = self.answered(index, request, answer)
        if failed:
            yield from self._without_summary(index, request, failed[0])
            return
        for failure in request.failures:
            yield Failed(self.name, failure, "the next summarizer was asked")
        if summary is None:
            index.context.pauses.record_no_gain(self.unforced, group_tokens(request.groups))
        else:
            yield from self._put(index, request, summary)

    # ---------------------------------------------------------------- the request

    def _request(self, index: MessageIndex) -> SummaryRequest | None:
        """Return the request for a summary; ``None`` if there are no new groups, or they have too few tokens."""
        free = index.replaceable([group for group in self.candidates(index) if is_own(self, group) or is_content(group)])
        mine, fresh = [group for group in free if is_own(self, group)], tuple(filter(is_content, free))
        tokens = group_tokens(fresh)
        if not fresh or tokens < self.least_share * index.included.tokens:
            return None
        gone = {group.id for group in (*mine, *fresh)}
        previous = self.earlier(mine)
        originals = own_words(index, mine)  # the source messages that the earlier summary replaced
        room = self._room(index, group_tokens((*mine, *fresh)))
        request = SummaryRequest(
            summarizer=self.summarizer,
            groups=fresh,
            previous=previous,
            originals=originals,
            sources=own_words(index, fresh),
            kept=tuple([group for group in index.included_groups if group.id not in gone]),
            budget=self.budget.tokens(
                tokens + tokens_in(index, originals),
                update_of=0 if previous is None else index.counter.count_text(previous),
                room=room,
            ),
            counter=index.counter,
            notes=index.notes,
            focus=self.focus,
            template=self.template,
            language=self.language,
        )
        return self._quoting(index, request, room)

    def _quoting(self, index: MessageIndex, request: SummaryRequest, room: int | None = None) -> SummaryRequest:
        """Return the request with the user's words; with a room, both together have at most their share of it.

        Otherwise, if the target is a number of tokens, they are to fit beside the kept groups into little more than that; they
        may have at least half of it.
        """
        words = request.budget if self.user_tokens is None else self.user_tokens
        if room is None:
            limit = (~self.target).token_limit(index)
            kept = index.tokens - group_tokens(replaced_by(index, request))
            most = None if limit is None else max(int(_ABOVE_TARGET * limit) - kept, limit // 2)
            return self.with_excerpt(index, request, words, most=most)
        most = int(room * self.budget.room_ratio)
        return self.with_excerpt(index, request, min(words, most // 2), most=most + _FRAME_TOKENS)

    def _room(self, index: MessageIndex, replaced: int) -> int | None:
        """Return the trigger's limit minus the kept tokens, but at least half of the limit; ``None`` without a limit."""
        limit = self.trigger.token_limit(index)
        return None if limit is None else max(limit - (index.tokens - replaced), limit // 2)

    # ---------------------------------------------------------------- the answer

    def _put(self, index: MessageIndex, request: SummaryRequest, summary: tuple[Message, ...]) -> Steps:
        """Replace the groups; also add the note to the system message, unless it is there or the edit would be refused."""
        replaced = replaced_by(index, request)
        replace = Replace(replaced, summary, self.why(index, replaced, request.said, "summarized"))
        note = None if self.system_note is None else _noted(index, self.system_note)
        if note is None or not (yield Together(note, replace)):
            yield replace

    def _without_summary(self, index: MessageIndex, request: SummaryRequest, error: Exception) -> Steps:
        """React to a failure as ``on_failure`` says."""
        if self.on_failure == "raise":
            raise error
        if self.on_failure == "keep":
            yield Failed(self.name, error, "nothing was summarized; the conversation is unchanged")
        elif self.on_failure == "drop":
            dropped = 0
            for step in index.steps(replaced_by(index, request), preferred_only=True):
                if (yield Drop(step, "dropped: the summarizer failed")):
                    dropped += len(step)
            yield Failed(self.name, error, f"{dropped} groups were dropped without a summary")
        elif summary := self.without_model(index, request, summarizers.DigestSummarizer()):
            yield Failed(self.name, error, "a digest was written without a model")
            yield from self._put(index, request, summary)
        else:
            yield Failed(self.name, error, "nothing was summarized; a digest without a model would not have been shorter")


def _noted(index: MessageIndex, note: str) -> Rewrite | None:
    """Return the edit that adds the note to the first system message; ``None`` if that has no text, or has the note."""
    group = next((group for group in index.included_groups if group.kind is GroupKind.SYSTEM), None)
    if group is None or not index.is_rewritable(group):
        return None
    message = group.messages[0]
    if not message.text or note in message.text:
        return None
    return Rewrite(group, [message.evolve(text=f"{message.text}\n\n{note}")], "a note that there is a summary")
