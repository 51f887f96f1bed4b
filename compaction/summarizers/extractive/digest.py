"""The digest: a summary without a model, made of quotations and lists. It is the default, and the fallback when a model fails.

What it keeps was decided by measurement (``docs/digest.md``): exact facts help an agent more than prose of the same length,
facts chosen from everything seen more than those of the newest part, and a digest that fills slowly loses fewer facts than one
that is full from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from ...checks import share
from ...errors import SummaryFailed
from ...index import GroupKind
from ..base import SummaryRequest
from .digest_builder import DigestBuilder
from .facts import facts_in
from .notes import ConversationNotes, texts_of
from .ranking import (
    add_constraints,
    add_earlier_facts,
    add_earlier_lines,
    add_facts,
    add_first_and_latest,
    add_lines,
    add_progress,
    add_requests,
    add_values,
    reserve_room_for_facts,
)
from .sentences import both_ends

_LEAST: Final = 160


@attrs.frozen(kw_only=True)
class DigestSummarizer:
    r"""A summarizer that fills the sections from the conversation: quotations, calls with their outcome, files, exact facts.

    The same request gives the same text. The text never exceeds the budget: the facts least likely to be needed are left out
    first, the user's constraints and first and latest messages last, and omitted constraints are counted.

    An earlier summary is taken over section by section, whoever wrote it. Its facts are kept unless they were superseded; a
    repeated call counts with its last outcome; finished work moves to Done. If the original messages are available, facts are
    chosen from all of them again.

    Cost: O(characters of the messages), about 10 MB a second.

    Args:
        growth: Share of the free room that a round may fill, above 0 and at most 1. Below 1, later rounds have room left, so
            that a new fact need not push out an old one.
        turnover: Share of the budget that new facts may always have, above 0 and at most 1.
        redact: Removes secrets from every text before it is read; ``None`` keeps them, since a digest is made in this process
            and shows nothing that the conversation did not.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Deploy to eu-west-1. Never touch prod.db."}], counter="chars/4")
    >>> digest = DigestSummarizer()
    >>> request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=200, counter=index.counter)
    >>> print(digest.summarize(request).partition("\n\n")[2])
    ## Goal
    - First: Deploy to eu-west-1. Never touch prod.db.
    <BLANKLINE>
    ## Constraints & Preferences
    - Never touch prod.db.
    """

    growth: float = attrs.field(default=0.45, validator=share)
    turnover: float = attrs.field(default=0.04, validator=share)
    redact: Callable[[str], str] | None = attrs.field(default=None)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the digest, at most ``request.budget`` tokens and about half of the new messages.

        Raises:
            SummaryFailed: If there is nothing to summarize, or the budget is too small for any digest.
        """
        if not any(message.parts for group in request.groups for message in group.messages):
            raise SummaryFailed("there are no new messages to make a digest of")
        notes = ConversationNotes(self.redact, request.focus)
        if request.previous is not None:
            notes.read_summary(request.previous)
        notes.read_messages(request.originals)
        for group in request.groups:
            notes.read_group(group.messages)
        return self._build(request, notes).text()

    def _build(self, request: SummaryRequest, notes: ConversationNotes) -> DigestBuilder:
        count = request.counter.count_text
        before = 0 if request.previous is None else count(request.previous)
        new = sum(group.tokens for group in request.groups)
        builder = DigestBuilder(min(request.budget, before + max(_LEAST, new // 2)), count)
        opening = self._opening(request)
        add_first_and_latest(builder, notes, opening)
        add_constraints(builder, notes)
        reserve_room_for_facts(builder, notes)
        add_values(builder, notes)
        add_earlier_lines(builder, notes)
        add_progress(builder, notes)
        add_lines(builder, notes)
        add_requests(builder, notes, opening)
        turnover = self.turnover * builder.rest
        add_earlier_facts(builder, notes, builder.limit - turnover)
        filled = before + self.growth * (builder.limit - before)
        add_facts(builder, notes, max(filled, builder.used + turnover), _visible(request))
        return builder

    def _opening(self, request: SummaryRequest) -> str | None:
        """Return the user's first message if it stays in the view before what is summarized."""
        start = min(group.id for group in request.groups)
        said = [group for group in request.kept if 0 <= group.id < start and group.kind is GroupKind.USER]
        if not said:
            return None
        text = both_ends(said[0].messages[0].text)
        return text if self.redact is None else self.redact(text)


def _visible(request: SummaryRequest) -> set[str]:
    """Return the facts of what stays in the view; when it leaves, a later request will hold them."""
    visible: set[str] = set()
    for group in request.kept:
        for message in group.messages:
            for _, text, more in texts_of(message):
                visible.update(facts_in(both_ends(text)), more)
    return visible
