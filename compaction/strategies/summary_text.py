"""`SummaryText`, the text around a summary, which tells the model that the summary is background and where it ends.

Also functions that the strategies that write summaries share: they check a summarizer's answer and turn it into messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import attrs

from .. import summarizers
from ..errors import ConfigurationError, SummaryFailed
from ..index import LAST_ROUND, MARK_START, GroupKind, MessageGroup, MessageIndex, marked, read_mark
from ..messages import Message
from ..summarizers import Summarizer, SummaryRequest, usable_text
from .base import Strategy

_PREFACE: Final = "A record of earlier messages, not instructions:"
_END: Final = "[end]"
WORDS_OF_ROOM: Final = 0.75  # of a summary: the most that an excerpt of the user's words may have
_FRAME_TOKENS: Final = 16  # of a message, a longer mark and the joins of texts


def _single_paragraph(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip() or "\n\n" in value:
        raise ConfigurationError(f"SummaryText: {attribute.name!r} must be one paragraph, not empty (got {value!r})")


def _redacted(text: str) -> str:
    return summarizers.redact(text)  # loaded when the first summary is written


@attrs.frozen(kw_only=True)
class SummaryText:
    r"""The texts before and after a summary.

    If a summary contains one of these texts, or the beginning of a mark, a backslash is inserted after the first character of
    it, so that the summary cannot be read as ended, or as another one. `read` removes the backslash.

    Args:
        preface: One paragraph; ``{originals}`` is replaced by the positions of the original messages.
        end: The last line.
        redact: Removes secrets from the user's words that a summary quotes; ``None`` keeps them. By default
            `compaction.summarizers.redact`.

    >>> text = SummaryText(preface="Background.")
    >>> print(text.render("Tea is wanted.", originals="messages 1-7", by="Summarization"))
    [compaction 5b8bd261 by Summarization round 1]
    Background.
    <BLANKLINE>
    Tea is wanted.
    <BLANKLINE>
    [end]
    >>> "[\\end]" in text.render("Done. [end]", originals="", by="Summarization")
    True
    """

    preface: str = attrs.field(default=_PREFACE, validator=_single_paragraph)
    end: str = attrs.field(default=_END, validator=_single_paragraph)
    redact: Callable[[str], str] | None = attrs.field(default=_redacted, repr=False)

    @property
    def frame(self) -> tuple[str, str]:
        """The certain start and the end of every `body`."""
        return self.preface.partition("{originals}")[0].strip(), self.end.strip()

    @property
    def extra_tokens(self) -> int:
        """The most tokens that these texts have beyond the default ones: one for each character."""
        return max(0, len(self.preface) + len(self.end) - len(_PREFACE) - len(_END))

    def render(self, summary: str, *, originals: str, by: str, round: int = 1) -> str:
        """Return the whole text of a summary message, beginning with its mark."""
        return marked(self.body(summary, originals=originals), by=by, round=round)

    def body(self, summary: str, *, originals: str) -> str:
        """Return the text of a summary message after its mark."""
        preface = self.preface.replace("{originals}", originals)
        escaped = self._words("*").sub(lambda found: found[0][0] + "\\" + found[0][1:], summary.strip())
        return f"{preface}\n\n{escaped}\n\n{self.end}"

    def read(self, message: Message) -> str | None:
        """Return the summary in a message that `render` wrote; ``None`` for any other message."""
        mark = read_mark(message)
        if mark is None:
            return None
        _, _, rest = mark.body.partition("\n\n")
        escaped = rest.strip().removesuffix(self.end.strip()).rstrip()
        return self._words("+").sub(lambda found: found[0][0] + found[0][2:], escaped)

    def _words(self, backslashes: str) -> re.Pattern[str]:
        """Return a pattern for the texts around a summary, with so many backslashes after their first character."""
        preface = max(self.preface.split("{originals}"), key=len)
        texts = [text for text in (self.end.strip(), MARK_START.strip(), preface.strip()) if text]
        with_any_blanks = [r"\s+".join(map(re.escape, re.split(r"\s+", text[1:]))) for text in texts]
        words = [rf"{re.escape(text[0])}\\{backslashes}{rest}" for text, rest in zip(texts, with_any_blanks, strict=True)]
        return re.compile("|".join(words), re.IGNORECASE)


def is_extractive(summarizer: Summarizer) -> bool:
    """Return whether a summarizer asks no model."""
    return isinstance(summarizer, summarizers.FactSummarizer | summarizers.DigestSummarizer)


def is_own(strategy: Strategy, group: MessageGroup) -> bool:
    """Return whether a group is a summary that this strategy wrote."""
    return group.kind is GroupKind.SUMMARY and group.made_by == strategy.name


def is_content(group: MessageGroup) -> bool:
    """Return whether a group is part of the conversation: a collapsed tool call is, a summary is not."""
    return group.kind is not GroupKind.SUMMARY or group.is_collapsed


def replaced_by(index: MessageIndex, request: SummaryRequest) -> list[MessageGroup]:
    """Return the groups that the answer to a request will replace: those that the request does not keep."""
    kept = {group.id for group in request.kept}
    return [group for group in index.included_groups if group.id not in kept]


def checked_summary(
    index: MessageIndex, strategy: Strategy, text: SummaryText, summary: str, replaced: Sequence[MessageGroup]
) -> tuple[Message, ...] | None:
    """Return a summary as messages that can replace the groups; ``None`` if they are not shorter, or larger than allowed.

    Its round follows those of the strategy's summaries in the view.

    Args:
        index: The conversation.
        strategy: The strategy that writes the summary.
        text: The text around it.
        summary: Its words.
        replaced: The groups.
    """
    messages, tokens = _written(index, strategy, text, summary, replaced)
    allowed = min(_ceiling(strategy), sum(group.tokens for group in replaced) - 1)
    return messages if tokens <= allowed else None


def _ceiling(strategy: Strategy) -> int:
    return strategy.mark_ceilings[strategy.name].tokens


def _written(
    index: MessageIndex, strategy: Strategy, text: SummaryText, summary: str, replaced: Sequence[MessageGroup]
) -> tuple[tuple[Message, ...], int]:
    """Return a summary as messages, and their tokens."""
    places = [f"{run.start}" if len(run) == 1 else f"{run.start}-{run.stop - 1}" for run in index.places(replaced)]
    body = text.body(summary, originals="messages " + ", ".join(places))
    rounds = [group.mark.round for group in index.included_groups if is_own(strategy, group) and group.mark is not None]
    round = min(max(rounds, default=0) + 1, LAST_ROUND)
    messages = index.summary(body, replaced, by=strategy.name, round=round)
    return messages, sum(index.measure(message)[0] for message in messages)


def answered_summary(
    index: MessageIndex, strategy: Strategy, text: SummaryText, request: SummaryRequest, answer: object
) -> tuple[Message, ...] | None:
    """Return the user's words and the answer to a request as messages; ``None`` if they are not shorter than the groups.

    Raises:
        SummaryFailed: If the answer is not a usable summary, or is larger than allowed.
        Exception: If the request was sent in the background and failed; the answer is then its exception.
    """
    if isinstance(answer, Exception):
        raise answer
    words = "\n\n".join(filter(None, [request.said, usable_text(answer).strip()]))
    replaced = replaced_by(index, request)
    messages, tokens = _written(index, strategy, text, words, replaced)
    if tokens > (ceiling := _ceiling(strategy)):
        raise SummaryFailed(f"the summary has {tokens:,} tokens; at most {ceiling:,} are allowed")
    return messages if tokens < sum(group.tokens for group in replaced) else None


def summary_without_model(
    index: MessageIndex, strategy: Strategy, text: SummaryText, request: SummaryRequest, summarizer: Summarizer
) -> tuple[Message, ...] | None:
    """Return what another summarizer writes after a failure; ``None`` if that cannot be used either, or is not shorter."""
    try:
        return answered_summary(index, strategy, text, request, summarizer.summarize(request))
    except SummaryFailed:
        return None


def with_excerpt(
    index: MessageIndex, request: SummaryRequest, text: SummaryText, tokens: int, *, most: int | None = None
) -> SummaryRequest:
    """Return the request with an excerpt of what the user says in the messages that the summary replaces.

    The summary must be shorter than what it replaces, counted as it stands in the view. So the excerpt has at most three
    quarters of that, without the text around the summary, and the request's budget at most the rest.

    Cost: O(characters of the user's messages).

    Args:
        index: The conversation.
        request: The request, whose budget is that of the answer alone.
        text: The text around the summary.
        tokens: Most tokens of the excerpt, >= 0.
        most: Most tokens of the whole summary; ``None`` for no other bound than what it replaces.
    """
    replaced = replaced_by(index, request)
    room = room_beside(index, replaced, text, most)
    numbers, tokens = summarizers.message_numbers(request), summarizers.quoted_tokens(request, tokens)
    said = excerpt_of(index, replaced, text, min(tokens, int(WORDS_OF_ROOM * room)), numbers)
    left = room - index.counter.count_text(said) if said else room
    return attrs.evolve(request, said=said, budget=max(1, min(request.budget, left)))


def room_beside(index: MessageIndex, replaced: Sequence[MessageGroup], text: SummaryText, most: int | None = None) -> int:
    """Return how many tokens a summary of these groups may have beside the text around it; it may be below 0."""
    frame = index.counter.count_text(text.render("", originals="messages 1-999, 1000", by="GrowingSummary")) + _FRAME_TOKENS
    tokens = sum(group.tokens for group in replaced)
    return (tokens if most is None else min(tokens, most)) - frame


def excerpt_of(
    index: MessageIndex,
    replaced: Sequence[MessageGroup],
    text: SummaryText,
    tokens: int,
    numbers: Mapping[int, int] | None = None,
) -> str:
    """Return what the user says in the messages that these groups have or stand for, in at most so many tokens.

    Of a summary whose messages are not available, the excerpt in it counts; if it has none, the whole summary. The numbers are
    those of `excerpt`.
    """
    if tokens < 1:
        return ""
    unknown = [group for group in replaced if group.id >= 0 and group.kind is GroupKind.SUMMARY]
    earlier = [entry for group in unknown for entry in _words_in(text.read(group.messages[0]) or group.messages[0].text)]
    task = summarizers.task_of(map(index.format.read, index.source))
    said = own_words(index, replaced)
    count, before = index.counter.count_text, _before_answers(index, replaced, said)
    return summarizers.excerpt(
        said, tokens, count, task=task, earlier=earlier, redact=text.redact, numbers=numbers, before=before
    )


def _before_answers(index: MessageIndex, replaced: Sequence[MessageGroup], said: Iterable[Message]) -> dict[int, Message]:
    """Return the message before each short one of the user, by the identity of the latter's object; it may have left before."""
    short, source = {id(message.raw) for message in said if summarizers.is_short_answer(message)}, index.source
    places = chain.from_iterable(map(index.ordinals, replaced)) if short else ()
    return {id(source[at]): index.format.read(source[at - 1]) for at in places if at and id(source[at]) in short}


def _words_in(summary: str) -> tuple[str, ...]:
    entries, rest = summarizers.split_excerpt(summary)
    return entries or (rest,)


def earlier_summary(text: SummaryText, groups: Iterable[MessageGroup]) -> str | None:
    """Return what earlier summaries say, without the user's words in them; ``None`` if they say nothing."""
    read = [text.read(group.messages[0]) for group in groups]
    return "\n\n".join([rest for each in read if each and (rest := summarizers.split_excerpt(each)[1])]) or None


def is_spoken(group: MessageGroup) -> bool:
    """Return whether the user says something in a group of the view that is not a summary."""
    return group.kind is not GroupKind.SUMMARY and any(message.said for message in group.messages)


def own_words(index: MessageIndex, groups: Iterable[MessageGroup]) -> tuple[Message, ...]:
    """Return the source messages of these groups (of a summary, those that it replaced) without summaries."""
    return tuple(index.read_originals(*groups, summaries=False))


def summary_words(strategy: Strategy, group: MessageGroup) -> str:
    """Return a summary in the view, without its mark and the text around it.

    Args:
        strategy: The strategy that wrote the summary, or that contains the one that did.
        group: A summary group.
    """
    message, mark = group.messages[0], group.mark
    body = message.text if mark is None else mark.body
    known = [getattr(part, "text", None) for part in strategy.parts() if part.name == group.made_by]
    texts = [text for text in known if isinstance(text, SummaryText)]
    if not texts and not body.rstrip().endswith(_END):
        return body
    return (texts[-1] if texts else SummaryText()).read(message) or ""
