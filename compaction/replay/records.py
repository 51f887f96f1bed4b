"""Records of a replay: its settings, and one for each call, conversation and candidate. Cheap to make and to pickle."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..checks import count
from ..formats import MessageFormat
from ..models import ModelPrices
from ..tokens import TokenCounter
from .candidates import CandidateAction
from .prompt_cache import CacheUse
from .recordings import Recording
from .transcript import Needs


@attrs.frozen(kw_only=True)
class ReplaySetting:
    """Settings for a whole replay.

    Args:
        window: Tokens a request may have.
        prices: The model's prices and cache rules.
        counter: Counts tokens.
        format: The wire format of all messages; ``None`` to detect it for each conversation.
        overhead_tokens: Tokens of every request outside the messages.
        charge_summaries: Whether summaries cost as if the model had written them.

    Raises:
        ConfigurationError: If a number is out of range.
    """

    window: int = attrs.field(validator=count(1))
    prices: ModelPrices
    counter: TokenCounter
    format: MessageFormat | None = None
    overhead_tokens: int = attrs.field(default=0, validator=count())
    charge_summaries: bool = False


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
class PrefixBreak:
    """A request that differs from the previous one before its end, so that cached tokens are lost.

    Args:
        lost_tokens: Tokens of the previous request after the first difference.
        message: The message of the request with the first difference, from 0.
        cause: The strategy and its reason, or what else is known.
    """

    lost_tokens: int
    message: int
    cause: str


@attrs.frozen(kw_only=True)
class ReplayedCall:
    """One model call with the request that would have been sent.

    Args:
        ordinal: The recorded message that answered it, from 0.
        tokens: Tokens of the request, including the overhead.
        messages: Number of messages in the request.
        over: Whether the request exceeds the window.
        broken_rules: Rules of the format that it breaks more often than the whole history does.
        cache: Its tokens by how they are billed.
        broken: The first difference from the previous request, if it does not continue it.
        compacted: Whether the strategy changed anything at this call.
        seconds: CPU time of the strategy.
        missing_facts: Positions in `Needs.facts` of the needed facts that the request does not contain.
        shares: The shares that it contains of what the answer needed and the user said before: those of a score
            (``SCORE_SHARES`` in ``scores``), without ``"usable"`` and ``"old"``.
        actions: The changes the strategy made, with the recorded messages they concern.
        left: Recorded messages that are new, or were in the previous request, and that this request does not contain unchanged.
        back: Recorded messages that the previous request did not contain and this one does.
    """

    ordinal: int
    tokens: int
    messages: int
    over: bool
    broken_rules: tuple[str, ...]
    cache: CacheUse
    broken: PrefixBreak | None
    compacted: bool
    seconds: float
    missing_facts: tuple[int, ...]
    shares: Mapping[str, Share]
    actions: tuple[CandidateAction, ...] = ()
    left: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    @property
    def would_fail(self) -> bool:
        """Whether a provider would refuse the request."""
        return self.over or bool(self.broken_rules)


@attrs.frozen(kw_only=True)
class CandidateRun:
    """One conversation replayed under one candidate.

    Args:
        candidate: Its name.
        calls: Each call, in order.
        survival: The share of the user's instructions that are still verbatim in the request after a compaction, by the number
            of compactions since they were stated, this one included; 4 means four or more.
        failures: The exceptions the candidate raised, each with the first call and the count.
    """

    candidate: str
    calls: tuple[ReplayedCall, ...]
    survival: Mapping[int, Share]
    failures: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ReplayedConversation:
    """One conversation: what its recorded answers needed, and the run of each candidate.

    Args:
        recording: The recording, without messages that could not be read.
        tokens: Tokens of all its messages, including the overhead.
        exceeds: Whether the whole history exceeds the window at some call. If not, there is nothing to compact: the
            conversation is reported, but not included in the averages.
        needs: What each recorded answer needed from its history.
        runs: The runs, by candidate.
    """

    recording: Recording
    tokens: int
    exceeds: bool
    needs: tuple[Needs, ...]
    runs: dict[str, CandidateRun]
