"""The surroundings of a conversation that a strategy may use: the window, the overhead of a request, the time, the pauses."""

from __future__ import annotations

import attrs

from ..checks import count, whole
from .pauses import FailurePauses

__all__ = ["RunContext"]


@attrs.frozen(kw_only=True)
class RunContext:
    """The surroundings of a conversation; passed in, never looked up.

    Args:
        window: Tokens the model takes in, if known.
        overhead_tokens: Tokens sent with every request outside the message list, such as tool schemas or a system parameter;
            counted by every token trigger. Negative where a provider reports fewer tokens than are counted here.
        now: The time, in seconds of any clock; ``None`` if time plays no part.
        pauses: How long strategies that failed are left alone; a session passes the same one each time.

    Raises:
        ConfigurationError: If the window is not above 0, or a number of tokens is not a whole number.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=whole)
    now: float | None = None
    pauses: FailurePauses = attrs.field(factory=FailurePauses, eq=False, repr=False)
