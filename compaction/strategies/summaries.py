"""The base of the strategies that write summaries: how a summarizer is asked, and how its answer becomes messages.

A source message is known by its object, ``id(message.raw)``, because each reading of it is another `Message`. A summary is
*inherited* if it is among the source messages: an earlier session wrote it, and what it replaced is not available.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs

from .. import summarizers
from ..checks import made
from ..errors import SummaryFailed
from ..index import LAST_ROUND, GroupKind, MessageGroup, MessageIndex
from ..messages import Message
from ..summarizers import Summarizer, SummaryRequest, usable_text
from .base import CompactionStrategy, Strategy, group_tokens, tokens_in
from .questions import answered_ordinal
from .summary_text import SummaryText

QUOTES_A_PART: Final = "; it quotes about"
"""The beginning of what the reason of an edit says if an excerpt does not quote all that the user said."""

_WORDS_OF_ROOM: Final = 0.75  # of a summary: the most that an excerpt of the user's words may have
_ROUNDED: Final = 2  # tokens that an excerpt may lack because its room is rounded
_ALL: Final = 0.97  # of the tokens of what is quoted: redaction and joins change a few
_FRAME_TOKENS: Final = 16  # of a message, a longer mark and the joins of texts


@attrs.frozen
class SummaryStrategy(CompactionStrategy):
    """The base of the strategies that replace groups with a text of their own, inside the ``text`` around each summary."""

    text: SummaryText = attrs.field(factory=SummaryText, validator=made("a SummaryText", SummaryText), kw_only=True)

    # ---------------------------------------------------------------- before the summarizer is asked

    def with_excerpt(
        self, index: MessageIndex, request: SummaryRequest, tokens: int, *, most: int | None = None
    ) -> SummaryRequest:
        """Return the request with an excerpt of what the user says in the messages that the summary replaces.

        The summary must be shorter than what it replaces, counted as it stands in the view. So the excerpt has at most three
        quarters of that, without the text around the summary, and the request's budget at most the rest.

        Cost: O(characters of the user's messages).

        Args:
            index: The conversation.
            request: The request, whose budget is that of the answer alone.
            tokens: Most tokens of the excerpt, >= 0.
            most: Most tokens of the whole summary, if anything but what it replaces limits it.
        """
        replaced = replaced_by(index, request)
        room = self.room(index, replaced, most)
        numbers, tokens = summarizers.extractive.excerpt_options(request, tokens)
        said = self.excerpt(index, replaced, min(tokens, self.excerpt_room(index, replaced, most)), numbers)
        left = room - index.counter.count_text(said) if said else room
        return attrs.evolve(request, said=said, budget=max(1, min(request.budget, left)))

    def room(self, index: MessageIndex, replaced: Sequence[MessageGroup], most: int | None = None) -> int:
        """Return how many tokens a summary of these groups may have beside the text around it; it may be below 0."""
        tokens = group_tokens(replaced)
        return (tokens if most is None else min(tokens, most)) - self.frame_tokens(index)

    def excerpt_room(self, index: MessageIndex, replaced: Sequence[MessageGroup], most: int | None = None) -> int:
        """Return how many of these tokens an excerpt of the user's words may have."""
        return int(_WORDS_OF_ROOM * max(0, self.room(index, replaced, most)))

    def tokens_around(self, index: MessageIndex, words: int) -> int:
        """Return how many tokens a summary needs to hold an excerpt of so many: the inverse of `excerpt_room`."""
        return int(words / _WORDS_OF_ROOM) + _ROUNDED + self.frame_tokens(index)

    def frame_tokens(self, index: MessageIndex) -> int:
        """Return the most tokens of the text around a summary."""
        empty = self.text.render("", originals="messages 1-999, 1000", by="GrowingSummary")
        return index.counter.count_text(empty) + _FRAME_TOKENS

    def excerpt(
        self, index: MessageIndex, replaced: Sequence[MessageGroup], tokens: int, numbers: Mapping[int, int] | None = None
    ) -> str:
        """Return what the user says in the messages that these groups have or stand for, in at most so many tokens.

        A short answer that stays in the view is quoted, too, if the question that it needs leaves. The numbers are those of
        `summarizers.extractive.excerpt`.
        """
        if tokens < 1:
            return ""
        said = self._not_quoted(index, replaced) + _answers_beside(index, replaced)
        earlier = self._said_earlier(index, replaced)
        ordinals = list(chain.from_iterable(index.places(replaced))) if earlier else []
        inherited_at = next((place for place, at in enumerate(ordinals) if _is_inherited(index, at)), len(ordinals))
        return summarizers.extractive.excerpt(
            said,
            tokens,
            index.counter.count_text,
            task=summarizers.extractive.task_of(map(index.format.read, index.source)),
            earlier=earlier,
            earlier_at=inherited_at,
            redact=self.text.redact,
            numbers=numbers,
            before=_before_answers(index, replaced, said),
        )

    def _not_quoted(self, index: MessageIndex, replaced: Sequence[MessageGroup]) -> tuple[Message, ...]:
        """Return the source messages of these groups without summaries, and without what a summary quotes already."""
        quoted = self._quoted_before(index, replaced)
        return tuple([message for message in own_words(index, replaced) if id(message.raw) not in quoted])

    def _quoted_before(self, index: MessageIndex, replaced: Sequence[MessageGroup]) -> set[int]:
        """Return the objects of short answers that a summary quotes already, because their questions left before.

        The summary stays, or is replaced with its text alone, because its messages are not available. Quoted again, "one more
        lamp" would be two lamps.
        """
        ids, found = {group.id for group in replaced}, set[int]()
        for summary in index.included_groups:
            if is_own(self, summary) and (summary.id not in ids or _is_inherited(index, summary.id)):
                text = self.text.read(summary.messages[0]) or ""
                words = summarizers.extractive.quoted_words(text, answers_only=summary.id in ids)
                spoken = [group for group in replaced if group.kind is GroupKind.USER and group.messages[0].said in words]
                asked = {*index.ordinals(summary)} if spoken else set[int]()
                found |= {id(group.messages[0].raw) for group in spoken if answered_ordinal(index, group.id) in asked}
        return found

    def _said_earlier(self, index: MessageIndex, replaced: Sequence[MessageGroup]) -> list[str]:
        """Return what the user says in summaries whose messages are not available: the entries of the excerpts in them.

        If none has one, a model may have written what the user said in its own words: then all of it counts. If this strategy
        asks no model, it is a list of facts, and does not count.
        """
        inherited = [summarizers.extractive.split_excerpt(text) for text in self._inherited(index, replaced)]
        quoted = [entry for entries, _ in inherited for entry in entries]
        is_listed = not summarizers.asks_model(getattr(self, "summarizer", None))
        return quoted if quoted or is_listed else [rest for _, rest in inherited]

    def why(self, index: MessageIndex, replaced: Sequence[MessageGroup], said: str, reason: str) -> str:
        """Return the reason of an edit, with how much of the user's words an excerpt quotes if it is not all.

        Repeated texts count once; texts that a summary in the view already quotes do not count. O(characters of the user's
        messages).
        """
        count, redact = index.counter.count_text, self.text.redact or str
        inherited = chain.from_iterable(map(summarizers.extractive.quoted_words, self._inherited(index, replaced)))
        spoken = {*inherited, *[message.said for message in self._not_quoted(index, replaced)]}
        entries = {*summarizers.extractive.quoted_words(said)}
        quoted, wanted = sum(map(count, entries)), sum(map(count, spoken))
        text = _spaced("\n".join(entries))
        if quoted >= _ALL * wanted and all(_spaced(redact(each)) in text for each in spoken - entries):
            return reason
        return f"{reason}{QUOTES_A_PART} {min(quoted, wanted):,} of {wanted:,} tokens of what the user said"

    def _inherited(self, index: MessageIndex, replaced: Sequence[MessageGroup]) -> list[str]:
        """Return the texts of the summaries among the source messages of these groups: an earlier session wrote them."""
        group_of = index.columns.grouping.group_of
        if not index.columns.grouping.made_by:
            return []  # at once: mostly no source message is part of a summary
        found = [at for group in replaced for at in index.ordinals(group) if _is_inherited(index, at)]
        messages = [index.group(id).messages[0] for id in sorted({group_of[at] for at in found})]
        return [self.text.read(message) or message.text for message in messages]

    def earlier(self, groups: Iterable[MessageGroup]) -> str | None:
        """Return what earlier summaries say, without the user's words in them; ``None`` if they say nothing."""
        read = [self.text.read(group.messages[0]) for group in groups]
        return "\n\n".join([rest for each in read if each and (rest := summarizers.extractive.split_excerpt(each)[1])]) or None

    # ---------------------------------------------------------------- after its answer

    def fitting(self, index: MessageIndex, words: str, replaced: Sequence[MessageGroup]) -> tuple[Message, ...] | None:
        """Return a summary as `written` does; ``None`` also if it is larger than the strategy allows."""
        with contextlib.suppress(SummaryFailed):
            return self.written(index, words, replaced)
        return None

    def written(self, index: MessageIndex, words: str, replaced: Sequence[MessageGroup]) -> tuple[Message, ...] | None:
        """Return a summary as messages that can replace the groups; ``None`` if they are not shorter.

        Its round follows those of the strategy's summaries in the view. If it is larger than the strategy allows, that raises
        `SummaryFailed`.
        """
        places = [f"{run.start}" if len(run) == 1 else f"{run.start}-{run.stop - 1}" for run in index.places(replaced)]
        body = self.text.body(words, originals="messages " + ", ".join(places))
        rounds = [group.mark.round for group in index.included_groups if is_own(self, group) and group.mark is not None]
        round = min(max(rounds, default=0) + 1, LAST_ROUND)
        messages = index.summary(body, replaced, by=self.name, round=round)
        tokens, ceiling = tokens_in(index, messages), self.mark_ceilings[self.name].tokens
        if tokens > ceiling:
            raise SummaryFailed(f"the summary has {tokens:,} tokens; at most {ceiling:,} are allowed")
        return messages if tokens < group_tokens(replaced) else None

    def answered(self, index: MessageIndex, request: SummaryRequest, answer: object) -> tuple[Message, ...] | None:
        """Return the answer to a request and the user's words as messages; ``None`` if they are not shorter than the groups.

        The words stand last, since what the answer repeats of the user's messages is mostly older. So "Undo that." is read
        after what it undoes.

        An answer that cannot be used or is too large raises `SummaryFailed`; if a request in the background failed, the answer
        is its exception, which is raised.
        """
        if isinstance(answer, Exception):
            raise answer
        words = "\n\n".join(filter(None, [summarizers.extractive.without_excerpts(usable_text(answer)).strip(), request.said]))
        return self.written(index, words, replaced_by(index, request))

    def without_model(self, index: MessageIndex, request: SummaryRequest, summarizer: Summarizer) -> tuple[Message, ...] | None:
        """Return what another summarizer writes after a failure; ``None`` if it cannot be used either, or is not shorter."""
        with contextlib.suppress(SummaryFailed):
            return self.answered(index, request, summarizer.summarize(request))
        return None


def _is_inherited(index: MessageIndex, ordinal: int) -> bool:
    """Return whether a source message is part of a summary."""
    grouping = index.columns.grouping
    return ordinal >= 0 and grouping.group_of[ordinal] in grouping.made_by  # below 0 is the id of an inserted summary


def _spaced(text: str) -> str:
    return " ".join(text.split())


def is_own(strategy: Strategy, group: MessageGroup) -> bool:
    """Return whether a group is a summary that this strategy wrote."""
    return group.kind is GroupKind.SUMMARY and group.made_by == strategy.name


def is_content(group: MessageGroup) -> bool:
    """Return whether a group is part of the conversation: a collapsed tool call is, a summary is not."""
    return group.kind is not GroupKind.SUMMARY or group.is_collapsed


def own_words(index: MessageIndex, groups: Iterable[MessageGroup]) -> tuple[Message, ...]:
    """Return the source messages of these groups (of a summary, those that it replaced) without summaries."""
    return tuple(index.read_originals(*groups, summaries=False))


def _answers_beside(index: MessageIndex, replaced: Sequence[MessageGroup]) -> tuple[Message, ...]:
    """Return the user's short answers that stay in the view, to questions in the messages that these groups stand for."""
    gone, kind = {*chain.from_iterable(index.places(replaced))}, index.columns.kind
    found: list[Message] = []
    for id in index.included_ids:
        asked = answered_ordinal(index, id) if kind(id) is GroupKind.USER and id not in gone else None
        if asked in gone:
            before, answer = (index.format.read(index.source[ordinal]) for ordinal in (asked, id))
            if summarizers.extractive.asked_in(before, answer):
                found.append(answer)
    return tuple(found)


def _before_answers(index: MessageIndex, replaced: Sequence[MessageGroup], said: Iterable[Message]) -> dict[int, Message]:
    """Return what each short message of the user may answer, by the identity of its object; it may have left before."""
    short, source = {id(message.raw) for message in said if summarizers.extractive.is_short_answer(message)}, index.source
    ordinals = chain(chain.from_iterable(map(index.ordinals, replaced)), index.included_ids) if short else ()
    found: dict[int, Message] = {}
    for ordinal in ordinals:
        if ordinal >= 0 and id(source[ordinal]) in short:  # below 0 are ids of inserted summaries
            asked = answered_ordinal(index, ordinal)
            if asked is not None and index.kind_at(asked) is not GroupKind.SUMMARY:
                found[id(source[ordinal])] = index.format.read(source[asked])
    return found


def replaced_by(index: MessageIndex, request: SummaryRequest) -> list[MessageGroup]:
    """Return the groups that the answer to a request will replace: those that the request does not keep."""
    kept = {group.id for group in request.kept}
    return [group for group in index.included_groups if group.id not in kept]


def summary_words(strategy: Strategy, group: MessageGroup) -> str:
    """Return a summary in the view, without its mark and the text around it; the strategy, or a part of it, wrote it."""
    message, mark = group.messages[0], group.mark
    body = message.text if mark is None else mark.body
    makers = [part for part in strategy.parts() if isinstance(part, SummaryStrategy) and part.name == group.made_by]
    text = makers[-1].text if makers else SummaryText()
    if not makers and not body.rstrip().endswith(text.end):
        return body
    return text.read(message) or ""
