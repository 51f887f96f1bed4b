"""Records of a replay: its settings, and one for each call, conversation and candidate. Cheap to make and to pickle."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..checks import count
from ..formats import MessageFormat
from ..models import ModelPrices
from ..tokens import TokenCounter
from .candidates import CandidateAction
from .recordings import Recording
from .transcript import Needs


@attrs.frozen(kw_only=True)
class ReplaySetting:
    """Settings for a whole replay.

    Raises:
        ConfigurationError: If a number is out of range.
    """

    window: int = attrs.field(validator=count(1))  # tokens a request may have
    prices: ModelPrices  # the model's prices and cache rules
    counter: TokenCounter  # counts tokens
    format: MessageFormat | None = None  # the wire format of all messages; ``None`` to detect it for each conversation
    overhead_tokens: int = attrs.field(default=0, validator=count())  # tokens of every request outside the messages
    charge_summaries: bool = False  # whether summaries cost as if the model had written them


@attrs.frozen
class Share:
    """A number found out of a number needed.

    >>> (Share(1, 2) + Share(2, 2)).value
    0.75
    """

    found: float = 0
    needed: float = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.found + other.found, self.needed + other.needed)

    @property
    def value(self) -> float | None:
        """The ratio; ``None`` if nothing was needed."""
        return self.found / self.needed if self.needed else None


@attrs.frozen
class CacheUse:
    """The tokens of a request by how they are billed."""

    read: int  # tokens read from the cache
    written: int  # tokens written to it
    fresh: int  # tokens neither read nor written
    expired: bool = False  # whether a prefix could not be read only because it had expired


@attrs.frozen
class PrefixBreak:
    """A request that differs from the previous one before its end, so that cached tokens are lost."""

    lost_tokens: int  # tokens of the previous request after the first difference
    message: int  # the message of the request with the first difference, from 0
    cause: str  # the strategy and its reason, or what else is known


@attrs.frozen(kw_only=True)
class ReplayedCall:
    """One model call with the request that would have been sent."""

    ordinal: int  # the recorded message that answered it, from 0
    tokens: int  # tokens of the request, including the overhead
    messages: int  # number of messages in the request
    over: bool  # whether the request exceeds the window
    broken_rules: tuple[str, ...]  # rules of the format that it breaks more often than the whole history does
    cache: CacheUse  # its tokens by how they are billed
    broken: PrefixBreak | None  # the first difference from the previous request, if it does not continue it
    compacted: bool  # whether the strategy changed anything at this call
    seconds: float  # CPU time of the strategy
    missing_facts: tuple[int, ...]  # positions in `Needs.facts` of the needed facts that the request does not contain
    # the shares that it contains of what the answer needed and the user said before: those of a score (``SCORE_SHARES`` in
    # ``scores``), without ``"usable"`` and ``"old"``
    shares: Mapping[str, Share]
    actions: tuple[CandidateAction, ...] = ()  # the changes the strategy made, with the recorded messages they concern
    # recorded messages that are new, or were in the previous request, and that this request does not contain unchanged
    left: tuple[int, ...] = ()
    back: tuple[int, ...] = ()  # recorded messages that the previous request did not contain and this one does

    @property
    def would_fail(self) -> bool:
        """Whether a provider would refuse the request."""
        return self.over or bool(self.broken_rules)


@attrs.frozen(kw_only=True)
class CandidateRun:
    """One conversation replayed under one candidate."""

    candidate: str  # its name
    calls: tuple[ReplayedCall, ...]  # each call, in order
    # the share of the user's instructions that are still verbatim in the request after a compaction, by the number of
    # compactions since they were stated, this one included; 4 means four or more
    survival: Mapping[int, Share]
    failures: tuple[str, ...] = ()  # the exceptions the candidate raised, each with the first call and the count


@attrs.frozen(kw_only=True)
class ReplayedConversation:
    """One conversation: what its recorded answers needed, and the run of each candidate."""

    recording: Recording  # the recording, without messages that could not be read
    tokens: int  # tokens of all its messages, including the overhead
    # whether the whole history exceeds the window at some call. If not, there is nothing to compact: the conversation is
    # reported, but not included in the averages
    exceeds: bool
    needs: tuple[Needs, ...]  # what each recorded answer needed from its history
    runs: dict[str, CandidateRun]  # the runs, by candidate
