"""The words around a summary, which tell a model that it is background and where it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ..errors import ConfigurationError
from ..index import LAST_ROUND, GroupKind, MessageGroup, MessageIndex, marked, read_mark
from ..messages import Message

__all__ = ["SummaryText", "next_round", "own_words"]

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
    """The texts before and after a summary.

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
    """

    preface: str = attrs.field(default=_PREFACE, validator=_single_paragraph)
    end: str = attrs.field(default=_END, validator=_single_paragraph)

    def render(self, summary: str, *, originals: str, by: str, round: int = 1) -> str:
        """Return the whole text of a summary message, its mark first."""
        return marked(self.body(summary, originals=originals), by=by, round=round)

    def body(self, summary: str, *, originals: str) -> str:
        """Return the text of a summary message after its mark."""
        preface = self.preface.replace("{originals}", originals)
        return f"{preface}\n\n{summary.strip()}\n\n{self.end}"

    def read(self, message: Message) -> str | None:
        """Return the summary alone from a message that `render` wrote; ``None`` for any other message."""
        mark = read_mark(message)
        if mark is None:
            return None
        _, _, rest = mark.body.partition("\n\n")
        return rest.strip().removesuffix(self.end).rstrip()


def next_round(groups: Iterable[MessageGroup], by: str) -> int:
    """Return the number of a strategy's next summary, from those of its own among the groups."""
    own = [group for group in groups if group.kind is GroupKind.SUMMARY and group.made_by == by]
    rounds = [mark.round for group in own if (mark := read_mark(group.messages[0])) is not None]
    return min(max(rounds, default=0) + 1, LAST_ROUND)


def own_words(index: MessageIndex, groups: Iterable[MessageGroup]) -> tuple[Message, ...]:
    """Return the messages that summaries stand for, without those that are summaries themselves."""
    return tuple([each for group in groups for each in index.read_originals(group, summaries=False)])
