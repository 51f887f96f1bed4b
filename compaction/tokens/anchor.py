"""The usage anchor: the offset that ties our counts to the provider's last report.

The offset is what the messages do not show: tool schemas, the provider's own preamble, template tokens. It does not grow with
the text, so it is added, never multiplied. When each of 27 recorded OpenAI requests was predicted from the one before, the
median error was 4.5 percent with an offset and 17.6 percent with a factor; for 65 Anthropic requests, 2.2 and 52 percent.
"""

from __future__ import annotations

import attrs

from .usage import Usage

__all__ = ["UsageAnchor"]


@attrs.frozen
class UsageAnchor:
    """The difference between what a provider reported and what we counted for the same messages.

    Args:
        offset: Tokens to add to a count; negative where we count more than the provider; 0 before the first report.

    An anchor is valid for one model and one set of tools; make a new one when either changes.

    >>> usage = Usage.read({"prompt_tokens": 1_180, "completion_tokens": 20})
    >>> anchor = UsageAnchor.from_usage(usage, counted_tokens=1_050)     # the messages that were sent, and the reply
    >>> anchor.estimate(1_050 + 300)                                     # 300 counted tokens later
    1500
    """

    offset: int = 0

    @classmethod
    def from_usage(cls, usage: Usage, counted_tokens: int, *, with_reply: bool = True) -> UsageAnchor:
        """Return the anchor that follows from a report.

        Args:
            usage: The usage that the provider reported for one request.
            counted_tokens: Our count of the messages of that request and, with ``with_reply``, of the reply.
            with_reply: Whether ``counted_tokens`` includes the reply; then its reported tokens count too, without the hidden
                reasoning, which is not sent again.
        """
        reply = usage.completion_tokens - usage.reasoning_tokens if with_reply else 0
        return cls(usage.prompt_tokens + reply - counted_tokens)

    def estimate(self, counted_tokens: int) -> int:
        """Return what the provider would report for messages that we count as ``counted_tokens``; never negative."""
        return max(0, counted_tokens + self.offset)
