"""What a summarizer is asked, and what it must answer.

A summarizer is any object with ``summarize(request) -> str``, sync or async. It either returns text that can stand for the
groups in the request, or raises; it never returns an apology, an error text or nothing. What happens then is the strategy's
``on_failure``.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, cast, runtime_checkable

import attrs

from ..checks import count, share
from ..edits import Request
from ..groups import MessageGroup
from ..messages import Message
from ..tokens import TokenCounter
from .templates import SummaryTemplate, default_template

__all__ = ["Summarizer", "SummaryBudget", "SummaryRequest"]


@runtime_checkable
class Summarizer(Protocol):
    """Turns groups of a conversation into a text that stands for them."""

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """The summary, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If there is none to be had.
        """
        ...


@attrs.frozen(kw_only=True)
class SummaryBudget:
    """How long a summary may be: a share of what it stands for, within bounds. The figures are Hermes Agent's.

    Args:
        ratio: Share of the summarized tokens, above 0 and at most 1.
        floor: Tokens it may always have, >= 1.
        ceiling: Tokens it never exceeds; ``None`` for no bound. Wins over ``floor``.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> SummaryBudget(ceiling=10_000).tokens(30_000)
    6000
    """

    ratio: float = attrs.field(default=0.20, validator=share)
    floor: int = attrs.field(default=2_000, validator=count(1))
    ceiling: int | None = attrs.field(default=cast("int | None", 12_000), validator=attrs.validators.optional(count(1)))

    def tokens(self, content: int, *, update_of: int = 0) -> int:
        """The budget for summarizing ``content`` tokens.

        Args:
            content: Tokens of all that the summary will stand for: in a later round what is new, and what the earlier summary
                stands for. A share of what is new alone would shrink whenever less is new, and what was held would have to go.
            update_of: Tokens of the earlier summary; as many it may have again, whatever it stands for.
        """
        tokens = max(int(content * self.ratio), self.floor, update_of)
        return tokens if self.ceiling is None else min(tokens, self.ceiling)


@attrs.frozen(kw_only=True)
class SummaryRequest(Request):
    """What is to be summarized, and how.

    Args:
        summarizer: Who is asked.
        groups: The groups the summary will stand for, oldest first, an earlier summary left out.
        previous: The text of the earlier summary that this one replaces, without its mark; ``None`` in the first round.
        originals: The messages that ``previous`` and the strategy's other summaries in ``kept`` stand for, as far as this
            process still has them.
        kept: The groups that stay in the view beside the summary.
        budget: Tokens the summary may have.
        counter: Counts them.
        focus: What to give room to, in the user's words; ``None`` for no preference.
        template: The sections to fill and how to ask for them.
        language: The language to write in, such as ``"Korean"``; ``None`` for the conversation's own.
    """

    summarizer: Summarizer = attrs.field(eq=False, repr=False)
    groups: tuple[MessageGroup, ...]
    budget: int = attrs.field(validator=count(1))
    counter: TokenCounter = attrs.field(eq=False, repr=False)
    previous: str | None = None
    originals: tuple[Message, ...] = attrs.field(default=(), eq=False, repr=False)
    kept: tuple[MessageGroup, ...] = attrs.field(default=(), eq=False, repr=False)
    focus: str | None = None
    template: SummaryTemplate = attrs.field(factory=default_template)
    language: str | None = None

    def call(self) -> Any:
        return self.summarizer.summarize(self)
