"""Records of a replay: one for each call, conversation and candidate. Plain values, cheap to make and to pickle."""

from __future__ import annotations

import attrs

from .candidate_sessions import CandidateAction
from .recordings import Recording
from .transcript import Needs


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
        read: Tokens read from the prompt cache.
        written: Tokens written to the prompt cache.
        fresh: Tokens neither read from the cache nor written to it.
        expired: Whether a cached prefix had expired.
        broken: The first difference from the previous request, if it does not continue it.
        compacted: Whether the strategy changed anything at this call.
        seconds: CPU time of the strategy.
        summary_read: Tokens of the messages that summaries written at this call replace.
        summary_written: Tokens of these summaries.
        missing_facts: Positions in `Needs.facts` of the needed facts that the request does not contain.
        missing_words: Number of needed rare words that it does not contain.
        missing_spans: Number of needed verbatim spans that it does not contain.
        actions: The changes the strategy made, with the recorded messages they concern.
        left: Recorded messages, new or in the previous request, that this request does not contain unchanged.
        back: Recorded messages that the previous request did not contain and this one does.
    """

    ordinal: int
    tokens: int
    messages: int
    over: bool
    broken_rules: tuple[str, ...]
    read: int
    written: int
    fresh: int
    expired: bool
    broken: PrefixBreak | None
    compacted: bool
    seconds: float
    summary_read: int
    summary_written: int
    missing_facts: tuple[int, ...]
    missing_words: int
    missing_spans: int
    actions: tuple[CandidateAction, ...] = ()
    left: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    @property
    def would_fail(self) -> bool:
        """Whether a provider would refuse the request."""
        return self.over or bool(self.broken_rules)


@attrs.frozen
class ConstraintSurvival:
    """How many of the user's instructions were still verbatim in the request after a compaction.

    Args:
        compactions: Number of compactions since they were stated, including this one; 4 means four or more.
        stated: Number of instructions.
        standing: Number of them still in the request.
    """

    compactions: int
    stated: int
    standing: int


@attrs.frozen(kw_only=True)
class CandidateRun:
    """One conversation replayed under one candidate.

    Args:
        candidate: Its name.
        calls: Each call, in order.
        survival: How many of the user's instructions survived.
        failures: The exceptions the candidate raised, each with the first call and the count.
    """

    candidate: str
    calls: tuple[ReplayedCall, ...]
    survival: tuple[ConstraintSurvival, ...]
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
        output_tokens: Tokens of each recorded answer.
        timed: Whether every message has a time.
        runs: The runs, by candidate.
    """

    recording: Recording
    tokens: int
    exceeds: bool
    needs: tuple[Needs, ...]
    output_tokens: tuple[int, ...]
    timed: bool
    runs: dict[str, CandidateRun]
