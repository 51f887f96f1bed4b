"""What a strategy may know besides the messages: the window, the overhead of a request, the time."""

from __future__ import annotations

import attrs

from .checks import count, whole

__all__ = ["RunContext"]


@attrs.frozen(kw_only=True)
class RunContext:
    """What surrounds a conversation; passed in, never looked up.

    Args:
        window: Tokens the model takes in, if known.
        overhead_tokens: Tokens sent with every request outside the message list, such as tool schemas or a system parameter;
            counted by every token trigger. Negative where a provider reports fewer tokens than are counted here.
        now: The time, in seconds of any clock; ``None`` if time plays no part.

    Raises:
        ConfigurationError: If the window is not above 0, or one of them is no whole number.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=whole)
    now: float | None = None
