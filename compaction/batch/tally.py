"""What a batch did, as sums: small enough to be kept for every slice, and added up into any report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..outcome import CompactionResult

__all__ = ["Tally"]


@attrs.define(kw_only=True)
class Tally:
    """Holds state: sums over the conversations seen so far.

    Args:
        conversations: Conversations read, the bad ones included.
        changed: Those of which something was taken out, shortened or summarized.
        bad: Those that were put aside, with a reason.
        degraded: Those in which a part failed and its policy took over.
        over_target: Those that are still larger than asked for.
        messages_before: Messages read, but for bad conversations.
        messages_after: Messages written.
        tokens_before: Their tokens.
        tokens_after: Tokens of those written.
        bytes_read: Bytes of text read, unpacked.
        bytes_written: Bytes of text written, before packing.
        lines: Lines or rows of the input.
        seconds: CPU seconds of those who did it; none where conversations took turns to wait.
        requests: Requests to a summarizer.
        prompt_tokens: What these sent, as reported by the server, else estimated.
        completion_tokens: What they brought.
    """

    conversations: int = 0
    changed: int = 0
    bad: int = 0
    degraded: int = 0
    over_target: int = 0
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    lines: int = 0
    seconds: float = 0.0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def note(self, result: CompactionResult) -> None:
        """Count a conversation that was compacted."""
        self.changed += bool(result.edits)
        self.degraded += bool(result.failures)
        self.over_target += result.outcome == "over_target"
        self.messages_before += result.before.messages
        self.messages_after += result.after.messages
        self.tokens_before += result.before.tokens
        self.tokens_after += result.after.tokens

    def add(self, other: Tally) -> None:
        """Count in what another one counted."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; `from_dict` reads it.

        >>> Tally.from_dict(Tally(conversations=2, seconds=0.25).to_dict())
        Tally(conversations=2, ..., seconds=0.25, ...)
        """
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """The sums that `to_dict` wrote."""
        return cls(**data)


_NAMES = tuple(field.name for field in attrs.fields(Tally))
