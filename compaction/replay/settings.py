"""Settings of a replay: the ones for all of it, and the ones a candidate gets for one conversation."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..checks import count
from ..formats import MessageFormat
from ..models import ModelPrices
from ..tokens import TokenCounter
from .transcript import RECENT_MESSAGES


@attrs.frozen(kw_only=True)
class ReplaySetting:
    """Settings for a whole replay.

    Args:
        window: Tokens a request may have.
        prices: The model's prices and cache rules.
        counter: Counts tokens.
        format: The wire format of all messages; ``None`` to detect it for each conversation.
        overhead_tokens: Tokens of every request outside the messages.
        recent: Number of messages before an answer that every policy is assumed to keep.
        charge_summaries: Whether summaries cost as if the model had written them.

    Raises:
        ConfigurationError: If a number is out of range.
    """

    window: int = attrs.field(validator=count(1))
    prices: ModelPrices
    counter: TokenCounter
    format: MessageFormat | None = None
    overhead_tokens: int = attrs.field(default=0, validator=count())
    recent: int = attrs.field(default=RECENT_MESSAGES, validator=count())
    charge_summaries: bool = False


@attrs.frozen(kw_only=True)
class CandidateSetting:
    """Settings that a candidate is given when a conversation starts.

    Args:
        window: Tokens a request may have.
        counter: Counts tokens.
        format: The wire format of the messages.
        overhead_tokens: Tokens of every request outside the messages.
        clock: Returns seconds: the recorded time if the log has one, else one second per call.
    """

    window: int
    counter: TokenCounter
    format: MessageFormat
    overhead_tokens: int
    clock: Callable[[], float]
