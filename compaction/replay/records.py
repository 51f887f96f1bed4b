"""What a replay finds out: a record for each call, conversation and contender; plain values, cheap to make and to send."""

from __future__ import annotations

import attrs

from .contenders import Deed
from .recording import Recording
from .transcript import Needs

__all__ = ["Break", "CallRecord", "ConversationRecord", "Run", "Survival"]


@attrs.frozen
class Break:
    """A request that departs from the one before, so that a cached prefix is lost.

    Args:
        lost_tokens: Tokens of the request before from where this one departs.
        message: The place in the request where it departs, from 0.
        cause: The strategy and its reason, or what else is known.
    """

    lost_tokens: int
    message: int
    cause: str


@attrs.frozen(kw_only=True)
class CallRecord:
    """One model call as it would have been sent.

    Args:
        ordinal: The recorded message that answered it, from 0.
        tokens: Its size, the overhead included.
        messages: How many messages it has.
        over: Whether it is over the window.
        broken_rules: Rules of the format that it breaks more often than the whole history does.
        read: Tokens read from the prompt cache.
        written: Tokens written to it.
        fresh: Tokens that are neither.
        expired: Whether a prefix was lost to time.
        broken: How it departs from the request before, if it does.
        compacted: Whether the strategy changed anything at this call.
        seconds: CPU time that the strategy took.
        summary_read: Tokens that summaries written at this call stand for.
        summary_written: Tokens of these summaries.
        missing_facts: Which of the facts needed (`Needs.facts`, by place) cannot be read in it.
        missing_words: How many of the rare words needed cannot.
        missing_spans: How many of the verbatim spans needed cannot.
        deeds: What the strategy did, with the recorded messages concerned.
        left: Recorded messages that the request before held, or that came since, and this one does not hold unchanged.
        back: Recorded messages that are back.
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
    broken: Break | None
    compacted: bool
    seconds: float
    summary_read: int
    summary_written: int
    missing_facts: tuple[int, ...]
    missing_words: int
    missing_spans: int
    deeds: tuple[Deed, ...] = ()
    left: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    @property
    def would_fail(self) -> bool:
        """Whether a provider would refuse it."""
        return self.over or bool(self.broken_rules)


@attrs.frozen
class Survival:
    """How many of the user's instructions stood verbatim in the request after a compaction.

    Args:
        compactions: How many compactions they had been through, this one included; 4 stands for four and more.
        stated: How many there were.
        standing: How many of them still stood.
    """

    compactions: int
    stated: int
    standing: int


@attrs.frozen(kw_only=True)
class Run:
    """One conversation under one contender.

    Args:
        contender: Its name.
        calls: Each call, in order.
        survival: What became of the user's instructions.
        failures: What the contender raised, each with the first call and how often.
    """

    contender: str
    calls: tuple[CallRecord, ...]
    survival: tuple[Survival, ...]
    failures: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ConversationRecord:
    """One conversation: what its actions needed, and how each contender did.

    Args:
        recording: What was replayed; messages that could not be read are left out.
        tokens: Its size, the overhead included.
        exceeds: Whether the whole history is over the window at some call. If not, there is nothing to compact: it is reported,
            and not averaged in.
        needs: What each call's recorded action took from its history.
        output_tokens: Tokens of each call's recorded answer.
        timed: Whether every message has its time.
        runs: By contender.
    """

    recording: Recording
    tokens: int
    exceeds: bool
    needs: tuple[Needs, ...]
    output_tokens: tuple[int, ...]
    timed: bool
    runs: dict[str, Run]
