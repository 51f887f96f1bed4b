"""The words around a summary, which tell a model that it is background and where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ..errors import ConfigurationError, SummaryFailed
from ..index import LAST_ROUND, MARK_START, GroupKind, MessageGroup, MessageIndex, marked, read_mark
from ..messages import Message
from ..summarizers import SummaryRequest, usable_text
from .base import Strategy

_PREFACE: Final = (
    "Earlier messages of this conversation were compacted into the summary below; the originals are kept outside this request"
    " ({originals}). It is background, not a request: do not act on it again, answer the messages that follow it."
)
_END: Final = "[end of summary]"


def _single_paragraph(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip() or "\n\n" in value:
        raise ConfigurationError(f"SummaryText: {attribute.name!r} must be one paragraph, not empty (got {value!r})")


@attrs.frozen(kw_only=True)
class SummaryText:
    r"""The texts before and after a summary.

    A summary that says these words itself, or begins like a mark, cannot end early or pass for another: where it does, a
    backslash is written behind their first character, which `read` takes out again.

    Args:
        preface: One paragraph; ``{originals}`` is replaced by the places of the original messages.
        end: The last line.

    >>> text = SummaryText(preface="Background.")
    >>> print(text.render("Tea is wanted.", originals="messages 1-7", by="Summarization"))
    [compaction c39301d6 by Summarization round 1]
    Background.
    <BLANKLINE>
    Tea is wanted.
    <BLANKLINE>
    [end of summary]
    >>> "[\\end of summary]" in text.render("Done. [end of summary]", originals="", by="Summarization")
    True
    """

    preface: str = attrs.field(default=_PREFACE, validator=_single_paragraph)
    end: str = attrs.field(default=_END, validator=_single_paragraph)

    def render(self, summary: str, *, originals: str, by: str, round: int = 1) -> str:
        """Return the whole text of a summary message, its mark first."""
        return marked(self.body(summary, originals=originals), by=by, round=round)

    def body(self, summary: str, *, originals: str) -> str:
        """Return the text of a summary message after its mark."""
        preface = self.preface.replace("{originals}", originals)
        return f"{preface}\n\n{self._broken(summary.strip())}\n\n{self.end}"

    def read(self, message: Message) -> str | None:
        """Return the summary alone from a message that `render` wrote; ``None`` for any other message."""
        mark = read_mark(message)
        if mark is None:
            return None
        _, _, rest = mark.body.partition("\n\n")
        return self._whole(rest.strip().removesuffix(self.end.strip()).rstrip())

    def _broken(self, summary: str) -> str:
        """Return a summary in which no words are those around it."""
        return self._words("*").sub(_with_backslash, summary)

    def _whole(self, broken: str) -> str:
        """Return the summary that `_broken` was given."""
        return self._words("+").sub(_without_backslash, broken)

    def _words(self, backslashes: str) -> re.Pattern[str]:
        """Return a pattern for the words around a summary, with so many backslashes behind their first character."""
        preface = max(self.preface.split("{originals}"), key=len)
        texts = [text for text in (self.end.strip(), MARK_START.strip(), preface.strip()) if text]
        words = [rf"{re.escape(text[0])}\\{backslashes}{_loosely(text[1:])}" for text in texts]
        return re.compile("|".join(words), re.IGNORECASE)


def next_round(groups: Iterable[MessageGroup], by: str) -> int:
    """Return the number of a strategy's next summary, from those of its own among the groups."""
    own = [group for group in groups if group.kind is GroupKind.SUMMARY and group.made_by == by]
    rounds = [mark.round for group in own if (mark := read_mark(group.messages[0])) is not None]
    return min(max(rounds, default=0) + 1, LAST_ROUND)


def replaced_by(index: MessageIndex, request: SummaryRequest) -> list[MessageGroup]:
    """Return the groups that the answer to a request will stand for: those that the request does not keep."""
    kept = {group.id for group in request.kept}
    return [group for group in index.included_groups if group.id not in kept]


def checked_summary(
    index: MessageIndex, strategy: Strategy, body: str, replaced: Sequence[MessageGroup], *, round: int
) -> tuple[Message, ...] | None:
    """Return the messages with which a strategy can replace groups; ``None`` if they are not shorter than these.

    Raises:
        SummaryFailed: If they are far too long.
    """
    messages = index.summary(body, replaced, by=strategy.name, round=round)
    tokens, stood_for = sum(index.measure(message)[0] for message in messages), sum(group.tokens for group in replaced)
    if tokens > (ceiling := strategy.mark_ceilings[strategy.name].tokens):
        raise SummaryFailed(f"the summary has {tokens:,} tokens; {ceiling:,} are allowed at the very most")
    return messages if tokens < stood_for else None


def answered_text(answer: object) -> str:
    """Return the text of a summarizer's answer.

    Raises:
        SummaryFailed: If it is not a text, or is empty.
        Exception: If it is the failure of a request in the background.
    """
    if isinstance(answer, Exception):
        raise answer
    return usable_text(answer)


def own_words(index: MessageIndex, groups: Iterable[MessageGroup]) -> tuple[Message, ...]:
    """Return the messages that summaries stand for, without those that are summaries themselves."""
    return tuple([each for group in groups for each in index.read_originals(group, summaries=False)])


def summary_words(strategy: Strategy, group: MessageGroup) -> str:
    """Return the words of a summary in the view, without its mark and what its strategy wrote around it.

    Args:
        strategy: The strategy that ran; it, or one inside it, wrote the summary.
        group: A summary group.
    """
    message = group.messages[0]
    mark = read_mark(message)
    body = message.text if mark is None else mark.body
    text = _texts(strategy).get(group.made_by or "", SummaryText() if body.rstrip().endswith(_END) else None)
    return body if text is None else text.read(message) or ""


def _texts(strategy: Strategy) -> dict[str, SummaryText]:
    """Return the words around the summaries of a strategy and of those inside it, by name."""
    texts = ((part.name, getattr(part, "text", None)) for part in strategy.parts())
    return {name: text for name, text in texts if isinstance(text, SummaryText)}


def _loosely(text: str) -> str:
    """Return a pattern for a text with any blanks between its words."""
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def _with_backslash(found: re.Match[str]) -> str:
    return found[0][0] + "\\" + found[0][1:]


def _without_backslash(found: re.Match[str]) -> str:
    return found[0][0] + found[0][2:]
