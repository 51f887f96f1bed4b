"""A summary without a model: the default, and what is left when a model fails. It quotes and lists, and makes nothing up.

What is kept was settled by measurement (``docs/digest.md``): a list of exact facts helps an agent more than lines of prose of
the same length, facts chosen from all that was ever seen more than those of the newest part, and a record that fills slowly
loses less of what it held than one that is full from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from ..checks import share
from ..errors import SummaryFailed
from ..groups import GroupKind
from .base import SummaryRequest
from .choice import (
    add_asks,
    add_carried,
    add_constraints,
    add_facts,
    add_first_and_latest,
    add_held_facts,
    add_lines,
    add_progress,
    add_settings,
    yield_to_held_facts,
)
from .draft import Draft
from .facts import facts_in
from .record import Record, texts_of
from .sentences import readable

__all__ = ["DigestSummarizer"]

_LEAST: Final = 160


@attrs.frozen(kw_only=True)
class DigestSummarizer:
    r"""Fills a summary's sections from the conversation itself: quotations, calls with their outcome, files, exact facts.

    The same request gives the same text. Whatever the budget, the text never exceeds it; what has no room leaves from the least
    likely needed facts upwards, the user's constraints and first and latest words last, and constraints left out are counted.

    An earlier summary is taken over section by section, whoever wrote it. A fact it holds is held again unless it was
    superseded; a call made again counts with its last outcome; what is finished moves to Done. With the original messages at
    hand, facts are chosen anew from all of them.

    Cost: O(characters of the messages), about 10 MB a second.

    Args:
        growth: Share of the free room that a round may fill, above 0 and at most 1. Below 1, there is room left for later
            rounds, so that a new fact need not drive out an old one.
        turnover: Share of the budget that new facts may always have, above 0 and at most 1.
        redact: Takes secrets out of every text before anything is taken from it; ``None`` keeps them, since a digest is made
            in this process and shows nothing that the conversation did not.

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
        """The digest, at most ``request.budget`` tokens and about half of what is new.

        Raises:
            SummaryFailed: If there is nothing to summarize, or the budget holds no digest at all.
        """
        if not any(message.parts for group in request.groups for message in group.messages):
            raise SummaryFailed("there are no new messages to make a digest of; ask for one when there are")
        record = Record(self.redact, request.focus)
        if request.previous is not None:
            record.read_summary(request.previous)
        record.read_messages(request.originals)
        for group in request.groups:
            record.read_group(group.messages)
        return self._draft(request, record).text()

    def _draft(self, request: SummaryRequest, record: Record) -> Draft:
        count = request.counter.count_text
        before = 0 if request.previous is None else count(request.previous)
        draft = Draft(min(request.budget, before + max(_LEAST, sum(group.tokens for group in request.groups) // 2)), count)
        opening = self._opening(request)
        add_first_and_latest(draft, record, opening)
        add_constraints(draft, record)
        yield_to_held_facts(draft, record)
        add_settings(draft, record)
        add_carried(draft, record)
        add_progress(draft, record)
        add_lines(draft, record)
        add_asks(draft, record, opening)
        new = self.turnover * draft.rest
        add_held_facts(draft, record, draft.limit - new)
        filled = before + self.growth * (draft.limit - before)
        add_facts(draft, record, max(filled, draft.used + new), _visible(request))
        return draft

    def _opening(self, request: SummaryRequest) -> str | None:
        """What the user said first, if it stays in the view before what is summarized."""
        start = min(group.id for group in request.groups)
        said = [group for group in request.kept if 0 <= group.id < start and group.kind is GroupKind.USER]
        if not said:
            return None
        text = readable(said[0].messages[0].text)
        return text if self.redact is None else self.redact(text)


def _visible(request: SummaryRequest) -> set[str]:
    """The facts of what stays in the view; when it leaves, it will be among the messages of a later request."""
    visible: set[str] = set()
    for group in request.kept:
        for message in group.messages:
            for _, text, more in texts_of(message):
                visible.update(facts_in(readable(text)), more)
    return visible
