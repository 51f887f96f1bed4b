"""The surroundings of a conversation that a strategy may use: the window, the overhead of a request, the time, the pauses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ..checks import count, whole
from ..errors import ConfigurationError
from .pauses import FailurePauses
from .prepared import PreparedSummaries

__all__ = ["RunContext"]

_LEAST_KEY_CHARS: Final = 16


def _keys(given: str | Iterable[str] | None) -> tuple[str, ...]:
    keys = (given,) if isinstance(given, str) else tuple(given or ())
    if any(len(key) < _LEAST_KEY_CHARS for key in keys):
        raise ConfigurationError(f"a key has at least {_LEAST_KEY_CHARS} characters; make one with secrets.token_hex()")
    return keys


@attrs.frozen(kw_only=True)
class RunContext:
    """The surroundings of a conversation; passed in, never looked up.

    Args:
        window: Tokens the model takes in, if known.
        overhead_tokens: Tokens sent with every request outside the message list, such as tool schemas or a system parameter;
            counted by every token trigger. Negative where a provider reports fewer tokens than are counted here.
        expected_tokens: Tokens that a rehearsal assumes to come at the end of the view before a strategy is due, see `last`;
            they are a part of ``overhead_tokens`` then.
        now: The time, in seconds of any clock; ``None`` if time plays no part.
        pauses: How long strategies that failed are left alone; a session passes the same one each time.
        prepared: The summary that was written before it was due; a session passes the same holder each time.
        keys: Keys that sign summaries, so that nobody can forge one: the first signs, each is accepted; see `Marks`.
        origin: The name of the conversation, which a signature holds.

    Raises:
        ConfigurationError: If the window is not above 0, a number of tokens is not a whole number, or a key is too short.
    """

    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=whole)
    expected_tokens: int = attrs.field(default=0, validator=count())
    now: float | None = None
    pauses: FailurePauses = attrs.field(factory=FailurePauses, eq=False, repr=False)
    prepared: PreparedSummaries = attrs.field(factory=PreparedSummaries, eq=False, repr=False)
    keys: tuple[str, ...] = attrs.field(default=(), converter=_keys, repr=False)
    origin: str = ""
