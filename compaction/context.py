"""What a strategy may know besides the messages: the window, the overhead of a request, the time."""

from __future__ import annotations

import attrs

__all__ = ["RunContext"]


@attrs.frozen(kw_only=True)
class RunContext:
    """What surrounds a conversation; passed in, never looked up.

    Args:
        window: Tokens the model takes in, if known.
        overhead_tokens: Tokens sent with every request outside the message list, such as tool schemas or a system parameter;
            counted by every token trigger.
        now: The time, in seconds of any clock; ``None`` if time plays no part.
    """

    window: int | None = None
    overhead_tokens: int = 0
    now: float | None = None
